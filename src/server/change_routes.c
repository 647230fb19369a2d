/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes a session and runs nothing: deleting it, events, checkpoints, going back, forks, cancelling, its queue and
 * trust. A condition (If-Match: the last seq that the caller knows) is checked by the append itself.
 */
#include <stdio.h>

#include "engine/housekeeping.h"
#include "engine/message_queue.h"
#include "engine/resume.h"
#include "engine/rollback.h"
#include "engine/rollback_preview.h"
#include "engine/session_words.h"
#include "engine/shapes.h"
#include "server/call.h"
#include "server/pages.h"
#include "server/server.h"
#include "server/workers.h"
#include "server/writers.h"

enum { CONFLICTS_MAX = 16 }; /* how often an append without a condition gives way to one of another process */

static void reply_result(struct call *c, const struct shape *shape, struct command_result result)
{
    call_reply(c, shape, &result);
}

/* ---- sessions ---- */

static enum tide_code delete_session(struct call *c, struct tide_err *err)
{
    int64_t seq;

    if (!str_is_id(c->params[0]))
        return tide_fail_session(err, TIDE_NOT_FOUND, "", "is not here");
    if (call_expected_seq(c, &seq, err))
        return err->code;
    call_enter_session(c);
    if (seq < 0 ? tide_session_delete(c->server->store, c->params[0].ptr, err)
                : housekeeping_delete_at(c->server->store, c->params[0].ptr, seq, err))
        return err->code;
    reply_result(c, &shape_deleted, (struct command_result){.session_id = c->params[0].ptr});
    return TIDE_OK;
}

/* ---- events ---- */

static const struct field append_body[] = {
    {.name = "kind", .type = FIELD_TEXT, .help = "the kind of the event", .required = true},
    {.name = "data", .type = FIELD_OBJECT, .help = "its fields"},
    {.name = NULL},
};

/* By a handle of its own: with a condition, or because the quick way failed, to learn why. */
static enum tide_code append_alone(struct call *c, const struct tide_new_event *event, struct tide_err *err)
{
    const unsigned flags = TIDE_APPEND_DATA | TIDE_APPEND_RELEASE;
    enum tide_code code;
    tide_session *session;
    int64_t seq;

    if (call_change(c, &session, NULL, err))
        return err->code;
    code = tide_session_append(session, flags, event, 1, &seq, err);
    for (int i = 0; code == TIDE_CONFLICT && !c->if_match.ptr && i < CONFLICTS_MAX; i++) {
        code = tide_session_refresh(session, err);
        code = code ? code : tide_session_append(session, flags, event, 1, &seq, err);
    }
    if (code)
        return code;
    reply_result(c, &shape_appended, (struct command_result){.seq = seq});
    return TIDE_OK;
}

/* Who appends it is known: the author that the data names is not. */
static struct tide_new_event new_event(struct call *c)
{
    const struct json *data = json_get(c->body, STR("data"));
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct json_out o = json_out_to(&out);
    struct tide_new_event event = {.kind = call_text(c, "kind")};

    json_out_begin(&o, '{');
    for (const struct json *m = data ? data->first : NULL; m; m = m->next)
        if (!json_key_eq(m, STR("by")) && !json_key_eq(m, STR("request")))
            json_out_kraw(&o, json_key_text(c->arena, m), json_source(m));
    cause_put(&o, &c->request);
    json_out_end(&o, '}');
    event.body_len = out.len;
    event.body = arena_dup(c->arena, buf_view(&out)).ptr;
    buf_done(&out);
    return event;
}

static void append_again(void *arg)
{
    struct call *c = arg;
    const struct tide_new_event event = new_event(c);
    struct tide_err err = {0};

    if (append_alone(c, &event, &err))
        call_fail(c, &err);
}

