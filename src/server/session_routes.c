/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as they are: lists, what one is and why it stands still, what was said, its log, its state at any position. */
#include "engine/checkpoint_list.h"
#include "engine/inbox.h"
#include "engine/inspection.h"
#include "engine/log_page.h"
#include "engine/rollback.h"
#include "engine/session_detail.h"
#include "engine/session_next.h"
#include "engine/session_overview.h"
#include "engine/shapes.h"
#include "engine/store_position.h"
#include "engine/timeline.h"
#include "engine/transcript_page.h"
#include "engine/usage_series.h"
#include "server/call.h"
#include "server/links.h"
#include "server/pages.h"
#include "server/server.h"
#include "server/transfer.h"

#define LIST_MAX 1000
#define EVENTS_MAX 1000
#define PAGE_ENTRIES 50

/* ---- the list ---- */

static const struct field list_query[] = {
    {.name = "status",
     .type = FIELD_TEXT,
     .help = "only of this status or outcome; also one of graphs or of task sessions"},
    {.name = "kind", .type = FIELD_WORD, .help = "only of this kind", .words = SHAPE_KINDS},
    {.name = "agent", .type = FIELD_TEXT, .help = "only of this agent (name or id)"},
    {.name = "task_id", .type = FIELD_TEXT, .help = "only of this task"},
    {.name = "text",
     .type = FIELD_TEXT,
     .help = "only those with each of these words in their id, title, agent, task_id or why, in upper or lower case"},
    {.name = "after", .type = FIELD_TEXT, .help = "only sessions after this cursor; sorts by creation"},
    {.name = "since_ms", .type = FIELD_INT, .help = "only those that changed at or after this Unix time"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number", .min = 1, .max = LIST_MAX},
    {.name = "look",
     .type = FIELD_INT,
     .help = "read at most this number of sessions: the page may have fewer, and not be the last [all]",
     .min = 1},
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
                                            .text = call_text(c, "text"),
                                            .kind = kind ? (enum tide_session_kind)tide_session_kind_from(kind) : 0};

    return call_reply_sessions(c, &filter, false, err);
}

