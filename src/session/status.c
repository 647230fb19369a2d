/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status, by precedence: interrupted_startup, interrupted_waiting, waiting, running, idle. Nothing is stored: ask twice at
 * different times and the answer may differ, because owners die and deadlines pass.
 *
 * In order: which of the five it is; then the same in the words of graphs and of task sessions. What it says about itself is
 * in status_why.c, the commands that move it in status_next.c.
 */
#include "session/status_internal.h"

#include "base/invariant.h"
#include "session/settle.h"

/* ---- Which it is --------------------------------------------------------------------------------------------------- */

/* Why a wait for someone cannot be answered any more; NULL when it can, or when it waits for the clock. */
static const char *wait_trouble(const struct run *r, int64_t now_ms)
{
    static const char *const reasons[] = {[TOKEN_NONE] = "token_missing",
                                          [TOKEN_ACTIVE] = NULL,
                                          [TOKEN_CONSUMED] = "token_consumed",
                                          [TOKEN_REVOKED] = "token_revoked",
                                          [TOKEN_EXPIRED] = "token_expired"};

    if (r->due_ms)
        return NULL;
    if (settle_deadline(r, now_ms))
        return settle_deadline(r, now_ms) == TIDE_ON_DEADLINE_DEFAULT ? NULL : "wait_timeout";
    if (r->token == TOKEN_ACTIVE && r->token_expires_ms && r->token_expires_ms <= now_ms)
        return "token_expired";
    return reasons[r->token];
}

static void set_status(struct status *s, enum tide_status status, const char *reason, bool resumable, bool needs)
{
    s->status = status;
    s->reason = reason;
    s->is_resumable = resumable;
    s->needs_resume = resumable && needs;
}

static void set_interrupted(struct status *s, enum tide_status status, const char *reason, const struct run *r)
{
    set_status(s, status, reason, r->resumable != 0, true);
    s->outcome = TIDE_OUTCOME_INTERRUPTED;
}

static bool idle_resumable(const struct run *r, bool has_program)
{
    switch (r->end) {
    case RUN_FAILED: /* our own runs always say; of others' logs it is not promised */
        return r->resumable == 1 || (r->resumable < 0 && has_program);
    case RUN_CANCELLED:
        return r->resumable != 0 && !(r->reason && strcmp(r->reason, "superseded") == 0);
    default:
        return false;
    }
}

static void derive_status(const struct subject *o, bool owner_alive)
{
    static const enum tide_outcome outcomes[] = {[RUN_COMPLETED] = TIDE_OUTCOME_COMPLETED,
                                                 [RUN_FAILED] = TIDE_OUTCOME_FAILED,
                                                 [RUN_CANCELLED] = TIDE_OUTCOME_CANCELLED,
                                                 [RUN_INTERRUPTED] = TIDE_OUTCOME_INTERRUPTED};
    const struct run *r = o->run;
    struct status *s = o->st;
    bool open = r->end == RUN_OPEN, cut = r->end == RUN_INTERRUPTED;
    const char *trouble = open && r->waiting ? wait_trouble(r, o->now_ms) : NULL;

    s->outcome = outcomes[r->end];
    if (settle_deadline(r, o->now_ms) == TIDE_ON_DEADLINE_FAIL) { /* as it is when somebody has written it down */
        set_status(s, TIDE_STATUS_IDLE, "wait_timeout", r->resumable != 0, true);
        s->outcome = TIDE_OUTCOME_FAILED;
        return;
    }
    if (!r->waiting && (cut || (open && !owner_alive)))
        set_interrupted(s, TIDE_STATUS_INTERRUPTED_STARTUP,
                        open        ? "owner_gone"
                        : r->reason ? r->reason
                                    : "interrupted",
                        r);
    else if (trouble || (cut && r->waiting))
        set_interrupted(s, TIDE_STATUS_INTERRUPTED_WAITING,
                        trouble     ? trouble
                        : r->reason ? r->reason
                                    : "interrupted",
                        r);
    else if (open && r->waiting)
        set_status(s, TIDE_STATUS_WAITING,
                   !status_due_ms(o)               ? wait_word(r)
                   : status_due_ms(o) <= o->now_ms ? "due"
                                                   : "timer",
                   true, false);
    else if (open)
        set_status(s, TIDE_STATUS_RUNNING, "running", false, false);
    else
        set_status(s, TIDE_STATUS_IDLE, r->reason ? r->reason : tide_outcome_name(s->outcome),
                   idle_resumable(r, o->has_program), r->end == RUN_FAILED);
}

/* ---- Both vocabularies --------------------------------------------------------------------------------------------- */

enum { ANY = -1 };

