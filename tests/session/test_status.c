/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status is a pure function. What each status means is written down here a second time, as claims in the order of their
 * precedence, each as it is worded in the design and without knowing the others; every combination of conditions must give
 * what the first claim that holds says. Then logs as people would write them, and pairs of conditions through the API.
 */
#include "kit.h"

#include "session/status.h"

#define NOW 1000000

/* ---- Every combination --------------------------------------------------------------------------------------- */

enum { NO_TIME, AHEAD, PASSED, TIMES };

struct conditions {
    int end;      /* enum run_end */
    int waiting;  /* parked, now or when it ended */
    int token;    /* enum token_state */
    int deadline; /* NO_TIME, AHEAD, PASSED */
    int due;
    int expiry; /* of the token */
    int alive;
    int resumable; /* 0: not said, 1: said no, 2: said yes */
    int program;
    int on_deadline; /* enum tide_on_deadline */
};

static const struct {
    size_t at;
    int n;
} sizes[] = {
    {offsetof(struct conditions, end), 6},     {offsetof(struct conditions, waiting), 2},
    {offsetof(struct conditions, token), 5},   {offsetof(struct conditions, deadline), TIMES},
    {offsetof(struct conditions, due), TIMES}, {offsetof(struct conditions, expiry), TIMES},
    {offsetof(struct conditions, alive), 2},   {offsetof(struct conditions, resumable), 3},
    {offsetof(struct conditions, program), 2}, {offsetof(struct conditions, on_deadline), 4},
};

#define N_SIZES (sizeof sizes / sizeof sizes[0])

static bool no_terminal_event(const struct conditions *c)
{
    return c->end == RUN_OPEN;
}

static bool token_active(const struct conditions *c)
{
    return c->token == TOKEN_ACTIVE && c->expiry != PASSED;
}

/* Nobody answered in time. */
static bool timed_out(const struct conditions *c)
{
    return no_terminal_event(c) && c->waiting && c->due == NO_TIME && c->deadline == PASSED;
}

static bool answers_itself(const struct conditions *c)
{
    return timed_out(c) && c->on_deadline == TIDE_ON_DEADLINE_DEFAULT;
}

static bool claims_failed(const struct conditions *c)
{
    return timed_out(c) && c->on_deadline == TIDE_ON_DEADLINE_FAIL;
}

static bool claims_interrupted_startup(const struct conditions *c)
{
    bool owner_gone = !c->alive, was_running = !c->waiting;

    return (!c->waiting && no_terminal_event(c) && owner_gone) || (was_running && c->end == RUN_INTERRUPTED);
}

static bool claims_interrupted_waiting(const struct conditions *c)
{
    bool waits_for_someone = no_terminal_event(c) && c->waiting && c->due == NO_TIME;
    bool was_parked = c->waiting;

    return (waits_for_someone && !answers_itself(c) && (!token_active(c) || c->deadline == PASSED)) ||
           (was_parked && c->end == RUN_INTERRUPTED);
}

static bool claims_waiting(const struct conditions *c)
{
    return no_terminal_event(c) && c->waiting && (token_active(c) || c->due != NO_TIME || answers_itself(c));
}

static bool claims_running(const struct conditions *c)
{
    return no_terminal_event(c) && c->alive;
}

static bool claims_idle(const struct conditions *c)
{
    (void)c;
    return true;
}

static const struct claim {
    const char *status;
    bool (*holds)(const struct conditions *c);
} precedence[] = {
    {"idle", claims_failed},
    {"interrupted_startup", claims_interrupted_startup},
    {"interrupted_waiting", claims_interrupted_waiting},
    {"waiting", claims_waiting},
    {"running", claims_running},
    {"idle", claims_idle},
};

static const char *want_status(const struct conditions *c)
{
    const struct claim *claim = precedence;

    while (!claim->holds(c))
        claim++;
    return claim->status;
}

static bool is_interrupted(const char *status)
{
    return strncmp(status, "interrupted", 11) == 0;
}

static const char *want_outcome(const struct conditions *c, const char *status)
{
    static const char *const ends[] = {"none", "none", "completed", "failed", "cancelled", "interrupted"};

    return is_interrupted(status) ? "interrupted" : claims_failed(c) ? "failed" : ends[c->end];
}

