/* SPDX-License-Identifier: Apache-2.0 */
/* Steps through the C calls: finished, failed, cut, unknown, inside one another, tried again. */
#include <fcntl.h>
#include <unistd.h>

#include "program/run_server.h"
#include "program/run_socket.h"
#include "runs.h"
#include "session/retry.h"

static void a_finished_step_answers_from_the_log(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct doing once = {0}, pure = {0};

    step(r, "pay", TIDE_EFFECT_ONCE, &once);
    for (int i = 0; i < 3; i++)
        step(r, "loop", TIDE_EFFECT_PURE, &pure);
    tide_run_close(r);
    tide_session_close(s);
    STATUS(f->store, "interrupted_startup", "shutdown");

    s = open_for(f->other);
    r = resume(s, NULL);
    step(r, "pay", TIDE_EFFECT_ONCE, &once);
    for (int i = 0; i < 4; i++)
        step(r, "loop", TIDE_EFFECT_PURE, &pure);
    finish(r);
    tide_session_close(s);
    assert_int_equal(once.times, 1);
    assert_int_equal(pure.times, 4);
    STATUS(f->store, "idle", "completed");
    assert_int_equal(events(f->store, "run.interrupted"), 1);
    assert_int_equal(events(f->store, "run.started"), 2);
}

/* Begun and never ended: the process is gone without a word. */
static void cut_a_step(struct fixture *f, enum tide_effect effect, char key[33])
{
    struct tide_step_answer a;
    tide_session *s = create(f);
    tide_run *r = start(s);

    ask(r, "pay", effect, 0, TIDE_STEP_RUN, &a);
    memcpy(key, a.key, 33);
    OK(tide_step_begin(r, "pay", 0, 0, &err));
    tide_run_close(r);
    tide_session_close(s);
}

static void a_cut_once_step_is_unknown_and_never_run(void **state)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "pay", .args = "a", .args_len = 1};
    static const char *const names[] = {"pay", NULL};
    const struct tide_run_options allowed = {.size = sizeof allowed, .retry = names};
    struct fixture *f = *state;
    struct doing d = {0};
    struct tide_step_answer a;
    char key[33];
    tide_session *s;
    tide_run *r;

    cut_a_step(f, TIDE_EFFECT_ONCE, key);
    for (int i = 0; i < 2; i++) {
        s = open_for(f->store);
        r = resume(s, NULL);
        ABOUT(TIDE_UNSETTLED, TIDE_SUBJECT_STEP, spec.name, tide_run_step(r, &spec, do_it, &d, NULL, &err));
        tide_run_close(r);
        tide_session_close(s);
    }
    assert_int_equal(d.times, 0);
    assert_int_equal(events(f->store, "tool.unknown"), 1);

    s = open_for(f->store);
    r = resume(s, &allowed);
    ask(r, "pay", TIDE_EFFECT_ONCE, 0, TIDE_STEP_RUN, &a);
    assert_string_equal(a.key, key);
    OK(tide_step_begin(r, "pay", 0, 0, &err));
    OK(tide_step_end(r, "pay",
                     &(struct tide_step_result){
                         .size = sizeof(struct tide_step_result), .outcome = TIDE_OUTCOME_COMPLETED, .result = "1"},
                     NULL, &err));
    finish(r);
    tide_session_close(s);
}

static void a_cut_idempotent_step_runs_again_with_its_key(void **state)
{
    struct fixture *f = *state;
    struct doing d = {0};
    char key[33];
    tide_session *s;
    tide_run *r;

    cut_a_step(f, TIDE_EFFECT_IDEMPOTENT, key);
    s = open_for(f->store);
    r = resume(s, NULL);
    step(r, "pay", TIDE_EFFECT_IDEMPOTENT, &d);
    assert_string_equal(d.key, key);
    finish(r);
    tide_session_close(s);
}

