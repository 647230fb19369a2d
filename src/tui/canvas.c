/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wide character takes two cells, the second of which is empty. What is drawn over half of one takes the other half away. In ASCII our
 * own marks have a stand-in each; of what others wrote a character that has none is "?".
 */
#include "tui/canvas.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "terminal/glyph.h"

#define TEXT_MAX ((size_t)64 << 10)

/* In the order of what they stand for on screens: states, then lines, then signs. */
static const struct {
    const char *shown, *ascii;
} stand_ins[] = {
    {"●", "*"}, {"◆", "?"}, {"▲", "!"}, {"✗", "x"}, {"✓", "+"}, {"○", "o"}, {"■", "#"}, {"–", "-"},
    {"─", "-"}, {"│", "|"}, {"┌", "+"}, {"┐", "+"}, {"└", "+"}, {"┘", "+"}, {"├", "|"}, {"…", "~"},
    {"▸", ">"}, {"▾", "v"}, {"›", ">"}, {"▌", "|"}, {"·", "-"}, {"█", "#"}, {"▓", "%"}, {"▒", "="},
    {"░", ":"}, {"╍", "="}, {"┈", "."}, {"◇", "o"}, {"→", ">"}, {"←", "<"}, {"↑", "^"}, {"↓", "v"},
    {"↶", "<"}, {"▚", "%"}, {"┃", "|"}, {"⑂", "Y"}, {"⧗", "~"},
};

void canvas_size(struct canvas *c, int rows, int cols)
{
    c->rows = rows > 0 ? rows : 1;
    c->cols = cols > 0 ? cols : 1;
    free(c->cells);
    c->cells = mem_array((size_t)c->rows * (size_t)c->cols, sizeof *c->cells);
    canvas_clear(c);
}

void canvas_done(struct canvas *c)
{
    free(TAKE(c->cells));
}

static struct cell *at(const struct canvas *c, int row, int col)
{
    return row >= 0 && row < c->rows && col >= 0 && col < c->cols
               ? &c->cells[(size_t)row * (size_t)c->cols + (size_t)col]
               : NULL;
}

static void set_cell(struct cell *cell, struct str text, enum ink ink)
{
    memcpy(cell->text, text.ptr, text.len);
    cell->len = (uint8_t)text.len;
    cell->ink = (uint8_t)ink;
    cell->chosen = false;
}

/* Whatever stands in one of the columns gives up the other one, too. */
static void free_columns(const struct canvas *c, int row, int col, int width)
{
    struct cell *first = at(c, row, col), *behind = at(c, row, col + width), *before = at(c, row, col - 1);

    if (first && !first->len && before)
        set_cell(before, STR(" "), INK_PLAIN);
    if (behind && !behind->len)
        set_cell(behind, STR(" "), INK_PLAIN);
}

void canvas_blank(struct canvas *c, int row, int col, int rows, int columns)
{
    for (int r = row; r < row + rows; r++) {
        free_columns(c, r, col, columns);
        for (int i = col; i < col + columns; i++)
            if (at(c, r, i))
                set_cell(at(c, r, i), STR(" "), INK_PLAIN);
    }
}

void canvas_clear(struct canvas *c)
{
    for (int i = 0; i < c->rows * c->cols; i++)
        set_cell(&c->cells[i], STR(" "), INK_PLAIN);
    c->cursor_row = -1;
    c->cursor_col = 0;
}

/* ---- text ---- */

static struct glyph in_ascii(struct glyph g)
{
    if (g.show.len <= 1 && (!g.show.len || (unsigned char)g.show.ptr[0] < 0x80))
        return g;
    for (size_t i = 0; i < sizeof stand_ins / sizeof stand_ins[0]; i++)
        if (str_eq(g.show, str_from(stand_ins[i].shown)))
            return (struct glyph){g.len, str_from(stand_ins[i].ascii), 1};
    return (struct glyph){g.len, g.width == 2 ? STR("??") : g.width ? STR("?") : STR(""), g.width};
}

static struct glyph next_glyph(const struct canvas *c, struct str text)
{
    struct glyph g;

    if (text.ptr[0] == '\n' || text.ptr[0] == '\t')
        return (struct glyph){1, STR(" "), 1};
    if (text.ptr[0] == '\r')
        return (struct glyph){1, STR(""), 0};
    g = glyph_next(text, true);
    return c->ascii ? in_ascii(g) : g;
}

/* Bytes of the text that fit; *ret_width: their columns. */
static size_t fitting(const struct canvas *c, struct str text, int columns, int *ret_width)
{
    size_t done = 0;

    *ret_width = 0;
    while (done < text.len) {
        struct glyph g = next_glyph(c, (struct str){text.ptr + done, text.len - done});

        if (*ret_width + g.width > columns)
            break;
        *ret_width += g.width;
        done += g.len;
    }
    return done;
}

