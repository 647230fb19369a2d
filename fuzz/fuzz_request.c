/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request says, up to where its route would run: the address, the query, the fields, the body; or the same as a message over a
 * WebSocket. The first line is the method and the target, then come fields, an empty line and the body; "WS" as the method: the target is
 * the action and the body its payload. What is taken is whole: parameters are texts, required ones are there, each can be read as
 * its type. What is refused is a problem that is JSON.
 */
#include <sodium.h>

#include "fuzz.h"
#include "net/http_accept.h"
#include "net/websocket.h"
#include "server/call.h"
#include "server/console.h"
#include "server/server.h"

#define FIELDS_MAX 64

static struct str take_line(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t n = line.len + (end != NULL);

    *rest = (struct str){rest->ptr + n, rest->len - n};
    return line;
}

static struct str take_word(struct str *line)
{
    const char *blank = line->len ? memchr(line->ptr, ' ', line->len) : NULL;
    struct str word = {line->ptr, blank ? (size_t)(blank - line->ptr) : line->len};
    size_t n = word.len + (blank != NULL);

    *line = (struct str){line->ptr + n, line->len - n};
    return word;
}

static enum http_method method_of(struct str word)
{
    for (unsigned m = HTTP_GET; m < HTTP_OTHER; m *= 2)
        if (str_eq(word, str_from(http_method_name((enum http_method)m))))
            return (enum http_method)m;
    return HTTP_OTHER;
}

static void read_fields(struct http_request *q, struct http_field fields[FIELDS_MAX], struct str *rest)
{
    for (struct str line = take_line(rest); line.len && q->n_fields < FIELDS_MAX; line = take_line(rest)) {
        const char *colon = memchr(line.ptr, ':', line.len);
        size_t n = colon ? (size_t)(colon - line.ptr) : line.len;

        fields[q->n_fields++] = (struct http_field){{line.ptr, n}, str_trim((struct str){line.ptr + n, line.len - n})};
    }
    q->fields = fields;
}

static size_t count_params(const struct route *r)
{
    size_t n = 0;

    for (const char *p = strchr(r->path, '{'); p; p = strchr(p + 1, '{'))
        n++;
    return n;
}

static void read_field(struct call *c, const struct field *f)
{
    const char *const *texts;

    switch (f->type) {
    case FIELD_INT:
        (void)call_int(c, f->name, -1);
        break;
    case FIELD_BOOL:
        (void)call_on(c, f->name);
        break;
    case FIELD_OBJECT:
    case FIELD_ANY:
        (void)call_json(c, f->name);
        break;
    case FIELD_TEXTS:
        texts = call_texts(c, f->name);
        for (size_t i = 0; texts && texts[i]; i++)
            MUST(str_is_utf8(str_from(texts[i]), &(size_t){0}));
        break;
    default:
        MUST(!f->required || call_text(c, f->name));
    }
}

static void read_all(struct call *c)
{
    for (size_t i = 0; i < count_params(c->route); i++)
        MUST(c->params[i].len && !memchr(c->params[i].ptr, 0, c->params[i].len));
    for (const struct field *f = c->route->query; f && f->name; f++)
        read_field(c, f);
    for (const struct field *f = c->route->body; f && f->name; f++)
        read_field(c, f);
}

static void check(struct call *c)
{
    struct buf problem = BUF_INIT(1 << 20);
    struct tide_err err = {0};
    struct json *v;

    if (call_check(c, &err) == TIDE_OK) {
        read_all(c);
        return;
    }
    problem_write(&problem, &err, problem_status(&err));
    MUST(err.code == TIDE_INVALID || err.code == TIDE_TOO_BIG);
    MUST(json_parse(c->arena, buf_view(&problem), NULL, &v, NULL, NULL) == TIDE_OK);
    buf_done(&problem);
}

/* What comes by HTTP was looked at before (net/http_request.c). */
static bool is_printable(struct str target)
{
    for (size_t i = 0; i < target.len; i++)
        if (target.ptr[i] <= ' ' || target.ptr[i] >= 127)
            return false;
    return true;
}

static void check_http(struct call *c, struct http_request *q, struct str rest)
{
    const char *mark = q->path.len ? memchr(q->path.ptr, '?', q->path.len) : NULL;
    unsigned methods;
    int status;

    if (mark) {
        q->query = (struct str){mark + 1, (size_t)(q->path.ptr + q->path.len - mark - 1)};
        q->path.len = (size_t)(mark - q->path.ptr);
    }
    buf_add_str(&q->body, rest);
    c->http = q;
    (void)websocket_refuses(q, &status);
    (void)websocket_offers(q, "tidemark.v1");
    (void)websocket_offered(q, "bearer.");
    (void)http_takes_gzip(http_field(q, "Accept-Encoding"));
    (void)http_tag_is_known(http_field(q, "If-None-Match"), "\"x\"");
    (void)console_is_address(q->path);
    c->route = route_find(c->arena, q->path, q->method, c->params, &methods);
    if (c->route && is_printable(q->path) && is_printable(q->query))
        check(c);
}

static void check_message(struct call *c, struct str action, struct str rest)
{
    struct json *v = NULL;

    if (json_parse(c->arena, rest, &(struct json_limits){.max_depth = 64}, &v, NULL, NULL) == TIDE_OK &&
        v->type == JSON_OBJECT)
        c->body = v;
    c->route = route_named(action);
    if (c->route)
        check(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server server;
    struct http_field fields[FIELDS_MAX];
    struct http_request q = {.query = STR(""), .body = BUF_INIT(1 << 20)};
    struct call c = {.server = &server, .arena = &q.arena};
    struct str rest = {(const char *)data, size}, line = take_line(&rest), method = take_word(&line);

    MUST(sodium_init() >= 0);
    q.path = line;
    q.method = method_of(method);
    read_fields(&q, fields, &rest);
    if (str_eq(method, STR("WS")))
        check_message(&c, line, rest);
    else
        check_http(&c, &q, rest);
    buf_done(&q.body);
    arena_done(&q.arena);
    return 0;
}
