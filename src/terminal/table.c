/* SPDX-License-Identifier: Apache-2.0 */
/* All cells are kept until the end: the width of a column is known only then. */
#include "terminal/table.h"

#include <unistd.h>

#define LEAST 11 /* columns that are left of one that gives way: "interrupted" */
#define INDENT 2

void table_init(struct table *t, const struct table_column *columns, size_t n)
{
    *t = (struct table){.columns = columns, .n_columns = n, .arena = ARENA_INIT};
    for (size_t i = 0; i < n; i++)
        table_cell(t, columns[i].head, COLOR_DIM);
}

void table_cell(struct table *t, const char *text, enum color color)
{
    MEM_ROOM(t->cells, t->n_cells, t->cap);
    t->cells[t->n_cells++] = (struct table_cell){arena_dup(&t->arena, str_from(text)), color};
}

void table_done(struct table *t)
{
    free(t->cells);
    arena_done(&t->arena);
}

/* What a column of this width cannot do without. */
static size_t least_of(const struct table_column *column, size_t width)
{
    size_t least = column->least ? (size_t)column->least : LEAST;

    return column->gives && width > least ? least : width;
}

/* Makes columns narrower; false: that was not enough. */
static bool make_fit(const struct table *t, size_t width[TABLE_COLUMNS], size_t room)
{
    size_t sum = 0;

    for (size_t i = 0; i < t->n_columns; i++)
        sum += width[i] ? width[i] + 2 : 0;
    sum -= sum ? 2 : 0;
    for (size_t i = t->n_columns; i-- > 0;) { /* the last gives most: what it says is long by nature */
        size_t least = least_of(&t->columns[i], width[i]);

        if (least < width[i] && sum > room) {
            size_t over = sum - room, less = width[i] > over + least ? width[i] - over : least;

            sum -= width[i] - less;
            width[i] = less;
        }
    }
    return sum <= room;
}

/* Leaves out columns until lines fit: a width of 0 is none. */
static void drop_columns(const struct table *t, size_t width[TABLE_COLUMNS], size_t room)
{
    for (;;) {
        size_t least = 0, shown = 0, at = t->n_columns;

        for (size_t i = 0; i < t->n_columns; i++) {
            least += least_of(&t->columns[i], width[i]);
            shown += width[i] > 0;
            if (width[i] && t->columns[i].drop && (at == t->n_columns || t->columns[i].drop > t->columns[at].drop))
                at = i;
        }
        if (at == t->n_columns || least + 2 * (shown - 1) <= room)
            return;
        width[at] = 0;
    }
}

/* As much of it as fits; the columns that were used. */
static int print_text(struct out *out, const struct table_cell *cell, int width)
{
    int w = text_columns(cell->text);
    bool colored = cell->color != COLOR_NONE;

    if (colored)
        outf(out, "%s", color_code(out, cell->color));
    if (w > width)
        w = out_fit(out, cell->text.ptr, width);
    else
        out_value(out, cell->text.ptr);
    if (colored)
        outf(out, "%s", color_code(out, COLOR_NONE));
    return w;
}

static void print_cell(struct out *out, const struct table_cell *cell, const struct table_column *column, size_t width,
                       bool last)
{
    int w = text_columns(cell->text), pad = w < (int)width ? (int)width - w : 0;

    if (column->right)
        outf(out, "%*s", pad, "");
    w = print_text(out, cell, (int)width);
    if (!last)
        outf(out, "%*s  ", column->right ? 0 : (int)width - w, "");
}

/* A line is broken between cells; one that is longer than a line is, when what was gathered is wrapped. */
static void print_below(const struct table *t, struct out *out, int room)
{
    int at = 0;

    for (size_t i = 0; i < t->n_cells; i++) {
        const struct table_cell *cell = &t->cells[i];
        int w = text_columns(cell->text);

        if (i % t->n_columns == 0)
            at = room; /* the others begin below */
        else if (cell->text.len > 0 && at + 2 + w > room) {
            outf(out, "\n%*s", INDENT, "");
            at = INDENT;
        } else if (cell->text.len > 0) {
            outf(out, "  ");
            at += 2;
        }
        at += print_text(out, cell, w);
        if ((i + 1) % t->n_columns == 0)
            buf_add_char(&out->text, '\n');
    }
}

static void print_rows(const struct table *t, struct out *out, const size_t width[TABLE_COLUMNS])
{
    size_t last = 0;

    for (size_t c = 0; c < t->n_columns; c++)
        last = width[c] ? c : last;
    for (size_t i = 0; i < t->n_cells; i++) {
        size_t c = i % t->n_columns;

        if (width[c])
            print_cell(out, &t->cells[i], &t->columns[c], width[c], c == last);
        if (c + 1 == t->n_columns)
            buf_add_char(&out->text, '\n');
    }
}

void table_print(struct table *t, struct out *out)
{
    size_t width[TABLE_COLUMNS] = {0};
    int room = terminal_columns(STDOUT_FILENO);

    for (size_t i = 0; i < t->n_cells; i++) {
        size_t w = (size_t)text_columns(t->cells[i].text), *max = &width[i % t->n_columns];

        *max = w > *max ? w : *max;
    }
    if (out->tty)
        drop_columns(t, width, (size_t)room);
    if (!out->tty || make_fit(t, width, (size_t)room))
        print_rows(t, out, width);
    else
        print_below(t, out, room);
}
