/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as lines of a width, each with what it belongs to. Pure. */
#ifndef TUI_LINES_H
#define TUI_LINES_H

#include "base/mem.h"
#include "tui/canvas.h"

struct line {
    struct str text;
    enum ink ink, lead_ink;
    const char *lead; /* a mark at the left of its first column; NULL: none */
    int indent;
    int64_t seq;   /* of the event that it shows; 0: none */
    int64_t ts_ms; /* shown at the right of its first line; 0: not shown */
    int entry;     /* of which entry it is; -1: of none */
};

struct lines {
    struct line *at;
    size_t n, cap;
    struct arena arena;
};

void lines_clear(struct lines *l);
void lines_done(struct lines *l);

/*
 * Adds a text, broken at words and at its own ends of lines, in lines like this one; the mark stands at the first alone. `most`: so many lines
 * at most, then how many characters are left out; 0: all.
 */
void lines_add(struct lines *l, struct str text, int columns, int most, const struct line *like);

/* The same as one line, which is cut where it is drawn. */
void lines_add_one(struct lines *l, struct str text, const struct line *like);

void lines_draw(const struct lines *l, int from, struct canvas *c, int row, int col, int rows, int columns);

/* JSON on lines of its own, as people read it. What is no JSON stays as it is. */
void lines_add_json(struct lines *l, struct str json, int columns, const struct line *like);

/* The hunks of a diff, in the colours of what was added and taken away. */
void lines_add_diff(struct lines *l, struct str diff, int columns, const struct line *like);

#endif