/* The words that graphs and task sessions have for it. The first row that fits counts. */
static const struct words {
    enum tide_status status;
    int outcome, resumable;
    const char *graph, *task;
} vocabulary[] = {
    {TIDE_STATUS_RUNNING, ANY, ANY, "active", "RUNNING"},
    {TIDE_STATUS_WAITING, ANY, ANY, "paused", "WAITING_FOR_INPUT"},
    {TIDE_STATUS_IDLE, TIDE_OUTCOME_COMPLETED, ANY, "completed", "COMPLETED"},
    {TIDE_STATUS_IDLE, TIDE_OUTCOME_FAILED, ANY, "failed", "FAILED"},
    {TIDE_STATUS_IDLE, TIDE_OUTCOME_CANCELLED, ANY, "cancelled", "CANCELLED"},
    {TIDE_STATUS_IDLE, TIDE_OUTCOME_NONE, ANY, "idle", "IDLE"},
    {TIDE_STATUS_INTERRUPTED_STARTUP, ANY, true, "failed", "WAITING_FOR_INPUT"},
    {TIDE_STATUS_INTERRUPTED_STARTUP, ANY, false, "failed", "ERROR"},
    {TIDE_STATUS_INTERRUPTED_WAITING, ANY, true, "paused", "WAITING_FOR_INPUT"},
    {TIDE_STATUS_INTERRUPTED_WAITING, ANY, false, "paused", "ERROR"},
    {TIDE_STATUS_DAMAGED, ANY, ANY, "damaged", "ERROR"},
};

#define N_WORDS (sizeof vocabulary / sizeof vocabulary[0])

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void translate_status(struct status *s)
{
    for (size_t i = 0; i < N_WORDS; i++) {
        const struct words *w = &vocabulary[i];

        if (w->status == s->status && (w->outcome == ANY || w->outcome == (int)s->outcome) &&
            (w->resumable == ANY || w->resumable == (int)s->is_resumable)) {
            s->graph_status = w->graph;
            s->task_state = w->task;
            return;
        }
    }
}

bool status_word_known(const char *word)
{
    int outcome = tide_outcome_from(word);

    if (tide_status_from(word) > 0 || (outcome >= 0 && outcome != TIDE_OUTCOME_UNKNOWN))
        return true;
    for (size_t i = 0; i < N_WORDS; i++) {
        if (same(vocabulary[i].graph, word) || same(vocabulary[i].task, word))
            return true;
    }
    return false;
}

/* An outcome selects finished sessions; only "interrupted" is one of sessions that are not idle. */
bool status_matches(const struct status *s, const char *word)
{
    bool ended = s->status == TIDE_STATUS_IDLE || s->outcome == TIDE_OUTCOME_INTERRUPTED;

    return (int)s->status == tide_status_from(word) || (ended && (int)s->outcome == tide_outcome_from(word)) ||
           same(s->graph_status, word) || same(s->task_state, word);
}

/* ---- All of it ----------------------------------------------------------------------------------------------------- */

static bool is_new(const struct state *state)
{
    return !state->ledger.runs && !state->content.position.graph_digest;
}

bool status_is_new_graph(const struct state *state)
{
    return is_new(state) && same(map_get(&state->info.fields, STR("loop")), "\"graph\"");
}

enum tide_session_kind session_kind(const struct state *state)
{
    const struct map *info = &state->info.fields;

    if (state->ledger.program_seq)
        return (enum tide_session_kind)state->ledger.program_kind;
    if (is_new(state) && same(map_get(info, STR("loop")), "\"task\""))
        return TIDE_KIND_TASK;
    if (state->content.position.graph_digest ||
        status_is_new_graph(state)) /* a fork continues with its parent's graph */
        return TIDE_KIND_GRAPH;
    /* chats of earlier versions name their provider only with their first prompt */
    if (is_new(state) && (map_get(info, STR("provider")) || same(map_get(info, STR("agent")), "\"chat\"")))
        return TIDE_KIND_CHAT;
    return TIDE_KIND_LOG;
}

void status_derive_alive(struct status *s, const struct state *state, const struct status_alive *alive, int64_t now_ms)
{
    const struct ledger *l = &state->ledger;
    enum tide_session_kind kind = session_kind(state);
    const struct subject o = {s,
                              state,
                              &l->run,
                              ledger_has_program(l),
                              now_ms,
                              alive,
                              kind == TIDE_KIND_CHAT,
                              kind == TIDE_KIND_GRAPH && state->content.position.graph_digest};

    memset(s, 0, sizeof *s);
    s->kind = kind;
    derive_status(&o, alive->owner);
    if (settle_delivers(state) && (s->status == TIDE_STATUS_IDLE || s->status == TIDE_STATUS_WAITING))
        s->is_resumable = s->needs_resume = true;
    translate_status(s);
    status_say(&o);
    status_offer(&o);
    INVARIANT(s->status && s->reason && s->graph_status && s->task_state && s->why[0]);
    INVARIANT(s->next_count <= STATUS_NEXT);
}

void status_derive(struct status *s, const struct state *state, bool owner_alive, int64_t now_ms)
{
    status_derive_alive(s, state, &(struct status_alive){.owner = owner_alive}, now_ms);
}

void status_untrusted(struct status *s)
{
    size_t len = strlen(s->why);

    s->untrusted = true;
    snprintf(s->why + len, sizeof s->why - len,
             "; it did not begin here, or something else wrote to it: nothing of it runs until it is trusted");
    s->next_count = 0;
    s->next[s->next_count++] = (struct action){.action = TIDE_ACTION_TRUST, .kind = s->kind};
}

void status_damaged(struct status *s, const char *why)
{
    memset(s, 0, sizeof *s);
    set_status(s, TIDE_STATUS_DAMAGED, "damaged", false, false);
    translate_status(s);
    snprintf(s->why, sizeof s->why, "%s", why);
    s->next[s->next_count++] = (struct action){.action = TIDE_ACTION_VERIFY};
}
