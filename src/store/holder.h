/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the process behind a lease lives: the rules that every backend keeps, in one place. */
#ifndef STORE_HOLDER_H
#define STORE_HOLDER_H

#include <pthread.h>

#include "base/map.h"
#include "store/store.h"

/* A process that holds leases, as it has put itself down. */
struct holder {
    char boot_id[64];
    struct env_proc proc;
    int64_t expires_ms; /* Unix time; another one with every heartbeat */
    int64_t lease_ms;   /* 0: of a version that did not say */
    int64_t beat_ms;    /* the clock of its kernel at the last heartbeat; 0: likewise */
};

struct holders {
    bool local;           /* no other machine can have written what is in the store, but before this kernel booted */
    struct env_proc self; /* this process */
    pthread_mutex_t mu;
    struct map seen; /* boot id -> struct sighting */
};

void holders_init(struct holders *h, struct env *env);
void holders_done(struct holders *h);

void holder_beats(const struct holders *h, struct store *store, const char *boot_id, struct holder *ret); /* us, now */

/* Any thread. `ret_who`: in words, with how long it takes until it is known, when it is not. */
bool holder_alive(struct holders *h, struct store *store, const struct holder *who, char ret_who[160]);

#endif