static bool want_resumable(const struct conditions *c, const char *status)
{
    bool said_no = c->resumable == 1, said_yes = c->resumable == 2;

    if (strcmp(status, "waiting") == 0)
        return true;
    if (is_interrupted(status) || c->end == RUN_CANCELLED ||
        claims_failed(c)) /* a person may go on with what a person stopped */
        return !said_no;
    if (c->end == RUN_FAILED) /* our own programs' runs can always be resumed unless they say that they cannot */
        return said_yes || (!said_no && c->program);
    return false;
}

static bool want_needs(const struct conditions *c, const char *status)
{
    return want_resumable(c, status) && (is_interrupted(status) || c->end == RUN_FAILED || claims_failed(c));
}

/* The actions by the design of `next`, in one line. */
static const char *want_next(const struct conditions *c, const char *status)
{
    bool resumable = want_resumable(c, status), someone = c->waiting && c->due == NO_TIME && !answers_itself(c);
    bool unfinished = is_interrupted(status) || strcmp(want_outcome(c, status), "failed") == 0;

    if (strcmp(status, "running") == 0)
        return "cancel {};";
    if (strcmp(status, "waiting") == 0 && !c->program)
        return someone ? "rotate_token {};cancel {};start {\"new_run\":true};" : "cancel {};start {\"new_run\":true};";
    if (strcmp(status, "waiting") == 0 && (c->due == PASSED || answers_itself(c)))
        return "resume {};recover {\"run_due\":true};";
    if (strcmp(status, "waiting") == 0)
        return someone ? "answer {\"kind\":\"input\",\"input\":null};rotate_token {};cancel {};"
                       : "resume {\"now\":true};cancel {};";
    if (is_interrupted(status) && !resumable)
        return "cancel {};start {\"new_run\":true};";
    if (is_interrupted(status) && c->program)
        return someone ? "rotate_token {};resume {};cancel {};" : "resume {};cancel {};";
    if (is_interrupted(status))
        return someone ? "rotate_token {};cancel {};start {\"ensure\":true};" : "cancel {};start {\"ensure\":true};";
    if (c->program && resumable)
        return "resume {};";
    return !unfinished ? "start {};" : resumable ? "start {\"ensure\":true};" : "start {\"new_run\":true};";
}

static struct state *state_of(const struct conditions *c)
{
    static const int64_t when[] = {[NO_TIME] = 0, [AHEAD] = NOW + 1, [PASSED] = NOW - 1};
    struct state *s = state_new(STR("s"));
    struct run *r = &s->ledger.run;

    r->end = (enum run_end)c->end;
    r->waiting = c->waiting;
    r->token = (enum token_state)c->token;
    r->deadline_ms = when[c->deadline];
    r->on_deadline = (enum tide_on_deadline)c->on_deadline;
    r->due_ms = when[c->due];
    r->token_expires_ms = when[c->expiry];
    r->resumable = c->resumable == 0 ? -1 : c->resumable == 2;
    s->ledger.program_seq = c->program ? 2 : 0;
    s->ledger.program_kind = c->program ? TIDE_KIND_PROGRAM : 0;
    return s;
}

/* "resume {…};cancel {};" */
static void join_next(char out[512], const struct status *st)
{
    struct buf text = BUF_INIT(512);

    for (size_t i = 0; i < st->next_count; i++) {
        struct json_out o = json_out_to(&text);

        buf_addf(&text, "%s ", tide_action_name(st->next[i].action));
        action_write_arguments(&o, &st->next[i]);
        buf_add_char(&text, ';');
    }
    snprintf(out, 512, "%s", buf_cstr(&text));
    buf_done(&text);
}

