/* SPDX-License-Identifier: Apache-2.0 */
/* Runs through the C calls: start, waits, tokens, resume, cancel, recovery, on a real store. */
#include "env/sim.h"

#include "runs.h"
#include "session/run.h"

/* ---- waits, tokens ------------------------------------------------------------------------------------------------------ */

static void park(tide_run *r, int64_t deadline_ms, char token[TIDE_TOKEN_SIZE])
{
    const struct tide_wait_options opt = {.size = sizeof opt, "ok", TIDE_WAIT_APPROVAL, "release?", deadline_ms, 0};
    struct tide_text answer;

    GIVES(TIDE_WAITING, tide_run_wait(r, &opt, &answer, token, &err));
    tide_run_close(r);
}

static void expect_answer(tide_run *r, const char *kind, const char *want)
{
    const struct tide_wait_options opt = {
        .size = sizeof opt, "ok", (enum tide_wait_kind)tide_wait_kind_from(kind), NULL, 0, 0};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];

    OK(tide_run_wait(r, &opt, &answer, token, &err));
    assert_string_equal(answer.ptr, want);
    tide_text_done(&answer);
}

static void a_wait_is_answered_once_with_its_token(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f), *t;
    tide_run *r = start(s);
    char token[TIDE_TOKEN_SIZE];
    struct tide_run_options opt = {.size = sizeof opt, .token = token, .request_id = "q1", .input = "\"yes\""};
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
    ABOUT(TIDE_CONFLICT, TIDE_SUBJECT_ARGUMENT, "request_id", tide_run_resume(t, &opt, NULL, &none, &err));
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
    struct tide_run_options opt = {.size = sizeof opt, .token = token};
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
    opt.input = "true";
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
    struct tide_run_options opt = {.size = sizeof opt, .token = token};
    struct tide_recovery did;
    int64_t deadline = now() + 30;

    park(r, deadline, token);
    until(deadline + 1);
    GIVES(TIDE_TOKEN_EXPIRED, tide_run_resume(s, &opt, NULL, &none, &err));
    STATUS(f->store, "interrupted_waiting", "wait_timeout");
    OK(tide_store_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.timed_out, 1);
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.timed_out, 0);
    assert_int_equal(events(f->store, "run.interrupted"), 1);
    assert_int_equal(events(f->store, "token.revoked"), 1);
    STATUS(f->store, "interrupted_waiting", "wait_timeout");
    GIVES(TIDE_TOKEN_REVOKED, tide_run_resume(s, &opt, NULL, &none, &err));
    OK(tide_token_rotate(s, 0, 0, token, &err)); /* opened again */
    STATUS(f->store, "waiting", "approval");
    opt.input = "\"ok\"";
    r = resume(s, &opt);
    expect_answer(r, "approval", "\"ok\"");
    finish(r);
    tide_session_close(s);
}

static void an_answer_stays_when_its_deadline_has_passed_since(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options opt = {.size = sizeof opt, "ok", TIDE_WAIT_APPROVAL, "release?", now() + 60, 0};
    const struct tide_run_options yes = {.size = sizeof yes, .input = "\"yes\""};
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];

    park(r, opt.deadline_ms, token);
    r = resume(s, &yes);
    until(opt.deadline_ms + 1);
    OK(tide_run_wait(r, &opt, &answer, token, &err));
    assert_string_equal(answer.ptr, "\"yes\"");
    tide_text_done(&answer);
    finish(r);
    tide_session_close(s);
}

