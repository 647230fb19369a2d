/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts of before, in a file that only its owner reads. */
#ifndef TERMINAL_LINE_HISTORY_H
#define TERMINAL_LINE_HISTORY_H

#include "base/buf.h"

#define HISTORY_MAX 1000 /* entries */

struct line_history {
    char *path; /* NULL: only in memory */
    char **entries;
    size_t n;
};

/* A file that cannot be read is an empty history: a chat must not fail for it. */
void line_history_open(struct line_history *h, const char *path);
void line_history_close(struct line_history *h);

/* Kept at once; not when it is blank, begins with a blank, is the same as the last one, or larger than 64 KiB. */
void line_history_add(struct line_history *h, struct str text);

/* The nearest entry before `from` (an index; n: the newest counts too) that has these words; -1: none. */
long line_history_find(const struct line_history *h, size_t from, struct str words);

#endif
