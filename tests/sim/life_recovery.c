/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery, cancelling, looking; and which of all a process does next. */
#include <stdio.h>

#include "life.h"

/* ---- Looking ---------------------------------------------------------------------------------------------------- */

static int take_view(void *arg, const struct tide_session_info *info)
{
    struct view *v = arg;

    v->status = info->status;
    v->outcome = info->outcome;
    snprintf(v->reason, sizeof v->reason, "%s", info->reason ? info->reason : "");
    snprintf(v->run_id, sizeof v->run_id, "%s", info->run_id ? info->run_id : "");
    v->resumable = info->is_resumable;
    v->held = info->holder != NULL;
    v->due_ms = info->due_ms;
    v->deadline_ms = info->deadline_ms;
    v->seen = true;
    return 0;
}

bool show(struct world *w, struct proc *p, int s, struct view *ret)
{
    const struct tide_session_info *info;
    tide_session *h = NULL;
    struct tide_err err = {0};
    enum tide_code code;

    memset(ret, 0, sizeof *ret);
    p->busy = true;
    w->depth++;
    code = tide_session_open(p->store, w->sessions[s].id, TIDE_SESSION_READ, &h, &err);
    code = code ? code : tide_session_get_info(h, &info, &err);
    if (!code)
        take_view(ret, info);
    tide_session_close(h);
    w->depth--;
    p->busy = false;
    if (code && proc_alive(p) && !w->armed)
        wrong(w, "%s cannot be shown: %s", w->sessions[s].id, err.msg);
    return !code && proc_alive(p);
}

/* A run that certainly is under way is shown as running. */
static void act_show(struct world *w, struct proc *p, int s)
{
    struct view v;

    note_clock(w);
    if (!show(w, p, s, &v))
        return;
    for (int i = 0; i < PROCS; i++) {
        const struct proc *q = &w->procs[i];

        if (proc_alive(q) && q->doing[s].r && !q->doing[s].may_lose && !q->busy && v.status != TIDE_STATUS_RUNNING)
            wrong(w, "process %d runs %s, which is shown as %s", q->number, w->sessions[s].id,
                  tide_status_name(v.status));
    }
}

/* ---- Recovery --------------------------------------------------------------------------------------------------- */

struct hearing {
    struct world *w;
    struct proc *p;
    bool dry;
};

static int session_index(struct world *w, const char *id)
{
    for (int i = 0; i < w->session_count; i++) {
        if (strcmp(w->sessions[i].id, id) == 0)
            return i;
    }
    return -1;
}

static int hear(void *arg, const struct tide_recovered *what)
{
    struct hearing *x = arg;
    int s = session_index(x->w, what->session_id);

    say(x->w, "  %s: %s (%s)", what->session_id, tide_recovered_action_name(what->action),
        what->reason ? what->reason : "");
    if (s < 0)
        wrong(x->w, "recovery speaks of '%s', where nothing ever ran", what->session_id);
    else if (!x->dry && (what->action == TIDE_RECOVERED_INTERRUPTED || what->action == TIDE_RECOVERED_TIMED_OUT ||
                         what->action == TIDE_RECOVERED_ANSWERED))
        took_over(x->w, x->p, s, false);
    return 0;
}

static bool heads(struct world *w, struct proc *p, int64_t seqs[SESSIONS])
{
    struct log_fold t;

    for (int s = 0; s < w->session_count; s++) {
        if (!log_fold_read(w, p, s, &t))
            return false;
        seqs[s] = t.seq;
        log_fold_done(&t);
    }
    return true;
}

/*
 * Recovery looks at what no living process holds. In files a lease is taken before the first line under it and given back after
 * the last: who is in between, or was told that its fate is not known, lives and holds a session that waits in the log.
 */
static bool held_by_the_living(struct world *w, struct proc *p, int s)
{
    struct view v;

    return on_files() && show(w, p, s, &v) && v.held;
}

/* A wait needs nobody behind it: whoever recovers writes down that it is over. */
static void check_waits_over(struct world *w, struct proc *p)
{
    struct log_fold t;

    for (int s = 0; s < w->session_count && log_fold_read(w, p, s, &t); s++) {
        if (log_fold_run(&t) && log_fold_run(&t)->waiting && told_lapsed(&t, now(w)) && !held_by_the_living(w, p, s))
            wrong(w, "the wait of %s is over, and recovery has passed over it", w->sessions[s].id);
        log_fold_done(&t);
    }
}

