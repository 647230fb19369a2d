/* SPDX-License-Identifier: Apache-2.0 */
/* From a store to a state: the newest snapshot and what came after, across rollbacks and forks. */
#ifndef SESSION_LOAD_H
#define SESSION_LOAD_H

#include "session/state.h"
#include "store/store.h"

/* What loading cost, to decide when the next snapshot is worth writing. */
struct load_cost {
    int64_t snapshot_seq; /* 0: from the beginning */
    size_t snapshot_bytes;
    size_t tail_bytes; /* of events folded after it */
};

/* The state as of `seq` (which the log must have; for a fork also one of its past). */
enum tide_code state_load(struct store *store, const struct head *head, int64_t seq, struct state **ret_state,
                          struct load_cost *ret_cost, struct tide_err *err) MUST_CHECK;

/* Folds the events after state->seq up to head->last_seq; a rollback among them makes it load anew. */
enum tide_code state_catch_up(struct store *store, const struct head *head, struct state **state,
                              struct load_cost *cost, struct tide_err *err) MUST_CHECK;

/* Reads seqs from..to of a session or, below its first, of the sessions it was forked from, in order. */
enum tide_code read_through(struct store *store, const struct head *head, int64_t from, int64_t to, store_event_fn *fn,
                            void *arg, struct tide_err *err) MUST_CHECK;

/* The session that a fork stands on, proved to be the one: it has the event that the fork's digests begin with. */
enum tide_code history_parent(struct store *store, const struct head *head, struct head *ret, struct tide_err *err)
    MUST_CHECK;

/* Itself, or the one of this id among those that it stands on, proved link by link. */
enum tide_code history_writer(struct store *store, const struct head *head, const char *id, struct head *ret,
                              struct tide_err *err) MUST_CHECK;

/* For who is about to continue behind event `to`: a stored state says nothing of the events before it, a log's file may. */
enum tide_code history_prove(struct store *store, const struct head *head, int64_t to, struct tide_err *err) MUST_CHECK;
/* The same without the sessions that it is a fork of. */
enum tide_code history_prove_own(struct store *store, const struct head *h, int64_t to, struct tide_err *err)
    MUST_CHECK;
/* All of a session, as it is now. */
enum tide_code history_prove_now(struct store *store, const char *id, struct tide_err *err) MUST_CHECK;

/* Refuses to stand one more fork on this session: loading goes from fork to parent, and must not go for ever. */
#define FORKS_DEEP 1000
enum tide_code fork_depth_check(struct store *store, const struct head *parent, struct tide_err *err) MUST_CHECK;

#define EVENT_OVERHEAD 80 /* bytes an event costs beyond its body, roughly: what snapshots are weighed against */

#endif
