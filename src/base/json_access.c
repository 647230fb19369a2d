/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking into parsed JSON. Nothing here can fail: json_parse has checked every escape before, so a tree that exists
 * decodes.
 */
#include "base/json.h"
#include "base/scan.h"

/* Decodes the escape at p, which the parser has checked; *ret_used is its length in the source. */
static size_t unescape_char(const char *p, const char *end, char out[4], size_t *ret_used)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int32_t unit, second;

    *ret_used = 2;
    if (p[1] != 'u') {
        out[0] = to[strchr(from, p[1]) - from];
        return 1;
    }
    unit = scan_hex4(p + 2, end);
    *ret_used = 6;
    if (!is_high_surrogate(unit))
        return utf8_put(out, (uint32_t)unit);
    second = scan_hex4(p + 8, end);
    *ret_used = 12;
    return utf8_put(out, 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(second - 0xdc00));
}

static struct str decode_string(struct arena *a, struct str raw)
{
    const char *p = raw.ptr, *end = p + raw.len;
    char *begin = arena_alloc(a, raw.len + 4), *out = begin; /* decoding only shortens; unescape may use 4 bytes */

    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t n = (size_t)((slash ? slash : end) - p), used = 0;

        memcpy(out, p, n);
        out += n;
        if (slash)
            out += unescape_char(slash, end, out, &used);
        p += n + used;
    }
    return (struct str){begin, (size_t)(out - begin)};
}

struct str json_text(struct arena *a, const struct json *string)
{
    return string->text_escaped ? decode_string(a, string->raw) : string->raw;
}

struct str json_key_text(struct arena *a, const struct json *member)
{
    return member->key_escaped ? decode_string(a, member->key) : member->key;
}

bool json_key_eq_escaped(const struct json *member, struct str key)
{
    const char *p = member->key.ptr, *end = p + member->key.len;
    char one[4];
    size_t n, used;

    for (; p < end; p += used, key = (struct str){key.ptr + n, key.len - n}) {
        used = n = 1;
        one[0] = *p;
        if (*p == '\\')
            n = unescape_char(p, end, one, &used);
        if (key.len < n || memcmp(key.ptr, one, n) != 0)
            return false;
    }
    return key.len == 0;
}

struct str json_source(const struct json *v)
{
    if (v->type == JSON_STRING)
        return (struct str){v->raw.ptr - 1, v->raw.len + 2};
    return v->raw;
}

const struct json *json_get(const struct json *object, struct str key)
{
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    for (const struct json *m = object->first; m; m = m->next)
        if (json_key_eq(m, key))
            return m;
    return NULL;
}

bool json_int(const struct json *v, int64_t *ret_value)
{
    return v && v->type == JSON_NUMBER && str_to_int64(v->raw, ret_value);
}

bool json_same(struct arena *a, const struct json *x, const struct json *y)
{
    if (x->type != y->type || x->count != y->count)
        return false;
    if (x->type == JSON_STRING)
        return str_eq(json_text(a, x), json_text(a, y));
    if (x->type == JSON_NUMBER)
        return str_eq(x->raw, y->raw);
    for (const struct json *m = x->first, *n = y->first; m; m = m->next, n = n->next) {
        const struct json *other = x->type == JSON_OBJECT ? json_get(y, json_key_text(a, m)) : n;

        if (!other || !json_same(a, m, other))
            return false;
    }
    return true;
}

struct str json_get_text(struct arena *a, const struct json *object, struct str key)
{
    const struct json *v = json_get(object, key);

    return v && v->type == JSON_STRING ? json_text(a, v) : STR("");
}

int64_t json_get_int(const struct json *object, struct str key, int64_t otherwise)
{
    int64_t value = otherwise;

    json_int(json_get(object, key), &value);
    return value;
}

bool json_get_bool(const struct json *object, struct str key, bool otherwise)
{
    const struct json *v = json_get(object, key);

    if (v && (v->type == JSON_TRUE || v->type == JSON_FALSE))
        return v->type == JSON_TRUE;
    return otherwise;
}
