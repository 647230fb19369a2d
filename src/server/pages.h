/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are a page of a list: its rows are written as they are read, and behind them how to continue. */
#ifndef SERVER_PAGES_H
#define SERVER_PAGES_H

#include "server/call.h"

struct session_page {
    int64_t position; /* -1: the store has none */
    struct shape_stream sessions;
    const char *next_cursor; /* NULL: the last page; may be set while the rows are written */
};
struct event_page {
    struct shape_stream events;
    int64_t first_seq, last_seq; /* as of struct log_page; may be set while they are written */
};
struct message_page {
    struct shape_stream messages;
};

extern const struct shape shape_session_page, shape_event_page, shape_message_page;

/* Answers with a page, unless its rows could not be read: `code` is the result of writing them. */
enum tide_code call_reply_page(struct call *c, const struct shape *shape, const void *page, const enum tide_code *code)
    MUST_CHECK;
/*
 * With the sessions that the filter finds, from the call's `after` on, and at most its `limit` (50) of them. `runs`: none that only keeps
 * what a person set of a task.
 */
enum tide_code call_reply_sessions(struct call *c, const struct tide_list_filter *filter, bool runs,
                                   struct tide_err *err) MUST_CHECK;

#endif