static void check_one(const struct conditions *c)
{
    struct state *s = state_of(c);
    const char *want = want_status(c);
    struct status got;
    char next[512];

    status_derive(&got, s, c->alive, NOW);
    join_next(next, &got);
    if (strcmp(tide_status_name(got.status), want) != 0 ||
        strcmp(tide_outcome_name(got.outcome), want_outcome(c, want)) != 0 ||
        got.is_resumable != want_resumable(c, want) || got.needs_resume != want_needs(c, want) ||
        strcmp(next, want_next(c, want)) != 0)
        fail_msg("end %d waiting %d token %d deadline %d due %d expiry %d alive %d resumable %d program %d: %s/%s "
                 "resumable %d needs %d next %s; should be %s/%s %d %d %s",
                 c->end, c->waiting, c->token, c->deadline, c->due, c->expiry, c->alive, c->resumable, c->program,
                 tide_status_name(got.status), tide_outcome_name(got.outcome), got.is_resumable, got.needs_resume, next,
                 want, want_outcome(c, want), want_resumable(c, want), want_needs(c, want), want_next(c, want));
    if (strcmp(want, "waiting") == 0 && (c->due == PASSED || answers_itself(c)))
        assert_string_equal(got.reason, "due");
    assert_true(got.why[0] && got.reason[0]); /* every status says why in words */
    assert_true(strlen(got.why) < sizeof got.why - 1);
    assert_non_null(got.graph_status);
    assert_non_null(got.task_state);
    assert_true(status_matches(&got, tide_status_name(got.status)) && status_matches(&got, got.graph_status) &&
                status_matches(&got, got.task_state));
    state_free(s);
}

static void every_combination_follows_the_table(void **unused)
{
    int n = 0, all = 1;

    (void)unused;
    for (size_t i = 0; i < N_SIZES; i++)
        all *= sizes[i].n;
    for (int at = 0; at < all; at++, n++) {
        struct conditions c;
        int rest = at;

        for (size_t i = 0; i < N_SIZES; i++) {
            *(int *)((char *)&c + sizes[i].at) = rest % sizes[i].n;
            rest /= sizes[i].n;
        }
        check_one(&c);
    }
    assert_int_equal(n, 4 * 19440);
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
        if (strcmp(tide_status_name(got.status), logs[i].status) != 0 ||
            strcmp(tide_outcome_name(got.outcome), logs[i].outcome) != 0 || strcmp(got.reason, logs[i].reason) != 0)
            fail_msg("%s: %s/%s/%s, should be %s/%s/%s", logs[i].name, tide_status_name(got.status),
                     tide_outcome_name(got.outcome), got.reason, logs[i].status, logs[i].outcome, logs[i].reason);
        arena_done(&scratch);
        state_free(s);
    }
}

static void a_superseded_run_is_not_resumable(void **unused)
{
    struct state *s = state_new(STR("s"));
    struct status got;

    (void)unused;
    s->ledger.run.end = RUN_CANCELLED;
    s->ledger.run.resumable = -1;
    s->ledger.program_seq = 2;
    s->ledger.program_kind = TIDE_KIND_PROGRAM;
    text_set(&s->ledger.run.reason, STR("user"));
    status_derive(&got, s, false, NOW);
    assert_true(got.is_resumable);
    assert_false(got.needs_resume);
    assert_int_equal(got.next[0].action, TIDE_ACTION_RESUME);
    assert_int_equal(got.kind, TIDE_KIND_PROGRAM);
    text_set(&s->ledger.run.reason, STR("superseded"));
    status_derive(&got, s, false, NOW);
    assert_false(got.is_resumable);
    assert_int_equal(got.next[0].action, TIDE_ACTION_START);
    state_free(s);
}

static void an_approval_is_answered_with_yes(void **unused)
{
    struct state *s = state_new(STR("s"));
    struct run *r = &s->ledger.run;
    struct status got;

    (void)unused;
    r->end = RUN_OPEN;
    r->waiting = true;
    r->token = TOKEN_ACTIVE;
    s->ledger.program_seq = 2;
    s->ledger.program_kind = TIDE_KIND_PROGRAM;
    text_set(&r->wait_kind, STR("approval"));
    status_derive(&got, s, false, NOW);
    assert_int_equal(got.next[0].action, TIDE_ACTION_ANSWER);
    assert_string_equal(got.next[0].wait_kind, "approval");
    state_free(s);
}

/* ---- Sentences ----------------------------------------------------------------------------------------------- */

