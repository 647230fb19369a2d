/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of the files store that are made by one commit share syncs: whatever happens at whichever operation, each one is
 * there whole if that was told, not there if it was refused, and never half.
 */
#include "kit.h"

#include <pthread.h>
#include <time.h>

#include "env/sim.h"
#include "store/group.h"

#define MADE 6
#define URL "files:/disk/made"

static struct store *open_in(struct sim *sim)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE, .lease_ms = 30000};
    struct store *s = NULL;

    OK(store_open(URL, &opt, sim_proc_env(sim_proc_start(sim)), &s, &err));
    return s;
}

/* Two that stand by themselves, one that stays live, one that is held, a fork of the first, and one with many lines. */
static struct batch *batch_at(int i)
{
    static const unsigned flags[MADE] = {
        BATCH_RELEASE, BATCH_RELEASE, BATCH_RELEASE | BATCH_LIVE, 0, BATCH_RELEASE, BATCH_RELEASE,
    };
    const struct event ev = {.kind = STR("test.event"), .body = STR("{\"content\":\"as it came\"}")};
    struct event events[300];
    size_t n = i == 5 ? 300 : 3;
    struct batch *b;
    char id[16];

    for (size_t k = 0; k < n; k++)
        events[k] = ev;
    snprintf(id, sizeof id, "s%d", i);
    b = batch_new(str_from(id), BATCH_CREATE | BATCH_ACQUIRE | flags[i], events, n, STR(""), STR("{\"made\":1}"));
    b->expect_seq = STORE_ANY_SEQ;
    b->caches_seq = (int64_t)n;
    b->wake_ms = INT64_MAX;
    if (i == 4) {
        snprintf(b->parent, sizeof b->parent, "s0");
        b->parent_seq = 2;
    }
    batch_set_session_files(b, STR("{\"session_file\":1}"), STR("{\"tokens\":[]}"));
    return b;
}

static void make_all(struct store *s, enum tide_code codes[MADE])
{
    struct batch *list[MADE];

    for (int i = 0; i < MADE; i++)
        group_submit(s->group, list[i] = batch_at(i), GROUP_AWAITED);
    for (int i = 0; i < MADE; i++) {
        group_wait(s->group, list[i]);
        codes[i] = list[i]->code;
        batch_free(list[i]);
    }
}

static int count(void *arg, const struct event *ev)
{
    (void)ev;
    ++*(int64_t *)arg;
    return 0;
}

/* Whether it is there; if so it is whole. */
static bool is_whole(struct store *s, int i)
{
    int64_t n = 0, want = i == 5 ? 300 : 3;
    struct tide_err why;
    struct head h;
    char id[16];

    snprintf(id, sizeof id, "s%d", i);
    if (store_head(s, str_from(id), &h, &why) == TIDE_NOT_FOUND)
        return false;
    OK(store_head(s, str_from(id), &h, &err));
    OK(store_read(s, &h, 0, 0, count, &n, &err));
    assert_int_equal(n, want);
    assert_int_equal(h.last_seq, i == 4 ? 5 : want);
    return true;
}

/* After power came back: what was told holds, and whatever is missing can be made. */
static void judge(struct sim *sim, const enum tide_code codes[MADE], bool told)
{
    struct store_check check = {0};
    struct store *s = open_in(sim);
    bool there[MADE];

    assert_non_null(s);
    for (int i = 0; i < MADE; i++) {
        there[i] = is_whole(s, i);
        if (codes[i] == TIDE_OK)
            assert_true(there[i]);
        else if (told && codes[i] != TIDE_UNKNOWN)
            assert_false(there[i]);
    }
    assert_true(there[0] || !there[4]); /* no fork without its parent */
    OK(store_check(s, &check, &err));
    assert_int_equal(check.problems, 0);
    for (int i = 0; i < MADE; i++) {
        if (!there[i])
            OK(store_write(s, batch_at(i), NULL, &err));
        assert_true(is_whole(s, i));
    }
    store_close(s);
}

