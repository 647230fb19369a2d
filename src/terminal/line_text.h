/* SPDX-License-Identifier: Apache-2.0 */
/* A text of one or more lines, a place in it, and what keys do to them. */
#ifndef TERMINAL_LINE_TEXT_H
#define TERMINAL_LINE_TEXT_H

#include "base/buf.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)

struct line_text {
    struct buf text; /* valid UTF-8; of control characters only line ends and tabs */
    size_t at;       /* the cursor, between characters */
    struct buf killed;
};

void line_text_init(struct line_text *t);
void line_text_done(struct line_text *t);
void line_text_set(struct line_text *t, struct str text); /* the cursor behind it */

/* At the cursor: what is no character and what is a control is left out, CR LF and CR are line ends. */
void line_text_insert(struct line_text *t, struct str bytes);
void line_text_replace(struct line_text *t, size_t from, struct str by); /* what stands from there to the cursor */

/* One each for a key. */
void line_left(struct line_text *t);
void line_right(struct line_text *t);
void line_word_left(struct line_text *t);
void line_word_right(struct line_text *t);
void line_home(struct line_text *t); /* of this line */
void line_last(struct line_text *t);
bool line_up(struct line_text *t); /* false: there is no line above */
bool line_down(struct line_text *t);
void line_erase_left(struct line_text *t);
void line_erase_right(struct line_text *t);
void line_kill_word_left(struct line_text *t);
void line_kill_word_right(struct line_text *t);
void line_kill_home(struct line_text *t);
void line_kill_last(struct line_text *t);
void line_kill_all(struct line_text *t);
void line_yank(struct line_text *t);
void line_swap(struct line_text *t);
void line_new_line(struct line_text *t);

#endif
