/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cursor never stands inside a character, nor between one and the marks that combine with it: the code that moves it does
 * so by next() and previous().
 */
#include "terminal/line_text.h"

#include <ctype.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "terminal/glyph.h"

void line_text_init(struct line_text *t)
{
    *t = (struct line_text){.text = BUF_INIT(LINE_MAX_BYTES), .killed = BUF_INIT(LINE_MAX_BYTES)};
}

void line_text_done(struct line_text *t)
{
    buf_done(&t->text);
    buf_done(&t->killed);
}

void line_text_set(struct line_text *t, struct str text)
{
    buf_clear(&t->text);
    t->at = 0;
    line_text_insert(t, text);
}

/* ---- places ---- */

static bool is_mark(const struct line_text *t, size_t at)
{
    struct str rest = {t->text.ptr + at, t->text.len - at};

    return (unsigned char)rest.ptr[0] >= 0x80 && glyph_next(rest, true).width == 0;
}

static size_t next_glyph(const struct line_text *t, size_t at)
{
    do {
        for (at++; at < t->text.len && utf8_is_tail(t->text.ptr[at]);)
            at++;
    } while (at < t->text.len && is_mark(t, at));
    return at < t->text.len ? at : t->text.len;
}

static size_t previous_glyph(const struct line_text *t, size_t at)
{
    do {
        for (at--; at > 0 && utf8_is_tail(t->text.ptr[at]);)
            at--;
    } while (at > 0 && is_mark(t, at));
    return at;
}

static bool in_word(const struct line_text *t, size_t at)
{
    unsigned char c = (unsigned char)t->text.ptr[at];

    return isalnum(c) || c >= 0x80 || c == '_';
}

static size_t word_left(const struct line_text *t)
{
    size_t at = t->at;

    while (at > 0 && !in_word(t, previous_glyph(t, at)))
        at = previous_glyph(t, at);
    while (at > 0 && in_word(t, previous_glyph(t, at)))
        at = previous_glyph(t, at);
    return at;
}

static size_t word_right(const struct line_text *t)
{
    size_t at = t->at;

    while (at < t->text.len && !in_word(t, at))
        at = next_glyph(t, at);
    while (at < t->text.len && in_word(t, at))
        at = next_glyph(t, at);
    return at;
}

static size_t home_of(const struct line_text *t, size_t at)
{
    while (at > 0 && t->text.ptr[at - 1] != '\n')
        at--;
    return at;
}

static size_t last_of(const struct line_text *t, size_t at)
{
    while (at < t->text.len && t->text.ptr[at] != '\n')
        at++;
    return at;
}

/* ---- changes ---- */

static void splice_text(struct line_text *t, size_t from, size_t to, struct str by)
{
    size_t tail = t->text.len - to;

    if (by.len > to - from && !buf_reserve(&t->text, by.len - (to - from)))
        return;
    if (t->text.len > 0)
        memmove(t->text.ptr + from + by.len, t->text.ptr + to, tail);
    if (by.len > 0)
        memcpy(t->text.ptr + from, by.ptr, by.len);
    t->text.len = from + by.len + tail;
    t->at = from + by.len;
}

static void kill_range(struct line_text *t, size_t from, size_t to)
{
    if (from == to)
        return;
    buf_clear(&t->killed);
    buf_add(&t->killed, t->text.ptr + from, to - from);
    splice_text(t, from, to, STR(""));
}

static void clean_text(struct buf *out, struct str s)
{
    while (s.len > 0) {
        uint32_t c;
        size_t n = utf8_next(s, &c);
        bool crlf = s.len > 1 && s.ptr[0] == '\r' && s.ptr[1] == '\n';

        if (n == 1 && (c == '\n' || c == '\t' || c == '\r'))
            buf_add_str(out, c == '\t' ? STR("\t") : crlf ? STR("") : STR("\n"));
        else if (n > 0 && !utf8_is_control(c))
            buf_add(out, s.ptr, n);
        n = n ? n : 1;
        s = (struct str){s.ptr + n, s.len - n};
    }
}

