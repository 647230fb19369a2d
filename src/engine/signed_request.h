/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that a request of somebody causes, and what it has caused already: base/cause.h. */
#ifndef ENGINE_SIGNED_REQUEST_H
#define ENGINE_SIGNED_REQUEST_H

#include "base/cause.h"
#include "base/digest.h"
#include "tidemark.h"

/*
 * Begins the digest by which a request is known again. It stands in logs, so it is made with the user's key: else the process that reads one could
 * try what a request held until the digest fits.
 */
void request_digest_begin(tide_store *store, struct digest_state *d);

/* The next append of this handle is this request's. */
void request_sign(tide_session *session, const struct cause *request);

/* The event at or behind `from` that the request with this id caused, in the arena: *ret_seq 0 when there is none. */
enum tide_code request_find(tide_session *session, struct arena *a, const char *id, int64_t from, int64_t *ret_seq,
                            struct json **ret_event, struct tide_err *err) MUST_CHECK;

/* tide_session_cancel() by a request. */
enum tide_code request_cancel(tide_store *store, const char *id, const struct cause *request, const char *reason,
                              int wait_ms, enum tide_cancelled *ret_how, struct tide_err *err) MUST_CHECK;

#endif