/* False when the n-th operation came after all of it. */
static bool try_fault(enum sim_fault fault, uint64_t n)
{
    bool dead = fault == SIM_KILL || fault == SIM_POWER_CUT;
    enum tide_code codes[MADE];
    struct sim *sim = sim_new(n);
    struct store *s = open_in(sim);
    bool fired;

    sim_fault_at(sim, fault, n, false);
    make_all(s, codes);
    fired = sim_fault_fired(sim);
    for (int i = 0; i < MADE && !fired; i++)
        assert_int_equal(codes[i], TIDE_OK);
    sim_fault_at(sim, SIM_NO_FAULT, 0, false);
    sim_power_cut(sim);
    store_close(s);
    judge(sim, codes, !dead);
    sim_free(sim);
    return fired;
}

/* How many operations of this kind there are; after any of them the sessions are judged. */
static uint64_t fault_everywhere(enum sim_fault fault)
{
    uint64_t n = 1;

    while (n < 2000 && try_fault(fault, n))
        n++;
    return n - 1;
}

static void whatever_happens_at_any_operation_each_is_whole_or_not_there(void **state)
{
    static const enum sim_fault faults[] = {SIM_KILL, SIM_POWER_CUT, SIM_EIO, SIM_ENOSPC};

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        assert_in_range(fault_everywhere(faults[i]), 5, 1998);
}

static void what_was_written_is_synced_once_and_not_read_again(void **state)
{
    (void)state;
    /* A log and a mark each; two leases and the process that has one of them. */
    assert_int_equal(fault_everywhere(SIM_SYNC_FAILS), 2 * MADE + 3);
}

/* ---- a clone has no caches, and this one no marks: each log is synced by whoever finds it ---- */

static struct {
    pthread_mutex_t mu;
    pthread_cond_t come;
    int now, most, all;
    bool alone; /* one waited in vain for another: no more do */
} syncs = {.mu = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};

/* Takes as long as it is the only one, or gives up. */
static enum tide_code sync_with_others(struct env_file *f, struct tide_err *why)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 10;
    pthread_mutex_lock(&syncs.mu);
    syncs.all++;
    syncs.most = ++syncs.now > syncs.most ? syncs.now : syncs.most;
    pthread_cond_broadcast(&syncs.come);
    while (syncs.most < 2 && !syncs.alone)
        syncs.alone = pthread_cond_timedwait(&syncs.come, &syncs.mu, &end) != 0;
    syncs.now--;
    pthread_mutex_unlock(&syncs.mu);
    return env_real()->ops->sync(f, why);
}

static int count_entry(void *arg, const struct store_entry *entry)
{
    assert_null(entry->damage);
    ++*(int *)arg;
    return 0;
}

static void logs_that_are_found_are_synced_side_by_side(void **state)
{
    const struct tide_store_options make = {.size = sizeof make, .flags = TIDE_OPEN_CREATE},
                                    read = {.size = sizeof read, .flags = TIDE_OPEN_READ_ONLY};
    char dir[] = "/tmp/tidemark-test.XXXXXX", url[64], command[128];
    struct env_ops ops = *env_real()->ops;
    struct env env = *env_real();
    enum tide_code codes[MADE];
    struct store *s = NULL;
    int n = 0;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(url, sizeof url, "files:%s", dir);
    OK(store_open(url, &make, env_real(), &s, &err));
    make_all(s, codes);
    store_close(s);
    snprintf(command, sizeof command, "rm -r %s/cache %s/live %s/sessions/*.mark", dir, dir, dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
    ops.sync = sync_with_others;
    env.ops = &ops;
    OK(store_open(url, &read, &env, &s, &err));
    OK(store_list(s, NULL, count_entry, &n, &err));
    store_close(s);
    assert_int_equal(n, MADE);
    assert_int_equal(syncs.all, MADE); /* each once */
    assert_in_range(syncs.most, 2, MADE);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_at_any_operation_each_is_whole_or_not_there),
        cmocka_unit_test(what_was_written_is_synced_once_and_not_read_again),
        cmocka_unit_test(logs_that_are_found_are_synced_side_by_side),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
