/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make and open handles share: session.c, session_create.c, hold.c. */
#ifndef SESSION_SESSION_HANDLE_H
#define SESSION_SESSION_HANDLE_H

#include "session/session.h"

/* Events that passed the check, with what it found out. */
struct checked {
    struct event *events;
    struct parsed *parsed;
    size_t n;
};

struct tide_session *session_new(struct store *store, unsigned flags);
void session_free(struct tide_session *s);

/* Takes the lease now. */
enum tide_code session_claim_lease(struct tide_session *s, struct tide_err *err) MUST_CHECK;

/* Folds the events into the state, which is then ahead of the log, and makes a batch of them with what goes along. */
struct batch *session_make_batch(struct tide_session *s, unsigned flags, struct checked *c);

#endif
