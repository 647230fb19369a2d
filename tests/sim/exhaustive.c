/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same work again and again, with the fault at the 1st, 2nd, 3rd… operation until it comes too late; for power cuts
 * and kills also with a second one at every operation of what follows.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "world.h"

struct kind_of_fault {
    enum sim_fault fault;
    bool sticky;
    const char *name;
};

static const struct kind_of_fault faults[] = {
    {SIM_POWER_CUT, false, "power_cut"},
    {SIM_KILL, false, "kill"},
    {SIM_EIO, false, "io_error"},
    {SIM_EIO, true, "io_error_for_good"},
    {SIM_ENOSPC, false, "no_space"},
    {SIM_ENOSPC, true, "no_space_for_good"},
    {SIM_SHORT_WRITE, false, "short_write"},
    {SIM_SHORT_WRITE, true, "short_write_for_good"},
    {SIM_SYNC_FAILS, false, "failed_sync"},
    {SIM_SYNC_FAILS, true, "failed_sync_for_good"},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

static struct o_session *find(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->session_count; i++) {
        if (strcmp(w->sessions[i].id, id) == 0 && w->sessions[i].presence == PRESENT)
            return &w->sessions[i];
    }
    return NULL;
}

/* The process of that slot, unless it is dead or something is wrong already. */
static struct proc *get(struct world *w, int slot)
{
    bury_the_dead(w);
    return !w->failed && slot < w->proc_count && proc_alive(&w->procs[slot]) ? &w->procs[slot] : NULL;
}

#define ON(slot, id, call)                                                                                             \
    do {                                                                                                               \
        struct proc *p = get(w, slot);                                                                                 \
        struct o_session *s = find(w, id);                                                                             \
        if (p && s)                                                                                                    \
            call;                                                                                                      \
    } while (0)

static void create(struct world *w, int slot, const char *id)
{
    struct proc *p = get(w, slot);

    if (p)
        do_create(w, p, id);
}

/* ---- Workloads ------------------------------------------------------------------------------------------------ */

static void work_small(struct world *w)
{
    create(w, 0, "s0");
    ON(0, "s0", do_append(w, p, s, 3, 0));
    ON(0, "s0", do_append(w, p, s, 2, TIDE_APPEND_RELEASE));
}

static void work_all(struct world *w)
{
    struct proc *q;

    create(w, 0, "s0");
    ON(0, "s0", do_append(w, p, s, 3, 0));
    create(w, 1, "s1");
    ON(1, "s1", do_append(w, p, s, 2, 0));
    ON(1, "s0", do_input(w, p, s));
    ON(0, "s0", do_append(w, p, s, 70, TIDE_APPEND_ANY));
    if ((q = get(w, 1)) != NULL)
        do_async(w, q);
    ON(0, "s0", do_checkpoint(w, p, s));
    ON(0, "s0", do_rollback(w, p, s));
    ON(1, "s0", do_fork(w, p, s));
    sim_advance(w->sim, LEASE_MS + 1000);
    ON(1, "s0", do_append(w, p, s, 2, TIDE_APPEND_ANY));
    ON(0, "s0", do_append(w, p, s, 2, 0));
    ON(0, "s0", do_marks_gone(w, p, s));
    ON(1, "s1", do_close(w, p, s));
    ON(0, "s1", do_delete(w, p, s));
    create(w, 0, "s1");
    ON(0, "s1", do_append(w, p, s, 4, TIDE_APPEND_RELEASE));
    ON(1, "s1", do_move(w, p, s));
}

static void work_big(struct world *w)
{
    create(w, 0, "s0");
    ON(0, "s0", do_append_big(w, p, s, 17));
    create(w, 0, "s1");
    ON(0, "s1", do_append_big(w, p, s, 1));
    ON(0, "s0", do_move(w, p, s));
    ON(0, "s1", do_delete(w, p, s));
}

struct workload {
    const char *name;
    int processes;
    bool empty_disk;
    void (*run)(struct world *w);
};

