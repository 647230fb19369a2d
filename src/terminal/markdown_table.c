/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables. The width of a column is known only after its last row, so a table is held back until it has ended, and drawn
 * whole: the one thing of an answer that is not drawn as it comes. What is no table after all (no row of dashes below
 * its head), is too long to be held, or too wide to be read, stays the text it is.
 *
 * A column that has no room is wrapped, the widest first; none becomes narrower than COLUMN_MIN.
 */
#include <stdio.h>

#include "base/mem.h"
#include "terminal/markdown_state.h"
#include "terminal/output.h"

#define TABLE_MAX ((size_t)64 << 10) /* bytes that are held back */
#define CELLS_MAX 16
#define COLUMN_MIN 8
#define INDENT_MAX 3
#define BAR_WIDTH 3
#define BAR " \033[2m│\033[0m "

enum align { LEFT, RIGHT, CENTER };

struct row {
    struct str cells[CELLS_MAX];
    size_t n;
};

struct table_text {
    struct arena arena;
    bool monochrome;
    struct row *rows;
    size_t n, columns; /* n: of the rows; while it is looked for, of its lines */
    enum align align[CELLS_MAX];
    int width[CELLS_MAX];
};

/* ---- its text ---- */

/* The next line from `at` on; 0: it is not one of a table. *ret_open: that, or its end, is not known yet. */
static size_t line_at(struct str all, size_t at, bool last, bool *ret_open)
{
    size_t from = at;
    const char *end;

    while (from < all.len && from < at + INDENT_MAX && all.ptr[from] == ' ')
        from++;
    *ret_open = from == all.len && !last;
    if (from == all.len || all.ptr[from] != '|')
        return 0;
    end = memchr(all.ptr + from, '\n', all.len - from);
    *ret_open = !end && !last;
    return end ? (size_t)(end - all.ptr) + 1 - at : all.len - at;
}

/* False: more cells than we draw. */
static bool split_row(struct str line, struct row *ret)
{
    struct str s = past(str_trim(line), 1);

    *ret = (struct row){.n = 0};
    while (s.len > 0) {
        size_t n = 0;

        while (n < s.len && s.ptr[n] != '|')
            n += s.ptr[n] == '\\' && n + 1 < s.len ? 2 : 1;
        if (ret->n == CELLS_MAX)
            return false;
        ret->cells[ret->n++] = str_trim(head(s, n));
        s = past(s, n + (n < s.len));
    }
    return ret->n > 0;
}

/* "---", ":--", "--:", ":-:" */
static bool is_dashes(struct str cell, enum align *ret)
{
    bool left = cell.len > 0 && cell.ptr[0] == ':', right = cell.len > 1 && cell.ptr[cell.len - 1] == ':';
    struct str dashes = past(head(cell, cell.len - right), left);

    *ret = right ? (left ? CENTER : RIGHT) : LEFT;
    return dashes.len > 0 && run_of(dashes, '-') == dashes.len;
}

static bool read_align(struct table_text *t, struct str line)
{
    struct row row;

    if (!split_row(line, &row))
        return false;
    for (size_t i = 0; i < row.n; i++)
        if (!is_dashes(row.cells[i], &t->align[i]))
            return false;
    return true;
}

/* Bytes that the table takes; 0: it is none. *ret_open: more must come first. */
static size_t find_end(struct table_text *t, struct str all, bool last, bool *ret_open)
{
    size_t at = 0, n;
    struct row row;

    for (; (n = line_at(all, at, last, ret_open)) > 0 && !*ret_open; at += n, t->n++) {
        struct str line = {all.ptr + at, n};

        if (at + n > TABLE_MAX || !split_row(line, &row) || (t->n == 1 && !read_align(t, line)))
            return 0;
        t->columns = row.n > t->columns ? row.n : t->columns;
    }
    if (*ret_open) {
        *ret_open = all.len <= TABLE_MAX + INDENT_MAX;
        return 0;
    }
    return t->n >= 2 ? at : 0;
}

/* The row of dashes is none. */
static void read_rows(struct table_text *t, struct str all)
{
    size_t at = 0, n, lines = t->n;
    bool open;

    t->rows = arena_zero(&t->arena, lines * sizeof(*t->rows));
    t->n = 0;
    for (size_t i = 0; i < lines; i++, at += n) {
        n = line_at(all, at, true, &open);
        if (i != 1)
            split_row((struct str){all.ptr + at, n}, &t->rows[t->n++]);
    }
}