static void a_probe_settles_what_was_cut(void **state)
{
    struct fixture *f = *state;
    struct tide_step_answer a;
    struct doing d = {0};
    char key[33];
    tide_session *s;
    tide_run *r;

    cut_a_step(f, TIDE_EFFECT_ONCE, key);
    s = open_for(f->store);
    r = resume(s, NULL);
    ask(r, "pay", TIDE_EFFECT_ONCE, 1, TIDE_STEP_PROBE, &a);
    GIVES(TIDE_UNSETTLED, tide_step_settle(r, "pay", -1, NULL, &a, &err));
    ask(r, "pay", TIDE_EFFECT_ONCE, 1, TIDE_STEP_PROBE, &a);
    OK(tide_step_settle(r, "pay", 1, "{\"answer\":42}", &a, &err));
    assert_int_equal(a.state, TIDE_STEP_STORED);
    tide_text_done(&a.result);
    tide_run_close(r);
    r = resume(s, NULL);
    step(r, "pay", TIDE_EFFECT_ONCE, &d);
    assert_int_equal(d.times, 0);
    finish(r);
    tide_session_close(s);
}

static void a_step_with_other_arguments_is_refused_by_name(void **state)
{
    const struct tide_step_spec other = {.size = sizeof other, .name = "pay", .args = "b", .args_len = 1};
    const struct tide_run_options accept = {.size = sizeof accept, .flags = TIDE_RUN_ACCEPT_CHANGE};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_text result;
    struct doing d = {0};

    step(r, "pay", TIDE_EFFECT_ONCE, &d);
    tide_run_close(r);
    r = resume(s, NULL);
    ABOUT(TIDE_CHANGED, TIDE_SUBJECT_STEP, "pay", tide_run_step(r, &other, do_it, &d, NULL, &err));
    tide_run_close(r);
    r = resume(s, &accept);
    OK(tide_run_step(r, &other, do_it, &d, &result, &err));
    tide_text_done(&result);
    assert_int_equal(d.times, 1);
    finish(r);
    tide_session_close(s);
}

static void the_same_name_in_parallel_is_refused(void **state)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "a"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a;

    OK(tide_step_ask(r, &spec, &a, &err));
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_STEP, spec.name, tide_step_ask(r, &spec, &a, &err));
    OK(tide_step_begin(r, "a", 0, 0, &err));
    SAYS(TIDE_INVALID, "a step is running", tide_run_sleep(r, "nap", INT64_MAX / 2, NULL, &err));
    OK(tide_step_end(
        r, "a", &(struct tide_step_result){.size = sizeof(struct tide_step_result), .outcome = TIDE_OUTCOME_COMPLETED},
        NULL, &err));
    finish(r);
    tide_session_close(s);
}

static void a_step_that_was_asked_for_and_not_begun_leaves_nothing(void **state)
{
    const struct tide_step_result failed = {
        .size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED, .error_code = "missing"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a, b;

    ask(r, "pay", TIDE_EFFECT_ONCE, 0, TIDE_STEP_RUN, &a);
    GIVES(TIDE_INVALID, tide_step_end(r, "pay",
                                      &(struct tide_step_result){.size = sizeof(struct tide_step_result),
                                                                 .outcome = TIDE_OUTCOME_COMPLETED},
                                      NULL, &err));
    OK(tide_step_end(r, "pay", &failed, NULL, &err));
    ask(r, "pay", TIDE_EFFECT_ONCE, 0, TIDE_STEP_RUN, &b);
    assert_string_equal(a.key, b.key);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->store, "tool.failed"), 0);
}

