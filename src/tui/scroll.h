/* SPDX-License-Identifier: Apache-2.0 */
/* A long list in a small window: which line is chosen, which one is on top. Pure. */
#ifndef TUI_SCROLL_H
#define TUI_SCROLL_H

#include "tui/key.h"

struct scroll {
    int n, at, top, height;
    bool follow; /* the last line stays in view as more come */
};

/* The list has so many lines now, the window so many rows. */
void scroll_fit(struct scroll *s, int n, int height);
void scroll_to(struct scroll *s, int line);

/* Whether the key moved it: arrows, j k, page keys, Home End, g G, the wheel. */
bool scroll_key(struct scroll *s, const struct key *k);

/* The same of a text that is only read: no line of it is chosen, so each key moves what is seen. */
bool scroll_read_key(struct scroll *s, const struct key *k);

/* The line that is in row `row` of the window; -1: none. */
int scroll_line_at(const struct scroll *s, int row);

#endif
