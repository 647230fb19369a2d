/* SPDX-License-Identifier: Apache-2.0 */
/* Where to go back to. The prompt of a turn that was cut is never rolled back: it was accepted, and is answered. */
#ifndef ENGINE_ROLLBACK_H
#define ENGINE_ROLLBACK_H

#include "base/err.h"

/* A seq, or a checkpoint of the session by id or unique prefix, as a seq that the session has reached. */
enum tide_code session_position(tide_session *session, const char *text, int64_t *ret_seq, struct tide_err *err)
    MUST_CHECK;

/*
 * `checkpoint` (the latest, but never behind a prompt that has no answer; -1: there is none yet), seq:N, a checkpoint's id.
 * A run whose process is gone is still open: it is ended first, or it would look as if it were ours.
 */
enum tide_code rollback_point(tide_store *store, tide_session *session, const char *from, int64_t *ret_seq,
                              struct tide_err *err) MUST_CHECK;

/* Rolls back. *ret_question: what it waits for, the caller's; NULL: it does not wait. Nothing is deleted. */
enum tide_code rollback_to(tide_session *session, int64_t seq, unsigned flags, const char *reason, char **ret_question,
                           struct tide_err *err) MUST_CHECK;

#endif
