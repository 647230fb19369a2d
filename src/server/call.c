/* SPDX-License-Identifier: Apache-2.0 */
/* What is given is checked against the route's tables before its function sees it; what is not in them is refused, so that a word that is mistyped is not passed over. */
#include "server/call.h"

#include <stdio.h>

#include "base/digest.h"
#include "base/invariant.h"
#include "engine/housekeeping.h"
#include "engine/resume.h"
#include "engine/shapes.h"
#include "engine/signed_request.h"
#include "server/idempotency.h"
#include "server/server.h"
#include "server/transfer.h"
#include "server/writers.h"

#define KEY_MAX 255

/* ---- checking ---- */

static enum tide_code refuse_parameter(struct tide_err *err, const char *name, const char *why)
{
    return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, name, "%s", why);
}

static bool is_word(const char *words, struct str word)
{
    for (struct str rest = str_from(words); rest.len;) {
        const char *blank = memchr(rest.ptr, ' ', rest.len);
        struct str one = {rest.ptr, blank ? (size_t)(blank - rest.ptr) : rest.len};

        if (str_eq(one, word))
            return true;
        rest = (struct str){rest.ptr + one.len + (blank != NULL), rest.len - one.len - (blank != NULL)};
    }
    return false;
}

static enum tide_code check_int(const struct field *f, bool is_int, int64_t n, struct tide_err *err)
{
    char why[100];

    if (is_int && n >= f->min && (!f->max || n <= f->max))
        return TIDE_OK;
    if (f->max)
        snprintf(why, sizeof why, "must be a whole number from %lld to %lld", (long long)f->min, (long long)f->max);
    else
        snprintf(why, sizeof why, "must be a whole number from %lld on", (long long)f->min);
    return refuse_parameter(err, f->name, why);
}

static enum tide_code check_text(struct arena *a, const struct field *f, struct str text, struct tide_err *err)
{
    size_t at;

    if (!str_is_utf8(text, &at) || memchr(text.ptr, 0, text.len))
        return refuse_parameter(err, f->name, "is not UTF-8 text");
    if (f->type == FIELD_ID && !str_is_id(text))
        return refuse_parameter(err, f->name, "must be an id: 1 to 64 of [A-Za-z0-9_-], not beginning with a dash");
    if (f->type == FIELD_WORD && !is_word(f->words, text))
        return refuse_parameter(err, f->name, arena_printf(a, "must be one of: %s", f->words));
    return TIDE_OK;
}

struct checking {
    struct call *c;
    uint64_t seen; /* parameters, by their place in the table */
    enum tide_code code;
    struct tide_err *err;
};

static int check_query(void *arg, struct str name, struct str value)
{
    struct checking *k = arg;
    const struct field *f = field_find(k->c->route->query, name);
    int64_t n = 0;
    bool is_int = str_to_int64(value, &n);

    if (!f)
        k->code = refuse_parameter(k->err, arena_printf(k->c->arena, "%.*s", STR_ARG(name)),
                                   "is not a parameter of this address");
    else if (k->seen & (uint64_t)1 << (f - k->c->route->query))
        k->code = refuse_parameter(k->err, f->name, "is given twice");
    else if (f->type == FIELD_INT)
        k->code = check_int(f, is_int, n, k->err);
    else if (f->type == FIELD_BOOL && !str_eq(value, STR("true")) && !str_eq(value, STR("false")))
        k->code = refuse_parameter(k->err, f->name, "must be true or false");
    else
        k->code = check_text(k->c->arena, f, value, k->err);
    k->seen |= f ? (uint64_t)1 << (f - k->c->route->query) : 0;
    return k->code != TIDE_OK;
}

/* As `next` and hints have it: {"name": …, "output": …}. An output that is null is not given. */
static bool is_settled(const struct json *v)
{
    const struct json *name = json_get(v, STR("name"));
    size_t known = (name != NULL) + (json_get(v, STR("output")) != NULL);

    return v->type == JSON_OBJECT && name && name->type == JSON_STRING && v->count == known;
}

static enum tide_code check_texts(struct call *c, const struct field *f, const struct json *v, struct tide_err *err)
{
    bool settled = f->type == FIELD_SETTLED;