/* ---- its looks ---- */

/* A cell in lines of at most so many columns; every line ends with its style. */
static struct str draw_cell(const struct table_text *t, struct arena *a, struct str text, unsigned style, int columns)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct markdown cell = {.mode = MARKDOWN_STYLED, .where = INLINE, .style = style};
    size_t at = 0, n = 1;

    flow_init(&cell.flow, columns);
    cell.flow.monochrome = t->monochrome;
    while (at < text.len && n > 0)
        at += n = markdown_inline(&cell, past(text, at), true, &out);
    flow_end_line(&cell.flow, &out);
    return arena_dup(a, head(buf_view(&out), out.len - 1));
}

static int visible(struct str s)
{
    int width = 0;

    while (s.len > 0) {
        struct glyph g = glyph_next(s, true);
        const char *end = s.ptr[0] == '\033' ? memchr(s.ptr, 'm', s.len) : NULL;

        width += end ? 0 : g.width;
        s = past(s, end ? (size_t)(end - s.ptr) + 1 : g.len);
    }
    return width;
}

/* False: there is no room for it. */
static bool fit_columns(struct table_text *t, int columns)
{
    int sum = BAR_WIDTH * ((int)t->columns - 1);

    for (size_t i = 0; i < t->columns; i++)
        sum += t->width[i];
    for (; sum > columns; sum--) {
        size_t widest = 0;

        for (size_t i = 1; i < t->columns; i++)
            widest = t->width[i] > t->width[widest] ? i : widest;
        if (t->width[widest] <= COLUMN_MIN)
            return false;
        t->width[widest]--;
    }
    return true;
}

static void put_blanks(struct buf *out, int n)
{
    for (int i = 0; i < n; i++)
        buf_add_char(out, ' ');
}

static void put_line(const struct table_text *t, struct buf *out, size_t i, struct str line)
{
    int room = t->width[i] - visible(line);
    int before = t->align[i] == RIGHT ? room : t->align[i] == CENTER ? room / 2 : 0;

    put_blanks(out, before);
    buf_add_str(out, line);
    if (i + 1 < t->columns) {
        put_blanks(out, room - before);
        buf_add_str(out, STR(BAR));
    }
}

static struct str take_line(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct str line = head(*rest, end ? (size_t)(end - rest->ptr) : rest->len);

    *rest = past(*rest, line.len + (end != NULL));
    return line;
}

static void put_row(struct table_text *t, const struct row *row, unsigned style, struct buf *out)
{
    struct str rest[CELLS_MAX] = {{NULL, 0}};
    bool more = true;

    for (size_t i = 0; i < row->n; i++)
        rest[i] = draw_cell(t, &t->arena, row->cells[i], style, t->width[i]);
    while (more) {
        more = false;
        for (size_t i = 0; i < t->columns; i++) {
            put_line(t, out, i, take_line(&rest[i]));
            more |= rest[i].len > 0;
        }
        while (out->len > 0 && out->ptr[out->len - 1] == ' ')
            out->len--;
        buf_add_char(out, '\n');
    }
}

size_t markdown_table(struct markdown *md, struct str all, bool last, struct buf *out, bool *ret_open)
{
    struct table_text t = {.arena = ARENA_INIT, .monochrome = md->flow.monochrome};
    size_t n = find_end(&t, all, last, ret_open);

    if (n > 0) {
        read_rows(&t, head(all, n));
        for (size_t r = 0; r < t.n; r++)
            for (size_t i = 0; i < t.rows[r].n; i++) {
                int w = visible(draw_cell(&t, &t.arena, t.rows[r].cells[i], 0, 1 << 20));

                t.width[i] = w > t.width[i] ? w : t.width[i];
            }
        n = fit_columns(&t, md->flow.columns) ? n : 0;
    }
    if (n > 0) {
        put_row(&t, &t.rows[0], STYLE_BOLD, out);
        buf_add_str(out, STR("\033[2m"));
        for (size_t i = 0; i < t.columns; i++) {
            for (int k = 0; k < t.width[i]; k++)
                buf_add_str(out, STR("─"));
            buf_add_str(out, i + 1 < t.columns ? STR("─┼─") : STR("\033[0m\n"));
        }
        for (size_t r = 1; r < t.n; r++)
            put_row(&t, &t.rows[r], 0, out);
        md->flow.blank = false;
    }
    arena_done(&t.arena);
    return n;
}
