/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler on a clock that stands until it is set: what is due goes on and what a person stopped does not, no more at once
 * than may, what fails is tried again less and less often, and whoever stops it leaves nothing running.
 */
#include <sys/wait.h>

#include "engine/scheduler.h"
#include "session/runs.h"

enum { JOBS_MAX = 16, MINUTE_MS = 60000 };

static _Atomic int64_t mono_ms;

static int64_t standing_mono_ns(struct env *env)
{
    (void)env;
    return mono_ms * 1000000;
}

static void pass_time(int64_t ms)
{
    mono_ms += ms;
    until(now() + ms);
}

/* ---- who drives it ---- */

struct driver {
    struct scheduler s;
    char started[JOBS_MAX][TIDE_ID_SIZE]; /* by handle, from 1 */
    enum job_state states[JOBS_MAX + 1];
    int64_t n;
    int found, resumes, ended, last, stops;
    bool full, stopped;
};

static bool is_stopped(void *arg)
{
    return ((struct driver *)arg)->stopped;
}

static void on_found(void *arg, const struct tide_recovered *what, bool resumes)
{
    struct driver *d = arg;

    (void)what;
    d->found++;
    d->resumes += resumes;
}

static bool on_start(void *arg, struct scheduler_job *job)
{
    struct driver *d = arg;

    if (d->full)
        return false;
    assert_true(d->n < JOBS_MAX);
    snprintf(d->started[d->n++], TIDE_ID_SIZE, "%s", job->id);
    job->handle = d->n;
    return true;
}

static enum job_state on_look(void *arg, const struct scheduler_job *job, int *ret_status)
{
    struct driver *d = arg;

    *ret_status = d->states[job->handle] == JOB_FAILED;
    return d->states[job->handle];
}

static void on_ended(void *arg, const struct scheduler_job *job, int status, bool last)
{
    struct driver *d = arg;

    assert_int_equal(status, d->states[job->handle] == JOB_FAILED);
    d->ended++;
    d->last += last;
}

static void on_stop(void *arg, const struct scheduler_job *job)
{
    struct driver *d = arg;

    d->stops++;
    d->states[job->handle] = JOB_ENDED;
}

static struct driver *driver_of(struct fixture *f)
{
    static struct driver d;

    scheduler_done(&d.s);
    d = (struct driver){.s = {.store = f->store,
                              .run_due = true,
                              .max_at_once = 2,
                              .max_resumes = 3,
                              .stopped = is_stopped,
                              .found = on_found,
                              .start = on_start,
                              .look = on_look,
                              .ended = on_ended,
                              .stop = on_stop,
                              .arg = &d}};
    return &d;
}

static void pass_and_step(struct driver *d)
{
    OK(scheduler_pass(&d->s, &err));
    scheduler_step(&d->s);
}

static int set_up_mono(void **state)
{
    int failed = set_up(state);
    struct fixture *f = *state;

    mono_ms = 1000000;
    f->ops.mono_ns = standing_mono_ns;
    return failed;
}

/* ---- sessions ---- */

static const struct tide_run_options a_program = {.size = sizeof a_program,
                                                  .fields = "{\"argv\":[\"true\"],\"cwd\":\"/\"}"};

/* Sleeps for so long; `opt` NULL: nothing says what it runs. */
static void make_sleeper(struct fixture *f, const char *id, int64_t ms, const struct tide_run_options *opt)
{
    tide_session *s = NULL;
    tide_run *r = NULL;

    OK(tide_session_create(f->store, id, NULL, &s, &err));
    OK(tide_run_start(s, opt, &r, &err));
    GIVES(TIDE_WAITING, tide_run_sleep(r, "nap", now() + ms, NULL, &err));
    tide_run_close(r);
    tide_session_close(s);
}

static void make_ended(struct fixture *f, const char *id, const char *fields)
{
    const struct tide_run_result end = {
        .size = sizeof end, .outcome = TIDE_OUTCOME_INTERRUPTED, .reason = "shutdown", .fields = fields};
    tide_session *s = NULL;
    tide_run *r = NULL;

    OK(tide_session_create(f->store, id, NULL, &s, &err));
    OK(tide_run_start(s, &a_program, &r, &err));
    OK(tide_run_end(r, &end, &err));
    tide_run_close(r);
    tide_session_close(s);
}

/* Its process is gone without a word. */
static void make_killed(struct fixture *f, const char *id)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        tide_session *s = NULL;
        tide_run *r = NULL;
        tide_store *own = open_standing(f);

        OK(tide_session_create(own, id, NULL, &s, &err));
        OK(tide_run_start(s, &a_program, &r, &err));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- tests ---- */

