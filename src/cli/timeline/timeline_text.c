/* SPDX-License-Identifier: Apache-2.0 */
/* Text for the timeline: every value is cleaned, cut and padded by the columns it takes on a terminal. */
#include "cli/timeline/timeline_text.h"

#include <inttypes.h>
#include <stdio.h>

void tl_put_repeated(struct out *out, const char *glyph, int n)
{
    for (int i = 0; i < n; i++)
        buf_add_str(&out->text, str_from(glyph));
}

void tl_put_padded(struct out *out, const char *text, int columns)
{
    tl_put_repeated(out, " ", columns - out_fit(out, text, columns));
}

void tl_put_colored(struct out *out, enum color color, const char *text, int columns)
{
    int used;

    if (color != COLOR_NONE)
        outf(out, "%s", color_code(out, color));
    used = out_fit(out, text, columns);
    if (color != COLOR_NONE)
        outf(out, "%s", color_code(out, COLOR_NONE));
    tl_put_repeated(out, " ", columns - used);
}

void tl_end_line(struct out *out)
{
    while (out->text.len > 0 && out->text.ptr[out->text.len - 1] == ' ')
        out->text.len--;
    buf_add_char(&out->text, '\n');
}

const char *tl_took(char out[TIME_TAKEN_SIZE], int64_t ms)
{
    if (ms >= 1000)
        return time_taken(out, ms);
    snprintf(out, TIME_TAKEN_SIZE, "%" PRId64 " ms", ms > 0 ? ms : 0);
    return out;
}