    for (const struct json *t = v->first; v->type == JSON_ARRAY && t; t = t->next) {
        if (settled && is_settled(t))
            continue;
        if (t->type != JSON_STRING || check_text(c->arena, f, json_text(c->arena, t), err))
            return refuse_parameter(err, f->name,
                                    settled ? "must be a list of texts, or of objects with name and output"
                                            : "must be a list of texts");
    }
    return v->type == JSON_ARRAY ? TIDE_OK : refuse_parameter(err, f->name, "must be a list");
}

static enum tide_code check_member(struct call *c, const struct field *f, const struct json *v, struct tide_err *err)
{
    int64_t n = 0;
    bool is_int = json_int(v, &n);

    switch (f->type) {
    case FIELD_INT:
        return check_int(f, is_int, n, err);
    case FIELD_BOOL:
        return v->type == JSON_TRUE || v->type == JSON_FALSE ? TIDE_OK
                                                             : refuse_parameter(err, f->name, "must be true or false");
    case FIELD_OBJECT:
        return v->type == JSON_OBJECT ? TIDE_OK : refuse_parameter(err, f->name, "must be an object");
    case FIELD_ANY:
        return TIDE_OK;
    case FIELD_TEXTS:
    case FIELD_SETTLED:
        return check_texts(c, f, v, err);
    case FIELD_POSITION:
        if (v->type == JSON_STRING)
            return check_text(c->arena, f, json_text(c->arena, v), err);
        return is_int && n > 0 ? TIDE_OK : refuse_parameter(err, f->name, "must be a seq or the id of a checkpoint");
    default:
        return v->type == JSON_STRING ? check_text(c->arena, f, json_text(c->arena, v), err)
                                      : refuse_parameter(err, f->name, "must be a text");
    }
}

enum tide_code call_check_members(struct call *c, const struct field *table, const struct json *object,
                                  struct tide_err *err)
{
    for (const struct json *m = object ? object->first : NULL; m; m = m->next) {
        struct str name = json_key_text(c->arena, m);
        const struct field *f = field_find(table, name);

        if (!f)
            return refuse_parameter(err, arena_printf(c->arena, "%.*s", STR_ARG(name)), "is not a member of this body");
        if (m->type != JSON_NULL && check_member(c, f, m, err))
            return err->code;
    }
    return TIDE_OK;
}

static enum tide_code check_body(struct call *c, struct tide_err *err)
{
    struct json *v = NULL;

    if (c->route->flags & ROUTE_BYTES_IN)
        return TIDE_OK;
    if (!c->http->body.len && !c->route->body)
        return TIDE_OK;
    if (c->http->body.len &&
        json_parse(c->arena, buf_view(&c->http->body),
                   &(struct json_limits){.max_depth = (unsigned)c->server->opt.max_depth}, &v, NULL, err))
        return tide_wrap(err, "the body is not JSON");
    if (v && v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "the body must be a JSON object");
    if (v && v->first && !c->route->body)
        return tide_fail(err, TIDE_INVALID, "this address takes no body");
    c->body = v;
    return call_check_members(c, c->route->body, v, err);
}

static const struct json *member(const struct call *c, const char *name)
{
    const struct json *m = c->body ? json_get(c->body, str_from(name)) : NULL;

    return m && m->type != JSON_NULL ? m : NULL;
}

static struct str in_query(struct call *c, const char *name)
{
    return c->http ? http_query(c->http, name) : (struct str){NULL, 0};
}

static enum tide_code check_required(struct call *c, struct tide_err *err)
{
    for (const struct field *f = c->route->query; f && f->name; f++)
        if (f->required && !member(c, f->name) && !in_query(c, f->name).ptr)
            return refuse_parameter(err, f->name, "is missing in the query");
    for (const struct field *f = c->route->body; f && f->name; f++)
        if (f->required && !member(c, f->name))
            return refuse_parameter(err, f->name, "is missing in the body");
    return TIDE_OK;
}

/* ---- over a WebSocket: what HTTP has in the path, the query and the body is one object ---- */

/* Each parameter of the path, in order: {id}. */
static struct str next_param(const char **rest)
{
    const char *open = strchr(*rest, '{');
    struct str name = {open ? open + 1 : NULL, open ? strcspn(open + 1, "}") : 0};

    *rest = open ? name.ptr + name.len : *rest;
    return name;
}

static bool is_param(const struct route *r, struct str name)
{
    const char *rest = r->path;

    for (struct str p = next_param(&rest); p.ptr; p = next_param(&rest))
        if (str_eq(p, name))
            return true;
    return false;
}