static void what_is_due_is_resumed_once_and_nothing_before(void **state)
{
    struct driver *d = driver_of(*state);

    make_sleeper(*state, "a", MINUTE_MS, &a_program);
    pass_and_step(d);
    assert_int_equal(d->n, 0);
    pass_time(MINUTE_MS);
    pass_and_step(d);
    assert_int_equal(d->n, 1);
    assert_string_equal(d->started[0], "a");
    pass_and_step(d); /* it runs: it is in line already */
    assert_int_equal(d->n, 1);
    assert_int_equal(d->found, 1); /* and was told once */
    assert_int_equal(d->resumes, 1);
    d->states[1] = JOB_ENDED;
    scheduler_step(&d->s);
    assert_int_equal(d->ended, 1);
    assert_int_equal(d->s.running, 0);
    assert_int_equal(d->s.ended_badly, 0);
}

/* The sentence is the same: the clock stands still. */
static void what_happens_again_is_told_again(void **state)
{
    const struct tide_run_result end = {.size = sizeof end, .outcome = TIDE_OUTCOME_INTERRUPTED, .reason = "shutdown"};
    struct driver *d = driver_of(*state);
    tide_session *s = NULL;
    tide_run *r = NULL;

    d->s.automatic = AUTO_ALL;
    make_ended(*state, "a", NULL);
    pass_and_step(d);
    pass_and_step(d);
    assert_int_equal(d->found, 1);
    OK(tide_session_open(d->s.store, "a", TIDE_SESSION_APPEND, &s, &err));
    OK(tide_run_resume(s, &a_program, NULL, &r, &err));
    OK(tide_run_end(r, &end, &err));
    tide_run_close(r);
    tide_session_close(s);
    pass_and_step(d);
    assert_int_equal(d->found, 2);
    pass_and_step(d);
    assert_int_equal(d->found, 2);
}

