/* SPDX-License-Identifier: Apache-2.0 */
/* Words that could stand before the cursor: what they have in common, and all of them in columns. */
#ifndef TERMINAL_LINE_COMPLETE_H
#define TERMINAL_LINE_COMPLETE_H

#include "terminal/line_edit.h"

#define MATCHES_MAX 500

struct line_matches {
    char *words[MATCHES_MAX];
    size_t n;
};

size_t line_matches_common(const struct line_matches *m); /* bytes they all begin with; there is at least one word */
void line_matches_list(const struct line_matches *m, int columns, struct buf *out);
void line_matches_free(struct line_matches *m);

#endif
