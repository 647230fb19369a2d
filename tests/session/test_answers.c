/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to waits: which are taken, what happens when none comes in time, and asking again. */
#include "runs.h"

#define DEADLINE_MS 1000

static enum tide_code try_park(tide_run *r, enum tide_wait_kind kind, int64_t deadline_ms, enum tide_on_deadline what,
                               const char *value, char token[TIDE_TOKEN_SIZE], struct tide_err *err)
{
    const struct tide_wait_options opt = {.size = sizeof opt,
                                          .name = "ok",
                                          .kind = kind,
                                          .question = "release?",
                                          .deadline_ms = deadline_ms,
                                          .on_deadline = what,
                                          .default_answer = value};
    struct tide_text answer = {NULL, 0};
    enum tide_code code = tide_run_wait(r, &opt, &answer, token, err);

    tide_text_done(&answer);
    return code;
}

static void park(tide_run *r, enum tide_wait_kind kind, int64_t deadline_ms, enum tide_on_deadline what,
                 const char *value, char token[TIDE_TOKEN_SIZE])
{
    GIVES(TIDE_WAITING, try_park(r, kind, deadline_ms, what, value, token, &err));
    tide_run_close(r);
}

static void expect_answer(tide_run *r, const char *want)
{
    const struct tide_wait_options opt = {.size = sizeof opt, .name = "ok", .kind = TIDE_WAIT_APPROVAL};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];

    OK(tide_run_wait(r, &opt, &answer, token, &err));
    assert_string_equal(answer.ptr, want);
    tide_text_done(&answer);
}

/* ---- words ---- */

static void a_word_that_is_neither_yes_nor_no_is_refused_and_consumes_nothing(void **state)
{
    static const char *const neither[] = {
        "\"ys\"", "\"\"", "null", "1", "{\"reason\":\"yes\"}", "{\"decision\":\"ys\"}"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    char token[TIDE_TOKEN_SIZE];
    struct tide_run_options opt = {.size = sizeof opt};
    tide_run *r;
    int64_t seq;

    park(start(s), TIDE_WAIT_APPROVAL, 0, 0, NULL, token);
    seq = tide_session_last_seq(s);
    for (size_t i = 0; i < 2 * sizeof neither / sizeof neither[0]; i++) {
        struct tide_err err;

        opt.input = neither[i / 2];
        opt.token = i % 2 ? token : NULL;
        assert_int_equal(TIDE_INVALID, tide_run_resume(s, &opt, NULL, &r, &err));
        assert_non_null(strstr(err.msg, "neither yes nor no"));
        assert_non_null(strstr(err.msg, "yes, y, true, ok, allow, always, approve, approved, or no, n, false, deny"));
        assert_int_equal(err.hints[0].action, TIDE_ACTION_ANSWER);
    }
    opt.input = NULL;
    opt.token = token; /* a token alone says neither */
    GIVES(TIDE_INVALID, tide_run_resume(s, &opt, NULL, &r, &err));
    assert_int_equal(tide_session_last_seq(s), seq);
    STATUS(f->store, "waiting", "approval");
    opt.input = "{\"decision\":\"no\",\"reason\":\"too early\"}";
    r = resume(s, &opt);
    expect_answer(r, opt.input);
    assert_int_equal(events(f->store, "token.consumed"), 1);
    finish(r);
    tide_session_close(s);
}

static void an_answer_that_is_no_approval_may_be_anything(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    char token[TIDE_TOKEN_SIZE];
    tide_run *r;

    park(start(s), TIDE_WAIT_INPUT, 0, 0, NULL, token);
    r = resume(s, &(struct tide_run_options){.size = sizeof(struct tide_run_options), .input = "\"ys\""});
    expect_answer(r, "\"ys\"");
    finish(r);
    tide_session_close(s);
}

/* ---- deadlines ---- */

static void what_happens_at_a_deadline_is_checked_before_anything_is_parked(void **state)
{
    struct fixture *f = *state;
    static char big[5000];
    const struct {
        int deadline;
        enum tide_wait_kind kind;
        enum tide_on_deadline what;
        const char *value;
        enum tide_code want;
    } rows[] = {
        {0, TIDE_WAIT_INPUT, TIDE_ON_DEADLINE_UNSET, "1", TIDE_INVALID},
        {0, TIDE_WAIT_INPUT, TIDE_ON_DEADLINE_FAIL, NULL, TIDE_INVALID},
        {1, TIDE_WAIT_INPUT, TIDE_ON_DEADLINE_DEFAULT, NULL, TIDE_INVALID},
        {1, TIDE_WAIT_INPUT, TIDE_ON_DEADLINE_FAIL, "1", TIDE_INVALID},
        {1, TIDE_WAIT_INPUT, TIDE_ON_DEADLINE_INTERRUPT, "1", TIDE_INVALID},
        {1, TIDE_WAIT_INPUT, (enum tide_on_deadline)9, NULL, TIDE_INVALID},
        {1, TIDE_WAIT_INPUT, TIDE_ON_DEADLINE_UNSET, "{", TIDE_INVALID},
        {1, TIDE_WAIT_INPUT, TIDE_ON_DEADLINE_UNSET, big, TIDE_TOO_BIG},
        {1, TIDE_WAIT_APPROVAL, TIDE_ON_DEADLINE_UNSET, "\"ys\"", TIDE_INVALID},
    };
    tide_session *s = create(f);
    tide_run *r = start(s);
    char token[TIDE_TOKEN_SIZE];

    snprintf(big, sizeof big, "\"%04990d\"", 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_err err;
        enum tide_code code = try_park(r, rows[i].kind, rows[i].deadline ? now() + DEADLINE_MS : 0, rows[i].what,
                                       rows[i].value, token, &err);

        if (code != rows[i].want)
            fail_msg("row %zu: %s", i, tide_code_name(code));
    }
    assert_int_equal(events(f->store, "run.waiting"), 0);
    park(r, TIDE_WAIT_APPROVAL, now() + DEADLINE_MS, 0, "false", token);
    tide_session_close(s);
}

struct told {
    char action[32];
    enum tide_status status;
    int n;
};

static int take_told(void *arg, const struct tide_recovered *what)
{
    struct told *t = arg;

    snprintf(t->action, sizeof t->action, "%s", what->action);
    t->status = what->status;
    t->n++;
    return 0;
}

static void recover_twice(struct fixture *f, const char *action, enum tide_status status)
{
    struct tide_recovery did;
    struct told told = {.n = 0};

    OK(tide_store_recover(f->other, 0, take_told, &told, &did, &err));
    assert_int_equal(did.timed_out, 1);
    assert_int_equal(told.n, 1);
    assert_string_equal(told.action, action);
    assert_int_equal(told.status, status);
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.timed_out, 0);
}