void act_recover(struct world *w, struct proc *p, unsigned flags)
{
    struct hearing x = {w, p, flags & TIDE_RECOVER_DRY_RUN};
    struct tide_recovery out = {0};
    struct tide_err err = {0};
    int64_t before[SESSIONS] = {0}, after[SESSIONS] = {0};
    struct call c;
    enum tide_code code;

    if (x.dry && !heads(w, p, before))
        return;
    c = call_begin(w, p);
    code = tide_store_recover(p->store, flags, hear, &x, &out, &err);
    if (call_end(w, p, &c, x.dry ? "recover, dry" : "recover", code, &err) == V_OTHER)
        wrong(w, "recovery fails: %s", err.msg);
    if (code || !proc_alive(p) || call_disturbed(w, &c))
        return;
    if (out.looked_at > w->session_count)
        wrong(w, "recovery looked at %lld of %d sessions", (long long)out.looked_at, w->session_count);
    if (!x.dry && chance(w, 40))
        check_waits_over(w, p);
    if (x.dry && heads(w, p, after) && memcmp(before, after, sizeof before) != 0)
        wrong(w, "a dry run has written something");
}

/* ---- Cancelling --------------------------------------------------------------------------------------------------- */

static void judge_cancelled(struct world *w, struct proc *p, int s, enum tide_cancelled how)
{
    const struct t_run *run;
    struct log_fold t;

    if (!log_fold_read(w, p, s, &t))
        return;
    run = log_fold_run(&t);
    if (run && !run->end)
        wrong(w, "%s was cancelled (%d) and its run is still open", w->sessions[s].id, (int)how);
    if (run && how != TIDE_CANCEL_NOTHING && how != TIDE_CANCEL_ANSWERED && strcmp(run->end, "run.cancelled") != 0)
        wrong(w, "%s was cancelled and its run ended by %s", w->sessions[s].id, run->end);
    log_fold_done(&t);
}

void act_cancel(struct world *w, struct proc *p, int s)
{
    enum tide_cancelled how = TIDE_CANCEL_NOTHING;
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code;
    enum verdict v;

    w->sessions[s].cancelling = true;
    code = tide_session_cancel(p->store, w->sessions[s].id, NULL, "test", 30 + (int)rnd(w, 100), &how, &err);
    v = call_end(w, p, &c, "cancel", code, &err);
    w->sessions[s].cancelling = false;
    if (v == V_OK && (how == TIDE_CANCEL_DONE || how == TIDE_CANCEL_FORCED))
        took_over(w, p, s, how == TIDE_CANCEL_FORCED);
    if (v == V_OK && w->nested == c.nested)
        judge_cancelled(w, p, s, how);
    if (v == V_OTHER)
        wrong(w, "a session cannot be cancelled: %s: %s", tide_code_name(code), err.msg);
    if (v == V_DEAD || v == V_TROUBLE) { /* it may have come through by force */
        for (int i = 0; i < PROCS; i++)
            w->procs[i].doing[s].may_lose = true;
    }
}

/* ---- All of it -------------------------------------------------------------------------------------------------- */

static void act_recover_some(struct world *w, struct proc *p, int s)
{
    (void)s;
    act_recover(w, p, (chance(w, 20) ? TIDE_RECOVER_DRY_RUN : 0u) | (chance(w, 30) ? TIDE_RECOVER_ALL : 0u));
}

static void act_run(struct world *w, struct proc *p, int s)
{
    for (int i = 0; i < w->session_count; i++, s = (s + 1) % w->session_count) {
        if (p->doing[s].r) {
            program_step(w, p, s);
            return;
        }
    }
    act_begin(w, p, s);
}

static void act_drop(struct world *w, struct proc *p, int s)
{
    if (p->doing[s].r)
        say(w, "process %d closes its run of %s", p->number, w->sessions[s].id);
    run_drop(w, p, s);
}

static void act_clock(struct world *w, struct proc *p, int s)
{
    uint64_t x = rnd(w, 100);

    (void)p;
    (void)s;
    clock_move(w, x < 60   ? 1 + (int64_t)rnd(w, 3000)
                  : x < 85 ? 1 + (int64_t)rnd(w, 40000)
                  : x < 93 ? LEASE_MS + (int64_t)rnd(w, 60000)
                           : -(int64_t)rnd(w, 20000));
}

static const struct {
    void (*act)(struct world *, struct proc *, int);
    unsigned weight;
} acts[] = {
    {act_run, 61},   {act_begin, 12},    {act_recover_some, 6}, {act_cancel, 3}, {act_message, 3},
    {act_rotate, 2}, {act_ask_again, 3}, {act_show, 3},         {act_clock, 5},  {act_drop, 2},
};

void act_any(struct world *w, struct proc *p)
{
    uint64_t x = rnd(w, 100);
    size_t i = 0;
    int s = (int)rnd(w, (uint64_t)w->session_count);

    while (x >= acts[i].weight)
        x -= acts[i++].weight;
    if (w->depth && chance(w, 50)) { /* two who want the same at once */
        i = w->act_now;
        s = w->act_session;
    } else if (!w->depth) {
        w->act_now = i;
        w->act_session = s;
    }
    acts[i].act(w, p, s);
}
