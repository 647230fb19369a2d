/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tools print may be anything; what a model gets must be valid Unicode, because providers refuse a request that is
 * not, and a session that holds such a result could never be sent again. NUL is valid, but stores and peers choke on it.
 */
#include "agent/tool_text.h"

#include "agent/tool.h"
#include "base/utf8.h"

#define CLUSTER_MAX 32 /* characters that a cut steps back; text that is nothing but marks is cut anywhere */

/* First byte that must not stay; s.len when all may. */
static size_t first_bad(struct str s)
{
    const char *nul = s.len ? memchr(s.ptr, '\0', s.len) : NULL;
    size_t at = s.len, end = nul ? (size_t)(nul - s.ptr) : s.len;

    return str_is_utf8((struct str){s.ptr, end}, &at) ? end : at;
}

bool text_clean(struct buf *text)
{
    struct str rest = buf_view(text);
    struct buf clean = BUF_INIT(text->max > 3 * rest.len ? text->max : 3 * rest.len); /* nothing is dropped here */
    size_t at = first_bad(rest);

    if (at == rest.len)
        return false;
    while (at < rest.len) {
        buf_add(&clean, rest.ptr, at);
        buf_add_str(&clean, STR("\xef\xbf\xbd"));
        rest = (struct str){rest.ptr + at + 1, rest.len - at - 1};
        while (rest.len && utf8_is_tail(*rest.ptr)) /* one mark for one broken character */
            rest = (struct str){rest.ptr + 1, rest.len - 1};
        at = first_bad(rest);
    }
    buf_add_str(&clean, rest);
    clean.failed |= text->failed;
    buf_done(text);
    *text = clean;
    return true;
}

static uint32_t code_at(struct str s, size_t at)
{
    uint32_t c = 0;

    (void)utf8_next((struct str){s.ptr + at, s.len - at}, &c);
    return c;
}

#define JOINER 0x200d

/* Marks that stand on the character before them, where text of people has them. */
static bool is_mark(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5c7},   {0x610, 0x61a},   {0x64b, 0x65f},    {0x93a, 0x94f},
        {0xe31, 0xe3a},   {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {JOINER, JOINER},  {0x20d0, 0x20ff},
        {0x302a, 0x302f}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

static size_t step_back(struct str s, size_t at)
{
    do
        at--;
    while (at > 0 && utf8_is_tail(s.ptr[at]));
    return at;
}

/* Whether a cut before the byte `at`, where a character begins, parts what belongs together. */
static bool parts(struct str s, size_t at)
{
    if (at == 0 || at >= s.len)
        return false;
    return is_mark(code_at(s, at)) || code_at(s, step_back(s, at)) == JOINER ||
           (s.ptr[at] == '\n' && s.ptr[at - 1] == '\r');
}

size_t text_head(struct str s, size_t max_chars)
{
    size_t whole = utf8_first(s, max_chars).len, at = whole;

    for (int i = 0; i < CLUSTER_MAX && parts(s, at); i++)
        at = step_back(s, at);
    return parts(s, at) ? whole : at;
}

size_t text_tail(struct str s, size_t max_chars)
{
    size_t at = s.len, whole;

    for (size_t n = 0; n < max_chars && at > 0; n++)
        at = step_back(s, at);
    whole = at;
    for (int i = 0; i < CLUSTER_MAX && parts(s, at); i++)
        do
            at++;
        while (at < s.len && utf8_is_tail(s.ptr[at]));
    return s.len - (parts(s, at) ? whole : at);
}

void text_number(struct buf *out, uint64_t n)
{
    if (n >= 1000) {
        text_number(out, n / 1000);
        buf_addf(out, ",%03u", (unsigned)(n % 1000));
    } else {
        buf_addf(out, "%u", (unsigned)n);
    }
}

bool tool_hide(struct secrets *secrets, struct buf *text)
{
    struct buf clean = BUF_INIT(text->max);

    if (!secrets_clean(secrets, buf_view(text), &clean))
        return false;
    buf_done(text);
    *text = clean;
    return true;
}

void tool_cut(struct buf *text, size_t max_chars)
{
    struct str all = buf_view(text);
    size_t keep = max_chars ? text_head(all, max_chars) : all.len;

    if (keep == all.len)
        return;
    size_t missing = utf8_chars((struct str){all.ptr + keep, all.len - keep});

    text->len = keep;
    buf_add_str(text, STR("\n[… "));
    text_number(text, missing);
    buf_add_str(text, missing == 1 ? STR(" more character]") : STR(" more characters]"));
}

void text_line(struct buf *out, struct str s, size_t max_chars)
{
    struct buf line = BUF_INIT(s.len * 3 + 1);
    const char *end = s.len ? memchr(s.ptr, '\n', s.len) : NULL;
    struct str all;
    size_t keep;

    buf_add(&line, s.ptr, end ? (size_t)(end - s.ptr) : s.len);
    text_clean(&line);
    all = buf_view(&line);
    keep = text_head(all, max_chars);
    for (size_t at = 0, n; at < keep; at += n) {
        uint32_t c = 0;

        n = utf8_next((struct str){all.ptr + at, all.len - at}, &c); /* cleaned: never 0 */
        if (utf8_is_control(c))
            buf_add_char(out, c == '\t' ? ' ' : '?');
        else
            buf_add(out, all.ptr + at, n);
    }
    if (end || keep < all.len)
        buf_add_str(out, STR("…"));
    buf_done(&line);
}
