/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer is read while it is written, so nothing waits for its end, and nothing drawn is drawn again: a mark such as
 * ** is held back until its other half is there, or can no longer come (the line has ended, or LOOK bytes have passed),
 * and then it is style or plain text. Every decision is made from the bytes behind the place it is made at, never from
 * where a piece ended. That is what makes any split of a text give the same bytes.
 *
 *   LINE_START --block known--> INLINE or VERBATIM --line end--> LINE_START
 *
 * What the model meant as text is never lost: a mark that opens nothing is shown, and __init__ and snake_case are no
 * emphasis. Only a table waits for its end: how wide its columns are its last row decides.
 */
#include "terminal/markdown.h"

#include <ctype.h>
#include <stdio.h>

#include "base/mem.h"
#include "terminal/markdown_state.h"

#define PENDING_MAX ((size_t)64 << 20)
#define TAB 4

static bool has_layout(const struct markdown *md)
{
    return md->mode == MARKDOWN_MONOCHROME || md->mode == MARKDOWN_STYLED;
}

static void begin_flow(struct markdown *md, int columns)
{
    flow_init(&md->flow, columns);
    md->flow.monochrome = md->mode == MARKDOWN_MONOCHROME;
}

struct markdown *markdown_new(enum markdown_mode mode, int columns)
{
    struct markdown *md = mem_zero(sizeof(*md));

    md->mode = mode;
    md->pending = (struct buf)BUF_INIT(PENDING_MAX);
    begin_flow(md, columns);
    return md;
}

void markdown_free(struct markdown *md)
{
    if (!md)
        return;
    buf_done(&md->pending);
    free(md);
}

void markdown_columns(struct markdown *md, int columns)
{
    md->flow.columns = columns < 8 ? 8 : columns;
}

/* ---- lines as they are: code, and what looks like a table and is none ---- */

size_t markdown_end_line(struct markdown *md, struct buf *out)
{
    flow_end_line(&md->flow, out);
    md->where = LINE_START;
    md->depth = 0;
    md->style = 0;
    md->before = '\0';
    return 1;
}

static size_t step_verbatim(struct markdown *md, struct str s, bool last, struct buf *out)
{
    unsigned style = md->fence.mark ? STYLE_CODE : md->style;
    struct glyph g;
    int blank;

    if (s.ptr[0] == '\n')
        return markdown_end_line(md, out);
    if (s.ptr[0] == '\r')
        return 1;
    g = glyph_next(s, last);
    blank = TAB - (md->flow.column > md->flow.prefix.width ? md->flow.column - md->flow.prefix.width : 0) % TAB;
    for (; s.ptr[0] == '\t' && blank > 0; blank--)
        flow_verbatim(&md->flow, out, (struct glyph){1, STR(" "), 1}, style);
    if (s.ptr[0] != '\t' && g.len > 0)
        flow_verbatim(&md->flow, out, g, style);
    return g.len;
}

/* ---- where a line begins ---- */

static void prefix_add(struct flow_prefix *p, const char *first, const char *hang, int width)
{
    size_t a = strlen(p->first), b = strlen(p->hang);

    if (a + strlen(first) >= sizeof(p->first) || b + strlen(hang) >= sizeof(p->hang))
        return;
    memcpy(p->first + a, first, strlen(first) + 1);
    memcpy(p->hang + b, hang, strlen(hang) + 1);
    p->width += width;
}

static void prefix_blanks(const struct markdown *md, struct flow_prefix *p, size_t n)
{
    for (size_t i = 0; i < n && p->width < md->flow.columns / 3; i++)
        prefix_add(p, " ", " ", 1);
}

/* How many bytes mark an item of a list ("- ", "12. "); 0: none. */
static size_t item_mark(struct str s)
{
    size_t n = 0;

    while (n < s.len && n < 9 && isdigit((unsigned char)s.ptr[n]))
        n++;
    if (n > 0 && n < s.len && (s.ptr[n] == '.' || s.ptr[n] == ')'))
        n++;
    else
        n = n == 0 && s.len > 0 && strchr("-*+", s.ptr[0]) ? 1 : 0;
    return n > 0 && n < s.len && s.ptr[n] == ' ' ? n + 1 : 0;
}

/* Whether what is seen of a line could still become another kind of block than it seems. */
static bool is_open(struct str s)
{
    size_t n = 0;

    while (n < s.len && strchr("0123456789.)", s.ptr[n]))
        n++;
    if (n == s.len && n < 12)
        return true;
    n = s.len ? run_of(s, s.ptr[0]) : 0;
    return s.len > 0 && strchr("#-*_`~+>", s.ptr[0]) && n + blanks(past(s, n)) == s.len;
}

