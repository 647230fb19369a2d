/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laws of the simulated machine (env/sim.h). Those that say "may" are counted over many seeds: both ends must be
 * seen, and nothing outside them. Directories: test_sim_dirs.c. SQLite on the same machine: test_sim_sqlite.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "env/sim.h"

#define PATH "/d/f"
enum { SEEDS = 1000, SECTOR = 512, SECTORS = 8, BYTES = SECTOR * SECTORS };

/* A machine with one process and one open file. */
struct box {
    struct sim *sim;
    struct sim_proc *proc;
    struct env *env;
    struct env_file *file;
};

static struct env_file *open_file(struct env *e, const char *path, unsigned flags)
{
    struct env_file *f = NULL;

    assert_int_equal(e->ops->open(e, path, flags, &f, NULL), TIDE_OK);
    return f;
}

static struct box box_new(uint64_t seed)
{
    struct box b = {.sim = sim_new(seed)};

    b.proc = sim_proc_start(b.sim);
    b.env = sim_proc_env(b.proc);
    assert_int_equal(b.env->ops->mkdirs(b.env, "/d", NULL), TIDE_OK);
    b.file = open_file(b.env, PATH, ENV_WRITE | ENV_CREATE);
    return b;
}

static void box_done(struct box *b)
{
    b->env->ops->close(b->file);
    sim_free(b->sim);
}

static enum tide_code put(struct box *b, char fill, size_t n, int64_t at)
{
    char bytes[BYTES];

    assert_true(n <= sizeof bytes);
    memset(bytes, fill, n);
    return b->env->ops->pwrite(b->file, bytes, n, at, NULL);
}

static enum tide_code sync_file(struct box *b)
{
    return b->env->ops->sync(b->file, NULL);
}

/* A machine whose file holds BYTES of 'a', durable with its name. */
static struct box box_with_a(uint64_t seed)
{
    struct box b = box_new(seed);

    assert_int_equal(put(&b, 'a', BYTES, 0), TIDE_OK);
    assert_int_equal(sync_file(&b), TIDE_OK);
    assert_int_equal(b.env->ops->sync_dir(b.env, "/d", NULL), TIDE_OK);
    return b;
}

static size_t look(struct box *b, unsigned char **ret_bytes)
{
    size_t len;

    assert_true(sim_file_bytes(b->sim, PATH, ret_bytes, &len));
    return len;
}

static bool is_all(const unsigned char *bytes, char fill, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != (unsigned char)fill)
            return false;
    return true;
}

/* How many sectors of the file are all `fill`; the others must be all 'a' when `else_a`. */
static int count_sectors(struct box *b, char fill, bool else_a)
{
    unsigned char *bytes;
    int n = 0;

    assert_int_equal(look(b, &bytes), BYTES);
    for (int s = 0; s < SECTORS; s++) {
        bool is = is_all(bytes + (size_t)s * SECTOR, fill, SECTOR);
        assert_true(is || !else_a || is_all(bytes + (size_t)s * SECTOR, 'a', SECTOR));
        n += is;
    }
    return n;
}

/* ---- Power cuts --------------------------------------------------------------------------------------------- */

static void synced_data_survives_every_power_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        unsigned char *bytes;
        assert_int_equal(put(&b, 'b', BYTES, BYTES), TIDE_OK);
        assert_int_equal(put(&b, 'c', SECTOR, SECTOR), TIDE_OK);
        sim_power_cut(b.sim);
        assert_true(look(&b, &bytes) >= BYTES);
        assert_true(is_all(bytes, 'a', SECTOR));
        assert_true(is_all(bytes + 2 * SECTOR, 'a', BYTES - 2 * SECTOR));
        sim_power_cut(b.sim);
        assert_true(is_all(bytes, 'a', SECTOR));
        box_done(&b);
    }
}

static void unsynced_writes_are_torn_by_sector(void **state)
{
    int none = 0, some = 0, all = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        assert_int_equal(put(&b, 'b', BYTES, 0), TIDE_OK);
        sim_power_cut(b.sim);
        int n = count_sectors(&b, 'b', true);
        none += n == 0;
        all += n == SECTORS;
        some += n > 0 && n < SECTORS;
        box_done(&b);
    }
    assert_true(none > SEEDS / 20 && some > SEEDS / 20 && all > SEEDS / 20);
}

