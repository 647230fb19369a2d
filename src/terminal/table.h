/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in columns, for people. Widths fit what is in them; on a terminal columns give way so that lines fit. Where they cannot,
 * each row begins with its first cell, and the others follow below it, indented and whole. */
#ifndef TERMINAL_TABLE_H
#define TERMINAL_TABLE_H

#include "terminal/output.h"

#define TABLE_COLUMNS 8

struct table_column {
    const char *head;
    bool right; /* numbers */
    bool gives; /* is cut when a line is too long for the terminal */
    int least;  /* what is left of it then; 0: enough for most words */
    int drop;   /* if that is not enough it is left out, the highest first; 0: never */
};

struct table_cell {
    struct str text;
    enum color color;
};

struct table {
    const struct table_column *columns;
    size_t n_columns, n_cells, cap;
    struct table_cell *cells;
    struct arena arena;
};

void table_init(struct table *t, const struct table_column *columns, size_t n);
void table_cell(struct table *t, const char *text, enum color color); /* left to right, row by row; NULL is empty */
void table_print(struct table *t, struct out *out);
void table_done(struct table *t);

#endif
