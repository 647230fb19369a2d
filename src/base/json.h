/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict RFC 8259 JSON: a parser into an arena and a writer into a buffer. Numbers and strings keep their source text,
 * so what is read and written again is the same bytes.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* One value. Children of an array or object are a list in source order. */
struct json {
    enum json_type type : 8;
    bool key_escaped : 1;  /* key contains backslash escapes: compare with json_key_eq */
    bool text_escaped : 1; /* string contains backslash escapes: decode with json_text */
    uint32_t count;        /* children */
    struct str key;        /* raw, without quotes; empty unless a member of an object */
    struct str raw;        /* source text: of a string without its quotes, of a container from bracket to bracket */
    struct json *first, *next;
};

#define JSON_MAX_DEPTH 128

struct json_limits {
    size_t max_bytes;   /* 0: no limit beyond the slice */
    unsigned max_depth; /* 0: JSON_MAX_DEPTH */
};

/*
 * Parses the whole slice: one value with white space around it. The tree points into `text`, which must outlive it.
 * TIDE_INVALID names line, column and fault: duplicate key, lone surrogate, invalid UTF-8, raw control character,
 * NUL byte, nesting too deep, anything after the value. `limits` may be NULL. *ret_compact (may be NULL): whether
 * the value had no white space outside strings, so that its text is already what json_write would give.
 */
enum tide_code json_parse(struct arena *a, struct str text, const struct json_limits *limits, struct json **ret_json,
                          bool *ret_compact, struct tide_err *err) MUST_CHECK;

/* The same of one line of many: a fault names the column alone. */
enum tide_code json_parse_line(struct arena *a, struct str line, struct json **ret_json, struct tide_err *err)
    MUST_CHECK;

/* The raw text of a value as it stands in the source, quotes included for strings. */
struct str json_source(const struct json *v);

const struct json *json_get(const struct json *object, struct str key); /* NULL when absent or not an object */
bool json_key_eq_escaped(const struct json *member, struct str key);
static inline bool json_key_eq(const struct json *member, struct str key)
{
    return member->key_escaped ? json_key_eq_escaped(member, key) : str_eq(member->key, key);
}
struct str json_text(struct arena *a, const struct json *string); /* decoded; a view of the source when not escaped */
struct str json_key_text(struct arena *a, const struct json *member);
bool json_int(const struct json *v, int64_t *ret_value); /* true for an integer that fits exactly (1e2 does not) */

/* The same value, however it is written: blanks, escapes and the order of members do not count; the text of numbers does. */
bool json_same(struct arena *a, const struct json *x, const struct json *y);

/* Typed member access with a default for absent or mistyped ones. */
struct str json_get_text(struct arena *a, const struct json *object, struct str key); /* empty slice by default */
int64_t json_get_int(const struct json *object, struct str key, int64_t otherwise);
bool json_get_bool(const struct json *object, struct str key, bool otherwise);

/* Writes the value compactly: key order, number text and string escapes exactly as in the source. */
void json_write(struct buf *out, const struct json *v);

/* Writes with two-space indentation, for people. */
void json_write_pretty(struct buf *out, const struct json *v);

/* A writer with sticky errors: commas and colons come by themselves. */
struct json_out {
    struct buf *buf;
    unsigned depth;
    bool first; /* nothing written yet in the current container */
};

static inline struct json_out json_out_to(struct buf *buf)
{
    return (struct json_out){buf, 0, true};
}
void json_out_begin(struct json_out *o, char bracket); /* '{' or '[' */
void json_out_end(struct json_out *o, char bracket);   /* '}' or ']' */
void json_out_key(struct json_out *o, struct str key); /* then one value */
void json_out_str(struct json_out *o, struct str s);   /* quotes and escapes; invalid UTF-8 becomes U+FFFD */
void json_out_int(struct json_out *o, int64_t v);
void json_out_bool(struct json_out *o, bool v);
void json_out_null(struct json_out *o);
void json_out_raw(struct json_out *o, struct str json); /* a complete value, as it is */

/* key and value in one; the _opt form writes nothing for an empty slice. */
void json_out_kstr(struct json_out *o, struct str key, struct str s);
void json_out_kstr_opt(struct json_out *o, struct str key, struct str s);
void json_out_kint(struct json_out *o, struct str key, int64_t v);
void json_out_kbool(struct json_out *o, struct str key, bool v);
void json_out_kraw(struct json_out *o, struct str key, struct str json);

/* Just the quoted, escaped string. */
void json_quote(struct buf *out, struct str s);

#endif
