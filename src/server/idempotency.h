/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests with an Idempotency-Key: each is carried out once, and the caller that repeats it gets the first answer. A key belongs to the token
 * that sent it, and is kept for a day, across restarts.
 *
 *   begun (on disk) ─► the effect, whose event names the request ─► answer (on disk) ─► sent
 *
 * A process that ends between these leaves a request that was begun: whether it had its effect is asked of the session's log.
 */
#ifndef SERVER_IDEMPOTENCY_H
#define SERVER_IDEMPOTENCY_H

#include "server/call.h"

/* The journal of the store with this URL, in the state directory. Locked: a second one on the same store is refused. */
enum tide_code idempotency_open(const char *store_url, struct idempotency **ret, struct tide_err *err) MUST_CHECK;
void idempotency_close(struct idempotency *i); /* takes NULL */

enum claimed {
    CLAIM_NEW,   /* to be carried out: idempotency_end() is called with its answer */
    CLAIM_AGAIN, /* the same; it was begun before, by a process that is gone */
    CLAIM_TAKEN, /* the call is answered, or will be when the first one is: it may be gone */
};
/*
 * Of a call with a key. TIDE_EXISTS: the key was used for another request. If it fails with CLAIM_NEW, those that repeat it may wait
 * already: idempotency_end() is called all the same.
 */
enum tide_code idempotency_claim(struct idempotency *i, struct call *c, enum claimed *ret, struct tide_err *err)
    MUST_CHECK;
/* Its answer is kept when it is one of success, else the key is free again. Those who wait for it are answered. */
void idempotency_end(struct idempotency *i, struct call *c, int status, const char *type, struct str kept);

#endif
