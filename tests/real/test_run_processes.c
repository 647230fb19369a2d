/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs among real processes: killed, stopped, several at once. One run.interrupted for each run whose process is gone, one
 * winner among those who resume, one doer: a process that was stopped and wakes is refused.
 */
#include <sched.h>

#include "store_tamper.h"
#include "proc.h"

enum { RACERS = 6, ROUNDS = SLOW_BUILD ? 4 : 12, MANY = 40 };

struct place {
    char dir[256], path[300], token[TIDE_TOKEN_SIZE];
    unsigned lease_ms;
    int go[2]; /* closed by the parent: all begin */
};

static int set_up(void **state)
{
    struct place *p = fixture_new(sizeof *p);

    store_url_in(p->path, sizeof p->path, p->dir, "p");
    *state = p;
    return 0;
}

static tide_store *open_store(const struct place *p)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE, .lease_ms = p->lease_ms};
    struct tide_err err = {0};
    tide_store *store = NULL;

    if (tide_store_open(p->path, &opt, &store, &err)) {
        fprintf(stderr, "open: %s\n", err.msg);
        abort();
    }
    return store;
}

struct counting {
    const char *kind;
    int n;
};

static int count(void *arg, const struct tide_event *ev)
{
    struct counting *c = arg;

    c->n += strcmp(ev->kind, c->kind) == 0;
    return 0;
}

static int events(tide_store *store, const char *id, const char *kind)
{
    struct counting c = {kind, 0};
    tide_session *s = NULL;

    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 1, 0, count, &c, &err));
    tide_session_close(s);
    return c.n;
}

static int take_status(void *arg, const struct tide_session_info *info)
{
    snprintf(arg, 64, "%s %s", tide_status_name(info->status), info->reason);
    return 0;
}

static void expect_status(tide_store *store, const char *id, const char *want)
{
    tide_session *s = NULL;
    char got[64] = "";

    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(session_shown(s, take_status, got, &err));
    tide_session_close(s);
    assert_string_equal(got, want);
}

/* Creates a session "s", begins a run, says so, and then does a step for each order, telling the code's first letter. */
static void runner(struct self *me)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "x", .effect = TIDE_EFFECT_PURE};
    tide_store *store = open_store(me->arg);
    struct tide_step_answer a;
    tide_session *s = NULL;
    tide_run *run = NULL;

    CHILD_MUST(tide_session_create(store, "s", NULL, &s, &err));
    CHILD_MUST(tide_run_start(s, NULL, &run, &err));
    tell_char(me->out, 'r');
    while (hear_char(me->in) == 's') {
        enum tide_code code = tide_step_ask(run, &spec, &a, NULL);

        code = code ? code : tide_step_begin(run, "x", 0, 0, NULL);
        code = code ? code
                    : tide_step_end(run, "x",
                                    &(struct tide_step_result){.size = sizeof(struct tide_step_result),
                                                               .outcome = TIDE_OUTCOME_COMPLETED},
                                    NULL, NULL);
        tell_char(me->out, tide_code_name(code)[0]);
    }
    tide_run_close(run);
    tide_session_close(s);
    tide_store_close(store);
}

static struct child start_runner(struct place *p)
{
    struct child c = child_start(runner, p, 0);

    assert_int_equal(hear_char(c.out), 'r');
    tell_char(c.in, 's');
    assert_int_equal(hear_char(c.out), 'O');
    return c;
}

