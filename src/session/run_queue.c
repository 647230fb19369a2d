/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run appends without waiting: the agent's record of a turn goes to disk while the model answers. Each batch is kept
 * until it is known to be on disk; when the store failed under one, it and those behind it are looked for and appended anew,
 * in order, as run_append() does it. The start of the run may be the first of them. The caller that is to act on what was queued
 * flushes first. The result of a step that may be done again is queued as well: the next append takes it along, in one commit.
 */
#include "session/run.h"

#include "base/invariant.h"
#include "session/notify.h"
#include "session/redact.h"

static void forget_queue(struct run_queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        draft_done(&q->batches[i].draft);
    q->n = 0;
    q->doubt = false;
}

void run_queue_done(struct tide_run *r)
{
    forget_queue(&r->queue);
}

/* One whose outcome is not known, or which was not stored. */
static enum tide_code append_again(struct tide_run *r, size_t i, struct tide_err *err)
{
    const struct draft *d = &r->queue.batches[i].draft;
    struct trying t = {.flags = r->queue.batches[i].flags,
                       .events = d->events,
                       .n = d->n,
                       .ours = r->queue.batches[i].ours,
                       .before = r->queue.batches[i].before,
                       .unknown = true};
    struct tide_err why = {0};
    enum tide_code code;

    INVARIANT(i == 0 || !r->starting);
    if (r->starting || !r->queue.batches[i].pure || !degraded_may_take(r, d))
        return r->backlog.n && run_settle(r, err) ? err->code : run_try_held(r, &t, err);
    code = r->backlog.n ? TIDE_OK : run_try(r, &t, &why); /* behind what waits in memory it has to wait as well */
    if (t.unknown && !r->backlog.n)
        return run_try_held(r, &t, err);
    if (!r->backlog.n && !session_is_trouble(code))
        return code ? tide_err_copy(err, &why) : TIDE_OK;
    return degraded_take(r, d, &why, err);
}

/* What was done leaves the queue; what was not stays, and none of it was acknowledged. */
static enum tide_code append_all_again(struct tide_run *r, struct tide_err *err)
{
    struct run_queue *q = &r->queue;
    enum tide_code code = TIDE_OK;
    size_t done = 0;

    while (done < q->n && !(code = append_again(r, done, err))) {
        draft_done(&q->batches[done++].draft);
        r->starting = false;
    }
    q->n -= done;
    memmove(q->batches, q->batches + done, q->n * sizeof q->batches[0]);
    return code;
}

enum tide_code run_flush(struct tide_run *r, struct tide_err *err)
{
    struct run_queue *q = &r->queue;
    struct tide_err why = {0};
    enum tide_code code;

    if (!q->n)
        return TIDE_OK;
    code = tide_session_flush(r->s, &why);
    if (!code && (q->doubt || r->s->lost)) /* an earlier flush got the error, and the event was given up */
        code = TIDE_UNKNOWN;
    r->s->lost = false;
    q->doubt = session_is_trouble(code);
    if (q->doubt)
        code = append_all_again(r, err);
    else if (code)
        tide_err_copy(err, &why);
    if (code && r->starting) /* it was not begun, or nobody knows: then recovery finds it without an owner */
        r->over = true;
    if (code && q->doubt)
        return code;
    if (!code) {
        r->starting = false;
        r->appended_seq = tide_session_last_seq(r->s);
        if (r->s->state->ledger.notify_last > q->batches[0].before)
            notify_tell(r->s->store);
    }
    forget_queue(q);
    return code;
}

struct putting {
    struct tide_session *s;
    unsigned flags;
    const struct draft *d;
    bool later;
};

/* It fails before anything is queued, or not at all. */
static enum tide_code try_put(void *arg, struct tide_err *err)
{
    struct putting *p = arg;

    return p->later ? session_append_later(p->s, p->flags, p->d->events, p->d->n, err)
                    : tide_session_append_async(p->s, p->flags, p->d->events, p->d->n, NULL, err);
}

static enum tide_code put_draft(struct tide_run *r, unsigned flags, struct draft *d, size_t ours, unsigned how,
                                struct tide_err *err)
{
    struct run_queue *q = &r->queue;
    int64_t before = tide_session_last_seq(r->s);
    struct putting p = {r->s, flags, d, how & PUT_LATER};
    enum tide_code code;

    INVARIANT(q->n < RUN_QUEUE_MAX && ours < d->n);
    INVARIANT(!q->doubt && !r->backlog.n); /* what is looked for, or waits in memory, comes first */
    redact_draft(r->s->store, d);          /* what is looked for afterwards is what is stored */
    code = session_hold(r->s, try_put, &p, err);
    if (code)
        return code;
    q->batches[q->n].before = before;
    q->batches[q->n].flags = flags;
    q->batches[q->n].ours = ours;
    q->batches[q->n].pure = how & PUT_PURE;
    q->batches[q->n++].draft = *d;
    *d = (struct draft)DRAFT_INIT;
    return TIDE_OK;
}

enum tide_code run_put_start(struct tide_run *r, struct draft *d, size_t ours, struct tide_err *err)
{
    INVARIANT(!r->queue.n && !r->id[0]); /* the start is the first of all */
    r->starting = true;
    return put_draft(r, 0, d, ours, 0, err);
}

enum tide_code run_put(struct tide_run *r, struct draft *d, unsigned how, struct tide_err *err)
{
    struct run_queue *q = &r->queue;
    enum tide_code code = run_usable(r, err);

    if (!code && (q->n == RUN_QUEUE_MAX || q->doubt || r->backlog.n))
        code = run_flush(r, err);
    if (!code && r->backlog.n) {
        code = run_append(r, TIDE_APPEND_ANY, d, how & PUT_PURE, err);
        if (!code)
            draft_reset(d);
        return code;
    }
    return code ? code : put_draft(r, TIDE_APPEND_ANY, d, 0, how, err);
}

enum tide_code run_append_behind(struct tide_run *r, struct draft *d, bool pure, struct tide_err *err)
{
    struct run_queue *q = &r->queue;
    enum tide_code code = put_draft(r, TIDE_APPEND_ANY, d, 0, PUT_LATER | (pure ? PUT_PURE : 0), err);

    code = code ? code : run_flush(r, err);
    if (code && q->doubt && q->n) { /* its caller gets the failure: it may be stored, and is not written again */
        draft_done(&q->batches[--q->n].draft);
        q->doubt = q->n > 0;
        r->unsure = true;
    }
    return code;
}
