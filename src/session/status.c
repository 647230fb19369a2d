/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status, by precedence: interrupted_startup, interrupted_waiting, waiting, running, idle. Nothing is stored: ask twice at
 * different times and the answer may differ, because owners die and deadlines pass.
 */
#include "session/status.h"

#include "base/timefmt.h"

static const char *outcome_of(const struct run *r)
{
    static const char *const words[] = {"none", "none", "completed", "failed", "cancelled", "interrupted"};

    return words[r->end];
}

/* Why a wait cannot be answered any more; NULL when it can. */
static const char *wait_trouble(const struct run *r, int64_t now_ms)
{
    if (r->due_ms)
        return NULL;
    if (r->deadline_ms && r->deadline_ms <= now_ms)
        return "wait_timeout";
    if (r->token == TOKEN_REVOKED)
        return "token_revoked";
    if (r->token == TOKEN_EXPIRED || (r->token_expires_ms && r->token_expires_ms <= now_ms))
        return "token_expired";
    return r->token == TOKEN_ACTIVE ? NULL : "token_missing";
}

static void set(struct status *s, const char *status, const char *reason, bool resumable, bool needs)
{
    s->status = status;
    s->reason = reason;
    s->is_resumable = resumable;
    s->needs_resume = needs;
}

static void say_waiting(struct status *s, const struct run *r, int64_t now_ms)
{
    char when[TIME_TEXT_SIZE];

    if (r->due_ms) {
        time_format(when, r->due_ms);
        set(s, "waiting", r->due_ms <= now_ms ? "due" : "timer", true, false);
        snprintf(s->why, sizeof s->why,
                 r->due_ms <= now_ms ? "it was due at %s and goes on as soon as something runs it"
                                     : "it sleeps until %s",
                 when);
        return;
    }
    set(s, "waiting", r->wait_kind ? r->wait_kind : "input", true, false);
    snprintf(s->why, sizeof s->why, "it waits for %s%s%s", r->wait_kind ? r->wait_kind : "input",
             r->question ? ": " : "", r->question ? r->question : "");
}

static void say_idle(struct status *s, const struct run *r)
{
    bool failed = r->end == RUN_FAILED;

    set(s, "idle", r->reason ? r->reason : s->outcome, failed && r->resumable == 1, failed && r->resumable == 1);
    if (r->end == RUN_NONE)
        snprintf(s->why, sizeof s->why, "nothing has run in it yet");
    else if (failed)
        snprintf(s->why, sizeof s->why, "its last run failed%s%s%s%s", r->failed_at_node ? " at node " : "",
                 r->failed_at_node ? r->failed_at_node : "", r->error_message ? ": " : "",
                 r->error_message ? r->error_message : "");
    else
        snprintf(s->why, sizeof s->why, "its last run was %s%s%s", s->outcome, r->reason ? ": " : "",
                 r->reason ? r->reason : "");
}

void status_derive(struct status *s, const struct state *state, bool owner_alive, int64_t now_ms)
{
    const struct run *r = &state->ledger.run;
    bool open = r->end == RUN_OPEN, resumable = r->resumable != 0;
    const char *trouble;

    memset(s, 0, sizeof *s);
    s->outcome = outcome_of(r);
    if ((open && !r->waiting && !owner_alive) || (r->end == RUN_INTERRUPTED && !r->waiting)) {
        set(s, "interrupted_startup", r->end == RUN_INTERRUPTED && r->reason ? r->reason : "owner_gone", resumable,
            true);
        s->outcome = "interrupted";
        snprintf(s->why, sizeof s->why, "the process that ran it is gone (%s)", s->reason);
        return;
    }
    trouble = open && r->waiting ? wait_trouble(r, now_ms) : NULL;
    if (trouble || (r->end == RUN_INTERRUPTED && r->waiting)) {
        set(s, "interrupted_waiting", trouble ? trouble : r->reason ? r->reason : "interrupted", resumable, true);
        s->outcome = "interrupted";
        snprintf(s->why, sizeof s->why, "it waited for %s, and that wait has ended (%s)",
                 r->wait_kind ? r->wait_kind : "input", s->reason);
        return;
    }
    if (open && r->waiting) {
        say_waiting(s, r, now_ms);
    } else if (open) {
        set(s, "running", "running", false, false);
        snprintf(s->why, sizeof s->why, "a run is under way");
    } else {
        say_idle(s, r);
    }
}

/* Each word and what it selects: a status, an outcome (with status idle), or both vocabularies' pairs. */
static const struct word {
    const char *word, *status, *outcome;
} words[] = {
    {"running", "running", NULL},
    {"active", "running", NULL},
    {"RUNNING", "running", NULL},
    {"waiting", "waiting", NULL},
    {"paused", "waiting", NULL},
    {"paused", "interrupted_waiting", NULL},
    {"WAITING_FOR_INPUT", "waiting", NULL},
    {"WAITING_FOR_INPUT", "interrupted_startup", NULL},
    {"WAITING_FOR_INPUT", "interrupted_waiting", NULL},
    {"idle", "idle", NULL},
    {"IDLE", "idle", "none"},
    {"none", "idle", "none"},
    {"completed", "idle", "completed"},
    {"COMPLETED", "idle", "completed"},
    {"failed", "idle", "failed"},
    {"failed", "interrupted_startup", NULL},
    {"FAILED", "idle", "failed"},
    {"cancelled", "idle", "cancelled"},
    {"CANCELLED", "idle", "cancelled"},
    {"interrupted", "interrupted_startup", NULL},
    {"interrupted", "interrupted_waiting", NULL},
    {"interrupted_startup", "interrupted_startup", NULL},
    {"interrupted_waiting", "interrupted_waiting", NULL},
    {"damaged", "damaged", NULL},
};

bool status_word_known(const char *word)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, word) == 0)
            return true;
    }
    return false;
}

bool status_matches(const struct status *s, const char *word)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const struct word *w = &words[i];

        if (strcmp(w->word, word) == 0 && strcmp(w->status, s->status) == 0 &&
            (!w->outcome || strcmp(w->outcome, s->outcome) == 0))
            return true;
    }
    return false;
}
