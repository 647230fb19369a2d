/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status is a pure function. The table of DESIGN 7 is written down here a second time, as one function with the precedence
 * in its order, and every combination of conditions must give the same word; then logs as people would write them.
 */
#include "kit.h"

#include "session/status.h"

#define NOW 1000000

/* ---- Every combination --------------------------------------------------------------------------------------- */

struct conditions {
    int end;      /* enum run_end */
    bool waiting; /* parked, now or when it ended */
    int token;    /* enum token_state */
    int deadline; /* 0 none, 1 ahead, 2 passed */
    int due;
    int expiry; /* of the token */
    bool alive;
};

static bool token_good(const struct conditions *c)
{
    return c->token == TOKEN_ACTIVE && c->expiry != 2;
}

static const char *want_status(const struct conditions *c)
{
    bool open = c->end == RUN_OPEN;

    if ((open && !c->waiting && !c->alive) || (c->end == RUN_INTERRUPTED && !c->waiting))
        return "interrupted_startup";
    if (open && c->waiting && !c->due && (!token_good(c) || c->deadline == 2))
        return "interrupted_waiting";
    if (c->end == RUN_INTERRUPTED && c->waiting)
        return "interrupted_waiting";
    if (open && c->waiting)
        return "waiting";
    return open ? "running" : "idle";
}

static const char *want_outcome(const struct conditions *c, const char *status)
{
    static const char *const ends[] = {"none", "none", "completed", "failed", "cancelled", "interrupted"};

    return strncmp(status, "interrupted", 11) == 0 ? "interrupted" : ends[c->end];
}

static void check_one(const struct conditions *c)
{
    static const int64_t when[] = {0, NOW + 1, NOW - 1};
    struct state *s = state_new(STR("s"));
    struct run *r = &s->ledger.run;
    const char *want = want_status(c);
    struct status got;

    r->end = (enum run_end)c->end;
    r->waiting = c->waiting;
    r->token = (enum token_state)c->token;
    r->deadline_ms = when[c->deadline];
    r->due_ms = when[c->due];
    r->token_expires_ms = when[c->expiry];
    status_derive(&got, s, c->alive, NOW);
    if (strcmp(got.status, want) != 0 || strcmp(got.outcome, want_outcome(c, want)) != 0)
        fail_msg("end %d waiting %d token %d deadline %d due %d expiry %d alive %d: %s/%s, should be %s/%s", c->end,
                 c->waiting, c->token, c->deadline, c->due, c->expiry, c->alive, got.status, got.outcome, want,
                 want_outcome(c, want));
    if (strcmp(want, "waiting") == 0 && c->due == 2)
        assert_string_equal(got.reason, "due");
    assert_true(got.why[0] && got.reason[0]); /* every status says why in words */
    assert_int_equal(got.needs_resume, strncmp(want, "interrupted", 11) == 0);
    assert_true(!got.needs_resume || got.is_resumable);
    state_free(s);
}

static void every_combination_follows_the_table(void **unused)
{
    struct conditions c;
    int n = 0;

    (void)unused;
    for (int i = 0; i < 6 * 2 * 5 * 3 * 3 * 3 * 2; i++, n++) {
        int at = i;

        c.end = at % 6;
        at /= 6;
        c.waiting = at % 2;
        at /= 2;
        c.token = at % 5;
        at /= 5;
        c.deadline = at % 3;
        at /= 3;
        c.due = at % 3;
        at /= 3;
        c.expiry = at % 3;
        c.alive = at / 3;
        check_one(&c);
    }
    assert_int_equal(n, 3240);
}

