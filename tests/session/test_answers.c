/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to waits: which are taken, what happens when none comes in time, and asking again. */
#include "runs.h"
#include "session/session.h"

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

/* A run that can be run from the log, so that actions are offered. */
static tide_run *start_program(tide_session *s)
{
    const struct tide_run_options opt = {.size = sizeof opt, .fields = "{\"argv\":[\"x\"],\"cwd\":\"/\"}"};
    tide_run *r = NULL;

    OK(tide_run_start(s, &opt, &r, &err));
    return r;
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
    enum tide_recovered_action action;
    enum tide_status status;
    int n;
};

static int take_told(void *arg, const struct tide_recovered *what)
{
    struct told *t = arg;

    t->action = what->action;
    t->status = what->status;
    t->n++;
    return 0;
}

static void recover_twice(struct fixture *f, enum tide_recovered_action action, enum tide_status status)
{
    struct tide_recovery did;
    struct told told = {.n = 0};

    OK(tide_store_recover(f->other, 0, take_told, &told, &did, &err));
    assert_int_equal(did.timed_out, 1);
    assert_int_equal(told.n, 1);
    assert_int_equal(told.action, action);
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
    GIVES(TIDE_WRONG_STATE, tide_run_resume(s, &none, NULL, &r, &err)); /* going on is not answering */
    until(deadline);
    for (int i = 0; i < 2; i++) { /* before and after somebody has written it down */
        STATUS(f->store, "waiting", "due");
        assert_non_null(strstr(look(f->store).why, "it had no answer before its deadline, "));
        GIVES(TIDE_WRONG_STATE, tide_run_resume(s, &yes, NULL, &r, &err));
        GIVES(i ? TIDE_TOKEN_REVOKED : TIDE_TOKEN_EXPIRED, tide_run_resume(s, &late, NULL, &r, &err));
        GIVES(TIDE_WRONG_STATE, tide_token_rotate(s, 0, 0, token, &err));
        if (!i)
            recover_twice(f, TIDE_RECOVERED_ANSWERED, TIDE_STATUS_WAITING);
    }
    until(deadline - 10); /* a clock that is set back opens nothing again */
    GIVES(TIDE_WRONG_STATE, tide_run_resume(s, &yes, NULL, &r, &err));
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
            recover_twice(f, TIDE_RECOVERED_TIMED_OUT, TIDE_STATUS_IDLE);
        STATUS(f->store, "idle", "wait_timeout");
        assert_string_equal(look(f->store).outcome, "failed");
        assert_true(look(f->store).resumable && look(f->store).needs);
        GIVES(TIDE_WRONG_STATE, tide_run_resume(s, &yes, NULL, &r, &err));
        GIVES(TIDE_WRONG_STATE, tide_token_rotate(s, 0, 0, token, &err));
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

/* ---- asking again ---- */

static void deny(tide_session *s, const char *name)
{
    const struct tide_wait_options opt = {.size = sizeof opt, .name = name, .kind = TIDE_WAIT_APPROVAL};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];
    tide_run *r;

    r = resume(s, &(struct tide_run_options){.size = sizeof(struct tide_run_options), .input = "\"no\""});
    OK(tide_run_wait(r, &opt, &answer, token, &err));
    assert_string_equal(answer.ptr, "\"no\"");
    tide_text_done(&answer);
    tide_run_close(r);
}

static tide_session *denied(struct fixture *f)
{
    tide_session *s = create(f);
    char token[TIDE_TOKEN_SIZE];

    park(start_program(s), TIDE_WAIT_APPROVAL, 0, 0, NULL, token);
    deny(s, "ok");
    return s;
}

static bool is_offered(tide_session *s, const char *name)
{
    const struct tide_session_info *info;
    char want[64];
    bool found = false;

    snprintf(want, sizeof want, "{\"ask_again\":\"%s\"}", name);
    OK(tide_session_refresh(s, &err));
    OK(tide_session_get_info(s, &info, &err));
    for (const struct tide_next *n = info->next; n->action; n++)
        found |= n->action == TIDE_ACTION_RESUME && strcmp(n->arguments, want) == 0;
    assert_int_equal(strstr(info->why, "can be asked again") != NULL, found);
    return found;
}

static void what_was_denied_is_asked_again(void **state)
{
    static const enum tide_outcome ends[] = {TIDE_OUTCOME_COMPLETED, TIDE_OUTCOME_FAILED, TIDE_OUTCOME_INTERRUPTED};
    struct fixture *f = *state;
    const struct tide_run_options none = {.size = sizeof none};
    tide_session *s;
    char token[TIDE_TOKEN_SIZE];
    struct tide_run_options yes = {.size = sizeof yes, .input = "\"yes\"", .token = token};
    struct doing first = {0};
    tide_run *r;

    s = create(f);
    r = start_program(s);
    step(r, "before", TIDE_EFFECT_ONCE, &first);
    park(r, TIDE_WAIT_APPROVAL, 0, 0, NULL, token);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) { /* however its run ended, and more than once */
        const struct tide_run_result end = {.size = sizeof end, .outcome = ends[i]};

        r = resume(s, &(struct tide_run_options){.size = sizeof none, .input = "false"});
        expect_answer(r, "false");
        OK(tide_run_end(r, &end, &err));
        tide_run_close(r);
        assert_true(is_offered(s, "ok"));
        OK(tide_session_ask_again(s, "ok", token, &err));
        STATUS(f->store, "waiting", "approval");
        assert_false(is_offered(s, "ok"));
        GIVES(TIDE_NOT_FOUND, tide_session_ask_again(s, "ok", token, &err)); /* it has no answer now */
        GIVES(TIDE_WRONG_STATE, tide_run_resume(s, &none, NULL, &r, &err));
    }
    r = resume(s, &yes);
    step(r, "before", TIDE_EFFECT_ONCE, &first);
    expect_answer(r, "\"yes\"");
    finish(r);
    assert_int_equal(first.times, 1);                                  /* what was done before the question is kept */
    GIVES(TIDE_INVALID, tide_session_ask_again(s, "ok", token, &err)); /* it was a yes */
    tide_session_close(s);
}

