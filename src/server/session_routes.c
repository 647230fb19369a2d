/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as they are: lists, what one is and why it stands still, what was said, its log, its state at any position. */
#include "engine/checkpoint_list.h"
#include "engine/inspection.h"
#include "engine/rollback.h"
#include "engine/session_next.h"
#include "engine/shapes.h"
#include "engine/timeline.h"
#include "engine/transcript.h"
#include "server/call.h"
#include "server/links.h"
#include "server/pages.h"
#include "server/server.h"
#include "server/transfer.h"

#define LIST_MAX 1000
#define EVENTS_MAX 1000

/* ---- the list ---- */

static const struct field list_query[] = {
    {.name = "status",
     .type = FIELD_TEXT,
     .help = "only of this status or outcome; as graphs or task sessions call it, too"},
    {.name = "kind", .type = FIELD_WORD, .help = "only of this kind", .words = SHAPE_KINDS},
    {.name = "agent", .type = FIELD_TEXT, .help = "only of this agent (name or id)"},
    {.name = "task_id", .type = FIELD_TEXT, .help = "only of this task"},
    {.name = "after", .type = FIELD_TEXT, .help = "only sessions after this cursor; sorts by creation"},
    {.name = "since_ms", .type = FIELD_INT, .help = "only those that changed at or after this Unix time"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number", .min = 1, .max = LIST_MAX},
    {.name = NULL},
};

static enum tide_code list_sessions(struct call *c, struct tide_err *err)
{
    const char *kind = call_text(c, "kind");
    const struct tide_list_filter filter = {.size = sizeof filter,
                                            .status = call_text(c, "status"),
                                            .agent = call_text(c, "agent"),
                                            .task_id = call_text(c, "task_id"),
                                            .since_ms = call_int(c, "since_ms", 0),
                                            .kind = kind ? (enum tide_session_kind)tide_session_kind_from(kind) : 0};

    return call_reply_sessions(c, &filter, false, err);
}

static const struct field resolve_query[] = {
    {.name = "prefix", .type = FIELD_TEXT, .help = "how its id begins", .required = true},
    {.name = NULL},
};

static enum tide_code resolve_prefix(struct call *c, struct tide_err *err)
{
    char id[TIDE_ID_SIZE];

    if (tide_session_resolve(c->server->store, call_text(c, "prefix"), id, err))
        return err->code;
    call_reply(c, &shape_resolved, &(struct command_result){.session_id = id});
    return TIDE_OK;
}

/* ---- one ---- */

struct showing {
    struct call *c;
    const struct tide_usage *usage;
    const struct json *state;
    int64_t since_ms;
};

static int reply_detail(void *arg, const struct tide_session_info *info)
{
    const struct showing *s = arg;
    const struct json *metadata = json_get(json_get(s->state, STR("session")), STR("metadata"));
    const struct json *dir = json_get(json_get(s->state, STR("session")), STR("working_dir"));

    char etag[32];

    snprintf(etag, sizeof etag, "\"%lld\"", (long long)info->last_seq);
    call_field(s->c, "ETag", etag);
    call_reply(s->c, &shape_session_detail,
               &(struct session_detail){
                   .row = {*info, link_of},
                   .working_dir = dir ? json_source(dir) : STR(""),
                   .provider = str_from(info->provider),
                   .metadata = metadata ? json_source(metadata) : STR(""),
                   .checkpoints_enabled = true,
                   .total_checkpoints = json_get_int(json_get(s->state, STR("ledger")), STR("checkpoints"), 0),
                   .usage = *s->usage,
               });
    return 0;
}

static enum tide_code parse_state(struct call *c, tide_session *session, struct tide_text *text, struct json **ret,
                                  struct tide_err *err)
{
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};

    return tide_session_get_state(session, 0, text, err)
               ? err->code
               : json_parse(c->arena, (struct str){text->ptr, text->len}, &limits, ret, NULL, err);
}

static enum tide_code show_session(struct call *c, struct tide_err *err)
{
    tide_session *session;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct tide_usage usage = {0};
    struct json *state = NULL;

    if (call_session(c, TIDE_SESSION_READ, &session, err) || parse_state(c, session, &text, &state, err) ||
        tide_session_get_usage(session, 0, &usage, err))
        return err->code;
    return session_show_next(session, reply_detail, &(struct showing){.c = c, .usage = &usage, .state = state}, err);
}

static int reply_why(void *arg, const struct tide_session_info *info)
{
    const struct showing *s = arg;

    call_reply(s->c, &shape_why, &(struct session_why){{*info, link_of}, s->since_ms});
    return 0;
}

static enum tide_code show_why(struct call *c, struct tide_err *err)
{
    tide_session *session;
    struct showing s = {.c = c};

