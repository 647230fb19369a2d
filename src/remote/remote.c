/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server is and how it is asked. A request whose connection broke is sent again with the same key, for a while: a server that was
 * restarted meanwhile says what it had done. Nobody there at all is said at once.
 */
#include "remote/remote.h"

#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/shapes.h"
#include "base/clock.h"
#include "net/http_client.h"
#include "net/listen.h"
#include "remote/remote_url.h"
#include "server/access.h"

#define ROOT "/api/v1"
#define TARGET_MAX ((size_t)32 << 10)
#define BODY_MAX ((size_t)64 << 20)
#define ANSWER_MAX ((size_t)96 << 20) /* more than a server sends */
#define HEAD_MAX ((size_t)32 << 10)
#define CONNECT_MS 10000
#define ANSWER_MS 120000
#define AGAIN_MS 15000 /* for so long a request whose connection broke is sent again, */
#define UNMET_MS 3000  /* of a server that never answered */
#define PAUSE_MS 50    /* doubled each time */
#define PAUSE_MAX_MS 2000
#define KEY_SIZE 33

struct remote {
    struct remote_options opt;
    struct arena arena, page;
    struct remote_url url;
    struct http_client *client;
    char *authorization; /* "Bearer …"; NULL: none */
    bool has_token;      /* a person named it */

    const char *method; /* of the request */
    struct buf target, body;
    struct json_out json;
    size_t id_at, id_len;       /* of the session in the target; len 0: it names none */
    const char *prefix, *whole; /* what was given for the id of a session, and the id; NULL: not known */
    bool has_query, has_body;
    char key[KEY_SIZE];
    bool met;        /* it has answered: if it is gone, it may come back */
    struct str text; /* of the last answer */
};

struct arena *remote_arena(struct remote *r)
{
    return &r->arena;
}

bool remote_is_known(const struct remote *r)
{
    return r->authorization || r->url.unix_path;
}

/* ---- opening ---- */

/* Another user could listen where this user's server was: a token that nobody named is for this user's processes alone. */
static bool is_own_server(const struct remote *r)
{
    int64_t port = 0;

    return r->url.is_loopback &&
           (r->url.pin || (str_to_int64(str_from(r->url.port), &port) && listen_port_is_own((int)port)));
}

/* TIDEMARK_TOKEN, else, where the server is on this machine and by TCP, the token that it keeps for this user. */
static enum tide_code take_token(struct remote *r, struct tide_err *err)
{
    const char *given = getenv("TIDEMARK_TOKEN");
    char own[ACCESS_SECRET_SIZE] = "";

    r->has_token = given && given[0];
    if (r->has_token) {
        for (const char *c = given; *c; c++)
            if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
                return tide_fail(err, TIDE_INVALID, "TIDEMARK_TOKEN does not hold a token of a server");
    } else if (r->url.unix_path || !is_own_server(r)) {
        return TIDE_OK;
    } else if (access_read_own(own, err)) {
        return err->code;
    }
    if (r->has_token || own[0]) {
        struct buf text = BUF_INIT(HEAD_MAX / 2);

        buf_addf(&text, "Bearer %s", r->has_token ? given : own);
        if (text.failed)
            return tide_fail(err, TIDE_INVALID, "TIDEMARK_TOKEN does not hold a token of a server");
        r->authorization = buf_take(&text);
    }
    explicit_bzero(own, sizeof own);
    return TIDE_OK;
}

enum tide_code remote_open(const struct remote_options *opt, struct remote **ret, struct tide_err *err)
{
    struct remote *r = mem_zero(sizeof *r);

