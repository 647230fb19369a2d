/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit. Callers queue batches; one writer at a time takes everything queued and commits it in one transaction,
 * so that the cost of the sync is shared. Who writes: a caller that waits does it itself when nobody else is at it (no
 * hand-over between threads for a lone caller); for queued work that nobody waits for there is one thread. What may be
 * written later waits some milliseconds for a caller that commits it with its own. In simulation there is no thread, and the
 * same step is driven by the caller that waits.
 *
 *   submit ─► queue (bounded: a full queue blocks the caller) ─► step: commit ─► finished ─► waiters, completions
 */
#ifndef STORE_GROUP_H
#define STORE_GROUP_H

#include <stdatomic.h>

#include "store/store.h"

struct group *group_new(struct store *store, size_t queue_max);
void group_free(struct group *g); /* finishes what is queued */

/* Takes the batch into the queue, for somebody who waits for it; for nobody; for nobody, and not at once. */
enum group_when { GROUP_AWAITED, GROUP_SOON, GROUP_LATER };
void group_submit(struct group *g, struct batch *b, enum group_when when);

/* Waits until the batch is finished; it is the caller's again. */
void group_wait(struct group *g, struct batch *b);

/* What went through it; the watchers are not its own. */
void group_count(struct group *g, struct tide_store_counts *ret);

/* Waits until all batches of this owner are finished; returns and clears the owner's first failure since the last call. */
struct group_owner {
    atomic_size_t pending;  /* read without the lock: 0 means that the rest is the owner's to read */
    struct tide_err failed; /* code 0: none. Set: batches queued behind the failed one fail with it, until flushed */
    int64_t next_seq;       /* seq after the last finished batch, when code 0 */
    int64_t epoch;          /* of the lease that its batches took; 0: none. The writer's while batches are pending */
};
enum tide_code group_flush(struct group *g, struct group_owner *owner, struct tide_err *err);

/* Something is queued, or failed and was not reported yet. */
static inline bool group_owes(const struct group_owner *owner)
{
    return owner->pending || owner->failed.code;
}

/* Completions of batches that have a user pointer. */
size_t group_reap(struct group *g, struct tide_completion *out, size_t max, int timeout_ms);

/* Runs fn as the only writer. */
enum tide_code group_alone(struct group *g, enum tide_code (*fn)(struct store *, struct tide_err *),
                           struct tide_err *err);

/* Keeps a thread awake for heartbeats; called when the process holds a lease. */
void group_keep_alive(struct group *g);

/* The store is maintained at this monotonic time, or soon after; where there is a thread, if nobody commits then. */
void group_maintain_by(struct group *g, int64_t mono_ns);

#endif