static enum tide_code take_params(struct call *c, struct tide_err *err)
{
    static const struct field text = {.name = "", .type = FIELD_TEXT};
    const char *rest = c->route->path;
    size_t n = 0;

    for (struct str p = next_param(&rest); p.ptr; p = next_param(&rest), n++) {
        const struct json *m = c->body ? json_get(c->body, p) : NULL;
        const char *name = arena_dup(c->arena, p).ptr;
        struct tide_err ignored;

        if (!m)
            return refuse_parameter(err, name, "is missing in the payload");
        if (check_member(c, &text, m, &ignored) || !json_text(c->arena, m).len)
            return refuse_parameter(err, name, "must be a text that is not empty");
        c->params[n] = arena_dup(c->arena, json_text(c->arena, m));
    }
    return TIDE_OK;
}

static enum tide_code check_payload(struct call *c, struct tide_err *err)
{
    for (const struct json *m = c->body ? c->body->first : NULL; m; m = m->next) {
        struct str name = json_key_text(c->arena, m);
        const struct field *f = field_find(c->route->query, name);

        f = f ? f : field_find(c->route->body, name);
        if (is_param(c->route, name))
            continue;
        if (!f)
            return refuse_parameter(err, arena_printf(c->arena, "%.*s", STR_ARG(name)),
                                    "is not a member of this payload");
        if (m->type != JSON_NULL && check_member(c, f, m, err))
            return err->code;
    }
    return take_params(c, err) ? err->code : check_required(c, err);
}

enum tide_code call_check(struct call *c, struct tide_err *err)
{
    struct checking k = {.c = c, .err = err};

    if (!c->http)
        return check_payload(c, err);
    if (!http_query_each(c->http, check_query, &k))
        return tide_fail(err, TIDE_INVALID, "the query is not percent-encoded as a URL must be");
    if (k.code || check_body(c, err))
        return err->code;
    return check_required(c, err);
}

/* ---- what was given ---- */

const char *call_text(struct call *c, const char *name)
{
    const struct json *m = member(c, name);
    struct str s = !m ? in_query(c, name) : m->type == JSON_NUMBER ? m->raw : json_text(c->arena, m);

    return s.ptr ? arena_dup(c->arena, s).ptr : NULL;
}

int64_t call_int(struct call *c, const char *name, int64_t otherwise)
{
    const struct json *m = member(c, name);
    struct str s = m ? m->raw : in_query(c, name);
    int64_t n;

    return s.ptr && str_to_int64(s, &n) ? n : otherwise;
}

bool call_on(struct call *c, const char *name)
{
    const struct json *m = member(c, name);

    return m ? m->type == JSON_TRUE : str_eq(in_query(c, name), STR("true"));
}

struct str call_json(struct call *c, const char *name)
{
    const struct json *m = member(c, name);

    return m ? json_source(m) : STR("");
}

/* NAME or NAME=JSON, as commands take it. */
static const char *settled_text(struct call *c, const struct json *v)
{
    const struct json *output = json_get(v, STR("output"));
    struct str name = json_get_text(c->arena, v, STR("name"));

    return output && output->type != JSON_NULL
               ? arena_printf(c->arena, "%.*s=%.*s", STR_ARG(name), STR_ARG(json_source(output)))
               : arena_dup(c->arena, name).ptr;
}

const char *const *call_texts(struct call *c, const char *name)
{
    const struct json *m = member(c, name);
    const char **list;
    size_t n = 0;

    if (!m)
        return NULL;
    list = arena_alloc(c->arena, (m->count + 1) * sizeof *list);
    for (const struct json *t = m->first; t; t = t->next)
        list[n++] = t->type == JSON_OBJECT ? settled_text(c, t) : arena_dup(c->arena, json_text(c->arena, t)).ptr;
    list[n] = NULL;
    return list;
}

