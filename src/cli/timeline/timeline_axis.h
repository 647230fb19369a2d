/* SPDX-License-Identifier: Apache-2.0 */
/* Where a moment lies in the picture. */
#ifndef CLI_TIMELINE_TIMELINE_AXIS_H
#define CLI_TIMELINE_TIMELINE_AXIS_H

#include "engine/timeline.h"

struct axis {
    int64_t *at, *weight; /* moments, rising; how far each lies on the axis */
    size_t n;
    int64_t whole;
};

void axis_init(struct axis *a, const struct timeline *t); /* of one that has a run; `a` is all zero */
void axis_done(struct axis *a);

/* The column of a moment, 0 to width; one of something that is not drawn lies at the next that is. */
int axis_column(const struct axis *a, int64_t at, int width);

#endif