static void a_token_expires_by_itself(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options opt = {.size = sizeof opt, "ok", TIDE_WAIT_INPUT, NULL, 0, now() + 30};
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    char token[TIDE_TOKEN_SIZE];
    struct tide_run_options with = {.size = sizeof with, .token = token};
    struct tide_recovery did;
    struct tide_text answer;

    GIVES(TIDE_WAITING, tide_run_wait(r, &opt, &answer, token, &err));
    tide_run_close(r);
    until(opt.expires_ms + 1);
    GIVES(TIDE_TOKEN_EXPIRED, tide_run_resume(s, &with, NULL, &none, &err));
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.tokens_expired, 1);
    assert_int_equal(events(f->store, "token.expired"), 1);
    GIVES(TIDE_TOKEN_EXPIRED, tide_run_resume(s, &with, NULL, &none, &err));
    STATUS(f->store, "interrupted_waiting", "token_expired");
    r = resume(s, NULL); /* a new run, that asks again */
    GIVES(TIDE_WAITING, tide_run_wait(r,
                                      &(struct tide_wait_options){
                                          .size = sizeof(struct tide_wait_options), "ok", TIDE_WAIT_INPUT, NULL, 0, 0},
                                      &answer, token, &err));
    tide_run_close(r);
    STATUS(f->store, "waiting", "input");
    tide_session_close(s);
}

static void a_message_supersedes_the_wait_and_answers_the_new_run(void **state)
{
    const struct tide_run_options opt = {.size = sizeof opt, .message = "\"hello\""};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    char token[TIDE_TOKEN_SIZE];
    const struct tide_run_options old = {.size = sizeof old, .token = token};

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
    const struct tide_run_options at_once = {.size = sizeof at_once, .flags = TIDE_RUN_NOW};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s), *none;
    int64_t due = now() + 40, told = 0;
    struct tide_recovery did;

    GIVES(TIDE_WAITING, tide_run_sleep(r, "nap", due, &told, &err));
    tide_run_close(r);
    assert_int_equal(told, due);
    STATUS(f->store, "waiting", "timer");
    HINTS(TIDE_WRONG_STATE, TIDE_ACTION_RESUME, tide_run_resume(s, NULL, NULL, &none, &err));
    OK(tide_store_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.due, 0);
    assert_int_equal(did.next_ms, due);
    until(due + 1);
    STATUS(f->store, "waiting", "due");
    OK(tide_store_recover(f->other, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.due, 1);
    r = resume(s, NULL);
    OK(tide_run_sleep(r, "nap", now() + 100000, NULL, &err));
    GIVES(TIDE_WAITING, tide_run_sleep(r, "nap", now() + 100000, NULL, &err)); /* the second use is another one */
    tide_run_close(r);
    r = resume(s, &at_once);
    OK(tide_run_sleep(r, "nap", now() + 100000, NULL, &err));
    OK(tide_run_sleep(r, "nap", now() + 100000, NULL, &err));
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
    OK(tide_store_recover(f->other, 0, NULL, NULL, &did, &err));
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
    struct tide_new_event ev = {"message.user", SAID, 0};

    OK(tide_session_append(s, TIDE_APPEND_RELEASE, &ev, 1, NULL, &err));
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
    OK(tide_session_input(f->other, "s", -1, &message, 1, NULL, &err));
    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, TIDE_SIGN_MESSAGE);
    OK(tide_session_input(f->other, "s", -1, &cancel, 1, NULL, &err));
    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, TIDE_SIGN_MESSAGE | TIDE_SIGN_CANCEL);
    expect_answer(r, "input", "\"hi\"");
    OK(tide_run_end(r,
                    &(struct tide_run_result){.size = sizeof(struct tide_run_result),
                                              .outcome = TIDE_OUTCOME_CANCELLED,
                                              .reason = "requested"},
                    &err));
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

    OK(tide_session_input(f->other, "s", -1, &cancel, 1, NULL, &err));
    OK(tide_run_sleep(r, "nap", now() - 1, NULL, &err));
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
    OK(tide_store_recover(f->store, TIDE_RECOVER_DRY_RUN, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 1);
    assert_int_equal(events(f->store, "run.interrupted"), 0);
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.interrupted, 1);
    OK(tide_store_recover(f->other, 0, NULL, NULL, &did, &err));
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
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.looked_at, 0);
    OK(tide_session_input(f->other, "s", -1, &rotate, 1, NULL, &err)); /* whatever came in: it is looked at, once */
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.looked_at, 1);
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
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
    OK(tide_run_checkpoint(r, 0, "here", first, &err));
    GIVES(TIDE_NOT_FOUND, tide_run_get(r, "x", &value, &err));
    tide_run_close(r);
    r = resume(s, NULL);
    OK(tide_run_get(r, "k", &value, &err));
    assert_string_equal(value.ptr, "\"v\"");
    tide_text_done(&value);
    OK(tide_run_checkpoint(r, 0, "here", again, &err));
    assert_string_equal(first, again);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->store, "memory.set"), 1);
    assert_int_equal(events(f->store, "checkpoint"), 1);
}

