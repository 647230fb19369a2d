/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two texts, line by line, as people read it: hunks of a unified diff. */
#ifndef BASE_LINE_DIFF_H
#define BASE_LINE_DIFF_H

#include "base/buf.h"

/*
 * Appends "@@ -1,3 +1,4 @@" and its lines for each hunk, three lines of context around each change; nothing when the texts
 * are equal. A last line without a line end is followed by "\ No newline at end of file". At most `max_lines` lines: one
 * more says how many are missing.
 */
void line_diff(struct buf *out, struct str before, struct str after, size_t max_lines);

#endif
