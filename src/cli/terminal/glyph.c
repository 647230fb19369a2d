/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from models, tools and files can carry escape sequences that rewrite the screen or reach the clipboard, marks
 * that turn the direction of what is read, and characters nobody sees. None of them gets through: controls are shown as
 * their picture, tricks as the replacement character, the rest is dropped. Widths add to utf8_width what models like to write: signs and
 * emoji outside the ranges that titles need.
 */
#include "cli/terminal/glyph.h"

#include "cli/terminal/utf8.h"

struct range {
    uint32_t from, to;
};

/* Of no width and no use on a terminal. */
static const struct range dropped[] = {
    {0xad, 0xad}, {0x180e, 0x180e}, {0x200b, 0x200b}, {0x2060, 0x2065}, {0xfeff, 0xfeff}};

static const struct range wide[] = {
    {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},   {0x26d4, 0x26d4},
    {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},   {0x26fa, 0x26fa},   {0x26fd, 0x26fd},
    {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},
    {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a},
    {0x1f200, 0x1f265}, {0x1f7e0, 0x1f7eb}, {0x1fa70, 0x1faff},
};

static const struct range narrow[] = {
    {0x303f, 0x303f},   {0x1f321, 0x1f32c}, {0x1f336, 0x1f336}, {0x1f37d, 0x1f37d}, {0x1f394, 0x1f39f},
    {0x1f3cb, 0x1f3ce}, {0x1f3d4, 0x1f3df}, {0x1f3f1, 0x1f3f3}, {0x1f3f5, 0x1f3f7}, {0x1f43f, 0x1f43f},
    {0x1f441, 0x1f441}, {0x1f4fd, 0x1f4fe}, {0x1f53e, 0x1f54a}, {0x1f54f, 0x1f54f}, {0x1f568, 0x1f579},
    {0x1f57b, 0x1f594}, {0x1f597, 0x1f5a3}, {0x1f5a5, 0x1f5fa}, {0x1f6c6, 0x1f6cb}, {0x1f6cd, 0x1f6cf},
    {0x1f6e0, 0x1f6ea}, {0x1f6f0, 0x1f6f3},
};

static const struct range marks[] = {
    {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},   {0x064b, 0x065f}, {0x0670, 0x0670}, {0x06d6, 0x06dc},
    {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948},   {0x094d, 0x094d}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a},
    {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},   {0x200c, 0x200d}, {0x20d0, 0x20f0}, {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

#define LEN(table) (sizeof(table) / sizeof((table)[0]))

static bool is_in(const struct range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].from && c <= ranges[i].to)
            return true;
    return false;
}

static int width_of(uint32_t c)
{
    if (c < 0x300)
        return 1;
    if (is_in(marks, LEN(marks), c))
        return 0;
    if (is_in(narrow, LEN(narrow), c))
        return 1;
    return is_in(wide, LEN(wide), c) ? 2 : (int)utf8_width(c);
}

/* Bytes that may still become a character when more come. */
static bool is_cut(struct str s)
{
    unsigned char lead = (unsigned char)s.ptr[0];
    size_t n = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;

    for (size_t i = 1; i < s.len; i++)
        if (((unsigned char)s.ptr[i] & 0xc0) != 0x80)
            return false;
    return s.len < n;
}

static struct str picture(uint32_t c)
{
    static const char pictures[] = "␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟";

    if (c == 0x7f)
        return STR("␡");
    return c < 0x20 ? (struct str){pictures + 3 * (size_t)c, 3} : STR("\xef\xbf\xbd");
}

struct glyph glyph_next(struct str s, bool last)
{
    uint32_t c = 0xfffd;
    size_t n = utf8_next(s, &c);

    if (n == 0)
        return (struct glyph){last || !is_cut(s), STR("\xef\xbf\xbd"), 1};
    if (is_in(dropped, LEN(dropped), c))
        return (struct glyph){n, STR(""), 0};
    if (utf8_is_unseen(c) && !utf8_is_joiner(c))
        return (struct glyph){n, picture(c), 1};
    return (struct glyph){n, {s.ptr, n}, width_of(c)};
}

static struct str past(struct str s, size_t n)
{
    return (struct str){s.ptr + n, s.len - n};
}

void glyph_clean(struct buf *out, struct str text)
{
    while (text.len > 0) {
        char c = text.ptr[0];
        struct glyph g = c == '\n' ? (struct glyph){1, STR("\n"), 0} : glyph_next(text, true);

        g.show = c == '\t' ? STR("    ") : c == '\r' ? STR("") : g.show;
        buf_add_str(out, g.show);
        text = past(text, g.len);
    }
}

/* A line end or a tab in a text of one line. */
static struct glyph in_line(struct str s)
{
    if (s.ptr[0] == '\n' || s.ptr[0] == '\t')
        return (struct glyph){1, STR(" "), 1};
    return s.ptr[0] == '\r' ? (struct glyph){1, STR(""), 0} : glyph_next(s, true);
}

/* Bytes of `text` that fit into so many columns; *ret_columns: what they take. */
static size_t fitting(struct str text, int columns, int *ret_columns)
{
    size_t at = 0;

    *ret_columns = 0;
    while (at < text.len) {
        struct glyph g = in_line(past(text, at));

        if (*ret_columns + g.width > columns)
            break;
        *ret_columns += g.width;
        at += g.len;
    }
    return at;
}

int glyph_fit(struct buf *out, struct str text, int columns)
{
    int used;
    size_t end = fitting(text, columns, &used);
    bool cut = end < text.len;

    if (cut)
        end = fitting(text, columns - 1, &used);
    for (size_t at = 0; at < end;) {
        struct glyph g = in_line(past(text, at));

        buf_add_str(out, g.show);
        at += g.len;
    }
    if (cut && columns > 0)
        buf_add_str(out, STR("…"));
    return used + (cut && columns > 0);
}
