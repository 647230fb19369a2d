/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client follows through its WebSocket: a session, or all of them ("*"). Acknowledged, then the snapshot, then each event once,
 * as a notification whose payload says of which session and task it is. A subscription ends with its follower (feed.h), which is dropped
 * when it is left, when the session is deleted, or with the connection.
 */
#include <stdio.h>

#include "base/map.h"
#include "engine/shapes.h"
#include "server/feed.h"
#include "server/links.h"
#include "server/peer.h"
#include "server/server.h"

#define SUBSCRIPTIONS_MAX 1000
#define ALL "*"
#define PAYLOAD_MAX (2 * ANSWER_MAX)

struct subscription {
    struct subscription *next;
    struct peer *peer;
    char name[TIDE_ID_SIZE]; /* the session, or ALL */
    int64_t number;          /* of its follower; 0: it has none yet */
    struct call *leaves;     /* answered when it has ended; NULL: nobody asked */
};

static const char *session_of(const struct subscription *s)
{
    return strcmp(s->name, ALL) == 0 ? NULL : s->name;
}

/* ---- notifications: on the feed's thread ---------------------------------------------------------------------------- */

/* What an event does to the messages that people see. */
static const char *action_of(const struct feed_item *item)
{
    static const struct {
        const char *begins, *action;
    } rows[] = {{"message.", "session.message.added"}, {"tool.", "session.message.updated"}};
    static const char *const others[] = {
        [FEED_EVENT] = "session.event",       [FEED_STATUS] = "session.state_changed", [FEED_TEXT] = "session.text",
        [FEED_SNAPSHOT] = "session.snapshot", [FEED_RESET] = "session.reset",          [FEED_GONE] = "session.deleted",
    };

    for (size_t i = 0; item->what == FEED_EVENT && i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(item->kind, rows[i].begins, strlen(rows[i].begins)) == 0)
            return rows[i].action;
    return others[item->what];
}

static void put_text_or_null(struct json_out *o, struct str key, const char *text)
{
    json_out_key(o, key);
    if (text && text[0])
        json_out_str(o, str_from(text));
    else
        json_out_null(o);
}

static void put_place(struct json_out *o, const struct feed_item *item)
{
    if (item->seq)
        json_out_kint(o, STR("seq"), item->seq);
    if (item->pos)
        json_out_kint(o, STR("position"), item->pos);
}

static void put_payload(struct json_out *o, const struct subscription *s, const struct feed_item *item)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("subscription"), str_from(s->name));
    put_text_or_null(o, STR("session_id"), item->session_id);
    put_text_or_null(o, STR("task_id"), item->task_id);
    if (item->what != FEED_TEXT)
        put_place(o, item);
    if (item->session) {
        json_out_key(o, STR("session"));
        shape_put(o, &shape_session_status, &(struct session_row){*item->session, link_of});
    } else if (item->what == FEED_EVENT || item->what == FEED_TEXT) {
        json_out_kraw(o, item->what == FEED_EVENT ? STR("event") : STR("streamed"), item->json);
    }
    json_out_end(o, '}');
}

static bool send_item(void *arg, const struct feed_item *item)
{
    AUTO(buf_done) struct buf payload = BUF_INIT(PAYLOAD_MAX);
    const struct subscription *s = arg;
    struct json_out o = json_out_to(&payload);

    if (item->what == FEED_HEARTBEAT) /* the connection has its own */
        return true;
    put_payload(&o, s, item);
    return peer_notify(s->peer, action_of(item), buf_view(&payload));
}

static bool has_room(void *arg)
{
    return peer_has_room(((const struct subscription *)arg)->peer);
}

static size_t pending(void *arg)
{
    return peer_pending(((const struct subscription *)arg)->peer);
}

/* ---- the list of a peer ---- */

/* With its lock held. */
static struct subscription **find_subscription(struct subscriptions *list, const char *name)
{
    struct subscription **at = &list->first;

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static void reply_done(struct call *c, const char *name)
{
    struct buf body = BUF_INIT(1024);
    struct json_out o = json_out_to(&body);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("subscription"), str_from(name));
    json_out_end(&o, '}');
    call_reply_text(c, 200, "application/json", &body);
}