    r->arena = r->page = (struct arena)ARENA_INIT;
    r->target = (struct buf)BUF_INIT(TARGET_MAX);
    r->body = (struct buf)BUF_INIT(BODY_MAX);
    r->opt = *opt;
    *ret = r;
    if (remote_url_read(&r->arena, arena_dup(&r->arena, str_from(opt->url)).ptr, opt->pin, &r->url, err) ||
        take_token(r, err))
        return err->code;
    r->client = http_client_new(&(struct http_client_options){.unix_path = r->url.unix_path,
                                                              .host = r->url.host,
                                                              .port = r->url.port,
                                                              .tls = r->url.tls,
                                                              .pin = r->url.pin,
                                                              .connect_ms = CONNECT_MS,
                                                              .head_max = HEAD_MAX,
                                                              .body_max = ANSWER_MAX,
                                                              .stop = opt->stop,
                                                              .stop_fd = opt->stop_fd});
    return TIDE_OK;
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    http_client_free(r->client);
    if (r->authorization)
        sodium_memzero(r->authorization, strlen(r->authorization));
    free(r->authorization);
    if (r->body.ptr)
        sodium_memzero(r->body.ptr, r->body.cap);
    buf_done(&r->body);
    buf_done(&r->target);
    arena_done(&r->page);
    arena_done(&r->arena);
    free(r);
}

/* ---- a request ---- */

static void add_escaped(struct buf *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~";

    for (; *text; text++)
        if (strchr(plain, *text))
            buf_add_char(out, *text);
        else
            buf_addf(out, "%%%02X", (unsigned char)*text);
}

void remote_begin_at(struct remote *r, const char *method, const char *const *segments)
{
    unsigned char random[(KEY_SIZE - 1) / 2];

    r->method = method;
    r->has_query = r->has_body = false;
    buf_clear(&r->target);
    buf_clear(&r->body);
    buf_add_str(&r->target, STR(ROOT));
    r->id_len = 0;
    for (size_t i = 0; segments[i]; i++) {
        bool is_id = i == 1 && strcmp(segments[0], "sessions") == 0;

        buf_add_char(&r->target, '/');
        r->id_at = is_id ? r->target.len : r->id_at;
        add_escaped(&r->target, is_id && r->whole && strcmp(segments[1], r->prefix) == 0 ? r->whole : segments[i]);
        r->id_len = is_id ? r->target.len - r->id_at : r->id_len;
    }
    randombytes_buf(random, sizeof random);
    hex_encode(r->key, random, sizeof random);
}

void remote_param(struct remote *r, const char *name, const char *value)
{
    if (!value)
        return;
    buf_add_char(&r->target, r->has_query ? '&' : '?');
    r->has_query = true;
    add_escaped(&r->target, name);
    buf_add_char(&r->target, '=');
    add_escaped(&r->target, value);
}

void remote_param_int(struct remote *r, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)value);
    remote_param(r, name, text);
}

struct json_out *remote_body(struct remote *r)
{
    if (!r->has_body) {
        r->json = json_out_to(&r->body);
        json_out_begin(&r->json, '{');
        r->has_body = true;
    }
    return &r->json;
}

void remote_body_text(struct remote *r, const char *name, const char *value)
{
    if (value)
        json_out_kstr(remote_body(r), str_from(name), str_from(value));
}

void remote_body_flag(struct remote *r, const char *name, bool value)
{
    if (value)
        json_out_kbool(remote_body(r), str_from(name), true);
}

static void end_body(struct remote *r)
{
    if (r->has_body && r->body.len)
        json_out_end(&r->json, '}');
    r->has_body = false;
}

/* ---- sending it ---- */

static bool changes_something(const struct remote *r)
{
    return strcmp(r->method, "GET") != 0;
}

static enum tide_code send_once(struct remote *r, struct http_ask *ask, struct http_reply *reply, enum http_lost *lost,
                                struct tide_err *err)
{
    const char *fields[9];
    size_t n = 0;

    fields[n++] = "Accept";
    fields[n++] = ask->take ? "text/event-stream" : "application/json";
    if (r->authorization) {
        fields[n++] = "Authorization";
        fields[n++] = r->authorization;
    }
    if (changes_something(r)) {
        fields[n++] = "Idempotency-Key";
        fields[n++] = r->key;
    }
    fields[n] = NULL;
    ask->method = r->method;
    ask->target = buf_view(&r->target);
    ask->fields = fields;
    ask->body = buf_view(&r->body);
    return http_client_ask(r->client, ask, reply, lost, err);
}

