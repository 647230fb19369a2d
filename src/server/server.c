/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a request. On the listener's thread, from the head alone and without a look at the store: is this address meant (Host), may
 * this page ask (Origin), is it a file of the console, who asks (token), is there such a route, may they. Then the body; then a worker does the rest.
 */
#include "server/server.h"

#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "server/call.h"
#include "server/console.h"
#include "server/feed.h"
#include "server/idempotency.h"
#include "server/peer.h"
#include "server/transfer.h"
#include "server/workers.h"
#include "server/writers.h"

#define WORKERS 4
#define QUEUE_MAX 1024
#define GUESSES_PER_SECOND 20
#define GUESSES_AT_ONCE 400

/* ---- before there is a call ---- */

static bool answer_problem(struct http_request *q, int status, enum tide_code code, const char *const *fields,
                           const char *why)
{
    struct buf body = BUF_INIT(ANSWER_MAX);
    struct tide_err err = {0};

    (void)!tide_fail(&err, code, "%s", why);
    problem_write(&body, &err, status);
    http_answer(q, status, "application/problem+json", &body, fields);
    return false;
}

static bool is_listed(const char *const *list, struct str text)
{
    for (; *list; list++)
        if (text.len == strlen(*list) && strncasecmp(text.ptr, *list, text.len) == 0)
            return true;
    return false;
}

static bool check_where(struct server *s, struct http_request *q)
{
    struct str host = http_field(q, "Host"), origin = http_field(q, "Origin");

    if (q->by != HTTP_BY_UNIX && !is_listed(s->listeners.hosts, host))
        return answer_problem(q, 421, TIDE_DENIED, NULL,
                              "the Host of this request is not an address of this server: use one that it printed");
    if (origin.ptr && !is_listed(s->listeners.origins, origin))
        return answer_problem(
            q, 403, TIDE_DENIED, NULL,
            "the Origin of this request is not allowed: only pages of this server and of configured origins are");
    return true;
}

/* As a field, or, because pages cannot set one for a WebSocket, among the protocols that it offers. Without a pointer: none. */
static struct str token_of(const struct http_request *q)
{
    struct str field = http_field(q, "Authorization");

    if (!field.ptr)
        return str_eq(q->path, STR(API_ROOT "/ws")) ? websocket_offered(q, "bearer.") : field;
    if (field.len < 7 || strncasecmp(field.ptr, "Bearer ", 7) != 0)
        return STR(""); /* given, and none */
    return str_trim((struct str){field.ptr + 7, field.len - 7});
}

static bool answer_often(struct http_request *q, const char *why)
{
    return answer_problem(q, 429, TIDE_BUSY, (const char *const[]){"Retry-After", "1", NULL}, why);
}

/* A token, or the same user on the unix socket. */
static bool check_who(struct server *s, struct http_request *q, struct caller *ret)
{
    static const char *const ask[] = {"WWW-Authenticate", "Bearer", NULL};
    struct str token = token_of(q), peer = str_from(q->peer);

    if (!token.ptr && q->by == HTTP_BY_UNIX && q->peer_uid == (int64_t)geteuid()) {
        *ret = (struct caller){.name = "local", .scopes = SCOPE_ALL};
        return true;
    }
    if (!token.ptr)
        return answer_problem(q, 401, TIDE_DENIED, ask, "a token is needed: Authorization: Bearer TOKEN");
    if (!access_check(s->access, token, ret)) {
        if (!rate_take(s->guesses, peer))
            return answer_often(q, "too many wrong tokens came from this address: try again in a moment");
        return answer_problem(q, 401, TIDE_DENIED, ask, "this token is unknown, expired or revoked");
    }
    return true;
}

static bool check_rate(struct server *s, struct http_request *q, const struct caller *caller)
{
    return rate_take(s->rate, str_from(caller->name)) ||
           answer_often(q, "this token sends more requests than it may (server_max_requests_per_second)");
}

static bool check_route(struct http_request *q, struct call *c)
{
    char allow[64] = "", why[120];
    unsigned methods;
    size_t n = 0;

    c->route = route_find(c->arena, q->path, q->method, c->params, &methods);
    if (!c->route && !methods)
        return answer_problem(q, 404, TIDE_NOT_FOUND, NULL, "there is no such address: GET /openapi.json lists them");
    for (unsigned m = 1; !c->route && m < HTTP_OTHER; m *= 2)
        if (methods & m)
            n += (size_t)snprintf(allow + n, sizeof allow - n, "%s%s", n ? ", " : "", http_method_name(m));
    if (!c->route) {
        snprintf(why, sizeof why, "this address takes only: %s", allow);
        return answer_problem(q, 405, TIDE_INVALID, (const char *const[]){"Allow", allow, NULL}, why);
    }
    if (c->route->flags & ROUTE_OPEN || (c->caller.scopes & c->route->scope))
        return true;
    snprintf(why, sizeof why, "this token lacks the scope %s", scope_word(c->route->scope));
    return answer_problem(q, 403, TIDE_DENIED, NULL, why);
}

/* A form, or text, is what a page can send without asking. */
static bool check_body_type(struct http_request *q, const struct route *route)
{
    struct str type = http_field(q, "Content-Type"), length = http_field(q, "Content-Length");
    bool has_body = http_field(q, "Transfer-Encoding").ptr || (length.ptr && !str_eq(length, STR("0")));
    const char *want = route->flags & ROUTE_BYTES_IN ? "application/x-ndjson" : "application/json";
    const char *end = type.ptr ? memchr(type.ptr, ';', type.len) : NULL;

    if (end)
        type.len = (size_t)(end - type.ptr);
    type = str_trim(type);
    if ((!has_body && !type.len) || (type.len == strlen(want) && strncasecmp(type.ptr, want, type.len) == 0))
        return true;
    return answer_problem(q, 415, TIDE_INVALID, NULL,
                          route->flags & ROUTE_BYTES_IN ? "the body must be application/x-ndjson"
                                                        : "the body must be application/json");
}