/* Started again and again, whatever has become of it. */
static void what_is_due_is_begun_or_gone_on_with(void **state)
{
    const struct tide_run_result failed = {.size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED, .error_code = "E"};
    const struct tide_run_options yes = {.size = sizeof yes, .input = "\"yes\""};
    const struct tide_run_options early = {.size = sizeof early, .flags = TIDE_RUN_NOW};
    struct fixture *f = *state;
    tide_session *s = create(f), *other;
    tide_run *r = NULL, *none = NULL;
    enum tide_ensured how = 0;
    char token[TIDE_TOKEN_SIZE];
    int64_t due;

    OK(tide_run_ensure(s, NULL, &how, &r, &err));
    assert_int_equal(how, TIDE_ENSURED_STARTED);
    other = open_for(f->other);
    GIVES(TIDE_HELD, tide_run_ensure(other, NULL, &how, &none, &err));
    tide_session_close(other);
    tide_run_close(r); /* interrupted */
    OK(tide_run_ensure(s, NULL, &how, &r, &err));
    assert_int_equal(how, TIDE_ENSURED_RESUMED);
    OK(tide_run_end(r, &failed, &err));
    tide_run_close(r);
    OK(tide_run_ensure(s, NULL, &how, &r, &err));
    assert_int_equal(how, TIDE_ENSURED_RESUMED);
    park(r, 0, token);
    GIVES(TIDE_WAITING, tide_run_ensure(s, NULL, &how, &none, &err));
    assert_null(none);
    OK(tide_run_ensure(s, &yes, &how, &r, &err));
    assert_int_equal(how, TIDE_ENSURED_RESUMED);
    GIVES(TIDE_WAITING, tide_run_sleep(r, "nap", now() + 60000, &due, &err));
    tide_run_close(r);
    GIVES(TIDE_WAITING, tide_run_ensure(s, NULL, &how, &none, &err));
    OK(tide_run_ensure(s, &early, &how, &r, &err));
    GIVES(TIDE_WAITING, tide_run_sleep(r, "second nap", now() + 60000, &due, &err));
    tide_run_close(r);
    until(due);
    OK(tide_run_ensure(s, NULL, &how, &r, &err));
    finish(r);
    OK(tide_run_ensure(s, NULL, &how, &r, &err));
    assert_int_equal(how, TIDE_ENSURED_DONE);
    assert_null(r);
    tide_session_close(s);
}

/* Somebody else does all of it between the look and the start: then nothing is due any more. */
static void ensuring_starts_once_whoever_comes_between(void **state)
{
    struct fixture *f = *state;
    const struct tide_run_options none = {.size = sizeof none};
    tide_session *s, *other;
    enum tide_ensured how = 0;
    tide_run *r = NULL;
    int64_t seen;

    tide_session_close(create(f));
    s = open_for(f->store);
    other = open_for(f->other);
    OK(tide_session_refresh(s, &err));
    seen = tide_session_last_seq(s);
    finish(start(other));
    tide_session_close(other);
    GIVES(TIDE_CONFLICT, run_ensure_at(s, &none, seen, &how, &r, &err));
    assert_null(r);
    OK(tide_run_ensure(s, &none, &how, &r, &err));
    assert_int_equal(how, TIDE_ENSURED_DONE);
    tide_session_close(s);
}

static void what_was_cancelled_is_not_ensured(void **state)
{
    struct fixture *f = *state;
    const struct tide_run_result cancelled = {.size = sizeof cancelled, .outcome = TIDE_OUTCOME_CANCELLED};
    tide_session *s = create(f);
    tide_run *r = start(s);
    enum tide_ensured how = 0;

    OK(tide_run_end(r, &cancelled, &err));
    tide_run_close(r);
    GIVES(TIDE_CANCELLED, tide_run_ensure(s, NULL, &how, &r, &err));
    tide_session_close(s);
}

