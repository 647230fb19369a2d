/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite itself on the simulated machine: what it has acknowledged survives a power cut or a kill at every operation,
 * and a disk that lies is found out. This is what makes a failure of our store on the same machine mean something.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "env/sim.h"

#define DB "/data/test.db"
enum { ROWS = 10 };

struct mode {
    const char *name, *journal, *synchronous;
};

static const struct mode modes[] = {
    {"wal", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"},
    {"rollback journal", "PRAGMA journal_mode=DELETE", "PRAGMA synchronous=EXTRA"},
};

/* What to do to the machine. */
struct plan {
    const struct mode *mode;
    unsigned lies;
    bool skip_dir_sync;
};

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int64_t answer = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        answer = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return answer;
}

static bool is_sound(sqlite3 *db)
{
    return ask(db, "SELECT count(*) = 1 AND max(integrity_check) = 'ok' FROM pragma_integrity_check") == 1;
}

static sqlite3 *open_db(struct sim_proc *p, const struct mode *mode)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(DB, &db, SQLITE_OPEN_READWRITE, sim_proc_env(p)->sqlite_vfs) == SQLITE_OK) {
        (void)run(db, mode->journal);
        (void)run(db, mode->synchronous);
    }
    return db;
}

static bool make_file(struct sim_proc *p, bool skip_dir_sync)
{
    struct env *e = sim_proc_env(p);
    struct env_file *f;

    if (e->ops->mkdirs(e, "/data", NULL) || e->ops->open(e, DB, ENV_WRITE | ENV_CREATE, &f, NULL))
        return false;
    e->ops->close(f);
    return skip_dir_sync || e->ops->sync_dir(e, "/data", NULL) == TIDE_OK;
}

static bool add_row(sqlite3 *db, int i)
{
    char sql[128];

    snprintf(sql, sizeof sql, "INSERT INTO t VALUES (%d, hex(randomblob(300)))", i);
    return run(db, sql) == SQLITE_OK;
}

/* Inserts rows 1, 2, …; returns how many were acknowledged. Checkpoints in the middle. */
static int workload(struct sim_proc *p, const struct plan *plan)
{
    int acked = 0;

    if (!make_file(p, plan->skip_dir_sync))
        return 0;
    sqlite3 *db = open_db(p, plan->mode);
    if (run(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)") == SQLITE_OK) {
        while (acked < ROWS && add_row(db, acked + 1)) {
            acked++;
            if (acked == ROWS / 3)
                (void)run(db, "PRAGMA wal_checkpoint(RESTART)");
            if (acked == ROWS * 2 / 3)
                (void)run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
        }
    }
    sqlite3_close(db);
    return acked;
}

/* True when the rows 1..acked are there, at most one more, and the file is sound (or never came to be). */
static bool all_there(struct sim *sim, const struct mode *mode, int acked)
{
    unsigned char *bytes;
    size_t len;

    if (acked == 0 && !sim_file_bytes(sim, DB, &bytes, &len))
        return true;
    sqlite3 *db = open_db(sim_proc_start(sim), mode);
    int64_t rows = ask(db, "SELECT count(*) FROM t"), last = ask(db, "SELECT ifnull(max(id), 0) FROM t");
    bool ok = is_sound(db) && (acked == 0 || (rows == last && rows >= acked && rows <= acked + 1));

    sqlite3_close(db);
    return ok;
}

/* Cuts the power at operation n = 1, 2, … until the workload ends before it. Returns how often rows were missing. */
static int cut_everywhere(const struct plan *plan, uint64_t seed, bool must_hold)
{
    int lost = 0;

    for (uint64_t n = 1;; n++) {
        struct sim *sim = sim_new(seed * 1000 + n);
        sim_lie(sim, plan->lies);
        sim_fault_at(sim, SIM_POWER_CUT, n, false);
        int acked = workload(sim_proc_start(sim), plan);
        bool fired = sim_fault_fired(sim);
        sim_fault_at(sim, SIM_NO_FAULT, 0, false);
        if (!fired)
            sim_power_cut(sim);
        bool ok = all_there(sim, plan->mode, acked);
        if (!ok && must_hold)
            fail_msg("%s: seed %d, power cut at %d: a row of %d is missing", plan->mode->name, (int)seed, (int)n,
                     acked);
        lost += !ok;
        sim_free(sim);
        if (!fired)
            return lost;
    }
}

static void acknowledged_rows_survive_a_power_cut_at_every_operation(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
        for (uint64_t seed = 1; seed <= 20; seed++)
            cut_everywhere(&(struct plan){&modes[m], 0, false}, seed, true);
}

