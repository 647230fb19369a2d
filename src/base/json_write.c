/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON. A parsed tree is written from its source text, so numbers and escapes come out as they came in; the
 * json_out calls build new text. Errors are the buffer's: write freely, look at `failed` once.
 *
 * json_out keeps one bit of state, `first`: whether the next thing stands at the beginning of its container or behind
 * its key, where no comma belongs.
 */
#include <assert.h>

#include "base/json.h"
#include "base/scan.h"

/* ---- parsed values ---- */

/* With its quotes, which stand around it in the source. */
static struct str quoted(struct str raw)
{
    return (struct str){raw.ptr - 1, raw.len + 2};
}

void json_write(struct buf *out, const struct json *v)
{
    bool object = v->type == JSON_OBJECT;

    if (!object && v->type != JSON_ARRAY) {
        buf_add_str(out, json_source(v));
        return;
    }
    buf_add_char(out, object ? '{' : '[');
    for (const struct json *item = v->first; item; item = item->next) {
        if (item != v->first)
            buf_add_char(out, ',');
        if (object) {
            buf_add_str(out, quoted(item->key));
            buf_add_char(out, ':');
        }
        json_write(out, item);
    }
    buf_add_char(out, object ? '}' : ']');
}

static void new_line(struct buf *out, unsigned indent)
{
    buf_add_char(out, '\n');
    while (indent-- > 0)
        buf_add_str(out, STR("  "));
}

static void write_indented(struct buf *out, const struct json *v, unsigned indent)
{
    bool object = v->type == JSON_OBJECT;

    if (!v->first) {
        json_write(out, v);
        return;
    }
    buf_add_char(out, object ? '{' : '[');
    for (const struct json *item = v->first; item; item = item->next) {
        if (item != v->first)
            buf_add_char(out, ',');
        new_line(out, indent + 1);
        if (object) {
            buf_add_str(out, quoted(item->key));
            buf_add_str(out, STR(": "));
        }
        write_indented(out, item, indent + 1);
    }
    new_line(out, indent);
    buf_add_char(out, object ? '}' : ']');
}

void json_write_pretty(struct buf *out, const struct json *v)
{
    write_indented(out, v, 0);
}

/* ---- new text ---- */

/* The character at p, which cannot stand as it is; returns its length in the input. */
static size_t quote_one(struct buf *out, const char *p, size_t left)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    unsigned char c = (unsigned char)*p;
    size_t n = utf8_len(p, left);
    const char *name = c ? strchr(named, c) : NULL;

    if (n == 0) {
        buf_add_str(out, STR("\xef\xbf\xbd"));
        return 1;
    }
    if (n > 1)
        buf_add(out, p, n);
    else if (name)
        buf_add(out, (const char[]){'\\', letters[name - named]}, 2);
    else
        buf_addf(out, "\\u%04x", c);
    return n;
}

void json_quote(struct buf *out, struct str s)
{
    const char *p = s.len ? s.ptr : "", *end = p + s.len;
    char *at = scan_plain(p, end) == end ? buf_reserve(out, s.len + 2) : NULL;

    if (at) { /* nothing to escape: most of what is written */
        *at = '"';
        memcpy(at + 1, p, s.len);
        at[s.len + 1] = '"';
        out->len += s.len + 2;
        return;
    }
    buf_add_char(out, '"');
    while (p < end) {
        const char *stop = scan_plain(p, end);

        buf_add(out, p, (size_t)(stop - p));
        p = stop;
        if (p < end)
            p += quote_one(out, p, (size_t)(end - p));
    }
    buf_add_char(out, '"');
}

/* Before every value and every key. */
static void put_separator(struct json_out *o)
{
    if (!o->first)
        buf_add_char(o->buf, ',');
    o->first = false;
}

void json_out_begin(struct json_out *o, char bracket)
{
    put_separator(o);
    buf_add_char(o->buf, bracket);
    o->depth++;
    o->first = true;
}

void json_out_end(struct json_out *o, char bracket)
{
    assert(o->depth > 0);
    buf_add_char(o->buf, bracket);
    o->depth--;
    o->first = false;
}

void json_out_key(struct json_out *o, struct str key)
{
    put_separator(o);
    json_quote(o->buf, key);
    buf_add_char(o->buf, ':');
    o->first = true;
}

void json_out_raw(struct json_out *o, struct str json)
{
    put_separator(o);
    buf_add_str(o->buf, json);
}

void json_out_str(struct json_out *o, struct str s)
{
    put_separator(o);
    json_quote(o->buf, s);
}

void json_out_int(struct json_out *o, int64_t v)
{
    put_separator(o);
    buf_add_int(o->buf, v);
}

void json_out_bool(struct json_out *o, bool v)
{
    json_out_raw(o, v ? STR("true") : STR("false"));
}

void json_out_null(struct json_out *o)
{
    json_out_raw(o, STR("null"));
}

void json_out_kstr(struct json_out *o, struct str key, struct str s)
{
    json_out_key(o, key);
    json_out_str(o, s);
}

void json_out_kstr_opt(struct json_out *o, struct str key, struct str s)
{
    if (s.len > 0)
        json_out_kstr(o, key, s);
}

void json_out_kint(struct json_out *o, struct str key, int64_t v)
{
    json_out_key(o, key);
    json_out_int(o, v);
}

void json_out_kbool(struct json_out *o, struct str key, bool v)
{
    json_out_key(o, key);
    json_out_bool(o, v);
}

void json_out_kraw(struct json_out *o, struct str key, struct str json)
{
    json_out_key(o, key);
    json_out_raw(o, json);
}