static void sentences_say_what_and_when(void **unused)
{
    struct state *s = state_new(STR("s"));
    struct run *r = &s->ledger.run;
    struct status got;

    (void)unused;
    r->end = RUN_OPEN;
    r->pid = 4711;
    s->ts_ms = 1771668070123;
    s->ledger.effects_completed = 3;
    status_derive(&got, s, false, NOW);
    assert_string_equal(got.why,
                        "the process that ran it (pid 4711) is gone; its last event was at 2026-02-21 10:01:10 "
                        "UTC; 3 steps had been finished; resume it with the program that created it");
    r->waiting = true;
    r->token = TOKEN_ACTIVE;
    r->since_ms = s->ts_ms;
    r->deadline_ms = 1771668071000;
    text_set(&r->wait_kind, STR("approval"));
    text_set(&r->question, STR("ship it?"));
    s->ledger.program_seq = 2;
    s->ledger.program_kind = TIDE_KIND_PROGRAM;
    status_derive(&got, s, false, NOW);
    assert_string_equal(got.why, "it waits for approval: \"ship it?\", since 2026-02-21 10:01:10 UTC, until 2026-02-21 "
                                 "10:01:11 UTC; then it is interrupted");
    r->on_deadline = TIDE_ON_DEADLINE_FAIL;
    status_derive(&got, s, false, NOW);
    assert_non_null(strstr(got.why, "10:01:11 UTC; then its run fails"));
    r->on_deadline = TIDE_ON_DEADLINE_DEFAULT;
    text_set(&r->default_answer, STR("\"no\""));
    status_derive(&got, s, false, NOW);
    assert_non_null(strstr(got.why, "10:01:11 UTC; then it is answered with \"no\""));
    state_free(s);
}

/* A question of any length leaves room for what follows it, and is cut at a character. */
static void a_long_question_is_cut_at_a_character(void **unused)
{
    struct state *s = state_new(STR("s"));
    struct run *r = &s->ledger.run;
    struct status got;
    char question[4000] = "x";

    (void)unused;
    for (size_t i = 1; i + 3 < sizeof question; i += 3)
        memcpy(question + i, "€", 4);
    r->end = RUN_OPEN;
    r->waiting = true;
    r->token = TOKEN_REVOKED;
    text_set(&r->question, str_from(question));
    text_set(&r->wait_kind, str_from(question));
    status_derive(&got, s, false, NOW);
    assert_true(str_is_utf8(str_from(got.why), NULL));
    assert_non_null(strstr(got.why, "was revoked"));
    text_set(&r->reason, str_from(question));
    text_set(&r->error_message, str_from(question));
    text_set(&r->failed_at_node, str_from(question));
    r->end = RUN_FAILED;
    status_derive(&got, s, false, NOW);
    assert_true(str_is_utf8(str_from(got.why), NULL));
    state_free(s);
}

/* ---- Pairs of conditions, as logs through the API --------------------------------------------------------------- */

#define PAST "2001-01-01T00:00:00.000Z"
#define FUTURE "2999-01-01T00:00:00.000Z"

/* One event of a run by hand: its ids are added, `more` are further members, beginning with a comma. */
static void write_event(tide_session *s, int run, const char *kind, const char *more)
{
    bool token = strncmp(kind, "token.", 6) == 0;
    char wait[64] = "";

    if (strcmp(kind, "run.waiting") == 0)
        snprintf(wait, sizeof wait, ",\"wait_kind\":\"input\",\"resume_token_id\":\"t%d\"", run);
    put(s, kind, "{\"%s\":\"%s%d\"%s%s}", token ? "token_id" : "run_id", token ? "t" : "r", run, wait, more);
}

struct seen {
    char got[32], id[TIDE_ID_SIZE];
    int n;
};

static int see(void *arg, const struct tide_session_info *info)
{
    struct seen *seen = arg;

    snprintf(seen->got, sizeof seen->got, "%s", tide_status_name(info->status));
    snprintf(seen->id, sizeof seen->id, "%s", info->id);
    seen->n++;
    assert_true(info->why[0] && info->reason[0] && info->next[0].action && info->kind && info->graph_status[0] &&
                info->task_state[0]);
    return 1;
}

/* What a reader sees who comes from outside, by the log and by the summary that lists read. */
static void expect_status(tide_store *store, const char *id, const char *want, const char *name, const char *second)
{
    const struct tide_list_filter newest = {.size = sizeof newest, .limit = 1};
    struct seen shown = {.n = 0}, listed = {.n = 0};
    tide_session *s;

    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(session_shown(s, see, &shown, &err));
    tide_session_close(s);
    OK(tide_session_list(store, &newest, see, &listed, &err));
    assert_string_equal(listed.id, id);
    if (strcmp(shown.got, want) != 0 || strcmp(listed.got, want) != 0)
        fail_msg("%s; %s: shown as %s, listed as %s, should be %s", name, second, shown.got, listed.got, want);
}

