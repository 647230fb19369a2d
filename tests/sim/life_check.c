/* SPDX-License-Identifier: Apache-2.0 */
/* The log against the world outside; the status, the list and recovery against what the log tells. */
#include <inttypes.h>
#include <stdio.h>

#include "life.h"

/* ---- The status, as the design has it --------------------------------------------------------------------------- */

static bool wait_is_over(const struct t_run *r, int64_t now_ms)
{
    if (r->due_ms)
        return false;
    if (r->deadline_ms && r->deadline_ms <= now_ms)
        return !told_defaulted(r, now_ms);
    return !r->token || r->token->fate != FATE_ACTIVE || (r->token->expires_ms && r->token->expires_ms <= now_ms);
}

bool told_defaulted(const struct t_run *r, int64_t now_ms)
{
    return !r->end && r->waiting && !r->due_ms && r->deadline_ms && r->deadline_ms <= now_ms &&
           str_eq(r->on_deadline, STR("default"));
}

static bool has_failed(const struct t_run *r, int64_t now_ms)
{
    return !r->end && r->waiting && !r->due_ms && r->deadline_ms && r->deadline_ms <= now_ms &&
           str_eq(r->on_deadline, STR("fail"));
}

static struct told told_ended(const struct t_run *r)
{
    const char *outcome = r->end + 4; /* behind "run." */
    bool failed = strcmp(outcome, "failed") == 0, cancelled = strcmp(outcome, "cancelled") == 0;

    return (struct told){TIDE_STATUS_IDLE, (enum tide_outcome)tide_outcome_from(outcome),
                         (failed && r->resumable == 1) ||
                             (cancelled && r->resumable != 0 && !str_eq(r->reason, STR("superseded")))};
}

struct told told_status(struct log_fold *t, bool alive, int64_t now_ms)
{
    const struct t_run *r = log_fold_run(t);
    bool cut = r && r->end && strcmp(r->end, "run.interrupted") == 0;

    if (!r)
        return (struct told){TIDE_STATUS_IDLE, TIDE_OUTCOME_NONE, false};
    if (has_failed(r, now_ms))
        return (struct told){TIDE_STATUS_IDLE, TIDE_OUTCOME_FAILED, r->resumable != 0};
    if (!r->waiting && (cut || (!r->end && !alive)))
        return (struct told){TIDE_STATUS_INTERRUPTED_STARTUP, TIDE_OUTCOME_INTERRUPTED, r->resumable != 0};
    if (r->waiting && (cut || (!r->end && wait_is_over(r, now_ms))))
        return (struct told){TIDE_STATUS_INTERRUPTED_WAITING, TIDE_OUTCOME_INTERRUPTED, r->resumable != 0};
    if (!r->end)
        return (struct told){r->waiting ? TIDE_STATUS_WAITING : TIDE_STATUS_RUNNING, TIDE_OUTCOME_NONE, r->waiting};
    return told_ended(r);
}

bool told_lapsed(struct log_fold *t, int64_t now_ms)
{
    const struct t_run *r = log_fold_run(t);

    if (!r || r->end)
        return false;
    if (!r->waiting)
        return true;
    if (r->due_ms)
        return false;
    return (r->deadline_ms && r->deadline_ms <= now_ms) ||
           (r->token && r->token->fate == FATE_ACTIVE && r->token->expires_ms && r->token->expires_ms <= now_ms);
}

bool told_due(struct log_fold *t, int64_t now_ms)
{
    const struct t_run *r = log_fold_run(t);

    return r && !r->end && r->waiting && r->due_ms && r->due_ms <= now_ms;
}

/* ---- What was acknowledged is there ----------------------------------------------------------------------------- */

static void check_effects(struct world *w, struct log_fold *t)
{
    for (size_t i = 0; i < w->effects.n; i++) {
        const struct effect *e = w->effects.all[i];
        const struct t_step *step = e->session == t->session ? log_fold_step(t, str_from(e->key)) : NULL;
        const struct op *op = &w->sessions[e->session].ops[e->op];
        const char *name = op->name;

        if (e->session != t->session)
            continue;
        if (e->begun && !step)
            wrong(w, "step '%s' began, that was acknowledged, and the log has no trace of it", name);
        if (e->completed && (!step || !step->over || !str_eq(step->result, str_from(e->result))))
            wrong(w, "step '%s' gave %s, that was acknowledged, and the log has not got it", name, e->result);
        if (step && ((step->started > e->begins && !op->whole) || step->completed > e->ends))
            wrong(w, "step '%s' is in the log more often than it was written", name);
        if (step && step->over && !e->done)
            wrong(w, "step '%s' is in the log as done, and never was", name);
    }
}

/* What a run got that began before the wait was asked again. */
static bool got_before(struct log_fold *t, const struct t_wait *wait, const struct passed *x)
{
    for (size_t i = 0; i < t->runs.n; i++) {
        if (!str_eq(t->runs.all[i]->id, str_from(x->run_id)) || t->runs.all[i]->seq > wait->again_seq)
            continue;
        for (int n = 0; n < wait->again; n++) {
            if (str_eq(wait->before[n], str_from(x->answer)))
                return true;
        }
    }
    return false;
}