/* A client needs no token if the route has that flag. */
static bool is_open(struct http_request *q)
{
    struct str params[ROUTE_PARAMS];
    unsigned methods;
    const struct route *r = route_find(&q->arena, q->path, q->method, params, &methods);

    return r && r->flags & ROUTE_OPEN;
}

static void answer_http(struct call *c, int status, const char *type, struct buf *body)
{
    http_answer(c->http, status, type, body, c->extra);
}

static bool begin_request(void *arg, struct http_request *q)
{
    struct server *s = arg;
    struct call *c = arena_zero(&q->arena, sizeof *c);

    c->server = s;
    c->http = q;
    c->arena = &q->arena;
    c->answer = answer_http;
    c->if_match = http_field(q, "If-Match");
    c->idempotency_key = http_field(q, "Idempotency-Key");
    q->user = c;
    if (!check_where(s, q))
        return false;
    if (console_is_address(q->path)) {
        console_answer(q);
        return false;
    }
    if ((!is_open(q) && (!check_who(s, q, &c->caller) || !check_rate(s, q, &c->caller))) || !check_route(q, c) ||
        !check_body_type(q, c->route))
        return false;
    if (c->route->flags & ROUTE_BYTES_IN)
        (void)upload_begin(q); /* if it cannot, the route returns the error */
    return true;
}

static void run_call(void *arg)
{
    call_run(arg);
}

static void handle_request(void *arg, struct http_request *q)
{
    struct server *s = arg;

    if (!workers_post(s->workers, run_call, q->user))
        answer_problem(q, 503, TIDE_BUSY, (const char *const[]){"Retry-After", "1", NULL},
                       "too many requests at once: try again in a moment");
}

static void over(void *arg, struct http_request *q)
{
    (void)arg;
    (void)q;
}

static void refuse_request(void *arg, struct http_request *q, int status, const char *why)
{
    (void)arg;
    answer_problem(q, status, status == 413 || status == 431 ? TIDE_TOO_BIG : TIDE_INVALID,
                   (const char *const[]){"Connection", "close", NULL}, why);
}

/* ---- starting ---- */

enum tide_code server_new(const struct server_options *opt, struct server **ret, struct tide_err *err)
{
    struct server *s = mem_zero(sizeof *s);

    s->opt = *opt;
    s->rate = rate_new(opt->max_per_second, opt->max_per_second);
    s->guesses = rate_new(GUESSES_PER_SECOND, GUESSES_AT_ONCE);
    s->signin = signin_new();
    if (listeners_bind(&s->listeners, &opt->listen, err))
        (void)server_stop(s);
    else
        *ret = s;
    return err->code;
}

enum tide_code server_start(struct server *s, tide_store *store, struct tide_err *err)
{
    struct http_face face = {s, begin_request, handle_request, over, refuse_request};

    if (access_open(&s->access, err) || idempotency_open(s->opt.runs.url, &s->idempotency, err))
        return err->code;
    s->store = store;
    s->workers = workers_new(WORKERS, QUEUE_MAX);
    s->writers = writers_new(store);
    s->transfers = transfers_new();
    s->sockets = peers_new(s);
    s->http = http_server_new(&face, &s->opt.limits);
    s->feed = feed_new(store, s->access);
    s->runner = runner_new(store, s->feed, &s->opt.runs);
    if (runner_sweep(s->runner, err) || runner_start(s->runner, err)) /* before anybody may ask */
        return err->code;
    return listeners_open(&s->listeners, s->http, err);
}

#define RUNS_PERCENT 80 /* of the time to stop: what is left is for what is being answered */

enum server_stopped server_stop(struct server *s)
{
    struct runner_counts counts = {0};

    if (!s)
        return SERVER_STOPPED;
    listeners_hide(&s->listeners);
    if (s->http)
        http_server_quiesce(s->http);
    if (s->runner) {
        runner_stop(s->runner, s->opt.stop_ms * RUNS_PERCENT / 100);
        runner_count(s->runner, &counts);
    }
    if (counts.active)
        return SERVER_RUNS_LEFT;
    transfers_free(s->transfers);
    websocket_loop_stop(s->sockets);
    workers_stop(s->workers);
    writers_free(s->writers);
    feed_free(s->feed);
    runner_free(s->runner);
    http_server_free(s->http); /* until then it may give us requests */
    workers_free(s->workers);
    websocket_loop_free(s->sockets);
    idempotency_close(s->idempotency);
    listeners_done(&s->listeners);
    access_close(s->access);
    rate_free(s->rate);
    rate_free(s->guesses);
    signin_free(s->signin);
    free(s);
    return SERVER_STOPPED;
}

const char *server_console_url(const struct server *s, struct arena *a)
{
    return console_is_there() ? listeners_page_url(&s->listeners, a) : NULL;
}

static void reset_beats(void *arg)
{
    struct server *s = arg;

    s->beats = 0;
}

bool server_beat(struct server *s)
{
    if (s->beats)
        return false;
    s->beats = 1;
    if (workers_post(s->workers, reset_beats, s))
        return true;
    s->beats = 0;
    return false;
}