    if (call_session(c, TIDE_SESSION_READ, &session, err) || session_since(session, &s.since_ms, err))
        return err->code;
    return session_show_next(session, reply_why, &s, err);
}

static enum tide_code show_usage(struct call *c, struct tide_err *err)
{
    tide_session *session;
    struct tide_usage usage = {0};
    const char *at = call_text(c, "at");
    int64_t seq = 0;

    if (call_session(c, TIDE_SESSION_READ, &session, err) || (at && session_position(session, at, &seq, err)) ||
        tide_session_get_usage(session, seq, &usage, err))
        return err->code;
    call_reply(c, &shape_usage, &usage);
    return TIDE_OK;
}

/* ---- the log and the state ---- */

static const struct field at_query[] = {
    {.name = "at", .type = FIELD_TEXT, .help = "as of this seq or checkpoint"},
    {.name = NULL},
};

static const struct field usage_query[] = {
    {.name = "at", .type = FIELD_INT, .help = "as of this seq"},
    {.name = NULL},
};

static enum tide_code show_state(struct call *c, struct tide_err *err)
{
    tide_session *session;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct buf body = BUF_INIT(ANSWER_MAX);
    const char *at = call_text(c, "at");
    int64_t seq = 0;

    if (call_session(c, TIDE_SESSION_READ, &session, err) || (at && session_position(session, at, &seq, err)) ||
        tide_session_get_state(session, seq, &text, err))
        return err->code;
    buf_add(&body, text.ptr, text.len);
    call_reply_text(c, 200, "application/json", &body);
    return TIDE_OK;
}

static const struct field log_query[] = {
    {.name = "after", .type = FIELD_INT, .help = "only events after this seq"},
    {.name = "to", .type = FIELD_INT, .help = "up to this seq"},
    {.name = "inherited", .type = FIELD_BOOL, .help = "of a fork: also what it shares with its parents"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number", .min = 1, .max = EVENTS_MAX},
    {.name = NULL},
};

struct reading {
    tide_session *session;
    struct json_out *o;
    unsigned flags;
    int64_t left, to;
    struct event_page page;
    enum tide_code code;
    struct tide_err *err;
};

static int put_event(void *arg, const struct tide_event *e)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct reading *p = arg;

    if (p->left-- == 0 || p->o->buf->len > ANSWER_MAX / 2)
        return 1;
    p->code = tide_event_write_json(e, &text, p->err);
    if (p->code)
        return 1;
    json_out_raw(p->o, (struct str){text.ptr, text.len});
    p->page.last_seq = e->seq;
    return 0;
}

static void write_events(struct json_out *o, void *arg)
{
    struct reading *p = arg;
    enum tide_code code = TIDE_OK;

    p->o = o;
    if (p->page.last_seq < INT64_MAX)
        code = tide_session_read(p->session, p->flags, p->page.last_seq + 1, p->to, put_event, p, p->err);
    p->code = code ? code : p->code;
}

static enum tide_code show_log(struct call *c, struct tide_err *err)
{
    struct reading p = {.flags = call_on(c, "inherited") ? TIDE_READ_INHERITED : 0,
                        .left = call_int(c, "limit", EVENTS_MAX),
                        .to = call_int(c, "to", 0),
                        .page = {{write_events, &p}, call_int(c, "after", 0)},
                        .err = err};

    if (call_session(c, TIDE_SESSION_READ, &p.session, err))
        return err->code;
    return call_reply_page(c, &shape_event_page, &p.page, &p.code);
}

/* ---- views of it ---- */

struct entries {
    tide_session *session;
    struct json_out *json;
    enum tide_code code;
    struct tide_err *err;
};

static int put_entry(void *arg, const struct transcript_entry *e)
{
    shape_put(((const struct entries *)arg)->json, &shape_transcript_entry, e);
    return 0;
}

static void write_entries(struct json_out *o, void *arg)
{
    struct entries *e = arg;

    e->json = o;
    e->code = transcript_read(e->session, NULL, put_entry, e, e->err);
}

static enum tide_code show_transcript(struct call *c, struct tide_err *err)
{
    tide_session *session;
    const struct tide_session_info *info;
    struct entries e = {.err = err};

    if (call_session(c, TIDE_SESSION_READ, &session, err) || tide_session_get_info(session, &info, err))
        return err->code;
    e.session = session;
    return call_reply_page(c, &shape_transcript, &(struct transcript_shown){info->id, info->title, {write_entries, &e}},
                           &e.code);
}

static enum tide_code show_timeline(struct call *c, struct tide_err *err)
{
    tide_session *session;
    struct timeline t;
    enum tide_code code;

    if (call_session(c, TIDE_SESSION_READ, &session, err))
        return err->code;
    code = timeline_read(session, NULL, &t, err);
    if (!code)
        call_reply(c, &shape_timeline, &t);
    timeline_done(&t);
    return code;
}

