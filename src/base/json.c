/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading JSON: strict RFC 8259, one pass, every value a node of the arena that points into the source. The pass
 * checks everything (grammar, UTF-8, surrogates, unique keys); what comes later, decoding in json_access.c above all,
 * relies on it and cannot fail. Recursion is bounded by max_depth, about 200 bytes of stack for each level.
 *
 * Keys of an object are compared one by one while there are few of them; from FEW_KEYS on they go into a hash table,
 * so that neither a large object nor one made to collide (str_hash is keyed) costs more than its length.
 */
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/scan.h"

#define FEW_KEYS 16
#define SHOWN_KEY_MAX 64 /* bytes of a key shown in a message */

struct parser {
    struct arena *arena;
    const char *begin, *p, *end;
    unsigned depth, max_depth;
    bool spaced;   /* white space was seen */
    bool one_line; /* of many, which the caller counts */
    struct tide_err *err;
};

struct key_slot {
    uint64_t hash;
    const struct json *member; /* NULL: empty */
};

struct key_table {
    struct key_slot *slots;
    size_t cap, used; /* cap is 0 or a power of two */
};

/* ---- faults ---- */

/* Columns count characters. Finding them costs a second look at the text, but only when it is wrong. */
__attribute__((cold, format(printf, 3, 4))) static enum tide_code fail_at(struct parser *ps, const char *at,
                                                                          const char *fmt, ...)
{
    size_t line = 1, column = 1;
    char fault[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(fault, sizeof(fault), fmt, args);
    va_end(args);
    for (const char *p = ps->begin; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (!utf8_is_tail(*p)) {
            column++;
        }
    }
    if (ps->one_line)
        return tide_fail(ps->err, TIDE_INVALID, "column %zu: %s", column, fault);
    tide_fail(ps->err, TIDE_INVALID, "line %zu, column %zu: %s", line, column, fault);
    return tide_about_position(ps->err, TIDE_SUBJECT_FILE, (int64_t)line);
}

__attribute__((cold)) static enum tide_code fail_expected(struct parser *ps, const char *what)
{
    unsigned char c = ps->p < ps->end ? (unsigned char)*ps->p : 0;

    if (ps->p == ps->end)
        return fail_at(ps, ps->p, "expected %s, found the end", what);
    if (c == 0)
        return fail_at(ps, ps->p, "expected %s, found a NUL byte", what);
    if (c < 0x20 || c >= 0x7f)
        return fail_at(ps, ps->p, "expected %s, found byte 0x%02x", what, c);
    return fail_at(ps, ps->p, "expected %s, found '%c'", what, c);
}

__attribute__((cold)) static enum tide_code fail_control(struct parser *ps, const char *at)
{
    if (*at == '\0')
        return fail_at(ps, at, "NUL byte in a string");
    return fail_at(ps, at, "raw control character 0x%02x in a string", (unsigned char)*at);
}

/* ---- tokens ---- */

static void skip_run_of_space(struct parser *ps)
{
    const char *p = ps->p;

    while (p < ps->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    ps->spaced |= p > ps->p;
    ps->p = p;
}

static inline void skip_space(struct parser *ps)
{
    if (ps->p < ps->end && (unsigned char)*ps->p <= ' ')
        skip_run_of_space(ps);
}

/* Steps over \uXXXX, or two of them that are a pair. */
static enum tide_code pass_unicode(struct parser *ps)
{
    const char *p = ps->p, *end = ps->end;
    int32_t unit = scan_hex4(p + 2, end), second = -1;

    if (unit < 0)
        return fail_at(ps, p, "\\u without four hex digits");
    ps->p += 6;
    if (!is_high_surrogate(unit) && !is_low_surrogate(unit))
        return TIDE_OK;
    if (is_high_surrogate(unit) && end - p >= 12 && p[6] == '\\' && p[7] == 'u')
        second = scan_hex4(p + 8, end);
    if (!is_low_surrogate(second))
        return fail_at(ps, p, "lone surrogate %.6s", p);
    ps->p += 6;
    return TIDE_OK;
}

static enum tide_code pass_escape(struct parser *ps)
{
    char c;

    if (ps->end - ps->p < 2)
        return fail_at(ps, ps->p, "string without an end");
    c = ps->p[1];
    if (c == 'u')
        return pass_unicode(ps);
    if (c == '\0' || !strchr("\"\\/bfnrt", c))
        return fail_at(ps, ps->p, "unknown escape \\%c", c > ' ' ? c : '?');
    ps->p += 2;
    return TIDE_OK;
}

static enum tide_code pass_utf8(struct parser *ps)
{
    do {
        size_t n = utf8_len(ps->p, (size_t)(ps->end - ps->p));

        if (n == 0)
            return fail_at(ps, ps->p, "invalid UTF-8, byte 0x%02x", (unsigned char)*ps->p);
        ps->p += n;
    } while (ps->p < ps->end && (unsigned char)*ps->p >= 0x80);
    return TIDE_OK;
}

/* ps->p is at the opening quote. */
static enum tide_code parse_string(struct parser *ps, struct str *ret_raw, bool *ret_escaped)
{
    const char *begin = ++ps->p;
    bool escaped = false;

    for (;;) {
        unsigned char c;

        ps->p = scan_plain(ps->p, ps->end);
        if (ps->p == ps->end)
            return fail_at(ps, begin - 1, "string without an end");
        c = (unsigned char)*ps->p;
        if (c == '"')
            break;
        if (c < 0x20)
            return fail_control(ps, ps->p);
        escaped |= c == '\\';
        if (c == '\\' ? pass_escape(ps) : pass_utf8(ps))
            return TIDE_INVALID;
    }
    *ret_raw = (struct str){begin, (size_t)(ps->p++ - begin)};
    *ret_escaped = escaped;
    return TIDE_OK;
}

/* At least one digit. */
static enum tide_code pass_digits(struct parser *ps)
{
    const char *p = ps->p;

    while (p < ps->end && *p >= '0' && *p <= '9')
        p++;
    if (p == ps->p)
        return fail_expected(ps, "a digit");
    ps->p = p;
    return TIDE_OK;
}

static bool take_char(struct parser *ps, char c)
{
    if (ps->p == ps->end || *ps->p != c)
        return false;
    ps->p++;
    return true;
}

static enum tide_code parse_number(struct parser *ps, struct json *v)
{
    const char *begin = ps->p;

    take_char(ps, '-');
    if (!take_char(ps, '0') && pass_digits(ps))
        return TIDE_INVALID;
    if (take_char(ps, '.') && pass_digits(ps))
        return TIDE_INVALID;
    if (take_char(ps, 'e') || take_char(ps, 'E')) {
        if (!take_char(ps, '+'))
            take_char(ps, '-');
        if (pass_digits(ps))
            return TIDE_INVALID;
    }
    v->type = JSON_NUMBER;
    v->raw = (struct str){begin, (size_t)(ps->p - begin)};
    return TIDE_OK;
}

static enum tide_code parse_word(struct parser *ps, struct json *v, enum json_type type, struct str word)
{
    if (!str_starts((struct str){ps->p, (size_t)(ps->end - ps->p)}, word))
        return fail_at(ps, ps->p, "expected a value, found '%c'", *ps->p);
    v->type = type;
    v->raw = (struct str){ps->p, word.len};
    ps->p += word.len;
    return TIDE_OK;
}

/* ---- unique keys ---- */

static void table_done(struct key_table *t)
{
    if (t->slots)
        free(t->slots);
}

/* The slot that holds the key, or the empty one where it belongs. */
static struct key_slot *table_find(const struct key_table *t, struct str key, uint64_t hash)
{
    size_t i = hash & (t->cap - 1);

    while (t->slots[i].member && !(t->slots[i].hash == hash && json_key_eq(t->slots[i].member, key)))
        i = (i + 1) & (t->cap - 1);
    return &t->slots[i];
}

static void table_grow(struct key_table *t)
{
    struct key_table old = *t;

    t->cap = old.cap ? 2 * old.cap : 8 * (size_t)FEW_KEYS;
    t->slots = mem_array(t->cap, sizeof(*t->slots));
    for (size_t i = 0; i < old.cap; i++) {
        size_t at = old.slots[i].hash & (t->cap - 1);

        if (!old.slots[i].member)
            continue;
        while (t->slots[at].member)
            at = (at + 1) & (t->cap - 1);
        t->slots[at] = old.slots[i];
    }
    table_done(&old);
}

/* False when the key is there already. */
static bool table_add(struct key_table *t, const struct json *member, struct str key)
{
    uint64_t hash = str_hash(key);
    struct key_slot *slot;

    if (2 * (t->used + 1) > t->cap)
        table_grow(t);
    slot = table_find(t, key, hash);
    if (slot->member)
        return false;
    *slot = (struct key_slot){hash, member};
    t->used++;
    return true;
}

/* Whether no earlier member of the object has the member's key; remembers it. */
static bool is_new_key(struct parser *ps, const struct json *object, struct key_table *t, const struct json *member)
{
    struct str key = json_key_text(ps->arena, member);

    if (object->count < FEW_KEYS) {
        for (const struct json *m = object->first; m; m = m->next)
            if ((m->key_escaped || m->key.len == key.len) && json_key_eq(m, key))
                return false;
        return true;
    }
    if (t->used == 0)
        for (const struct json *m = object->first; m; m = m->next)
            table_add(t, m, json_key_text(ps->arena, m));
    return table_add(t, member, key);
}

/* ---- values ---- */

static enum tide_code parse_value(struct parser *ps, struct json *v);

static struct json *new_value(struct parser *ps)
{
    struct json *v = arena_alloc(ps->arena, sizeof(*v));

    *v = (struct json){.key = {"", 0}};
    return v;
}

/* The key, the colon and the space around it. */
static enum tide_code parse_key(struct parser *ps, const struct json *object, struct key_table *t, struct json *member)
{
    const char *begin = ps->p;
    bool escaped;

    if (begin == ps->end || *begin != '"')
        return fail_expected(ps, "a key in quotes");
    if (parse_string(ps, &member->key, &escaped))
        return TIDE_INVALID;
    member->key_escaped = escaped;
    if (!is_new_key(ps, object, t, member)) {
        struct str shown = utf8_clip(member->key, SHOWN_KEY_MAX);

        return fail_at(ps, begin, "duplicate key \"%.*s%s", STR_ARG(shown), shown.len < member->key.len ? "…" : "\"");
    }
    skip_space(ps);
    if (!take_char(ps, ':'))
        return fail_expected(ps, "':'");
    skip_space(ps);
    return TIDE_OK;
}

/* Items up to the closing bracket, which is taken. At least one: the empty container is the caller's. */
static enum tide_code parse_items(struct parser *ps, struct json *v, char close)
{
    AUTO(table_done) struct key_table keys = {0};
    struct json **link = &v->first;

    for (;;) {
        struct json *item = new_value(ps);

        if ((v->type == JSON_OBJECT && parse_key(ps, v, &keys, item)) || parse_value(ps, item))
            return TIDE_INVALID;
        *link = item;
        link = &item->next;
        v->count++;
        skip_space(ps);
        if (take_char(ps, close))
            return TIDE_OK;
        if (!take_char(ps, ','))
            return fail_expected(ps, close == '}' ? "',' or '}'" : "',' or ']'");
        skip_space(ps);
    }
}

static enum tide_code parse_container(struct parser *ps, struct json *v, enum json_type type, char close)
{
    const char *begin = ps->p;

    if (ps->depth == ps->max_depth)
        return fail_at(ps, begin, "nesting deeper than %u", ps->max_depth);
    v->type = type;
    ps->depth++;
    ps->p++;
    skip_space(ps);
    if (!take_char(ps, close) && parse_items(ps, v, close))
        return TIDE_INVALID;
    ps->depth--;
    v->raw = (struct str){begin, (size_t)(ps->p - begin)};
    return TIDE_OK;
}

static enum tide_code parse_text(struct parser *ps, struct json *v)
{
    bool escaped;

    if (parse_string(ps, &v->raw, &escaped))
        return TIDE_INVALID;
    v->type = JSON_STRING;
    v->text_escaped = escaped;
    return TIDE_OK;
}

static enum tide_code parse_value(struct parser *ps, struct json *v)
{
    switch (ps->p < ps->end ? *ps->p : '\0') {
    case '"':
        return parse_text(ps, v);
    case '{':
        return parse_container(ps, v, JSON_OBJECT, '}');
    case '[':
        return parse_container(ps, v, JSON_ARRAY, ']');
    case 't':
        return parse_word(ps, v, JSON_TRUE, STR("true"));
    case 'f':
        return parse_word(ps, v, JSON_FALSE, STR("false"));
    case 'n':
        return parse_word(ps, v, JSON_NULL, STR("null"));
    case '-':
    case '0' ... '9':
        return parse_number(ps, v);
    default:
        return fail_expected(ps, "a value");
    }
}

static enum tide_code parse_document(struct arena *a, struct str text, const struct json_limits *limits, bool one_line,
                                     struct json **ret_json, bool *ret_compact, struct tide_err *err)
{
    size_t max = limits && limits->max_bytes ? limits->max_bytes : UINT32_MAX;
    struct parser ps = {.arena = a, .begin = text.len ? text.ptr : "", .one_line = one_line, .err = err};
    struct json *v;

    if (text.len > max || text.len > UINT32_MAX) /* so that `count` cannot overflow */
        return tide_fail(err, TIDE_TOO_BIG, "JSON of %zu bytes, at most %zu are allowed", text.len, max);
    ps.max_depth = limits && limits->max_depth ? limits->max_depth : JSON_MAX_DEPTH;
    ps.p = ps.begin;
    ps.end = ps.begin + text.len;
    v = new_value(&ps);
    skip_space(&ps);
    if (parse_value(&ps, v))
        return TIDE_INVALID;
    skip_space(&ps);
    if (ps.p != ps.end)
        return fail_expected(&ps, "the end");
    if (ret_compact)
        *ret_compact = !ps.spaced;
    *ret_json = v;
    return TIDE_OK;
}

enum tide_code json_parse(struct arena *a, struct str text, const struct json_limits *limits, struct json **ret_json,
                          bool *ret_compact, struct tide_err *err)
{
    return parse_document(a, text, limits, false, ret_json, ret_compact, err);
}

enum tide_code json_parse_line(struct arena *a, struct str line, struct json **ret_json, struct tide_err *err)
{
    return parse_document(a, line, NULL, true, ret_json, NULL, err);
}
