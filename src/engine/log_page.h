/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of a log: the events behind a seq, or those just before one, of some kinds or with some words. What is looked at is bounded: a page
 * with filters may have fewer events than were asked for, and says how far it looked.
 */
#ifndef ENGINE_LOG_PAGE_H
#define ENGINE_LOG_PAGE_H

#include <stdbool.h>

#include "base/err.h"
#include "tidemark.h"

#define LOG_LOOK_MAX 20000 /* events that one page with filters looks at */

struct log_page {
    /* In. */
    int64_t after, to; /* behind this seq, up to that one (0: the end) */
    int64_t before;    /* not 0: the last ones before this seq, in order, and behind `after` */
    int64_t limit;
    size_t max_bytes;         /* of the events; one at least is there */
    bool inherited;           /* of a fork: also what it shares with its parents */
    const char *const *kinds; /* ended by NULL; one that ends with a dot stands for all that begin so; NULL: all */
    const char *text;         /* words, each in the kind or the data, in upper or lower case; NULL: any */
    /* Out: what was looked at. The next page is behind last_seq, the one before it before first_seq; 0: there is none. */
    int64_t first_seq, last_seq;
};

/* Hands the events to `fn`; it does not stop. */
typedef enum tide_code log_page_fn(void *arg, const struct tide_event *event, struct tide_err *err);
enum tide_code log_page_read(tide_session *session, struct log_page *page, log_page_fn *fn, void *arg,
                             struct tide_err *err) MUST_CHECK;

#endif
