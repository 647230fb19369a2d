/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: made from the seed, executed from their start on every resume, one call at a time. */
#include <stdio.h>

#include "life.h"

static const char *const names[NAMES] = {"a", "b", "c"};

static void make_step(struct world *w, struct op *op)
{
    static const char *const effects[] = {"pure", "idempotent", "once", "once"};

    op->effect = effects[rnd(w, 4)];
    if (strcmp(op->effect, "once") != 0 && chance(w, 40))
        op->retries = 1 + (int)rnd(w, 2);
    op->fails = chance(w, 65) ? 0 : 1 + (int)rnd(w, 3);
    op->whole = chance(w, 30);
    op->probe = !op->whole && chance(w, 65);
}

static void make_wait(struct world *w, struct op *op)
{
    op->wait_kind = chance(w, 60) ? "input" : "approval";
    op->span_ms = chance(w, 50) ? 0 : 2000 + (int64_t)rnd(w, 60000);
    op->fixed = chance(w, 40);
    if (op->span_ms)
        op->on_deadline = (enum tide_on_deadline)(chance(w, 40) ? TIDE_ON_DEADLINE_DEFAULT : (int)rnd(w, 4));
    op->good_ms = chance(w, 60) ? 0 : 1000 + (int64_t)rnd(w, 30000);
    if (op->span_ms && op->good_ms && chance(w, 60))
        op->good_ms += op->span_ms + 60000; /* the token is good for longer than the wait */
}

void program_make(struct world *w, struct life_session *s)
{
    static const enum op_kind kinds[] = {OP_STEP, OP_STEP,  OP_STEP, OP_STEP, OP_STEP, OP_WAIT,
                                         OP_WAIT, OP_SLEEP, OP_SET,  OP_GET,  OP_MARK};

    s->n = 2 + (int)rnd(w, chance(w, 70) ? 5 : OPS - 2);
    for (int i = 0; i < s->n; i++) {
        struct op *op = &s->ops[i];

        op->kind = kinds[rnd(w, sizeof kinds / sizeof kinds[0])];
        snprintf(op->name, sizeof op->name, "%s", names[rnd(w, NAMES)]);
        if (op->kind == OP_STEP)
            make_step(w, op);
        if (op->kind == OP_WAIT)
            make_wait(w, op);
        if (op->kind == OP_SLEEP)
            op->span_ms = 1 + (int64_t)rnd(w, chance(w, 50) ? 3000 : 90000);
    }
    for (int i = 0; i + 1 < s->n; i++) {
        struct op *a = &s->ops[i], *b = &s->ops[i + 1];

        if (a->kind == OP_STEP && b->kind == OP_STEP && strcmp(a->name, b->name) != 0 && chance(w, 40)) {
            a->pair = true;
            a->whole = b->whole = false;
            i++;
        }
    }
}

/* ---- What came of a call -------------------------------------------------------------------------------------- */

bool run_goes_on(struct world *w, struct proc *p, int s, enum verdict v, enum tide_code code)
{
    struct doing *d = &p->doing[s];

    switch (v) {
    case V_OK:
        return true;
    case V_DEAD:
        return false;
    case V_TROUBLE:
        d->may_lose = true; /* what became of it is not known here: it may even have ended */
        if (chance(w, 20) && !w->calm)
            run_drop(w, p, s);
        else if (chance(w, 40))
            disarm(w); /* it gave up too early, and goes on after all */
        return false;
    default:
        if (code == TIDE_FENCED)
            lost_lease(w, p, s);
        return code != TIDE_FENCED;
    }
}

void run_finish(struct world *w, struct proc *p, int s, const char *outcome, const char *reason)
{
    struct doing *d = &p->doing[s];
    const struct tide_run_result result = {
        .size = sizeof result, .outcome = (enum tide_outcome)tide_outcome_from(outcome), .reason = reason};
    struct tide_err err = {0};
    struct call c = call_release(w, p);
    enum tide_code code = tide_run_end(d->r, &result, &err);
    enum verdict v = call_end(w, p, &c, outcome, code, &err);
    struct ended *e;

    d->ending = outcome;
    d->reason = reason;
    if (!run_goes_on(w, p, s, v, code))
        return;
    if (v != V_OK) {
        wrong(w, "a run cannot be ended: %s: %s", tide_code_name(code), err.msg);
        return;
    }
    acked(w, p, s);
    e = ADD(w, ended);
    e->session = s;
    snprintf(e->run_id, sizeof e->run_id, "%s", d->run_id);
    e->kind = arena_printf(&w->arena, "run.%s", outcome);
    run_drop(w, p, s);
}

bool run_look(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    struct tide_err err = {0};
    unsigned signs = 0;
    struct call c = call_begin(w, p);
    enum tide_code code = tide_run_look(d->r, &signs, &err);
    enum verdict v = call_end(w, p, &c, "look", code, &err);

    if (!run_goes_on(w, p, s, v, code))
        return false;
    if (v == V_OK && signs & TIDE_SIGN_CANCEL && chance(w, 85) && !w->calm) {
        run_finish(w, p, s, "cancelled", "requested");
        return false;
    }
    return v == V_OK;
}

static void (*const op_do[])(struct world *, struct proc *, int) = {
    [OP_STEP] = op_step, [OP_WAIT] = op_wait, [OP_SLEEP] = op_sleep,
    [OP_SET] = op_set,   [OP_GET] = op_get,   [OP_MARK] = op_mark,
};

void program_step(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];

    if (!d->r || (chance(w, 25) && !run_look(w, p, s)))
        return;
    if (d->ending) {
        run_finish(w, p, s, d->ending, d->reason);
        return;
    }
    if (!w->calm && chance(w, 1)) {
        run_finish(w, p, s, "interrupted", "process_exit");
        return;
    }
    if (d->pc == w->sessions[s].n)
        run_finish(w, p, s, "completed", NULL);
    else
        op_do[w->sessions[s].ops[d->pc].kind](w, p, s);
}