int canvas_width(const struct canvas *c, struct str text)
{
    int width;

    fitting(c, text, 1 << 28, &width);
    return width;
}

static void put_glyph(struct canvas *c, int row, int col, struct glyph g, enum ink ink)
{
    struct cell *cell = at(c, row, col);

    if (!cell)
        return;
    if (g.width == 0) { /* combines with the one before */
        struct cell *base = at(c, row, col - 1);

        base = base && !base->len ? at(c, row, col - 2) : base;
        if (base && base->len + g.show.len <= CELL_BYTES) {
            memcpy(base->text + base->len, g.show.ptr, g.show.len);
            base->len = (uint8_t)(base->len + g.show.len);
        }
        return;
    }
    free_columns(c, row, col, g.width);
    if (g.show.len > 1 && (unsigned char)g.show.ptr[0] < 0x80) { /* stand-ins */
        for (int i = 0; i < g.width; i++)
            if (at(c, row, col + i))
                set_cell(at(c, row, col + i), (struct str){g.show.ptr + i, 1}, ink);
        return;
    }
    set_cell(cell, g.show, ink);
    if (g.width == 2 && at(c, row, col + 1))
        set_cell(at(c, row, col + 1), STR(""), ink);
}

int canvas_put(struct canvas *c, int row, int col, int columns, struct str text, enum ink ink)
{
    int width, used = 0;
    bool cut;

    if (columns > c->cols - col)
        columns = c->cols - col;
    if (columns <= 0 || row < 0 || row >= c->rows)
        return 0;
    text.len = text.len < TEXT_MAX ? text.len : TEXT_MAX;
    cut = fitting(c, text, columns, &width) < text.len;
    if (cut)
        text.len = fitting(c, text, columns - 1, &width);
    while (text.len) {
        struct glyph g = next_glyph(c, text);

        put_glyph(c, row, col + used, g, ink);
        used += g.width;
        text = (struct str){text.ptr + g.len, text.len - g.len};
    }
    if (cut)
        put_glyph(c, row, col + used++, next_glyph(c, STR("…")), ink);
    return used;
}

int canvas_text(struct canvas *c, int row, int col, int columns, const char *text, enum ink ink)
{
    return canvas_put(c, row, col, columns, str_from(text), ink);
}

int canvas_right(struct canvas *c, int row, int end, const char *text, enum ink ink)
{
    int width = canvas_width(c, str_from(text));

    return width <= end ? canvas_text(c, row, end - width, width, text, ink) : 0;
}

int canvas_printf(struct canvas *c, int row, int col, int columns, enum ink ink, const char *fmt, ...)
{
    char text[1024];
    va_list list;

    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    return canvas_text(c, row, col, columns, text, ink);
}

/* ---- lines and marks ---- */

void canvas_rule(struct canvas *c, int row, int col, int columns, enum ink ink)
{
    for (int i = col; i < col + columns; i++)
        canvas_put(c, row, i, 1, STR("─"), ink);
}

void canvas_choose(struct canvas *c, int row, int col, int columns)
{
    for (int i = col; i < col + columns; i++)
        if (at(c, row, i))
            at(c, row, i)->chosen = true;
}

void canvas_frame(struct canvas *c, int row, int col, int rows, int columns, const char *title)
{
    int last = col + columns - 1, end = row + rows - 1;

    canvas_blank(c, row, col, rows, columns);
    canvas_rule(c, row, col, columns, INK_DIM);
    canvas_rule(c, end, col, columns, INK_DIM);
    for (int r = row; r <= end; r++) {
        canvas_put(c, r, col, 1, r == row ? STR("┌") : r == end ? STR("└") : STR("│"), INK_DIM);
        canvas_put(c, r, last, 1, r == row ? STR("┐") : r == end ? STR("┘") : STR("│"), INK_DIM);
    }
    if (title && columns > 6) {
        int used = canvas_text(c, row, col + 2, columns - 6, " ", INK_PLAIN);

        used += canvas_text(c, row, col + 2 + used, columns - 6 - used, title, INK_BOLD);
        canvas_text(c, row, col + 2 + used, 1, " ", INK_PLAIN);
    }
}

void canvas_line(const struct canvas *c, int row, struct buf *out)
{
    size_t from = out->len;

    for (int i = 0; i < c->cols; i++)
        if (at(c, row, i))
            buf_add(out, at(c, row, i)->text, at(c, row, i)->len);
    while (out->len > from && out->ptr[out->len - 1] == ' ')
        out->len--;
}
