/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of the WebSockets only takes a message in; a worker reads it, and runs it as a call of the same routes that HTTP has. What
 * a client may ask for at once is bounded, and so is what waits to be sent to it: one that does not read is closed.
 */
#include "server/peer.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/timefmt.h"
#include "server/server.h"
#include "server/workers.h"

#define REQUESTS_MAX 16
#define UNSENT_MAX ANSWER_MAX
#define ROOM ((size_t)256 << 10)
#define ID_MAX 128

#define NO_TOKEN "the token is no longer valid"

struct peer {
    struct server *server;
    struct caller caller;
    struct websocket *ws;
    atomic_int holders;
    atomic_size_t requests;
    struct subscriptions subscriptions;
};

struct request {
    struct call call;
    struct arena arena;
    struct peer *peer;
    struct str text;
    struct str id, action; /* id: JSON; without a pointer: none was read */
};

/* ---- its life -------------------------------------------------------------------------------------------------------- */

struct peer *peer_new(struct server *server, const struct caller *caller)
{
    struct peer *p = mem_zero(sizeof *p);

    p->server = server;
    p->caller = *caller;
    p->holders = 1;
    pthread_mutex_init(&p->subscriptions.mu, NULL);
    return p;
}

void peer_free(struct peer *p)
{
    if (p->ws)
        websocket_release(p->ws);
    pthread_mutex_destroy(&p->subscriptions.mu);
    free(p);
}

void peer_keep(struct peer *p)
{
    p->holders++;
}

void peer_release(struct peer *p)
{
    if (--p->holders == 0)
        peer_free(p);
}

struct server *peer_server(struct peer *p)
{
    return p->server;
}

struct subscriptions *peer_subscriptions(struct peer *p)
{
    return &p->subscriptions;
}

/* ---- what is sent ---- */

static void put_message(struct buf *out, const char *type, struct str id, struct str action, struct str payload)
{
    struct json_out o = json_out_to(out);
    char now[TIME_TEXT_SIZE];

    time_format(now, wall_ms());
    json_out_begin(&o, '{');
    json_out_key(&o, STR("id"));
    if (id.ptr)
        json_out_raw(&o, id);
    else
        json_out_null(&o);
    json_out_kstr(&o, STR("type"), str_from(type));
    json_out_kstr(&o, STR("action"), action);
    json_out_kraw(&o, STR("payload"), payload);
    json_out_kstr(&o, STR("timestamp"), str_from(now));
    json_out_end(&o, '}');
}

static bool send_message(struct peer *p, const char *type, struct str id, struct str action, struct str payload)
{
    AUTO(buf_done) struct buf out = BUF_INIT(2 * ANSWER_MAX);

    put_message(&out, type, id, action, payload);
    if (!out.failed && websocket_send(p->ws, buf_view(&out)))
        return true;
    websocket_close(p->ws, PEER_SLOW, "too much is waiting to be sent");
    return false;
}

bool peer_notify(struct peer *p, const char *action, struct str payload)
{
    return send_message(p, "notification", (struct str){NULL, 0}, str_from(action), payload);
}

bool peer_has_room(struct peer *p)
{
    return websocket_pending(p->ws) < ROOM;
}

size_t peer_pending(struct peer *p)
{
    return websocket_pending(p->ws);
}

void peer_close(struct peer *p, enum peer_close code, const char *why)
{
    websocket_close(p->ws, code, why);
}

/* ---- answers ---- */

static struct request *request_of(struct call *c)
{
    return (struct request *)((char *)c - offsetof(struct request, call));
}

struct peer *peer_of(struct call *c)
{
    return request_of(c)->peer;
}

/* Of a problem document what programs read; an answer that is JSON as it is, and as a text what is none. */
static struct str payload_of(struct arena *a, int status, const char *type, struct str body)
{
    struct buf quoted = BUF_INIT(2 * ANSWER_MAX);
    const struct json *error;
    struct json *v = NULL;