static bool is_rule(struct str s)
{
    size_t n = s.len ? run_of(s, s.ptr[0]) : 0;

    return n >= 3 && strchr("-*_", s.ptr[0]) && n + blanks(past(s, n)) == s.len;
}

static bool is_fence(struct str s)
{
    size_t n = s.len ? run_of(s, s.ptr[0]) : 0;

    return n >= 3 && (s.ptr[0] == '~' || (s.ptr[0] == '`' && !memchr(s.ptr + n, '`', s.len - n)));
}

/*
 * The line that opens a code block shows its language, if it names one, in a way that is not taken for code. All of it is
 * taken, the line end too.
 */
static size_t open_fence(struct markdown *md, struct str line, size_t at, struct str all, struct flow_prefix *p,
                         struct buf *out)
{
    struct str s = past(line, at);
    size_t marks = run_of(s, s.ptr[0]), gap = blanks(past(s, marks));
    struct str name = past(s, marks + gap);

    md->fence.mark = s.ptr[0];
    md->fence.len = marks;
    md->fence.indent = at;
    if (name.len > 0 && blanks(name) < name.len) {
        prefix_add(p, "  ", "  ", 2);
        flow_prefix(&md->flow, p);
        flow_text(&md->flow, out, STR("── "), STYLE_DIM);
        flow_text(&md->flow, out, name, STYLE_DIM);
        flow_end_line(&md->flow, out);
    }
    return line.len + (line.len < all.len);
}

static size_t begin_text(struct markdown *md, struct str s, struct flow_prefix *p, struct buf *out)
{
    size_t n = run_of(s, '#'), mark = item_mark(s);
    char text[16], hang[16];

    md->where = INLINE;
    if (n > 0 && n <= 6 && n < s.len && s.ptr[n] == ' ') {
        md->style = n == 1 ? STYLE_BOLD | STYLE_UNDERLINE : STYLE_BOLD;
        mark = n + 1;
    } else if (mark > 0 && !is_rule(s)) {
        memcpy(text, s.ptr, mark);
        text[mark] = '\0';
        snprintf(hang, sizeof(hang), "%*s", (int)mark, "");
        prefix_add(p, isdigit((unsigned char)text[0]) ? text : "• ", hang, (int)mark);
    }
    flow_prefix(&md->flow, p);
    if (is_rule(s)) {
        for (int i = p->width; i < (md->flow.columns < 40 ? md->flow.columns : 40); i++)
            flow_verbatim(&md->flow, out, (struct glyph){1, STR("─"), 1}, STYLE_DIM);
        return s.len;
    }
    md->where = s.len && s.ptr[0] == '|' ? VERBATIM : INLINE;
    return mark;
}

/* Blank lines are drawn when something follows them: none at the beginning, none at the end, one at a time. */
static void draw_blank(struct markdown *md, struct buf *out)
{
    if (md->blank && md->any)
        flow_end_line(&md->flow, out);
    md->blank = false;
    md->any = true;
}

/* A line with a bar at its beginning: *ret_n bytes of a table, or 0 when more must come. False: it is text. */
static bool step_table(struct markdown *md, struct str all, bool last, struct buf *out, size_t *ret_n)
{
    AUTO(buf_done) struct buf drawn = BUF_INIT(PENDING_MAX);
    bool open = false;

    *ret_n = markdown_table(md, all, last, &drawn, &open);
    if (*ret_n > 0) {
        draw_blank(md, out);
        buf_add_str(out, buf_view(&drawn));
    }
    return *ret_n > 0 || open;
}

/* A fence waits for its line end; only LOOK bytes are waited for. */
static size_t step_block(struct markdown *md, struct str all, bool last, struct buf *out)
{
    struct look l = look_at(all, last);
    struct flow_prefix p = {.width = 0};
    size_t at = blanks(l.s), table;

    prefix_blanks(md, &p, at);
    while (at < l.s.len && l.s.ptr[at] == '>' && (l.whole || at + 1 < l.s.len)) {
        prefix_add(&p, "│ ", "│ ", 2);
        p.style = STYLE_DIM;
        at++;
        at += at < l.s.len && l.s.ptr[at] == ' ';
    }
    if (!l.whole && is_open(past(l.s, at)))
        return 0;
    if (at == l.s.len && p.style == 0 && l.s.len < LOOK) {
        md->blank = true;
        return at + (at < all.len);
    }
    if (at < l.s.len && l.s.ptr[at] == '|' && !p.style && step_table(md, all, last, out, &table))
        return table;
    draw_blank(md, out);
    if (is_fence(past(l.s, at))) {
        if (!l.whole)
            return 0;
        if (l.s.len < LOOK)
            return open_fence(md, l.s, at, all, &p, out);
    }
    return at + begin_text(md, past(l.s, at), &p, out);
}