static bool pause_a_while(const struct remote *r, int64_t ms)
{
    struct pollfd p = {.fd = r->opt.stop_fd, .events = POLLIN};

    return poll(&p, r->opt.stop_fd > 0, (int)ms) == 0 && !(r->opt.stop && *r->opt.stop);
}

static enum tide_code say_lost(const struct remote *r, enum http_lost lost, bool was_sent, struct tide_err *err)
{
    tide_wrap(err, "%s", r->url.text);
    if (lost == HTTP_NOT_CONNECTED && !was_sent && !r->met)
        return tide_wrap_after(err, "start the server there, or name another");
    if (!changes_something(r) || !was_sent)
        return err->code;
    err->code = TIDE_UNKNOWN;
    return tide_wrap_after(err, "it is not known whether the request was carried out: check the session, and repeat "
                                "the command if it was not");
}

/* Sends it until there is an answer, as the bounds at the top say. */
static enum tide_code send_request(struct remote *r, struct http_ask *ask, struct http_reply *reply,
                                   struct tide_err *err)
{
    int64_t until = 0, pause = PAUSE_MS;
    bool was_sent = false;

    for (;;) {
        enum http_lost lost;
        enum tide_code code;

        *err = (struct tide_err){0};
        code = send_once(r, ask, reply, &lost, err);
        r->met |= !code;
        if (!code)
            return TIDE_OK;
        was_sent |= lost == HTTP_CUT || lost == HTTP_LATE;
        if (ask->take && reply->status) { /* a stream, which was cut long after it had begun */
            until = 0;
            pause = PAUSE_MS;
        }
        until = until ? until : monotonic_ms() + (r->met ? AGAIN_MS : UNMET_MS);
        if (code == TIDE_CANCELLED)
            return code;
        if (lost == HTTP_NOT_LOST)
            return tide_wrap(err, "%s", r->url.text);
        if (lost == HTTP_LATE || (r->opt.once && !changes_something(r)) || (!was_sent && !r->met) ||
            monotonic_ms() + pause > until)
            return say_lost(r, lost, was_sent, err);
        http_reply_done(reply);
        if (!pause_a_while(r, pause))
            return tide_fail(err, TIDE_CANCELLED, "stopped");
        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
}

/* ---- the answer ---- */

static enum tide_code no_answer(const struct remote *r, int status, struct tide_err *err)
{
    return tide_fail(err, TIDE_IO, "%s: the server that answers there (status %d) is not Tidemark", r->url.text,
                     status);
}

/* A problem document holds the error that the same command would have had on the store. */
static enum tide_code take_problem(struct remote *r, int status, const struct json *v, struct tide_err *err)
{
    const struct json *error = v ? json_get(v, STR("error")) : NULL;

    if (!error || !error_from_json(json_source(error), err))
        return no_answer(r, status, err);
    if (status != 401 || err->code != TIDE_DENIED)
        return err->code;
    tide_wrap(err, "%s", r->url.text);
    return tide_wrap_after(
        err, r->has_token
                 ? "set TIDEMARK_TOKEN to another one"
                 : "set TIDEMARK_TOKEN to a token; the operator of the server creates one (access create NAME)");
}

static bool is_json(const struct http_reply *reply)
{
    struct str type = http_reply_field(reply, "Content-Type");
    const char *end = type.ptr ? memchr(type.ptr, ';', type.len) : NULL;

    type.len = end ? (size_t)(end - type.ptr) : type.len;
    type = str_trim(type);
    return str_eq(type, STR("application/json")) || str_eq(type, STR("application/problem+json"));
}

static enum tide_code take_answer(struct remote *r, struct arena *a, const struct http_reply *reply,
                                  const struct json **ret, struct tide_err *err)
{
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 32};
    struct json *v = NULL;
    struct tide_err ignored;