/* It ends: out of the list, and gone. */
static void end_subscription(struct subscription *s)
{
    struct peer *p = s->peer;
    struct subscriptions *list = peer_subscriptions(p);
    struct subscription **at;

    pthread_mutex_lock(&list->mu);
    at = find_subscription(list, s->name);
    *at = s->next;
    list->n--;
    pthread_mutex_unlock(&list->mu);
    if (s->leaves)
        reply_done(s->leaves, s->name);
    free(s);
    peer_release(p);
}

static void dropped(void *arg, enum feed_end why)
{
    static const struct {
        enum peer_close code; /* 0: the connection stays */
        const char *why;
    } ends[] = {
        [FEED_LEFT] = {0, NULL},
        [FEED_SLOW] = {PEER_SLOW, "what was sent was not read: continue behind the last event that came"},
        [FEED_REVOKED] = {PEER_POLICY, "the token is no longer valid"},
        [FEED_STOPPED] = {PEER_STOPS, "the server stops"},
        [FEED_FAILED] = {PEER_FAILED, "what is followed cannot be read"},
    };
    struct subscription *s = arg;

    if (ends[why].code)
        peer_close(s->peer, ends[why].code, ends[why].why);
    end_subscription(s);
}

void subscriptions_close(struct peer *p)
{
    struct subscriptions *list = peer_subscriptions(p);
    struct feed *feed = peer_server(p)->feed;

    pthread_mutex_lock(&list->mu);
    list->closed = true;
    for (struct subscription *s = list->first; s; s = s->next)
        if (s->number)
            follower_leave(feed, session_of(s), s->number);
    pthread_mutex_unlock(&list->mu);
}

/* ---- subscribe ---- */

static const struct field subscribe_body[] = {
    {.name = "session_id", .type = FIELD_ID, .help = "the session [all]"},
    {.name = "after",
     .type = FIELD_INT,
     .help = "only events after this seq; of all sessions, after this position [from now on]"},
    {.name = "kinds", .type = FIELD_TEXTS, .help = "only events of these kinds; run. means all that begin with it"},
    {.name = "session_ids", .type = FIELD_TEXTS, .help = "of all: only of these sessions"},
    {.name = "task_id", .type = FIELD_TEXT, .help = "of all: only of the sessions of this task"},
    {.name = "snapshot", .type = FIELD_BOOL, .help = "send the current state first [true]"},
    {.name = NULL},
};

static enum tide_code add_subscription(struct call *c, const char *name, struct subscription **ret,
                                       struct tide_err *err)
{
    struct peer *p = peer_of(c);
    struct subscriptions *list = peer_subscriptions(p);
    struct subscription *s = mem_zero(sizeof *s);
    enum tide_code code = TIDE_OK;

    snprintf(s->name, sizeof s->name, "%s", name);
    s->peer = p;
    pthread_mutex_lock(&list->mu);
    if (*find_subscription(list, name))
        code = tide_fail_of(err, TIDE_EXISTS, TIDE_SUBJECT_ARGUMENT, "session_id",
                            "is followed by this connection already: unsubscribe first");
    else if (list->n >= SUBSCRIPTIONS_MAX)
        code = tide_fail(err, TIDE_BUSY, "this connection follows %d sessions, as many as it may", SUBSCRIPTIONS_MAX);
    if (!code) {
        s->next = list->first;
        list->first = s;
        list->n++;
        peer_keep(p);
    }
    pthread_mutex_unlock(&list->mu);
    if (code)
        free(s);
    else
        *ret = s;
    return code;
}

/* What is asked for. One session has no filter of sessions. */
static enum tide_code read_follow(struct call *c, struct follow *ret, struct tide_err *err)
{
    *ret =
        (struct follow){.session_id = call_text(c, "session_id"),
                        .after = call_int(c, "after", -1),
                        .kinds = call_texts(c, "kinds"),
                        .sessions = call_texts(c, "session_ids"),
                        .task_id = call_text(c, "task_id"),
                        .flags = FOLLOW_TASK | (str_eq(call_json(c, "snapshot"), STR("false")) ? 0 : FOLLOW_SNAPSHOT),
                        .caller = c->caller};
    if (!ret->session_id)
        return TIDE_OK;
    if (ret->sessions || ret->task_id)
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, ret->task_id ? "task_id" : "session_ids",
                            "is of all sessions: give no session_id");
    return tide_session_open(c->server->store, ret->session_id, TIDE_SESSION_WHOLE, &c->session, err);
}

