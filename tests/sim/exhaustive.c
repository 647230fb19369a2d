/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same work again and again, with the fault at the 1st, 2nd, 3rd… operation until it comes too late; for power cuts
 * and kills also with a second one at every operation of what follows.
 */
#include <endian.h>
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
    {SIM_READ_FAILS, false, "failed_read"},
    {SIM_READ_FAILS, true, "failed_read_for_good"},
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

static void work_held(struct world *w)
{
    create(w, 0, "s1");
    ON(0, "s1", do_append(w, p, s, 2, 0));
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
    ON(0, "s0", do_append_big(w, p, s, 17, 0));
    create(w, 0, "s1");
    ON(0, "s1", do_append_big(w, p, s, 1, 0));
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
    if (cut)
        sim_power_cut(w->sim);
    bury_the_dead(w);
    sim_advance(w->sim, -60000); /* the clock came up late, and nobody waits for a lease of the dead */
    if (!w->failed && reboot(w, false))
        check_all(w, w->procs[0].store, true);
    if (!w->failed)
        must_work_again(w);
    if (!w->failed && thorough)
        check_rebuilt(w, w->procs[0].store);
}

/* True when the fault came too late. */
static bool run_at(const struct workload *work, const struct kind_of_fault *f, uint64_t n,
                   const struct sim_image *image, bool verbose, bool *ret_failed)
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

/* A long workload: the first kinds of faults; files need fewer operations for it, and have I/O errors as well. */
static int long_work(const struct workload *work, const struct sim_image *image, bool verbose)
{
    size_t kinds = on_files() ? 4 : 2;
    int bad = 0;

    for (size_t j = 0; j < kinds; j++) {
        bool failed = false, late = false;
        uint64_t n = 0;

        while (!late && !failed)
            late = run_at(work, &faults[j], ++n, image, verbose, &failed);
        if (failed)
            printf("# it failed with %s at operation %llu of %s\n", faults[j].name, (unsigned long long)n, work->name);
        printf("%sok - %s_with_%s (%llu)\n", failed ? "not " : "", work->name, faults[j].name, (unsigned long long)n);
        bad |= failed;
    }
    return bad;
}

/* ---- And again afterwards ------------------------------------------------------------------------------------- */

/* Two faults: one in the work, one in what follows, be it in the same process or in one that opens the store anew. */
struct pair {
    const char *name;
    enum sim_fault first;
    bool sticky;           /* the first is lifted before the second */
    bool kill;             /* the process dies between them */
    enum sim_fault second; /* the power is cut in the end in any case */
    uint64_t rounds;       /* with other luck for what was not synced */
    bool empty_disk;
};

static const struct pair pairs[] = {
    {"power_cut_and_power_cut_in_recovery", SIM_POWER_CUT, false, false, SIM_POWER_CUT, 1, false},
    {"kill_and_kill_in_recovery", SIM_KILL, false, false, SIM_KILL, 1, false},
    {"failed_sync_and_power_cut", SIM_SYNC_FAILS, false, false, SIM_POWER_CUT, 12, false},
    {"failed_sync_and_end_and_power_cut_in_recovery", SIM_SYNC_FAILS, true, true, SIM_POWER_CUT, 16, false},
    {"io_error_and_power_cut", SIM_EIO, true, false, SIM_POWER_CUT, 1, false},
    {"io_error_and_end_and_power_cut_in_recovery", SIM_EIO, true, true, SIM_POWER_CUT, 1, false},
    {"kill_on_an_empty_disk_and_power_cut_in_the_end", SIM_KILL, false, false, SIM_NO_FAULT, 8, true},
};

/* The second part: whoever is there, or is started, looks at everything and goes on. */
static void go_on(struct world *w)
{
    struct o_session *s;

    if (!proc_alive(&w->procs[0]) && !proc_start(w, 0))
        return;
    w->looker = &w->procs[0];
    if (w->procs[0].number > 0)
        check_all(w, w->procs[0].store, false);
    w->looker = NULL;
    create(w, 0, "s0"); /* unless it is there, or may be */
    s = find(w, "s0");
    for (int i = 0; i < 2 && !w->failed && s && proc_alive(&w->procs[0]); i++)
        do_append(w, &w->procs[0], s, 2, 0);
}