struct piece {
    const char *name;
    const char *log[4][2];
    const char *held, *left; /* its status while its writer holds the lease, and after */
};

/* What a run may look like. */
static const struct piece pieces[] = {
    {"begun", {{"run.started", ""}}, "running", "interrupted_startup"},
    {"cut while it ran",
     {{"run.started", ""}, {"run.interrupted", ",\"reason\":\"process_restart\""}},
     "interrupted_startup",
     "interrupted_startup"},
    {"stopped in order",
     {{"run.started", ""}, {"run.interrupted", ",\"reason\":\"shutdown\""}},
     "interrupted_startup",
     "interrupted_startup"},
    {"waits without a token", {{"run.started", ""}, {"run.waiting", ""}}, "interrupted_waiting", "interrupted_waiting"},
    {"waits", {{"run.started", ""}, {"token.minted", ""}, {"run.waiting", ""}}, "waiting", "waiting"},
    {"token revoked",
     {{"run.started", ""}, {"token.minted", ""}, {"run.waiting", ""}, {"token.revoked", ""}},
     "interrupted_waiting",
     "interrupted_waiting"},
    {"deadline passed",
     {{"run.started", ""}, {"token.minted", ""}, {"run.waiting", ",\"deadline_at\":\"" PAST "\""}},
     "interrupted_waiting",
     "interrupted_waiting"},
    {"asleep", {{"run.started", ""}, {"run.waiting", ",\"due_at\":\"" FUTURE "\""}}, "waiting", "waiting"},
    {"due", {{"run.started", ""}, {"run.waiting", ",\"due_at\":\"" PAST "\""}}, "waiting", "waiting"},
    {"parked when its process ended",
     {{"run.started", ""},
      {"token.minted", ""},
      {"run.waiting", ""},
      {"run.interrupted", ",\"reason\":\"process_exit\""}},
     "interrupted_waiting",
     "interrupted_waiting"},
    {"answered",
     {{"run.started", ""}, {"token.minted", ""}, {"run.waiting", ""}, {"run.resumed", ""}},
     "running",
     "interrupted_startup"},
    {"completed", {{"run.started", ""}, {"run.completed", ""}}, "idle", "idle"},
    {"failed", {{"run.started", ""}, {"run.failed", ""}}, "idle", "idle"},
    {"cancelled while it waited",
     {{"run.started", ""}, {"token.minted", ""}, {"run.waiting", ""}, {"run.cancelled", ""}},
     "idle",
     "idle"},
};

#define N_PIECES (sizeof pieces / sizeof pieces[0])

static tide_store *store_make(char dir[256])
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    char path[300];
    tide_store *store;

    store_url_in(path, sizeof path, dir_make(dir), "t");
    OK(tide_store_open(path, &opt, &store, &err));
    return store;
}

static void write_piece(tide_session *s, int run, const struct piece *p)
{
    for (size_t i = 0; i < 4 && p->log[i][0]; i++)
        write_event(s, run, p->log[i][0], p->log[i][1]);
}

/* Whatever an earlier run left behind, the latest one alone decides. */
static void of_every_pair_of_runs_the_later_decides(void **unused)
{
    char dir[256], id[TIDE_ID_SIZE];
    tide_store *store = store_make(dir);

    (void)unused;
    for (size_t i = 0; i < N_PIECES * N_PIECES; i++) {
        const struct piece *first = &pieces[i / N_PIECES], *second = &pieces[i % N_PIECES];
        tide_session *s;

        OK(tide_session_create(store, NULL, NULL, &s, &err));
        snprintf(id, sizeof id, "%s", tide_session_id(s));
        write_piece(s, 1, first);
        expect_status(store, id, first->held, first->name, "held");
        write_piece(s, 2, second);
        expect_status(store, id, second->held, first->name, second->name);
        tide_session_close(s);
        expect_status(store, id, second->left, first->name, second->name);
    }
    tide_store_close(store);
    dir_remove(dir);
}

