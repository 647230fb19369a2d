/* SPDX-License-Identifier: Apache-2.0 */
/* Events that say who asked for them: base/cause.h. A name takes the place of "local" and "token". */
#ifndef SESSION_CAUSE_SIGN_H
#define SESSION_CAUSE_SIGN_H

#include "base/cause.h"
#include "tidemark.h"

/* `in` with who asked, in the arena. `acts`: it is the event that the request is for. */
struct tide_new_event cause_sign(struct arena *a, const struct cause *q, const struct tide_new_event *in, bool acts);
/* The event of a batch that a request is for: what it settles on the way is not. */
size_t cause_act(const struct tide_new_event *events, size_t n);

/* tide_session_cancel() by a request. */
enum tide_code session_cancel(tide_store *store, const char *id, const struct cause *q, const char *reason, int wait_ms,
                              enum tide_cancelled *ret_how, struct tide_err *err) MUST_CHECK;

#endif