/* ---- Logs ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *log[8][2];
    bool alive;
    const char *status, *outcome, *reason;
} logs[] = {
    {"nothing ran", {{0}}, false, "idle", "none", "none"},
    {"running", {{"run.started", "{\"run_id\":\"r\"}"}}, true, "running", "none", "running"},
    {"its owner is gone",
     {{"run.started", "{\"run_id\":\"r\"}"}},
     false,
     "interrupted_startup",
     "interrupted",
     "owner_gone"},
    {"killed, and noticed",
     {{"run.started", "{\"run_id\":\"r\"}"}, {"run.interrupted", "{\"run_id\":\"r\",\"reason\":\"process_restart\"}"}},
     true,
     "interrupted_startup",
     "interrupted",
     "process_restart"},
    {"completed",
     {{"run.started", "{\"run_id\":\"r\"}"}, {"run.completed", "{\"run_id\":\"r\"}"}},
     true,
     "idle",
     "completed",
     "completed"},
    {"failed",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.failed", "{\"run_id\":\"r\",\"reason\":\"quota\",\"error\":{\"message\":\"m\"}}"}},
     false,
     "idle",
     "failed",
     "quota"},
    {"waits with an active token",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"token.minted", "{\"token_id\":\"t\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\",\"resume_token_id\":\"t\"}"}},
     false,
     "waiting",
     "none",
     "input"},
    {"waits, the token minted after",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"approval\",\"resume_token_id\":\"t\"}"},
      {"token.minted", "{\"token_id\":\"t\"}"}},
     false,
     "waiting",
     "none",
     "approval"},
    {"waits without a token",
     {{"run.started", "{\"run_id\":\"r\"}"}, {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\"}"}},
     false,
     "interrupted_waiting",
     "interrupted",
     "token_missing"},
    {"its token was revoked",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"token.minted", "{\"token_id\":\"t\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\",\"resume_token_id\":\"t\"}"},
      {"token.revoked", "{\"token_id\":\"t\"}"}},
     false,
     "interrupted_waiting",
     "interrupted",
     "token_revoked"},
    {"another token was revoked",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"token.minted", "{\"token_id\":\"t\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\",\"resume_token_id\":\"t\"}"},
      {"token.revoked", "{\"token_id\":\"older\"}"}},
     false,
     "waiting",
     "none",
     "input"},
    {"its deadline passed",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"token.minted", "{\"token_id\":\"t\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\",\"resume_token_id\":\"t\","
                      "\"deadline_at\":\"1970-01-01T00:00:01.000Z\"}"}},
     true,
     "interrupted_waiting",
     "interrupted",
     "wait_timeout"},
    {"sleeps",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"timer\",\"due_at\":\"2033-01-01T00:00:00.000Z\"}"}},
     false,
     "waiting",
     "none",
     "timer"},
    {"slept long enough",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"timer\",\"due_at\":\"1970-01-01T00:00:01.000Z\"}"}},
     false,
     "waiting",
     "none",
     "due"},
    {"parked when the process ended",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\",\"resume_token_id\":\"t\"}"},
      {"run.interrupted", "{\"run_id\":\"r\",\"reason\":\"process_exit\"}"}},
     false,
     "interrupted_waiting",
     "interrupted",
     "process_exit"},
    {"resumed",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"token.minted", "{\"token_id\":\"t\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\",\"resume_token_id\":\"t\"}"},
      {"token.consumed", "{\"token_id\":\"t\"}"},
      {"run.resumed", "{\"run_id\":\"r\"}"}},
     true,
     "running",
     "none",
     "running"},
    {"resumed, and its owner died",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\"}"},
      {"run.resumed", "{\"run_id\":\"r\"}"}},
     false,
     "interrupted_startup",
     "interrupted",
     "owner_gone"},
    {"a new run after an interruption",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.interrupted", "{\"run_id\":\"r\",\"reason\":\"shutdown\"}"},
      {"run.started", "{\"run_id\":\"r2\"}"}},
     true,
     "running",
     "none",
     "running"},
    {"a late word about an older run",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.started", "{\"run_id\":\"r2\"}"},
      {"run.failed", "{\"run_id\":\"r\"}"}},
     true,
     "running",
     "none",
     "running"},
    {"cancelled while it waited",
     {{"run.started", "{\"run_id\":\"r\"}"},
      {"run.waiting", "{\"run_id\":\"r\",\"wait_kind\":\"input\",\"resume_token_id\":\"t\"}"},
      {"run.cancelled", "{\"run_id\":\"r\",\"reason\":\"user\"}"}},
     false,
     "idle",
     "cancelled",
     "user"},
};

static void logs_give_the_status_people_expect(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        struct state *s = state_new(STR("s"));
        struct arena scratch = ARENA_INIT;
        struct status got;

        for (int64_t n = 0; n < 8 && logs[i].log[n][0]; n++) {
            struct event ev = {.seq = n + 1, .kind = str_from(logs[i].log[n][0]), .body = str_from(logs[i].log[n][1])};

            state_apply(s, &ev, &scratch);
        }
        status_derive(&got, s, logs[i].alive, NOW);
        if (strcmp(got.status, logs[i].status) != 0 || strcmp(got.outcome, logs[i].outcome) != 0 ||
            strcmp(got.reason, logs[i].reason) != 0)
            fail_msg("%s: %s/%s/%s, should be %s/%s/%s", logs[i].name, got.status, got.outcome, got.reason,
                     logs[i].status, logs[i].outcome, logs[i].reason);
        arena_done(&scratch);
        state_free(s);
    }
}

static void a_run_that_said_so_is_not_resumable(void **unused)
{
    struct state *s = state_new(STR("s"));
    struct status got;

    (void)unused;
    s->ledger.run.end = RUN_INTERRUPTED;
    s->ledger.run.resumable = 0;
    status_derive(&got, s, false, NOW);
    assert_false(got.is_resumable);
    s->ledger.run.end = RUN_FAILED;
    s->ledger.run.resumable = 1;
    status_derive(&got, s, false, NOW);
    assert_true(got.is_resumable);
    assert_true(got.needs_resume);
    state_free(s);
}

/* ---- Words --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *word, *status, *outcome;
    bool fits;
} words[] = {
    {"running", "running", "none", true},
    {"active", "running", "none", true},
    {"RUNNING", "running", "none", true},
    {"paused", "waiting", "none", true},
    {"paused", "interrupted_waiting", "interrupted", true},
    {"paused", "interrupted_startup", "interrupted", false},
    {"completed", "idle", "completed", true},
    {"completed", "idle", "failed", false},
    {"COMPLETED", "idle", "completed", true},
    {"failed", "idle", "failed", true},
    {"failed", "interrupted_startup", "interrupted", true},
    {"FAILED", "interrupted_startup", "interrupted", false},
    {"cancelled", "idle", "cancelled", true},
    {"WAITING_FOR_INPUT", "interrupted_startup", "interrupted", true},
    {"WAITING_FOR_INPUT", "waiting", "none", true},
    {"idle", "idle", "completed", true},
    {"idle", "running", "none", false},
    {"interrupted", "interrupted_waiting", "interrupted", true},
    {"waiting", "interrupted_waiting", "interrupted", false},
};

static void filters_take_both_vocabularies(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct status st = {.status = words[i].status, .outcome = words[i].outcome};

        assert_true(status_word_known(words[i].word));
        if (status_matches(&st, words[i].word) != words[i].fits)
            fail_msg("'%s' and %s/%s", words[i].word, words[i].status, words[i].outcome);
    }
    assert_false(status_word_known("asleep"));
    assert_false(status_word_known(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_follows_the_table),
        cmocka_unit_test(logs_give_the_status_people_expect),
        cmocka_unit_test(a_run_that_said_so_is_not_resumable),
        cmocka_unit_test(filters_take_both_vocabularies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