static void on_appended(void *arg, enum tide_code code, int64_t seq)
{
    struct call *c = arg;
    struct tide_err err = {0};

    if (!code) {
        reply_result(c, &shape_appended, (struct command_result){.seq = seq});
        return;
    }
    if (code != TIDE_UNKNOWN && workers_post(c->server->workers, append_again, c))
        return;
    (void)!tide_fail_session(&err, code, c->params[0].ptr,
                             code == TIDE_UNKNOWN
                                 ? "may have the event or not: the disk failed while it was written; read its log"
                                 : "could not be written: try again in a moment");
    call_fail(c, &err);
}

static enum tide_code append_event(struct call *c, struct tide_err *err)
{
    const struct tide_new_event event = new_event(c);

    if (!str_is_id(c->params[0]) || c->if_match.ptr)
        return append_alone(c, &event, err);
    return writers_append(c->server->writers, c->params[0].ptr, &event, on_appended, c, err);
}

/* ---- checkpoints ---- */

static const struct field checkpoint_body[] = {
    {.name = "description", .type = FIELD_TEXT, .help = "a description for people"},
    {.name = NULL},
};

static enum tide_code checkpoint(struct call *c, struct tide_err *err)
{
    tide_session *session;
    struct tide_new_checkpoint n = {
        .size = sizeof n, .type = TIDE_CHECKPOINT_USER, .description = call_text(c, "description")};
    char id[TIDE_ID_SIZE];

    if (call_change(c, &session, &n.append_flags, err) || tide_checkpoint_save(session, &n, id, err))
        return err->code;
    reply_result(c, &shape_saved,
                 (struct command_result){.session_id = tide_session_id(session),
                                         .checkpoint_id = id,
                                         .seq = tide_session_last_seq(session)});
    return TIDE_OK;
}

static enum tide_code delete_checkpoint(struct call *c, struct tide_err *err)
{
    tide_session *session;
    const char *id = c->params[1].ptr;

    if (call_change(c, &session, NULL, err) || tide_checkpoint_delete(session, &id, 1, err))
        return err->code;
    call_reply_nothing(c);
    return TIDE_OK;
}

static const struct field prune_body[] = {
    {.name = "keep", .type = FIELD_INT, .help = "keep this number of the newest [10]"},
    {.name = "clean_only", .type = FIELD_BOOL, .help = "also delete those that are not clean"},
    {.name = NULL},
};

static enum tide_code prune_checkpoints(struct call *c, struct tide_err *err)
{
    tide_session *session;
    int64_t n = 0;

    if (call_change(c, &session, NULL, err) ||
        tide_checkpoint_prune(session, call_int(c, "keep", 10),
                              call_on(c, "clean_only") ? TIDE_PRUNE_KEEP_CLEAN_ONLY : 0, &n, err))
        return err->code;
    reply_result(c, &shape_pruned, (struct command_result){.session_id = tide_session_id(session), .n = n});
    return TIDE_OK;
}

/* ---- going back ---- */

static const struct field rollback_body[] = {
    {.name = "to", .type = FIELD_POSITION, .help = "a seq or a checkpoint", .required = true},
    {.name = "reason", .type = FIELD_TEXT, .help = "for the log"},
    {.name = "reuse_effects",
     .type = FIELD_BOOL,
     .help = "use recorded results of finished effects instead of running them again"},
    {.name = "redo_effects", .type = FIELD_BOOL, .help = "finished effects may run again"},
    {.name = "dry_run",
     .type = FIELD_BOOL,
     .help = "show what it would undo, or why it would be refused; write nothing"},
    {.name = NULL},
};

static enum tide_code preview_rollback(struct call *c, unsigned flags, struct tide_err *err)
{
    AUTO(rollback_preview_done) struct rollback_preview preview = {.arena = ARENA_INIT};
    tide_session *session;
    int64_t seq;

    if (call_session(c, TIDE_SESSION_READ, &session, err) || session_position(session, call_text(c, "to"), &seq, err) ||
        rollback_preview_read(session, seq, flags, &preview, err))
        return err->code;
    reply_result(c, &shape_rolled_back,
                 (struct command_result){.session_id = arena_text(c->arena, tide_session_id(session)),
                                         .to_seq = seq,
                                         .seq = tide_session_last_seq(session),
                                         .undone = &preview});
    return TIDE_OK;
}

