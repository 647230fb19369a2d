/* SPDX-License-Identifier: Apache-2.0 */
/* Characters in bytes: where they begin and end, which they are, and how a terminal shows them, without a locale. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/str.h"

static inline bool utf8_is_tail(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Length of the valid UTF-8 sequence at the start of n bytes; 0 when there is none. */
static inline size_t utf8_len(const char *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    uint32_t c;

    if (n >= 1 && p[0] < 0x80)
        return 1;
    if (n < 2 || !utf8_is_tail(bytes[1]))
        return 0;
    if (p[0] < 0xe0)
        return p[0] >= 0xc2 ? 2 : 0;
    if (n < 3 || !utf8_is_tail(bytes[2]))
        return 0;
    c = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    if (p[0] < 0xf0)
        return c >= 0x800 && (c < 0xd800 || c > 0xdfff) ? 3 : 0;
    return n >= 4 && utf8_is_tail(bytes[3]) && p[0] < 0xf8 && c >= 0x400 && c <= 0x43ff ? 4 : 0;
}

/* Writes a code point, which must be valid; returns its length. */
static inline size_t utf8_put(char out[4], uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* The code point of a valid sequence of n bytes. */
static inline uint32_t utf8_get(const char *p, size_t n)
{
    uint32_t c = (unsigned char)p[0] & (n == 1 ? 0x7fu : 0x7fu >> n);

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3fu);
    return c;
}

/* The first max bytes at most, not ending inside a character. */
static inline struct str utf8_clip(struct str s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && utf8_is_tail(s.ptr[max]))
        max--;
    return (struct str){s.ptr, max};
}

/* Length of the character at the start of `s` and its code point; 0 when there is none or it is not valid. */
size_t utf8_next(struct str s, uint32_t *ret_char);
size_t utf8_chars(struct str s);                   /* how many */
struct str utf8_first(struct str s, size_t chars); /* so many of them at most */

bool utf8_is_control(uint32_t c); /* C0, DEL, C1, and marks that turn the direction of text */
int utf8_width(uint32_t c);       /* 0, 1 or 2 columns */

/*
 * What stored text must not do to its reader: controls, marks of direction, and characters that nobody sees (without a width,
 * fillers, tags). They are shown as something else wherever text of others is shown, but for data as it is (JSON, pipes).
 * Joiners are among them: prose, where letters and emoji need them, lets them through.
 */
bool utf8_is_unseen(uint32_t c);
bool utf8_is_joiner(uint32_t c);

struct utf8_range {
    uint32_t from, to;
};
bool utf8_in(const struct utf8_range *ranges, size_t n, uint32_t c);

#endif