/* ---- checkpoints ---- */

static const struct field checkpoints_query[] = {
    {.name = "type",
     .type = FIELD_WORD,
     .help = "only of this type",
     .words = "turn node_start node_complete edge_transition loop_iteration safe_point user_checkpoint"},
    {.name = "clean", .type = FIELD_BOOL, .help = "only those with no failure or retry before them"},
    {.name = "rolled_back", .type = FIELD_BOOL, .help = "also those that a rollback undid"},
    {.name = "before_seq", .type = FIELD_INT, .help = "only those before this event"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number, the newest", .min = 1, .max = LIST_MAX},
    {.name = NULL},
};

static void write_checkpoints(struct json_out *o, void *arg)
{
    const struct checkpoint_list *l = arg;

    for (size_t i = 0; i < l->n; i++)
        shape_put(o, &shape_checkpoint, &l->at[i]);
}

static enum tide_code list_checkpoints(struct call *c, struct tide_err *err)
{
    const char *type = call_text(c, "type");
    const struct tide_checkpoint_filter filter = {
        .size = sizeof filter,
        .type = type ? (enum tide_checkpoint_type)tide_checkpoint_type_from(type) : 0,
        .clean_only = call_on(c, "clean"),
        .rolled_back = call_on(c, "rolled_back"),
        .limit = call_int(c, "limit", 100),
        .before_seq = call_int(c, "before_seq", 0)};
    struct checkpoint_list l;
    enum tide_code code;

    if (call_check_id(c, err))
        return err->code;
    code = checkpoint_list_read(c->server->store, c->params[0].ptr, &filter, &l, err);
    if (!code)
        call_reply(c, &shape_checkpoints,
                   &(struct checkpoints_listed){l.session_id, {write_checkpoints, &l}, l.latest, l.total});
    checkpoint_list_done(&l);
    return code;
}

static const struct field inspect_query[] = {
    {.name = "memory", .type = FIELD_BOOL, .help = "include the memory at that point"},
    {.name = NULL},
};

static enum tide_code inspect(struct call *c, struct tide_err *err)
{
    tide_session *session;
    struct inspection i;
    enum tide_code code;

    if (call_session(c, TIDE_SESSION_READ, &session, err))
        return err->code;
    code = inspection_read(session, c->params[1].ptr, call_on(c, "memory"), &i, err);
    if (!code)
        call_reply(c, &shape_inspection, &i);
    inspection_done(&i);
    return code;
}

const struct route session_routes[] = {
    {HTTP_GET, "/sessions", "session.list", SCOPE_READ, list_sessions, "list sessions", list_query,
     .answer = &shape_session_page},
    {HTTP_GET, "/resolve", "session.resolve", SCOPE_READ, resolve_prefix, "the one session whose id begins so",
     resolve_query, .answer = &shape_resolved},
    {HTTP_GET, "/sessions/{id}", "session.get", SCOPE_READ, show_session, "what a session is, and where it stands",
     .answer = &shape_session_detail},
    {HTTP_GET, "/sessions/{id}/why", "session.why", SCOPE_READ, show_why, "why it stands as it does, and what moves it",
     .answer = &shape_why},
    {HTTP_GET, "/sessions/{id}/usage", "session.usage", SCOPE_READ, show_usage, "tokens and cost", usage_query,
     .answer = &shape_usage},
    {HTTP_GET, "/sessions/{id}/state", "session.state", SCOPE_READ, show_state,
     "its state, now or at any earlier position", at_query, .answer = &shape_state},
    {HTTP_GET, "/sessions/{id}/log", "session.log", SCOPE_READ, show_log, "its events, a page at a time", log_query,
     .answer = &shape_event_page},
    {HTTP_GET, "/sessions/{id}/transcript", "session.transcript", SCOPE_READ, show_transcript,
     "the conversation as people read it", .answer = &shape_transcript},
    {HTTP_GET, "/sessions/{id}/timeline", "session.timeline", SCOPE_READ, show_timeline,
     "its runs, steps, waits and interruptions over time", .answer = &shape_timeline},
    {HTTP_GET, "/sessions/{id}/verify", "session.verify", SCOPE_READ, transfer_verify,
     "read every event and check the chain", .answer = &shape_verification},
    {HTTP_GET, "/sessions/{id}/checkpoints", "checkpoint.list", SCOPE_READ, list_checkpoints, "list its checkpoints",
     checkpoints_query, .answer = &shape_checkpoints},
    {HTTP_GET, "/sessions/{id}/checkpoints/{checkpoint}", "checkpoint.inspect", SCOPE_READ, inspect,
     "a checkpoint and the state that it promises", inspect_query, .answer = &shape_inspection},
    {.method = 0},
};
