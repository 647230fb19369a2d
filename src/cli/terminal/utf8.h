/* SPDX-License-Identifier: Apache-2.0 */
/* Characters as a terminal sees them, without a locale. */
#ifndef CLI_TERMINAL_UTF8_H
#define CLI_TERMINAL_UTF8_H

#include "base/str.h"

/* Length of the character at the start of `s` and its code point; 0 when there is none or it is not valid. */
size_t utf8_next(struct str s, uint32_t *ret_char);
bool utf8_is_control(uint32_t c); /* C0, DEL, C1, and marks that turn the direction of text */
size_t utf8_width(uint32_t c);    /* 0, 1 or 2 columns */

/*
 * What stored text must not do to its reader: controls, marks of direction, and characters that nobody sees (without a width,
 * fillers, tags). They are shown as something else wherever text of others is shown, but for data as it is (JSON, pipes).
 * Joiners are among them: prose, where letters and emoji need them, lets them through.
 */
bool utf8_is_unseen(uint32_t c);
bool utf8_is_joiner(uint32_t c);

#endif