/* A request to end it before it had begun could not reach the feed. */
static bool ended_meanwhile(struct subscriptions *list, const char *name, int64_t number)
{
    const struct subscription *s;
    bool ended;

    pthread_mutex_lock(&list->mu);
    s = *find_subscription(list, name);
    ended = list->closed || (s && s->number == number && s->leaves);
    pthread_mutex_unlock(&list->mu);
    return ended;
}

/* The acknowledgement goes out before the first notification can. From then on the call is gone, and the peer is kept by us. */
static void join_feed(struct call *c, struct subscription *s, struct follower *one, int64_t number)
{
    struct peer *p = s->peer;
    struct subscriptions *list = peer_subscriptions(p);
    struct feed *feed = c->server->feed;
    char name[TIDE_ID_SIZE];

    snprintf(name, sizeof name, "%s", s->name);
    peer_keep(p);
    pthread_mutex_lock(&list->mu);
    s->number = number;
    pthread_mutex_unlock(&list->mu);
    reply_done(c, name);
    follower_join(feed, one);
    if (ended_meanwhile(list, name, number))
        follower_leave(feed, strcmp(name, ALL) == 0 ? NULL : name, number);
    peer_release(p);
}

static enum tide_code subscribe_peer(struct call *c, struct tide_err *err)
{
    struct follower_face face = {.send = send_item, .has_room = has_room, .dropped = dropped, .pending = pending};
    struct subscription *s = NULL;
    struct follower *one;
    struct follow what;
    int64_t number;

    if (read_follow(c, &what, err) || add_subscription(c, what.session_id ? what.session_id : ALL, &s, err))
        return err->code;
    face.arg = s;
    if (follower_new(c->server->feed, &what, &face, &one, &number, err)) {
        end_subscription(s);
        return err->code;
    }
    join_feed(c, s, one, number);
    return TIDE_OK;
}

/* ---- unsubscribe ---- */

static const struct field unsubscribe_body[] = {
    {.name = "session_id", .type = FIELD_ID, .help = "the session [all]"},
    {.name = NULL},
};

/* Answered when nothing more can come. */
static enum tide_code unsubscribe_peer(struct call *c, struct tide_err *err)
{
    const char *session = call_text(c, "session_id"), *name = session ? session : ALL;
    struct subscriptions *list = peer_subscriptions(peer_of(c));
    struct feed *feed = c->server->feed;
    struct subscription *s;
    int64_t number = 0;

    session = arena_text(c->arena, session);
    pthread_mutex_lock(&list->mu);
    s = *find_subscription(list, name);
    if (s && s->number && !s->leaves) {
        number = s->number;
        s->leaves = c;
        follower_leave(feed, session, number);
    }
    pthread_mutex_unlock(&list->mu);
    if (number)
        return TIDE_OK;
    return tide_fail_of(err, TIDE_NOT_FOUND, TIDE_SUBJECT_ARGUMENT, "session_id", "is not followed by this connection");
}

static enum tide_code answer_ping(struct call *c, struct tide_err *err)
{
    (void)err;
    call_reply_nothing(c);
    return TIDE_OK;
}

const struct route peer_routes[] = {
    {.path = "",
     .action = "subscribe",
     .scope = SCOPE_READ,
     .run = subscribe_peer,
     .help = "follow a session, or all",
     .body = subscribe_body},
    {.path = "",
     .action = "unsubscribe",
     .scope = SCOPE_READ,
     .run = unsubscribe_peer,
     .help = "end a subscription",
     .body = unsubscribe_body},
    {.path = "", .action = "ping", .scope = SCOPE_READ, .run = answer_ping, .help = "check that the server answers"},
    {.action = NULL},
};
