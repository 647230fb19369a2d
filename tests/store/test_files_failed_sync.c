/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that fails the sync of one file may have lost what it had been given of others, and says "ok" when those are synced
 * later. What was acknowledged all the same is there after a power cut: in the same commit, and in another process.
 */
#include "kit.h"

#include "env/sim.h"
#include "store/group.h"

#define SESSIONS 4
#define LUCKS 60
#define URL "files:/disk/t"

static struct store *open_with(struct env *env)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE, .lease_ms = 30000};
    struct store *s = NULL;

    OK(store_open(URL, &opt, env, &s, &err));
    return s;
}

static struct batch *batch_for(int i, unsigned flags)
{
    const struct event ev = {.kind = STR("test.event"), .body = STR("{\"content\":\"as it came\"}")};
    struct batch *b;
    char id[16];

    snprintf(id, sizeof id, "s%d", i);
    b = batch_new(str_from(id), flags, &ev, 1, STR(""), STR(""));
    b->expect_seq = STORE_ANY_SEQ;
    return b;
}

static void make(struct store *s)
{
    for (int i = 0; i < SESSIONS; i++)
        OK(store_write(s, batch_for(i, BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE), NULL, &err));
}

/* What was acknowledged is there, and all can be read. */
static void judge(struct sim *sim, const int64_t acked[SESSIONS])
{
    struct store *s = open_with(sim_proc_env(sim_proc_start(sim)));

    for (int i = 0; i < SESSIONS; i++) {
        struct head h;
        char id[16];

        snprintf(id, sizeof id, "s%d", i);
        OK(store_head(s, str_from(id), &h, &err));
        assert_false(h.damaged);
        assert_true(h.last_seq >= acked[i]);
    }
    store_close(s);
}

/* One commit of several sessions, of which the n-th sync fails. */
static void commit_all(uint64_t luck, uint64_t n)
{
    struct sim *sim = sim_new(luck);
    struct store *s = open_with(sim_proc_env(sim_proc_start(sim)));
    struct batch *list[SESSIONS];
    int64_t acked[SESSIONS];

    make(s);
    sim_fault_at(sim, SIM_SYNC_FAILS, n, false);
    for (int i = 0; i < SESSIONS; i++)
        group_submit(s->group, list[i] = batch_for(i, BATCH_INPUT), GROUP_AWAITED);
    for (int i = 0; i < SESSIONS; i++) {
        group_wait(s->group, list[i]);
        acked[i] = list[i]->code ? 1 : 2;
        batch_free(list[i]);
    }
    assert_true(sim_fault_fired(sim));
    sim_fault_at(sim, SIM_NO_FAULT, 0, false);
    sim_power_cut(sim);
    store_close(s);
    judge(sim, acked);
    sim_free(sim);
}

static void in_the_same_commit(void **state)
{
    (void)state;
    for (uint64_t luck = 1; luck <= LUCKS; luck++)
        for (uint64_t n = 1; n <= SESSIONS; n++)
            commit_all(luck, n);
}

/* ---- two processes ---- */

static const struct env_ops *sim_ops;
static struct sim *machine;
static struct store *other;
static bool dies; /* the other process, in its sync, instead of failing it */
static struct sim_proc *other_proc;

/* While one has written and not synced yet, a sync of the other fails. */
static enum tide_code sync_after_another(struct env_file *f, struct tide_err *why)
{
    struct store *s = other;

    other = NULL;
    if (s) {
        sim_fault_at(machine, dies ? SIM_KILL : SIM_SYNC_FAILS, dies ? 4 : 1, false);
        assert_int_not_equal(store_write(s, batch_for(1, BATCH_INPUT), NULL, why), TIDE_OK);
        sim_fault_at(machine, SIM_NO_FAULT, 0, false);
    }
    return sim_ops->sync(f, why);
}

static void meanwhile(uint64_t luck)
{
    struct env *env;
    struct env_ops ops;
    struct store *s;
    int64_t acked[SESSIONS] = {2, 1, 1, 1};

    machine = sim_new(luck);
    env = sim_proc_env(sim_proc_start(machine));
    sim_ops = env->ops;
    ops = *env->ops;
    ops.sync = sync_after_another;
    s = open_with(env);
    make(s);
    OK(store_write(s, batch_for(2, BATCH_INPUT), NULL, &err));
    other_proc = sim_proc_start(machine);
    other = open_with(sim_proc_env(other_proc));
    OK(store_write(other, batch_for(3, BATCH_INPUT), NULL, &err));
    struct store *to_close = other;
    env->ops = &ops;
    OK(store_write(s, batch_for(0, BATCH_INPUT), NULL, &err));
    assert_null(other);
    sim_power_cut(machine);
    store_close(s);
    store_close(to_close);
    judge(machine, acked);
    sim_free(machine);
}

static void in_another_process(void **state)
{
    (void)state;
    for (uint64_t luck = 1; luck <= 4 * LUCKS; luck++)
        meanwhile(luck);
}

static void in_one_that_dies_of_it(void **state)
{
    (void)state;
    dies = true;
    for (uint64_t luck = 1; luck <= LUCKS; luck++)
        meanwhile(luck);
    dies = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_same_commit),
        cmocka_unit_test(in_another_process),
        cmocka_unit_test(in_one_that_dies_of_it),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
