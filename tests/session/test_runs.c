/* SPDX-License-Identifier: Apache-2.0 */
/* Runs through the C calls: start, waits, tokens, resume, cancel, recovery, on a real store. */
#include "runs.h"

/* ---- waits, tokens ------------------------------------------------------------------------------------------------------ */

static void park(tide_run *r, int64_t deadline_ms, char token[TIDE_TOKEN_SIZE])
{
    const struct tide_wait_options opt = {"ok", "approval", "release?", deadline_ms, 0};
    struct tide_text answer;

    GIVES(TIDE_WAITING, tide_wait(r, &opt, &answer, token, &err));
    tide_run_close(r);
}

static void expect_answer(tide_run *r, const char *kind, const char *want)
{
    const struct tide_wait_options opt = {"ok", kind, NULL, 0, 0};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];

    OK(tide_wait(r, &opt, &answer, token, &err));
    assert_string_equal(answer.ptr, want);
    tide_text_done(&answer);
}

static void a_wait_is_answered_once_with_its_token(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f), *t;
    tide_run *r = start(s);
    char token[TIDE_TOKEN_SIZE];
    struct tide_run_options opt = {.token = token, .request_id = "q1", .input = "\"yes\""};
    struct tide_resumed first, again;

    park(r, 0, token);
    tide_session_close(s);
    STATUS(f->store, "waiting", "approval");
    s = open_for(f->other);
    OK(tide_run_resume(s, &opt, &first, &r, &err));
    STATUS(f->store, "running", "running");
    expect_answer(r, "approval", "\"yes\"");

    t = open_for(f->store); /* the same request gets the first answer, another is told */
    tide_run *none = (tide_run *)1;
    OK(tide_run_resume(t, &opt, &again, &none, &err));
    assert_null(none);
    assert_int_equal(again.repeated, 1);
    assert_int_equal(again.seq, first.seq);
    assert_string_equal(again.run_id, first.run_id);
    opt.input = "\"no\"";
    SAYS(TIDE_CONFLICT, "another answer", tide_run_resume(t, &opt, NULL, &none, &err));
    opt.request_id = "q2";
    GIVES(TIDE_TOKEN_CONSUMED, tide_run_resume(t, &opt, NULL, &none, &err));
    tide_session_close(t);
    tide_run_close(r);
    tide_session_close(s);
    assert_int_equal(events(f->store, "token.consumed"), 1);
    assert_int_equal(events(f->store, "run.resumed"), 1);

    s = open_for(f->store); /* the answer stays */
    r = resume(s, NULL);
    expect_answer(r, "approval", "\"yes\"");
    finish(r);
    tide_session_close(s);
}

static void each_wrong_token_has_its_own_error(void **state)
{
    static const char *const garbage[] = {"", "x", "rt_", "rt_a.b",
                                          "rt_01234567890123456789012345678901234567890123456"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    char token[TIDE_TOKEN_SIZE], rotated[TIDE_TOKEN_SIZE], forged[TIDE_TOKEN_SIZE];
    struct tide_run_options opt = {.token = token};
    char *secret;

    park(r, 0, token);
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        opt.token = garbage[i];
        GIVES(TIDE_TOKEN_MALFORMED, tide_run_resume(s, &opt, NULL, &none, &err));
    }
    memcpy(forged, token, sizeof forged);
    secret = strchr(forged, '.') + 1;
    secret[3] = secret[3] == 'A' ? 'B' : 'A';
    opt.token = forged;
    GIVES(TIDE_TOKEN_FOREIGN, tide_run_resume(s, &opt, NULL, &none, &err));
    OK(tide_token_rotate(s, 0, 0, rotated, &err));
    opt.token = token;
    GIVES(TIDE_TOKEN_REVOKED, tide_run_resume(s, &opt, NULL, &none, &err));
    opt.token = rotated;
    r = resume(s, &opt);
    finish(r);
    tide_session_close(s);
}