static void a_failed_step_runs_again_on_resume_a_failed_once_does_not(void **state)
{
    const struct tide_step_spec once = {.size = sizeof once, .name = "pay"},
                                pure = {.size = sizeof pure, .name = "look", .effect = TIDE_EFFECT_PURE};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct doing o = {.fail_first = 1}, p = {.fail_first = 1};
    struct tide_text result;

    ABOUT(TIDE_FAILED, TIDE_SUBJECT_STEP, once.name, tide_run_step(r, &once, do_it, &o, NULL, &err));
    ABOUT(TIDE_FAILED, TIDE_SUBJECT_STEP, pure.name, tide_run_step(r, &pure, do_it, &p, NULL, &err));
    tide_run_close(r);
    r = resume(s, NULL);
    ABOUT(TIDE_FAILED, TIDE_SUBJECT_STEP, once.name, tide_run_step(r, &once, do_it, &o, NULL, &err));
    OK(tide_run_step(r, &pure, do_it, &p, &result, &err));
    tide_text_done(&result);
    assert_int_equal(o.times, 1);
    assert_int_equal(p.times, 2);
    finish(r);
    tide_session_close(s);
}

static void a_restart_in_the_middle_of_a_pause_does_not_begin_it_anew(void **state)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "get", .effect = TIDE_EFFECT_PURE, .retries = 2};
    const struct tide_step_result failed = {
        .size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED, .error_code = "exit"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a, later;

    OK(tide_step_ask(r, &spec, &a, &err));
    OK(tide_step_begin(r, "get", 0, 0, &err));
    OK(tide_step_end(r, "get", &failed, &later, &err));
    assert_int_equal(later.state, TIDE_STEP_LATER);
    assert_true(later.retry_at_ms > 0);
    tide_run_close(r);
    tide_session_close(s);

    s = open_for(f->other);
    r = resume(s, NULL);
    OK(tide_step_ask(r, &spec, &a, &err));
    if (a.state == TIDE_STEP_LATER) /* unless this took longer than the pause */
        assert_int_equal(a.retry_at_ms, later.retry_at_ms);
    assert_int_equal(a.attempt, 1);
    tide_run_close(r);
    tide_session_close(s);
}

static void delays_double_and_scatter_and_are_capped(void **state)
{
    (void)state;
    for (int attempt = 0; attempt < 20; attempt++) {
        int64_t middle = 500;

        for (int i = 0; i < attempt && middle < 60000; i++)
            middle *= 2;
        for (uint32_t random = 0; random < 2001; random += 50) {
            int64_t got = retry_delay_ms(500, attempt, random, -1);

            assert_true(got >= (middle < 60000 ? middle * 9 / 10 : 54000));
            assert_true(got <= (middle * 11 / 10 < 60000 ? middle * 11 / 10 : 60000));
        }
    }
    assert_int_equal(retry_delay_ms(500, 3, 7, 1234), 1234);
    assert_false(retry_helps(STR("auth")));
    assert_true(retry_helps(STR("rate_limit")));
}

/* One done inside another is not done again with it, and must not be taken for one that stands behind it. */
static void steps_inside_a_step_count_apart(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_spec inner = {.size = sizeof inner, .name = "notify", .args = "a", .args_len = 1};
    struct tide_step_answer outer;
    struct tide_text result;
    struct doing in = {0}, behind = {0};
    char key[33];

    ask(r, "outer", TIDE_EFFECT_ONCE, 0, TIDE_STEP_RUN, &outer);
    OK(tide_step_begin(r, "outer", 0, 0, &err));
    memcpy(key, outer.key, sizeof key);
    inner.within = key;
    OK(tide_run_step(r, &inner, do_it, &in, &result, &err));
    tide_text_done(&result);
    OK(tide_step_end(
        r, "outer",
        &(struct tide_step_result){.size = sizeof(struct tide_step_result), .outcome = TIDE_OUTCOME_COMPLETED}, NULL,
        &err));
    tide_run_close(r);
    r = resume(s, NULL);
    ask(r, "outer", TIDE_EFFECT_ONCE, 0, TIDE_STEP_STORED, &outer);
    tide_text_done(&outer.result);
    step(r, "notify", TIDE_EFFECT_ONCE, &behind);
    assert_int_equal(in.times, 1);
    assert_int_equal(behind.times, 1);
    finish(r);
    tide_session_close(s);
}