static const struct {
    const char *minted, *after; /* members of token.minted, NULL: none is; what happens to the token then */
    int token, expiry;
} tokens[] = {
    {NULL, NULL, TOKEN_NONE, NO_TIME},
    {"", NULL, TOKEN_ACTIVE, NO_TIME},
    {",\"expires_at\":\"" FUTURE "\"", NULL, TOKEN_ACTIVE, AHEAD},
    {",\"expires_at\":\"" PAST "\"", NULL, TOKEN_ACTIVE, PASSED},
    {"", "token.consumed", TOKEN_CONSUMED, NO_TIME},
    {"", "token.revoked", TOKEN_REVOKED, NO_TIME},
    {",\"expires_at\":\"" PAST "\"", "token.expired", TOKEN_EXPIRED, PASSED},
};
static const struct {
    const char *more;
    int deadline, due, on_deadline;
} times[] = {
    {"", NO_TIME, NO_TIME, 0},
    {",\"deadline_at\":\"" FUTURE "\"", AHEAD, NO_TIME, 0},
    {",\"deadline_at\":\"" PAST "\"", PASSED, NO_TIME, 0},
    {",\"on_deadline\":\"later\",\"deadline_at\":\"" PAST "\"", PASSED, NO_TIME, 0},
    {",\"on_deadline\":\"interrupt\",\"deadline_at\":\"" PAST "\"", PASSED, NO_TIME, TIDE_ON_DEADLINE_INTERRUPT},
    {",\"on_deadline\":\"fail\",\"deadline_at\":\"" PAST "\"", PASSED, NO_TIME, TIDE_ON_DEADLINE_FAIL},
    {",\"on_deadline\":\"fail\",\"deadline_at\":\"" FUTURE "\"", AHEAD, NO_TIME, TIDE_ON_DEADLINE_FAIL},
    {",\"on_deadline\":\"default\",\"default\":1,\"deadline_at\":\"" PAST "\"", PASSED, NO_TIME,
     TIDE_ON_DEADLINE_DEFAULT},
    {",\"on_deadline\":\"default\",\"default\":1,\"deadline_at\":\"" FUTURE "\"", AHEAD, NO_TIME,
     TIDE_ON_DEADLINE_DEFAULT},
    {",\"due_at\":\"" FUTURE "\"", NO_TIME, AHEAD, 0},
    {",\"due_at\":\"" PAST "\"", NO_TIME, PASSED, 0},
    {",\"deadline_at\":\"" PAST "\",\"due_at\":\"" FUTURE "\"", PASSED, AHEAD, 0},
};
static const struct {
    const char *kind;
    int end, waiting;
} ends[] = {
    {NULL, RUN_OPEN, true},
    {"run.resumed", RUN_OPEN, false},
    {"run.interrupted", RUN_INTERRUPTED, true},
    {"run.completed", RUN_COMPLETED, true},
    {"run.failed", RUN_FAILED, true},
    {"run.cancelled", RUN_CANCELLED, true},
};

#define COUNT(table) (sizeof table / sizeof table[0])

/* One run that waits, with this token, these times and this end: the claims say what it must be. */
static void check_wait(tide_store *store, size_t token, size_t time, size_t end)
{
    struct conditions c = {.end = ends[end].end,
                           .waiting = ends[end].waiting,
                           .token = tokens[token].token,
                           .expiry = tokens[token].expiry,
                           .deadline = times[time].deadline,
                           .due = times[time].due,
                           .on_deadline = times[time].on_deadline,
                           .alive = true};
    const char *name = ends[end].kind ? ends[end].kind : "waits";
    char id[TIDE_ID_SIZE];
    tide_session *s;

    OK(tide_session_create(store, NULL, NULL, &s, &err));
    snprintf(id, sizeof id, "%s", tide_session_id(s));
    write_event(s, 1, "run.started", "");
    if (tokens[token].minted)
        write_event(s, 1, "token.minted", tokens[token].minted);
    write_event(s, 1, "run.waiting", times[time].more);
    if (tokens[token].after)
        write_event(s, 1, tokens[token].after, "");
    if (ends[end].kind)
        write_event(s, 1, ends[end].kind, "");
    expect_status(store, id, want_status(&c), name, times[time].more);
    tide_session_close(s);
    c.alive = false;
    expect_status(store, id, want_status(&c), name, times[time].more);
}

