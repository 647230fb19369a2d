/* SPDX-License-Identifier: Apache-2.0 */
/* One row of a list, chosen at a terminal. */
#ifndef TERMINAL_PICKER_H
#define TERMINAL_PICKER_H

#include "terminal/line_edit.h"

/*
 * Up, Down (Ctrl-P, Ctrl-N) and Enter; Escape, q, Ctrl-C and Ctrl-D leave. The list goes away afterwards. Rows
 * may hold any text. Returns the row's index; n: none was chosen. `e` must be a terminal's (line_edit_is_terminal).
 */
size_t pick_row(struct line_edit *e, int out, bool color, const char *const *rows, size_t n);

#endif
