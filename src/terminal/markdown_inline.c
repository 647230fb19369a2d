/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emphasis, code and links. A mark opens a span only when the one that closes it has been seen: then it is known how many
 * bytes stand between them, and the span ends when they have been drawn.
 */
#include <ctype.h>

#include "terminal/markdown_state.h"

static unsigned style_now(const struct markdown *md)
{
    return md->style | (md->depth ? md->spans[md->depth - 1].style : 0);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* The code between a run of backquotes and the next of the same length; false: there is none in sight. */
static bool code_span(struct str s, size_t *ret_marks, struct str *ret_code)
{
    size_t n = run_of(s, '`'), at = n;

    while (at < s.len) {
        size_t run = run_of(past(s, at), '`');

        if (run == n) {
            *ret_marks = n;
            *ret_code = (struct str){s.ptr + n, at - n};
            return true;
        }
        at += run ? run : 1;
    }
    return false;
}

static size_t take_literal(struct markdown *md, struct str text, struct buf *out)
{
    flow_text(&md->flow, out, text, style_now(md));
    return text.len;
}

static size_t take_code(struct markdown *md, struct look l, struct buf *out)
{
    size_t marks;
    struct str code;

    if (code_span(l.s, &marks, &code) && (l.whole || l.s.len > code.len + 2 * marks)) {
        bool padded = code.len > 2 && code.ptr[0] == ' ' && code.ptr[code.len - 1] == ' ';

        flow_text(&md->flow, out, padded ? (struct str){code.ptr + 1, code.len - 2} : code, style_now(md) | STYLE_CODE);
        return code.len + 2 * marks;
    }
    return l.whole ? take_literal(md, head(l.s, run_of(l.s, '`')), out) : 0;
}

/* Where the marks that close this one begin; 0: none in sight. */
static size_t find_close(struct look l, char mark, size_t n)
{
    size_t at = n, marks, run;
    struct str code;

    while (at < l.s.len) {
        struct str rest = past(l.s, at);

        if (rest.ptr[0] == '`' && code_span(rest, &marks, &code)) {
            at += code.len + 2 * marks;
            continue;
        }
        if (rest.ptr[0] == '`' && !l.whole)
            return 0;
        run = run_of(rest, mark);
        if (run >= n && (run == n || run > 2) && at > n && !is_blank_char(rest.ptr[-1])) {
            bool word_behind = run < rest.len && is_word(rest.ptr[run]);

            if (run == rest.len && !l.whole)
                return 0;
            if (n > 1 || !word_behind)
                return at + run - n;
        }
        at += run ? run : rest.ptr[0] == '\\' ? 2 : 1;
    }
    return 0;
}

static unsigned mark_style(char mark, size_t n)
{
    static const struct {
        char mark;
        size_t n;
        unsigned style;
    } marks[] = {
        {'*', 1, STYLE_ITALIC}, {'*', 2, STYLE_BOLD},   {'*', 3, STYLE_BOLD | STYLE_ITALIC},
        {'_', 1, STYLE_ITALIC}, {'~', 2, STYLE_STRIKE},
    };

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (marks[i].mark == mark && marks[i].n == n)
            return marks[i].style;
    return 0;
}

static void open_span(struct markdown *md, size_t left, size_t skip, unsigned style, bool url)
{
    md->spans[md->depth] = (struct span){left, skip, style_now(md) | style, url};
    md->depth++;
}

static size_t take_emphasis(struct markdown *md, struct look l, struct buf *out)
{
    char mark = l.s.ptr[0];
    size_t n = run_of(l.s, mark), close = 0;
    unsigned style = mark_style(mark, n);

    if (n == l.s.len && !l.whole)
        return 0;
    if (!style || md->depth == SPANS || n == l.s.len || is_blank_char(l.s.ptr[n]) || (n == 1 && is_word(md->before)))
        return take_literal(md, head(l.s, n), out);
    close = find_close(l, mark, n);
    if (!close)
        return l.whole ? take_literal(md, head(l.s, n), out) : 0;
    open_span(md, close, n, style, false);
    return n;
}

/* Bytes from `open` to the bracket that closes it; 0: not in sight. */
static size_t bracketed(struct str s, char open, char close)
{
    int depth = 0;

    for (size_t i = 0; i < s.len; i++) {
        depth += (s.ptr[i] == open) - (s.ptr[i] == close);
        if (depth == 0)
            return i + 1;
    }
    return 0;
}

static struct str link_url(struct str parens)
{
    struct str url = {parens.ptr + 1, parens.len - 2};
    const char *title = memchr(url.ptr, ' ', url.len);

    return title ? head(url, (size_t)(title - url.ptr)) : url;
}

static size_t take_link(struct markdown *md, struct look l, struct buf *out)
{
    size_t text = bracketed(l.s, '[', ']'), url = 0;
    struct str shown = {l.s.ptr + 1, text ? text - 2 : 0};

    if (!l.whole && (!text || text == l.s.len))
        return 0;
    if (text && text < l.s.len && l.s.ptr[text] == '(') {
        url = bracketed(past(l.s, text), '(', ')');
        if (!url && !l.whole)
            return 0;
    }
    if (url < 3 || shown.len == 0 || md->depth == SPANS)
        return take_literal(md, head(l.s, 1), out);
    open_span(md, shown.len + 1, 1 + url, STYLE_UNDERLINE, !str_eq(shown, link_url((struct str){l.s.ptr + text, url})));
    return 1;
}

static size_t take_escape(struct markdown *md, struct look l, struct buf *out)
{
    if (l.s.len < 2 && !l.whole)
        return 0;
    if (l.s.len < 2 || !ispunct((unsigned char)l.s.ptr[1]))
        return take_literal(md, head(l.s, 1), out);
    take_literal(md, (struct str){l.s.ptr + 1, 1}, out);
    return 2;
}

static size_t take_char(struct markdown *md, struct look l, struct buf *out)
{
    struct glyph g = glyph_next(l.s, l.whole);

    if (l.s.ptr[0] == ' ' || l.s.ptr[0] == '\t' || l.s.ptr[0] == '\r')
        return take_literal(md, head(l.s, 1), out);
    if (g.len > 0)
        flow_glyph(&md->flow, out, g, style_now(md));
    return g.len;
}

static size_t close_span(struct markdown *md, struct str s, struct buf *out)
{
    struct span *span = &md->spans[md->depth - 1];
    size_t skip = span->skip;

    md->depth--;
    if (span->url) {
        flow_space(&md->flow, out, style_now(md));
        flow_text(&md->flow, out, STR("("), md->style | STYLE_DIM);
        flow_text(&md->flow, out, link_url((struct str){s.ptr + 1, skip - 1}), md->style | STYLE_DIM);
        flow_text(&md->flow, out, STR(")"), md->style | STYLE_DIM);
    }
    return skip;
}

static size_t take_inline(struct markdown *md, struct look l, struct buf *out)
{
    switch (l.s.ptr[0]) {
    case '`':
        return take_code(md, l, out);
    case '*':
    case '_':
    case '~':
        return take_emphasis(md, l, out);
    case '[':
        return take_link(md, l, out);
    case '\\':
        return take_escape(md, l, out);
    default:
        return take_char(md, l, out);
    }
}

size_t markdown_inline(struct markdown *md, struct str s, bool last, struct buf *out)
{
    struct look l = look_at(s, last);
    size_t n;

    if (s.ptr[0] == '\n')
        return markdown_end_line(md, out);
    if (md->depth && md->spans[md->depth - 1].left == 0) {
        n = close_span(md, s, out);
    } else {
        if (md->depth && md->spans[md->depth - 1].left <= l.s.len)
            l = (struct look){head(s, md->spans[md->depth - 1].left), true};
        n = take_inline(md, l, out);
    }
    for (int i = 0; i < md->depth && n > 0; i++)
        md->spans[i].left -= n;
    if (n > 0)
        md->before = s.ptr[n - 1];
    return n;
}