static void a_sector_written_twice_may_keep_any_of_its_contents(void **state)
{
    int seen[3] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        unsigned char *bytes;
        assert_int_equal(put(&b, 'b', SECTOR, 0), TIDE_OK);
        assert_int_equal(put(&b, 'c', SECTOR, 0), TIDE_OK);
        sim_power_cut(b.sim);
        (void)look(&b, &bytes);
        assert_in_range(bytes[0], 'a', 'c');
        assert_true(is_all(bytes, (char)bytes[0], SECTOR));
        seen[bytes[0] - 'a']++;
        box_done(&b);
    }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}

static void an_unsynced_truncate_happens_whole_or_not_at_all(void **state)
{
    int cut = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        unsigned char *bytes;
        assert_int_equal(b.env->ops->truncate(b.file, 700, NULL), TIDE_OK);
        sim_power_cut(b.sim);
        size_t len = look(&b, &bytes);
        assert_true(len == 700 || len == BYTES);
        assert_true(is_all(bytes, 'a', len));
        cut += len == 700;
        box_done(&b);
    }
    assert_true(cut > 0 && cut < SEEDS);
}

static void an_unsynced_size_may_go_back_and_holes_are_zero(void **state)
{
    int kept = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        unsigned char *bytes;
        assert_int_equal(put(&b, 'b', SECTOR, BYTES + SECTOR), TIDE_OK);
        sim_power_cut(b.sim);
        size_t len = look(&b, &bytes);
        assert_true(len == BYTES || len == BYTES + 2 * SECTOR);
        if (len > BYTES) {
            kept++;
            assert_true(is_all(bytes + BYTES, 0, SECTOR));
        }
        box_done(&b);
    }
    assert_true(kept > 0 && kept < SEEDS);
}

static void names_are_durable_only_with_their_directory(void **state)
{
    int made = 0, removed = 0;
    unsigned char *bytes;
    size_t len;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        struct env_file *other = open_file(b.env, "/d/g", ENV_WRITE | ENV_CREATE);
        assert_int_equal(b.env->ops->pwrite(other, "x", 1, 0, NULL), TIDE_OK);
        assert_int_equal(b.env->ops->sync(other, NULL), TIDE_OK);
        b.env->ops->close(other);
        assert_int_equal(b.env->ops->sync_dir(b.env, "/", NULL), TIDE_OK); /* another directory */
        assert_int_equal(b.env->ops->unlink(b.env, PATH, NULL), TIDE_OK);
        assert_false(sim_file_bytes(b.sim, PATH, &bytes, &len));
        sim_power_cut(b.sim);
        removed += !sim_file_bytes(b.sim, PATH, &bytes, &len);
        if (sim_file_bytes(b.sim, "/d/g", &bytes, &len)) {
            made++;
            assert_int_equal(len, 1);
        }
        box_done(&b);
    }
    assert_true(made > 0 && made < SEEDS);
    assert_true(removed > 0 && removed < SEEDS);
}

static void a_lie_about_directories_loses_names(void **state)
{
    int lost = 0;
    unsigned char *bytes;
    size_t len;

    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct box b = box_new(seed);
        sim_lie(b.sim, SIM_LIE_NO_DIR_SYNC);
        assert_int_equal(b.env->ops->sync_dir(b.env, "/d", NULL), TIDE_OK);
        sim_power_cut(b.sim);
        lost += !sim_file_bytes(b.sim, PATH, &bytes, &len);
        box_done(&b);
    }
    assert_true(lost > 0);
}

/* ---- Failed syncs ------------------------------------------------------------------------------------------- */