    *ret = NULL;
    r->text = arena_dup(a, str_trim(buf_view(&reply->body)));
    if (reply->status == 204)
        return TIDE_OK;
    if (!is_json(reply) || json_parse(a, r->text, &limits, &v, NULL, &ignored))
        return no_answer(r, reply->status, err);
    if (reply->status < 200 || reply->status > 299)
        return take_problem(r, reply->status, v, err);
    *ret = v;
    return TIDE_OK;
}

static enum tide_code ask_once(struct remote *r, struct arena *a, enum remote_patience patience,
                               const struct json **ret, struct tide_err *err)
{
    struct http_ask ask = {.answer_ms = patience == REMOTE_SOON ? ANSWER_MS : 0};
    struct http_reply reply;
    enum tide_code code = send_request(r, &ask, &reply, err);

    code = code ? code : take_answer(r, a, &reply, ret, err);
    http_reply_done(&reply);
    return code;
}

/* ---- a prefix in place of an id: ids are whole in an address ---- */

/* What the request named is no session. */
static bool names_no_session(const struct remote *r, const struct tide_err *err)
{
    const char *asked = err->detail.session_id;

    return err->code == TIDE_NOT_FOUND && err->detail.subject == TIDE_SUBJECT_SESSION && r->id_len &&
           strlen(asked) == r->id_len && memcmp(r->target.ptr + r->id_at, asked, r->id_len) == 0;
}

static enum tide_code find_whole(struct remote *r, const char *prefix, const char **ret, struct tide_err *err)
{
    const struct json *v;

    remote_begin(r, "GET", "resolve");
    remote_param(r, "prefix", prefix);
    if (ask_once(r, &r->arena, REMOTE_SOON, &v, err))
        return err->code;
    *ret = arena_dup(&r->arena, json_get_text(&r->arena, v, STR("session_id"))).ptr;
    return str_is_id(str_from(*ret)) ? TIDE_OK : no_answer(r, 200, err);
}

/* The request again, with the whole id. Where there is none, or the server does not know, the failure stays; where there are more, they are named. */
static bool make_whole(struct remote *r, struct tide_err *err)
{
    const char *prefix = arena_dup(&r->arena, str_from(err->detail.session_id)).ptr, *method = r->method, *whole = NULL;
    struct buf target = r->target, body = r->body;
    size_t at = r->id_at, len = r->id_len;
    struct tide_err why = {0};
    enum tide_code code;
    char key[KEY_SIZE];

    memcpy(key, r->key, sizeof key);
    r->target = (struct buf)BUF_INIT(TARGET_MAX);
    r->body = (struct buf)BUF_INIT(BODY_MAX);
    code = find_whole(r, prefix, &whole, &why);
    buf_clear(&r->target);
    buf_done(&r->body);
    r->body = body;
    r->method = method;
    memcpy(r->key, key, sizeof key);
    if (!code) {
        buf_add(&r->target, target.ptr, at);
        buf_add_str(&r->target, str_from(whole));
        buf_add(&r->target, target.ptr + at + len, target.len - at - len);
        r->prefix = prefix;
        r->whole = whole;
    } else if (code == TIDE_AMBIGUOUS) {
        *err = why;
    }
    buf_done(&target);
    return !code;
}

enum tide_code remote_ask_into(struct remote *r, struct arena *a, enum remote_patience patience,
                               const struct json **ret, struct tide_err *err)
{
    enum tide_code code;

    end_body(r);
    if (r->target.failed || r->body.failed)
        return tide_fail(err, TIDE_TOO_BIG, "this is too big for a request to a server");
    code = ask_once(r, a, patience, ret, err);
    if (!code || r->opt.whole_ids || !names_no_session(r, err))
        return code;
    return make_whole(r, err) ? ask_once(r, a, patience, ret, err) : err->code;
}

enum tide_code remote_ask(struct remote *r, enum remote_patience patience, const struct json **ret,
                          struct tide_err *err)
{
    return remote_ask_into(r, &r->arena, patience, ret, err);
}

