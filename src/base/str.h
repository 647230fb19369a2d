/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowed bytes. A slice never owns, may contain NUL, and is never freed. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_ARG(s) (int)(s).len, (s).ptr

static inline struct str str_from(const char *cstr) /* NULL gives the empty slice */
{
    return (struct str){cstr ? cstr : "", cstr ? strlen(cstr) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || (a.ptr[0] == b.ptr[0] && memcmp(a.ptr, b.ptr, a.len) == 0));
}

static inline bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static inline bool is_blank_char(char c) /* what C calls space, in any locale */
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s); /* without the blanks at both ends */
static inline bool str_is_blank(struct str s)
{
    return str_trim(s).len == 0;
}

uint64_t str_hash(struct str s);

/* Parses the whole slice as a decimal integer with optional '-'; false when it is anything else or overflows. */
bool str_to_int64(struct str s, int64_t *ret_value);

/* True when `s` is valid UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF). *ret_at: first bad byte. */
bool str_is_utf8(struct str s, size_t *ret_at);

/* ids of sessions and checkpoints: 1 to 64 of [A-Za-z0-9_-], not starting with '-'. */
bool str_is_id(struct str s);

void hex_encode(char *out /* 2*n + 1 */, const unsigned char *bytes, size_t n);
bool hex_decode(unsigned char *out, size_t n, struct str hex); /* exactly 2*n lower-case digits */

#endif
