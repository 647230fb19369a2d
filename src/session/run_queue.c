/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run appends without waiting: the agent's record of a turn goes to disk while the model answers. Each batch is kept
 * until it is known to be on disk; when the store failed under one, it and those behind it are looked for and appended anew,
 * in order, as run_append() does it. Whoever is to act on what was queued flushes first.
 */
#include "session/run.h"

static void forget(struct run_queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        draft_done(&q->batches[i].draft);
    q->n = 0;
    q->doubt = false;
}

void run_queue_done(struct tide_run *r)
{
    forget(&r->queue);
}

enum tide_code run_flush(struct tide_run *r, struct tide_err *err)
{
    struct run_queue *q = &r->queue;
    enum tide_code code;

    if (!q->n && !r->starting)
        return TIDE_OK;
    code = tide_flush(r->s, err);
    if (code && r->starting) { /* it was not begun, or nobody knows: then recovery finds it without an owner */
        r->over = true;
        return code;
    }
    r->starting = false;
    if (!code && (q->doubt || r->s->lost)) /* an earlier flush was told, whoever made it, and given up */
        code = TIDE_UNKNOWN;
    r->s->lost = false;
    q->doubt = run_is_trouble(code);
    for (size_t i = 0; i < q->n && run_is_trouble(code); i++) {
        enum tide_code again = run_append_again(r, q->batches[i].before, &q->batches[i].draft, err);

        if (again)
            return again; /* it stays queued: nothing of it was told to anyone */
        if (i + 1 == q->n)
            code = TIDE_OK;
    }
    if (!code)
        r->appended_seq = tide_session_last_seq(r->s);
    forget(q);
    return code;
}

enum tide_code run_put(struct tide_run *r, struct draft *d, struct tide_err *err)
{
    struct run_queue *q = &r->queue;
    enum tide_code code = run_usable(r, err);

    if (!code && (q->n == RUN_QUEUE_MAX || q->doubt || r->backlog.n))
        code = run_flush(r, err);
    if (!code && r->backlog.n) {
        code = run_append(r, TIDE_APPEND_ANY, d, true, err);
        if (!code)
            draft_reset(d);
        return code;
    }
    if (code)
        return code;
    q->batches[q->n].before = tide_session_last_seq(r->s);
    code = tide_append_async(r->s, TIDE_APPEND_ANY, d->events, d->n, NULL, err);
    if (code)
        return code;
    q->batches[q->n++].draft = *d;
    *d = (struct draft)DRAFT_INIT;
    return TIDE_OK;
}