static int sectors_after_failed_sync(uint64_t seed, bool rewrite)
{
    struct box b = box_with_a(seed);

    assert_int_equal(put(&b, 'b', BYTES, 0), TIDE_OK);
    sim_fault_at(b.sim, SIM_SYNC_FAILS, 1, false);
    assert_int_equal(sync_file(&b), TIDE_IO);
    assert_int_equal(count_sectors(&b, 'b', true), SECTORS); /* still in the cache */
    if (rewrite)
        assert_int_equal(put(&b, 'b', BYTES, 0), TIDE_OK);
    assert_int_equal(sync_file(&b), TIDE_OK);
    sim_power_cut(b.sim);
    int n = count_sectors(&b, 'b', true);
    box_done(&b);
    return n;
}

static void what_a_failed_sync_dropped_no_later_sync_brings_back(void **state)
{
    int lost = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        lost += sectors_after_failed_sync(seed, false) < SECTORS;
    assert_true(lost > SEEDS / 4);
}

static void what_is_written_anew_after_a_failed_sync_is_durable(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        assert_int_equal(sectors_after_failed_sync(seed, true), SECTORS);
}

static void a_rewrite_that_is_lost_leaves_what_the_platter_had(void **state)
{
    int older = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        unsigned char *bytes;
        assert_int_equal(put(&b, 'b', SECTOR, 0), TIDE_OK);
        sim_fault_at(b.sim, SIM_SYNC_FAILS, 1, false);
        assert_int_equal(sync_file(&b), TIDE_IO);
        assert_int_equal(put(&b, 'c', SECTOR, 0), TIDE_OK);
        sim_power_cut(b.sim);
        (void)look(&b, &bytes);
        older += is_all(bytes, 'a', SECTOR);
        box_done(&b);
    }
    assert_true(older > 0 && older < SEEDS);
}

static void a_size_lost_by_a_failed_sync_stays_lost(void **state)
{
    int lost = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        unsigned char *bytes;
        assert_int_equal(put(&b, 'b', 100, BYTES), TIDE_OK);
        sim_fault_at(b.sim, SIM_SYNC_FAILS, 1, false);
        assert_int_equal(sync_file(&b), TIDE_IO);
        assert_int_equal(look(&b, &bytes), BYTES + 100);
        assert_int_equal(sync_file(&b), TIDE_OK);
        sim_power_cut(b.sim);
        lost += look(&b, &bytes) == BYTES;
        box_done(&b);
    }
    assert_true(lost > 0);
}

/* ---- Faults ------------------------------------------------------------------------------------------------- */

static enum tide_code any_entry(void *arg, const char *name, enum env_kind kind)
{
    (void)arg;
    (void)name;
    (void)kind;
    return TIDE_OK;
}

/* Operations 1 to 10 are of each kind that counts; returns the number of the first that failed, 0 for none. */
static int ten_operations(struct box *b, enum tide_code *ret_code)
{
    struct env *e = b->env;
    struct env_file *f = NULL;
    struct env_stat st;
    enum tide_code codes[11];

    codes[1] = put(b, 'x', SECTOR, 0);
    codes[2] = e->ops->truncate(b->file, 100, NULL);
    codes[3] = e->ops->sync(b->file, NULL);
    codes[4] = e->ops->open(e, "/d/new", ENV_WRITE | ENV_CREATE, &f, NULL);
    codes[5] = e->ops->sync_dir(e, "/d", NULL);
    codes[6] = e->ops->rename(e, PATH, "/d/moved", NULL);
    codes[7] = e->ops->list(e, "/d", any_entry, NULL, NULL);
    codes[8] = e->ops->fstat(b->file, &st, NULL);
    codes[9] = e->ops->allocate(b->file, BYTES, NULL);
    codes[10] = e->ops->unlink(e, codes[6] ? PATH : "/d/moved", NULL);
    e->ops->close(f);
    for (int i = 1; i <= 10; i++) {
        if (codes[i]) {
            *ret_code = codes[i];
            return i;
        }
    }
    return 0;
}