const char *const *call_list(struct call *c, const char *name)
{
    const char *text = call_text(c, name);
    const char **list;
    size_t n = 1;

    if (!text)
        return NULL;
    for (const char *p = text; *p; p++)
        n += *p == ',';
    list = arena_zero(c->arena, (n + 1) * sizeof *list);
    n = 0;
    for (const char *p = text; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        list[n++] = arena_printf(c->arena, "%.*s", (int)strcspn(p, ","), p);
    return list;
}

/* ---- the answer ---- */

void call_field(struct call *c, const char *name, const char *value)
{
    INVARIANT(c->n_extra + 3 <= sizeof c->extra / sizeof c->extra[0]);
    c->extra[c->n_extra++] = name;
    c->extra[c->n_extra++] = arena_dup(c->arena, str_from(value)).ptr;
    c->extra[c->n_extra] = NULL;
}

void call_reply_text(struct call *c, int status, const char *type, struct buf *body)
{
    INVARIANT(!c->answered);
    c->answered = true;
    call_close_session(c);
    if (c->request.id[0])
        idempotency_end(c->server->idempotency, c, status, type,
                        c->kept.ptr ? c->kept
                        : body      ? buf_view(body)
                                    : STR(""));
    call_field(c, "Cache-Control", "no-store");
    c->answer(c, status, type, body);
}

void call_reply(struct call *c, const struct shape *shape, const void *data)
{
    struct buf body = BUF_INIT(ANSWER_MAX);
    struct json_out o = json_out_to(&body);

    shape_put(&o, shape, data);
    buf_add_char(&body, '\n');
    call_reply_text(c, c->route->status ? c->route->status : 200, "application/json", &body);
}

void call_reply_nothing(struct call *c)
{
    call_reply_text(c, 204, NULL, NULL);
}

void call_fail_as(struct call *c, int status, const struct tide_err *err)
{
    struct buf body = BUF_INIT(ANSWER_MAX);

    problem_write(&body, err, status);
    if (status == 503 || status == 429)
        call_field(c, "Retry-After", "1");
    call_reply_text(c, status, "application/problem+json", &body);
}

void call_fail(struct call *c, const struct tide_err *err)
{
    call_fail_as(c, problem_status(err), err);
}

static enum tide_code refuse_unknown(struct call *c, struct tide_err *err)
{
    return tide_fail_session(err, TIDE_NOT_FOUND, "", "there is no session '%.64s'", c->params[0].ptr);
}

enum tide_code call_check_id(struct call *c, struct tide_err *err)
{
    char whole[TIDE_ID_SIZE];
    enum tide_code code;

    if (!str_is_id(c->params[0]))
        return refuse_unknown(c, err);
    code = tide_session_resolve(c->server->store, c->params[0].ptr, whole, err);
    if (code != TIDE_AMBIGUOUS && (code || strcmp(whole, c->params[0].ptr) == 0))
        return code;
    *err = (struct tide_err){0};
    return tide_fail_session(err, TIDE_NOT_FOUND, c->params[0].ptr, "is not here: ids are whole in an address");
}

enum tide_code call_session(struct call *c, unsigned flags, tide_session **ret, struct tide_err *err)
{
    const char *id = c->params[0].ptr;
    int64_t seq;

    if (!str_is_id(c->params[0]))
        return refuse_unknown(c, err);
    if (call_expected_seq(c, &seq, err))
        return err->code;
    if (flags & TIDE_SESSION_APPEND)
        call_enter_session(c);
    if (tide_session_open(c->server->store, id, flags | TIDE_SESSION_WHOLE, &c->session, err))
        return err->code;
    if (seq >= 0 && seq != tide_session_last_seq(c->session))
        return refuse_moved(tide_session_id(c->session), tide_session_last_seq(c->session), seq, err);
    *ret = c->session;
    return TIDE_OK;
}

enum tide_code call_change(struct call *c, tide_session **ret, unsigned *ret_flags, struct tide_err *err)
{
    if (call_session(c, TIDE_SESSION_APPEND, ret, err))
        return err->code;
    request_sign(*ret, &c->request);
    if (ret_flags)
        *ret_flags = TIDE_APPEND_RELEASE | (c->if_match.ptr ? 0u : TIDE_APPEND_ANY);
    return TIDE_OK;
}

const char *call_new_id(struct call *c, const char *given)
{
    return given || !c->request.id[0] ? given : arena_printf(c->arena, "sess_%s", c->request.id);
}

void call_enter_session(struct call *c)
{
    writers_enter(c->server->writers, c->params[0].ptr);
    c->alone = true;
}

void call_close_session(struct call *c)
{
    tide_session_close(c->session);
    c->session = NULL;
    if (c->alone)
        writers_leave(c->server->writers, c->params[0].ptr);
    c->alone = false;
}

enum tide_code call_expected_seq(struct call *c, int64_t *ret, struct tide_err *err)
{
    struct str field = c->if_match;

    *ret = -1;
    if (!field.ptr)
        return TIDE_OK;
    if (field.len < 3 || field.ptr[0] != '"' || field.ptr[field.len - 1] != '"' ||
        !str_to_int64((struct str){field.ptr + 1, field.len - 2}, ret) || *ret < 0)
        return tide_fail(err, TIDE_INVALID, "If-Match must be the last seq in quotes, as in \"12\"");
    return TIDE_OK;
}

/* ---- running it ---- */

static void session_closep(tide_session **session)
{
    tide_session_close(*session);
}

/* It makes a session, with an id of its own or one that is given. */
static bool makes_session(const struct route *r)
{
    return r->answer == &shape_forked || (r->answer == &shape_started && r->status == 201);
}

/* … in which something begins at once, as asked for by the same request. */
static bool starts_in_it(struct call *c)
{
    const char *kind = call_text(c, "kind");

    return c->route->answer == &shape_started &&
           (!field_find(c->route->body, STR("kind")) || call_text(c, "prompt") ||
            (kind && (strcmp(kind, "program") == 0 || strcmp(kind, "graph") == 0)));
}

/* The shapes of what a command did: they are written from what the event of the request says as well. */
static bool is_result(const struct shape *shape)
{
    static const struct shape *const results[] = {&shape_started, &shape_forked,   &shape_rolled_back, &shape_saved,
                                                  &shape_pruned,  &shape_appended, &shape_cancelled,   &shape_accepted};

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i] == shape)
            return true;
    return false;
}