static void a_start_if_the_last_run_is_over_is_refused_while_it_is_not(void **state)
{
    static const struct tide_run_result failed = {.size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED};
    const struct tide_run_options polite = {.size = sizeof polite, .flags = TIDE_RUN_IF_OVER};
    struct fixture *f = *state;
    tide_session *s = create(f);
    char token[TIDE_TOKEN_SIZE];
    tide_run *r = NULL;

    OK(tide_run_start(s, &polite, &r, &err));
    tide_run_close(r);
    GIVES(TIDE_UNFINISHED, tide_run_start(s, &polite, &r, &err));
    r = start(s);
    OK(tide_run_end(r, &failed, &err));
    tide_run_close(r);
    GIVES(TIDE_UNFINISHED, tide_run_start(s, &polite, &r, &err));
    park(start(s), 0, token);
    GIVES(TIDE_UNFINISHED, tide_run_start(s, &polite, &r, &err));
    finish(start(s));
    OK(tide_run_start(s, &polite, &r, &err));
    finish(r);
    tide_session_close(s);
}

/* A message instead of an answer: the wait is over, the chain goes on, and the message answers what is asked next. */
static void a_message_continues_the_chain_of_a_run_that_waits(void **state)
{
    const struct tide_run_options said = {.size = sizeof said, .message = "\"news\""};
    const struct tide_wait_options wait = {.size = sizeof wait, .name = "ok", .kind = TIDE_WAIT_INPUT};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct doing once = {0};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];
    const struct tide_run_options late = {.size = sizeof late, .token = token, .input = "1"};

    step(r, "pay", TIDE_EFFECT_ONCE, &once);
    GIVES(TIDE_WAITING, tide_run_wait(r, &wait, &answer, token, &err));
    tide_run_close(r);
    OK(tide_run_resume(s, &said, NULL, &r, &err));
    step(r, "pay", TIDE_EFFECT_ONCE, &once);
    assert_int_equal(once.times, 1);
    expect_answer(r, "input", "\"news\"");
    finish(r);
    GIVES(TIDE_TOKEN_REVOKED, tide_run_resume(s, &late, NULL, &r, &err));
    tide_session_close(s);
}

static void bad_requests_are_refused_before_anything_is_written(void **state)
{
    const struct tide_step_spec retried = {.size = sizeof retried, .name = "a", .retries = 1},
                                nameless = {.size = sizeof nameless, .name = ""},
                                strange = {.size = sizeof strange, .name = "a", .effect = (enum tide_effect)9};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a;
    struct tide_text answer;
    char token[TIDE_TOKEN_SIZE];
    int64_t before;

    OK(tide_session_refresh(s, &err));
    before = tide_session_last_seq(s);
    HINTS(TIDE_INVALID, TIDE_ACTION_REPEAT, tide_step_ask(r, &retried, &a, &err));
    GIVES(TIDE_INVALID, tide_step_ask(r, &nameless, &a, &err));
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_STEP, "a", tide_step_ask(r, &strange, &a, &err));
    SAYS(TIDE_INVALID, "future",
         tide_run_wait(
             r, &(struct tide_wait_options){.size = sizeof(struct tide_wait_options), "w", TIDE_WAIT_INPUT, NULL, 1, 0},
             &answer, token, &err));
    SAYS(TIDE_INVALID, "something to wait for",
         tide_run_wait(r,
                       &(struct tide_wait_options){
                           .size = sizeof(struct tide_wait_options), "w", (enum tide_wait_kind)9, NULL, 0, 0},
                       &answer, token, &err));
    SAYS(TIDE_INVALID, "not valid JSON", tide_run_set(r, "k", "{", &err));
    GIVES(TIDE_INVALID, tide_run_set(r, "", "1", &err));
    OK(tide_session_refresh(s, &err));
    assert_int_equal(tide_session_last_seq(s), before);
    finish(r);
    tide_session_close(s);
}

/* ---- an end of unknown outcome ------------------------------------------------------------------------------------------ */