/* In a code block: is this the line that ends it? Only a line of nothing but marks must be waited for. */
static size_t step_code(struct markdown *md, struct str all, bool last, struct buf *out)
{
    struct look l = look_at(all, last);
    struct flow_prefix p = {.width = 0};
    size_t at = blanks(l.s), marks = run_of(past(l.s, at), md->fence.mark);
    bool bare = at + marks + blanks(past(l.s, at + marks)) == l.s.len;

    (void)out;
    if (bare && !l.whole)
        return 0;
    if (bare && marks >= md->fence.len && at <= md->fence.indent + 3) {
        md->fence.mark = '\0';
        return l.s.len + (l.s.len < all.len && all.ptr[l.s.len] == '\n');
    }
    if (l.s.len > 0) {
        prefix_blanks(md, &p, md->fence.indent);
        prefix_add(&p, "  ", "  ", 2);
        flow_prefix(&md->flow, &p);
    }
    md->where = VERBATIM;
    return at < md->fence.indent ? at : md->fence.indent;
}

/* ---- the text ---- */

static size_t step_line(struct markdown *md, struct str s, bool last, struct buf *out, bool *ret_moved)
{
    enum where where = md->where;
    char mark = md->fence.mark;
    size_t n;

    if (where == INLINE)
        n = markdown_inline(md, s, last, out);
    else if (where == VERBATIM)
        n = step_verbatim(md, s, last, out);
    else
        n = mark ? step_code(md, s, last, out) : step_block(md, s, last, out);
    *ret_moved = n > 0 || md->where != where;
    return n;
}

static size_t pass_plain(struct str s, bool last, struct buf *out)
{
    size_t at = 0;

    while (at < s.len) {
        struct glyph g = glyph_next(past(s, at), last);
        char c = s.ptr[at];

        if (g.len == 0)
            break;
        if (c == '\n' || c == '\t')
            buf_add_char(out, c);
        else if (c != '\r')
            buf_add_str(out, g.show);
        at += g.len;
    }
    return at;
}

static void work_through(struct markdown *md, bool last, struct buf *out)
{
    struct str s = buf_view(&md->pending);
    size_t at = 0;
    bool moved = true;

    if (md->mode == MARKDOWN_PLAIN)
        at = pass_plain(s, last, out);
    while (has_layout(md) && moved && at < s.len)
        at += step_line(md, past(s, at), last, out, &moved);
    if (at > 0)
        memmove(md->pending.ptr, md->pending.ptr + at, s.len - at);
    md->pending.len = s.len - at;
}

/* Without styles the flow only remembers whether a line is begun. */
static void note_column(struct markdown *md, struct str drawn)
{
    if (drawn.len > 0)
        md->flow.column = drawn.ptr[drawn.len - 1] != '\n';
}

void markdown_add(struct markdown *md, struct str piece, struct buf *out)
{
    size_t from = out->len;

    if (md->mode == MARKDOWN_RAW) {
        buf_add_str(out, piece);
    } else {
        buf_add_str(&md->pending, piece);
        work_through(md, false, out);
    }
    if (!has_layout(md))
        note_column(md, past(buf_view(out), from));
}

void markdown_end(struct markdown *md, struct buf *out)
{
    size_t from = out->len;

    work_through(md, true, out);
    if (md->mode == MARKDOWN_PLAIN) {
        note_column(md, past(buf_view(out), from));
        if (md->flow.column > 0)
            buf_add_char(out, '\n');
    } else if (has_layout(md) && md->where != LINE_START) {
        markdown_end_line(md, out);
    }
    markdown_reset(md, out);
}

void markdown_break(struct markdown *md, struct buf *out)
{
    if (has_layout(md))
        flow_break(&md->flow, out);
    else if (md->flow.column > 0)
        buf_add_char(out, '\n');
    md->flow.column = 0;
}

void markdown_reset(struct markdown *md, struct buf *out)
{
    enum markdown_mode mode = md->mode;
    struct buf pending = md->pending;
    int columns = md->flow.columns;

    if (has_layout(md))
        flow_break(&md->flow, out);
    buf_clear(&pending);
    *md = (struct markdown){.mode = mode, .pending = pending};
    begin_flow(md, columns);
}

bool markdown_in_line(const struct markdown *md)
{
    return md->flow.column > 0;
}

bool markdown_below_blank(const struct markdown *md)
{
    return md->flow.column == 0 && md->flow.blank;
}
