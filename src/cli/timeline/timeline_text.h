/* SPDX-License-Identifier: Apache-2.0 */
/* Text by columns, points and spans of time: what the rows of a timeline are put together from. */
#ifndef CLI_TIMELINE_TIMELINE_TEXT_H
#define CLI_TIMELINE_TIMELINE_TEXT_H

#include "base/timefmt.h"
#include "terminal/output.h"

void tl_put_repeated(struct out *out, const char *glyph, int n);

/* Of `text` what fits (out_fit), padded. */
void tl_put_padded(struct out *out, const char *text, int columns);
void tl_put_colored(struct out *out, enum color color, const char *text, int columns); /* padded */
void tl_end_line(struct out *out); /* without the blanks at its end */

const char *tl_took(char out[TIME_TAKEN_SIZE], int64_t ms); /* "312 ms", "4.2 s", "2m 03s" */

#endif