static enum tide_code rollback_session(struct call *c, struct tide_err *err)
{
    tide_session *session;
    AUTO(mem_freep) char *question = NULL;
    unsigned flags = (call_on(c, "reuse_effects") ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                     (call_on(c, "redo_effects") ? TIDE_ROLLBACK_REDO_EFFECTS : 0u);
    int64_t seq, before;

    if (call_on(c, "dry_run"))
        return preview_rollback(c, flags, err);
    if (call_change(c, &session, NULL, err) || session_position(session, call_text(c, "to"), &seq, err))
        return err->code;
    before = tide_session_last_seq(session);
    if (rollback_to(session, seq, flags, call_text(c, "reason"), &question, err))
        return err->code;
    reply_result(c, &shape_rolled_back,
                 (struct command_result){.session_id = tide_session_id(session),
                                         .to_seq = seq,
                                         .seq = tide_session_last_seq(session),
                                         .before = before});
    return TIDE_OK;
}

static const struct field fork_body[] = {
    {.name = "at", .type = FIELD_POSITION, .help = "a seq or a checkpoint [its end]"},
    {.name = "session_id", .type = FIELD_ID, .help = "the id of the fork [a new one]"},
    {.name = "title", .type = FIELD_TEXT, .help = "the title of the fork"},
    {.name = NULL},
};

static enum tide_code fork_session(struct call *c, struct tide_err *err)
{
    tide_session *session;
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&fields);
    const char *at = call_text(c, "at");
    struct str title = call_json(c, "title");
    char id[TIDE_ID_SIZE];
    int64_t seq = 0;

    json_out_begin(&o, '{');
    if (title.len)
        json_out_kraw(&o, STR("title"), title);
    cause_put(&o, &c->request);
    json_out_end(&o, '}');
    if (call_session(c, TIDE_SESSION_READ, &session, err) || (at && session_position(session, at, &seq, err)) ||
        tide_session_fork(c->server->store, tide_session_id(session), seq, call_new_id(c, call_text(c, "session_id")),
                          buf_cstr(&fields), id, err))
        return err->code;
    call_field(c, "Location", arena_printf(c->arena, API_ROOT "/sessions/%s", id));
    reply_result(c, &shape_forked,
                 (struct command_result){.session_id = id,
                                         .parent_id = tide_session_id(session),
                                         .seq = seq ? seq : tide_session_last_seq(session)});
    return TIDE_OK;
}

/* ---- runs that end, waits that are opened again ---- */

static const struct field cancel_body[] = {
    {.name = "reason", .type = FIELD_TEXT, .help = "for the log"},
    {.name = NULL},
};

static enum tide_code cancel_session(struct call *c, struct tide_err *err)
{
    tide_session *session;
    enum tide_cancelled how;

    if (call_session(c, TIDE_SESSION_READ, &session, err) ||
        request_cancel(c->server->store, tide_session_id(session), &c->request, call_text(c, "reason"), 0, &how, err))
        return err->code;
    reply_result(c, &shape_cancelled,
                 (struct command_result){.session_id = tide_session_id(session), .word = cancelled_word(how)});
    return TIDE_OK;
}

/* ---- the queue ---- */

static void put_message(void *arg, const struct queued_message *m)
{
    shape_put(arg, &shape_queued_message, m);
}

struct queue {
    tide_session *session;
    enum tide_code code;
    struct tide_err *err;
};

static void write_queue(struct json_out *o, void *arg)
{
    struct queue *q = arg;

    q->code = message_queue_list(q->session, put_message, o, q->err);
}

static enum tide_code list_queue(struct call *c, struct tide_err *err)
{
    struct queue q = {.err = err};

    if (call_session(c, TIDE_SESSION_READ, &q.session, err))
        return err->code;
    return call_reply_page(c, &shape_message_page, &(struct message_page){{write_queue, &q}}, &q.code);
}

