/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of a transcript: from the end back, or from an event on. What is read is bounded, however long the log is: a page of a log in which
 * little is said has fewer entries than were asked for, and says where the next one begins.
 */
#ifndef ENGINE_TRANSCRIPT_PAGE_H
#define ENGINE_TRANSCRIPT_PAGE_H

#include "engine/transcript.h"

#define TRANSCRIPT_LOOK_MAX 20000 /* events that one page looks at */

struct transcript_page {
    /* In. The first entries behind `after`; or, unless `forward`, the last ones before `before`. */
    bool forward;
    int64_t after, before; /* seqs; 0: none */
    int64_t limit;         /* entries; of one event all or none are there */
    size_t max_bytes;      /* of their texts: one entry at least is there */
    /* Out. */
    int64_t entries_before, entries_after; /* for `before` and `after` of the pages beside it; 0: there is none */
    struct transcript_window window;
};

/* Where the page begins and ends. */
enum tide_code transcript_page_find(tide_session *session, struct transcript_page *page, struct tide_err *err)
    MUST_CHECK;
/* Its entries, once it was found. */
enum tide_code transcript_page_read(tide_session *session, struct transcript_page *page, transcript_fn *fn, void *arg,
                                    struct tide_err *err) MUST_CHECK;

#endif