static const struct workload workloads[] = {
    {"first_steps_on_an_empty_disk", 1, true, work_small},
    {"everything_there_is", 2, false, work_all},
};

/* ---- One run -------------------------------------------------------------------------------------------------- */

static void afterwards(struct world *w, bool cut, bool thorough)
{
    disarm(w);
    bury_the_dead(w);
    if (!w->failed)
        must_work_again(w);
    for (int i = 0; i < w->proc_count; i++) {
        if (w->procs[i].store)
            sim_proc_kill(w->procs[i].sim);
    }
    if (cut) {
        sim_power_cut(w->sim);
        w->cut_before = w->next_number;
    }
    bury_the_dead(w);
    sim_advance(w->sim, LEASE_MS + 1000);
    if (!w->failed && reboot(w, false))
        check_all(w, w->procs[0].store, true);
    if (!w->failed)
        must_work_again(w);
    if (!w->failed && thorough)
        check_rebuilt(w, w->procs[0].store);
}

/* True when the fault came too late. */
static bool run_at(const struct workload *work, const struct kind_of_fault *f, uint64_t n, const struct sim_image *image,
                   bool verbose, bool *ret_failed)
{
    struct world w;
    bool fired;

    world_init(&w, 77, work->empty_disk ? NULL : image);
    w.verbose = verbose;
    arm(&w, f->fault, n, f->sticky);
    for (int i = 0; i < work->processes && !w.failed; i++)
        proc_start(&w, i);
    work->run(&w);
    fired = sim_fault_fired(w.sim);
    afterwards(&w, f->fault != SIM_KILL, n % 8 == 0);
    *ret_failed = w.failed;
    world_done(&w);
    return !fired;
}

static int report(const char *work, const char *fault, uint64_t n, bool failed)
{
    if (failed)
        printf("# it failed with %s at operation %llu of %s\n", fault, (unsigned long long)n, work);
    printf("%sok - %s_with_%s_at_every_operation (%llu)\n", failed ? "not " : "", work, fault, (unsigned long long)n);
    return failed;
}

static int fault_everywhere(const struct workload *work, const struct kind_of_fault *f, const struct sim_image *image,
                            bool verbose)
{
    bool failed = false, late = false;
    uint64_t n = 0;

    while (!late && !failed)
        late = run_at(work, f, ++n, image, false, &failed);
    if (failed && verbose)
        run_at(work, f, n, image, true, &failed);
    return report(work->name, f->name, n, failed);
}

/* A long workload: every so many operations. */
static int sparse(const struct workload *work, const struct sim_image *image, bool verbose)
{
    int bad = 0;

    for (size_t j = 0; j < 2; j++) {
        bool failed = false, late = false;
        uint64_t n = 1, runs = 0;

        for (; !late && !failed; n += 11, runs++)
            late = run_at(work, &faults[j], n, image, verbose, &failed);
        if (failed)
            printf("# it failed with %s at operation %llu of %s\n", faults[j].name, (unsigned long long)n - 11, work->name);
        printf("%sok - %s_with_%s (%llu)\n", failed ? "not " : "", work->name, faults[j].name, (unsigned long long)runs);
        bad |= failed;
    }
    return bad;
}

/* ---- And again in recovery ------------------------------------------------------------------------------------ */

static bool run_twice(const struct kind_of_fault *f, uint64_t n, uint64_t m, const struct sim_image *image, bool *ret_late,
                      bool *ret_failed)
{
    struct world w;
    bool fired;

    world_init(&w, 78, image);
    arm(&w, f->fault, n, false);
    proc_start(&w, 0);
    work_small(&w);
    *ret_late = !sim_fault_fired(w.sim);
    disarm(&w);
    bury_the_dead(&w);
    if (proc_alive(&w.procs[0]))
        sim_power_cut(w.sim);
    w.cut_before = w.next_number;
    bury_the_dead(&w);
    sim_advance(w.sim, LEASE_MS + 1000);
    arm(&w, f->fault, m, false);
    if (!w.failed && proc_start(&w, 0)) {
        struct o_session *s;

        check_all(&w, w.procs[0].store, false);
        s = find(&w, "s0");
        if (!w.failed && s)
            do_append(&w, &w.procs[0], s, 2, 0);
    }
    fired = sim_fault_fired(w.sim);
    afterwards(&w, true, m % 4 == 0);
    *ret_failed = w.failed;
    world_done(&w);
    return !fired;
}

