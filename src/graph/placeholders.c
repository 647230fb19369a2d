/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts with placeholders. A prompt may hold code and JSON, so only what looks like a key in braces is a placeholder: {key},
 * {key.member}; every other brace is itself. {{ is always one brace, and }} is one where a {{ before it is still open: so
 * {{key}} gives {key}, and {"a":{"b":1}} stays what it is.
 */
#include "base/map.h"
#include "graph/node_work.h"

#define NAMES_MAX 120 /* bytes of keys in a message */

enum piece { PIECE_END, PIECE_PLAIN, PIECE_KEY };

struct reader {
    struct str left;
    size_t open; /* {{ that are not closed */
};

static bool in_key(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80 ||
           (!first && ((c >= '0' && c <= '9') || c == '-' || c == '.'));
}

/* The key of a placeholder at the beginning of the text; empty: there is none. */
static struct str key_at(struct str s)
{
    size_t n = 1;

    while (n < s.len && in_key(s.ptr[n], n == 1))
        n++;
    if (s.len < 3 || s.ptr[0] != '{' || n == 1 || n == s.len || s.ptr[n] != '}' || s.ptr[n - 1] == '.')
        return (struct str){"", 0};
    return (struct str){s.ptr + 1, n - 1};
}

static struct str advance_reader(struct reader *r, size_t n)
{
    struct str taken = {r->left.ptr, n};

    r->left = (struct str){r->left.ptr + n, r->left.len - n};
    return taken;
}

static bool is_twice(struct str s, char c)
{
    return s.len >= 2 && s.ptr[0] == c && s.ptr[1] == c;
}

static enum piece next_piece(struct reader *r, struct str *ret)
{
    size_t n = 0;

    if (r->left.len == 0)
        return PIECE_END;
    while (n < r->left.len && r->left.ptr[n] != '{' && r->left.ptr[n] != '}')
        n++;
    if (n > 0) {
        *ret = advance_reader(r, n);
        return PIECE_PLAIN;
    }
    if (is_twice(r->left, '{') || (r->open > 0 && is_twice(r->left, '}'))) {
        r->open = r->left.ptr[0] == '{' ? r->open + 1 : r->open - 1;
        advance_reader(r, 1);
        *ret = advance_reader(r, 1);
        return PIECE_PLAIN;
    }
    *ret = key_at(r->left);
    if (ret->len > 0) {
        advance_reader(r, ret->len + 2);
        return PIECE_KEY;
    }
    *ret = advance_reader(r, 1);
    return PIECE_PLAIN;
}

/* A key may have dots itself; else they lead to members. */
static const struct json *value_of(const struct json *values, struct str path)
{
    const struct json *v = json_get(values, path);

    while (!v && path.len > 0) {
        const char *dot = memchr(path.ptr, '.', path.len);
        size_t n = dot ? (size_t)(dot - path.ptr) : path.len;

        values = json_get(values, (struct str){path.ptr, n});
        if (!values || !dot)
            return values;
        path = (struct str){dot + 1, path.len - n - 1};
        v = json_get(values, path);
    }
    return v;
}

static enum tide_code refuse_key(const struct json *values, struct str key, struct tide_err *err)
{
    AUTO(buf_done) struct buf names = BUF_INIT(NAMES_MAX);
    AUTO(arena_done) struct arena a = ARENA_INIT;

    for (const struct json *m = values->first; m && !names.failed; m = m->next) {
        struct str name = json_key_text(&a, m);

        buf_addf(&names, "%s%.*s", names.len ? ", " : "", STR_ARG(name));
    }
    return tide_fail(err, TIDE_INVALID, "the placeholder {%.*s} has no value: there is %s%s",
                     (int)(key.len < 64 ? key.len : 64), key.ptr, names.len ? buf_cstr(&names) : "nothing",
                     names.failed ? ", …" : "");
}

enum tide_code placeholders_fill(struct str text, const struct json *values, struct buf *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct reader r = {text, 0};
    struct str piece;

    for (enum piece what; (what = next_piece(&r, &piece)) != PIECE_END;) {
        const struct json *v = what == PIECE_KEY ? value_of(values, piece) : NULL;

        if (what == PIECE_PLAIN)
            buf_add_str(ret, piece);
        else if (!v)
            return refuse_key(values, piece, err);
        else if (v->type == JSON_STRING)
            buf_add_str(ret, json_text(&a, v));
        else
            json_write(ret, v);
    }
    if (ret->failed)
        return tide_fail(err, TIDE_TOO_BIG, "with its values the text has more than %zu bytes", ret->max);
    return TIDE_OK;
}

void placeholders_keys(struct str text, void (*fn)(void *arg, struct str key), void *arg)
{
    struct map seen = {0};
    struct reader r = {text, 0};
    struct str piece;

    for (enum piece what; (what = next_piece(&r, &piece)) != PIECE_END;)
        if (what == PIECE_KEY && !map_put(&seen, piece, &seen))
            fn(arg, piece);
    map_done(&seen, NULL);
}