static int give_up(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    (void)arg;
    (void)why;
    (void)waited_ms;
    return 1;
}

static tide_store *open_on(struct sim *sim)
{
    const struct tide_store_options opt = {
        .size = sizeof opt, .flags = TIDE_OPEN_CREATE, .origin_key = TEST_KEY, .origin_key_len = sizeof TEST_KEY};
    struct store *store = NULL;
    char url[64];

    OK(store_open(store_url_in(url, sizeof url, "/data", "s"), &opt, sim_proc_env(sim_proc_start(sim)), &store, &err));
    return (tide_store *)(void *)store;
}

struct machine {
    struct sim *sim;
    tide_store *store;
    tide_session *s;
    tide_run *r;
};

/* From its n-th operation on the disk fails under the end of a run, until the caller has given up. */
static enum tide_code end_on_a_failing_disk(struct machine *m, uint64_t n)
{
    const struct tide_run_options impatient = {.size = sizeof impatient, .trouble = give_up};
    enum tide_code code;

    m->sim = sim_new(1);
    m->store = open_on(m->sim);
    OK(tide_session_create(m->store, "s", NULL, &m->s, &err));
    OK(tide_run_start(m->s, &impatient, &m->r, &err));
    sim_fault_at(m->sim, SIM_EIO, n, true);
    code = tide_run_end(
        m->r, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_FAILED}, NULL);
    sim_fault_at(m->sim, SIM_NO_FAULT, 0, false);
    return code;
}

/* It ended once, as this, and the lease was released with it. */
static void machine_done(struct machine *m, const char *kind)
{
    tide_session *again = NULL;

    OK(tide_session_open(m->store, "s", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &again, &err));
    tide_session_close(again);
    tide_run_close(m->r);
    tide_session_close(m->s);
    assert_int_equal(events(m->store, kind), 1);
    assert_int_equal(events(m->store, "run.interrupted"), 0);
    assert_int_equal(events(m->store, "run.failed") + events(m->store, "run.completed"), 1);
    tide_store_close(m->store);
    sim_free(m->sim);
}

static void an_end_of_unknown_outcome_is_written_once(void **state)
{
    const struct tide_run_result failed = {.size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED};
    int unknown = 0;

    (void)state;
    for (uint64_t n = 1; n <= 20; n++) {
        struct machine m;
        enum tide_code code = end_on_a_failing_disk(&m, n);

        unknown += code == TIDE_UNKNOWN;
        if (code)
            OK(tide_run_end(m.r, &failed, &err));
        SAYS(TIDE_INVALID, "is over", tide_run_end(m.r, &failed, &err));
        machine_done(&m, "run.failed");
    }
    assert_true(unknown > 0);
}

static void another_end_is_told_which_one_was_stored(void **state)
{
    const struct tide_run_result completed = {.size = sizeof completed, .outcome = TIDE_OUTCOME_COMPLETED};
    int stored = 0;

    (void)state;
    for (uint64_t n = 1; n <= 20; n++) {
        struct tide_err err = {0};
        struct machine m;
        enum tide_code first = end_on_a_failing_disk(&m, n);
        enum tide_code code = first ? tide_run_end(m.r, &completed, &err) : TIDE_CONFLICT;

        if (first && code) {
            stored++;
            assert_int_equal(code, TIDE_CONFLICT);
            assert_non_null(strstr(err.msg, "has ended already, as failed"));
        }
        machine_done(&m, code ? "run.failed" : "run.completed");
    }
    assert_true(stored > 0);
}

/* ---- looking ------------------------------------------------------------------------------------------------------------ */

