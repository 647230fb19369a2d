/* SPDX-License-Identifier: Apache-2.0 */
/* Long lines on a terminal: broken at words, with the indent they began with. */
#ifndef TERMINAL_WRAP_H
#define TERMINAL_WRAP_H

#include "terminal/output.h"

/* Wraps what was gathered behind `from` to the width of the terminal; without a terminal it stays as it is. */
void out_wrap(struct out *out, size_t from);

/* Appends `text` in lines of at most so many columns; a word that is longer keeps a line of its own. */
void wrap_text(struct buf *out, struct str text, int columns);

#endif
