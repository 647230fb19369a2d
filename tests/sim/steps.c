/* SPDX-License-Identifier: Apache-2.0 */
/* What processes do: opening, appending one by one and in bursts, creating, closing; and the choice among all steps. */
#include <inttypes.h>
#include <stdio.h>

#include "session/session.h"
#include "world.h"

/* A look by someone: decides a doubt when it may. */
static bool clear_doubt(struct world *w, struct proc *p, struct o_session *s)
{
    if (!s->alt_count && s->presence == PRESENT)
        return true;
    if (!look(w, p->store, s, s->doubt_by == p->number))
        return false;
    return s->presence == PRESENT;
}

struct handle *get_handle(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = handle_of(w, p, s);
    unsigned flags = TIDE_SESSION_APPEND | (chance(w, 20) ? TIDE_SESSION_CLAIM : 0);
    struct o_batch none = {NULL, 0};
    struct tide_err err = {0};
    enum tide_code code;

    if (!clear_doubt(w, p, s) || w->failed || !proc_alive(p))
        return NULL;
    if (h->h)
        return h;
    *h = (struct handle){0};
    call_begin(w);
    code = tide_session_open(p->store, s->id, flags, &h->h, &err);
    drain(w, p);
    if (code)
        h->h = NULL;
    if (flags & TIDE_SESSION_CLAIM)
        judge(w, p, s, &none, code, &err, TIDE_APPEND_ANY);
    else if (code && proc_alive(p) && !call_excused(w))
        wrong(w, "%s cannot be opened: %s: %s", s->id, tide_code_name(code), err.msg);
    if (code || !proc_alive(p))
        return NULL;
    h->view = tide_session_last_seq(h->h);
    h->knows = true;
    if (h->view != o_last(s) && !s->alt_count)
        wrong(w, "%s was opened at seq %" PRId64 " and is at %" PRId64, s->id, h->view, o_last(s));
    return h;
}

/* After trouble or a conflict a caller looks again, mostly. */
static void refresh(struct world *w, struct proc *p, struct o_session *s, struct handle *h)
{
    struct tide_err err = {0};
    enum tide_code code;

    call_begin(w);
    code = tide_session_refresh(h->h, &err);
    drain(w, p);
    if (code) {
        if (proc_alive(p) && !call_excused(w))
            wrong(w, "%s cannot be refreshed: %s: %s", s->id, tide_code_name(code), err.msg);
        return;
    }
    h->knows = true;
    h->view = tide_session_last_seq(h->h);
}

static void append_it(struct world *w, struct proc *p, struct o_session *s, struct o_batch b, unsigned flags)
{
    struct handle *h = get_handle(w, p, s);
    struct tide_err err = {0};
    int64_t seq = -1;
    enum tide_code code;

    if (!h || w->failed)
        return;
    if (!h->queue_n && (!h->knows || (h->view != o_last(s) && chance(w, 70))))
        refresh(w, p, s, h);
    if (w->failed || !proc_alive(p) || !h->knows)
        return;
    if (s->alt_count)
        flags &= ~(unsigned)TIDE_APPEND_ANY;
    call_begin(w);
    code = tide_session_append(h->h, flags, gen_public(w, &b), b.n, &seq, &err);
    drain(w, p);
    if (judge(w, p, s, &b, code, &err, flags) && seq != o_last(s))
        wrong(w, "%s: told seq %" PRId64 ", it is %" PRId64, s->id, seq, o_last(s));
    if (code == TIDE_FENCED && proc_alive(p))
        do_close(w, p, s);
}

static void pass_over(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = handle_of(w, p, s);
    struct o_batch b;
    struct tide_err err = {0};
    enum tide_code code;

    if (!h->h || !h->knows)
        return;
    gen_big(w, &b, 1);
    call_begin(w);
    code = tide_session_append(h->h, TIDE_APPEND_ANY, gen_public(w, &b), b.n, NULL, &err);
    drain(w, p);
    judge(w, p, s, &b, code, &err, TIDE_APPEND_ANY);
}

void do_append(struct world *w, struct proc *p, struct o_session *s, size_t n, unsigned flags)
{
    struct o_batch b;

    gen_batch(w, &b, n, false);
    append_it(w, p, s, b, flags);
}

