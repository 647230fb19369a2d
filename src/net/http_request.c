/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked. The library reads the head; what two programs could understand differently is refused here, before anything is looked
 * up: a target that is not a path, a field twice where one counts, two ways to say how long the body is.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "net/http_internal.h"

struct http_exchange *http_exchange_new(struct http_listener *l, const char *target)
{
    struct http_exchange *x = mem_zero(sizeof *x);
    struct http_request *q = &x->request;
    struct str all;
    const char *mark;

    x->listener = l;
    pthread_mutex_init(&x->mu, NULL);
    q->exchange = x;
    q->by = l->by;
    q->peer_uid = -1;
    q->body_max = l->server->limits.body_bytes;
    all = arena_dup(&q->arena, str_from(target));
    mark = memchr(all.ptr, '?', all.len);
    q->path = mark ? (struct str){all.ptr, (size_t)(mark - all.ptr)} : all;
    q->query = mark ? (struct str){mark + 1, all.len - q->path.len - 1} : STR("");
    return x;
}

static const struct {
    const char *name;
    enum http_method method;
} methods[] = {{"GET", HTTP_GET},     {"HEAD", HTTP_HEAD},     {"POST", HTTP_POST},      {"PUT", HTTP_PUT},
               {"PATCH", HTTP_PATCH}, {"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS}};
#define METHODS (sizeof methods / sizeof methods[0])

static enum http_method method_from(const char *name)
{
    for (size_t i = 0; i < METHODS; i++)
        if (strcmp(name, methods[i].name) == 0)
            return methods[i].method;
    return HTTP_OTHER;
}

const char *http_method_name(enum http_method method)
{
    for (size_t i = 0; i < METHODS; i++)
        if (methods[i].method == method)
            return methods[i].name;
    return "";
}

static void read_peer(struct http_exchange *x)
{
    struct http_request *q = &x->request;
    const union MHD_ConnectionInfo *info;
    const struct sockaddr *at;
    struct ucred who;
    socklen_t len = sizeof who;

    if (q->by == HTTP_BY_UNIX) {
        info = mhd.get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0)
            q->peer_uid = who.uid;
        snprintf(q->peer, sizeof q->peer, "uid %lld", (long long)q->peer_uid);
        return;
    }
    info = mhd.get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    at = info ? info->client_addr : NULL;
    if (at && at->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)at)->sin_addr, q->peer, sizeof q->peer);
    else if (at && at->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)at)->sin6_addr, q->peer, sizeof q->peer);
}

static enum MHD_Result add_field(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                 const char *value, size_t value_len)
{
    struct http_exchange *x = arg;

    (void)kind;
    if (x->request.n_fields == HTTP_FIELDS_MAX) {
        x->request.n_fields++; /* too many: read_head() sees it */
        return MHD_NO;
    }
    x->fields[x->request.n_fields++] = (struct http_field){{name, name_len}, {value ? value : "", value_len}};
    return MHD_YES;
}

static bool is_field(const struct http_field *f, const char *name)
{
    return f->name.len == strlen(name) && strncasecmp(f->name.ptr, name, f->name.len) == 0;
}

struct str http_field(const struct http_request *q, const char *name)
{
    for (size_t i = 0; i < q->n_fields; i++)
        if (is_field(&q->fields[i], name))
            return q->fields[i].value;
    return (struct str){NULL, 0};
}

static size_t count_fields(const struct http_request *q, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < q->n_fields; i++)
        n += is_field(&q->fields[i], name);
    return n;
}

/* Printable ASCII that begins with a slash. */
static bool is_path(struct str target)
{
    for (size_t i = 0; i < target.len; i++)
        if (target.ptr[i] <= ' ' || target.ptr[i] >= 127)
            return false;
    return target.len && target.ptr[0] == '/';
}

static bool is_printable(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' && value.ptr[i] != '\t')
            return false;
    return true;
}

static bool is_number(struct str s)
{
    int64_t n;

    return s.len && s.ptr[0] != '-' && s.ptr[0] != '+' && str_to_int64(s, &n);
}

