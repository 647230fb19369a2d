/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a run of a session: what cannot be run is refused before anything is written; how it ends is told and recorded;
 * a session goes on with the program that it ran last, and whoever runs it hears what is different.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "engine/program_run.h"
#include "session/runs.h"

struct heard {
    int changed, leftovers, superseded;
};

static void on_notice(void *arg, enum program_notice what, size_t n, const char *program)
{
    struct heard *h = arg;

    (void)program;
    h->changed += what == PROGRAM_CHANGED;
    h->leftovers += what == PROGRAM_LEFTOVERS ? (int)n : 0;
    h->superseded += what == PROGRAM_SUPERSEDED;
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return true;
}

static struct program_run new_run(struct heard *h)
{
    return (struct program_run){.signals = -1, .notice = on_notice, .arg = h};
}

/* `sh -c script` in a session of this id, to its end: a new run, whatever ran there before. */
static struct program_end run_script(struct fixture *f, const char *id, const char *script, struct heard *h)
{
    const char *const argv[] = {"sh", "-c", script};
    struct tide_run_options opt = {.size = sizeof opt};
    struct program_run r = new_run(h);
    tide_session *s = NULL;

    OK(program_run_from_argv(&r, argv, 3, NULL, &err));
    OK(program_run_check(&r, &err));
    if (tide_session_open(f->store, id, TIDE_SESSION_APPEND, &s, NULL) == TIDE_NOT_FOUND)
        OK(program_run_create(&r, f->store, id, NULL, NULL, &s, &err));
    r.begin = PROGRAM_ANEW;
    OK(program_run(&r, s, &opt, NULL, &err));
    program_run_done(&r);
    tide_session_close(s);
    return r.end;
}

static struct program_end resume_it(struct fixture *f, const char *id, const char *input, struct heard *h)
{
    struct tide_run_options opt = {.size = sizeof opt, .input = input};
    struct program_run r = new_run(h);
    struct tide_resumed resumed;
    tide_session *s = NULL;

    OK(tide_session_open(f->store, id, TIDE_SESSION_APPEND, &s, &err));
    OK(program_run_from_log(&r, s, &err));
    OK(program_run_check(&r, &err));
    r.begin = PROGRAM_RESUME;
    OK(program_run(&r, s, &opt, &resumed, &err));
    assert_string_equal(r.end.run_id, resumed.run_id);
    program_run_done(&r);
    tide_session_close(s);
    return r.end;
}

static enum tide_outcome outcome_of(struct fixture *f, const char *id)
{
    const struct tide_session_info *info = NULL;
    enum tide_outcome outcome;
    tide_session *s = NULL;

    OK(tide_session_open(f->store, id, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_get_info(s, &info, &err));
    outcome = info->outcome;
    tide_session_close(s);
    return outcome;
}

static void write_program(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* ---- tests ---- */

static void how_it_ends_is_told_and_recorded(void **state)
{
    static const struct {
        const char *id, *script;
        int status;
        enum tide_outcome outcome;
        bool says;
    } rows[] = {
        {"fine", "exit 0", 0, TIDE_OUTCOME_COMPLETED, false},
        {"three", "exit 3", 3, TIDE_OUTCOME_FAILED, true},
        {"killed", "kill -KILL $$", 128 + SIGKILL, TIDE_OUTCOME_FAILED, true},
        {"typed", "kill -INT $$", 128 + SIGINT, TIDE_OUTCOME_INTERRUPTED, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct heard h = {0};
        struct program_end end = run_script(*state, rows[i].id, rows[i].script, &h);

        assert_int_equal(end.exit_status, rows[i].status);
        assert_int_equal(outcome_of(*state, rows[i].id), rows[i].outcome);
        assert_int_equal(end.message[0] != 0, rows[i].says);
        assert_true(end.run_id[0]);
        assert_false(end.not_run || end.waits || end.cancelled);
        assert_int_equal(h.changed + h.leftovers + h.superseded, 0);
    }
}

static void what_cannot_be_run_is_refused_before_anything_is_written(void **state)
{
    struct fixture *f = *state;
    char plain[300], absent[300];
    const struct {
        const char *path;
        int status;
    } rows[] = {{absent, 127}, {plain, 126}, {f->dir, 126}};

    snprintf(plain, sizeof plain, "%s/plain", f->dir);
    snprintf(absent, sizeof absent, "%s/absent", f->dir);
    write_program(plain, "no program\n", 0644);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const argv[] = {rows[i].path};
        struct heard h = {0};
        struct program_run r = new_run(&h);
        struct tide_err err = {0};
        enum tide_code code = program_run_from_argv(&r, argv, 1, NULL, &err);

        code = code ? code : program_run_check(&r, &err);
        assert_int_not_equal(code, TIDE_OK);
        assert_true(r.end.not_run);
        assert_int_equal(r.end.exit_status, rows[i].status);
        program_run_done(&r);
    }
}

static void one_that_was_stopped_before_it_began_does_not_run(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"sh", "-c", "exit 0"};
    struct tide_run_options opt = {.size = sizeof opt};
    struct heard h = {0};
    struct program_run r = new_run(&h);
    tide_session *s = create(f);

    r.stopped = is_stopped;
    OK(program_run_from_argv(&r, argv, 3, NULL, &err));
    OK(program_run_check(&r, &err));
    GIVES(TIDE_CANCELLED, program_run(&r, s, &opt, NULL, &err));
    assert_string_equal(r.end.run_id, "");
    assert_int_equal(events(f->store, "run.started"), 0);
    program_run_done(&r);
    tide_session_close(s);
}

static void a_signal_that_comes_in_ends_it_as_interrupted(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"sh", "-c", "exec sleep 1991"};
    struct tide_run_options opt = {.size = sizeof opt};
    struct heard h = {0};
    struct program_run r = new_run(&h);
    tide_session *s = create(f);
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(ends[1], (const unsigned char[]){SIGTERM}, 1), 1);
    r.signals = ends[0];
    OK(program_run_from_argv(&r, argv, 3, NULL, &err));
    OK(program_run_check(&r, &err));
    OK(program_run(&r, s, &opt, NULL, &err));
    assert_int_equal(r.end.exit_status, 128 + SIGTERM);
    assert_int_equal(outcome_of(f, "s"), TIDE_OUTCOME_INTERRUPTED);
    program_run_done(&r);
    tide_session_close(s);
    close(ends[0]);
    close(ends[1]);
}