static void nothing_is_asked_again_that_something_later_depends_on(void **state)
{
    static const char *const why[] = {"step 'after' has begun", "the memory was changed", "question 'two' was answered",
                                      "sleep 'nap' is over"};
    struct fixture *f = *state;
    char token[TIDE_TOKEN_SIZE];

    for (size_t i = 0; i < sizeof why / sizeof why[0]; i++) {
        const struct tide_wait_options two = {.size = sizeof two, .name = "two", .kind = TIDE_WAIT_INPUT};
        tide_session *s = denied(f);
        tide_run *r = resume(s, NULL);
        struct tide_text answer = {NULL, 0};
        struct doing after = {0};
        struct tide_err why_not;
        int64_t seq;

        expect_answer(r, "\"no\"");
        if (i == 0)
            step(r, "after", TIDE_EFFECT_PURE, &after);
        else if (i == 1)
            OK(tide_run_set(r, "k", "1", &err));
        else if (i == 3)
            OK(tide_run_sleep(r, "nap", now() - 1, NULL, &err));
        else
            GIVES(TIDE_WAITING, tide_run_wait(r, &two, &answer, token, &err));
        if (i == 2) {
            tide_run_close(r);
            assert_true(is_offered(s, "ok")); /* asked is not answered */
            r = resume(s, &(struct tide_run_options){.size = sizeof(struct tide_run_options), .input = "1"});
        }
        tide_run_close(r);
        assert_false(is_offered(s, "ok"));
        seq = tide_session_last_seq(s);
        assert_int_equal(TIDE_INVALID, tide_session_ask_again(s, "ok", token, &why_not));
        if (!strstr(why_not.msg, why[i]))
            fail_msg("%s, not %s", why_not.msg, why[i]);
        assert_int_equal(why_not.hints[0].action, TIDE_ACTION_FORK);
        assert_int_equal(tide_session_last_seq(s), seq);
        tide_session_close(s);
        OK(tide_session_delete(f->store, "s", &err));
    }
}

static void the_latest_no_is_asked_again_and_only_that(void **state)
{
    struct fixture *f = *state;
    tide_session *s = denied(f);
    const struct tide_wait_options two = {.size = sizeof two, .name = "two", .kind = TIDE_WAIT_APPROVAL};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];
    struct tide_err why_not;
    tide_run *r = resume(s, NULL);

    GIVES(TIDE_HELD, tide_session_ask_again(s, "ok", token, &err)); /* a run is in progress */
    expect_answer(r, "\"no\"");
    GIVES(TIDE_WAITING, tide_run_wait(r, &two, &answer, token, &err));
    tide_run_close(r);
    deny(s, "two");
    assert_int_equal(TIDE_INVALID, tide_session_ask_again(s, "ok", token, &why_not));
    assert_non_null(strstr(why_not.msg, "question 'two' was answered after it"));
    GIVES(TIDE_NOT_FOUND, tide_session_ask_again(s, "three", token, &err));
    GIVES(TIDE_NOT_FOUND, tide_session_ask_again(s, NULL, token, &err));
    OK(tide_session_ask_again(s, "two", token, &err));
    STATUS(f->store, "waiting", "approval");
    tide_session_close(s);
}

static void a_later_question_that_waits_is_withdrawn_when_one_is_asked_again(void **state)
{
    struct fixture *f = *state;
    tide_session *s = denied(f);
    const struct tide_wait_options two = {.size = sizeof two, .name = "two", .kind = TIDE_WAIT_INPUT};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE], old[TIDE_TOKEN_SIZE];
    tide_run *r = resume(s, NULL);

    expect_answer(r, "\"no\"");
    GIVES(TIDE_WAITING, tide_run_wait(r, &two, &answer, old, &err));
    tide_run_close(r);
    OK(tide_session_ask_again(s, "ok", token, &err));
    GIVES(TIDE_TOKEN_REVOKED,
          tide_run_resume(s, &(struct tide_run_options){.size = sizeof(struct tide_run_options), .token = old}, NULL,
                          &r, &err));
    r = resume(s, &(struct tide_run_options){
                      .size = sizeof(struct tide_run_options), .token = token, .input = "{\"decision\":true}"});
    expect_answer(r, "{\"decision\":true}");
    GIVES(TIDE_WAITING, tide_run_wait(r, &two, &answer, old, &err));
    tide_run_close(r);
    tide_session_close(s);
}

/* It is done in two appends: who is killed behind the first has lost nothing. */
static void asking_again_that_was_cut_is_asked_again(void **state)
{
    struct fixture *f = *state;
    tide_session *s = denied(f);
    char token[TIDE_TOKEN_SIZE];
    tide_run *r;

    OK(tide_session_rollback(s, s->state->ledger.denied.seq - 1, 0, "ask_again", &err));
    assert_true(is_offered(s, "ok"));
    OK(tide_session_ask_again(s, "ok", token, &err));
    r = resume(s, &(struct tide_run_options){.size = sizeof(struct tide_run_options), .input = "true"});
    expect_answer(r, "true");
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
        T(what_was_denied_is_asked_again),
        T(asking_again_that_was_cut_is_asked_again),
        T(nothing_is_asked_again_that_something_later_depends_on),
        T(the_latest_no_is_asked_again_and_only_that),
        T(a_later_question_that_waits_is_withdrawn_when_one_is_asked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