static const char *member_text(struct arena *a, const struct json *event, const char *name)
{
    struct str text = json_get_text(a, event, str_from(name));

    return text.len ? arena_dup(a, text).ptr : NULL;
}

/* What its event says of a request whose answer was lost with its process. */
static void reply_found(struct call *c, const char *session_id, int64_t seq, const struct json *event)
{
    const struct json *deleted = json_get(event, STR("checkpoint_ids")), *parent = json_get(event, STR("parent"));
    bool is_made = makes_session(c->route);
    const struct command_result r = {.session_id = session_id,
                                     .parent_id = member_text(c->arena, parent, "session_id"),
                                     .checkpoint_id = member_text(c->arena, event, "checkpoint_id"),
                                     .queue_id = member_text(c->arena, event, "queue_id"),
                                     .run_id = member_text(c->arena, event, "run_id"),
                                     .word = c->route->answer == &shape_cancelled ? "done" : NULL,
                                     .to_seq = json_get_int(event, STR("to_seq"), 0),
                                     .seq = parent && is_made ? json_get_int(parent, STR("seq"), 0) : seq,
                                     .n = deleted ? deleted->count : 0,
                                     .yes = true};

    if (is_made)
        call_field(c, "Location", arena_printf(c->arena, API_ROOT "/sessions/%s", session_id));
    if (c->route->status == 204)
        call_reply_nothing(c);
    else if (c->route->answer)
        call_reply(c, c->route->answer, &r);
    else
        call_reply(c, &shape_queued, &r);
}

/*
 * Nothing has begun in what it made, at `seq`, with values of its memory or none: it is made again. What others have put there since was
 * acknowledged to them, and stays.
 */
static enum tide_code drop_made(struct call *c, const char *id, int64_t seq, int64_t last_seq, struct tide_err *err)
{
    enum tide_code code = last_seq > seq + (call_json(c, "set").len > 0)
                              ? TIDE_CONFLICT
                              : housekeeping_delete_at(c->server->store, id, last_seq, err);

    if (code != TIDE_CONFLICT)
        return code;
    *err = (struct tide_err){0};
    return tide_fail_session(err, TIDE_EXISTS, id,
                             "was made by this request, nothing was started in it, and others have changed it since");
}

/* It was begun, and what it was to delete is gone. */
static bool find_deleted(struct call *c)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct tide_err ignored;
    bool gone =
        c->route->answer == &shape_deleted &&
        tide_session_open(c->server->store, c->params[0].ptr, TIDE_SESSION_WHOLE, &session, &ignored) == TIDE_NOT_FOUND;

    if (gone)
        call_reply(c, &shape_deleted, &(struct command_result){.session_id = c->params[0].ptr});
    return gone;
}