    if (!type)
        return STR("{}");
    if (status >= 400) {
        error = json_parse(a, body, NULL, &v, NULL, NULL) ? NULL : json_get(v, STR("error"));
        return error ? json_source(error) : STR("{}");
    }
    if (strcmp(type, "application/json") == 0)
        return str_trim(body);
    json_quote(&quoted, body);
    body = arena_dup(a, buf_view(&quoted));
    buf_done(&quoted);
    return body;
}

static void answer_request(struct call *c, int status, const char *type, struct buf *body)
{
    struct request *r = request_of(c);
    struct peer *p = r->peer;
    struct str bytes = body ? buf_view(body) : STR("");

    send_message(p, status >= 400 ? "error" : "response", r->id, r->action, payload_of(&r->arena, status, type, bytes));
    buf_done(body);
    p->requests--;
    arena_done(&r->arena);
    free(r);
    peer_release(p);
}

/* ---- requests ---- */

static const struct field message_fields[] = {
    {.name = "id", .type = FIELD_ANY, .help = "any value; the answer has the same id", .required = true},
    {.name = "type", .type = FIELD_WORD, .help = "the type of the message", .required = true, .words = "request"},
    {.name = "action",
     .type = FIELD_TEXT,
     .help = "the operationId of a route, or subscribe, unsubscribe, ping",
     .required = true},
    {.name = "payload", .type = FIELD_OBJECT, .help = "the parameters of the action"},
    {.name = "timestamp", .type = FIELD_TEXT, .help = "when it was sent"},
    {.name = "if_match", .type = FIELD_INT, .help = "the last seq that the client knows"},
    {.name = "idempotency_key", .type = FIELD_TEXT, .help = "the same for each try of the same request"},
    {.name = NULL},
};

static enum tide_code refuse_member(struct tide_err *err, const char *name, const char *why)
{
    return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, name, "%s", why);
}

static enum tide_code take_id(struct request *r, const struct json *id, struct tide_err *err)
{
    int64_t n;

    if (!id || !(id->type == JSON_STRING || json_int(id, &n)) || id->raw.len > ID_MAX)
        return refuse_member(err, "id", "must be a text or a whole number, of at most 128 bytes");
    r->id = json_source(id);
    return TIDE_OK;
}

static const struct json *given_member(const struct json *message, const char *name)
{
    const struct json *m = json_get(message, str_from(name));

    return m && m->type != JSON_NULL ? m : NULL;
}

static enum tide_code take_message(struct request *r, const struct json *v, struct tide_err *err)
{
    struct call *c = &r->call;
    const struct json *key = given_member(v, "idempotency_key"), *seq = given_member(v, "if_match");

    if (v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "a message must be a JSON object");
    if (take_id(r, json_get(v, STR("id")), err) || call_check_members(c, message_fields, v, err))
        return err->code;
    for (const struct field *f = message_fields; f->name; f++)
        if (f->required && !given_member(v, f->name))
            return refuse_member(err, f->name, "is missing in the message");
    r->action = json_text(&r->arena, given_member(v, "action"));
    c->body = given_member(v, "payload");
    if (key)
        c->idempotency_key = json_text(&r->arena, key);
    if (seq)
        c->if_match = str_from(arena_printf(&r->arena, "\"%.*s\"", STR_ARG(seq->raw)));
    return TIDE_OK;
}

static enum tide_code read_message(struct request *r, struct tide_err *err)
{
    const struct json_limits limits = {.max_depth = 1 + (unsigned)r->peer->server->opt.max_depth};
    struct json *v = NULL;

    if (json_parse(&r->arena, r->text, &limits, &v, NULL, err))
        return tide_wrap(err, "the message is not JSON");
    return take_message(r, v, err);
}

static const struct route *find_route(struct str action)
{
    for (const struct route *r = peer_routes; r->action; r++)
        if (str_eq(action, str_from(r->action)))
            return r;
    return route_named(action);
}

