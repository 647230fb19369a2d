/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a session at a server, a page at a time. */
#ifndef REMOTE_REMOTE_LOG_H
#define REMOTE_REMOTE_LOG_H

#include "remote/remote.h"

struct remote_log {
    const char *session_id;
    int64_t after, to; /* events behind `after`, up to `to` (0: to its end); `after` moves on */
    bool inherited;
};

/* The next events (an array; NULL: there are no more), and where they end. They live until the next page is asked for. */
enum tide_code remote_log_page(struct remote *r, struct remote_log *log, const struct json **ret, struct tide_err *err)
    MUST_CHECK;

/* All of its own events, as tide_session_read() gives them; `pos`, `epoch` and `digest` are not known. */
enum tide_code remote_log_read(struct remote *r, const struct tide_session_info *info, tide_event_fn *fn, void *arg,
                               struct tide_err *err) MUST_CHECK;

#endif
