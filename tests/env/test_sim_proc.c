/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, clock, locks and images of the simulated machine. Its disk: test_sim.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "env/sim.h"

#define PATH "/d/f"

/* A new one gets its directory first. */
static struct env_file *open_file(struct sim_proc *p, const char *path, unsigned flags)
{
    struct env *e = sim_proc_env(p);
    struct env_file *f = NULL;

    if (flags & ENV_CREATE)
        assert_int_equal(e->ops->mkdirs(e, "/d", NULL), TIDE_OK);
    assert_int_equal(e->ops->open(e, path, flags, &f, NULL), TIDE_OK);
    return f;
}

static const struct env_ops *ops_of(struct sim_proc *p)
{
    return sim_proc_env(p)->ops;
}

/* What a listing told, and whom to kill in the middle of it. */
struct told {
    char names[16]; /* the first letters */
    size_t len;
    struct sim_proc *victim;
};

static enum tide_code tell(void *arg, const char *name, enum env_kind kind)
{
    struct told *t = arg;

    (void)kind;
    assert_true(t->len + 1 < sizeof t->names);
    t->names[t->len++] = name[0];
    if (t->victim)
        sim_proc_kill(t->victim);
    return TIDE_OK;
}

/* ---- Kill and life ------------------------------------------------------------------------------------------ */

static void a_kill_keeps_the_cache_and_drops_the_lock(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *a = sim_proc_start(sim), *b = sim_proc_start(sim);
    struct env_file *fa = open_file(a, PATH, ENV_WRITE | ENV_CREATE), *fb = open_file(b, PATH, ENV_WRITE);
    char got[4] = "";
    size_t n;

    (void)state;
    assert_int_equal(ops_of(a)->pwrite(fa, "abc", 3, 0, NULL), TIDE_OK);
    assert_int_equal(ops_of(a)->lock(fa, 0, NULL), TIDE_OK);
    assert_int_equal(ops_of(b)->lock(fb, 0, NULL), TIDE_BUSY);
    sim_proc_kill(a);
    assert_int_equal(ops_of(b)->lock(fb, 0, NULL), TIDE_OK);
    assert_int_equal(ops_of(b)->pread(fb, got, sizeof got, 0, &n, NULL), TIDE_OK);
    assert_int_equal(n, 3);
    assert_string_equal(got, "abc");
    ops_of(a)->close(fa);
    ops_of(b)->close(fb);
    sim_free(sim);
}

static void a_dead_process_changes_nothing(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);
    struct env *e = sim_proc_env(p);
    struct env_file *f = open_file(p, PATH, ENV_WRITE | ENV_CREATE), *none = NULL;
    unsigned char *bytes;
    struct told told = {0};
    struct env_stat st;
    size_t len;

    (void)state;
    assert_int_equal(e->ops->pwrite(f, "abc", 3, 0, NULL), TIDE_OK);
    sim_proc_kill(p);
    uint64_t ops = sim_op_count(sim);
    assert_int_equal(e->ops->pwrite(f, "xyz", 3, 0, NULL), TIDE_IO);
    assert_int_equal(e->ops->pread(f, &len, 1, 0, &len, NULL), TIDE_IO);
    assert_int_equal(e->ops->truncate(f, 0, NULL), TIDE_IO);
    assert_int_equal(e->ops->sync(f, NULL), TIDE_IO);
    assert_int_equal(e->ops->lock(f, 0, NULL), TIDE_IO);
    assert_int_equal(e->ops->unlink(e, PATH, NULL), TIDE_IO);
    assert_int_equal(e->ops->mkdirs(e, "/e", NULL), TIDE_IO);
    assert_int_equal(e->ops->sync_dir(e, "/d", NULL), TIDE_IO);
    assert_int_equal(e->ops->rename(e, PATH, "/d/g", NULL), TIDE_IO);
    assert_int_equal(e->ops->list(e, "/d", tell, &told, NULL), TIDE_IO);
    assert_int_equal(told.len, 0);
    assert_int_equal(e->ops->fstat(f, &st, NULL), TIDE_IO);
    assert_int_equal(e->ops->allocate(f, 100, NULL), TIDE_IO);
    assert_int_equal(e->ops->open(e, "/d/g", ENV_WRITE | ENV_CREATE, &none, NULL), TIDE_IO);
    assert_null(none);
    assert_int_equal(sim_op_count(sim), ops);
    assert_true(sim_file_bytes(sim, PATH, &bytes, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "abc", 3);
    assert_false(sim_file_bytes(sim, "/d/g", &bytes, &len));
    e->ops->close(f);
    sim_free(sim);
}

