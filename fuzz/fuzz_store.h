/* SPDX-License-Identifier: Apache-2.0 */
/* A store on a simulated disk for each input, and bytes as a source for import. */
#ifndef FUZZ_FUZZ_STORE_H
#define FUZZ_FUZZ_STORE_H

#include <sodium.h>

#include "env/sim.h"
#include "fuzz.h"
#include "store/store.h"

static tide_store *open_store(struct sim *sim)
{
    const struct tide_store_options opt = {.size = sizeof opt,
                                           .flags = TIDE_OPEN_CREATE,
                                           .max_record_bytes = 1 << 20,
                                           .origin_key = "a key for fuzzers",
                                           .origin_key_len = 17};
    struct store *store = NULL;

    MUST(store_open("sqlite:fuzz.db", &opt, sim_proc_env(sim_proc_start(sim)), &store, NULL) == TIDE_OK);
    return (tide_store *)(void *)store;
}

/* A disk with an empty store on it, made once. */
static const struct sim_image *empty_store(void)
{
    static struct sim_image *image;

    if (!image) {
        struct sim *sim = sim_new(1);

        MUST(sodium_init() >= 0);
        tide_store_close(open_store(sim));
        image = sim_image_take(sim);
        sim_free(sim);
    }
    return image;
}

/* A tide_source_fn over a struct str. */
static inline long give(void *arg, char *out, size_t max)
{
    struct str *rest = arg;
    size_t n = rest->len < max ? rest->len : max;

    memcpy(out, rest->ptr, n);
    *rest = (struct str){rest->ptr + n, rest->len - n};
    return (long)n;
}

#endif
