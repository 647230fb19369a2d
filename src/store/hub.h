/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a store: a commit by any thread or any other process wakes every watcher, once. See hub.c; the calls of watchers are
 * public (tide_watch_…).
 */
#ifndef STORE_HUB_H
#define STORE_HUB_H

#include "store/store.h"

struct hub *hub_new(struct store *store); /* costs nothing until the first watcher comes */
void hub_free(struct hub *h);             /* every watcher is closed */
void hub_committed(struct hub *h);        /* by this process: where the kernel would not tell */
void hub_tell(
    struct hub *h); /* any thread: something may have changed. For backends that are told of commits otherwise */

size_t hub_count(struct hub *h); /* watchers, now */

#endif