static void the_secret_is_nowhere_on_disk(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    char token[TIDE_TOKEN_SIZE], command[500];

    park(r, 0, token);
    tide_session_close(s);
    snprintf(command, sizeof command, "! grep -rqaF -- '%s' '%s'", strchr(token, '.') + 1, f->dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
    *strchr(token, '.') = 0;
    snprintf(command, sizeof command, "grep -rqaF -- '%s' '%s'", token, f->dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the id is there, so looking works */
}

static void a_deadline_that_passes_ends_the_wait(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    char token[TIDE_TOKEN_SIZE];
    struct tide_run_options opt = {.token = token};
    struct tide_recovery did;
    int64_t deadline = now() + 30;

    park(r, deadline, token);
    until(deadline + 1);
    GIVES(TIDE_TOKEN_EXPIRED, tide_run_resume(s, &opt, NULL, &none, &err));
    STATUS(f->store, "interrupted_waiting", "wait_timeout");
    OK(tide_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.timed_out, 1);
    OK(tide_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.timed_out, 0);
    assert_int_equal(events(f->store, "run.interrupted"), 1);
    assert_int_equal(events(f->store, "token.revoked"), 1);
    STATUS(f->store, "interrupted_waiting", "wait_timeout");
    GIVES(TIDE_TOKEN_REVOKED, tide_run_resume(s, &opt, NULL, &none, &err));
    OK(tide_token_rotate(s, 0, 0, token, &err)); /* opened again */
    STATUS(f->store, "waiting", "approval");
    opt.input = "\"late\"";
    r = resume(s, &opt);
    expect_answer(r, "approval", "\"late\"");
    finish(r);
    tide_session_close(s);
}

static void an_answer_stays_when_its_deadline_has_passed_since(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options opt = {"ok", "approval", "release?", now() + 60, 0};
    const struct tide_run_options yes = {.input = "\"yes\""};
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];

    park(r, opt.deadline_ms, token);
    r = resume(s, &yes);
    until(opt.deadline_ms + 1);
    OK(tide_wait(r, &opt, &answer, token, &err));
    assert_string_equal(answer.ptr, "\"yes\"");
    tide_text_done(&answer);
    finish(r);
    tide_session_close(s);
}

static void a_token_expires_by_itself(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options opt = {"ok", "input", NULL, 0, now() + 30};
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    char token[TIDE_TOKEN_SIZE];
    struct tide_run_options with = {.token = token};
    struct tide_recovery did;
    struct tide_text answer;

    GIVES(TIDE_WAITING, tide_wait(r, &opt, &answer, token, &err));
    tide_run_close(r);
    until(opt.expires_ms + 1);
    GIVES(TIDE_TOKEN_EXPIRED, tide_run_resume(s, &with, NULL, &none, &err));
    OK(tide_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.tokens_expired, 1);
    assert_int_equal(events(f->store, "token.expired"), 1);
    GIVES(TIDE_TOKEN_EXPIRED, tide_run_resume(s, &with, NULL, &none, &err));
    STATUS(f->store, "interrupted_waiting", "token_expired");
    r = resume(s, NULL); /* a new run, that asks again */
    GIVES(TIDE_WAITING, tide_wait(r, &(struct tide_wait_options){"ok", "input", NULL, 0, 0}, &answer, token, &err));
    tide_run_close(r);
    STATUS(f->store, "waiting", "input");
    tide_session_close(s);
}

static void a_message_supersedes_the_wait_and_answers_the_new_run(void **state)
{
    const struct tide_run_options opt = {.message = "\"hello\""};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    char token[TIDE_TOKEN_SIZE];
    const struct tide_run_options old = {.token = token};

    park(r, 0, token);
    OK(tide_run_start(s, &opt, &r, &err));
    STATUS(f->other, "running", "running");
    expect_answer(r, "input", "\"hello\"");
    finish(r);
    assert_int_equal(events(f->store, "token.revoked"), 1);
    assert_int_equal(events(f->store, "run.cancelled"), 1);
    assert_int_equal(events(f->store, "queue.taken"), 1);
    GIVES(TIDE_TOKEN_REVOKED, tide_run_resume(s, &old, NULL, &none, &err));
    tide_session_close(s);
}

static void a_sleep_is_over_when_it_is_due_and_not_before(void **state)
{
    const struct tide_run_options at_once = {.flags = TIDE_RUN_NOW};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    int64_t due = now() + 40, told = 0;
    struct tide_recovery did;

    GIVES(TIDE_WAITING, tide_sleep(r, "nap", due, &told, &err));
    tide_run_close(r);
    assert_int_equal(told, due);
    STATUS(f->store, "waiting", "timer");
    SAYS(TIDE_INVALID, "sleeps until", tide_run_resume(s, NULL, NULL, &none, &err));
    OK(tide_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.due, 0);
    assert_int_equal(did.next_ms, due);
    until(due + 1);
    STATUS(f->store, "waiting", "due");
    OK(tide_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.due, 1);
    r = resume(s, NULL);
    OK(tide_sleep(r, "nap", now() + 100000, NULL, &err));
    GIVES(TIDE_WAITING, tide_sleep(r, "nap", now() + 100000, NULL, &err)); /* the second use is another one */
    tide_run_close(r);
    r = resume(s, &at_once);
    OK(tide_sleep(r, "nap", now() + 100000, NULL, &err));
    OK(tide_sleep(r, "nap", now() + 100000, NULL, &err));
    finish(r);
    tide_session_close(s);
}

/* ---- leases, recovery, cancel ---------------------------------------------------------------------------------------------- */

static void a_living_run_is_nobody_elses(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f), *t = open_for(f->other);
    tide_run *r = start(s), *none;
    struct tide_recovery did;

    GIVES(TIDE_HELD, tide_run_resume(t, NULL, NULL, &none, &err));
    GIVES(TIDE_HELD, tide_run_start(t, NULL, &none, &err));
    GIVES(TIDE_HELD, tide_run_start(s, NULL, &none, &err));
    OK(tide_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 0);
    finish(r);
    tide_session_close(t);
    tide_session_close(s);
}