static void life_is_told_within_one_boot(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *a = sim_proc_start(sim), *b = sim_proc_start(sim);
    struct env_proc who;

    (void)state;
    ops_of(a)->self(sim_proc_env(a), &who);
    assert_int_equal(ops_of(b)->life(sim_proc_env(b), &who), ENV_STOPPED);
    sim_proc_kill(a);
    assert_int_equal(ops_of(b)->life(sim_proc_env(b), &who), ENV_DEAD);
    sim_power_cut(sim);
    assert_true(sim_proc_dead(b));
    struct sim_proc *c = sim_proc_start(sim);
    assert_int_equal(ops_of(c)->life(sim_proc_env(c), &who), ENV_ELSEWHERE);
    sim_free(sim);
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
    int reused = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct sim *sim = sim_new(seed);
        struct sim_proc *a = sim_proc_start(sim);
        struct env_proc was, is;
        ops_of(a)->self(sim_proc_env(a), &was);
        sim_proc_kill(a);
        struct sim_proc *b = sim_proc_start(sim);
        ops_of(b)->self(sim_proc_env(b), &is);
        reused += was.pid == is.pid;
        assert_int_equal(ops_of(b)->life(sim_proc_env(b), &was), ENV_DEAD);
        assert_int_equal(ops_of(b)->life(sim_proc_env(b), &is), ENV_ALIVE);
        sim_free(sim);
    }
    assert_true(reused > 0);
}

/* ---- Clock, locks, randomness ------------------------------------------------------------------------------- */

static void the_clock_moves_only_when_told(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);
    struct env *e = sim_proc_env(p);
    int64_t wall = e->ops->now_ms(e), mono = e->ops->mono_ns(e);

    (void)state;
    assert_int_equal(e->ops->now_ms(e), wall);
    sim_advance(sim, 1500);
    assert_int_equal(e->ops->now_ms(e), wall + 1500);
    assert_int_equal(e->ops->mono_ns(e), mono + 1500000000);
    sim_advance(sim, -5000);
    assert_int_equal(e->ops->now_ms(e), wall - 3500);
    assert_int_equal(e->ops->mono_ns(e), mono + 1500000000);
    sim_free(sim);
}

static void waiting_for_a_lock_takes_simulated_time(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);
    struct env *e = sim_proc_env(p);
    struct env_file *a = open_file(p, PATH, ENV_WRITE | ENV_CREATE), *b = open_file(p, PATH, ENV_WRITE);
    int64_t before = e->ops->now_ms(e);

    (void)state;
    assert_int_equal(e->ops->lock(a, 0, NULL), TIDE_OK);
    assert_int_equal(e->ops->lock(b, 250, NULL), TIDE_BUSY);
    assert_int_equal(e->ops->now_ms(e), before + 250);
    e->ops->close(a);
    assert_int_equal(e->ops->lock(b, -1, NULL), TIDE_OK);
    e->ops->unlock(b);
    e->ops->close(b);
    sim_free(sim);
}

static void everything_follows_from_the_seed(void **state)
{
    unsigned char bytes[2][32];
    struct env_proc self[2];
    uint64_t random[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct sim *sim = sim_new(7);
        struct sim_proc *p = sim_proc_start(sim);
        ops_of(p)->random(sim_proc_env(p), bytes[i], sizeof bytes[i]);
        ops_of(p)->self(sim_proc_env(p), &self[i]);
        random[i] = sim_random(sim);
        sim_free(sim);
    }
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
    assert_string_equal(self[0].kernel_boot, self[1].kernel_boot);
    assert_int_equal(random[0], random[1]);
}

/* ---- Names and images --------------------------------------------------------------------------------------- */

