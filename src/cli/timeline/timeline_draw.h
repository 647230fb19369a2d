/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a timeline for people, in lines of at most `columns` (at least 80). */
#ifndef CLI_TIMELINE_TIMELINE_DRAW_H
#define CLI_TIMELINE_TIMELINE_DRAW_H

#include "terminal/output.h"
#include "engine/timeline.h"

#define TIMELINE_COLUMNS 80 /* it needs so many */

void timeline_draw(const struct timeline *t, struct out *out, int columns);

#endif