void do_append_big(struct world *w, struct proc *p, struct o_session *s, size_t n, unsigned flags)
{
    struct o_batch b;

    gen_big(w, &b, n);
    append_it(w, p, s, b, flags);
}

/* An input comes in between and is passed over; what is appended is enough for a snapshot. */
static void do_pass_over(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = get_handle(w, p, s);

    if (!h || w->failed)
        return;
    do_append(w, p, s, 1, 0);
    if (proc_alive(p) && !w->failed && s->presence == PRESENT)
        do_input(w, p, s);
    if (proc_alive(p) && !w->failed && s->presence == PRESENT && !s->alt_count)
        pass_over(w, p, s);
}

void do_close(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = handle_of(w, p, s);

    if (!h->h)
        return;
    call_begin(w);
    if (h->queue_n) {
        struct tide_err err;

        (void)!tide_session_flush(h->h, &err);
        drain(w, p);
    }
    tide_session_close(h->h);
    say(w, "process %d closes %s", p->number, s->id);
    if (s->holder == p->number && h->holds && !h->lost) {
        s->holder = proc_alive(p) && !call_excused(w) ? -1 : s->holder;
        s->holder_sure &= proc_alive(p) && !call_excused(w);
        note_commit(w, p);
    }
    memset(h, 0, sizeof *h);
    drain(w, p);
}

/* Whoever runs something waits for the store; here not for ever. */
static int wait_a_little(void *tries, const struct tide_err *why, int64_t waited_ms)
{
    (void)waited_ms;
    return why && --*(int *)tries < 0;
}

static enum tide_code create(struct proc *p, const char *id, const char *fields, tide_session **ret,
                             struct tide_err *err)
{
    int tries = 3;

    if (id[1] % 2)
        return session_create_held(p->store, id, fields, wait_a_little, &tries, ret, err);
    return tide_session_create(p->store, id, fields, ret, err);
}

void do_create(struct world *w, struct proc *p, const char *id)
{
    struct o_batch b = batch_one(w, "session.created", STR("{\"agent\":\"sim\",\"title\":\"t\"}"), false, M_NONE, 0);
    struct tide_err err = {0};
    struct o_session *s = NULL;
    struct handle *h;
    tide_session *made = NULL;
    enum tide_code code;

    for (size_t i = 0; i < w->session_count; i++) {
        if (strcmp(w->sessions[i].id, id) == 0 && w->sessions[i].presence != ABSENT)
            return;
    }
    s = o_add(w, id);
    if (!s)
        return;
    call_begin(w);
    code = create(p, id, b.events[0].body.ptr, &made, &err);
    h = handle_of(w, p, s);
    *h = (struct handle){.h = code ? NULL : made};
    drain(w, p);
    if (judge(w, p, s, &b, code, &err, TIDE_APPEND_ANY))
        s->presence = PRESENT;
    else if (s->alt_count)
        s->presence = MAYBE_MADE;
}

/* ---- Bursts --------------------------------------------------------------------------------------------------- */

static void queue_one(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = get_handle(w, p, s);
    struct queued *q = arena_zero(&w->arena, sizeof *q);
    struct tide_err err = {0};
    enum tide_code code;

    if (!h || w->failed || h->queue_n == QUEUE_MAX || s->alt_count)
        return;
    if (h->lost || !h->knows)
        return;
    gen_batch(w, &q->batch, 1 + rnd(w, 4), false);
    call_begin(w);
    code = tide_session_append_async(h->h, 0, gen_public(w, &q->batch), q->batch.n, q, &err);
    if (code && !call_excused(w) && proc_alive(p) && code != TIDE_FENCED)
        wrong(w, "%s: not queued: %s: %s", s->id, tide_code_name(code), err.msg);
    if (!code)
        h->queue[h->queue_n++] = q;
    say(w, "process %d queues %zu for %s: %s", p->number, q->batch.n, s->id, tide_code_name(code));
    drain(w, p);
}

void do_flush(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h = handle_of(w, p, s);
    struct tide_err err;
    enum tide_code code;

    if (!h->h || !h->queue_n)
        return;
    h->queue_failed = false;
    call_begin(w);
    code = tide_session_flush(h->h, &err);
    drain(w, p);
    if (!w->failed && proc_alive(p) && h->queue_failed != (code != TIDE_OK))
        wrong(w, "%s: flush tells %s", s->id, tide_code_name(code));
    if (!w->failed && proc_alive(p) && h->queue_n)
        wrong(w, "%s: flush left batches in the queue", s->id);
}

