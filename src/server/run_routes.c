/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a session continue: messages, answers, a resume. Each is answered when what was asked for is on disk: the message is queued
 * or taken, the run has begun; with `wait` when it waits or has ended. A run that could not begin is the answer's error. The token of
 * a wait is in the answer to the request that parked the run, and nowhere else.
 */
#include "server/run_routes.h"

#include <stdio.h>

#include "engine/message_queue.h"
#include "engine/resume.h"
#include "engine/shapes.h"
#include "server/server.h"

/* ---- answering when it has begun ---- */

static void session_closep(tide_session **session)
{
    tide_session_close(*session);
}

/* The log's own word where the event was not seen, or more is asked for. */
static void look_at_session(struct call *c, struct arena *a, const char *id, bool with_status,
                            struct command_result *ret)
{
    AUTO(session_closep) tide_session *session = NULL;
    const struct tide_session_info *info;
    struct tide_err ignored;

    if (tide_session_open(c->server->store, id, TIDE_SESSION_WHOLE, &session, &ignored) ||
        tide_session_get_info(session, &info, &ignored))
        return;
    if (!ret->run_id && info->run_id)
        ret->run_id = arena_dup(a, str_from(info->run_id)).ptr;
    if (!ret->seq)
        ret->seq = info->last_seq;
    if (with_status)
        ret->word = tide_status_name(info->status);
}

static void keep_without_token(struct call *c, struct command_result result)
{
    struct buf text = BUF_INIT(ANSWER_MAX);
    struct json_out o = json_out_to(&text);

    result.token = NULL;
    shape_put(&o, &shape_accepted, &result);
    c->kept = arena_dup(c->arena, buf_view(&text));
    buf_done(&text);
}

void answer_begun(void *arg, const struct begun *begun, const struct tide_err *err)
{
    struct call *c = arg;
    const char *id = c->params[0].ptr;
    struct json *event = NULL;
    struct command_result result = {.session_id = id};
    bool waited = call_on(c, "wait"), may_answer_it = c->caller.scopes & SCOPE_ANSWER;

    if (err) {
        call_fail(c, err);
        return;
    }
    if (begun->seq && !json_parse(c->arena, begun->event, NULL, &event, NULL, NULL)) {
        struct str run = json_get_text(c->arena, event, STR("run_id"));

        result.run_id = run.len ? arena_dup(c->arena, run).ptr : NULL;
        result.seq = begun->seq;
    }
    if (waited || !result.run_id)
        look_at_session(c, c->arena, id, waited, &result);
    if (waited && begun->token && may_answer_it) { /* it is the right to answer */
        result.token = begun->token;
        keep_without_token(c, result);
    }
    call_reply(c, &shape_accepted, &result);
}

/* 0: none is given. No session is at 0. */
static enum tide_code expected_seq(struct call *c, int64_t *ret, struct tide_err *err)
{
    if (call_expected_seq(c, ret, err))
        return err->code;
    *ret = *ret < 0 ? 0 : *ret;
    return TIDE_OK;
}

/* ---- messages ---- */

static const struct field message_body[] = {
    {.name = "content", .type = FIELD_TEXT, .help = "the message", .required = true},
    {.name = "queue", .type = FIELD_BOOL, .help = "only queue it: the next run takes it"},
    {.name = "wait", .type = FIELD_BOOL, .help = WAIT_HELP},
    {.name = NULL},
};

static enum tide_code queue_message(struct call *c, struct command_result *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf content = BUF_INIT(ANSWER_MAX);
    struct queue_limits limits = {.max = MESSAGES_MAX};
    char queue_id[QUEUE_ID_SIZE];

    buf_add_str(&content, call_json(c, "content"));
    if (expected_seq(c, &limits.expect_seq, err) || send_queue(c->server->store, c->params[0].ptr, buf_view(&content),
                                                               &c->request, &limits, queue_id, &ret->seq, err))
        return err->code;
    ret->session_id = c->params[0].ptr;
    ret->queue_id = arena_dup(c->arena, str_from(queue_id)).ptr;
    return TIDE_OK;
}

static enum tide_code only_queue(struct call *c, struct tide_err *err)
{
    struct command_result result = {0};

    if (queue_message(c, &result, err))
        return err->code;
    call_reply(c, &shape_accepted, &result);
    return TIDE_OK;
}

/* The message is on disk, whatever becomes of the run. */
static void on_delivered(void *arg, const struct begun *begun, const struct tide_err *err)
{
    struct call *c = arg;
    const struct command_result *queued = c->data;

    if (err)
        call_reply(c, &shape_accepted, queued);
    else
        answer_begun(c, begun, NULL);
}

/* Of a chat what was cut comes first: meanwhile the message is safe in the queue, and taken from there. */
static enum tide_code queue_and_resume(struct call *c, struct order *order, struct tide_err *err)
{
    struct command_result *result = arena_zero(c->arena, sizeof *result);
    struct cause *by = arena_zero(c->arena, sizeof *by);
    struct tide_err why;