static void rolling_back_past_a_cut_once_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tide_run_options none = {.size = sizeof none};
    tide_session *s;
    tide_run *r;
    char key[33];

    cut_a_step(f, TIDE_EFFECT_ONCE, key);
    s = open_for(f->store);
    HINTS(TIDE_EFFECTS, TIDE_ACTION_REPEAT, tide_session_rollback(s, 1, 0, NULL, &err));
    OK(tide_session_rollback(s, 1, TIDE_ROLLBACK_REDO_EFFECTS, NULL, &err));
    OK(tide_run_resume(s, &none, NULL, &r, &err));
    finish(r);
    tide_session_close(s);
}

static void a_later_rollback_does_not_forget_that_effects_are_reused(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    char id[TIDE_ID_SIZE];
    struct doing d = {0};
    int64_t before, later;

    OK(tide_session_refresh(s, &err));
    before = tide_session_last_seq(s);
    step(r, "pay", TIDE_EFFECT_ONCE, &d);
    tide_run_close(r);
    OK(tide_session_rollback(s, before, TIDE_ROLLBACK_REUSE_EFFECTS, NULL, &err));
    r = resume(s, NULL);
    OK(tide_run_checkpoint(r, 0, NULL, id, &err));
    tide_run_close(r);
    OK(tide_session_refresh(s, &err));
    later = tide_session_last_seq(s);
    put(s, "message.user", SAID);
    OK(tide_session_rollback(s, later, 0, NULL, &err));
    r = resume(s, NULL);
    step(r, "pay", TIDE_EFFECT_ONCE, &d);
    assert_int_equal(d.times, 1);
    finish(r);
    tide_session_close(s);
}

static void later_uses_are_found_behind_one_that_nobody_knows_of(void **state)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "pay", .args = "a", .args_len = 1};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a;
    struct doing d = {0};

    ask(r, "pay", TIDE_EFFECT_ONCE, 0, TIDE_STEP_RUN, &a);
    OK(tide_step_begin(r, "pay", 0, 0, &err));
    OK(tide_step_end(
        r, "pay", &(struct tide_step_result){.size = sizeof(struct tide_step_result), .outcome = TIDE_OUTCOME_UNKNOWN},
        NULL, &err));
    step(r, "pay", TIDE_EFFECT_ONCE, &d);
    tide_run_close(r);
    r = resume(s, NULL);
    GIVES(TIDE_UNSETTLED, tide_run_step(r, &spec, do_it, &d, NULL, &err));
    step(r, "pay", TIDE_EFFECT_ONCE, &d);
    assert_int_equal(d.times, 1);
    tide_run_close(r);
    tide_session_close(s);
}

static void a_person_may_say_that_it_happened(void **state)
{
    static const char *const names[] = {"pay", NULL};
    const struct tide_run_options known = {.size = sizeof known, .happened = names};
    struct fixture *f = *state;
    struct tide_step_answer a;
    tide_session *s;
    tide_run *r;
    char key[33];

    cut_a_step(f, TIDE_EFFECT_ONCE, key);
    s = open_for(f->store);
    OK(tide_step_find_unsettled(s, "pay", &err));
    GIVES(TIDE_NOT_FOUND, tide_step_find_unsettled(s, "pya", &err));
    r = resume(s, &known);
    ask(r, "pay", TIDE_EFFECT_ONCE, 0, TIDE_STEP_STORED, &a);
    assert_false(a.failed);
    assert_string_equal(a.result.ptr, "null");
    tide_text_done(&a.result);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->store, "tool.completed"), 1);
}

static enum tide_code no_json(void *arg, const char *key, struct tide_text *ret, struct tide_err *err)
{
    (void)key;
    (void)err;
    ++*(int *)arg;
    ret->ptr = strdup("{not json");
    ret->len = strlen(ret->ptr);
    return TIDE_OK;
}

