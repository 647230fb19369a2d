/* SPDX-License-Identifier: Apache-2.0 */
/* Runs through the C calls: start, steps, waits, tokens, resume, cancel, recovery, on a real store. */
#include "base/timefmt.h"
#include "kit.h"
#include "session/retry.h"

struct fixture {
    char dir[256], path[300];
    tide_store *store, *other; /* two processes, as far as leases go */
};

static int set_up(void **state)
{
    const struct tide_store_options opt = {.flags = TIDE_OPEN_CREATE};
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s/s.db", f->dir);
    OK(tide_store_open(f->path, &opt, &f->store, &err));
    OK(tide_store_open(f->path, &opt, &f->other, &err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->other);
    tide_store_close(f->store);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static tide_session *create(struct fixture *f)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, "s", NULL, &s, &err));
    return s;
}

static tide_session *open_for(tide_store *store)
{
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    return s;
}

static tide_run *start(tide_session *s)
{
    tide_run *r = NULL;

    OK(tide_run_start(s, NULL, &r, &err));
    return r;
}

static tide_run *resume(tide_session *s, const struct tide_run_options *opt)
{
    tide_run *r = NULL;

    OK(tide_run_resume(s, opt, NULL, &r, &err));
    return r;
}

static void finish(tide_run *r)
{
    const struct tide_run_result done = {.outcome = "completed"};

    OK(tide_run_end(r, &done, &err));
    tide_run_close(r);
}

struct seen {
    char status[32], outcome[16], reason[32], why[256], next[128];
    int resumable, needs;
};

static int take_info(void *arg, const struct tide_session_info *info)
{
    struct seen *seen = arg;

    snprintf(seen->status, sizeof seen->status, "%s", info->status);
    snprintf(seen->outcome, sizeof seen->outcome, "%s", info->outcome);
    snprintf(seen->reason, sizeof seen->reason, "%s", info->reason);
    snprintf(seen->why, sizeof seen->why, "%s", info->why);
    seen->resumable = info->is_resumable;
    seen->needs = info->needs_resume;
    return 0;
}

static struct seen look(tide_store *store)
{
    struct seen seen = {{0}, {0}, {0}, {0}, {0}, 0, 0};
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_READ, &s, &err));
    OK(tide_session_show(s, take_info, &seen, &err));
    tide_session_close(s);
    return seen;
}

#define STATUS(store, want, want_reason)                                                                               \
    do {                                                                                                               \
        struct seen seen_ = look(store);                                                                               \
        assert_string_equal(seen_.status, want);                                                                       \
        assert_string_equal(seen_.reason, want_reason);                                                                \
    } while (0)

struct counting {
    const char *kind;
    int n;
};

static int count_kind(void *arg, const struct tide_event *ev)
{
    struct counting *c = arg;

    c->n += strcmp(ev->kind, c->kind) == 0;
    return 0;
}

static int events(tide_store *store, const char *kind)
{
    struct counting c = {kind, 0};
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_READ, &s, &err));
    OK(tide_read(s, 0, 1, 0, count_kind, &c, &err));
    tide_session_close(s);
    return c.n;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

struct doing {
    int times, fail_first;
    char key[40];
};

static enum tide_code do_it(void *arg, const char *key, struct tide_text *ret, struct tide_err *err)
{
    struct doing *d = arg;

    snprintf(d->key, sizeof d->key, "%s", key);
    if (d->times++ < d->fail_first) {
        err->code = TIDE_FAILED;
        snprintf(err->msg, sizeof err->msg, "not yet");
        return TIDE_FAILED;
    }
    ret->ptr = strdup("{\"answer\":42}");
    ret->len = strlen(ret->ptr);
    return TIDE_OK;
}

static void step(tide_run *r, const char *name, const char *effect, struct doing *d)
{
    const struct tide_step_spec spec = {.name = name, .effect = effect, .args = "a", .args_len = 1};
    struct tide_text result = {NULL, 0};

    OK(tide_step(r, &spec, do_it, d, &result, &err));
    assert_string_equal(result.ptr, "{\"answer\":42}");
    tide_text_done(&result);
}

