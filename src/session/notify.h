/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications of changes of runs. The log is the outbox: the event that changes a run says "notify": true when the
 * process that writes has such a setting (struct store_notify), so the wish is durable with the change itself. What was
 * sent is notify.sent; what could not be is notify.failed, with the time of the next try, or without one when it was
 * given up. Until then the session stays where recovery looks. Each is sent at least once, in order, under an id that
 * stays the same: SESSION:SEQ.
 */
#ifndef SESSION_NOTIFY_H
#define SESSION_NOTIFY_H

#include "session/session.h"

enum notify_transition { NOTIFY_WAITING = 1, NOTIFY_INTERRUPTED = 2, NOTIFY_FAILED = 4, NOTIFY_COMPLETED = 8 };
#define NOTIFY_WORDS "waiting interrupted failed completed"

/* The change that this word means; 0: none. */
unsigned notify_transition_of(struct str word);

/* Whether this event, about to be written, asks for it; and the body that does, of one that ends with '}'. */
bool notify_wants(const struct store *store, struct str kind, const struct json *body);
void notify_mark(struct buf *body);

/* Something of the session is to be sent now. */
bool notify_is_due(const struct state *s, int64_t now_ms);

/* Wakes the sender: there is something to send. */
void notify_tell(struct store *store);

#define NOTIFY_ID_SIZE (TIDE_ID_SIZE + 24)

/* A notification. Texts are in its arena. */
struct notification {
    char id[NOTIFY_ID_SIZE], session[TIDE_ID_SIZE];
    const char *transition; /* of NOTIFY_WORDS */
    int64_t seq, at_ms, attempt;
    const char *run_id, *reason, *error, *wait_kind, *question; /* NULL: none */
    struct arena arena;
};
void notification_done(struct notification *n);

/* The next one of the session that is due. TIDE_NOT_FOUND: none is, or the session is not trusted. */
enum tide_code notify_next(struct store *store, const char *session, struct notification *ret, struct tide_err *err)
    MUST_CHECK;

/*
 * Records what became of it: sent (why NULL), or failed; then it is tried again from retry_ms on, unless that is 0. TIDE_OK also
 * when the session is gone.
 */
enum tide_code notify_record(struct store *store, const struct notification *n, int64_t took_ms, const char *why,
                             int64_t retry_ms, struct tide_err *err) MUST_CHECK;

/* Sessions that may have one that is due, as ids one after the other; the caller frees it. */
struct notify_list {
    char (*ids)[TIDE_ID_SIZE];
    size_t n, cap;
};
enum tide_code notify_find(struct store *store, struct notify_list *ret, struct tide_err *err) MUST_CHECK;

#endif