static void names_behave_like_those_of_a_file_system(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);
    struct env *e = sim_proc_env(p);
    struct env_file *f = NULL;
    struct env_stat st;

    (void)state;
    assert_int_equal(e->ops->open(e, PATH, ENV_WRITE, &f, NULL), TIDE_NOT_FOUND);
    assert_int_equal(e->ops->stat(e, PATH, &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_ABSENT);
    assert_int_equal(e->ops->mkdirs(e, "/x/y", NULL), TIDE_OK);
    assert_int_equal(e->ops->mkdirs(e, "/x/y", NULL), TIDE_OK);
    assert_int_equal(e->ops->stat(e, "/x", &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_DIR);
    f = open_file(p, PATH, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE);
    assert_int_equal(e->ops->pwrite(f, "abc", 3, 5, NULL), TIDE_OK);
    assert_int_equal(e->ops->stat(e, PATH, &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_FILE);
    assert_int_equal(st.size, 8);
    e->ops->close(f);
    assert_int_equal(e->ops->open(e, PATH, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &f, NULL), TIDE_EXISTS);
    assert_int_equal(e->ops->unlink(e, PATH, NULL), TIDE_OK);
    assert_int_equal(e->ops->unlink(e, PATH, NULL), TIDE_OK);
    sim_power_cut(sim);
    p = sim_proc_start(sim);
    assert_int_equal(ops_of(p)->stat(sim_proc_env(p), "/x/y", &st, NULL), TIDE_OK);
    assert_int_equal(st.kind, ENV_DIR);
    sim_free(sim);
}

static void a_listing_begins_anywhere_and_ends_with_its_process(void **state)
{
    int firsts[3] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct sim *sim = sim_new(seed);
        struct sim_proc *p = sim_proc_start(sim);
        struct told told = {.victim = NULL};
        for (const char *const *path = (const char *const[]){"/d/a", "/d/b", "/d/c", NULL}; *path; path++)
            ops_of(p)->close(open_file(p, *path, ENV_WRITE | ENV_CREATE));
        assert_int_equal(ops_of(p)->list(sim_proc_env(p), "/d/", tell, &told, NULL), TIDE_OK);
        assert_int_equal(told.len, 3);
        firsts[told.names[0] - 'a']++;
        assert_int_equal(ops_of(p)->list(sim_proc_env(p), "/", tell, &told, NULL), TIDE_OK);
        assert_true(told.len == 4 && told.names[3] == 'd');
        told.victim = p;
        assert_int_equal(ops_of(p)->list(sim_proc_env(p), "/d", tell, &told, NULL), TIDE_IO);
        assert_int_equal(told.len, 5);
        sim_free(sim);
    }
    assert_true(firsts[0] > 0 && firsts[1] > 0 && firsts[2] > 0);
}

static void a_power_cut_may_leave_new_contents_with_an_old_time(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);
    struct env_file *f = open_file(p, PATH, ENV_WRITE | ENV_CREATE);
    struct env_stat first, then;
    unsigned char *bytes;
    size_t len;

    (void)state;
    assert_int_equal(ops_of(p)->pwrite(f, "abc", 3, 0, NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->sync(f, NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->sync_dir(sim_proc_env(p), "/d", NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->fstat(f, &first, NULL), TIDE_OK);
    sim_advance(sim, 1000);
    assert_int_equal(ops_of(p)->pwrite(f, "xyz", 3, 0, NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->sync(f, NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->fstat(f, &then, NULL), TIDE_OK);
    assert_int_equal(then.mtime_ns, first.mtime_ns + 1000 * INT64_C(1000000));
    sim_power_cut(sim);
    p = sim_proc_start(sim);
    assert_int_equal(ops_of(p)->stat(sim_proc_env(p), PATH, &then, NULL), TIDE_OK);
    assert_int_equal(then.mtime_ns, first.mtime_ns);
    assert_true(sim_file_bytes(sim, PATH, &bytes, &len) && len == 3 && memcmp(bytes, "xyz", 3) == 0);
    sim_free(sim);
}

static void an_image_starts_many_machines_alike(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);
    struct env_file *f = open_file(p, PATH, ENV_WRITE | ENV_CREATE);
    int lost = 0;

    (void)state;
    assert_int_equal(ops_of(p)->sync_dir(sim_proc_env(p), "/d", NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->pwrite(f, "abc", 3, 0, NULL), TIDE_OK);
    struct sim_image *image = sim_image_take(sim);
    assert_int_equal(ops_of(p)->pwrite(f, "xyz", 3, 0, NULL), TIDE_OK);
    ops_of(p)->close(f);
    sim_free(sim);
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct sim *copy = sim_new_from(seed, image);
        unsigned char *bytes;
        size_t len;
        assert_true(sim_file_bytes(copy, PATH, &bytes, &len));
        assert_int_equal(len, 3);
        assert_memory_equal(bytes, "abc", 3);
        sim_power_cut(copy);
        assert_true(sim_file_bytes(copy, PATH, &bytes, &len));
        lost += len == 0;
        sim_free(copy);
    }
    assert_true(lost > 0 && lost < 50);
    sim_image_free(image);
}

static void a_file_can_be_damaged_from_outside(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_proc *p = sim_proc_start(sim);
    struct env_file *f = open_file(p, PATH, ENV_WRITE | ENV_CREATE);
    unsigned char *bytes;
    size_t len;

    (void)state;
    assert_int_equal(ops_of(p)->pwrite(f, "abcdef", 6, 0, NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->sync(f, NULL), TIDE_OK);
    assert_int_equal(ops_of(p)->sync_dir(sim_proc_env(p), "/d", NULL), TIDE_OK);
    assert_true(sim_file_bytes(sim, PATH, &bytes, &len));
    bytes[0] ^= 1;
    sim_file_set_size(sim, PATH, 4);
    sim_power_cut(sim);
    assert_true(sim_file_bytes(sim, PATH, &bytes, &len));
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "`bcd", 4);
    ops_of(p)->close(f);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_keeps_the_cache_and_drops_the_lock),
        cmocka_unit_test(a_dead_process_changes_nothing),
        cmocka_unit_test(life_is_told_within_one_boot),
        cmocka_unit_test(a_pid_that_is_used_again_is_another_process),
        cmocka_unit_test(the_clock_moves_only_when_told),
        cmocka_unit_test(waiting_for_a_lock_takes_simulated_time),
        cmocka_unit_test(everything_follows_from_the_seed),
        cmocka_unit_test(names_behave_like_those_of_a_file_system),
        cmocka_unit_test(a_listing_begins_anywhere_and_ends_with_its_process),
        cmocka_unit_test(a_power_cut_may_leave_new_contents_with_an_old_time),
        cmocka_unit_test(an_image_starts_many_machines_alike),
        cmocka_unit_test(a_file_can_be_damaged_from_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