static void a_fault_fires_at_the_nth_operation(void **state)
{
    static const struct {
        enum sim_fault fault;
        enum tide_code code;
        int first_for[12]; /* by n from 1: which operation fails */
        bool dies;
    } rows[] = {
        {SIM_KILL, TIDE_IO, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0}, true},
        {SIM_POWER_CUT, TIDE_IO, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0}, true},
        {SIM_EIO, TIDE_IO, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0}, false},
        {SIM_ENOSPC, TIDE_FULL, {0, 1, 4, 4, 4, 6, 6, 9, 9, 9, 0, 0}, false},
        {SIM_SHORT_WRITE, TIDE_FULL, {0, 1}, false},
        {SIM_SYNC_FAILS, TIDE_IO, {0, 3}, false},
    };

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int n = 1; n <= 11; n++) {
            struct box b = box_new((uint64_t)n);
            enum tide_code code = TIDE_OK;
            uint64_t before = sim_op_count(b.sim);
            sim_fault_at(b.sim, rows[r].fault, (uint64_t)n, false);
            assert_int_equal(ten_operations(&b, &code), rows[r].first_for[n]);
            assert_int_equal(code, rows[r].first_for[n] ? rows[r].code : TIDE_OK);
            assert_int_equal(sim_fault_fired(b.sim), rows[r].first_for[n] != 0);
            assert_int_equal(sim_proc_dead(b.proc), rows[r].dies && rows[r].first_for[n]);
            assert_int_equal(sim_op_count(b.sim) - before, sim_proc_dead(b.proc) ? n : 10);
            box_done(&b);
        }
    }
}

static void a_sticky_full_disk_stops_growth_only_until_it_is_lifted(void **state)
{
    struct box b = box_with_a(1);

    (void)state;
    sim_fault_at(b.sim, SIM_ENOSPC, 1, true);
    assert_int_equal(put(&b, 'b', SECTOR, 0), TIDE_OK);
    assert_int_equal(put(&b, 'b', SECTOR, BYTES), TIDE_FULL);
    assert_int_equal(put(&b, 'b', 2, BYTES - 1), TIDE_FULL);
    assert_int_equal(sync_file(&b), TIDE_OK);
    sim_fault_at(b.sim, SIM_NO_FAULT, 0, false);
    assert_int_equal(put(&b, 'b', SECTOR, BYTES), TIDE_OK);
    box_done(&b);
}

static void a_read_that_fails_counts_reads_only(void **state)
{
    struct box b = box_with_a(1);
    char byte = 0;
    size_t got = 0;

    (void)state;
    sim_fault_at(b.sim, SIM_READ_FAILS, 2, false);
    assert_int_equal(put(&b, 'b', SECTOR, 0), TIDE_OK);
    assert_int_equal(b.env->ops->pread(b.file, &byte, 1, 0, &got, NULL), TIDE_OK);
    assert_int_equal(sync_file(&b), TIDE_OK);
    assert_int_equal(b.env->ops->pread(b.file, &byte, 1, 0, &got, NULL), TIDE_IO);
    assert_int_equal(b.env->ops->pread(b.file, &byte, 1, 0, &got, NULL), TIDE_OK);
    assert_int_equal(byte, 'b');
    box_done(&b);
}

static void a_short_write_leaves_its_first_half(void **state)
{
    struct box b = box_with_a(1);
    unsigned char *bytes;

    (void)state;
    sim_fault_at(b.sim, SIM_SHORT_WRITE, 1, false);
    assert_int_equal(put(&b, 'b', 200, BYTES), TIDE_FULL);
    assert_int_equal(look(&b, &bytes), BYTES + 100);
    assert_true(is_all(bytes + BYTES, 'b', 100));
    box_done(&b);
}

static void a_power_cut_tears_the_write_it_interrupts(void **state)
{
    int torn = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        sim_fault_at(b.sim, SIM_POWER_CUT, 1, false);
        assert_int_equal(put(&b, 'b', BYTES, 0), TIDE_IO);
        int n = count_sectors(&b, 'b', true);
        torn += n > 0 && n < SECTORS;
        box_done(&b);
    }
    assert_true(torn > 0);
}

/* ---- Reserved space ----------------------------------------------------------------------------------------- */

static enum tide_code reserve(struct box *b, int64_t size)
{
    return b->env->ops->allocate(b->file, size, NULL);
}

