/* SPDX-License-Identifier: Apache-2.0 */
/* The store of a simulated machine, of the kind that --store or TIDEMARK_TEST_STORE names: for all simulators. */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "../store_kind.h"
#include "env/sim.h"
#include "store/store.h"

#define STORE_DIR "/data"
#define STORE_PATH STORE_DIR "/t.db" /* of SQLite */

/* As if the variable had been set: also for what is printed to see a failure again. */
static inline bool sim_store_choose(const char *name)
{
    for (size_t i = 0; i < sizeof store_kinds / sizeof store_kinds[0]; i++) {
        if (strcmp(name, store_kinds[i].name) == 0)
            return setenv("TIDEMARK_TEST_STORE", name, 1) == 0;
    }
    return false;
}

/* What has to be added to a command line to see the same again. */
static inline const char *sim_store_words(void)
{
    return on_files() ? " --store files" : "";
}

static inline tide_store *sim_store_open(struct sim_proc *p, int64_t lease_ms, struct tide_err *err)
{
    const struct tide_store_options opt = {.size = sizeof opt,
                                           .flags = TIDE_OPEN_CREATE,
                                           .lease_ms = lease_ms,
                                           .origin_key = TEST_KEY,
                                           .origin_key_len = sizeof TEST_KEY};
    struct store *store = NULL;
    char url[40];

    return store_open(store_url_in(url, sizeof url, STORE_DIR, "t"), &opt, sim_proc_env(p), &store, err)
               ? NULL
               : (tide_store *)(void *)store;
}

/* The views for people cost every opening time and have no part in this; `heads` is used by the store's own check. */
static inline void sim_store_drop_views(struct sim_proc *p)
{
    static const char drop[] =
        "DROP VIEW sessions_v; DROP VIEW messages; DROP VIEW token_usage; DROP VIEW errors;"
        "DROP VIEW checkpoints; DROP VIEW runs; DROP VIEW message_rows; DROP VIEW descriptions; DROP VIEW spans; PRAGMA wal_checkpoint(TRUNCATE)";
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(STORE_PATH, &db, SQLITE_OPEN_READWRITE, sim_proc_env(p)->sqlite_vfs) ||
        sqlite3_exec(db, drop, NULL, NULL, NULL)) {
        printf("# the views cannot be dropped: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
    sqlite3_close(db);
}

/* A prepared disk without what only costs every seed time. Nobody has the store open. */
static inline void sim_store_trim(struct sim *sim)
{
    unsigned char *bytes;
    size_t len;

    if (on_files())
        return;
    sim_store_drop_views(sim_proc_start(sim));
    if (sim_file_bytes(sim, STORE_PATH "-reserve", &bytes, &len))
        sim_file_set_size(sim, STORE_PATH "-reserve", 512);
}

#endif