    if (queue_message(c, result, err))
        return err->code;
    memcpy(by->by, c->request.by, sizeof by->by); /* the message has the id of the request */
    c->data = result;
    order->message = NULL;
    order->expect_seq = 0; /* it was looked at with the message, which is behind it */
    order->request = by;
    if (runner_run(c->server->runner, order, on_delivered, c, &why))
        call_reply(c, &shape_accepted, result);
    return TIDE_OK;
}

static enum tide_code send_to_session(struct call *c, struct tide_err *err)
{
    tide_session *session;
    const struct tide_session_info *info;
    bool only_queued, is_cut;
    struct order order = {.session_id = c->params[0].ptr,
                          .request = &c->request,
                          .until_parked = call_on(c, "wait"),
                          .queue_max = MESSAGES_MAX,
                          .message = call_text(c, "content")};

    if (str_is_blank(str_from(order.message)))
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "content", "is empty");
    if (call_session(c, TIDE_SESSION_READ, &session, err) || tide_session_get_info(session, &info, err) ||
        expected_seq(c, &order.expect_seq, err))
        return err->code;
    only_queued = call_on(c, "queue") || info->holder || info->kind == TIDE_KIND_LOG;
    is_cut = info->kind == TIDE_KIND_CHAT && info->needs_resume;
    call_close_session(c);
    if (only_queued)
        return only_queue(c, err);
    if (is_cut)
        return queue_and_resume(c, &order, err);
    if (runner_run(c->server->runner, &order, answer_begun, c, err) == TIDE_OK)
        return TIDE_OK;
    if (order.expect_seq && err->code == TIDE_HELD) /* the process that runs it is about to change it */
        return err->code;
    return err->code == TIDE_HELD || err->code == TIDE_BUSY ? only_queue(c, err) : err->code;
}

/* ---- resuming and answering ---- */

#define ANSWER_FIELDS                                                                                                  \
    {.name = "input", .type = FIELD_ANY, .help = "an answer to what it waits for"},                                    \
        {.name = "kind", .type = FIELD_TEXT, .help = "of the wait, as `next` has it; ignored"},                        \
        {.name = "token", .type = FIELD_TEXT, .help = "the token of the wait"},                                        \
        {.name = "reason", .type = FIELD_TEXT, .help = "why it was approved or denied: stored with the answer"},       \
    {                                                                                                                  \
        .name = "wait", .type = FIELD_BOOL, .help = WAIT_HELP                                                          \
    }

static const struct field answer_body[] = {
    ANSWER_FIELDS,
    {.name = NULL},
};

static const struct field resume_body[] = {
    ANSWER_FIELDS,
    {.name = "without_answer", .type = FIELD_BOOL, .help = "continue without an answer, as a hint offers"},
    {.name = "ask_again", .type = FIELD_TEXT, .help = "the name of a question that was answered with no"},
    {.name = "retry", .type = FIELD_TEXTS, .help = "steps or nodes that run again although they must happen once"},
    {.name = "happened",
     .type = FIELD_SETTLED,
     .help = "steps or nodes that must happen once and did: NAME or NAME=JSON, or as `next` has it"},
    {.name = "now", .type = FIELD_BOOL, .help = "of a program: end a sleep before it is due"},
    {.name = "accept_change",
     .type = FIELD_BOOL,
     .help = "of a program: use recorded results although the arguments changed"},
    {.name = "checkpoint", .type = FIELD_TEXT, .help = "of a graph: resume from this checkpoint"},
    {.name = "fallback",
     .type = FIELD_BOOL,
     .help = "of a graph: otherwise resume from the newest checkpoint that can be used"},
    {.name = "reuse_effects",
     .type = FIELD_BOOL,
     .help = "with checkpoint: use recorded results of effects instead of running them again"},
    {.name = "redo_effects", .type = FIELD_BOOL, .help = "with checkpoint: effects may run again"},
    {.name = "set", .type = FIELD_OBJECT, .help = "of a graph: values of its memory"},
    {.name = "dry_run", .type = FIELD_BOOL, .help = "show what it would do, and every obstacle; write nothing"},
    {.name = NULL},
};

/* The scope write does not allow an answer, unless the token of the wait is given; and the scope answer allows nothing
 * else. */
static enum tide_code may_answer(struct call *c, tide_session *session, const struct order *o, struct tide_err *err)
{
    if (!o->input && !(c->caller.scopes & SCOPE_WRITE))
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "input",
                            "is missing: continuing without an answer needs the scope write");
    if (o->token)
        return resume_check_token(session, o->token, err);
    if (o->input && !(c->caller.scopes & SCOPE_ANSWER))
        return tide_fail_of(err, TIDE_DENIED, TIDE_SUBJECT_ARGUMENT, "input",
                            ": an answer needs the scope answer, or the token of the wait");
    if (o->input && call_on(c, "without_answer"))
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "without_answer", ": there is an input");
    return TIDE_OK;
}

