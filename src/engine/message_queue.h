/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that no run has taken yet: looking at them, and taking one back. */
#ifndef ENGINE_MESSAGE_QUEUE_H
#define ENGINE_MESSAGE_QUEUE_H

#include "base/str.h"
#include "base/cause.h"
#include "tidemark.h"

struct queued_message {
    const char *queue_id;
    int64_t seq, ts_ms;
    struct str content; /* a text as it is, anything else as JSON */
};
typedef void queued_message_fn(void *arg, const struct queued_message *m);

/* In the order in which they are taken. */
enum tide_code message_queue_list(tide_session *session, queued_message_fn *fn, void *arg, struct tide_err *err)
    TIDE_MUST_CHECK;

/* TIDE_NOT_FOUND: it is not in the queue (any more). TIDE_HELD: a process runs the session and may take it. */
enum tide_code message_queue_withdraw(tide_store *store, tide_session *session, const char *queue_id,
                                      const struct cause *request, int64_t *ret_seq, struct tide_err *err)
    TIDE_MUST_CHECK;

/* How many no run has taken yet. */
enum tide_code message_queue_count(tide_session *session, int64_t *ret_n, struct tide_err *err) TIDE_MUST_CHECK;

#endif