static const struct field resolve_query[] = {
    {.name = "prefix", .type = FIELD_TEXT, .help = "the beginning of its id", .required = true},
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

/* ---- what waits for a person ---- */

static const struct field inbox_query[] = {
    {.name = "after", .type = FIELD_TEXT, .help = "only entries after this cursor"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number [50]", .min = 1, .max = LIST_MAX},
    {.name = NULL},
};

struct replying {
    struct call *c;
    enum tide_code code;
};

static void reply_inbox(void *arg, const struct inbox *inbox)
{
    struct replying *r = arg;

    r->code = call_reply_page(r->c, &shape_inbox, inbox, inbox->code);
}

static enum tide_code show_inbox(struct call *c, struct tide_err *err)
{
    struct inbox_request request = {.after = call_text(c, "after"),
                                    .limit = call_int(c, "limit", 50),
                                    .max_bytes = ANSWER_MAX / 4,
                                    .diff = c->caller.scopes & SCOPE_ANSWER,
                                    .command = link_of};
    struct replying r = {.c = c};

    if (store_position(c->server->store, &request.position, err) ||
        inbox_show(c->server->store, &request, reply_inbox, &r, err))
        return err->code;
    return r.code;
}

/* ---- one ---- */

static void put_etag(struct call *c, const struct tide_session_info *info)
{
    call_field(c, "ETag", arena_printf(c->arena, "\"%lld\"", (long long)info->last_seq));
}

static void reply_detail(void *arg, const struct session_detail *detail)
{
    struct call *c = arg;

    put_etag(c, &detail->row.info);
    call_reply(c, &shape_session_detail, detail);
}

static enum tide_code show_session(struct call *c, struct tide_err *err)
{
    tide_session *session;

    return call_session(c, TIDE_SESSION_READ, &session, err)
               ? err->code
               : session_show_detail(session, link_of, reply_detail, c, err);
}

static const struct field page_query[] = {
    {.name = "limit",
     .type = FIELD_INT,
     .help = "about this number of entries of its transcript [50]",
     .min = 1,
     .max = LIST_MAX},
    {.name = "no_task", .type = FIELD_BOOL, .help = "without its task, which is counted over all sessions"},
    {.name = NULL},
};

static void reply_overview(void *arg, const struct session_overview *overview)
{
    struct replying *r = arg;

    put_etag(r->c, &overview->session.row.info);
    r->code = call_reply_page(r->c, &shape_session_overview, overview, overview->code);
}

static enum tide_code show_page(struct call *c, struct tide_err *err)
{
    struct overview_request request = {.limit = call_int(c, "limit", PAGE_ENTRIES),
                                       .max_bytes = ANSWER_MAX / 4,
                                       .no_task = call_on(c, "no_task"),
                                       .diff = c->caller.scopes & SCOPE_ANSWER,
                                       .command = link_of};
    struct replying r = {.c = c};
    tide_session *session;

    if (store_position(c->server->store, &request.position, err) || call_session(c, TIDE_SESSION_READ, &session, err) ||
        session_overview_show(c->server->store, session, &request, reply_overview, &r, err))
        return err->code;
    return r.code;
}

struct showing {
    struct call *c;
    int64_t since_ms;
};

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

static const struct field series_query[] = {
    {.name = "points", .type = FIELD_INT, .help = "at most this number [200]", .min = 1, .max = LIST_MAX},
    {.name = NULL},
};

static enum tide_code show_series(struct call *c, struct tide_err *err)
{
    AUTO(usage_series_done) struct usage_series s = {.at = NULL};
    tide_session *session;

    if (call_session(c, TIDE_SESSION_READ, &session, err) ||
        usage_series_read(session, (size_t)call_int(c, "points", 200), &s, err))
        return err->code;
    call_reply(c, &shape_usage_series, &s);
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
    {.name = "before", .type = FIELD_INT, .help = "the last ones before this seq, in order"},
    {.name = "kinds",
     .type = FIELD_TEXT,
     .help = "only events of these kinds, separated by commas; run. means all that begin with it"},
    {.name = "text",
     .type = FIELD_TEXT,
     .help = "only events with each of these words in their kind or data, in upper or lower case"},
    {.name = "inherited", .type = FIELD_BOOL, .help = "of a fork: also what it shares with its parents"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number", .min = 1, .max = EVENTS_MAX},
    {.name = NULL},
};

struct reading {
    tide_session *session;
    struct json_out *o;
    struct log_page log;
    struct event_page page;
    enum tide_code code;
    struct tide_err *err;
};

static enum tide_code put_event(void *arg, const struct tide_event *e, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};

    if (tide_event_write_json(e, &text, err))
        return err->code;
    json_out_raw(((const struct reading *)arg)->o, (struct str){text.ptr, text.len});
    return TIDE_OK;
}

static void write_events(struct json_out *o, void *arg)
{
    struct reading *p = arg;

    p->o = o;
    p->code = log_page_read(p->session, &p->log, put_event, p, p->err);
    p->page.first_seq = p->log.first_seq;
    p->page.last_seq = p->log.last_seq;
}

static enum tide_code show_log(struct call *c, struct tide_err *err)
{
    struct reading p = {.log = {.after = call_int(c, "after", 0),
                                .to = call_int(c, "to", 0),
                                .before = call_int(c, "before", 0),
                                .limit = call_int(c, "limit", EVENTS_MAX),
                                .max_bytes = ANSWER_MAX / 2,
                                .inherited = call_on(c, "inherited"),
                                .kinds = call_list(c, "kinds"),
                                .text = call_text(c, "text")},
                        .page = {.events = {write_events, &p}},
                        .err = err};

    if (call_session(c, TIDE_SESSION_READ, &p.session, err))
        return err->code;
    return call_reply_page(c, &shape_event_page, &p.page, &p.code);
}

/* ---- views of it ---- */

static const struct field transcript_query[] = {
    {.name = "before", .type = FIELD_INT, .help = "the last entries before this seq"},
    {.name = "after", .type = FIELD_INT, .help = "the first entries after this seq"},
    {.name = "limit",
     .type = FIELD_INT,
     .help = "about this number [50; all, if neither before nor after is given]",
     .min = 1,
     .max = LIST_MAX},
    {.name = NULL},
};

struct entries {
    tide_session *session;
    struct transcript_page *page; /* NULL: all */
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
    e->code = e->page ? transcript_page_read(e->session, e->page, put_entry, e, e->err)
                      : transcript_read(e->session, NULL, put_entry, e, e->err);
}

static enum tide_code show_transcript(struct call *c, struct tide_err *err)
{
    const struct tide_session_info *info;
    struct transcript_page page = {.after = call_int(c, "after", -1),
                                   .before = call_int(c, "before", 0),
                                   .limit = call_int(c, "limit", 0),
                                   .max_bytes = ANSWER_MAX / 4};
    struct entries e = {.page = page.after < 0 && !page.before && !page.limit ? NULL : &page, .err = err};
    struct transcript_shown shown = {.entries = {write_entries, &e}};

    page.forward = page.after >= 0;
    page.after = page.forward ? page.after : 0;
    page.limit = page.limit ? page.limit : PAGE_ENTRIES;
    if (call_session(c, TIDE_SESSION_READ, &e.session, err) ||
        (e.page && transcript_page_find(e.session, &page, err)) || tide_session_get_info(e.session, &info, err))
        return err->code;
    shown.session_id = arena_text(c->arena, info->id);
    shown.title = arena_text(c->arena, info->title);
    shown.entries_before = page.entries_before;
    shown.entries_after = page.entries_after;
    return call_reply_page(c, &shape_transcript, &shown, &e.code);
}

static const struct field timeline_query[] = {
    {.name = "from", .type = FIELD_INT, .help = "a part: from this seq on"},
    {.name = "to", .type = FIELD_INT, .help = "a part: up to this seq"},
    {.name = "whole", .type = FIELD_BOOL, .help = "the whole log, however long it is [at most 20000 events of it]"},
    {.name = NULL},
};

static enum tide_code show_timeline(struct call *c, struct tide_err *err)
{
    tide_session *session;
    struct timeline t;
    enum tide_code code;

    if (call_session(c, TIDE_SESSION_READ, &session, err))
        return err->code;
    code = call_on(c, "whole") ? timeline_read(session, NULL, &t, err)
                               : timeline_read_part(session, call_int(c, "from", 0), call_int(c, "to", 0), &t, err);
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

static enum tide_code inspect_session(struct call *c, struct tide_err *err)
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
    {HTTP_GET, "/resolve", "session.resolve", SCOPE_READ, resolve_prefix,
     "find the session whose id begins with a prefix", resolve_query, .answer = &shape_resolved},
    {HTTP_GET, "/inbox", "session.inbox", SCOPE_READ, show_inbox, "list what waits for a person, oldest first",
     inbox_query, .answer = &shape_inbox},
    {HTTP_GET, "/sessions/{id}", "session.get", SCOPE_READ, show_session, "show a session and its status",
     .answer = &shape_session_detail},
    {HTTP_GET, "/sessions/{id}/page", "session.page", SCOPE_READ, show_page,
     "show everything that a page about a session begins with", page_query, .answer = &shape_session_overview},
    {HTTP_GET, "/sessions/{id}/why", "session.why", SCOPE_READ, show_why,
     "show why a session has its status, and the next possible actions", .answer = &shape_why},
    {HTTP_GET, "/sessions/{id}/usage", "session.usage", SCOPE_READ, show_usage, "show tokens and cost", usage_query,
     .answer = &shape_usage},
    {HTTP_GET, "/sessions/{id}/usage/series", "session.usage.series", SCOPE_READ, show_series,
     "show tokens and cost over time", series_query, .answer = &shape_usage_series},
    {HTTP_GET, "/sessions/{id}/state", "session.state", SCOPE_READ, show_state,
     "show the state of a session, now or at any earlier position", at_query, .answer = &shape_state},
    {HTTP_GET, "/sessions/{id}/log", "session.log", SCOPE_READ, show_log,
     "list the events of a session, a page at a time", log_query, .answer = &shape_event_page},
    {HTTP_GET, "/sessions/{id}/transcript", "session.transcript", SCOPE_READ, show_transcript,
     "show the conversation as people read it, all of it or a page", transcript_query, .answer = &shape_transcript},
    {HTTP_GET, "/sessions/{id}/timeline", "session.timeline", SCOPE_READ, show_timeline,
     "show the runs, steps, waits and interruptions of a session over time", timeline_query, .answer = &shape_timeline},
    {HTTP_GET, "/sessions/{id}/verify", "session.verify", SCOPE_READ, transfer_verify,
     "read every event and check the chain", .answer = &shape_verification},
    {HTTP_GET, "/sessions/{id}/checkpoints", "checkpoint.list", SCOPE_READ, list_checkpoints,
     "list the checkpoints of a session", checkpoints_query, .answer = &shape_checkpoints},
    {HTTP_GET, "/sessions/{id}/checkpoints/{checkpoint}", "checkpoint.inspect", SCOPE_READ, inspect_session,
     "show a checkpoint and the state at it", inspect_query, .answer = &shape_inspection},
    {.method = 0},
};