/*
 * A request that was begun by a process that is gone: if its event is there, it was carried out. One that makes a session made it with
 * an id of its own, unless it gave one; one that also starts something in it is known by what it started.
 */
static enum tide_code find_effect(struct call *c, bool *ret_found, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    bool makes = makes_session(c->route), starts = makes && starts_in_it(c);
    const char *given = call_text(c, "session_id"), *id = makes              ? call_new_id(c, given)
                                                          : c->params[0].ptr ? c->params[0].ptr
                                                                             : given;
    struct json *event = NULL, *begun = NULL;
    int64_t seq = 0, begun_seq = 0, last_seq;
    enum tide_code code;

    *ret_found = find_deleted(c);
    if (*ret_found || !id || !str_is_id(str_from(id)) ||
        (c->route->answer && !is_result(c->route->answer))) /* what is done again does no harm */
        return TIDE_OK;
    code = tide_session_open(c->server->store, id, TIDE_SESSION_WHOLE, &session, err);
    code = code ? code : request_find(session, c->arena, c->request.id, 0, &seq, &event, err);
    if (!code && seq && starts)
        code = request_find(session, c->arena, c->request.id, seq + 1, &begun_seq, &begun, err);
    if (code == TIDE_NOT_FOUND)
        return TIDE_OK;
    if (!code && seq && starts && !begun_seq) {
        last_seq = tide_session_last_seq(session);
        tide_session_close(TAKE(session));
        return drop_made(c, id, seq, last_seq, err);
    }
    *ret_found = !code && seq;
    if (*ret_found)
        reply_found(c, id, starts ? begun_seq : seq, starts ? begun : event);
    return code;
}

static void digest_request(struct call *c)
{
    unsigned char digest[DIGEST_SIZE];
    struct digest_state d;
    size_t n = 0;

    request_digest_begin(c->server->store, &d);
    digest_add_str(&d, str_from(c->route->action));
    for (const char *p = strchr(c->route->path, '{'); p; p = strchr(p + 1, '{'))
        digest_add_str(&d, c->params[n++]);
    digest_add_str(&d, c->if_match);
    digest_add_str(&d, c->http ? c->http->query : STR(""));
    if (c->http)
        upload_add_digest(c->http, &d);
    digest_add_str(&d, c->http ? buf_view(&c->http->body) : c->body ? json_source(c->body) : STR(""));
    digest_end(&d, digest);
    hex_encode(c->request.digest, digest, (CAUSE_ID_SIZE - 1) / 2);
}

/* The id of a request: its key, of this very token. */
static enum tide_code identify_request(struct call *c, struct tide_err *err)
{
    unsigned char digest[DIGEST_SIZE];
    struct digest_state d;

    if (!c->idempotency_key.len || c->idempotency_key.len > KEY_MAX)
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "Idempotency-Key", "must have 1 to %d characters",
                            KEY_MAX);
    digest_begin(&d, NULL);
    digest_add_str(&d, str_from(c->caller.id));
    digest_add_str(&d, c->idempotency_key);
    digest_end(&d, digest);
    hex_encode(c->request.id, digest, (CAUSE_ID_SIZE - 1) / 2);
    digest_request(c);
    return TIDE_OK;
}

static enum tide_code run_once(struct call *c, struct tide_err *err)
{
    struct idempotency *i = c->server->idempotency;
    enum claimed how = CLAIM_TAKEN;
    bool found = false;
    enum tide_code code = identify_request(c, err);

    code = code ? code : idempotency_claim(i, c, &how, err);
    if (code && how != CLAIM_NEW)
        c->request.id[0] = '\0'; /* it has none, or it is another's */
    if (code)
        return code;
    if (how == CLAIM_TAKEN)
        return TIDE_OK;
    if (how == CLAIM_AGAIN)
        code = find_effect(c, &found, err);
    return code || found ? code : c->route->run(c, err);
}

void call_run(struct call *c)
{
    struct tide_err err = {0};
    bool safe = c->route->method == HTTP_GET;
    enum tide_code code = call_check(c, &err);

    snprintf(c->request.by, sizeof c->request.by, "%s", c->caller.name);
    if (!code) /* else it has answered, and may be gone */
        code = c->idempotency_key.ptr && !safe ? run_once(c, &err) : c->route->run(c, &err);
    if (code)
        call_fail(c, &err);
}
