/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen as cells: pages draw into it, a driver shows it, tests read it. Whatever text comes from elsewhere is cleaned here
 * (terminal/glyph.h), so nothing in a log can act on the terminal. Where the terminal has no UTF-8 every cell is ASCII.
 */
#ifndef TUI_CANVAS_H
#define TUI_CANVAS_H

#include <stdbool.h>

#include "base/buf.h"

/* What a text means; the driver knows how that looks. A state is shown by its shape as well. */
enum ink {
    INK_PLAIN,
    INK_DIM,
    INK_BOLD,
    INK_ACCENT, /* keys, what is chosen */
    INK_RUNNING,
    INK_WAITING,
    INK_WARN,
    INK_BAD,
    INK_GOOD,
    INK_ADDED,
    INK_REMOVED,
    INKS
};

#define CELL_BYTES 24 /* a character and what combines with it */

struct cell {
    char text[CELL_BYTES]; /* "": the second column of a wide character */
    uint8_t len;
    uint8_t ink;
    bool chosen; /* part of the row, field or tab that is chosen */
};

struct canvas {
    int rows, cols;
    bool ascii;
    struct cell *cells;
    int cursor_row, cursor_col; /* row -1: no cursor is shown */
};

void canvas_size(struct canvas *c, int rows, int cols); /* and clears it */
void canvas_done(struct canvas *c);
void canvas_clear(struct canvas *c);

/* Draws one line of a text, cleaned, in at most so many columns, with a mark where it was cut. Returns the columns used. */
int canvas_put(struct canvas *c, int row, int col, int columns, struct str text, enum ink ink);
int canvas_text(struct canvas *c, int row, int col, int columns, const char *text, enum ink ink);
int canvas_right(struct canvas *c, int row, int end, const char *text, enum ink ink); /* ends before column `end` */
int canvas_printf(struct canvas *c, int row, int col, int columns, enum ink ink, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void canvas_rule(struct canvas *c, int row, int col, int columns, enum ink ink); /* a horizontal line */
void canvas_blank(struct canvas *c, int row, int col, int rows, int columns);    /* spaces */
void canvas_choose(struct canvas *c, int row, int col, int columns);             /* marks as chosen */
void canvas_frame(struct canvas *c, int row, int col, int rows, int columns, const char *title);

/* A row as text, without blanks at its end: for tests. */
void canvas_line(const struct canvas *c, int row, struct buf *out);

/* Columns that the text takes on this canvas. */
int canvas_width(const struct canvas *c, struct str text);

#endif
