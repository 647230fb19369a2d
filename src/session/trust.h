/* SPDX-License-Identifier: Apache-2.0 */
/* Whether anything of a session may run: it began here, or a person trusted it. */
#ifndef SESSION_TRUST_H
#define SESSION_TRUST_H

#include "session/run.h"

/* TIDE_UNTRUSTED unless this user's Tidemark wrote all of it. Before anything of a session runs. */
enum tide_code trust_check(struct store *store, const struct head *h, struct tide_err *err) MUST_CHECK;

/* The same for one that continues: and the events that say what runs are those that were written. After session_sync(). */
enum tide_code trust_prove(struct tide_session *s, struct tide_err *err) MUST_CHECK;

/* Whether a proof that holds covers the session's own events up to seq: a fork there is as trusted as they are. */
enum tide_code trust_reaches(struct store *store, const struct head *h, int64_t seq, bool *ret_ours,
                             struct tide_err *err) MUST_CHECK;

/* The token of a wait that was imported works nowhere: its secret was given to somebody elsewhere. */
enum tide_code trust_revoke_imported(struct store *store, const char *id, const struct state *runs,
                                     struct tide_err *err) MUST_CHECK;

#endif
