/* SPDX-License-Identifier: Apache-2.0 */
/* What a session has spent over time: sums, at some of its events. */
#ifndef ENGINE_USAGE_SERIES_H
#define ENGINE_USAGE_SERIES_H

#include "base/err.h"
#include "base/shape.h"
#include "tidemark.h"

struct usage_point {
    int64_t seq, ts_ms;
    struct tide_usage usage; /* up to there */
};

struct usage_series {
    struct usage_point *at;
    size_t n, cap;
    struct tide_usage total;
};

/*
 * At most `points`. Of a short log these are answers of models; of a long one, events at the same distance: its states are asked, so that
 * it costs the same however long the log is. usage_series_done() it, whatever this returns.
 */
#define USAGE_SHORT 20000 /* events */
enum tide_code usage_series_read(tide_session *session, size_t points, struct usage_series *ret, struct tide_err *err)
    MUST_CHECK;
void usage_series_done(struct usage_series *s);

extern const struct shape shape_usage_series; /* struct usage_series */

#endif
