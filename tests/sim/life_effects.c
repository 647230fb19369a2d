/* SPDX-License-Identifier: Apache-2.0 */
/* The world outside: what is done there cannot be taken back, and what was acknowledged is remembered here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "life.h"

void *life_add(struct world *w, void *list, size_t size)
{
    LIST(effect) *l = list;
    void *one = arena_zero(&w->arena, size);

    MEM_ROOM(l->all, l->n, l->cap);
    l->all[l->n++] = one;
    return one;
}

struct effect *effect_find(struct world *w, const char *key)
{
    for (size_t i = 0; i < w->effects.n; i++) {
        if (strcmp(w->effects.all[i]->key, key) == 0)
            return w->effects.all[i];
    }
    return NULL;
}

/* The effect behind an idempotency key: one for each use in each chain, and always the same. */
struct effect *effect_of(struct world *w, struct doing *d, int session, int op, const char *key)
{
    struct effect *e = effect_find(w, key);

    for (size_t i = 0; i < w->effects.n; i++) {
        const struct effect *o = w->effects.all[i];

        if (o->session == session && o->op == op && strcmp(o->chain, d->chain) == 0 && o != e)
            wrong(w, "one use of a step has two keys");
    }
    if (e && (e->session != session || e->op != op || strcmp(e->chain, d->chain) != 0))
        wrong(w, "two uses of steps have the same key");
    if (!e) {
        e = ADD(w, effects);
        snprintf(e->key, sizeof e->key, "%s", key);
        snprintf(e->chain, sizeof e->chain, "%s", d->chain);
        e->session = session;
        e->op = op;
        e->effect = w->sessions[session].ops[op].effect;
    }
    return e;
}

static void harden(struct doing *d)
{
    for (int i = 0; i < d->soft_n; i++) {
        d->soft[i]->completed = d->soft[i]->completed || d->soft[i]->soft;
        d->soft[i]->retry_left = d->soft[i]->retry_left || d->soft[i]->retry_soft;
        d->soft[i]->soft = d->soft[i]->retry_soft = false;
    }
    d->soft_n = 0;
}

/* Its beginning was acknowledged, and with it everything of its run before. */
void effect_begins(struct world *w, struct doing *d, struct effect *e)
{
    if (!tide_run_is_degraded(d->r))
        harden(d);
    if (strcmp(e->effect, "once") == 0 && e->failed && !d->retry)
        wrong(w, "step '%s' must happen once, failed, and is begun again unasked",
              w->sessions[e->session].ops[e->op].name);
    if (strcmp(e->effect, "pure") != 0 && tide_run_is_degraded(d->r))
        wrong(w, "an effect begins while its start is only in memory");
    e->retry_left = e->retry_soft = false;
    e->failed = false; /* if it is cut now, a probe may find that it has not happened */
}

bool effect_do(struct world *w, struct proc *p, struct doing *d, struct effect *e)
{
    const struct op *op = &w->sessions[e->session].ops[e->op];
    bool once = strcmp(e->effect, "once") == 0;

    (void)p;
    if (e->completed)
        wrong(w, "step '%s' (op %d of %s) is done again though its end was acknowledged", op->name, e->op,
              w->sessions[e->session].id);
    if (once && e->done && !d->retry)
        wrong(w, "step '%s' (op %d of %s) must happen once and happens twice", op->name, e->op,
              w->sessions[e->session].id);
    if (e->tries < op->fails) {
        e->tries++;
        snprintf(e->result, sizeof e->result, "null");
        return false;
    }
    e->done++;
    snprintf(e->result, sizeof e->result, "{\"op\":%d,\"n\":%d}", e->op, e->done);
    return true;
}

void effect_stored(struct world *w, struct effect *e, const char *result, bool failed)
{
    const char *name = w->sessions[e->session].ops[e->op].name;

    if (e->done + e->tries == 0)
        wrong(w, "step '%s' is said to be over and was never done", name);
    else if (e->completed && failed)
        wrong(w, "step '%s' was acknowledged as completed and is said to have failed", name);
    else if (!failed && strcmp(result, e->result) != 0)
        wrong(w, "step '%s' answers %s, its result was %s", name, result, e->result);
    else if (!failed)
        e->completed = true; /* it was read from the log */
}

/* Others acted during this call, perhaps right after its commit: then the log tells whose the session is now. */
static bool came_later(struct world *w, struct proc *p, int s, const struct doing *d)
{
    const struct t_run *r;
    struct log_fold t;
    bool later;

    if (w->nested == p->call.nested || !log_fold_read(w, p, s, &t))
        return false;
    r = log_fold_run(&t);
    later = r && !r->end && !r->waiting && str_eq(r->id, str_from(d->run_id));
    log_fold_done(&t);
    return later;
}

/* Somebody else may append from here on: the process that could so far must not have been sure of its lease. */
void took_over(struct world *w, struct proc *p, int s, bool by_force)
{
    note_clock(w);
    w->sessions[s].generation++;
    for (int i = 0; i < PROCS; i++) {
        struct proc *q = &w->procs[i];
        struct doing *d = &q->doing[s];

        if (!proc_alive(q) || !d->r)
            continue;
        if (q != p && came_later(w, p, s, d)) {
            d->generation = w->sessions[s].generation;
            continue;
        }
        if (!by_force && !d->may_lose && !q->releasing && !w->sessions[s].cancelling)
            wrong(w, "process %d takes %s from process %d, which lives and runs it", p->number, w->sessions[s].id,
                  q->number);
        d->may_lose = true;
    }
}

void beat(struct world *w, struct proc *p)
{
    p->beat_ms = p->called_ms < now(w) ? p->called_ms : now(w); /* the clock may have gone either way meanwhile */
}

void acked(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    struct ack *a;

    if (tide_run_is_degraded(d->r))
        return;
    if (d->generation != w->sessions[s].generation && w->nested == p->call.nested)
        wrong(w, "process %d lost %s to another and is told that its append went through", p->number,
              w->sessions[s].id);
    harden(d);
    if (!call_faulty(w, &p->call)) /* else the heartbeat may have been what failed */
        beat(w, p);
    if (d->generation == w->sessions[s].generation) /* else another took it right after */
        d->may_lose = false;
    note_clock(w);
    if (w->nested != p->call.nested)
        return; /* the last event it knows of may be another's */
    a = ADD(w, acks);
    *a = (struct ack){s, p->number, tide_session_last_seq(d->h)};
}

bool is_soft(struct world *w, struct proc *p, int s, struct effect *e)
{
    struct doing *d = &p->doing[s];

    (void)w;
    if (!tide_run_is_degraded(d->r) && strcmp(e->effect, "once") == 0)
        return false;
    if (d->soft_n < SOFT) {
        e->soft = true;
        d->soft[d->soft_n++] = e;
    }
    return true;
}

void run_drop(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];

    for (int i = 0; i < d->soft_n; i++)
        d->soft[i]->soft = d->soft[i]->retry_soft = false;
    if (d->r || d->h) {
        bool busy = p->busy;

        p->busy = p->releasing = true;
        tide_run_close(d->r);
        tide_session_close(d->h);
        p->busy = busy;
        p->releasing = false;
        note_clock(w);
    }
    memset(d, 0, sizeof *d);
}

void lost_lease(struct world *w, struct proc *p, int s)
{
    note_clock(w);
    if (!p->doing[s].may_lose && !w->sessions[s].cancelling)
        wrong(w, "process %d is refused as fenced in %s though it lives and was not silent", p->number,
              w->sessions[s].id);
    say(w, "process %d has lost %s", p->number, w->sessions[s].id);
    run_drop(w, p, s);
}