static void a_disk_that_lies_about_sync_is_found_out(void **state)
{
    int lost = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++)
        lost += cut_everywhere(&(struct plan){&modes[0], SIM_LIE_NO_SYNC, false}, seed, false);
    assert_true(lost > 0);
}

static void a_directory_that_is_not_synced_is_found_out(void **state)
{
    int skipped = 0, lied = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        skipped += cut_everywhere(&(struct plan){&modes[0], 0, true}, seed, false);
        lied += cut_everywhere(&(struct plan){&modes[0], SIM_LIE_NO_DIR_SYNC, false}, seed, false);
    }
    assert_true(skipped > 0);
    assert_true(lied > 0);
}

/* ---- Two processes ------------------------------------------------------------------------------------------ */

static void two_processes_write_in_turn(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p[2] = {sim_proc_start(sim), sim_proc_start(sim)};

    (void)state;
    assert_true(make_file(p[0], false));
    sqlite3 *db[2] = {open_db(p[0], &modes[0]), open_db(p[1], &modes[0])};
    assert_int_equal(run(db[0], "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)"), SQLITE_OK);
    for (int i = 1; i <= 100; i++) {
        assert_true(add_row(db[i % 2], i));
        assert_int_equal(ask(db[(i + 1) % 2], "SELECT max(id) FROM t"), i);
    }
    assert_int_equal(run(db[0], "BEGIN IMMEDIATE"), SQLITE_OK);
    assert_int_equal(run(db[1], "BEGIN IMMEDIATE"), SQLITE_BUSY);
    sqlite3_busy_timeout(db[1], 500);
    int64_t before = env_now_ms(sim_proc_env(p[1]));
    assert_int_equal(run(db[1], "BEGIN IMMEDIATE"), SQLITE_BUSY);
    assert_true(env_now_ms(sim_proc_env(p[1])) - before >= 400);
    sim_proc_kill(p[0]);
    assert_int_equal(run(db[1], "BEGIN IMMEDIATE"), SQLITE_OK);
    assert_int_equal(run(db[1], "COMMIT"), SQLITE_OK);
    assert_int_not_equal(run(db[0], "SELECT * FROM t"), SQLITE_OK);
    sqlite3_close(db[0]);
    assert_true(is_sound(db[1]));
    sqlite3_close(db[1]);
    sim_free(sim);
}

/* One of two writers is killed at operation n; the other goes on from the same shared memory. */
static bool kill_one_at(uint64_t n)
{
    struct sim *sim = sim_new(n);
    struct sim_proc *p[2] = {sim_proc_start(sim), sim_proc_start(sim)};
    int acked[2] = {0, 0};

    assert_true(make_file(p[0], false));
    sqlite3 *db[2] = {open_db(p[0], &modes[0]), open_db(p[1], &modes[0])};
    assert_int_equal(run(db[0], "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)"), SQLITE_OK);
    assert_int_equal(ask(db[1], "SELECT count(*) FROM t"), 0);
    sim_fault_at(sim, SIM_KILL, n, false);
    for (int i = 0; i < 2 * ROWS; i++) {
        acked[i % 2] += add_row(db[i % 2], i + 1);
        if (i == ROWS)
            (void)run(db[1], "PRAGMA wal_checkpoint(RESTART)");
    }
    bool fired = sim_fault_fired(sim);
    int alive = sim_proc_dead(p[0]);
    assert_int_equal(acked[alive], ROWS);
    int64_t rows = ask(db[alive], "SELECT count(*) FROM t");
    assert_in_range(rows, acked[0] + acked[1], acked[0] + acked[1] + 1);
    assert_true(is_sound(db[alive]));
    sqlite3_close(db[0]);
    sqlite3_close(db[1]);
    assert_true(all_there(sim, &modes[0], 0));
    sim_free(sim);
    return fired;
}

static void a_killed_writer_leaves_the_other_one_whole(void **state)
{
    (void)state;
    for (uint64_t n = 1; kill_one_at(n); n++)
        ;
}

static volatile char *map_shm(sqlite3 *db, sqlite3_file **ret_file)
{
    volatile void *map = NULL;

    assert_int_equal(sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, ret_file), SQLITE_OK);
    assert_int_equal((*ret_file)->pMethods->xShmMap(*ret_file, 0, 32768, 1, &map), SQLITE_OK);
    assert_non_null(map);
    return map;
}