static void reserved_space_is_there_when_the_disk_is_full(void **state)
{
    struct box b = box_with_a(1);

    (void)state;
    assert_int_equal(reserve(&b, 3 * BYTES), TIDE_OK);
    sim_fault_at(b.sim, SIM_ENOSPC, 1, true);
    assert_int_equal(reserve(&b, 2 * BYTES), TIDE_OK); /* no more than there is */
    assert_int_equal(reserve(&b, 3 * BYTES + 1), TIDE_FULL);
    assert_int_equal(put(&b, 'b', BYTES, BYTES), TIDE_OK);
    assert_int_equal(put(&b, 'b', BYTES, 2 * BYTES + 1), TIDE_FULL);
    sim_fault_at(b.sim, SIM_SHORT_WRITE, 1, true);
    assert_int_equal(put(&b, 'b', BYTES, 2 * BYTES), TIDE_OK);
    assert_int_equal(put(&b, 'b', BYTES, 3 * BYTES), TIDE_FULL);
    box_done(&b);
}

static void a_truncate_gives_reserved_space_back(void **state)
{
    struct box b = box_with_a(1);

    (void)state;
    assert_int_equal(reserve(&b, 2 * BYTES), TIDE_OK);
    assert_int_equal(b.env->ops->truncate(b.file, BYTES, NULL), TIDE_OK); /* its size already */
    sim_fault_at(b.sim, SIM_ENOSPC, 1, true);
    assert_int_equal(put(&b, 'b', BYTES, BYTES), TIDE_FULL);
    box_done(&b);
}

static void a_power_cut_gives_reserved_space_back_and_tears_writes_in_it(void **state)
{
    int torn = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_with_a(seed);
        assert_int_equal(reserve(&b, BYTES), TIDE_OK);
        sim_fault_at(b.sim, SIM_POWER_CUT, 1, false);
        assert_int_equal(put(&b, 'b', BYTES, 0), TIDE_IO);
        int n = count_sectors(&b, 'b', true);
        torn += n > 0 && n < SECTORS;
        b.env->ops->close(b.file);
        b.env = sim_proc_env(sim_proc_start(b.sim));
        b.file = open_file(b.env, PATH, ENV_WRITE);
        sim_fault_at(b.sim, SIM_ENOSPC, 1, true);
        assert_int_equal(reserve(&b, BYTES + 1), TIDE_FULL);
        assert_int_equal(put(&b, 'c', 1, BYTES), TIDE_FULL);
        box_done(&b);
    }
    assert_true(torn > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_data_survives_every_power_cut),
        cmocka_unit_test(unsynced_writes_are_torn_by_sector),
        cmocka_unit_test(a_sector_written_twice_may_keep_any_of_its_contents),
        cmocka_unit_test(an_unsynced_truncate_happens_whole_or_not_at_all),
        cmocka_unit_test(an_unsynced_size_may_go_back_and_holes_are_zero),
        cmocka_unit_test(names_are_durable_only_with_their_directory),
        cmocka_unit_test(a_lie_about_directories_loses_names),
        cmocka_unit_test(what_a_failed_sync_dropped_no_later_sync_brings_back),
        cmocka_unit_test(what_is_written_anew_after_a_failed_sync_is_durable),
        cmocka_unit_test(a_rewrite_that_is_lost_leaves_what_the_platter_had),
        cmocka_unit_test(a_size_lost_by_a_failed_sync_stays_lost),
        cmocka_unit_test(a_fault_fires_at_the_nth_operation),
        cmocka_unit_test(a_sticky_full_disk_stops_growth_only_until_it_is_lifted),
        cmocka_unit_test(a_read_that_fails_counts_reads_only),
        cmocka_unit_test(a_short_write_leaves_its_first_half),
        cmocka_unit_test(a_power_cut_tears_the_write_it_interrupts),
        cmocka_unit_test(reserved_space_is_there_when_the_disk_is_full),
        cmocka_unit_test(a_truncate_gives_reserved_space_back),
        cmocka_unit_test(a_power_cut_gives_reserved_space_back_and_tears_writes_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
