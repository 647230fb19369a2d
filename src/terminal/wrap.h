/* SPDX-License-Identifier: Apache-2.0 */
/* Long lines on a terminal: broken at words, with the indent they began with. */
#ifndef TERMINAL_WRAP_H
#define TERMINAL_WRAP_H

#include "terminal/output.h"

#define WRAP_KEPT_SPACE '\037' /* a space at which no line is broken; cleaned text has none */

/* A command to paste: it stays in one piece where what was gathered is wrapped. */
void out_command(struct out *out, const char *command);

/* Wraps what was gathered behind `from` to the width of the terminal; without a terminal it stays as it is. */
void out_wrap(struct out *out, size_t from);

/* Appends `text` in lines of at most so many columns; a word that is longer keeps a line of its own. */
void wrap_text(struct buf *out, struct str text, int columns);

/* The same for one line that begins at column `at`; those below begin at `indent`. */
void wrap_beside(struct buf *out, struct str line, int at, int indent, int columns);

#endif