static void a_session_goes_on_with_what_it_ran_last(void **state)
{
    struct fixture *f = *state;
    struct heard h = {0};
    char path[300];
    const char *const argv[] = {path};
    struct tide_run_options opt = {.size = sizeof opt};
    struct program_run r = new_run(&h);
    tide_session *s = create(f);

    snprintf(path, sizeof path, "%s/mine", f->dir);
    write_program(path, "#!/bin/sh\nexit 4\n", 0755);
    OK(program_run_from_argv(&r, argv, 1, NULL, &err));
    OK(program_run_check(&r, &err));
    OK(program_run(&r, s, &opt, NULL, &err));
    assert_int_equal(r.end.exit_status, 4);
    program_run_done(&r);
    tide_session_close(s);

    assert_int_equal(resume_it(f, "s", NULL, &h).exit_status, 4);
    assert_int_equal(h.changed, 0);
    write_program(path, "#!/bin/sh\nexit 0\n", 0755);
    assert_int_equal(resume_it(f, "s", NULL, &h).exit_status, 0);
    assert_int_equal(h.changed, 1);
    assert_int_equal(outcome_of(f, "s"), TIDE_OUTCOME_COMPLETED);
    assert_int_equal(events(f->store, "run.started"), 3);
}

static void one_that_ran_no_program_has_none_to_go_on_with(void **state)
{
    struct heard h = {0};
    struct program_run r = new_run(&h);
    tide_session *s = create(*state);

    GIVES(TIDE_WRONG_STATE, program_run_from_log(&r, s, &err));
    finish(start(s));
    GIVES(TIDE_WRONG_STATE, program_run_from_log(&r, s, &err));
    program_run_done(&r);
    tide_session_close(s);
}

/* What the program's processes ask of its run goes through the commands: these are in test_kill_programs.c and tests/cli. */
static void a_new_run_supersedes_one_that_waits(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options ask = {.size = sizeof ask, .name = "w", .kind = TIDE_WAIT_INPUT};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];
    struct heard h = {0};
    tide_session *s = create(f);
    tide_run *r = start(s);

    GIVES(TIDE_WAITING, tide_run_wait(r, &ask, &answer, token, &err));
    tide_run_close(r);
    tide_session_close(s);
    assert_int_equal(run_script(f, "s", "exit 0", &h).exit_status, 0);
    assert_int_equal(h.superseded, 1);
}

static void what_it_leaves_behind_is_ended_and_counted(void **state)
{
    struct heard h = {0};
    struct program_end end = run_script(*state, "left", "setsid sleep 1992 & exit 0", &h);

    assert_int_equal(end.exit_status, 0);
    assert_int_equal(end.left_behind, 1);
    assert_int_equal(outcome_of(*state, "left"), TIDE_OUTCOME_COMPLETED);
}

static void names_that_are_not_open_are_refused_first(void **state)
{
    struct fixture *f = *state;
    static const char *const some[] = {"nothing", NULL};
    struct tide_run_options opts[] = {{.size = sizeof opts[0], .retry = some},
                                      {.size = sizeof opts[0], .happened = some}};

    for (size_t i = 0; i < 2; i++) {
        struct heard h = {0};
        struct program_run r = new_run(&h);
        struct tide_resumed resumed;
        tide_session *s = NULL;

        run_script(f, i ? "t" : "s", "exit 1", &h);
        OK(tide_session_open(f->store, i ? "t" : "s", TIDE_SESSION_APPEND, &s, &err));
        OK(program_run_from_log(&r, s, &err));
        OK(program_run_check(&r, &err));
        GIVES(TIDE_INVALID, program_run(&r, s, &opts[i], &resumed, &err));
        assert_string_equal(r.end.run_id, "");
        program_run_done(&r);
        tide_session_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
        TEST(how_it_ends_is_told_and_recorded),
        TEST(what_cannot_be_run_is_refused_before_anything_is_written),
        TEST(one_that_was_stopped_before_it_began_does_not_run),
        TEST(a_signal_that_comes_in_ends_it_as_interrupted),
        TEST(a_session_goes_on_with_what_it_ran_last),
        TEST(one_that_ran_no_program_has_none_to_go_on_with),
        TEST(a_new_run_supersedes_one_that_waits),
        TEST(what_it_leaves_behind_is_ended_and_counted),
        TEST(names_that_are_not_open_are_refused_first),
    };

    return cmocka_run_group_tests_name("engine/program_run", tests, NULL, NULL);
}