static void check_passed(struct world *w, struct log_fold *t)
{
    for (size_t i = 0; i < w->passed.n; i++) {
        const struct passed *x = w->passed.all[i];
        const struct t_wait *wait = x->session == t->session ? log_fold_wait(t, str_from(x->key)) : NULL;

        if (x->session == t->session &&
            (!wait || (!str_eq(wait->answer, str_from(x->answer)) && !got_before(t, wait, x))))
            wrong(w, "a program got %s from wait '%s', and the log says %.*s", x->answer, x->key,
                  wait ? (int)wait->answer.len : 7, wait ? wait->answer.ptr : "nothing");
    }
}

static const struct t_resume *find_resume(struct log_fold *t, const struct request *q)
{
    for (size_t i = 0; i < t->resumes.n; i++) {
        if (t->resumes.all[i]->seq == q->seq)
            return t->resumes.all[i];
    }
    return NULL;
}

static void check_requests(struct world *w, struct log_fold *t)
{
    for (size_t i = 0; i < w->requests.n; i++) {
        const struct request *q = w->requests.all[i];
        const struct t_resume *at = q->acked && q->session == t->session ? find_resume(t, q) : NULL;
        const struct t_token *token;

        if (!q->acked || q->session != t->session)
            continue;
        if (!at || !str_eq(at->run_id, str_from(q->run_id)) || !str_eq(at->request_id, str_from(q->id)) ||
            (q->input[0] && !str_eq(at->input, str_from(q->input)))) {
            wrong(w, "a resume was acknowledged at seq %lld, and the log has something else there", (long long)q->seq);
            continue;
        }
        token = q->token[0] ? log_fold_token(t, (struct str){q->token, strcspn(q->token, ".")}) : NULL;
        if (q->token[0] && (!token || token->consumed_seq != q->seq - 1))
            wrong(w, "a resume by token does not use it up");
    }
}

static void check_tokens(struct world *w, struct log_fold *t)
{
    for (size_t i = 0; i < w->tokens.n; i++) {
        const struct token_out *o = w->tokens.all[i];

        if (o->session == t->session && !log_fold_token(t, str_from(o->id)))
            wrong(w, "a token was handed out that the log does not know");
    }
}

/* A message is delivered to one wait, or still there. */
static void check_messages(struct world *w, struct log_fold *t)
{
    for (size_t i = 0; i < w->messages.n; i++) {
        const struct message *m = w->messages.all[i];
        const struct t_message *at = NULL;
        int answers = 0;

        if (m->session != t->session)
            continue;
        for (size_t j = 0; j < t->messages.n; j++) {
            if (str_eq(t->messages.all[j]->content, str_from(m->text)))
                at = t->messages.all[j];
        }
        for (size_t j = 0; j < t->waits.n; j++)
            answers += str_eq(t->waits.all[j]->answer, str_from(m->text));
        if (m->acked && !at)
            wrong(w, "message %s was accepted and is gone", m->text);
        if (at && at->taken != answers)
            wrong(w, "message %s was taken %d times and answered %d waits", m->text, at->taken, answers);
    }
}

static void check_ended(struct world *w, struct log_fold *t)
{
    for (size_t i = 0; i < w->ended.n; i++) {
        const struct ended *e = w->ended.all[i];
        const struct t_run *r = NULL;

        if (e->session != t->session)
            continue;
        for (size_t j = 0; j < t->runs.n; j++) {
            if (str_eq(t->runs.all[j]->id, str_from(e->run_id)))
                r = t->runs.all[j];
        }
        if (!r || !r->end || (strcmp(r->end, e->kind) != 0 && strcmp(e->kind, "run.interrupted") != 0))
            wrong(w, "a run ended by %s, that was acknowledged, and the log says %s", e->kind,
                  r && r->end ? r->end : "nothing");
    }
}

/* One doer per epoch. */
static void check_epochs(struct world *w, struct log_fold *t)
{
    for (size_t i = 0; i < w->acks.n; i++) {
        const struct ack *a = w->acks.all[i];

        if (a->session != t->session)
            continue;
        if (a->seq > t->seq) {
            wrong(w, "seq %lld was acknowledged, and the log ends at %lld", (long long)a->seq, (long long)t->seq);
            return;
        }
        for (size_t j = 0; j < i; j++) {
            const struct ack *b = w->acks.all[j];

            if (b->session == a->session && b->proc != a->proc && t->epochs[b->seq] == t->epochs[a->seq])
                wrong(w, "processes %d and %d both append in epoch %lld", b->proc, a->proc,
                      (long long)t->epochs[a->seq]);
        }
    }
}

/* ---- A session, all of them --------------------------------------------------------------------------------------- */

static void check_status(struct world *w, struct proc *p, int s, struct log_fold *t)
{
    struct told want = told_status(t, false, now(w));
    struct view v;

    if (!show(w, p, s, &v))
        return;
    if (v.status != want.status || v.outcome != want.outcome || v.resumable != want.resumable)
        wrong(w, "%s is shown as %s, %s%s; by its log it is %s, %s%s", w->sessions[s].id, tide_status_name(v.status),
              tide_outcome_name(v.outcome), v.resumable ? ", resumable" : "", tide_status_name(want.status),
              tide_outcome_name(want.outcome), want.resumable ? ", resumable" : "");
}