static void a_killed_run_is_interrupted_exactly_once(void **state)
{
    struct place *p = *state;
    struct child c = start_runner(p);
    tide_store *store = open_store(p);
    struct tide_recovery did;

    expect_status(store, "s", "running running");
    OK(tide_store_recover(store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 0);
    child_kill(&c);
    expect_status(store, "s", "interrupted_startup owner_gone");
    OK(tide_store_recover(store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 1);
    OK(tide_store_recover(store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 0);
    assert_int_equal(events(store, "s", "run.interrupted"), 1);
    expect_status(store, "s", "interrupted_startup process_restart");
    tide_store_close(store);
}

static void a_clean_stop_says_shutdown(void **state)
{
    struct place *p = *state;
    struct child c = start_runner(p);
    tide_store *store = open_store(p);

    tell_char(c.in, 'q');
    assert_int_equal(child_wait(&c), 0);
    expect_status(store, "s", "interrupted_startup shutdown");
    tide_store_close(store);
}

static void a_stopped_process_is_cancelled_by_force_and_refused_when_it_wakes(void **state)
{
    struct place *p = *state;
    struct child c = start_runner(p);
    tide_store *store = open_store(p);
    enum tide_cancelled how;

    kill(c.pid, SIGSTOP);
    OK(tide_session_cancel(store, "s", NULL, NULL, 100, &how, &err));
    assert_int_equal(how, TIDE_CANCEL_FORCED);
    expect_status(store, "s", "idle forced");
    kill(c.pid, SIGCONT);
    tell_char(c.in, 's');
    assert_int_equal(hear_char(c.out), 'F');
    tell_char(c.in, 'q');
    assert_int_equal(child_wait(&c), 0);
    assert_int_equal(events(store, "s", "run.interrupted"), 0);
    assert_int_equal(events(store, "s", "run.cancelled"), 1);
    tide_store_close(store);
}

/* As when the machine slept, the clock jumped, or the disk was full for long: the heartbeat is late, the process is not dead. */
static void a_process_that_runs_here_is_not_given_up_for_a_late_heartbeat(void **state)
{
    struct place *p = *state;
    struct child c = start_runner(p);
    tide_store *store = open_store(p);
    struct tide_recovery did;

    boots_set(p->path, "expires", 1);
    expect_status(store, "s", "running running");
    OK(tide_store_recover(store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 0);
    tell_char(c.in, 's');
    assert_int_equal(hear_char(c.out), 'O');
    tell_char(c.in, 'q');
    assert_int_equal(child_wait(&c), 0);
    assert_int_equal(events(store, "s", "run.interrupted"), 1);
    expect_status(store, "s", "interrupted_startup shutdown");
    tide_store_close(store);
}

static void a_process_stopped_past_its_lease_is_taken_over_and_refused(void **state)
{
    struct place *p = *state;
    struct tide_recovery did = {0};
    struct child c;
    tide_store *store;
    int64_t until;

    p->lease_ms = 300;
    c = start_runner(p);
    store = open_store(p);
    kill(c.pid, SIGSTOP);
    until = mono_ms() + 20000;
    while (did.interrupted == 0 && mono_ms() < until) {
        OK(tide_store_recover(store, 0, NULL, NULL, &did, &err));
        usleep(10000);
    }
    assert_int_equal(did.interrupted, 1);
    kill(c.pid, SIGCONT);
    tell_char(c.in, 's');
    assert_int_equal(hear_char(c.out), 'F');
    tell_char(c.in, 'q');
    assert_int_equal(child_wait(&c), 0);
    assert_int_equal(events(store, "s", "run.interrupted"), 1);
    tide_store_close(store);
}

/* ---- another pid namespace -------------------------------------------------------------------------------------------- */

/* As `runner`, as process 1 of a pid namespace of its own. Tells 'n' when there is none to be had. */
static void runner_elsewhere(struct self *me)
{
    pid_t pid;
    int status;

    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
        tell_char(me->out, 'n');
        return;
    }
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        runner(me);
        _exit(0);
    }
    waitpid(pid, &status, 0);
}

static void a_holder_in_another_pid_namespace_is_believed_until_its_lease_ends(void **state)
{
    struct place *p = *state;
    struct tide_recovery did = {0};
    struct child c;
    tide_store *store;
    int64_t until;
    char ready;

    p->lease_ms = 3000; /* its heart beats often enough, however busy the machine is */
    c = child_start(runner_elsewhere, p, 0);
    ready = hear_char(c.out);
    if (ready != 'r') {
        child_kill(&c);
        print_message("no pid namespace to be had: skipped\n");
        skip();
    }
    store = open_store(p);
    expect_status(store, "s", "running running"); /* its pid is 1: so is another process here */
    tell_char(c.in, 's');
    assert_int_equal(hear_char(c.out), 'O');
    OK(tide_store_recover(store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 0);
    child_kill(&c);
    until = mono_ms() + 20000;
    while (did.interrupted == 0 && mono_ms() < until) {
        OK(tide_store_recover(store, 0, NULL, NULL, &did, &err));
        usleep(10000);
    }
    assert_int_equal(did.interrupted, 1);
    assert_int_equal(events(store, "s", "run.interrupted"), 1);
    tide_store_close(store);
}

/* ---- races ----------------------------------------------------------------------------------------------------------- */

static void wait_for_go(const struct place *p)
{
    char c;

    close(p->go[1]);
    (void)!read(p->go[0], &c, 1);
}

static void racer(struct self *me)
{
    const struct place *p = me->arg;
    const struct tide_run_options opt = {.size = sizeof opt, .token = p->token, .input = "1"};
    tide_store *store = open_store(p);
    tide_session *s = NULL;
    tide_run *run = NULL;
    enum tide_code code;

    CHILD_MUST(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    wait_for_go(p);
    code = tide_run_resume(s, &opt, NULL, &run, NULL);
    tell(me->out, &code, sizeof code);
    hear_char(me->in); /* hold the lease until all have tried */
    if (run)
        CHILD_MUST(tide_run_end(
            run, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_COMPLETED},
            &err));
    tide_run_close(run);
    tide_session_close(s);
    tide_store_close(store);
}

static void race_once(struct place *p, int round)
{
    struct tide_text answer;
    struct child c[RACERS];
    tide_store *store = open_store(p);
    tide_session *s = NULL;
    tide_run *run = NULL;
    int won = 0;

    if (round == 0)
        OK(tide_session_create(store, "s", NULL, &s, &err));
    else
        OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    OK(tide_run_start(s, NULL, &run, &err));
    GIVES(TIDE_WAITING, tide_run_wait(run,
                                      &(struct tide_wait_options){
                                          .size = sizeof(struct tide_wait_options), "w", TIDE_WAIT_INPUT, NULL, 0, 0},
                                      &answer, p->token, &err));
    tide_run_close(run);
    tide_session_close(s);
    tide_store_close(store);
    assert_int_equal(pipe(p->go), 0);
    for (int i = 0; i < RACERS; i++)
        c[i] = child_start(racer, p, 0);
    close(p->go[0]);
    close(p->go[1]);
    for (int i = 0; i < RACERS; i++) {
        enum tide_code code = TIDE_FAILED;

        assert_true(hear(c[i].out, &code, sizeof code, 60000));
        if (code != TIDE_OK && code != TIDE_TOKEN_CONSUMED && code != TIDE_HELD)
            fail_msg("a racer was told %s", tide_code_name(code));
        won += code == TIDE_OK;
    }
    assert_int_equal(won, 1);
    for (int i = 0; i < RACERS; i++) {
        tell_char(c[i].in, 'g');
        assert_int_equal(child_wait(&c[i]), 0);
    }
}

static void among_parallel_resumes_one_wins(void **state)
{
    struct place *p = *state;
    tide_store *store;

    for (int i = 0; i < ROUNDS; i++)
        race_once(p, i);
    store = open_store(p);
    assert_int_equal(events(store, "s", "token.consumed"), ROUNDS);
    assert_int_equal(events(store, "s", "run.resumed"), ROUNDS);
    tide_store_close(store);
}

static void makes_many_and_dies(struct self *me)
{
    tide_store *store = open_store(me->arg);

    for (int i = 0; i < MANY; i++) {
        tide_session *s = NULL;
        tide_run *run = NULL;
        char id[16];

        snprintf(id, sizeof id, "m%d", i);
        CHILD_MUST(tide_session_create(store, id, NULL, &s, &err));
        CHILD_MUST(tide_run_start(s, NULL, &run, &err));
    }
    tell_char(me->out, 'r');
    hear_char(me->in);
}

static void recovers(struct self *me)
{
    tide_store *store = open_store(me->arg);
    struct tide_recovery did;

    wait_for_go(me->arg);
    CHILD_MUST(tide_store_recover(store, 0, NULL, NULL, &did, &err));
    tell(me->out, &did.interrupted, sizeof did.interrupted);
    tide_store_close(store);
}

static void recoveries_at_once_write_each_thing_once(void **state)
{
    struct place *p = *state;
    struct child dead = child_start(makes_many_and_dies, p, 0), c[4];
    tide_store *store;
    int64_t sum = 0, one;

    assert_int_equal(hear_char(dead.out), 'r');
    child_kill(&dead);
    assert_int_equal(pipe(p->go), 0);
    for (int i = 0; i < 4; i++)
        c[i] = child_start(recovers, p, 0);
    close(p->go[0]);
    close(p->go[1]);
    for (int i = 0; i < 4; i++) {
        assert_true(hear(c[i].out, &one, sizeof one, 60000));
        sum += one;
        assert_int_equal(child_wait(&c[i]), 0);
    }
    assert_int_equal(sum, MANY);
    store = open_store(p);
    for (int i = 0; i < MANY; i++) {
        char id[16];

        snprintf(id, sizeof id, "m%d", i);
        assert_int_equal(events(store, id, "run.interrupted"), 1);
    }
    tide_store_close(store);
}

static void a_living_program_of_the_last_run_refuses_a_resume(void **state)
{
    struct place *p = *state;
    struct child program = child_start(makes_many_and_dies, p, 0); /* any process that lives */
    tide_store *store = open_store(p);
    tide_session *s = NULL;
    tide_run *run = NULL;
    char fields[100], stat[512] = "", *at;
    FILE *f;

    assert_int_equal(hear_char(program.out), 'r');
    snprintf(fields, sizeof fields, "/proc/%d/stat", (int)program.pid);
    f = fopen(fields, "r");
    assert_non_null(f);
    assert_non_null(fgets(stat, sizeof stat, f));
    fclose(f);
    at = strrchr(stat, ')');
    for (int i = 0; i < 20; i++) /* field 22 */
        at = strchr(at + 1, ' ');
    snprintf(fields, sizeof fields, "{\"pid\":%d,\"pid_start\":%s}", (int)program.pid, strtok_r(at + 1, " ", &at));
    OK(tide_session_create(store, "s", NULL, &s, &err));
    OK(tide_run_start(s, &(struct tide_run_options){.size = sizeof(struct tide_run_options), .fields = fields}, &run,
                      &err));
    tide_run_close(run);
    GIVES(TIDE_ALIVE, tide_run_resume(s, NULL, NULL, &run, &err));
    child_kill(&program);
    OK(tide_run_resume(s, NULL, NULL, &run, &err));
    tide_run_close(run);
    tide_session_close(s);
    tide_store_close(store);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_remove)
    const struct CMUnitTest tests[] = {
        T(a_killed_run_is_interrupted_exactly_once),
        T(a_clean_stop_says_shutdown),
        T(a_stopped_process_is_cancelled_by_force_and_refused_when_it_wakes),
        T(a_process_that_runs_here_is_not_given_up_for_a_late_heartbeat),
        T(a_process_stopped_past_its_lease_is_taken_over_and_refused),
        T(a_holder_in_another_pid_namespace_is_believed_until_its_lease_ends),
        T(among_parallel_resumes_one_wins),
        T(recoveries_at_once_write_each_thing_once),
        T(a_living_program_of_the_last_run_refuses_a_resume),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