enum tide_code remote_ask_page(struct remote *r, enum remote_patience patience, const struct json **ret,
                               struct tide_err *err)
{
    arena_reset(&r->page);
    return remote_ask_into(r, &r->page, patience, ret, err);
}

enum tide_code remote_take(struct remote *r, const struct shape *shape, const struct json *v, void *data,
                           struct tide_err *err)
{
    return remote_take_into(r, &r->arena, shape, v, data, err);
}

enum tide_code remote_take_into(struct remote *r, struct arena *a, const struct shape *shape, const struct json *v,
                                void *data, struct tide_err *err)
{
    if (!v)
        return no_answer(r, 204, err);
    if (!shape_read(a, shape, v, data, err))
        return TIDE_OK;
    err->code = TIDE_IO;
    return tide_wrap(err, "%s: the answer is of another version", r->url.text);
}

enum tide_code remote_read(struct remote *r, enum remote_patience patience, const struct shape *shape, void *data,
                           struct tide_err *err)
{
    const struct json *v;

    return remote_ask(r, patience, &v, err) ? err->code : remote_take(r, shape, v, data, err);
}

struct str remote_text(const struct remote *r)
{
    return r->text;
}

/* ---- server-sent events ---- */

struct events {
    remote_event_fn *fn;
    void *arg;
    struct buf line, name, data;
    int64_t id;
    bool ended; /* by fn */
};

static void take_field(struct events *e, struct str line)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    struct str name = {line.ptr, colon ? (size_t)(colon - line.ptr) : line.len};
    struct str value = colon ? (struct str){colon + 1, line.len - name.len - 1} : STR("");

    if (value.len && value.ptr[0] == ' ')
        value = (struct str){value.ptr + 1, value.len - 1};
    if (str_eq(name, STR("id")) && !str_to_int64(value, &e->id))
        e->id = 0;
    else if (str_eq(name, STR("event")))
        buf_add_str(&e->name, value);
    else if (str_eq(name, STR("data")))
        buf_add_str(&e->data, value);
}

/* Of an event that is whole; one that has an id alone is a heartbeat. */
static void end_event(struct events *e)
{
    if ((e->data.len || e->id) && !e->data.failed)
        e->ended = e->fn(e->arg, e->id, buf_view(&e->name), buf_view(&e->data)) != 0;
    buf_clear(&e->name);
    buf_clear(&e->data);
    e->id = 0;
}

static bool take_stream(void *arg, struct str bytes)
{
    struct events *e = arg;

    while (bytes.len && !e->ended) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        size_t n = end ? (size_t)(end - bytes.ptr) : bytes.len;

        buf_add(&e->line, bytes.ptr, n);
        bytes = (struct str){bytes.ptr + n + (end != NULL), bytes.len - n - (end != NULL)};
        if (!end)
            break;
        if (e->line.len)
            take_field(e, buf_view(&e->line));
        else
            end_event(e);
        buf_clear(&e->line);
    }
    return !e->ended && !e->line.failed && !e->data.failed;
}

enum tide_code remote_follow(struct remote *r, remote_event_fn *fn, void *arg, struct tide_err *err)
{
    struct events e = {
        .fn = fn, .arg = arg, .line = BUF_INIT(ANSWER_MAX), .name = BUF_INIT(64), .data = BUF_INIT(ANSWER_MAX)};
    struct http_ask ask = {.take = take_stream, .arg = &e};
    struct http_reply reply;
    const struct json *ignored;
    enum tide_code code = send_request(r, &ask, &reply, err);

    if (!code && reply.status != 200)
        code = take_answer(r, &r->arena, &reply, &ignored, err);
    if (!code && (e.line.failed || e.data.failed))
        code = tide_fail(err, TIDE_TOO_BIG, "%s: an event is too big", r->url.text);
    http_reply_done(&reply);
    buf_done(&e.line);
    buf_done(&e.name);
    buf_done(&e.data);
    return code;
}
