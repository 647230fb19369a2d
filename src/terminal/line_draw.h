/* SPDX-License-Identifier: Apache-2.0 */
/* Where a text of several lines stands on the screen while it is edited. */
#ifndef TERMINAL_LINE_DRAW_H
#define TERMINAL_LINE_DRAW_H

#include "base/buf.h"

#define SCREEN_ROWS 512

struct line_screen {
    int fd;
    bool color;
    int columns;             /* when it was drawn */
    int row, column;         /* of the cursor, below the first row drawn */
    int top;                 /* rows above that were left out: the text is taller than the screen */
    int rows;                /* drawn; 0: nothing is */
    int widths[SCREEN_ROWS]; /* of the rows drawn */
};

/* Over what was drawn before. `prompt` is ours. */
void line_draw(struct line_screen *s, const char *prompt, struct str text, size_t at);
void line_screen_erase(struct line_screen *s);                        /* as if nothing had been drawn */
void line_screen_leave(struct line_screen *s);                        /* it stays; the cursor goes to the line below */
void line_screen_write(const struct line_screen *s, struct str text); /* all of it, as it is */

#endif
