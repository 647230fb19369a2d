/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of the simulated machine, and names on its full disk: where it must be as hard as a real one. A directory
 * is durable with its parent and takes what lies below it along; a name that is new takes room, or is not there at all.
 * What may happen is counted over many seeds: both ends must be seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "env/sim.h"

#define DIR "/a/b"
#define PATH DIR "/f"
enum { SEEDS = 400 };

struct box {
    struct sim *sim;
    struct env *env;
    const struct env_ops *ops;
};

static void box_start(struct box *b)
{
    b->env = sim_proc_env(sim_proc_start(b->sim));
    b->ops = b->env->ops;
}

static struct box box_new(uint64_t seed)
{
    struct box b = {.sim = sim_new(seed)};

    box_start(&b);
    return b;
}

static enum env_kind kind_at(struct box *b, const char *path)
{
    struct env_stat st;

    assert_int_equal(b->ops->stat(b->env, path, &st, NULL), TIDE_OK);
    return st.kind;
}

static void make_dirs(struct box *b, const char *path)
{
    assert_int_equal(b->ops->mkdirs(b->env, path, NULL), TIDE_OK);
}

/* A file that is durable, and its name in its directory. */
static void put(struct box *b)
{
    struct env_file *f = NULL;

    assert_int_equal(b->ops->open(b->env, PATH, ENV_WRITE | ENV_CREATE, &f, NULL), TIDE_OK);
    assert_int_equal(b->ops->pwrite(f, "x", 1, 0, NULL), TIDE_OK);
    assert_int_equal(b->ops->sync(f, NULL), TIDE_OK);
    b->ops->close(f);
    assert_int_equal(b->ops->sync_dir(b->env, DIR, NULL), TIDE_OK);
}

/* The maker of DIR is stopped at its n-th operation: 1 and 3 make a directory, 2 and 4 sync its parent. */
static struct box box_after_fault(uint64_t seed, enum sim_fault fault, uint64_t n)
{
    struct box b = box_new(seed);

    sim_fault_at(b.sim, fault, n, false);
    assert_int_equal(b.ops->mkdirs(b.env, DIR, NULL), fault == SIM_ENOSPC ? TIDE_FULL : TIDE_IO);
    assert_true(sim_fault_fired(b.sim));
    box_start(&b);
    return b;
}

/* ---- Directories -------------------------------------------------------------------------------------------- */

static void a_directory_that_was_not_synced_takes_what_lies_below_it(void **state)
{
    int left = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_after_fault(seed, SIM_KILL, 4);
        assert_int_equal(kind_at(&b, DIR), ENV_DIR);
        put(&b);
        sim_power_cut(b.sim);
        box_start(&b);
        left += kind_at(&b, PATH) == ENV_FILE;
        assert_int_equal(kind_at(&b, DIR), kind_at(&b, PATH) == ENV_FILE ? ENV_DIR : ENV_ABSENT);
        assert_int_equal(kind_at(&b, "/a"), ENV_DIR);
        sim_free(b.sim);
    }
    assert_true(left > SEEDS / 4 && left < SEEDS - SEEDS / 4);
}

static void whoever_finds_a_directory_makes_it_durable(void **state)
{
    static const enum sim_fault faults[] = {SIM_KILL, SIM_EIO, SIM_POWER_CUT};

    (void)state;
    for (uint64_t i = 0; i < 4 * SEEDS; i++) {
        struct box b = box_after_fault(i, faults[i % 3], 1 + i % 4);
        make_dirs(&b, DIR);
        put(&b);
        sim_power_cut(b.sim);
        box_start(&b);
        assert_int_equal(kind_at(&b, PATH), ENV_FILE);
        sim_free(b.sim);
    }
}

static void a_directory_that_is_durable_costs_nothing_to_find(void **state)
{
    struct box b = box_after_fault(1, SIM_KILL, 4);
    uint64_t ops = sim_op_count(b.sim);

    (void)state;
    make_dirs(&b, DIR);
    assert_int_equal(sim_op_count(b.sim), ops + 1);
    make_dirs(&b, DIR "/");
    make_dirs(&b, "/");
    make_dirs(&b, ".");
    assert_int_equal(sim_op_count(b.sim), ops + 1);
    sim_free(b.sim);
}

static void a_copy_of_the_disk_keeps_and_loses_the_same_directories(void **state)
{
    struct box b = box_after_fault(1, SIM_KILL, 4);
    int left = 0;

    (void)state;
    put(&b);
    struct sim_image *image = sim_image_take(b.sim);
    sim_free(b.sim);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        b.sim = sim_new_from(seed, image);
        box_start(&b);
        if (seed % 2)
            make_dirs(&b, DIR);
        sim_power_cut(b.sim);
        box_start(&b);
        assert_int_equal(kind_at(&b, "/a"), ENV_DIR);
        assert_true(seed % 2 == 0 || kind_at(&b, PATH) == ENV_FILE);
        left += kind_at(&b, PATH) == ENV_FILE;
        sim_free(b.sim);
    }
    assert_true(left > SEEDS / 2 && left < SEEDS);
    sim_image_free(image);
}