void do_async(struct world *w, struct proc *p)
{
    uint64_t n = 1 + rnd(w, 5);

    for (uint64_t i = 0; i < n && !w->failed && proc_alive(p); i++) {
        struct o_session *s = o_pick(w);

        if (s)
            queue_one(w, p, s);
    }
    if (chance(w, 15))
        return; /* something else moves the queue, or nothing does */
    for (size_t i = 0; i < w->session_count && !w->failed && proc_alive(p); i++)
        do_flush(w, p, &w->sessions[i]);
}

/* ---- The choice ----------------------------------------------------------------------------------------------- */

static void do_clock(struct world *w)
{
    uint64_t r = rnd(w, 100);
    int64_t ms = r < 50   ? (int64_t)rnd(w, 5000)
                 : r < 90 ? LEASE_MS + 1000 + (int64_t)rnd(w, 60000)
                          : -(int64_t)rnd(w, 3600000);

    if (ms < 0)
        w->clock_back = true;
    say(w, "the clock moves by %" PRId64 " ms", ms);
    sim_advance(w->sim, ms);
    for (int i = 0; i < w->next_number; i++) {
        if (w->commit_ms[i] > now(w))
            w->commit_ms[i] = now(w);
    }
}

static void do_restart(struct world *w, struct proc *p)
{
    int slot = (int)(p - w->procs);

    if (chance(w, 40)) {
        say(w, "process %d is killed", p->number);
        sim_proc_kill(p->sim);
        proc_bury(w, p);
    } else {
        proc_exit(w, p);
    }
    if (!w->failed)
        proc_start(w, slot);
}

static void do_compact(struct world *w, struct proc *p)
{
    struct tide_err err = {0};
    enum tide_code code;

    call_begin(w);
    code = tide_store_compact(p->store, &err);
    drain(w, p);
    say(w, "process %d compacts: %s", p->number, tide_code_name(code));
    if (code && proc_alive(p) && !call_excused(w))
        wrong(w, "compact: %s: %s", tide_code_name(code), err.msg);
}

static void do_look(struct world *w, struct proc *p, struct o_session *s)
{
    struct handle *h;

    if (!clear_doubt(w, p, s) || w->failed || s->alt_count)
        return;
    look(w, p->store, s, false);
    h = get_handle(w, p, s);
    if (h && !w->failed && !h->queue_n && h->knows && h->view == o_last(s))
        check_state(w, h->h, s, chance(w, 50) ? 0 : 1 + (int64_t)rnd(w, (uint64_t)o_last(s)), true);
}

static void new_session(struct world *w, struct proc *p)
{
    char id[TIDE_ID_SIZE];

    snprintf(id, sizeof id, "s%d", (int)rnd(w, 5));
    do_create(w, p, id);
}

void step(struct world *w)
{
    struct proc *p = any_proc(w);
    struct o_session *s = o_pick(w);
    uint64_t r = rnd(w, 1000);

    if (!p)
        return;
    if (!s || r < 60)
        new_session(w, p);
    else if (r < 400)
        do_append(w, p, s, 1 + rnd(w, chance(w, 97) ? 8 : 70),
                  (chance(w, 15) ? TIDE_APPEND_ANY : 0u) | (chance(w, 6) ? TIDE_APPEND_RELEASE : 0u));
    else if (r < 500)
        do_async(w, p);
    else if (r < 560)
        do_checkpoint(w, p, s);
    else if (r < 590)
        do_marks_gone(w, p, s);
    else if (r < 650)
        do_rollback(w, p, s);
    else if (r < 690)
        do_fork(w, p, s);
    else if (r < 760)
        do_input(w, p, s);
    else if (r < 800)
        do_close(w, p, s);
    else if (r < 830)
        do_delete(w, p, s);
    else if (r < 845)
        do_move(w, p, s);
    else if (r < 885)
        do_restart(w, p);
    else if (r < 905)
        do_compact(w, p);
    else if (r < 911)
        do_pass_over(w, p, s);
    else if (r < 950)
        do_clock(w);
    else
        do_look(w, p, s);
    if (bury_the_dead(w) && !w->failed)
        say(w, "nobody is left");
}
