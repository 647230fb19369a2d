/* SPDX-License-Identifier: Apache-2.0 */
#include "server/route.h"

const struct field *field_find(const struct field *table, struct str name)
{
    for (const struct field *f = table; f && f->name; f++)
        if (str_eq(name, str_from(f->name)))
            return f;
    return NULL;
}

/* The next segment of a path that begins with a slash, which is taken. */
static struct str next_segment(struct str *rest)
{
    const char *from = rest->ptr + 1, *slash = memchr(from, '/', rest->len - 1);
    struct str s = {from, slash ? (size_t)(slash - from) : rest->len - 1};

    *rest = (struct str){from + s.len, rest->len - 1 - s.len};
    return s;
}

/* Segment by segment: what is escaped in one stays in it, and an empty one, "." or ".." is no parameter. */
static bool path_matches(struct arena *a, const char *pattern, struct str path, struct str ret[ROUTE_PARAMS])
{
    struct str left = str_from(pattern);
    size_t n = 0;

    while (left.len && path.len) {
        struct str want = next_segment(&left), got = next_segment(&path);

        if (want.len && want.ptr[0] == '{') {
            if (!http_unescape(a, got, false, &ret[n]) || !ret[n].len || str_eq(ret[n], STR(".")) ||
                str_eq(ret[n], STR("..")))
                return false;
            n++;
        } else if (!str_eq(want, got)) {
            return false;
        }
    }
    return !left.len && !path.len;
}

const struct route *route_find(struct arena *a, struct str path, enum http_method method,
                               struct str ret_params[ROUTE_PARAMS], unsigned *ret_methods)
{
    struct str below = str_starts(path, STR(API_ROOT "/"))
                           ? (struct str){path.ptr + strlen(API_ROOT), path.len - strlen(API_ROOT)}
                           : STR("");

    *ret_methods = 0;
    for (size_t i = 0; route_tables[i]; i++)
        for (const struct route *r = route_tables[i]; r->method; r++) {
            if (!path_matches(a, r->path, r->flags & ROUTE_AT_ROOT ? path : below, ret_params))
                continue;
            if (r->method == method || (method == HTTP_HEAD && r->method == HTTP_GET))
                return r;
            *ret_methods |= r->method;
        }
    return NULL;
}

const struct route *route_named(struct str action)
{
    for (size_t i = 0; route_tables[i]; i++)
        for (const struct route *r = route_tables[i]; r->method; r++)
            if (str_eq(action, str_from(r->action)))
                return r;
    return NULL;
}
