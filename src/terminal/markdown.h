/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown on a terminal, as it comes: pieces cut anywhere give the same bytes as the whole text would. */
#ifndef TERMINAL_MARKDOWN_H
#define TERMINAL_MARKDOWN_H

#include "base/buf.h"

enum markdown_mode {
    MARKDOWN_RAW,        /* no terminal: byte for byte */
    MARKDOWN_PLAIN,      /* a terminal without escape sequences: as it is, but for what must not reach a terminal */
    MARKDOWN_MONOCHROME, /* as styled, without colours: bold, italic, underline and the layout stay */
    MARKDOWN_STYLED,     /* a terminal: styles, words wrapped, controls made visible */
};

struct markdown;

struct markdown *markdown_new(enum markdown_mode mode, int columns);
void markdown_free(struct markdown *md);
void markdown_columns(struct markdown *md, int columns); /* from here on */

/* Appends to `out` what can be drawn by now. At most a word, a mark that is still open, or a table stays behind. */
void markdown_add(struct markdown *md, struct str piece, struct buf *out);

/* The text ends: all of it is drawn, the line ended (but in raw mode), and the next text begins afresh. */
void markdown_end(struct markdown *md, struct buf *out);

/* Something else is to be drawn in between: ends the line on the screen, not the one in the text. */
void markdown_break(struct markdown *md, struct buf *out);

/* Forgets the text so far; what is drawn stays. */
void markdown_reset(struct markdown *md, struct buf *out);

bool markdown_in_line(const struct markdown *md);     /* the cursor stands behind text */
bool markdown_below_blank(const struct markdown *md); /* it stands below an empty line */

#endif
