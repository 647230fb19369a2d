/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer means, and whether it was a right one. An answer is right when the oracle could have given it: an ok of
 * the one who may append, a conflict when others came in between, held while the holder lives, fenced when it was taken
 * over, and trouble with the disk only while there was some.
 */
#include <inttypes.h>

#include "world.h"

struct handle *handle_of(struct world *w, struct proc *p, const struct o_session *s)
{
    return &p->handles[o_index(w, s)];
}

static struct proc *proc_by_number(struct world *w, int number)
{
    for (int i = 0; i < w->proc_count; i++) {
        if (w->procs[i].number == number && proc_alive(&w->procs[i]))
            return &w->procs[i];
    }
    return NULL;
}

/*
 * Certainly alive to others: its heartbeat comes with its commits, at least every third of the lease. Not so when the clock went
 * back: it may have been taken for dead before.
 */
static bool surely_held(struct world *w, const struct o_session *s, const struct proc *by)
{
    return s->holder_sure && !w->clock_back && s->holder >= 0 && s->holder != by->number &&
           proc_by_number(w, s->holder) && now(w) < w->commit_ms[s->holder] + LEASE_MS * 2 / 3;
}

static bool alone(struct world *w, const struct proc *p)
{
    for (int i = 0; i < w->proc_count; i++) {
        if (&w->procs[i] != p && proc_alive(&w->procs[i]))
            return false;
    }
    return true;
}

static bool surely_free(struct world *w, const struct o_session *s, const struct proc *by)
{
    bool expired;

    if (!s->holder_sure) /* whoever it is: it is one of the living */
        return alone(w, by);
    if (s->holder < 0 || s->holder == by->number)
        return true;
    expired = now(w) > w->touch_ms[s->holder] + LEASE_MS && !w->clock_back;
    return expired || !proc_by_number(w, s->holder); /* killed, or ended with its kernel */
}

static void check_ok(struct world *w, struct proc *p, struct o_session *s, const struct handle *h, unsigned flags)
{
    if (h->lost)
        wrong(w, "process %d appended to %s although its lease was taken over", p->number, s->id);
    if (!(flags & TIDE_APPEND_ANY) && h->knows && h->view != o_last(s))
        wrong(w, "process %d appended to %s knowing seq %" PRId64 ", but it was at %" PRId64, p->number, s->id, h->view,
              o_last(s));
    if (surely_held(w, s, p))
        wrong(w, "process %d took the lease of %s from process %d, which lives", p->number, s->id, s->holder);
}

static void check_refusal(struct world *w, struct proc *p, struct o_session *s, const struct handle *h,
                          enum tide_code code, const char *msg)
{
    bool doubt = s->alt_count > 0 || !s->holder_sure;

    switch (code) {
    case TIDE_CONFLICT:
        if (h->knows && h->view == o_last(s) && !doubt)
            wrong(w, "a conflict on %s where there is none: %s", s->id, msg);
        break;
    case TIDE_FENCED:
        if (!h->lost && !doubt)
            wrong(w, "process %d is fenced from %s, whose lease it has: %s", p->number, s->id, msg);
        break;
    case TIDE_HELD:
        if (surely_free(w, s, p))
            wrong(w, "%s is free (holder %d), and process %d is told that it is held: %s", s->id, s->holder, p->number,
                  msg);
        break;
    case TIDE_CORRUPT:
    case TIDE_NOT_A_STORE:
        wrong(w, "trouble of the disk, or none, is called damage: %s", msg);
        break;
    default:
        wrong(w, "process %d, %s: %s without a reason: %s", p->number, s->id, tide_code_name(code), msg);
    }
}

static bool is_trouble(enum tide_code code)
{
    return code == TIDE_FULL || code == TIDE_IO || code == TIDE_UNKNOWN || code == TIDE_BUSY;
}

bool judge(struct world *w, struct proc *p, struct o_session *s, struct o_batch *b, enum tide_code code,
           const struct tide_err *err, unsigned flags)
{
    struct handle *h = handle_of(w, p, s);
    const char *msg = err && code ? err->msg : "";

    say(w, "process %d, %s at %" PRId64 ": %zu events (%s): %s %.100s", p->number, s->id, o_last(s), b->n,
        b->n ? b->events[0].kind : "none", tide_code_name(code), msg);
    if (code == TIDE_OK) {
        check_ok(w, p, s, h, flags);
        o_acked(w, s, b, p);
        o_lease(w, s, p, flags & TIDE_APPEND_RELEASE);
        h->knows = true;
        h->view = o_last(s);
        return true;
    }
    if (!proc_alive(p)) {
        o_doubt(w, s, b, b->n ? 1 : 0, NULL);
        s->holder_sure = false;
        return false;
    }
    if (code == TIDE_UNKNOWN) {
        o_doubt(w, s, b, b->n ? 1 : 0, p);
        s->holder_sure = false;
    }
    if (is_trouble(code) && call_excused(w))
        s->holder_sure &= code != TIDE_UNKNOWN;
    else
        check_refusal(w, p, s, h, code, msg);
    return false;
}

/* ---- The queue of append_async -------------------------------------------------------------------------------- */

static void take_completions(struct world *w, struct proc *p)
{
    struct tide_completion done[32];
    size_t n;

    do {
        n = tide_store_reap(p->store, done, 32, 0);
        for (size_t i = 0; i < n; i++) {
            struct queued *q = done[i].user;

            if (q->done)
                wrong(w, "a batch was completed twice");
            q->done = true;
            q->code = done[i].code;
        }
    } while (n);
}

/* Finished ones from the front of one handle's queue; those in doubt together are one chain. */
static void drain_handle(struct world *w, struct proc *p, struct o_session *s, struct handle *h)
{
    struct o_batch unknown[QUEUE_MAX];
    size_t at = 0, unknown_n = 0;
    bool failed = false;
    struct tide_err err = {0};

    for (; at < h->queue_n && h->queue[at]->done; at++) {
        struct queued *q = h->queue[at];

        if (q->code == TIDE_OK && failed)
            wrong(w, "%s: a batch went through behind one that failed", s->id);
        failed |= q->code != TIDE_OK;
        if (q->code == TIDE_UNKNOWN || (q->code && !proc_alive(p)))
            unknown[unknown_n++] = q->batch;
        else
            judge(w, p, s, &q->batch, q->code, NULL, 0);
    }
    if (unknown_n) {
        if (proc_alive(p) && !call_excused(w))
            wrong(w, "%s: unknown without a reason", s->id);
        say(w, "%s: %zu queued batches are in doubt", s->id, unknown_n);
        o_doubt(w, s, unknown, unknown_n, proc_alive(p) ? p : NULL);
    }
    for (size_t i = at; i < h->queue_n; i++)
        h->queue[i - at] = h->queue[i];
    h->queue_n -= at;
    h->queue_failed |= failed;
    if (failed && proc_alive(p) && !h->queue_n)
        (void)!tide_session_flush(h->h, &err); /* or the next append would be told */
}

void drain(struct world *w, struct proc *p)
{
    if (!p->store)
        return;
    w->touch_ms[p->number] = now(w);
    take_completions(w, p);
    for (size_t i = 0; i < w->session_count; i++) {
        if (p->handles[i].queue_n)
            drain_handle(w, p, &w->sessions[i], &p->handles[i]);
    }
}