static bool run_pair(const struct pair *pair, uint64_t round, uint64_t n, uint64_t m, const struct sim_image *image,
                     bool verbose, bool *ret_late, bool *ret_failed)
{
    struct world w;
    bool fired;

    world_init(&w, 78 + round * 1000000 + n * 1000 + m, pair->empty_disk ? NULL : image);
    w.verbose = verbose;
    arm(&w, pair->first, n, pair->sticky);
    proc_start(&w, 0);
    work_small(&w);
    *ret_late = !sim_fault_fired(w.sim);
    bury_the_dead(&w);
    if (pair->kill && w.procs[0].store) /* before the trouble is over: it has no time to mend anything */
        sim_proc_kill(w.procs[0].sim);
    bury_the_dead(&w);
    disarm(&w);
    sim_advance(w.sim, LEASE_MS + 1000);
    arm(&w, pair->second, m, false);
    if (!w.failed)
        go_on(&w);
    fired = sim_fault_fired(w.sim);
    afterwards(&w, true, m % 4 == 0);
    *ret_failed = w.failed;
    world_done(&w);
    return !fired;
}

static bool pair_round(const struct pair *pair, uint64_t round, const struct sim_image *image, bool verbose,
                       uint64_t *runs)
{
    bool failed = false, late = false, second_late;
    uint64_t n = 0, m = 0;

    while (!late && !failed) {
        n++;
        second_late = false;
        for (m = 0; !second_late && !failed; ++*runs) {
            m++;
            second_late = run_pair(pair, round, n, m, image, false, &late, &failed);
        }
    }
    if (failed) {
        printf("# it failed with %s at operations %llu and %llu, round %llu\n", pair->name, (unsigned long long)n,
               (unsigned long long)m, (unsigned long long)round);
        if (verbose)
            run_pair(pair, round, n, m, image, true, &late, &failed);
    }
    return failed;
}

static int pair_everywhere(const struct pair *pair, const struct sim_image *image, bool verbose)
{
    uint64_t runs = 0;
    bool failed = false;

    for (uint64_t round = 0; round < pair->rounds && !failed; round++)
        failed = pair_round(pair, round, image, verbose, &runs);
    printf("%sok - %s_at_every_operation (%llu)\n", failed ? "not " : "", pair->name, (unsigned long long)runs);
    return failed;
}

static bool wanted(const char *only, const char *name)
{
    return !only || strstr(name, only);
}

/* ---- Upgrades ------------------------------------------------------------------------------------------------- */

/* The check that rows of `live` had up to version 2: over sid, epoch, last_seq, last_pos, updated, digest, boot. */
static void old_check(sqlite3_context *out, int n, sqlite3_value **v)
{
    unsigned char digest[DIGEST_SIZE], covered[5 * 8 + DIGEST_SIZE + 8] = {0};
    struct digest_state d;
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        uint64_t le = htole64((uint64_t)sqlite3_value_int64(v[i]));

        if (i == 5 && sqlite3_value_bytes(v[i]) == DIGEST_SIZE)
            memcpy(covered + at, sqlite3_value_blob(v[i]), DIGEST_SIZE);
        else
            memcpy(covered + at, &le, sizeof le);
        at += i == 5 ? DIGEST_SIZE : sizeof le;
    }
    digest_begin(&d, NULL);
    digest_add_str(&d, STR("tidemark row check"));
    digest_end(&d, digest);
    sqlite3_result_int64(out, digest_short(digest, covered, at));
}