static int twice_everywhere(const struct kind_of_fault *f, const struct sim_image *image)
{
    bool failed = false, late = false, second_late;
    uint64_t n, m = 0, runs = 0;

    for (n = 1; !late && !failed; n++) {
        second_late = false;
        for (m = 1; !second_late && !failed; m++, runs++)
            second_late = run_twice(f, n, m, image, &late, &failed);
    }
    if (failed)
        printf("# it failed with %s at operation %llu and again at %llu\n", f->name, (unsigned long long)n - 1,
               (unsigned long long)m - 1);
    printf("%sok - %s_at_every_operation_and_again_in_recovery (%llu)\n", failed ? "not " : "", f->name,
           (unsigned long long)runs);
    return failed;
}

static bool wanted(const char *only, const char *name)
{
    return !only || strstr(name, only);
}

/* ---- Upgrades ------------------------------------------------------------------------------------------------- */

/* What a store of the version before looked like. */
static bool downgrade(struct world *w)
{
    static const char sql[] =
        "DROP VIEW IF EXISTS sessions_v; DROP VIEW IF EXISTS messages; DROP VIEW IF EXISTS token_usage;"
        "DROP VIEW IF EXISTS errors; DROP VIEW IF EXISTS checkpoints; DROP VIEW IF EXISTS runs; DROP VIEW IF EXISTS spans;"
        "DROP VIEW IF EXISTS heads; PRAGMA user_version=1";
    sqlite3 *db = NULL;
    struct sim_proc *p = sim_proc_start(w->sim);
    bool ok = sqlite3_open_v2(STORE_PATH, &db, SQLITE_OPEN_READWRITE, sim_proc_env(p)->sqlite_vfs) == SQLITE_OK &&
              sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;

    sqlite3_close(db);
    sim_proc_kill(p);
    return ok;
}

static bool upgrade_at(const struct kind_of_fault *f, uint64_t n, const struct sim_image *image, bool *ret_failed)
{
    struct world w;
    bool fired;

    world_init(&w, 79, image);
    proc_start(&w, 0);
    work_small(&w);
    proc_exit(&w, &w.procs[0]);
    if (!downgrade(&w))
        wrong(&w, "the store cannot be taken back to version 1");
    arm(&w, f->fault, n, f->sticky);
    if (!w.failed)
        proc_start(&w, 0);
    fired = sim_fault_fired(w.sim);
    afterwards(&w, f->fault != SIM_KILL, true);
    *ret_failed = w.failed;
    world_done(&w);
    return !fired;
}

int run_upgrade(bool verbose, const char *only)
{
    struct sim_image *image = prepared_image();
    int bad = 0;

    (void)verbose;
    for (size_t i = 0; i < FAULTS && wanted(only, "upgrade"); i++) {
        bool failed = false, late = false;
        uint64_t n = 0;

        while (!late && !failed)
            late = upgrade_at(&faults[i], ++n, image, &failed);
        bad |= report("upgrade", faults[i].name, n, failed);
    }
    sim_image_free(image);
    return bad;
}

int run_exhaustive(bool verbose, const char *only)
{
    static const struct workload big = {"big_values_out_and_in", 1, false, work_big};
    struct sim_image *image = prepared_image();
    int bad = 0;

    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        for (size_t j = 0; j < FAULTS && wanted(only, workloads[i].name); j++)
            bad |= fault_everywhere(&workloads[i], &faults[j], image, verbose);
    }
    if (wanted(only, "recovery"))
        bad |= twice_everywhere(&faults[0], image) | twice_everywhere(&faults[1], image);
    if (wanted(only, big.name))
        bad |= sparse(&big, image, verbose);
    sim_image_free(image);
    return bad;
}