static void a_look_that_could_not_be_made_is_not_told_as_one(void **state)
{
    const struct tide_new_event message = {"queue.added", "{\"queue_id\":\"q\",\"content\":\"hi\"}", 0};
    struct sim *sim = sim_new(1);
    tide_store *store = open_on(sim), *other = open_on(sim);
    tide_session *s = NULL;
    tide_run *r = NULL;
    unsigned signs = 0;

    (void)state;
    OK(tide_session_create(store, "s", NULL, &s, &err));
    OK(tide_run_start(s, NULL, &r, &err));
    OK(tide_session_input(other, "s", -1, &message, 1, NULL, &err));
    sim_fault_at(sim, SIM_EIO, 1, true);
    sim_fault_at(sim, SIM_READ_FAILS, 1, true);
    GIVES(TIDE_IO, tide_run_look(r, &signs, &err));
    sim_fault_at(sim, SIM_NO_FAULT, 0, false);
    OK(tide_run_look(r, &signs, &err));
    assert_int_equal(signs, TIDE_SIGN_MESSAGE);
    tide_run_close(r);
    tide_session_close(s);
    tide_store_close(other);
    tide_store_close(store);
    sim_free(sim);
}

/* ---- a lease that nobody knows of --------------------------------------------------------------------------------------- */

/* True when the other process was told that the session is held, before it was released. */
static bool taken_on_a_failing_disk(uint64_t n)
{
    struct sim *sim = sim_new(1);
    tide_store *store = open_on(sim), *other = open_on(sim);
    tide_session *s = NULL, *next = NULL;
    bool held;

    OK(tide_session_create(store, "s", NULL, &s, &err));
    tide_session_close(s);
    sim_fault_at(sim, SIM_EIO, n, true);
    if (!tide_session_open(store, "s", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s, NULL))
        tide_session_close(s);
    sim_fault_at(sim, SIM_NO_FAULT, 0, false);
    s = NULL;
    held = tide_session_open(other, "s", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s, NULL) == TIDE_HELD;
    tide_session_close(s);
    sim_advance(sim, 15000);
    OK(tide_session_create(store, "another", NULL, &next, &err)); /* it lives, and looks after its leases by the way */
    tide_session_close(next);
    OK(tide_session_open(other, "s", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s, &err));
    tide_session_close(s);
    tide_store_close(other);
    tide_store_close(store);
    sim_free(sim);
    return held;
}

static void a_lease_that_nobody_knows_of_is_given_back_while_its_process_lives(void **state)
{
    int held = 0;

    (void)state;
    for (uint64_t n = 1; n <= 30; n++)
        held += taken_on_a_failing_disk(n);
    assert_true(held > 0);
}

/* The commit by which a lease is confirmed meets a failing disk as well. */
static const struct store_ops *plain_ops;
static struct sim *doubtful; /* NULL: all goes through */
static int doubts;

static void commit_in_doubt(struct store *store, struct batch *list)
{
    bool confirms = doubtful && !list->n && !list->owner && !(list->flags & (BATCH_ACQUIRE | BATCH_RELEASE));

    if (confirms)
        sim_fault_at(doubtful, SIM_EIO, 1, true);
    plain_ops->commit(store, list);
    if (!confirms)
        return;
    sim_fault_at(doubtful, SIM_NO_FAULT, 0, false);
    doubts += list->code != TIDE_OK;
    doubtful = NULL;
}

static int mend(void *sim, const struct tide_err *why, int64_t waited_ms)
{
    (void)why;
    (void)waited_ms;
    sim_fault_at(sim, SIM_NO_FAULT, 0, false);
    return 0;
}

/* What another process did after the store gave the lease back. */
enum meanwhile { NOBODY_CAME, AN_INPUT_CAME, IT_WAS_TAKEN, IT_WAS_TAKEN_AND_GIVEN_BACK };

static void come(tide_store *other, enum meanwhile what, tide_session **ret)
{
    const struct tide_new_event message = {"queue.added", "{\"queue_id\":\"q\",\"content\":\"hi\"}", 0};

    if (what == AN_INPUT_CAME)
        OK(tide_session_input(other, "s", -1, &message, 1, NULL, &err));
    if (what < IT_WAS_TAKEN)
        return;
    OK(tide_session_open(other, "s", TIDE_SESSION_APPEND, ret, &err));
    put(*ret, "message.user", SAID);
    if (what == IT_WAS_TAKEN_AND_GIVEN_BACK)
        tide_session_close(TAKE(*ret));
}

