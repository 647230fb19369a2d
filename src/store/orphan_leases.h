/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases of this process that no handle of it knows, because the disk failed when they were taken or released. For
 * others the session is held, so they are released as soon as the disk can be written. Added and removed by the writer;
 * any thread may read them.
 */
#ifndef STORE_ORPHAN_LEASES_H
#define STORE_ORPHAN_LEASES_H

#include <pthread.h>

#include "base/map.h"
#include "store/store.h"

struct orphans {
    pthread_mutex_t mu;
    struct map at; /* session id -> struct orphan * */
};

void orphans_init(struct orphans *o);
void orphans_done(struct orphans *o);

/* `from_ms`: not given back before; who took it may look at the log until then, and find that it has the lease after all. */
void orphan_note(struct orphans *o, const char *id, int64_t epoch, int64_t from_ms);
void orphan_drop(struct orphans *o, const char *id);
bool orphan_is(struct orphans *o, const char *id, int64_t epoch);

/* By the writer: whether one of them can be tried (again); and the try, by commits of the store. */
bool orphans_due(struct orphans *o, struct store *store);
void orphans_give_back(struct orphans *o, struct store *store);

#endif
