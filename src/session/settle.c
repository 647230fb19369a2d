/* SPDX-License-Identifier: Apache-2.0 */
/* One rule for each way a run can lapse. A wait for a timer never lapses: it is due. */
#include "session/settle.h"

#include "session/token.h"

static bool is_open(const struct run *r)
{
    return r->end == RUN_OPEN;
}

static bool timed_out(const struct run *r, int64_t now_ms)
{
    return is_open(r) && r->waiting && !r->due_ms && r->deadline_ms && r->deadline_ms <= now_ms;
}

static bool token_lapsed(const struct run *r, int64_t now_ms)
{
    return is_open(r) && r->waiting && !r->due_ms && r->token == TOKEN_ACTIVE && r->token_expires_ms &&
           r->token_expires_ms <= now_ms;
}

static void draft_interrupted(struct draft *d, const struct run *r, const char *reason)
{
    draft_open(d, "run.interrupted");
    draft_text(d, "run_id", r->run_id);
    draft_text(d, "reason", reason);
    json_out_kbool(&d->out, STR("resumable"), r->resumable != 0);
    draft_close(d);
}

static void draft_status(struct draft *d, enum tide_status status, const char *reason)
{
    draft_open(d, "status.derived");
    draft_text(d, "status", tide_status_name(status));
    draft_text(d, "reason", reason);
    draft_close(d);
}

enum settled settle_lapsed(struct draft *d, const struct state *s, int64_t now_ms)
{
    const struct run *r = &s->ledger.run;

    if (is_open(r) && !r->waiting) {
        token_moved(d, "token.revoked", r, "process_restart", NULL);
        draft_interrupted(d, r, "process_restart");
        draft_status(d, TIDE_STATUS_INTERRUPTED_STARTUP, "process_restart");
        return SETTLED_INTERRUPTED;
    }
    if (timed_out(r, now_ms)) {
        token_moved(d, "token.revoked", r, "wait_timeout", NULL);
        draft_interrupted(d, r, "wait_timeout");
        draft_status(d, TIDE_STATUS_INTERRUPTED_WAITING, "wait_timeout");
        return SETTLED_TIMED_OUT;
    }
    if (token_lapsed(r, now_ms)) {
        token_moved(d, "token.expired", r, NULL, NULL);
        draft_status(d, TIDE_STATUS_INTERRUPTED_WAITING, "token_expired");
        return SETTLED_TOKEN_EXPIRED;
    }
    return SETTLED_NOTHING;
}

void settle_for_resume(struct draft *d, const struct state *s, const char *reason, int64_t now_ms)
{
    const struct run *r = &s->ledger.run;

    if (!is_open(r))
        return;
    reason = r->waiting ? reason : "process_restart";
    if (token_lapsed(r, now_ms) && !timed_out(r, now_ms))
        token_moved(d, "token.expired", r, NULL, NULL);
    else
        token_moved(d, "token.revoked", r, reason, NULL);
    draft_interrupted(d, r, reason);
    draft_status(d, r->waiting ? TIDE_STATUS_INTERRUPTED_WAITING : TIDE_STATUS_INTERRUPTED_STARTUP, reason);
}

void settle_for_new_run(struct draft *d, const struct state *s)
{
    const struct run *r = &s->ledger.run;

    if (!is_open(r))
        return;
    token_moved(d, "token.revoked", r, r->waiting ? "superseded" : "process_restart", NULL);
    if (!r->waiting) {
        draft_interrupted(d, r, "process_restart");
        draft_status(d, TIDE_STATUS_INTERRUPTED_STARTUP, "process_restart");
        return;
    }
    draft_open(d, "run.cancelled");
    draft_text(d, "run_id", r->run_id);
    draft_text(d, "reason", "superseded");
    draft_close(d);
}

bool settle_is_live(const struct state *s)
{
    return is_open(&s->ledger.run) || s->ledger.run.end == RUN_INTERRUPTED;
}

static void earlier(int64_t *at, int64_t ms)
{
    if (ms && ms < *at)
        *at = ms;
}

int64_t settle_wake_ms(const struct state *s)
{
    const struct run *r = &s->ledger.run;
    int64_t at = INT64_MAX;

    if (!is_open(r))
        return at;
    if (!r->waiting)
        return 0;
    if (r->due_ms)
        return r->due_ms;
    earlier(&at, r->deadline_ms);
    if (r->token == TOKEN_ACTIVE)
        earlier(&at, r->token_expires_ms);
    return at;
}