static void a_lie_about_directories_loses_them_too(void **state)
{
    int lost = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct box b = box_new(seed);
        sim_lie(b.sim, SIM_LIE_NO_DIR_SYNC);
        make_dirs(&b, DIR);
        sim_power_cut(b.sim);
        box_start(&b);
        lost += kind_at(&b, DIR) == ENV_ABSENT;
        sim_free(b.sim);
    }
    assert_true(lost > 0 && lost < SEEDS);
}

/* ---- A full disk -------------------------------------------------------------------------------------------- */

static enum tide_code count_entry(void *arg, const char *name, enum env_kind kind)
{
    (void)name;
    (void)kind;
    ++*(int *)arg;
    return TIDE_OK;
}

static int entries(struct box *b)
{
    int n = 0;

    assert_int_equal(b->ops->list(b->env, DIR, count_entry, &n, NULL), TIDE_OK);
    return n;
}

static enum tide_code open_new(struct box *b, const char *path)
{
    struct env_file *f = NULL;
    enum tide_code code = b->ops->open(b->env, path, ENV_WRITE | ENV_CREATE, &f, NULL);

    b->ops->close(f);
    return code;
}

static void a_full_disk_takes_no_new_name_and_leaves_no_trace_of_one(void **state)
{
    struct box b = box_new(1);

    (void)state;
    make_dirs(&b, DIR);
    put(&b);
    sim_fault_at(b.sim, SIM_ENOSPC, 1, true);
    assert_int_equal(open_new(&b, DIR "/new"), TIDE_FULL);
    assert_int_equal(b.ops->mkdirs(b.env, DIR "/dir/below", NULL), TIDE_FULL);
    assert_int_equal(b.ops->rename(b.env, PATH, DIR "/moved", NULL), TIDE_FULL);
    assert_int_equal(entries(&b), 1);
    assert_int_equal(kind_at(&b, PATH), ENV_FILE);
    sim_power_cut(b.sim);
    box_start(&b);
    assert_int_equal(entries(&b), 1);
    sim_fault_at(b.sim, SIM_NO_FAULT, 0, false);
    assert_int_equal(open_new(&b, DIR "/new"), TIDE_OK);
    make_dirs(&b, DIR "/dir/below");
    assert_int_equal(b.ops->rename(b.env, PATH, DIR "/moved", NULL), TIDE_OK);
    assert_int_equal(entries(&b), 3);
    sim_free(b.sim);
}

static void a_full_disk_goes_on_with_the_names_it_has(void **state)
{
    struct box b = box_new(1);

    (void)state;
    make_dirs(&b, DIR);
    put(&b);
    assert_int_equal(open_new(&b, DIR "/other"), TIDE_OK);
    sim_fault_at(b.sim, SIM_ENOSPC, 1, true);
    make_dirs(&b, DIR);
    assert_int_equal(open_new(&b, DIR "/other"), TIDE_OK);
    assert_int_equal(b.ops->rename(b.env, DIR "/other", PATH, NULL), TIDE_OK);
    assert_int_equal(b.ops->rename(b.env, PATH, PATH, NULL), TIDE_OK);
    assert_int_equal(b.ops->rename(b.env, DIR "/absent", DIR "/new", NULL), TIDE_NOT_FOUND);
    assert_int_equal(b.ops->rename(b.env, PATH, "/absent/new", NULL), TIDE_NOT_FOUND);
    assert_int_equal(open_new(&b, "/absent/new"), TIDE_NOT_FOUND);
    assert_int_equal(b.ops->sync_dir(b.env, DIR, NULL), TIDE_OK);
    assert_int_equal(b.ops->unlink(b.env, PATH, NULL), TIDE_OK);
    assert_int_equal(entries(&b), 0);
    sim_free(b.sim);
}

static void directories_are_made_as_far_as_there_is_room(void **state)
{
    struct box b = box_after_fault(1, SIM_ENOSPC, 2); /* waits for the first operation after it that takes room */

    (void)state;
    assert_int_equal(kind_at(&b, "/a"), ENV_DIR);
    assert_int_equal(kind_at(&b, DIR), ENV_ABSENT);
    sim_power_cut(b.sim);
    box_start(&b);
    assert_int_equal(kind_at(&b, "/a"), ENV_DIR);
    make_dirs(&b, DIR);
    sim_free(b.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_that_was_not_synced_takes_what_lies_below_it),
        cmocka_unit_test(whoever_finds_a_directory_makes_it_durable),
        cmocka_unit_test(a_directory_that_is_durable_costs_nothing_to_find),
        cmocka_unit_test(a_copy_of_the_disk_keeps_and_loses_the_same_directories),
        cmocka_unit_test(a_lie_about_directories_loses_them_too),
        cmocka_unit_test(a_full_disk_takes_no_new_name_and_leaves_no_trace_of_one),
        cmocka_unit_test(a_full_disk_goes_on_with_the_names_it_has),
        cmocka_unit_test(directories_are_made_as_far_as_there_is_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
