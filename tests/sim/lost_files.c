/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process works and closes the store, and is killed or loses its power at the 1st, 2nd, 3rd… operation of that. Then files
 * beside the database are gone, one or several. Whoever opens it next finds all that was acknowledged, or is refused; a store
 * that was closed is not refused. A power cut in the middle of a move leaves a part of it in the database, and the log, which has
 * all of it, is gone: that is damage, and whoever reads must be told so.
 */
#include <stdio.h>

#include "sim_store.h"
#include "world.h"

enum { MARK = 1, LOG = 2 };

static const struct {
    const char *name;
    unsigned files;
    enum sim_fault fault;
} losses[] = {
    {"the_mark_is_lost_after_a_kill", MARK, SIM_KILL},
    {"mark_and_log_are_lost_after_a_kill", MARK | LOG, SIM_KILL},
    {"the_mark_is_lost_after_a_power_cut", MARK, SIM_POWER_CUT},
    {"mark_and_log_are_lost_after_a_power_cut", MARK | LOG, SIM_POWER_CUT},
};

static void lose(struct world *w, unsigned files)
{
    struct sim_proc *p = sim_proc_start(w->sim);
    struct env *env = sim_proc_env(p);

    if (files & MARK)
        (void)!env->ops->unlink(env, STORE_PATH "-mark", NULL);
    if (files & LOG)
        (void)!env->ops->unlink(env, STORE_PATH "-wal", NULL);
    sim_proc_kill(p);
}

static int pass_over(void *arg, const struct tide_session_info *info)
{
    (void)arg;
    (void)info;
    return 0;
}

/* Whoever reads is told so. */
static bool is_named_damage(const struct world *w, tide_store *store)
{
    struct tide_err err;
    bool damaged = tide_session_list(store, NULL, pass_over, NULL, &err) == TIDE_CORRUPT;

    for (size_t i = 0; i < w->session_count && !damaged; i++) {
        tide_session *s = NULL;
        enum tide_code code = tide_session_open(store, w->sessions[i].id, TIDE_SESSION_READ, &s, &err);

        code = code ? code : tide_session_verify(s, NULL, NULL, NULL, &err);
        damaged = code == TIDE_CORRUPT;
        tide_session_close(s);
    }
    return damaged;
}

/* True: it opens, and is not known to be damaged where it may be (torn). */
static bool look_after(struct world *w, bool closed, bool torn)
{
    struct sim_proc *p = sim_proc_start(w->sim);
    struct tide_err err = {0};
    tide_store *store = open_store(w, p, &err);
    bool opens = store != NULL;

    if (!opens && (err.code != TIDE_CORRUPT || (!torn && !strstr(err.hints[0].arguments, "accept_loss"))))
        wrong(w, "refused without saying what was lost: %s", err.msg);
    if (!opens && closed)
        wrong(w, "a closed store is refused: %s", err.msg);
    if (opens && torn && !closed)
        opens = !is_named_damage(w, store);
    sim_proc_kill(p);
    tide_store_close(store);
    return opens;
}

/* True when the fault came too late. */
static bool lose_at(size_t i, uint64_t n, const struct sim_image *image, bool verbose, bool *ret_failed,
                    uint64_t *refused)
{
    struct world w;
    struct proc *p;
    bool fired;

    world_init(&w, 80 + n, image);
    w.verbose = verbose;
    arm(&w, losses[i].fault, n, false);
    p = proc_start(&w, 0);
    for (size_t j = 0; j < 2 && p && !w.failed && proc_alive(p); j++)
        do_create(&w, p, j ? "s1" : "s0");
    for (size_t j = 0; j < 6 && p && !w.failed && proc_alive(p); j++)
        do_append(&w, p, &w.sessions[j % w.session_count], 2, j > 3 ? TIDE_APPEND_RELEASE : 0);
    if (p && !w.failed && proc_alive(p))
        proc_exit(&w, p);
    fired = sim_fault_fired(w.sim);
    disarm(&w);
    bury_the_dead(&w);
    lose(&w, losses[i].files);
    sim_advance(w.sim, LEASE_MS + 1000);
    if (!w.failed && !look_after(&w, !fired, losses[i].files & LOG && losses[i].fault == SIM_POWER_CUT))
        ++*refused;
    else if (!w.failed && reboot(&w, false))
        check_all(&w, w.procs[0].store, true);
    *ret_failed = w.failed;
    world_done(&w);
    return !fired;
}

int run_lost(bool verbose, const char *only)
{
    struct sim_image *image = prepared_image();
    int bad = 0;

    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        bool failed = false, late = false;
        uint64_t n = 0, refused = 0;

        if (only && !strstr(losses[i].name, only))
            continue;
        while (!late && !failed)
            late = lose_at(i, ++n, image, false, &failed, &refused);
        if (failed) {
            printf("# it failed at operation %llu of %s\n", (unsigned long long)n, losses[i].name);
            if (verbose)
                lose_at(i, n, image, true, &failed, &refused);
        }
        printf("%sok - %s_at_every_operation (%llu, %llu refused)\n", failed ? "not " : "", losses[i].name,
               (unsigned long long)n, (unsigned long long)refused);
        bad |= failed;
    }
    sim_image_free(image);
    return bad;
}
