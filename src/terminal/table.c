/* SPDX-License-Identifier: Apache-2.0 */
/* All cells are kept until the end: the width of a column is known only then. */
#include "terminal/table.h"

#include <unistd.h>

#define LEAST 11 /* columns that are left of one that gives way: "interrupted" */

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

static void make_fit(const struct table *t, size_t width[TABLE_COLUMNS], size_t room)
{
    size_t sum = 0;

    for (size_t i = 0; i < t->n_columns; i++)
        sum += width[i] ? width[i] + 2 : 0;
    sum -= sum ? 2 : 0;
    for (size_t i = t->n_columns; i-- > 0;) { /* the last gives most: what it says is long by nature */
        if (t->columns[i].gives && width[i] > LEAST && sum > room) {
            size_t over = sum - room, less = width[i] > over + LEAST ? width[i] - over : LEAST;

            sum -= width[i] - less;
            width[i] = less;
        }
    }
}

/* Leaves out columns until lines fit: a width of 0 is none. */
static void drop_columns(const struct table *t, size_t width[TABLE_COLUMNS], size_t room)
{
    for (;;) {
        size_t least = 0, shown = 0, at = t->n_columns;

        for (size_t i = 0; i < t->n_columns; i++) {
            least += !width[i] ? 0 : t->columns[i].gives && width[i] > LEAST ? LEAST : width[i];
            shown += width[i] > 0;
            if (width[i] && t->columns[i].drop && (at == t->n_columns || t->columns[i].drop > t->columns[at].drop))
                at = i;
        }
        if (at == t->n_columns || least + 2 * (shown - 1) <= room)
            return;
        width[at] = 0;
    }
}

static void print_cell(struct out *out, const struct table_cell *cell, const struct table_column *column, size_t width,
                       bool last)
{
    int w = text_columns(cell->text), pad = w < (int)width ? (int)width - w : 0;
    bool colored = cell->color != COLOR_NONE;

    if (column->right)
        outf(out, "%*s", pad, "");
    if (colored)
        outf(out, "%s", color_code(out, cell->color));
    if (w > (int)width)
        pad = (int)width - out_fit(out, cell->text.ptr, (int)width);
    else
        out_value(out, cell->text.ptr);
    if (colored)
        outf(out, "%s", color_code(out, COLOR_NONE));
    if (!last)
        outf(out, "%*s  ", column->right ? 0 : pad, "");
}

void table_print(struct table *t, struct out *out)
{
    size_t width[TABLE_COLUMNS] = {0}, last = 0;

    for (size_t i = 0; i < t->n_cells; i++) {
        size_t w = (size_t)text_columns(t->cells[i].text), *max = &width[i % t->n_columns];

        *max = w > *max ? w : *max;
    }
    if (out->tty) {
        drop_columns(t, width, (size_t)terminal_columns(STDOUT_FILENO));
        make_fit(t, width, (size_t)terminal_columns(STDOUT_FILENO));
    }
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
