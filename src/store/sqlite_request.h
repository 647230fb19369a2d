/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as bytes in shared memory, for another process to commit; and what came of them. */
#ifndef STORE_SQLITE_REQUEST_H
#define STORE_SQLITE_REQUEST_H

#include "store/group.h"

/* Batches of another process, and what is known of it. */
struct request {
    struct request *next;
    unsigned slot;
    int64_t boot; /* its row of `boots` */
    struct batch *list;
    struct group_owner *owners; /* in place of those whose batches these are */
};

/*
 * False: one of them is not for others to commit, or there is no room. `may_hold`: the process can have leases. `number`: another
 * one for every request of the area.
 */
bool request_put(const struct batch *list, bool may_hold, uint32_t number, void *area, size_t room);
/* NULL: it is damaged. Nothing in the area is relied on: it is copied first, and every length is checked. */
struct request *request_get(struct arena *a, const void *area, size_t room);

/* Which batches were taken, and where their events go. Before the commit. */
void request_results_put(const struct request *r, void *area, size_t room);
/* By the process that asked: sets what comes out, and `answered`, of those that were taken. False: damaged. */
bool request_results_get(struct batch *list, void *area, size_t room);

#endif
