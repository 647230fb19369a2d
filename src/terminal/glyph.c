/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from models, tools and files can carry escape sequences that rewrite the screen or reach the clipboard, marks
 * that turn the direction of what is read, and characters nobody sees. None of them gets through: controls are shown as
 * their picture, tricks as the replacement character, the rest is dropped.
 */
#include "terminal/glyph.h"

#include <limits.h>

#include "base/utf8.h"

/* Of no width and no use on a terminal. */
static const struct utf8_range dropped[] = {
    {0xad, 0xad}, {0x180e, 0x180e}, {0x200b, 0x200b}, {0x2060, 0x2065}, {0xfeff, 0xfeff}};

/* Bytes that may still become a character when more come. */
static bool is_cut(struct str s)
{
    unsigned char lead = (unsigned char)s.ptr[0];
    size_t n = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;

    for (size_t i = 1; i < s.len; i++)
        if (!utf8_is_tail(s.ptr[i]))
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
    if (utf8_in(dropped, sizeof(dropped) / sizeof(dropped[0]), c))
        return (struct glyph){n, STR(""), 0};
    if (utf8_is_unseen(c) && !utf8_is_joiner(c))
        return (struct glyph){n, picture(c), 1};
    return (struct glyph){n, {s.ptr, n}, utf8_width(c)};
}

static struct str past(struct str s, size_t n)
{
    return (struct str){s.ptr + n, s.len - n};
}

void glyph_escape(struct buf *out, uint32_t c)
{
    if (c > 0xffff)
        buf_addf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
    else
        buf_addf(out, "\\u%04x", (unsigned)c);
}

void glyph_clean_json(struct buf *out, struct str json)
{
    while (json.len > 0) {
        uint32_t c = 0;
        size_t n = utf8_next(json, &c);

        if (n > 0 && c >= 0x7f && utf8_is_unseen(c) && !utf8_is_joiner(c))
            glyph_escape(out, c);
        else
            buf_add(out, json.ptr, n ? n : 1);
        json = past(json, n ? n : 1);
    }
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

/* In a text of one line a line end or a tab is a blank; in a name it is as suspicious as anything else that nobody sees. */
static struct glyph in_line(struct str s, bool name)
{
    uint32_t c = 0;
    size_t n = name ? utf8_next(s, &c) : 0;

    if (n && utf8_is_unseen(c))
        return (struct glyph){n, STR("\xef\xbf\xbd"), 1};
    if (s.ptr[0] == '\n' || s.ptr[0] == '\t')
        return (struct glyph){1, STR(" "), 1};
    return s.ptr[0] == '\r' ? (struct glyph){1, STR(""), 0} : glyph_next(s, true);
}

/* Bytes of `text` that fit into so many columns; *ret_columns: what they take. `out` NULL: only counted. */
static size_t fitting(struct buf *out, struct str text, bool name, int columns, int *ret_columns)
{
    size_t at = 0;

    *ret_columns = 0;
    while (at < text.len) {
        struct glyph g = in_line(past(text, at), name);

        if (*ret_columns + g.width > columns)
            break;
        if (out)
            buf_add_str(out, g.show);
        *ret_columns += g.width;
        at += g.len;
    }
    return at;
}

static int fit_text(struct buf *out, struct str text, bool name, int columns)
{
    int used;
    bool cut = fitting(NULL, text, name, columns, &used) < text.len;

    fitting(out, text, name, columns - cut, &used);
    if (cut && columns > 0)
        buf_add_str(out, STR("…"));
    return used + (cut && columns > 0);
}

int glyph_fit(struct buf *out, struct str text, int columns)
{
    return fit_text(out, text, false, columns);
}

int name_fit(struct buf *out, struct str text, int columns)
{
    return fit_text(out, text, true, columns);
}

int text_columns(struct str text)
{
    int columns;

    fitting(NULL, text, true, INT_MAX, &columns);
    return columns;
}
