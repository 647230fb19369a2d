/* SPDX-License-Identifier: Apache-2.0 */
/* What each session gets of a group of batches, before anything of it is written. */
#ifndef STORE_FILES_PLAN_H
#define STORE_FILES_PLAN_H

#include "store/files_store.h"

/* What one session gets of this group. */
struct part {
    struct files_log *l;
    struct head h;            /* as it will be */
    struct files_lease lease; /* … and the lease */
    struct files_lease before;
    bool before_lost;   /* it is an orphan of this process */
    bool took, changed; /* it is new here; it is another than on disk */
    bool first;         /* it was written before the lines */
    bool reveal, locked;
    int64_t epoch_written; /* of the last event */
    int64_t vouched;       /* as in the log */
    size_t n, cap;
    struct batch **batches; /* accepted */
    size_t n_lines;
    struct buf lines;
    int64_t *offsets; /* of each line, in the log */
    bool has_state;
    struct str summary, session_file, tokens;
    enum tide_code code;
    struct tide_err err;
};

struct parts {
    struct files_store *s;
    struct part *at;
    size_t n, cap;
    int64_t now_ms;
};

/*
 * The list as it is committed: in its order, but sessions of which nothing before them speaks are made first, so that they share
 * their syncs, and those who append theirs. For free().
 */
struct batch **plan_order(struct batch *list, size_t *ret_n);

/* All with s->mu. Locks and reads the logs of these batches, in the order of their ids. */
void parts_lock(struct parts *all, struct batch *const *list, size_t n);
/* Refuses the batch, or gives its events their place in the part of its session. */
void parts_offer(struct parts *all, struct batch *b);
void parts_unlock(struct parts *all); /* and forgets them */

#endif