void line_text_insert(struct line_text *t, struct str bytes)
{
    AUTO(buf_done) struct buf cleaned = BUF_INIT(LINE_MAX_BYTES);

    clean_text(&cleaned, bytes);
    splice_text(t, t->at, t->at, buf_view(&cleaned));
}

void line_text_replace(struct line_text *t, size_t from, struct str by)
{
    AUTO(buf_done) struct buf cleaned = BUF_INIT(LINE_MAX_BYTES);

    clean_text(&cleaned, by);
    splice_text(t, from, t->at, buf_view(&cleaned));
}

/* ---- keys ---- */

void line_left(struct line_text *t)
{
    t->at = t->at > 0 ? previous_glyph(t, t->at) : 0;
}

void line_right(struct line_text *t)
{
    t->at = t->at < t->text.len ? next_glyph(t, t->at) : t->at;
}

void line_word_left(struct line_text *t)
{
    t->at = word_left(t);
}

void line_word_right(struct line_text *t)
{
    t->at = word_right(t);
}

void line_home(struct line_text *t)
{
    t->at = home_of(t, t->at);
}

void line_last(struct line_text *t)
{
    t->at = last_of(t, t->at);
}

/* As many characters into the other line as the cursor stood into this one. */
static void go_to_line(struct line_text *t, size_t home)
{
    size_t from = home_of(t, t->at), n = 0, last = last_of(t, home);

    for (size_t at = from; at < t->at; at = next_glyph(t, at))
        n++;
    for (t->at = home; n > 0 && t->at < last; n--)
        t->at = next_glyph(t, t->at);
}

bool line_up(struct line_text *t)
{
    size_t home = home_of(t, t->at);

    if (home > 0)
        go_to_line(t, home_of(t, home - 1));
    return home > 0;
}

bool line_down(struct line_text *t)
{
    size_t last = last_of(t, t->at);

    if (last == t->text.len)
        return false;
    go_to_line(t, last + 1);
    return true;
}

void line_erase_left(struct line_text *t)
{
    if (t->at > 0)
        splice_text(t, previous_glyph(t, t->at), t->at, STR(""));
}

void line_erase_right(struct line_text *t)
{
    if (t->at < t->text.len)
        splice_text(t, t->at, next_glyph(t, t->at), STR(""));
}

void line_kill_word_left(struct line_text *t)
{
    kill_range(t, word_left(t), t->at);
}

void line_kill_word_right(struct line_text *t)
{
    kill_range(t, t->at, word_right(t));
}

void line_kill_home(struct line_text *t)
{
    kill_range(t, home_of(t, t->at), t->at);
}

/* At the end of a line its line end goes. */
void line_kill_last(struct line_text *t)
{
    size_t last = last_of(t, t->at);

    kill_range(t, t->at, last == t->at && last < t->text.len ? last + 1 : last);
}

void line_kill_all(struct line_text *t)
{
    kill_range(t, 0, t->text.len);
}

void line_yank(struct line_text *t)
{
    splice_text(t, t->at, t->at, buf_view(&t->killed));
}

/* The character before the cursor and the one behind it; at the end, the last two. */
void line_swap(struct line_text *t)
{
    AUTO(buf_done) struct buf swapped = BUF_INIT(64);
    size_t mid, from, to;

    if (t->at == t->text.len)
        line_left(t);
    if (t->at == 0 || t->at == t->text.len)
        return;
    mid = t->at;
    from = previous_glyph(t, mid);
    to = next_glyph(t, mid);
    buf_add(&swapped, t->text.ptr + mid, to - mid);
    buf_add(&swapped, t->text.ptr + from, mid - from);
    if (!swapped.failed)
        splice_text(t, from, to, buf_view(&swapped));
}

void line_new_line(struct line_text *t)
{
    line_text_insert(t, STR("\n"));
}