static void every_pair_of_conditions_of_a_wait_follows_the_precedence(void **unused)
{
    char dir[256];
    tide_store *store = store_make(dir);

    (void)unused;
    for (size_t token = 0; token < COUNT(tokens); token++)
        for (size_t time = 0; time < COUNT(times); time++)
            for (size_t end = 0; end < COUNT(ends); end++)
                check_wait(store, token, time, end);
    tide_store_close(store);
    dir_remove(dir);
}

/* ---- Words --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    int end;
    bool waiting, resumable, alive;
    bool fits;
} words[] = {
    {"running", RUN_OPEN, false, true, true, true},
    {"active", RUN_OPEN, false, true, true, true},
    {"RUNNING", RUN_OPEN, false, true, true, true},
    {"none", RUN_OPEN, false, true, true, false},
    {"waiting", RUN_OPEN, true, true, true, true},
    {"paused", RUN_OPEN, true, true, false, true},
    {"paused", RUN_INTERRUPTED, true, true, false, true},
    {"paused", RUN_INTERRUPTED, false, true, false, false},
    {"completed", RUN_COMPLETED, false, true, false, true},
    {"completed", RUN_FAILED, false, true, false, false},
    {"COMPLETED", RUN_COMPLETED, false, true, false, true},
    {"failed", RUN_FAILED, false, true, false, true},
    {"failed", RUN_INTERRUPTED, false, true, false, true},
    {"FAILED", RUN_INTERRUPTED, false, true, false, false},
    {"cancelled", RUN_CANCELLED, false, true, false, true},
    {"CANCELLED", RUN_CANCELLED, true, true, false, true},
    {"WAITING_FOR_INPUT", RUN_INTERRUPTED, false, true, false, true},
    {"WAITING_FOR_INPUT", RUN_INTERRUPTED, false, false, false, false},
    {"WAITING_FOR_INPUT", RUN_OPEN, true, true, false, true},
    {"ERROR", RUN_INTERRUPTED, false, false, false, true},
    {"ERROR", RUN_INTERRUPTED, true, false, false, true},
    {"ERROR", RUN_INTERRUPTED, true, true, false, false},
    {"idle", RUN_COMPLETED, false, true, false, true},
    {"idle", RUN_OPEN, false, true, true, false},
    {"IDLE", RUN_NONE, false, true, false, true},
    {"IDLE", RUN_COMPLETED, false, true, false, false},
    {"none", RUN_NONE, false, true, false, true},
    {"interrupted", RUN_INTERRUPTED, true, true, false, true},
    {"interrupted", RUN_OPEN, false, true, false, true},
    {"waiting", RUN_INTERRUPTED, true, true, false, false},
};

static void filters_take_both_vocabularies(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(words); i++) {
        struct state *s = state_new(STR("s"));
        struct status st;

        s->ledger.run.end = (enum run_end)words[i].end;
        s->ledger.run.waiting = words[i].waiting;
        s->ledger.run.due_ms = words[i].waiting ? NOW + 1 : 0;
        s->ledger.run.resumable = words[i].resumable;
        status_derive(&st, s, words[i].alive, NOW);
        assert_true(status_word_known(words[i].word));
        if (status_matches(&st, words[i].word) != words[i].fits)
            fail_msg("'%s' and %s/%s (%zu)", words[i].word, tide_status_name(st.status), tide_outcome_name(st.outcome),
                     i);
        state_free(s);
    }
    assert_false(status_word_known("asleep"));
    assert_false(status_word_known(""));
}

static void a_damaged_one_is_told_apart(void **unused)
{
    struct status st;

    (void)unused;
    status_damaged(&st, "seq 3: its digest does not fit");
    assert_int_equal(st.next[0].action, TIDE_ACTION_VERIFY);
    assert_true(status_matches(&st, "damaged") && status_matches(&st, "ERROR") && !status_matches(&st, "none"));
    assert_string_equal(st.why, "seq 3: its digest does not fit");
}

#define STARTS(more)                                                                                                   \
    {                                                                                                                  \
        "run.started", "{\"run_id\":\"r\"" more "}"                                                                    \
    }
#define AGENT STARTS(",\"loop\":\"agent\"")
#define GRAPH STARTS(",\"loop\":\"graph\",\"graph_digest\":\"d\",\"graph\":{}")
#define PROGRAM STARTS(",\"argv\":[\"a\"],\"cwd\":\"/\"")
#define MADE(fields)                                                                                                   \
    {                                                                                                                  \
        "session.created", "{" fields "}"                                                                              \
    }

static const struct {
    const char *name;
    const char *log[3][2];
    enum tide_session_kind want;
} kind_rows[] = {
    {"nothing", {MADE("")}, TIDE_KIND_LOG},
    {"made for a graph", {MADE("\"loop\":\"graph\",\"provider\":{\"type\":\"script\"}")}, TIDE_KIND_GRAPH},
    {"made for a chat", {MADE("\"provider\":{\"type\":\"script\"}")}, TIDE_KIND_CHAT},
    {"a run of an embedder's own", {MADE("\"provider\":{\"type\":\"script\"}"), STARTS("")}, TIDE_KIND_LOG},
    {"an agent", {MADE(""), AGENT}, TIDE_KIND_CHAT},
    {"a program in a chat", {MADE(""), AGENT, PROGRAM}, TIDE_KIND_PROGRAM},
    {"a program where a graph ran", {MADE(""), GRAPH, PROGRAM}, TIDE_KIND_PROGRAM},
    {"a graph where a program ran", {MADE(""), PROGRAM, GRAPH}, TIDE_KIND_GRAPH},
    {"a graph in a chat", {MADE(""), AGENT, GRAPH}, TIDE_KIND_GRAPH},
    {"an agent where a graph ran", {MADE(""), GRAPH, AGENT}, TIDE_KIND_CHAT},
};

static void what_it_ran_last_is_its_kind(void **unused)
{
    struct arena scratch = ARENA_INIT;

    (void)unused;
    for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++) {
        struct state *s = state_new(STR("s")), *again = NULL;
        struct buf text = BUF_INIT(1 << 20);

        for (int n = 0; n < 3 && kind_rows[i].log[n][0]; n++) {
            struct event ev = {
                .seq = n + 1, .kind = str_from(kind_rows[i].log[n][0]), .body = str_from(kind_rows[i].log[n][1])};

            state_apply(s, &ev, &scratch);
        }
        state_encode(&text, s, STATE_SUMMARY);
        OK(state_decode(buf_view(&text), &again, &err));
        if (session_kind(s) != kind_rows[i].want || session_kind(again) != kind_rows[i].want)
            fail_msg("%s: %d, %d of its summary", kind_rows[i].name, session_kind(s), session_kind(again));
        buf_done(&text);
        state_free(again);
        state_free(s);
    }
    arena_done(&scratch);
}

static const struct {
    const char *ledger, *position;
    enum tide_session_kind want;
} old_states[] = {
    {"\"program_seq\":3,\"loop_seq\":3", "", TIDE_KIND_CHAT},
    {"\"program_seq\":3,\"loop_seq\":2", "\"graph_digest\":\"d\"", TIDE_KIND_PROGRAM},
    {"\"program_seq\":3", "\"graph_digest\":\"d\"", TIDE_KIND_GRAPH},
    {"\"program_seq\":3", "", TIDE_KIND_PROGRAM},
};

static void a_state_of_an_earlier_version_has_a_kind(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof old_states / sizeof old_states[0]; i++) {
        struct state *s = NULL;
        char text[300];

        snprintf(text, sizeof text, "{\"session_id\":\"s\",\"seq\":4,\"content\":{\"position\":{%s}},\"ledger\":{%s}}",
                 old_states[i].position, old_states[i].ledger);
        OK(state_decode(str_from(text), &s, &err));
        assert_int_equal(session_kind(s), old_states[i].want);
        state_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_follows_the_table),
        cmocka_unit_test(logs_give_the_status_people_expect),
        cmocka_unit_test(a_superseded_run_is_not_resumable),
        cmocka_unit_test(what_it_ran_last_is_its_kind),
        cmocka_unit_test(a_state_of_an_earlier_version_has_a_kind),
        cmocka_unit_test(an_approval_is_answered_with_yes),
        cmocka_unit_test(sentences_say_what_and_when),
        cmocka_unit_test(a_long_question_is_cut_at_a_character),
        cmocka_unit_test(of_every_pair_of_runs_the_later_decides),
        cmocka_unit_test(every_pair_of_conditions_of_a_wait_follows_the_precedence),
        cmocka_unit_test(filters_take_both_vocabularies),
        cmocka_unit_test(a_damaged_one_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