static enum tide_code withdraw_message(struct call *c, struct tide_err *err)
{
    tide_session *session;
    int64_t seq;

    if (call_session(c, TIDE_SESSION_READ, &session, err) ||
        message_queue_withdraw(c->server->store, session, c->params[1].ptr, &c->request, &seq, err))
        return err->code;
    call_reply_nothing(c);
    return TIDE_OK;
}

/* ---- trust ---- */

static enum tide_code show_trust(struct call *c, struct tide_err *err)
{
    tide_session *session;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};

    if (call_session(c, TIDE_SESSION_READ, &session, err) || tide_session_show_trust(session, &text, err))
        return err->code;
    call_reply(c, &shape_trust, &(struct trust_report){false, {text.ptr, text.len}});
    return TIDE_OK;
}

static const struct field trust_body[] = {
    {.name = "would_run",
     .type = FIELD_OBJECT,
     .help = "the text that GET answered: refused if it has changed since",
     .required = true},
    {.name = NULL},
};

static enum tide_code trust_session(struct call *c, struct tide_err *err)
{
    tide_session *session;
    struct str shown = call_json(c, "would_run");

    if (call_change(c, &session, NULL, err) ||
        tide_session_trust(session, arena_dup(c->arena, shown).ptr, c->caller.name, err))
        return err->code;
    call_reply(c, &shape_trust, &(struct trust_report){true, shown});
    return TIDE_OK;
}

#define ONE "/sessions/{id}"
const struct route change_routes[] = {
    {HTTP_DELETE, ONE, "session.delete", SCOPE_ADMIN, delete_session, "delete a session permanently",
     .answer = &shape_deleted},
    {HTTP_POST, ONE "/events", "event.append", SCOPE_WRITE, append_event,
     "append an event; the answer comes when it is on disk", .body = append_body, .answer = &shape_appended,
     .status = 201},
    {HTTP_POST, ONE "/checkpoints", "checkpoint.create", SCOPE_WRITE, checkpoint,
     "create a checkpoint of the current state", .body = checkpoint_body, .answer = &shape_saved, .status = 201},
    {HTTP_DELETE, ONE "/checkpoints/{checkpoint}", "checkpoint.delete", SCOPE_WRITE, delete_checkpoint,
     "delete a checkpoint", .status = 204},
    {HTTP_POST, ONE "/prune", "checkpoint.prune", SCOPE_WRITE, prune_checkpoints,
     "delete all but the newest checkpoints", .body = prune_body, .answer = &shape_pruned},
    {HTTP_POST, ONE "/rollback", "session.rollback", SCOPE_WRITE, rollback_session,
     "roll a session back to an earlier event", .body = rollback_body, .answer = &shape_rolled_back},
    {HTTP_POST, ONE "/fork", "session.fork", SCOPE_WRITE, fork_session,
     "fork a session: create another one that shares its past", .body = fork_body, .answer = &shape_forked,
     .status = 201},
    {HTTP_POST, ONE "/cancel", "session.cancel", SCOPE_WRITE, cancel_session,
     "cancel the run of a session, in any process", .body = cancel_body, .answer = &shape_cancelled},
    {HTTP_GET, ONE "/queue", "queue.list", SCOPE_READ, list_queue, "list messages that no run has taken yet",
     .answer = &shape_message_page},
    {HTTP_DELETE, ONE "/queue/{queue}", "queue.withdraw", SCOPE_WRITE, withdraw_message, "withdraw a message",
     .status = 204},
    {HTTP_GET, ONE "/trust", "trust.show", SCOPE_READ, show_trust, "show what would run if a session were trusted",
     .answer = &shape_trust},
    {HTTP_POST, ONE "/trust", "trust.give", SCOPE_ADMIN, trust_session, "trust a session, as GET showed it",
     .body = trust_body, .answer = &shape_trust},
    {.method = 0},
};