/* What is asked for of an option: as good as not given are null, false and an empty list. */
static bool is_given(struct call *c, const char *option)
{
    char name[64];
    struct str value;

    snprintf(name, sizeof name, "%s", option);
    for (char *p = name; *p; p++)
        *p = *p == '-' ? '_' : *p;
    value = call_json(c, name);
    return value.len && !str_eq(value, STR("false")) && (value.ptr[0] != '[' || call_texts(c, name)[0]);
}

/* What means nothing to this kind of session is refused, not passed over. */
static enum tide_code check_options(struct call *c, tide_session *session, const struct order *o, struct tide_err *err)
{
    struct resume_request ask = {
        .id = o->session_id, .input = o->input, .ask_again = o->ask_again, .has_reason = o->has_reason};
    enum tide_session_kind ignored;
    const char **given;
    size_t n = 0;

    while (resume_option_name(n))
        n++;
    given = arena_zero(c->arena, (n + 1) * sizeof *given);
    ask.given = given;
    for (size_t i = 0; i < n; i++)
        if (is_given(c, resume_option_name(i)))
            *given++ = resume_option_name(i);
    if (resume_kind(session, &ask, &ignored, err))
        return err->code;
    if ((o->reuse_effects || o->redo_effects) && !o->checkpoint && !o->fallback)
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT,
                            o->reuse_effects ? "reuse_effects" : "redo_effects",
                            ": only with a checkpoint does anything happen again");
    return TIDE_OK;
}

/* ---- what it would do ---- */

static bool has_entries(const char *const *list)
{
    return list && *list;
}

/* Of the store alone: nothing is started, and no settings of agents are needed. */
static enum tide_code reply_plan(struct call *c, const struct order *o, struct tide_err *err)
{
    AUTO(resume_done) struct resume r = RESUME_INIT;
    struct buf body = BUF_INIT(ANSWER_MAX);
    enum tide_code code;

    r.store = c->server->store;
    r.config = c->server->opt.config;
    r.ask = (struct resume_request){.id = o->session_id,
                                    .token = o->token,
                                    .input = o->input,
                                    .has_reason = o->has_reason,
                                    .ask_again = o->ask_again,
                                    .retry = has_entries(o->retry) ? (const char **)o->retry : NULL,
                                    .happened = has_entries(o->happened) ? (const char **)o->happened : NULL,
                                    .now = o->now,
                                    .accept_change = o->accept_change,
                                    .dry_run = true,
                                    .graph = {.checkpoint = o->checkpoint,
                                              .fallback = o->fallback,
                                              .rollback = (o->reuse_effects ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                                                          (o->redo_effects ? TIDE_ROLLBACK_REDO_EFFECTS : 0u)}};
    buf_add_str(&r.memory, o->memory);
    code = resume_session(&r, err);
    if (code)
        return code;
    buf_add_str(&body, r.plan);
    buf_add_char(&body, '\n');
    call_reply_text(c, 200, "application/json", &body);
    return TIDE_OK;
}

static enum tide_code resume_by_request(struct call *c, struct tide_err *err)
{
    AUTO(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    tide_session *session = NULL;
    struct str input = call_json(c, "input");
    const char *reason = call_text(c, "reason");
    struct order o = {.session_id = c->params[0].ptr,
                      .request = &c->request,
                      .until_parked = call_on(c, "wait"),
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

    if (call_session(c, TIDE_SESSION_READ, &session, err) || may_answer(c, session, &o, err) ||
        check_options(c, session, &o, err) || expected_seq(c, &o.expect_seq, err) ||
        (reason && resume_give_reason(o.input, reason, &answer, err)))
        return err->code;
    call_close_session(c);
    if (reason)
        o.input = buf_cstr(&answer);
    if (call_on(c, "dry_run"))
        return reply_plan(c, &o, err);
    return runner_run(c->server->runner, &o, answer_begun, c, err);
}

#define ONE "/sessions/{id}"
const struct route run_routes[] = {
    {HTTP_POST, ONE "/messages", "message.send", SCOPE_WRITE, send_to_session,
     "send a message: the run continues with it, or it is queued for the process that runs the session",
     .body = message_body, .answer = &shape_accepted, .status = 202},
    {HTTP_POST, ONE "/resume", "session.resume", SCOPE_WRITE, resume_by_request,
     "resume a session that was interrupted, failed or waits", .body = resume_body, .answer = &shape_accepted,
     .status = 202, .dry_run = &shape_plan},
    {HTTP_POST, ONE "/answer", "session.answer", SCOPE_ANSWER, resume_by_request, "answer the wait of a session",
     .body = answer_body, .answer = &shape_accepted, .status = 202},
    {.method = 0},
};
