/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both the words and the text are folded: capitals become small letters of the same length in UTF-8, and everything else
 * stays as it is. Texts are put one behind the other with a byte between them that no word has, so that no word is found
 * across two of them.
 */
#include "base/word_search.h"

#include "base/utf8.h"

#define BETWEEN '\n' /* words have no blanks */
#define FOLDED_MAX (SIZE_MAX / 4)

/* Those that have as many bytes as their capitals. */
static uint32_t fold_char(uint32_t c)
{
    if (c >= 0xc0 && c <= 0xde && c != 0xd7) /* Latin-1 */
        return c + 0x20;
    if ((c >= 0x100 && c <= 0x12f) || (c >= 0x132 && c <= 0x137) || (c >= 0x14a && c <= 0x177))
        return c | 1;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
        return c + (c & 1);
    if (c >= 0x391 && c <= 0x3a9) /* Greek */
        return c + 0x20;
    if (c >= 0x410 && c <= 0x42f) /* Cyrillic */
        return c + 0x20;
    if (c >= 0x400 && c <= 0x40f)
        return c + 0x50;
    return c;
}

static char *put_char(char *out, uint32_t c)
{
    return out + utf8_put(out, fold_char(c));
}

static char fold_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The four digits of an escape; false: there are none. */
static bool read_hex(const char *p, const char *end, uint32_t *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p + i < end ? hex_digit(p[i]) : -1;

        if (digit < 0)
            return false;
        *ret = *ret << 4 | (uint32_t)digit;
    }
    return true;
}

/* Behind a backslash; returns what comes next. */
static const char *put_escaped(char **out, const char *p, const char *end)
{
    uint32_t c, low;

    if (*p != 'u' || !read_hex(p + 1, end, &c)) {
        *(*out)++ = *p == 'n' || *p == 'r' || *p == 't' ? ' ' : fold_ascii(*p);
        return p + 1;
    }
    p += 5;
    if (c >= 0xd800 && c <= 0xdbff && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && read_hex(p + 2, end, &low) &&
        low >= 0xdc00 && low <= 0xdfff) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    if (c < 0xd800 || c > 0xdfff)
        *out = put_char(*out, c);
    return p;
}

/* It never gets longer. */
static void fold(struct buf *folded, struct str s, bool escapes)
{
    const char *p = s.ptr, *end = s.ptr + s.len;
    char *begin = buf_reserve(folded, s.len + 1), *out = begin;

    if (!begin)
        return;
    while (p < end) {
        size_t n;

        if ((unsigned char)*p < 0x80) {
            if (escapes && *p == '\\' && p + 1 < end)
                p = put_escaped(&out, p + 1, end);
            else
                *out++ = fold_ascii(*p++);
            continue;
        }
        n = utf8_len(p, (size_t)(end - p));
        if (n)
            out = put_char(out, utf8_get(p, n));
        p += n ? n : 1;
    }
    *out++ = BETWEEN;
    folded->len += (size_t)(out - begin);
}

void word_search_init(struct word_search *w, const char *text)
{
    struct str rest = str_from(text);

    *w = (struct word_search){.words = BUF_INIT(FOLDED_MAX), .folded = BUF_INIT(FOLDED_MAX)};
    while (w->n < SEARCH_WORDS) {
        size_t len = 0, at = w->words.len;

        rest = str_trim(rest);
        while (len < rest.len && !is_blank_char(rest.ptr[len]))
            len++;
        if (!len)
            return;
        fold(&w->words, (struct str){rest.ptr, len}, false);
        w->word[w->n].at = at;
        w->word[w->n++].len = w->words.len - at - 1;
        rest = (struct str){rest.ptr + len, rest.len - len};
    }
}

void word_search_done(struct word_search *w)
{
    buf_done(&w->words);
    buf_done(&w->folded);
}

static bool has_each(const struct word_search *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (!memmem(w->folded.ptr, w->folded.len, w->words.ptr + w->word[i].at, w->word[i].len))
            return false;
    return true;
}

bool word_search_finds(struct word_search *w, const struct str *texts, size_t n)
{
    buf_clear(&w->folded);
    for (size_t i = 0; w->n && i < n; i++)
        fold(&w->folded, texts[i], false);
    return has_each(w);
}

bool word_search_finds_json(struct word_search *w, struct str text, struct str json)
{
    if (!w->n)
        return true;
    buf_clear(&w->folded);
    fold(&w->folded, text, false);
    fold(&w->folded, json, memchr(json.ptr, '\\', json.len) != NULL);
    return has_each(w);
}