static void a_result_that_cannot_be_kept_is_said_and_the_step_is_over(void **state)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "odd", .effect = TIDE_EFFECT_ONCE};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    int times = 0;

    ABOUT(TIDE_FAILED, TIDE_SUBJECT_STEP, "odd", tide_run_step(r, &spec, no_json, &times, NULL, &err));
    assert_int_equal(times, 1);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->store, "tool.failed"), 1);
}

static int take_can_resume(void *arg, const struct tide_checkpoint *c)
{
    *(int *)arg = c->can_resume_from;
    return 0;
}

static void what_an_earlier_chain_left_open_is_its_own(void **state)
{
    struct fixture *f = *state;
    tide_session *s;
    tide_run *r;
    char key[33], id[TIDE_ID_SIZE];
    int can = 0;

    cut_a_step(f, TIDE_EFFECT_ONCE, key);
    s = open_for(f->store);
    r = start(s);
    OK(tide_run_checkpoint(r, 0, NULL, id, &err));
    OK(checkpoint_shown(s, id, take_can_resume, &can, &err));
    assert_true(can);
    finish(r);
    tide_session_close(s);
}

/* ---- when a result is on disk ---- */

static const struct store_ops *real_ops;
static int commits;

static void count_commit(struct store *store, struct batch *list)
{
    commits++;
    real_ops->commit(store, list);
}

static void count_commits(struct fixture *f)
{
    static struct store_ops ops;
    struct store *store = (struct store *)(void *)f->store;

    real_ops = store->ops;
    ops = *real_ops;
    ops.commit = count_commit;
    store->ops = &ops;
}

static int step_commits(tide_run *r, const char *name, enum tide_effect effect)
{
    struct doing d = {0};

    commits = 0;
    step(r, name, effect, &d);
    assert_int_equal(d.times, 1);
    return commits;
}

/* What may be done again is one commit a step: its result is there with whatever comes next, and not before. */
static void a_result_is_stored_with_what_comes_next(void **state)
{
    static const enum tide_effect effects[] = {TIDE_EFFECT_PURE, TIDE_EFFECT_IDEMPOTENT};
    struct fixture *f = *state;
    tide_session *s;
    tide_run *r;

    f->env.threads = false; /* nobody writes but who waits */
    count_commits(f);
    s = create(f);
    r = start(s);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(step_commits(r, "again", effects[i % 2]), 1);
        assert_int_equal(events(f->other, "tool.started"), i + 1);
        assert_int_equal(events(f->other, "tool.completed"), i);
    }
    OK(tide_session_flush(s, &err));
    assert_int_equal(events(f->other, "tool.completed"), 10);
    assert_int_equal(step_commits(r, "again", TIDE_EFFECT_PURE), 1);
    /* Its start takes the result along, and its own end is waited for. */
    assert_int_equal(step_commits(r, "pay", TIDE_EFFECT_ONCE), 2);
    assert_int_equal(events(f->other, "tool.completed"), 12);
    assert_int_equal(step_commits(r, "again", TIDE_EFFECT_PURE), 1);
    OK(tide_run_set(r, "key", "1", &err));
    assert_int_equal(events(f->other, "tool.completed"), 13);
    assert_int_equal(step_commits(r, "again", TIDE_EFFECT_PURE), 1);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->other, "tool.completed"), 14);
}

/* One request of a process inside the run, and the answer. */
static void request(struct run_server *server, int fd, const char *json)
{
    AUTO(buf_done) struct buf out = BUF_INIT(FRAME_HEAD + FRAME_JSON_MAX);
    struct frame_reader in = FRAME_READER_INIT;
    struct pollfd fds[SERVER_CONNS_MAX + 1];
    struct frame reply;
    enum frame_got got;

    frame_put(&out, str_from(json), STR(""));
    assert_int_equal(write(fd, out.ptr, out.len), (ssize_t)out.len);
    while ((got = frame_read(&in, fd)) == FRAME_LATER) {
        size_t n = run_server_wants(server, fds);

        assert_true(poll(fds, n, 10) >= 0);
        run_server_move(server, fds, n);
    }
    assert_int_equal(got, FRAME_HERE);
    assert_int_equal(frame_look(&in, &reply), FRAME_HERE);
    assert_null(memmem(reply.json.ptr, reply.json.len, "error", 5));
    frame_reader_done(&in);
}