static void a_wait_answers_itself_at_its_deadline_and_recovery_writes_it_down_once(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    const struct tide_run_options none = {.size = sizeof none}, yes = {.size = sizeof yes, .input = "\"yes\""};
    char token[TIDE_TOKEN_SIZE];
    const struct tide_run_options late = {.size = sizeof late, .token = token, .input = "\"yes\""};
    int64_t deadline = now() + DEADLINE_MS;
    tide_run *r;

    park(start(s), TIDE_WAIT_APPROVAL, deadline, 0, "false", token);
    assert_non_null(strstr(look(f->store).why, "then it is answered with false"));
    GIVES(TIDE_INVALID, tide_run_resume(s, &none, NULL, &r, &err)); /* going on is not answering */
    until(deadline);
    for (int i = 0; i < 2; i++) { /* before and after somebody has written it down */
        STATUS(f->store, "waiting", "due");
        assert_non_null(strstr(look(f->store).why, "it was answered by its default at "));
        GIVES(TIDE_INVALID, tide_run_resume(s, &yes, NULL, &r, &err));
        GIVES(i ? TIDE_TOKEN_REVOKED : TIDE_TOKEN_EXPIRED, tide_run_resume(s, &late, NULL, &r, &err));
        GIVES(TIDE_INVALID, tide_token_rotate(s, 0, 0, token, &err));
        if (!i)
            recover_twice(f, "answered", TIDE_STATUS_WAITING);
    }
    until(deadline - 10); /* a clock that is set back opens nothing again */
    GIVES(TIDE_INVALID, tide_run_resume(s, &yes, NULL, &r, &err));
    until(deadline + 10);
    assert_int_equal(events(f->store, "run.interrupted"), 0);
    r = resume(s, &none);
    expect_answer(r, "false");
    finish(r);
    tide_session_close(s);
}

