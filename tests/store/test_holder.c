/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a lease of another process ends: at once when that one is dead or its kernel was booted anew, by elapsed time where that
 * cannot be told; never because somebody set a clock. Simulated machines, on every store.
 */
#include "kit.h"

#include "env/sim.h"
#include "sim/sim_store.h"

#define LEASE_MS 30000
#define WHY 512
#define HOUR_MS (3600 * 1000)

enum place { HERE, ANOTHER_CONTAINER, ANOTHER_MACHINE };
enum fate { KILLED, POWER_CUT, STOPPED };

static struct sim_proc *start(struct sim *sim, enum place place)
{
    return place == HERE ? sim_proc_start(sim) : sim_proc_start_elsewhere(sim, place == ANOTHER_MACHINE);
}

static tide_store *opened(struct sim_proc *p)
{
    tide_store *s = NULL;

    OK((s = sim_store_open(p, LEASE_MS, &err)) ? TIDE_OK : err.code);
    return s;
}

/* The session is created, and its lease kept. */
static tide_session *hold(tide_store *s)
{
    tide_session *session = NULL;

    OK(tide_session_create(s, "s", "{}", &session, &err));
    put(session, "message.user", SAID);
    return session;
}

/* The lease can be taken; it is not kept. */
static bool is_free(tide_store *s, char why[WHY])
{
    const struct tide_new_event ev = {"message.user", SAID, 0};
    struct tide_err err = {0};
    tide_session *session = NULL;
    enum tide_code code;

    code = tide_session_open(s, "s", TIDE_SESSION_APPEND, &session, &err);
    code = code ? code : tide_session_append(session, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, &ev, 1, NULL, &err);
    tide_session_close(session);
    if (code && code != TIDE_HELD)
        fail_msg("%s", err.msg);
    snprintf(why, WHY, "%s", code ? err.msg : "");
    return code == TIDE_OK;
}

static const struct row {
    const char *name;
    enum place holder;
    bool remote;
    enum fate fate;
    int64_t clock_ms; /* how the wall clock is set then */
    bool at_once;     /* free for whoever comes then; else after a lease time */
    bool watched;     /* … of watching: one that comes then for the first time has to wait anew */
    const char *says;
} rows[] = {
    {"killed here", HERE, false, KILLED, 0, true, false, ""},
    {"killed here, on a network", HERE, true, KILLED, 0, true, false, ""},
    {"rebooted", HERE, false, POWER_CUT, 0, true, false, ""},
    {"rebooted, the clock an hour late", HERE, false, POWER_CUT, -HOUR_MS, true, false, ""},
    {"rebooted, on a network", HERE, true, POWER_CUT, 0, false, true, "another machine"},
    {"rebooted, on a network, the clock an hour late", HERE, true, POWER_CUT, -HOUR_MS, false, true, "another machine"},
    {"rebooted, on a network, the clock an hour fast", HERE, true, POWER_CUT, HOUR_MS, false, true, "another machine"},
    {"stopped here", HERE, false, STOPPED, 0, false, false, "stopped"},
    {"stopped here, the clock an hour fast", HERE, false, STOPPED, HOUR_MS, false, false, "stopped"},
    {"stopped here, the clock an hour late", HERE, false, STOPPED, -HOUR_MS, false, false, "stopped"},
    {"killed in a container", ANOTHER_CONTAINER, false, KILLED, 0, false, false, "another container"},
    {"killed in a container, the clock an hour fast", ANOTHER_CONTAINER, false, KILLED, HOUR_MS, false, false,
     "another container"},
    {"rebooted, from a container", ANOTHER_CONTAINER, false, POWER_CUT, 0, true, false, ""},
    {"killed on another machine", ANOTHER_MACHINE, true, KILLED, 0, false, true, "another machine"},
    {"killed on another machine, clocks an hour apart", ANOTHER_MACHINE, true, KILLED, HOUR_MS, false, true,
     "another machine"},
};

static void one_row(const struct row *r)
{
    struct sim *sim = sim_new(7);
    struct sim_proc *holder;
    tide_session *session;
    tide_store *held, *s, *other;
    char why[WHY];

    print_message("# %s\n", r->name);
    if (r->remote)
        sim_disk_is_remote(sim);
    holder = start(sim, r->holder);
    held = opened(holder);
    session = hold(held);
    if (r->fate == POWER_CUT)
        sim_power_cut(sim);
    else if (r->fate == KILLED)
        sim_proc_kill(holder);
    sim_set_clock(sim, r->clock_ms);
    s = opened(start(sim, HERE));
    assert_int_equal(is_free(s, why), r->at_once);
    if (!strstr(why, r->says))
        fail_msg("'%s' is not in '%s'", r->says, why);
    if (!r->at_once) {
        sim_advance(sim, LEASE_MS - 1000);
        assert_false(is_free(s, why));
        sim_advance(sim, 2000);
        other = opened(start(sim, HERE));
        assert_int_equal(is_free(other, why), !r->watched);
        assert_true(is_free(s, why));
        tide_store_close(other);
    }
    tide_store_close(s);
    tide_session_close(session);
    tide_store_close(held);
    sim_free(sim);
}

static void a_lease_ends_with_its_holder_and_never_by_the_wall_clock(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        one_row(&rows[i]);
}

/* It beats, whatever its clock says and however long it is watched: nobody may take its lease. */
static void a_holder_elsewhere_whose_heartbeat_is_seen_keeps_its_lease(void **state)
{
    (void)state;
    for (int place = ANOTHER_CONTAINER; place <= ANOTHER_MACHINE; place++) {
        struct sim *sim = sim_new(8);
        tide_store *held, *s;
        tide_session *session;
        char why[WHY];

        sim_disk_is_remote(sim);
        held = opened(start(sim, (enum place)place));
        session = hold(held);
        s = opened(start(sim, HERE));
        for (int i = 0; i < 12; i++) {
            assert_false(is_free(s, why));
            sim_advance(sim, LEASE_MS / 3 + 1000);
            sim_set_clock(sim, i % 2 ? HOUR_MS : -HOUR_MS);
            put(session, "message.user", SAID); /* or its background thread, which a simulated process has not */
        }
        tide_store_close(s);
        tide_session_close(session);
        tide_store_close(held);
        sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_ends_with_its_holder_and_never_by_the_wall_clock),
        cmocka_unit_test(a_holder_elsewhere_whose_heartbeat_is_seen_keeps_its_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