/* How long the body is must be said once, in one way. */
static const char *check_framing(const struct http_request *q)
{
    struct str length = http_field(q, "Content-Length"), coding = http_field(q, "Transfer-Encoding");

    if (length.ptr && coding.ptr)
        return "both Content-Length and Transfer-Encoding: one must go";
    if (length.ptr && !is_number(length))
        return "Content-Length is not a number";
    if (coding.ptr && (coding.len != 7 || strncasecmp(coding.ptr, "chunked", 7) != 0))
        return "Transfer-Encoding may only be chunked";
    return NULL;
}

static const char *check_fields(const struct http_request *q)
{
    static const char *const once[] = {"Host",          "Content-Length", "Transfer-Encoding", "Authorization",
                                       "Content-Type",  "Origin",         "Idempotency-Key",   "If-Match",
                                       "Last-Event-ID", "Upgrade",        "Sec-WebSocket-Key"};

    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
        if (count_fields(q, once[i]) > 1)
            return "a field stands twice that may stand once";
    for (size_t i = 0; i < q->n_fields; i++)
        if (!is_printable(q->fields[i].value))
            return "a field holds control characters";
    return check_framing(q);
}

int http_read_head(struct http_exchange *x, const char *method, const char *version, const char **ret_why)
{
    struct http_request *q = &x->request;

    q->fields = x->fields = arena_alloc(&q->arena, HTTP_FIELDS_MAX * sizeof *x->fields);
    q->method = method_from(method);
    read_peer(x);
    mhd.get_connection_values_n(x->connection, MHD_HEADER_KIND, add_field, x);
    if (q->n_fields > HTTP_FIELDS_MAX) {
        q->n_fields = HTTP_FIELDS_MAX;
        *ret_why = "too many fields";
        return 431;
    }
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        *ret_why = "HTTP/1.1 is spoken here";
        return 505;
    }
    *ret_why = !is_path(q->path) || (q->query.len && !is_printable(q->query))
                   ? "the target is not a path: it begins with a slash and is ASCII"
                   : check_fields(q);
    return *ret_why ? 400 : 0;
}

bool http_is_too_big(const struct http_request *q)
{
    struct str length = http_field(q, "Content-Length");
    int64_t n;

    return !q->sink.arg && length.ptr && str_to_int64(length, &n) && (uint64_t)n > q->body_max;
}

/* ---- the query ---- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool http_unescape(struct arena *a, struct str text, bool plus_is_space, struct str *ret)
{
    char *out = arena_alloc(a, text.len + 1);
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c == '%') {
            int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_value(text.ptr[i + 2]) : -1;

            if (high < 0 || low < 0 || high + low == 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        out[n++] = c;
    }
    out[n] = '\0';
    *ret = (struct str){out, n};
    return true;
}

/* The bytes up to `c`, which are taken from *rest together with it. */
static struct str take_until(struct str *rest, char c)
{
    const char *at = memchr(rest->ptr, c, rest->len);
    struct str taken = {rest->ptr, at ? (size_t)(at - rest->ptr) : rest->len};
    size_t n = taken.len + (at != NULL);

    *rest = (struct str){rest->ptr + n, rest->len - n};
    return taken;
}

bool http_query_each(struct http_request *q, int (*fn)(void *arg, struct str name, struct str value), void *arg)
{
    for (struct str rest = q->query; rest.len;) {
        struct str pair = take_until(&rest, '&'), name, value;

        name = take_until(&pair, '=');
        if (!http_unescape(&q->arena, name, true, &name) || !http_unescape(&q->arena, pair, true, &value))
            return false;
        if (fn(arg, name, value))
            break;
    }
    return true;
}

struct sought {
    struct str name, value;
};

static int is_sought(void *arg, struct str name, struct str value)
{
    struct sought *s = arg;

    if (!str_eq(name, s->name))
        return 0;
    s->value = value;
    return 1;
}

struct str http_query(struct http_request *q, const char *name)
{
    struct sought s = {.name = str_from(name)};

    (void)http_query_each(q, is_sought, &s);
    return s.value;
}