static void a_resume_carries_out_the_default_when_nobody_has_written_it_down(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    const struct tide_run_options none = {.size = sizeof none};
    enum tide_ensured how;
    char token[TIDE_TOKEN_SIZE];
    tide_run *r = NULL;

    park(start(s), TIDE_WAIT_INPUT, now() + DEADLINE_MS, TIDE_ON_DEADLINE_DEFAULT, "{\"a\":[1]}", token);
    until(now() + DEADLINE_MS);
    OK(tide_run_ensure(s, &none, &how, &r, &err));
    assert_int_equal(how, TIDE_ENSURED_RESUMED);
    expect_answer(r, "{\"a\":[1]}");
    finish(r);
    assert_int_equal(events(f->store, "run.resumed"), 1);
    assert_int_equal(events(f->store, "token.revoked"), 1);
    tide_session_close(s);
}

static void an_answer_before_the_deadline_counts_and_the_default_does_not(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    const struct tide_run_options yes = {.size = sizeof yes, .input = "\"yes\""};
    struct tide_recovery did;
    char token[TIDE_TOKEN_SIZE];
    int64_t deadline = now() + DEADLINE_MS;
    tide_run *r;

    park(start(s), TIDE_WAIT_APPROVAL, deadline, 0, "false", token);
    until(deadline - 1);
    r = resume(s, &yes);
    until(deadline + 1);
    OK(tide_store_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.timed_out, 0);
    expect_answer(r, "\"yes\"");
    finish(r);
    tide_session_close(s);
}

static void a_run_fails_at_the_deadline_when_told_to_and_a_resume_asks_again(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    const struct tide_run_options none = {.size = sizeof none}, yes = {.size = sizeof yes, .input = "\"yes\""};
    char token[TIDE_TOKEN_SIZE];
    tide_run *r;

    r = start(s);
    for (int i = 0; i < 2; i++) { /* written down by recovery, then by the resume itself */
        park(r, TIDE_WAIT_APPROVAL, now() + DEADLINE_MS, TIDE_ON_DEADLINE_FAIL, NULL, token);
        assert_non_null(strstr(look(f->store).why, "then its run fails"));
        until(now() + DEADLINE_MS);
        STATUS(f->store, "idle", "wait_timeout");
        if (!i)
            recover_twice(f, "timed_out", TIDE_STATUS_IDLE);
        STATUS(f->store, "idle", "wait_timeout");
        assert_string_equal(look(f->store).outcome, "failed");
        assert_true(look(f->store).resumable && look(f->store).needs);
        GIVES(TIDE_INVALID, tide_run_resume(s, &yes, NULL, &r, &err));
        GIVES(TIDE_INVALID, tide_token_rotate(s, 0, 0, token, &err));
        r = resume(s, &none);
        assert_int_equal(events(f->store, "run.failed"), i + 1);
    }
    finish(r);
    tide_session_close(s);
}

static void a_new_token_keeps_what_happens_at_the_deadline(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    const struct tide_run_options none = {.size = sizeof none};
    char token[TIDE_TOKEN_SIZE];
    tide_run *r;

    park(start(s), TIDE_WAIT_APPROVAL, now() + DEADLINE_MS, 0, "\"no\"", token);
    OK(tide_token_rotate(s, 0, 0, token, &err));
    OK(tide_token_rotate(s, now() + 2 * DEADLINE_MS, 0, token, &err));
    until(now() + DEADLINE_MS + 1);
    STATUS(f->store, "waiting", "approval");
    until(now() + DEADLINE_MS);
    r = resume(s, &none);
    expect_answer(r, "\"no\"");
    finish(r);
    tide_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_word_that_is_neither_yes_nor_no_is_refused_and_consumes_nothing),
        T(an_answer_that_is_no_approval_may_be_anything),
        T(what_happens_at_a_deadline_is_checked_before_anything_is_parked),
        T(a_wait_answers_itself_at_its_deadline_and_recovery_writes_it_down_once),
        T(a_resume_carries_out_the_default_when_nobody_has_written_it_down),
        T(an_answer_before_the_deadline_counts_and_the_default_does_not),
        T(a_run_fails_at_the_deadline_when_told_to_and_a_resume_asks_again),
        T(a_new_token_keeps_what_happens_at_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