static void the_dead_do_not_write_into_the_memory_of_the_living(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p[2] = {sim_proc_start(sim), sim_proc_start(sim)};
    const struct mode plain = modes[1];
    sqlite3_file *file[2];

    (void)state;
    assert_true(make_file(p[0], false));
    sqlite3 *db[2] = {open_db(p[0], &plain), open_db(p[1], &plain)};
    volatile char *map[2] = {map_shm(db[0], &file[0]), map_shm(db[1], &file[1])};
    map[0][5] = 'a';
    assert_int_equal(map[1][5], 'a');
    sim_proc_kill(p[0]);
    map[0][5] = 'x';
    assert_int_equal(map[1][5], 'a');
    for (int i = 0; i < 2; i++)
        file[i]->pMethods->xShmUnmap(file[i], 0);
    map[1] = map_shm(db[1], &file[1]);
    assert_int_equal(map[1][5], 0); /* its last user had gone */
    file[1]->pMethods->xShmUnmap(file[1], 0);
    sqlite3_close(db[0]);
    sqlite3_close(db[1]);
    sim_free(sim);
}

/* ---- Errors ------------------------------------------------------------------------------------------------- */

static void faults_come_out_as_the_codes_of_sqlite(void **state)
{
    static const struct {
        enum sim_fault fault;
        int code, extended;
    } rows[] = {
        {SIM_ENOSPC, SQLITE_FULL, SQLITE_FULL},      {SIM_SHORT_WRITE, SQLITE_FULL, SQLITE_FULL},
        {SIM_EIO, SQLITE_IOERR, SQLITE_IOERR_WRITE}, {SIM_SYNC_FAILS, SQLITE_IOERR, SQLITE_IOERR_FSYNC},
        {SIM_KILL, SQLITE_IOERR, SQLITE_IOERR},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sim *sim = sim_new(i);
        struct sim_proc *p = sim_proc_start(sim);
        assert_int_equal(workload(p, &(struct plan){&modes[0], 0, false}), ROWS);
        sqlite3 *db = open_db(p, &modes[0]);
        assert_true(add_row(db, ROWS + 1));
        sim_fault_at(sim, rows[i].fault, 1, false);
        assert_false(add_row(db, ROWS + 2));
        assert_int_equal(sqlite3_errcode(db), rows[i].code);
        assert_int_equal(sqlite3_extended_errcode(db), rows[i].extended);
        sqlite3_close(db);
        sim_free(sim);
    }
}

static void a_full_disk_can_be_read_and_written_again_once_there_is_space(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);

    (void)state;
    assert_int_equal(workload(p, &(struct plan){&modes[0], 0, false}), ROWS);
    sqlite3 *db = open_db(p, &modes[0]); /* while there is room for its log */
    sim_fault_at(sim, SIM_ENOSPC, 1, true);
    assert_false(add_row(db, ROWS + 1));
    assert_false(add_row(db, ROWS + 1));
    assert_int_equal(ask(db, "SELECT count(*) FROM t"), ROWS);
    sim_fault_at(sim, SIM_NO_FAULT, 0, false);
    assert_true(add_row(db, ROWS + 1));
    sqlite3_close(db);
    sim_free(sim);
}

static void a_run_follows_from_its_seed(void **state)
{
    unsigned char *bytes[2];
    size_t len[2];
    struct sim *sim[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        sim[i] = sim_new(42);
        sim_fault_at(sim[i], SIM_POWER_CUT, 35, false);
        (void)workload(sim_proc_start(sim[i]), &(struct plan){&modes[0], 0, false});
        assert_true(sim_file_bytes(sim[i], DB "-wal", &bytes[i], &len[i]));
    }
    assert_int_equal(len[0], len[1]);
    assert_memory_equal(bytes[0], bytes[1], len[0]);
    sim_free(sim[0]);
    sim_free(sim[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_rows_survive_a_power_cut_at_every_operation),
        cmocka_unit_test(a_disk_that_lies_about_sync_is_found_out),
        cmocka_unit_test(a_directory_that_is_not_synced_is_found_out),
        cmocka_unit_test(two_processes_write_in_turn),
        cmocka_unit_test(a_killed_writer_leaves_the_other_one_whole),
        cmocka_unit_test(the_dead_do_not_write_into_the_memory_of_the_living),
        cmocka_unit_test(faults_come_out_as_the_codes_of_sqlite),
        cmocka_unit_test(a_full_disk_can_be_read_and_written_again_once_there_is_space),
        cmocka_unit_test(a_run_follows_from_its_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
