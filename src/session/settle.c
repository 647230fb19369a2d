/* SPDX-License-Identifier: Apache-2.0 */
/* One rule for each way a run can lapse. A wait for a timer never lapses: it is due. */
#include "session/settle.h"

#include "session/status.h"
#include "session/token.h"

static bool is_open(const struct run *r)
{
    return r->end == RUN_OPEN;
}

enum tide_on_deadline settle_deadline(const struct run *r, int64_t now_ms)
{
    if (!is_open(r) || !r->waiting || r->due_ms || !r->deadline_ms || r->deadline_ms > now_ms)
        return TIDE_ON_DEADLINE_UNSET;
    return r->on_deadline ? r->on_deadline : TIDE_ON_DEADLINE_INTERRUPT;
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

/* A resume continues it, and asks again. */
static void draft_failed(struct draft *d, const struct run *r)
{
    token_moved(d, "token.revoked", r, "wait_timeout", NULL);
    draft_open(d, "run.failed");
    draft_text(d, "run_id", r->run_id);
    draft_text(d, "reason", "wait_timeout");
    draft_error(d, "wait_timeout", "there was no answer before the deadline");
    json_out_kbool(&d->out, STR("resumable"), r->resumable != 0);
    draft_close(d);
}

/*
 * The answer is there, and no process that continues with it: the run is parked until one comes, as after a sleep that is due.
 * In the same append, so that nobody sees a run that is open, answered and without an owner.
 */
static void draft_answered(struct draft *d, const struct run *r)
{
    token_moved(d, "token.revoked", r, "wait_timeout", NULL);
    draft_open(d, "run.resumed");
    draft_text(d, "run_id", r->run_id);
    draft_text(d, "by", SETTLED_BY);
    json_out_kraw(&d->out, STR("input"), str_from(r->default_answer ? r->default_answer : "null"));
    draft_close(d);
    draft_open(d, "run.waiting");
    draft_text(d, "run_id", r->run_id);
    draft_text(d, "wait_name", r->wait_name);
    draft_text(d, "wait_kind", tide_wait_kind_name(TIDE_WAIT_TIMER));
    json_out_kint(&d->out, STR("since_seq"), r->since_seq);
    draft_time(d, "due_at", r->deadline_ms);
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
    switch (settle_deadline(r, now_ms)) {
    case TIDE_ON_DEADLINE_INTERRUPT:
        token_moved(d, "token.revoked", r, "wait_timeout", NULL);
        draft_interrupted(d, r, "wait_timeout");
        draft_status(d, TIDE_STATUS_INTERRUPTED_WAITING, "wait_timeout");
        return SETTLED_TIMED_OUT;
    case TIDE_ON_DEADLINE_FAIL:
        draft_failed(d, r);
        draft_status(d, TIDE_STATUS_IDLE, "wait_timeout");
        return SETTLED_TIMED_OUT;
    case TIDE_ON_DEADLINE_DEFAULT:
        draft_answered(d, r);
        draft_status(d, TIDE_STATUS_WAITING, "due");
        return SETTLED_ANSWERED;
    case TIDE_ON_DEADLINE_UNSET:
        break;
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
    if (settle_deadline(r, now_ms) == TIDE_ON_DEADLINE_FAIL) {
        draft_failed(d, r);
        draft_status(d, TIDE_STATUS_IDLE, "wait_timeout");
        return;
    }
    reason = r->waiting ? reason : "process_restart";
    if (token_lapsed(r, now_ms) && !settle_deadline(r, now_ms))
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

bool settle_takes_queue(const struct run *r)
{
    return is_open(r) && r->waiting && !r->due_ms && r->wait_kind &&
           strcmp(r->wait_kind, tide_wait_kind_name(TIDE_WAIT_INPUT)) == 0;
}

bool settle_delivers(const struct state *s)
{
    const struct ledger *l = &s->ledger;
    enum tide_session_kind kind = session_kind(s);

    if (!l->queued)
        return false;
    if (kind == TIDE_KIND_CHAT && l->run.end == RUN_NONE) /* its first prompt */
        return true;
    if (!ledger_has_program(l))
        return false;
    /* A program that has completed is begun again by a person alone: that would do its steps again. */
    return settle_takes_queue(&l->run) || (l->run.end == RUN_COMPLETED && kind == TIDE_KIND_CHAT);
}

bool settle_is_live(const struct state *s)
{
    return settle_delivers(s) || is_open(&s->ledger.run) || s->ledger.run.end == RUN_INTERRUPTED ||
           s->ledger.notify_from;
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

    if ((is_open(r) && !r->waiting) || settle_delivers(s))
        return 0;
    if (s->ledger.notify_from && !s->ledger.notify_retry_ms)
        return 0;
    earlier(&at, s->ledger.notify_retry_ms);
    if (!is_open(r))
        return at;
    earlier(&at, r->due_ms);
    if (r->due_ms)
        return at;
    earlier(&at, r->deadline_ms);
    if (r->token == TOKEN_ACTIVE)
        earlier(&at, r->token_expires_ms);
    return at;
}
