/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a session go on: messages, answers, a resume. Each is answered when what was asked for is on disk: the message is queued
 * or taken, the run has begun. A run that could not begin is the answer's error.
 */
#include "engine/message_queue.h"
#include "engine/resume.h"
#include "engine/shapes.h"
#include "server/call.h"
#include "server/runner.h"
#include "server/server.h"

#define QUEUE_MAX 10

/* ---- answering when it has begun ---- */

static void on_begun(void *arg, const struct begun *begun, const struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct call *c = arg;
    struct json *event = NULL;
    struct command_result result = {.session_id = c->params[0].ptr};

    if (err) {
        call_fail(c, err);
        return;
    }
    if (begun->seq && !json_parse(&a, begun->event, NULL, &event, NULL, NULL)) {
        result.run_id = arena_dup(&a, json_get_text(&a, event, STR("run_id"))).ptr;
        result.seq = begun->seq;
    }
    call_reply(c, &shape_resumed, &result);
}

/* ---- messages ---- */

static const struct field message_body[] = {
    {.name = "content", .type = FIELD_TEXT, .help = "the message", .required = true},
    {.name = "queue", .type = FIELD_BOOL, .help = "only queue it: the next run takes it"},
    {.name = NULL},
};

/* What waits in the queue already is bounded: nobody may fill a session with what no run has taken. */
static enum tide_code check_queue(tide_session *session, struct tide_err *err)
{
    int64_t n = 0;

    if (message_queue_count(session, &n, err))
        return err->code;
    if (n < QUEUE_MAX)
        return TIDE_OK;
    return tide_fail_session(err, TIDE_BUSY, tide_session_id(session),
                             "has %d messages that no run has taken: wait for one, or withdraw one", QUEUE_MAX);
}

static enum tide_code queue_message(struct call *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf content = BUF_INIT(ANSWER_MAX);
    char queue_id[QUEUE_ID_SIZE];
    int64_t seq;

    buf_add_str(&content, call_json(c, "content"));
    if (send_queue(c->server->store, c->params[0].ptr, buf_view(&content), queue_id, &seq, err))
        return err->code;
    call_reply(c, &shape_queued,
               &(struct command_result){.session_id = c->params[0].ptr, .queue_id = queue_id, .seq = seq});
    return TIDE_OK;
}

static enum tide_code send(struct call *c, struct tide_err *err)
{
    tide_session *session;
    const struct tide_session_info *info;
    const struct order order = {
        .session_id = c->params[0].ptr, .by = c->caller.name, .message = call_text(c, "content")};
    bool only_queued;

    if (str_is_blank(str_from(order.message)))
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "content", "is empty");
    if (call_session(c, TIDE_SESSION_READ, &session, err) || check_queue(session, err) ||
        tide_session_get_info(session, &info, err))
        return err->code;
    only_queued = call_on(c, "queue") || info->holder || info->kind == TIDE_KIND_LOG;
    call_close_session(c);
    if (only_queued)
        return queue_message(c, err);
    if (runner_run(c->server->runner, &order, on_begun, c, err) == TIDE_OK)
        return TIDE_OK;
    return err->code == TIDE_HELD || err->code == TIDE_BUSY ? queue_message(c, err) : err->code;
}

/* ---- resuming and answering ---- */

static const struct field resume_body[] = {
    {.name = "input", .type = FIELD_ANY, .help = "an answer to what it waits for"},
    {.name = "kind", .type = FIELD_TEXT, .help = "of the wait, as `next` has it: it changes nothing"},
    {.name = "token", .type = FIELD_TEXT, .help = "the token of the wait"},
    {.name = "reason", .type = FIELD_TEXT, .help = "for a yes or a no: it is stored with the answer"},
    {.name = "ask_again", .type = FIELD_TEXT, .help = "the name of a question that was answered with no"},
    {.name = "retry", .type = FIELD_TEXTS, .help = "steps or nodes that run again although they must happen once"},
    {.name = "happened", .type = FIELD_TEXTS, .help = "such ones that have happened: NAME or NAME=JSON"},
    {.name = "now", .type = FIELD_BOOL, .help = "of a program: end a sleep before it is due"},
    {.name = "accept_change",
     .type = FIELD_BOOL,
     .help = "of a program: recorded results answer although the arguments changed"},
    {.name = "checkpoint", .type = FIELD_TEXT, .help = "of a graph: go back to it first"},
    {.name = "fallback", .type = FIELD_BOOL, .help = "of a graph: else the newest checkpoint that can be used"},
    {.name = "reuse_effects", .type = FIELD_BOOL, .help = "with checkpoint: recorded effects answer"},
    {.name = "redo_effects", .type = FIELD_BOOL, .help = "with checkpoint: they may run again"},
    {.name = "set", .type = FIELD_OBJECT, .help = "of a graph: keys of its memory"},
    {.name = NULL},
};

static enum tide_code resume(struct call *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    tide_session *session;
    struct str input = call_json(c, "input");
    const char *reason = call_text(c, "reason");
    struct order o = {.session_id = c->params[0].ptr,
                      .by = c->caller.name,
                      .token = call_text(c, "token"),
                      .input = input.len ? arena_dup(c->arena, input).ptr : NULL,
                      .ask_again = call_text(c, "ask_again"),
                      .retry = call_texts(c, "retry"),
                      .happened = call_texts(c, "happened"),
                      .now = call_on(c, "now"),
                      .accept_change = call_on(c, "accept_change"),
                      .checkpoint = call_text(c, "checkpoint"),
                      .fallback = call_on(c, "fallback"),
                      .reuse_effects = call_on(c, "reuse_effects"),
                      .redo_effects = call_on(c, "redo_effects"),
                      .memory = call_json(c, "set"),
                      .has_reason = reason != NULL};

    if (call_session(c, TIDE_SESSION_READ, &session, err) ||
        (reason && resume_give_reason(o.input, reason, &answer, err)))
        return err->code;
    call_close_session(c);
    if (reason)
        o.input = buf_cstr(&answer);
    return runner_run(c->server->runner, &o, on_begun, c, err);
}

#define ONE "/sessions/{id}"
const struct route run_routes[] = {
    {HTTP_POST, ONE "/messages", "message.send", SCOPE_WRITE, send,
     "say something: the run goes on with it, or it is queued for whoever runs the session", .body = message_body,
     .status = 202, .type = "application/json"},
    {HTTP_POST, ONE "/resume", "session.resume", SCOPE_WRITE, resume, "continue what was interrupted, failed or waits",
     .body = resume_body, .answer = &shape_resumed, .status = 202},
    {HTTP_POST, ONE "/answer", "session.answer", SCOPE_ANSWER, resume, "answer what it waits for", .body = resume_body,
     .answer = &shape_resumed, .status = 202},
    {.method = 0},
};