/* The disk fails while a run takes the lease with its start, and again while that is confirmed. */
static void run_in_doubt(enum sim_fault fault, uint64_t n, enum meanwhile what)
{
    struct sim *sim = sim_new(1);
    const struct tide_run_options patient = {.size = sizeof patient, .trouble = mend, .trouble_arg = sim};
    tide_store *store = open_on(sim), *other = open_on(sim);
    tide_session *s = NULL, *next = NULL, *theirs = NULL;
    struct store_ops ops = *(plain_ops = store_of(store)->ops);
    int before = doubts;
    tide_run *r = NULL;

    ops.commit = commit_in_doubt;
    store_of(store)->ops = &ops;
    OK(tide_session_create(store, "s", NULL, &s, &err));
    tide_session_close(s);
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    sim_fault_at(sim, fault, n, true);
    doubtful = sim;
    OK(tide_run_start(s, &patient, &r, &err));
    doubtful = NULL;
    if (doubts > before) {
        sim_advance(sim, 15000);
        OK(tide_session_create(store, "another", NULL, &next, &err));
        tide_session_close(next);
        come(other, what, &theirs);
        GIVES(what < IT_WAS_TAKEN ? TIDE_OK : TIDE_FENCED, tide_run_set(r, "k", "1", &err));
        if (what < IT_WAS_TAKEN)
            OK(tide_run_end(
                r, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_COMPLETED},
                &err));
    }
    tide_run_close(r);
    tide_session_close(theirs);
    tide_session_close(s);
    tide_store_close(other);
    tide_store_close(store);
    sim_free(sim);
}

static void a_lease_that_could_not_be_confirmed_is_taken_anew_unless_it_is_anothers(void **state)
{
    static const enum sim_fault faults[] = {SIM_EIO, SIM_SYNC_FAILS};

    (void)state;
    for (enum meanwhile what = NOBODY_CAME; what <= IT_WAS_TAKEN_AND_GIVEN_BACK; what++) {
        doubts = 0;
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
            for (uint64_t n = 1; n <= 40; n++)
                run_in_doubt(faults[i], n, what);
        assert_true(doubts > 0 || !on_files()); /* of SQLite nothing is stored when its log could not be synced */
    }
}

static tide_session *claim(tide_store *store)
{
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s, &err));
    return s;
}

/* Stopped for long, it was taken for dead by one that began; the clock went back before it was due to say that it lives. */
static void a_process_that_was_taken_for_dead_holds_what_it_takes(void **state)
{
    struct sim *sim = sim_new(1);
    tide_store *store = open_on(sim), *other = open_on(sim);
    tide_session *s = NULL;

    (void)state;
    OK(tide_session_create(store, "s", NULL, &s, &err));
    tide_session_close(s);
    sim_advance(sim, 60000);
    tide_session_close(claim(other));
    sim_advance(sim, -58000);
    s = claim(store);
    GIVES(TIDE_HELD,
          tide_session_open(other, "s", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &(tide_session *){NULL}, &err));
    tide_session_close(s);
    tide_store_close(other);
    tide_store_close(store);
    sim_free(sim);
}

static void a_completed_session_is_not_resumed(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);

    finish(r);
    GIVES(TIDE_WRONG_STATE, tide_run_resume(s, NULL, NULL, &r, &err));
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
        T(ensuring_starts_once_whoever_comes_between),
        T(what_was_cancelled_is_not_ensured),
        T(a_start_if_the_last_run_is_over_is_refused_while_it_is_not),
        T(a_message_continues_the_chain_of_a_run_that_waits),
        T(bad_requests_are_refused_before_anything_is_written),
        T(what_is_due_is_begun_or_gone_on_with),
        T(a_completed_session_is_not_resumed),
        cmocka_unit_test(an_end_of_unknown_outcome_is_written_once),
        cmocka_unit_test(another_end_is_told_which_one_was_stored),
        cmocka_unit_test(a_look_that_could_not_be_made_is_not_told_as_one),
        cmocka_unit_test(a_lease_that_nobody_knows_of_is_given_back_while_its_process_lives),
        cmocka_unit_test(a_lease_that_could_not_be_confirmed_is_taken_anew_unless_it_is_anothers),
        cmocka_unit_test(a_process_that_was_taken_for_dead_holds_what_it_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