static void a_run_whose_lease_was_given_back_does_not_take_it_again(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s), *next;
    struct tide_new_event ev = {"message.user", "{}", 0};

    OK(tide_append(s, TIDE_APPEND_RELEASE, &ev, 1, NULL, &err));
    GIVES(TIDE_FENCED, tide_run_set(r, "k", "1", &err));
    tide_run_close(r);
    OK(tide_run_resume(s, NULL, NULL, &next, &err));
    finish(next);
    tide_session_close(s);
}

static void cancel_succeeds_with_and_without_a_process(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    enum tide_cancelled how;
    char token[TIDE_TOKEN_SIZE];
    unsigned signs;

    OK(tide_session_cancel(f->other, "s", "me", "enough", 30, &how, &err)); /* alive, and does not look */
    assert_int_equal(how, TIDE_CANCEL_FORCED);
    GIVES(TIDE_FENCED, tide_run_look(r, &signs, &err));
    GIVES(TIDE_FENCED, tide_step_begin(r, "x", 0, 0, &err));
    tide_run_close(r);
    tide_session_close(s);
    STATUS(f->store, "idle", "forced");
    assert_int_equal(events(f->store, "run.interrupted"), 0);

    s = open_for(f->store);
    r = resume(s, NULL);
    park(r, 0, token);
    OK(tide_session_cancel(f->other, "s", NULL, NULL, 0, &how, &err));
    assert_int_equal(how, TIDE_CANCEL_DONE);
    assert_int_equal(events(f->store, "token.revoked"), 1);
    OK(tide_session_cancel(f->other, "s", NULL, NULL, 0, &how, &err));
    assert_int_equal(how, TIDE_CANCEL_NOTHING);
    tide_session_close(s);
}

static void the_holder_sees_a_cancel_and_a_message(void **state)
{
    const struct tide_new_event cancel = {"cancel.requested", "{}", 0},
                                message = {"queue.added", "{\"queue_id\":\"q\",\"content\":\"hi\"}", 0};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    unsigned signs = 99;

    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, 0);
    OK(tide_input(f->other, "s", -1, &message, 1, NULL, &err));
    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, TIDE_SIGN_MESSAGE);
    OK(tide_input(f->other, "s", -1, &cancel, 1, NULL, &err));
    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, TIDE_SIGN_MESSAGE | TIDE_SIGN_CANCEL);
    expect_answer(r, "input", "\"hi\"");
    OK(tide_run_end(r, &(struct tide_run_result){.outcome = "cancelled", .reason = "requested"}, &err));
    tide_run_close(r);
    r = resume(s, NULL); /* asked for earlier: not for this run */
    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, 0);
    expect_answer(r, "input", "\"hi\"");
    finish(r);
    tide_session_close(s);
}

static void a_cancel_is_not_lost_behind_a_sleep_that_is_over(void **state)
{
    const struct tide_new_event cancel = {"cancel.requested", "{}", 0};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    unsigned signs = 0;

    OK(tide_input(f->other, "s", -1, &cancel, 1, NULL, &err));
    OK(tide_sleep(r, "nap", now() - 1, NULL, &err));
    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, TIDE_SIGN_CANCEL);
    tide_run_close(r);
    tide_session_close(s);
}

