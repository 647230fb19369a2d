/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof of origin: a MAC under the user's own key over a session's id, an event's seq and its digest. The digest stands for
 * every event before it, so the proof at the end of a log says of all of it that this user's Tidemark wrote it. The key is
 * in no store, and a proof binds none: a copy keeps it, an edit or a foreign line behind it does not.
 */
#ifndef STORE_ORIGIN_H
#define STORE_ORIGIN_H

#include "store/store.h"

/* The key itself is kept for the checks of caches and for proofs of the first form; `mac`, which is derived from it, proves. */
void origin_key_set(struct origin_key *key, const void *bytes, size_t len);

void origin_prove(struct origin_proof *ret, const struct origin_key *key, struct str session, const struct event *ev);

/* Of the event with this seq and digest. Without a key nothing is proved. */
bool origin_holds(const struct origin_proof *proof, const struct origin_key *key, struct str session, int64_t seq,
                  const unsigned char digest[DIGEST_SIZE]);

/* Which events of a batch get one: the last, and checkpoints, because forks begin there, also of a log that is damaged later. */
bool origin_wants(const struct batch *b, size_t i);

/* This user's Tidemark wrote all of the session. */
bool origin_is_ours(const struct store *store, const struct head *h);

/*
 * Into the check of a cache, after its name: what a cache says is then believed only where this user's Tidemark made it. A
 * state that somebody else put beside a log could say that anything is to be run.
 */
void origin_mix(struct digest_state *d, const struct store *store);

#endif
