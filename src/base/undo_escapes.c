/* SPDX-License-Identifier: Apache-2.0 */
#include "base/undo_escapes.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/scan.h"
#include "base/utf8.h"

#define WRAP_MIN 16 /* characters of base64 before a line break that is taken for one inside of it */

void decoded_done(struct decoded *d)
{
    if (d->text)
        explicit_bzero(d->text, d->len);
    free(d->text);
    free(d->source);
}

bool is_base64(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("+/-_", c));
}

size_t undo_backslash(const char *p, const char *end, char out[4], size_t *ret_used)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *letter = end - p >= 2 && p[1] ? strchr(from, p[1]) : NULL;
    int32_t unit, second;

    *ret_used = 2;
    if (letter) {
        out[0] = to[letter - from];
        return 1;
    }
    if (end - p < 6 || p[1] != 'u' || (unit = scan_hex4(p + 2, end)) < 0 || is_low_surrogate(unit))
        return 0;
    *ret_used = 6;
    if (!is_high_surrogate(unit))
        return utf8_put(out, (uint32_t)unit);
    second = end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? scan_hex4(p + 8, end) : -1;
    *ret_used = 12;
    return is_low_surrogate(second)
               ? utf8_put(out, 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(second - 0xdc00))
               : 0;
}

static size_t undo_percent(const char *p, const char *end, char out[4], size_t *ret_used)
{
    int high = end - p >= 3 ? scan_hex_digit(p[1]) : -1, low = high >= 0 ? scan_hex_digit(p[2]) : -1;

    *ret_used = 3;
    if (low < 0)
        return 0;
    out[0] = (char)(high << 4 | low);
    return 1;
}

/* A line break in the middle of base64: how much of what was written goes with it (a carriage return); -1: it is none. */
static int wrap_length(const char *text, size_t len)
{
    int back = len > 0 && text[len - 1] == '\r';
    size_t n = 0;

    len -= (size_t)back;
    while (n < WRAP_MIN && n < len && is_base64(text[len - 1 - n]))
        n++;
    return n == WRAP_MIN ? back : -1;
}

/* Marks the bytes of the word that are c, and maybe some behind the first of them. */
static inline uint64_t marks_of(uint64_t word, char c)
{
    const uint64_t ones = 0x0101010101010101u, other = word ^ ones * (unsigned char)c;

    return (other - ones) & ~other;
}

static const char *next_special(const char *p, const char *end, enum undo what)
{
    if (what == UNDO_BACKSLASHES) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));

        return slash ? slash : end;
    }
    for (; end - p >= 8; p += 8) {
        uint64_t word, marks;

        memcpy(&word, p, 8);
        word = le64toh(word);
        marks = (marks_of(word, '\\') | marks_of(word, '%') | marks_of(word, '\n')) & 0x8080808080808080u;
        if (marks)
            return p + (__builtin_ctzll(marks) >> 3);
    }
    while (p < end && *p != '\\' && *p != '%' && *p != '\n')
        p++;
    return p;
}

/* Three fast looks for what most texts have none of. */
static bool has_special(struct str s, enum undo what)
{
    return memchr(s.ptr, '\\', s.len) ||
           (what == UNDO_ALL && (memchr(s.ptr, '%', s.len) || memchr(s.ptr, '\n', s.len)));
}

/* Bytes that were made of `used` bytes at `at`: of as many one by one, else each of all of them. */
static void put_decoded(struct decoded *d, const char *bytes, size_t n, const struct decoded *of, size_t at,
                        size_t used)
{
    memcpy(d->text + d->len, bytes, n);
    for (size_t i = 0; d->source && i < n; i++)
        d->source[d->len + i] =
            n == used ? place_of(of, at + i) : (struct place){place_of(of, at).from, place_of(of, at + used - 1).to};
    d->len += n;
}

/* Where the first one is that is really undone: up to there nothing changes. */
static const char *first_change(struct str in, enum undo what)
{
    const char *end = in.ptr + in.len, *p = has_special(in, what) ? next_special(in.ptr, end, what) : end;
    char out[4];

    for (size_t used; p < end; p = next_special(p + 1, end, what))
        if ((*p == '\\' && undo_backslash(p, end, out, &used)) || (*p == '%' && undo_percent(p, end, out, &used)) ||
            (*p == '\n' && p + 1 < end && is_base64(p[1]) && wrap_length(in.ptr, (size_t)(p - in.ptr)) >= 0))
            break;
    return p;
}

/* The escape or the line break at p is undone; what is none stays. *ret_used is its length. */
static void undo_one(struct decoded *d, const char *p, const char *end, const struct decoded *of, size_t at,
                     size_t *ret_used)
{
    char out[4];
    size_t n = *p == '\\' ? undo_backslash(p, end, out, ret_used) : *p == '%' ? undo_percent(p, end, out, ret_used) : 0;
    int back = *p == '\n' && p + 1 < end && is_base64(p[1]) ? wrap_length(d->text, d->len) : -1;

    *ret_used = n ? *ret_used : 1;
    if (n)
        put_decoded(d, out, n, of, at, *ret_used);
    else if (back < 0)
        put_decoded(d, p, 1, of, at, 1);
    else
        d->len -= (size_t)back;
}

bool undo_encoding(struct str in, const struct decoded *of, enum undo what, bool sources, struct decoded *ret)
{
    const char *end = in.ptr + in.len, *p = first_change(in, what), *next;
    struct decoded d = {NULL, 0, NULL};

    if (p == end)
        return false;
    d.text = mem_alloc(in.len + 4);
    d.source = sources ? mem_alloc((in.len + 4) * sizeof(*d.source)) : NULL;
    put_decoded(&d, in.ptr, (size_t)(p - in.ptr), of, 0, (size_t)(p - in.ptr));
    while (p < end) {
        size_t used = 1;

        undo_one(&d, p, end, of, (size_t)(p - in.ptr), &used);
        p += used;
        next = next_special(p, end, what);
        put_decoded(&d, p, (size_t)(next - p), of, (size_t)(p - in.ptr), (size_t)(next - p));
        p = next;
    }
    *ret = d;
    return true;
}
