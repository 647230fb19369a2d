/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints of a session as a face lists them, also where its log is damaged. */
#ifndef ENGINE_CHECKPOINT_LIST_H
#define ENGINE_CHECKPOINT_LIST_H

#include "base/err.h"
#include "base/mem.h"
#include "tidemark.h"

struct checkpoint_list {
    struct arena arena;
    char session_id[TIDE_ID_SIZE];
    struct tide_checkpoint *at; /* those that were asked for, oldest first */
    size_t n, cap;
    const char *latest;     /* the newest of all that still count; NULL: there is none */
    int64_t total;          /* how many still count */
    struct tide_err damage; /* of the first event that cannot be read; code 0: all can be */
};

/* By the id or a unique prefix of the session. checkpoint_list_done() it, whatever this returns. */
enum tide_code checkpoint_list_read(tide_store *store, const char *id, const struct tide_checkpoint_filter *filter,
                                    struct checkpoint_list *ret, struct tide_err *err) MUST_CHECK;
void checkpoint_list_done(struct checkpoint_list *l);

#endif