static void which_sessions_go_on_by_themselves(void **state)
{
    static const struct {
        const char *name;
        bool run_due;
        enum auto_resume automatic;
        int sleeping, stranger, shut_down, by_person, killed;
    } rows[] = {
        {"nothing is to be run", false, AUTO_ALL, 0, 0, 0, 0, 0},
        {"only what is due", true, AUTO_OFF, 1, 0, 0, 0, 0},
        {"what was running when it died", true, AUTO_LIVE, 1, 0, 0, 0, 1},
        {"all that was interrupted", true, AUTO_ALL, 1, 0, 1, 0, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const ids[] = {"sleeping", "stranger", "shut_down", "by_person", "killed"};
        const int want[] = {rows[i].sleeping, rows[i].stranger, rows[i].shut_down, rows[i].by_person, rows[i].killed};
        struct fixture *f;
        struct driver *d;

        if (i) { /* a store of its own for each */
            tear_down(state);
            set_up_mono(state);
        }
        f = *state;
        d = driver_of(f);
        make_sleeper(f, "sleeping", MINUTE_MS, &a_program);
        make_sleeper(f, "stranger", MINUTE_MS, NULL);
        make_ended(f, "shut_down", NULL);
        make_ended(f, "by_person", "{\"by\":\"person\"}");
        make_killed(f, "killed");
        pass_time(MINUTE_MS);
        d->s.run_due = rows[i].run_due;
        d->s.automatic = rows[i].automatic;
        d->s.max_at_once = 10;
        pass_and_step(d);
        for (size_t k = 0; k < 5; k++) {
            int got = 0;

            for (int64_t j = 0; j < d->n; j++)
                got += strcmp(d->started[j], ids[k]) == 0;
            if (got != want[k])
                fail_msg("%s: %s was started %d times", rows[i].name, ids[k], got);
        }
    }
}

static void no_more_run_at_once_than_may(void **state)
{
    struct driver *d = driver_of(*state);

    for (int i = 0; i < 5; i++)
        make_sleeper(*state, (const char[]){(char)('a' + i), 0}, MINUTE_MS, &a_program);
    pass_time(MINUTE_MS);
    pass_and_step(d);
    assert_int_equal(d->s.running, 2);
    assert_int_equal(d->s.n, 5);
    pass_and_step(d); /* those in line are not put there again */
    assert_int_equal(d->s.n, 5);
    d->states[2] = JOB_ENDED;
    scheduler_step(&d->s);
    assert_int_equal(d->n, 3);
    assert_int_equal(d->s.running, 2);
    d->states[1] = d->states[3] = JOB_ENDED;
    scheduler_step(&d->s);
    d->states[4] = d->states[5] = JOB_ENDED;
    scheduler_step(&d->s);
    assert_int_equal(d->s.n, 0);
    assert_int_equal(d->s.started, 5);
    for (int i = 0; i < 5; i++) /* each once */
        for (int k = 0; k < i; k++)
            assert_string_not_equal(d->started[i], d->started[k]);
}

static void one_for_which_there_is_no_room_stays_in_line(void **state)
{
    struct driver *d = driver_of(*state);

    make_sleeper(*state, "a", MINUTE_MS, &a_program);
    pass_time(MINUTE_MS);
    d->full = true;
    pass_and_step(d);
    assert_int_equal(d->s.running, 0);
    assert_int_equal(d->s.n, 1);
    d->full = false;
    scheduler_step(&d->s);
    assert_int_equal(d->s.running, 1);
}

static void fail_latest(struct driver *d)
{
    d->states[d->n] = JOB_FAILED;
    scheduler_step(&d->s);
}

static void what_fails_is_tried_again_later_and_then_not_at_all(void **state)
{
    static const int64_t pauses[] = {30000, 60000}; /* before the second and the third time */
    struct driver *d = driver_of(*state);

    make_sleeper(*state, "a", MINUTE_MS, &a_program);
    pass_time(MINUTE_MS);
    pass_and_step(d);
    for (size_t i = 0; i < 2; i++) {
        fail_latest(d);
        assert_int_equal(d->last, 0);
        pass_time(pauses[i] - 1);
        pass_and_step(d);
        assert_int_equal(d->n, i + 1);
        pass_time(1);
        pass_and_step(d);
        assert_int_equal(d->n, i + 2);
    }
    fail_latest(d); /* max_resumes times */
    assert_int_equal(d->last, 1);
    assert_int_equal(d->s.ended_badly, 3);
    pass_time(1000 * MINUTE_MS);
    pass_and_step(d);
    assert_int_equal(d->n, 3);
}

static void a_clock_that_was_set_back_keeps_nothing_waiting(void **state)
{
    struct driver *d = driver_of(*state);

    make_sleeper(*state, "a", MINUTE_MS, &a_program);
    pass_time(MINUTE_MS);
    pass_and_step(d);
    fail_latest(d);
    mono_ms += 30000; /* the one that nobody sets went on, the other did not */
    pass_and_step(d);
    assert_int_equal(d->n, 2);
}

static void a_failure_is_forgotten_when_somebody_else_was_faster(void **state)
{
    struct fixture *f = *state;
    struct driver *d = driver_of(f);
    tide_session *s = NULL;
    tide_run *r = NULL;

    make_sleeper(f, "a", MINUTE_MS, &a_program);
    pass_time(MINUTE_MS);
    pass_and_step(d);
    fail_latest(d);
    OK(tide_session_open(f->other, "a", TIDE_SESSION_APPEND, &s, &err));
    OK(tide_run_resume(s, NULL, NULL, &r, &err));
    pass_and_step(d); /* not due any more: another has it */
    assert_int_equal(d->s.failed.live, 0);
    GIVES(TIDE_WAITING, tide_run_sleep(r, "again", now() + 1000, NULL, &err));
    tide_run_close(r);
    tide_session_close(s);
    pass_time(1000); /* less than the pause after a failure */
    pass_and_step(d);
    assert_int_equal(d->n, 2);
}

static void whoever_stops_it_leaves_nothing_running(void **state)
{
    struct driver *d = driver_of(*state);

    for (int i = 0; i < 4; i++)
        make_sleeper(*state, (const char[]){(char)('a' + i), 0}, MINUTE_MS, &a_program);
    pass_time(MINUTE_MS);
    pass_and_step(d);
    d->stopped = true;
    scheduler_finish(&d->s);
    assert_int_equal(d->stops, 2);
    assert_int_equal(d->ended, 2);
    assert_int_equal(d->n, 2); /* those in line were let go */
    assert_int_equal(d->s.n, 0);
}

static void a_dry_run_starts_and_writes_nothing(void **state)
{
    struct fixture *f = *state;
    struct driver *d = driver_of(f);

    make_sleeper(f, "a", MINUTE_MS, &a_program);
    make_killed(f, "s");
    pass_time(MINUTE_MS);
    d->s.dry_run = true;
    d->s.automatic = AUTO_LIVE;
    pass_and_step(d);
    assert_int_equal(d->s.would_resume, 2);
    assert_int_equal(d->n, 0);
    assert_int_equal(d->s.n, 0);
    assert_int_equal(events(f->store, "run.interrupted"), 0);
    d->s.dry_run = false;
    pass_and_step(d);
    assert_int_equal(d->n, 2);
    assert_int_equal(events(f->store, "run.interrupted"), 1);
}

static void it_sleeps_until_the_interval_is_over_or_the_next_is_due(void **state)
{
    struct driver *d = driver_of(*state);
    int64_t began = mono_ms;

    OK(scheduler_pass(&d->s, &err));
    assert_int_equal(scheduler_time_left(&d->s, began, 30000, now()), 30000);
    make_sleeper(*state, "a", 10000, &a_program);
    OK(scheduler_pass(&d->s, &err));
    assert_int_equal(scheduler_time_left(&d->s, began, 30000, now()), 10000);
    assert_int_equal(scheduler_time_left(&d->s, began, 5000, now()), 5000);
    pass_time(4000);
    assert_int_equal(scheduler_time_left(&d->s, began, 30000, now()), 6000);
    assert_int_equal(scheduler_time_left(&d->s, began, 5000, now()), 1000);
}

static enum tide_code no_live(struct store *store, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                              struct tide_err *err)
{
    (void)store;
    (void)until_ms;
    (void)fn;
    (void)arg;
    (void)ret_next_ms;
    return tide_fail(err, TIDE_IO, "the disk fails");
}

static void trouble_of_the_store_is_not_slept_through(void **state)
{
    struct fixture *f = *state;
    struct driver *d = driver_of(*state);
    struct store *store = store_of(f->store);
    const struct store_ops *works = store->ops;
    static struct store_ops fails;
    int64_t began = mono_ms;

    fails = *works;
    fails.live = no_live;
    store->ops = &fails;
    GIVES(TIDE_IO, scheduler_pass(&d->s, &err));
    assert_int_equal(scheduler_time_left(&d->s, began, 30000, now()), SCHEDULER_CHANGE_MS);
    assert_int_equal(scheduler_time_left(&d->s, began, 300, now()), 300);
    store->ops = works;
    OK(scheduler_pass(&d->s, &err));
    assert_int_equal(scheduler_time_left(&d->s, began, 30000, now()), 30000);
}

static void a_changing_store_is_looked_at_once_a_second(void **state)
{
    struct driver *d = driver_of(*state);
    struct scheduler_wait w;

    scheduler_wait_begin(&d->s, &w, 30000);
    OK(scheduler_pass(&d->s, &err));
    assert_int_equal(scheduler_wait_left(&d->s, &w, now()), 30000);
    pass_time(300);
    scheduler_woken(&d->s, &w, true);
    assert_true(w.changed);
    assert_int_equal(scheduler_wait_left(&d->s, &w, now()), 700);
    pass_time(700);
    assert_int_equal(scheduler_wait_left(&d->s, &w, now()), 0);
    scheduler_wait_begin(&d->s, &w, 10); /* so often at most */
    assert_int_equal(scheduler_wait_left(&d->s, &w, now()), 1000);
}

static void the_policy_is_a_word(void **state)
{
    static const struct {
        const char *word, *variable;
        enum auto_resume otherwise;
        enum tide_code code;
        enum auto_resume want;
    } rows[] = {
        {"off", NULL, AUTO_OFF, TIDE_OK, AUTO_OFF},       {"live", NULL, AUTO_OFF, TIDE_OK, AUTO_LIVE},
        {"all", NULL, AUTO_OFF, TIDE_OK, AUTO_ALL},       {NULL, "live", AUTO_OFF, TIDE_OK, AUTO_LIVE},
        {"off", "all", AUTO_OFF, TIDE_OK, AUTO_OFF},      {NULL, NULL, AUTO_OFF, TIDE_OK, AUTO_OFF},
        {NULL, NULL, AUTO_LIVE, TIDE_OK, AUTO_LIVE},      {NULL, "off", AUTO_LIVE, TIDE_OK, AUTO_OFF},
        {NULL, "some", AUTO_OFF, TIDE_INVALID, AUTO_OFF},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum auto_resume got = AUTO_OFF;

        unsetenv("TIDEMARK_AUTO_RESUME");
        if (rows[i].variable)
            setenv("TIDEMARK_AUTO_RESUME", rows[i].variable, 1);
        GIVES(rows[i].code, scheduler_automatic(rows[i].word, NULL, false, rows[i].otherwise, &got, &err));
        assert_int_equal(got, rows[i].want);
    }
    unsetenv("TIDEMARK_AUTO_RESUME");
}

static int tear_down_driver(void **state)
{
    driver_of(*state); /* the one before is done with */
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up_mono, tear_down_driver)
        TEST(what_is_due_is_resumed_once_and_nothing_before),
        TEST(what_happens_again_is_told_again),
        TEST(which_sessions_go_on_by_themselves),
        TEST(no_more_run_at_once_than_may),
        TEST(one_for_which_there_is_no_room_stays_in_line),
        TEST(what_fails_is_tried_again_later_and_then_not_at_all),
        TEST(a_clock_that_was_set_back_keeps_nothing_waiting),
        TEST(a_failure_is_forgotten_when_somebody_else_was_faster),
        TEST(whoever_stops_it_leaves_nothing_running),
        TEST(a_dry_run_starts_and_writes_nothing),
        TEST(it_sleeps_until_the_interval_is_over_or_the_next_is_due),
        TEST(trouble_of_the_store_is_not_slept_through),
        TEST(a_changing_store_is_looked_at_once_a_second),
        TEST(the_policy_is_a_word),
    };

    return cmocka_run_group_tests_name("engine/scheduler", tests, NULL, NULL);
}
