/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a store: a commit by any thread or any other process wakes every watcher, once. See hub.c; the calls of watchers are
 * public (tide_watch_…).
 */
#ifndef STORE_HUB_H
#define STORE_HUB_H

#include "store/store.h"

struct hub *hub_new(struct store *store); /* costs nothing until the first watcher is opened */
void hub_free(struct hub *h);             /* every watcher is closed */
void hub_committed(struct hub *h);        /* this process has committed: needed where the kernel does not report it */
void hub_tell(
    struct hub *h); /* any thread: something may have changed. For backends that learn of commits in another way */

size_t hub_count(struct hub *h); /* how many watchers there are */

#endif