static enum tide_code check_request(struct request *r, struct tide_err *err)
{
    struct call *c = &r->call;
    const struct route *route = find_route(r->action);

    if (!route)
        return tide_fail_of(err, TIDE_NOT_FOUND, TIDE_SUBJECT_ARGUMENT, "action",
                            ": there is no action '%.*s': each operationId of GET /openapi.json is one",
                            (int)(r->action.len < 64 ? r->action.len : 64), r->action.ptr);
    c->route = route;
    if (route->flags & (ROUTE_STREAMS | ROUTE_BYTES_IN))
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "action",
                            ": '%s' is bytes, which do not go through a WebSocket: %s %s%s", route->action,
                            http_method_name(route->method), route->flags & ROUTE_AT_ROOT ? "" : API_ROOT, route->path);
    if (route->flags & ROUTE_OPEN || c->caller.scopes & route->scope)
        return TIDE_OK;
    return tide_fail(err, TIDE_DENIED, "this token lacks the scope %s", scope_word(route->scope));
}

static void run_request(void *arg)
{
    struct request *r = arg;
    struct peer *p = r->peer;
    struct tide_err err = {0};
    enum tide_code code = read_message(r, &err);

    if (!code && !access_holds(p->server->access, &p->caller)) {
        code = tide_fail(&err, TIDE_DENIED, NO_TOKEN);
        peer_close(p, PEER_POLICY, NO_TOKEN);
    }
    if (!code && !rate_take(p->server->rate, str_from(p->caller.name)))
        code =
            tide_fail(&err, TIDE_BUSY, "this token sends more requests than it may (server_max_requests_per_second)");
    code = code ? code : check_request(r, &err);
    if (code)
        call_fail(&r->call, &err);
    else
        call_run(&r->call);
}

static void refuse_request(struct request *r)
{
    struct tide_err err = {0};

    if (!read_message(r, &err))
        (void)!tide_fail(&err, TIDE_BUSY, "%d requests of this connection are under way: wait for an answer",
                         REQUESTS_MAX);
    call_fail(&r->call, &err);
}

static struct request *request_new(struct peer *p, struct str text)
{
    struct request *r = mem_zero(sizeof *r);

    r->peer = p;
    r->text = arena_dup(&r->arena, text);
    r->call.server = p->server;
    r->call.arena = &r->arena;
    r->call.caller = p->caller;
    r->call.answer = answer_request;
    peer_keep(p);
    return r;
}

/* ---- the connection: on the thread of the WebSockets ---- */

static void on_opened(void *arg, struct websocket *ws, void *user)
{
    struct peer *p = user;

    (void)arg;
    p->ws = ws;
}

static void on_message(void *arg, struct websocket *ws, struct str text)
{
    struct peer *p = websocket_user(ws);
    struct request *r = request_new(p, text);
    bool too_many = p->requests++ >= REQUESTS_MAX;

    (void)arg;
    if (too_many || !workers_post(p->server->workers, run_request, r))
        refuse_request(r);
}

static void on_closed(void *arg, struct websocket *ws)
{
    struct peer *p = websocket_user(ws);

    (void)arg;
    subscriptions_close(p);
    peer_release(p);
}

static void on_tick(void *arg, struct websocket *ws)
{
    struct peer *p = websocket_user(ws);

    (void)arg;
    if (!access_holds(p->server->access, &p->caller))
        websocket_close(ws, PEER_POLICY, NO_TOKEN);
}

struct websocket_loop *peers_new(const struct server *server)
{
    const struct websocket_face face = {
        .opened = on_opened, .message = on_message, .closed = on_closed, .tick = on_tick};
    const struct websocket_limits limits = {.message_bytes = server->opt.limits.body_bytes, .unsent_bytes = UNSENT_MAX};

    return websocket_loop_new(&face, &limits);
}
