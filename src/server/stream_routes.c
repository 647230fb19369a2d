/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events: the feed of a session or of all, as text. `id:` is the seq or the position, so a reader that comes back with its
 * last one (Last-Event-ID, or ?after=) continues where it was. What has no id is kept nowhere. A reader that does not read is cut off: it
 * has its position, and nothing was kept for it.
 */
#include <stdio.h>

#include "server/call.h"
#include "server/feed.h"
#include "server/server.h"

#define EVENT_MAX ((size_t)64 << 20)
#define ROOM ((size_t)256 << 10) /* less than that waits: there is room for one more, however big */
#define PENDING_MAX (EVENT_MAX + ROOM)

struct sse {
    struct http_stream *stream;
    bool all; /* ids are positions */
};

static const char *event_name(enum feed_what what)
{
    static const char *const names[] = {
        [FEED_STATUS] = "status", [FEED_TEXT] = "text", [FEED_RESET] = "reset", [FEED_GONE] = "gone"};

    return what == FEED_EVENT ? NULL : names[what];
}

static int64_t id_of(const struct sse *s, const struct feed_item *item)
{
    return s->all ? item->pos : item->seq;
}

/* With an id, so that a reader that wants few events need not have the others looked through again. */
static void put_heartbeat(const struct sse *s, const struct feed_item *item, struct buf *out)
{
    if (id_of(s, item))
        buf_addf(out, "id: %lld\n", (long long)id_of(s, item));
    buf_add_str(out, STR(": still here\n\n"));
}

static void put_frame(const struct sse *s, const struct feed_item *item, struct buf *out)
{
    const char *name = event_name(item->what);

    if (item->what == FEED_EVENT || item->what == FEED_RESET)
        buf_addf(out, "id: %lld\n", (long long)id_of(s, item));
    if (name)
        buf_addf(out, "event: %s\n", name);
    buf_add_str(out, STR("data: "));
    if (s->all && item->what == FEED_EVENT) { /* an event does not say of which session it is */
        buf_add_str(out, STR("{\"session_id\":"));
        json_quote(out, str_from(item->session_id));
        buf_add_str(out, STR(","));
        buf_add_str(out, (struct str){item->json.ptr + 1, item->json.len - 1});
    } else {
        buf_add_str(out, item->json);
    }
    buf_add_str(out, STR("\n\n"));
}

static bool send_frame(void *arg, const struct feed_item *item)
{
    AUTO(buf_done) struct buf out = BUF_INIT(EVENT_MAX + 256);
    const struct sse *s = arg;

    if (item->what == FEED_HEARTBEAT)
        put_heartbeat(s, item, &out);
    else
        put_frame(s, item, &out);
    return http_stream_write(s->stream, buf_view(&out));
}

static bool has_room(void *arg)
{
    const struct sse *s = arg;

    return http_stream_pending(s->stream) < ROOM;
}

static size_t pending(void *arg)
{
    const struct sse *s = arg;

    return http_stream_pending(s->stream);
}

static void dropped(void *arg, enum feed_end why)
{
    struct sse *s = arg;

    http_stream_close(s->stream, why != FEED_LEFT);
    free(s);
}

#define AFTER                                                                                                          \
    {                                                                                                                  \
        .name = "after", .type = FIELD_INT,                                                                            \
        .help = "only events after this id; Last-Event-ID takes precedence [from now on]", .min = 0                    \
    }
#define KINDS                                                                                                          \
    {                                                                                                                  \
        .name = "kinds", .type = FIELD_TEXT,                                                                           \
        .help = "only events of these kinds, separated by commas; run. means all that begin with it"                   \
    }

static const struct field session_query[] = {AFTER, KINDS, {.name = NULL}};

static const struct field all_query[] = {
    AFTER,
    KINDS,
    {.name = "session_ids", .type = FIELD_TEXT, .help = "only of these sessions, separated by commas"},
    {.name = "task_id", .type = FIELD_TEXT, .help = "only of the sessions of this task"},
    {.name = NULL},
};

static enum tide_code follow_events(struct call *c, const char *session_id, struct tide_err *err)
{
    struct follow what = {.session_id = session_id,
                          .after = call_int(c, "after", -1),
                          .kinds = call_list(c, "kinds"),
                          .sessions = session_id ? NULL : call_list(c, "session_ids"),
                          .task_id = session_id ? NULL : call_text(c, "task_id"),
                          .caller = c->caller};
    struct str last = http_field(c->http, "Last-Event-ID");
    struct feed *feed = c->server->feed;
    struct follower_face face = {.send = send_frame, .has_room = has_room, .dropped = dropped, .pending = pending};
    struct follower *one;
    struct sse *s;
    int64_t number;

    if (last.ptr && (!str_to_int64(last, &what.after) || what.after < 0))
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "Last-Event-ID",
                            "must be the number of the last event");
    s = mem_zero(sizeof *s);
    s->all = !session_id;
    face.arg = s;
    if (follower_new(feed, &what, &face, &one, &number, err)) {
        free(s);
        return err->code;
    }
    s->stream = http_stream_start(c->http, 200, "text/event-stream",
                                  (const char *const[]){"Cache-Control", "no-store", "X-Accel-Buffering", "no", NULL},
                                  PENDING_MAX);
    follower_join(feed, one); /* the call may be gone */
    return TIDE_OK;
}

static enum tide_code follow_session(struct call *c, struct tide_err *err)
{
    tide_session *session;

    if (call_session(c, TIDE_SESSION_READ, &session, err))
        return err->code; /* there is none: said before the stream begins */
    call_close_session(c);
    return follow_events(c, c->params[0].ptr, err);
}

static enum tide_code follow_all(struct call *c, struct tide_err *err)
{
    return follow_events(c, NULL, err);
}

const struct route stream_routes[] = {
    {HTTP_GET, "/sessions/{id}/events", "session.follow", SCOPE_READ, follow_session,
     "follow a session: its events as they are committed", session_query, .flags = ROUTE_STREAMS,
     .type = "text/event-stream"},
    {HTTP_GET, "/events", "store.follow", SCOPE_READ, follow_all, "follow all sessions", all_query,
     .flags = ROUTE_STREAMS, .type = "text/event-stream"},
    {.method = 0},
};