/* What a store of an older version looked like. */
static bool downgrade(struct world *w, int version)
{
    static const char *const sql[] = {
        "DROP VIEW IF EXISTS sessions_v; DROP VIEW IF EXISTS messages; DROP VIEW IF EXISTS token_usage;"
        "DROP VIEW IF EXISTS errors; DROP VIEW IF EXISTS checkpoints; DROP VIEW IF EXISTS runs;"
        "DROP VIEW IF EXISTS message_rows; DROP VIEW IF EXISTS descriptions; DROP VIEW IF EXISTS spans;"
        "DROP VIEW IF EXISTS heads; PRAGMA user_version=1",
        "PRAGMA user_version=2",
        "PRAGMA user_version=3",
        "PRAGMA user_version=4",
        "PRAGMA user_version=5",
        "PRAGMA user_version=6",
    };
    static const char created[] = "DROP INDEX description_index; DROP VIEW IF EXISTS message_rows;"
                                  "DROP VIEW IF EXISTS descriptions;"
                                  "CREATE INDEX created_index ON events(sid) WHERE kind = 'session.created'";
    static const char boots[] = "ALTER TABLE boots DROP COLUMN beat; ALTER TABLE boots DROP COLUMN lease;"
                                " DELETE FROM meta WHERE key = 'closed'";
    static const char marks[] =
        "ALTER TABLE blocks DROP COLUMN marks;"
        "CREATE INDEX checkpoint_index ON events(sid, seq) WHERE kind = 'checkpoint';"
        "CREATE INDEX checkpoint_deleted_index ON events(sid, seq) WHERE kind = 'checkpoint.deleted'";
    static const char live[] = "ALTER TABLE live DROP COLUMN wake; UPDATE live SET"
                               " row_check = old_check(sid, epoch, last_seq, last_pos, updated, digest, boot)";
    sqlite3 *db = NULL;
    struct sim_proc *p = sim_proc_start(w->sim);
    bool ok = sqlite3_open_v2(STORE_PATH, &db, SQLITE_OPEN_READWRITE, sim_proc_env(p)->sqlite_vfs) == SQLITE_OK &&
              sqlite3_create_function(db, "old_check", 7, SQLITE_UTF8, NULL, old_check, NULL, NULL) == SQLITE_OK &&
              sqlite3_exec(db, sql[version - 1], NULL, NULL, NULL) == SQLITE_OK &&
              (version > 5 || sqlite3_exec(db, created, NULL, NULL, NULL) == SQLITE_OK) &&
              (version > 4 || sqlite3_exec(db, boots, NULL, NULL, NULL) == SQLITE_OK) &&
              (version > 3 || sqlite3_exec(db, marks, NULL, NULL, NULL) == SQLITE_OK) &&
              (version > 2 || sqlite3_exec(db, live, NULL, NULL, NULL) == SQLITE_OK);

    sqlite3_close(db);
    sim_proc_kill(p);
    return ok;
}

/* One session is given back, one is still held by a process that was killed. */
static bool upgrade_at(const struct kind_of_fault *f, int version, uint64_t n, const struct sim_image *image,
                       bool *ret_failed)
{
    struct world w;
    bool fired;

    world_init(&w, 79, image);
    proc_start(&w, 0);
    work_small(&w);
    work_held(&w);
    sim_proc_kill(w.procs[0].sim);
    bury_the_dead(&w);
    if (!downgrade(&w, version))
        wrong(&w, "the store cannot be taken back to version %d", version);
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
    static const char *const names[] = {"upgrade_from_version_1", "upgrade_from_version_2", "upgrade_from_version_3",
                                        "upgrade_from_version_4", "upgrade_from_version_5"};
    struct sim_image *image = prepared_image();
    int bad = 0;

    (void)verbose;
    for (size_t i = 0; i < 5 * FAULTS && wanted(only, "upgrade"); i++) {
        int version = 1 + (int)(i / FAULTS);
        bool failed = false, late = false;
        uint64_t n = 0;

        while (!late && !failed)
            late = upgrade_at(&faults[i % FAULTS], version, ++n, image, &failed);
        bad |= report(names[version - 1], faults[i % FAULTS].name, n, failed);
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
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (wanted(only, pairs[i].name))
            bad |= pair_everywhere(&pairs[i], image, verbose);
    }
    if (wanted(only, big.name))
        bad |= long_work(&big, image, verbose);
    sim_image_free(image);
    return bad;
}