static void a_finished_step_answers_from_the_log(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct doing once = {0}, pure = {0};

    step(r, "pay", "once", &once);
    for (int i = 0; i < 3; i++)
        step(r, "loop", "pure", &pure);
    tide_run_close(r);
    tide_session_close(s);
    STATUS(f->store, "interrupted_startup", "shutdown");

    s = open_for(f->other);
    r = resume(s, NULL);
    step(r, "pay", "once", &once);
    for (int i = 0; i < 4; i++)
        step(r, "loop", "pure", &pure);
    finish(r);
    tide_session_close(s);
    assert_int_equal(once.times, 1);
    assert_int_equal(pure.times, 4);
    STATUS(f->store, "idle", "completed");
    assert_int_equal(events(f->store, "run.interrupted"), 1);
    assert_int_equal(events(f->store, "run.started"), 2);
}

static void ask(tide_run *r, const char *name, const char *effect, int probe, enum tide_step_state want,
                struct tide_step_answer *ret)
{
    const struct tide_step_spec spec = {.name = name, .effect = effect, .args = "a", .args_len = 1, .has_probe = probe};

    OK(tide_step_ask(r, &spec, ret, &err));
    assert_int_equal(ret->state, want);
}

/* Begun and never ended: the process is gone without a word. */
static void cut_a_step(struct fixture *f, const char *effect, char key[33])
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
    const struct tide_step_spec spec = {.name = "pay", .args = "a", .args_len = 1};
    static const char *const names[] = {"pay", NULL};
    const struct tide_run_options allowed = {.retry = names};
    struct fixture *f = *state;
    struct doing d = {0};
    struct tide_step_answer a;
    char key[33];
    tide_session *s;
    tide_run *r;

    cut_a_step(f, "once", key);
    for (int i = 0; i < 2; i++) {
        s = open_for(f->store);
        r = resume(s, NULL);
        SAYS(TIDE_UNSETTLED, "outcome unknown", tide_step(r, &spec, do_it, &d, NULL, &err));
        tide_run_close(r);
        tide_session_close(s);
    }
    assert_int_equal(d.times, 0);
    assert_int_equal(events(f->store, "tool.unknown"), 1);

    s = open_for(f->store);
    r = resume(s, &allowed);
    ask(r, "pay", "once", 0, TIDE_STEP_RUN, &a);
    assert_string_equal(a.key, key);
    OK(tide_step_begin(r, "pay", 0, 0, &err));
    OK(tide_step_end(r, "pay", &(struct tide_step_result){.outcome = "completed", .result = "1"}, NULL, &err));
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

    cut_a_step(f, "idempotent", key);
    s = open_for(f->store);
    r = resume(s, NULL);
    step(r, "pay", "idempotent", &d);
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

    cut_a_step(f, "once", key);
    s = open_for(f->store);
    r = resume(s, NULL);
    ask(r, "pay", "once", 1, TIDE_STEP_PROBE, &a);
    GIVES(TIDE_UNSETTLED, tide_step_settle(r, "pay", -1, NULL, &a, &err));
    ask(r, "pay", "once", 1, TIDE_STEP_PROBE, &a);
    OK(tide_step_settle(r, "pay", 1, "{\"answer\":42}", &a, &err));
    assert_int_equal(a.state, TIDE_STEP_STORED);
    tide_text_done(&a.result);
    tide_run_close(r);
    r = resume(s, NULL);
    step(r, "pay", "once", &d);
    assert_int_equal(d.times, 0);
    finish(r);
    tide_session_close(s);
}

static void a_step_with_other_arguments_is_refused_by_name(void **state)
{
    const struct tide_step_spec other = {.name = "pay", .args = "b", .args_len = 1};
    const struct tide_run_options accept = {.flags = TIDE_RUN_ACCEPT_CHANGE};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_text result;
    struct doing d = {0};

    step(r, "pay", "once", &d);
    tide_run_close(r);
    r = resume(s, NULL);
    SAYS(TIDE_CHANGED, "'pay'", tide_step(r, &other, do_it, &d, NULL, &err));
    tide_run_close(r);
    r = resume(s, &accept);
    OK(tide_step(r, &other, do_it, &d, &result, &err));
    tide_text_done(&result);
    assert_int_equal(d.times, 1);
    finish(r);
    tide_session_close(s);
}