static void an_open_run_without_owner_is_interrupted_once(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    struct tide_recovery did;

    put(s, "run.started", "{\"run_id\":\"r1\"}");
    tide_session_close(s);
    STATUS(f->store, "interrupted_startup", "owner_gone");
    OK(tide_recover(f->store, TIDE_RECOVER_DRY_RUN, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 1);
    assert_int_equal(events(f->store, "run.interrupted"), 0);
    OK(tide_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 1);
    OK(tide_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted + did.looked_at, 0);
    assert_int_equal(events(f->store, "run.interrupted"), 1);
    assert_int_equal(events(f->store, "status.derived"), 1);
    STATUS(f->store, "interrupted_startup", "process_restart");
}

static void what_needs_nothing_is_not_looked_at_again(void **state)
{
    const struct tide_new_event rotate = {"token.revoked", "{\"token_id\":\"rt_x\"}", 0};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    char token[TIDE_TOKEN_SIZE];
    struct tide_recovery did;

    park(r, 0, token);
    tide_session_close(s);
    OK(tide_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.looked_at, 0);
    OK(tide_input(f->other, "s", -1, &rotate, 1, NULL, &err)); /* whatever came in: it is looked at, once */
    OK(tide_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.looked_at, 1);
    OK(tide_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.looked_at, 0);
    STATUS(f->store, "waiting", "approval");
}

static void memory_and_checkpoints_are_the_sessions(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    char first[TIDE_ID_SIZE], again[TIDE_ID_SIZE];
    struct tide_text value;

    OK(tide_run_set(r, "k", "\"v\"", &err));
    OK(tide_run_set(r, "k", "\"v\"", &err));
    OK(tide_run_checkpoint(r, NULL, "here", first, &err));
    GIVES(TIDE_NOT_FOUND, tide_run_get(r, "x", &value, &err));
    tide_run_close(r);
    r = resume(s, NULL);
    OK(tide_run_get(r, "k", &value, &err));
    assert_string_equal(value.ptr, "\"v\"");
    tide_text_done(&value);
    OK(tide_run_checkpoint(r, NULL, "here", again, &err));
    assert_string_equal(first, again);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->store, "memory.set"), 1);
    assert_int_equal(events(f->store, "checkpoint"), 1);
}

static void bad_requests_are_refused_before_anything_is_written(void **state)
{
    const struct tide_step_spec retried = {.name = "a", .retries = 1}, nameless = {.name = ""},
                                strange = {.name = "a", .effect = "twice"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a;
    struct tide_text answer;
    char token[TIDE_TOKEN_SIZE];
    int64_t before;

    OK(tide_session_refresh(s, &err));
    before = tide_session_last_seq(s);
    SAYS(TIDE_INVALID, "--effect idempotent", tide_step_ask(r, &retried, &a, &err));
    GIVES(TIDE_INVALID, tide_step_ask(r, &nameless, &a, &err));
    SAYS(TIDE_INVALID, "twice", tide_step_ask(r, &strange, &a, &err));
    SAYS(TIDE_INVALID, "future",
         tide_wait(r, &(struct tide_wait_options){"w", "input", NULL, 1, 0}, &answer, token, &err));
    SAYS(TIDE_INVALID, "weather",
         tide_wait(r, &(struct tide_wait_options){"w", "weather", NULL, 0, 0}, &answer, token, &err));
    SAYS(TIDE_INVALID, "not valid JSON", tide_run_set(r, "k", "{", &err));
    GIVES(TIDE_INVALID, tide_run_set(r, "", "1", &err));
    OK(tide_session_refresh(s, &err));
    assert_int_equal(tide_session_last_seq(s), before);
    finish(r);
    tide_session_close(s);
}

static void a_completed_session_is_not_resumed(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);

    finish(r);
    GIVES(TIDE_INVALID, tide_run_resume(s, NULL, NULL, &r, &err));
    tide_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_cancel_is_not_lost_behind_a_sleep_that_is_over),
        T(a_wait_is_answered_once_with_its_token),
        T(each_wrong_token_has_its_own_error),
        T(the_secret_is_nowhere_on_disk),
        T(a_deadline_that_passes_ends_the_wait),
        T(an_answer_stays_when_its_deadline_has_passed_since),
        T(a_token_expires_by_itself),
        T(a_message_supersedes_the_wait_and_answers_the_new_run),
        T(a_sleep_is_over_when_it_is_due_and_not_before),
        T(a_living_run_is_nobody_elses),
        T(a_run_whose_lease_was_given_back_does_not_take_it_again),
        T(cancel_succeeds_with_and_without_a_process),
        T(the_holder_sees_a_cancel_and_a_message),
        T(an_open_run_without_owner_is_interrupted_once),
        T(what_needs_nothing_is_not_looked_at_again),
        T(memory_and_checkpoints_are_the_sessions),
        T(bad_requests_are_refused_before_anything_is_written),
        T(a_completed_session_is_not_resumed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
