/* SPDX-License-Identifier: Apache-2.0 */
/* Text on its way to a model: made valid, counted and cut in characters, never inside one. */
#ifndef AGENT_TOOL_TEXT_H
#define AGENT_TOOL_TEXT_H

#include "base/buf.h"

/* Bytes that are no valid UTF-8, and NUL, become U+FFFD. True when there were any. */
bool text_clean(struct buf *text);

/* How many bytes the first (the last) max_chars characters take; a mark is not parted from the character it stands on. */
size_t text_head(struct str s, size_t max_chars);
size_t text_tail(struct str s, size_t max_chars);

/* "12,345" */
void text_number(struct buf *out, uint64_t n);

/* The first line of `s`, at most max_chars, fit for a terminal and for the middle of a sentence. */
void text_line(struct buf *out, struct str s, size_t max_chars);

#endif