static int step_inside_commits(struct run_server *server, int fd, int i, const char *effect)
{
    char step[128];

    commits = 0;
    snprintf(step, sizeof step, "{\"op\":\"step\",\"name\":\"s%d\",\"effect\":\"%s\",\"pid\":%d}", i, effect,
             (int)getpid());
    request(server, fd, step);
    request(server, fd, "{\"op\":\"end\",\"outcome\":\"completed\",\"exit\":0}");
    return commits;
}

/* The same for `tidemark step`, which asks the process that has the run. */
static void a_result_from_inside_is_stored_with_what_comes_next(void **state)
{
    struct fixture *f = *state;
    char name[RUN_SOCKET_NAME_SIZE];
    struct run_server server;
    int listener, fd;
    tide_session *s;
    tide_run *r;

    f->env.threads = false;
    count_commits(f);
    s = create(f);
    r = start(s);
    OK(run_socket_open(&listener, name, &err));
    run_server_init(&server, r, listener);
    OK(run_socket_connect(name, &fd, &err));
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(step_inside_commits(&server, fd, i, i % 2 ? "idempotent" : "pure"), 1);
        assert_int_equal(events(f->other, "tool.started"), i + 1);
        assert_int_equal(events(f->other, "tool.completed"), i);
    }
    assert_int_equal(step_inside_commits(&server, fd, 6, "once"), 2);
    assert_int_equal(events(f->other, "tool.completed"), 7);
    assert_int_equal(step_inside_commits(&server, fd, 7, "pure"), 1);
    close(fd);
    run_server_close(&server);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->other, "tool.completed"), 8);
}

/* With nothing behind it, it is written a little later all the same. */
static void a_result_that_nothing_follows_is_stored_too(void **state)
{
    struct fixture *f = *state;
    struct doing d = {0};
    tide_session *s = create(f);
    tide_run *r = start(s);

    step(r, "again", TIDE_EFFECT_PURE, &d);
    for (int i = 0; i < 10000 && !events(f->other, "tool.completed"); i++)
        env_real()->ops->sleep_ms(env_real(), 1);
    assert_int_equal(events(f->other, "tool.completed"), 1);
    finish(r);
    tide_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_finished_step_answers_from_the_log),
        T(a_result_is_stored_with_what_comes_next),
        T(a_result_from_inside_is_stored_with_what_comes_next),
        T(a_result_that_nothing_follows_is_stored_too),
        T(a_cut_once_step_is_unknown_and_never_run),
        T(a_cut_idempotent_step_runs_again_with_its_key),
        T(a_probe_settles_what_was_cut),
        T(a_step_with_other_arguments_is_refused_by_name),
        T(the_same_name_in_parallel_is_refused),
        T(a_step_that_was_asked_for_and_not_begun_leaves_nothing),
        T(a_failed_step_runs_again_on_resume_a_failed_once_does_not),
        T(a_restart_in_the_middle_of_a_pause_does_not_begin_it_anew),
        T(steps_inside_a_step_count_apart),
        T(rolling_back_past_a_cut_once_is_refused),
        T(a_later_rollback_does_not_forget_that_effects_are_reused),
        T(later_uses_are_found_behind_one_that_nobody_knows_of),
        T(a_person_may_say_that_it_happened),
        T(a_result_that_cannot_be_kept_is_said_and_the_step_is_over),
        T(what_an_earlier_chain_left_open_is_its_own),
        cmocka_unit_test(delays_double_and_scatter_and_are_capped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
