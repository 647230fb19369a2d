/* SPDX-License-Identifier: Apache-2.0 */
/* Byte scanning that str, err, log and both halves of JSON share. Private to src/base; inline because it is hot. */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include <endian.h>

#include "base/utf8.h"

/* Makes text safe for a terminal and keeps it one line: control characters (C0, DEL, C1) become '?'. */
static inline void clean_line(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];

        if (c < 0x20 || c == 0x7f)
            p[i] = '?';
        else if (c == 0xc2 && i + 1 < n && (unsigned char)p[i + 1] >= 0x80 && (unsigned char)p[i + 1] < 0xa0)
            p[i] = p[i + 1] = '?';
    }
}

static inline int scan_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of the four digits at p; -1 when they are not there. */
static inline int32_t scan_hex4(const char *p, const char *end)
{
    int32_t value = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = scan_hex_digit(p[i]);

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static inline bool is_high_surrogate(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static inline bool is_low_surrogate(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

#ifdef __SSE2__
#include <emmintrin.h>

/* Steps over sixteen bytes at a time that scan_plain() would step over. Compared as signed, controls and non-ASCII are both below a blank. */
static inline const char *scan_plain_sixteens(const char *p, const char *end)
{
    const __m128i blank = _mm_set1_epi8(0x20), quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');

    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i marks =
            _mm_or_si128(_mm_cmplt_epi8(v, blank), _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));

        if (_mm_movemask_epi8(marks))
            break;
    }
    return p;
}
#else
static inline const char *scan_plain_sixteens(const char *p, const char *end)
{
    (void)end;
    return p;
}
#endif

/*
 * Finds the first byte that a JSON string does not hold as it is: a control, a quote, a backslash, anything non-ASCII.
 * Eight bytes at a time: each term sets the top bit of the bytes it is about. A borrow can only spoil bytes behind one
 * that is already marked, so the lowest mark is always right.
 */
static inline const char *scan_plain(const char *p, const char *end)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;

    p = scan_plain_sixteens(p, end);
    for (; end - p >= 8; p += 8) {
        uint64_t w, marks;

        memcpy(&w, p, 8);
        w = le64toh(w);
        marks = (w | (w - ones * 0x20) | ((w ^ ones * '"') - ones) | ((w ^ ones * '\\') - ones)) & tops;
        if (marks)
            return p + (__builtin_ctzll(marks) >> 3);
    }
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' && *p != '\\')
        p++;
    return p;
}

#endif