static void the_same_name_in_parallel_is_refused(void **state)
{
    const struct tide_step_spec spec = {.name = "a"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a;

    OK(tide_step_ask(r, &spec, &a, &err));
    SAYS(TIDE_INVALID, "different names", tide_step_ask(r, &spec, &a, &err));
    OK(tide_step_begin(r, "a", 0, 0, &err));
    SAYS(TIDE_INVALID, "under way", tide_sleep(r, "nap", INT64_MAX / 2, NULL, &err));
    OK(tide_step_end(r, "a", &(struct tide_step_result){.outcome = "completed"}, NULL, &err));
    finish(r);
    tide_session_close(s);
}

static void a_step_that_was_asked_for_and_not_begun_leaves_nothing(void **state)
{
    const struct tide_step_result failed = {.outcome = "failed", .error_code = "missing"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct tide_step_answer a, b;

    ask(r, "pay", "once", 0, TIDE_STEP_RUN, &a);
    GIVES(TIDE_INVALID, tide_step_end(r, "pay", &(struct tide_step_result){.outcome = "completed"}, NULL, &err));
    OK(tide_step_end(r, "pay", &failed, NULL, &err));
    ask(r, "pay", "once", 0, TIDE_STEP_RUN, &b);
    assert_string_equal(a.key, b.key);
    finish(r);
    tide_session_close(s);
    assert_int_equal(events(f->store, "tool.failed"), 0);
}

static void a_failed_step_runs_again_on_resume_a_failed_once_does_not(void **state)
{
    const struct tide_step_spec once = {.name = "pay"}, pure = {.name = "look", .effect = "pure"};
    struct fixture *f = *state;
    tide_session *s = create(f);
    tide_run *r = start(s);
    struct doing o = {.fail_first = 1}, p = {.fail_first = 1};
    struct tide_text result;

    SAYS(TIDE_FAILED, "not yet", tide_step(r, &once, do_it, &o, NULL, &err));
    SAYS(TIDE_FAILED, "not yet", tide_step(r, &pure, do_it, &p, NULL, &err));
    tide_run_close(r);
    r = resume(s, NULL);
    SAYS(TIDE_FAILED, "not run again", tide_step(r, &once, do_it, &o, NULL, &err));
    OK(tide_step(r, &pure, do_it, &p, &result, &err));
    tide_text_done(&result);
    assert_int_equal(o.times, 1);
    assert_int_equal(p.times, 2);
    finish(r);
    tide_session_close(s);
}

static void a_restart_in_the_middle_of_a_pause_does_not_begin_it_anew(void **state)
{
    const struct tide_step_spec spec = {.name = "get", .effect = "pure", .retries = 2};
    const struct tide_step_result failed = {.outcome = "failed", .error_code = "exit"};
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

static int64_t now(void)
{
    return env_now_ms(env_real());
}

static void until(int64_t ms)
{
    while (now() < ms)
        usleep(500);
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
        T(a_finished_step_answers_from_the_log),
        T(a_cut_once_step_is_unknown_and_never_run),
        T(a_cut_idempotent_step_runs_again_with_its_key),
        T(a_probe_settles_what_was_cut),
        T(a_step_with_other_arguments_is_refused_by_name),
        T(the_same_name_in_parallel_is_refused),
        T(a_step_that_was_asked_for_and_not_begun_leaves_nothing),
        T(a_failed_step_runs_again_on_resume_a_failed_once_does_not),
        T(a_restart_in_the_middle_of_a_pause_does_not_begin_it_anew),
        T(a_wait_is_answered_once_with_its_token),
        T(each_wrong_token_has_its_own_error),
        T(the_secret_is_nowhere_on_disk),
        T(a_deadline_that_passes_ends_the_wait),
        T(an_answer_stays_when_its_deadline_has_passed_since),
        T(a_token_expires_by_itself),
        T(a_message_supersedes_the_wait_and_answers_the_new_run),
        T(a_sleep_is_over_when_it_is_due_and_not_before),
        T(a_living_run_is_nobody_elses),
        T(cancel_succeeds_with_and_without_a_process),
        T(the_holder_sees_a_cancel_and_a_message),
        T(an_open_run_without_owner_is_interrupted_once),
        T(what_needs_nothing_is_not_looked_at_again),
        T(memory_and_checkpoints_are_the_sessions),
        T(bad_requests_are_refused_before_anything_is_written),
        T(a_completed_session_is_not_resumed),
        cmocka_unit_test(delays_double_and_scatter_and_are_capped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