/* Nobody runs it now. */
void check_session(struct world *w, struct proc *p, int s)
{
    struct log_fold t;

    if (!log_fold_read(w, p, s, &t))
        return;
    check_effects(w, &t);
    check_passed(w, &t);
    check_requests(w, &t);
    check_tokens(w, &t);
    check_messages(w, &t);
    check_ended(w, &t);
    check_epochs(w, &t);
    check_status(w, p, s, &t);
    log_fold_done(&t);
}

struct listing {
    struct world *w;
    struct view views[SESSIONS];
};

static int take_row(void *arg, const struct tide_session_info *info)
{
    struct listing *l = arg;

    for (int s = 0; s < l->w->session_count; s++) {
        if (strcmp(l->w->sessions[s].id, info->id) != 0)
            continue;
        l->views[s].status = info->status;
        l->views[s].outcome = info->outcome;
        snprintf(l->views[s].reason, sizeof l->views[s].reason, "%s", info->reason ? info->reason : "");
        l->views[s].resumable = info->is_resumable;
    }
    return 0;
}

/* The list says what looking at each one says. */
static void check_list(struct world *w, struct proc *p)
{
    struct listing l = {.w = w};
    struct tide_err err = {0};
    struct view v;

    if (tide_session_list(p->store, NULL, take_row, &l, &err))
        wrong(w, "sessions cannot be listed: %s", err.msg);
    for (int s = 0; s < w->session_count; s++) {
        if (show(w, p, s, &v) && (v.status != l.views[s].status || v.outcome != l.views[s].outcome ||
                                  strcmp(v.reason, l.views[s].reason) != 0 || v.resumable != l.views[s].resumable))
            wrong(w, "%s is listed as %s, %s (%s) and shown as %s, %s (%s)", w->sessions[s].id,
                  tide_status_name(l.views[s].status), tide_outcome_name(l.views[s].outcome), l.views[s].reason,
                  tide_status_name(v.status), tide_outcome_name(v.outcome), v.reason);
    }
}

void check_all(struct world *w, struct proc *p)
{
    for (int s = 0; s < w->session_count && !w->failed; s++)
        check_session(w, p, s);
    check_list(w, p);
}

/* ---- After recovery ----------------------------------------------------------------------------------------------- */

struct heard {
    struct world *w;
    bool told[SESSIONS];
};

static int note_heard(void *arg, const struct tide_recovered *what)
{
    struct heard *h = arg;

    for (int s = 0; s < h->w->session_count; s++) {
        if (strcmp(h->w->sessions[s].id, what->session_id) == 0)
            h->told[s] = true;
    }
    return 0;
}

/* What is live, by its log: it may be looked at. What is due or interrupted must be handed out. */
static void check_handed_out(struct world *w, struct proc *p)
{
    struct heard h = {.w = w};
    struct tide_recovery out = {0};
    struct tide_err err = {0};
    int live = 0;
    struct log_fold t;

    if (tide_store_recover(p->store, TIDE_RECOVER_ALL | TIDE_RECOVER_DRY_RUN, note_heard, &h, &out, &err))
        wrong(w, "what is live cannot be told: %s", err.msg);
    for (int s = 0; s < w->session_count && log_fold_read(w, p, s, &t); s++) {
        struct told told = told_status(&t, false, now(w));
        bool cut = told.outcome == TIDE_OUTCOME_INTERRUPTED && log_fold_run(&t)->end,
             want = told_due(&t, now(w)) || cut;

        live += told.status != TIDE_STATUS_IDLE;
        if (want && told.resumable != h.told[s] && cut)
            wrong(w, "%s is interrupted, and recovery %s it", w->sessions[s].id, h.told[s] ? "hands out" : "forgets");
        if (told_due(&t, now(w)) && !h.told[s])
            wrong(w, "%s is due, and recovery forgets it", w->sessions[s].id);
        if (!want && h.told[s])
            wrong(w, "%s is %s, and recovery hands it out", w->sessions[s].id, tide_status_name(told.status));
        log_fold_done(&t);
    }
    if (out.looked_at > live)
        wrong(w, "recovery looks at %lld sessions, and %d are live", (long long)out.looked_at, live);
}

void check_recovered(struct world *w, struct proc *p)
{
    struct tide_recovery out = {0};
    struct tide_err err = {0};
    struct log_fold t;

    for (int s = 0; s < w->session_count && log_fold_read(w, p, s, &t); s++) {
        if (told_lapsed(&t, now(w)))
            wrong(w, "recovery has passed over %s", w->sessions[s].id);
        log_fold_done(&t);
    }
    if (tide_store_recover(p->store, 0, NULL, NULL, &out, &err))
        wrong(w, "recovery fails: %s", err.msg);
    if (out.interrupted + out.timed_out + out.tokens_expired)
        wrong(w, "recovery right after recovery finds something");
    if (!w->failed)
        check_handed_out(w, p);
}
