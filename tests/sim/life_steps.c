/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a program. Each call is one turn of the interpreter, so that others act between any two of them. */
#include <stdio.h>

#include "life.h"

static struct tide_step_spec spec_of(const struct op *op, int at, char args[16])
{
    snprintf(args, 16, "args %d", at);
    return (struct tide_step_spec){.size = sizeof(struct tide_step_spec),
                                   op->name,
                                   (enum tide_effect)tide_effect_from(op->effect),
                                   args,
                                   strlen(args),
                                   op->retries,
                                   op->probe,
                                   NULL};
}

static bool once(const struct effect *e)
{
    return strcmp(e->effect, "once") == 0;
}

/* Its outcome is not known, and that is said: only of one that must happen once and was interrupted. */
static void unsettled(struct world *w, struct proc *p, int s, const struct op *op)
{
    if (strcmp(op->effect, "once") != 0)
        wrong(w, "step '%s' may be done again, and is said to be unsettled", op->name);
    run_finish(w, p, s, "failed", "unsettled");
}

/* ---- In one call ------------------------------------------------------------------------------------------------ */

struct whole {
    struct world *w;
    struct proc *p;
    int s;
    struct effect *effect;
};

static enum tide_code do_whole(void *arg, const char *key, struct tide_text *ret, struct tide_err *err)
{
    struct whole *x = arg;
    struct doing *d = &x->p->doing[x->s];

    if (sim_proc_dead(x->p->sim) || d->generation != x->w->sessions[x->s].generation)
        return tide_fail(err, TIDE_FAILED, "it is dead, or somebody was faster");
    x->effect = effect_of(x->w, d, x->s, d->pc, key);
    x->effect->begins++;
    effect_begins(x->w, d, x->effect);
    x->effect->ends++;
    x->effect->begun |= !tide_run_is_degraded(d->r);
    if (!effect_do(x->w, x->p, d, x->effect))
        return tide_fail(err, TIDE_FAILED, "it does not work yet");
    ret->ptr = mem_dup(str_from(x->effect->result));
    ret->len = strlen(ret->ptr);
    if (!x->w->calm && chance(x->w, 4))
        sim_proc_kill(x->p->sim);
    return TIDE_OK;
}

/* It was not done here: it answers what it answered, or made, before. */
static void whole_stored(struct world *w, struct doing *d, int s, const struct tide_text *text)
{
    for (size_t i = 0; i < w->effects.n; i++) {
        struct effect *e = w->effects.all[i];

        if (e->session == s && e->op == d->pc && strcmp(e->chain, d->chain) == 0) {
            effect_stored(w, e, text->ptr, false);
            return;
        }
    }
    wrong(w, "a step answers that was never done");
}

static void step_whole(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    const struct op *op = &w->sessions[s].ops[d->pc];
    char args[16];
    const struct tide_step_spec spec = spec_of(op, d->pc, args);
    struct whole x = {w, p, s, NULL};
    struct tide_text text = {NULL, 0};
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code = tide_run_step(d->r, &spec, do_whole, &x, &text, &err);
    enum verdict v = call_end(w, p, &c, "step in one call", code, &err);

    if (run_goes_on(w, p, s, v, code)) {
        if (v == V_OK && !x.effect && !d->may_lose)
            whole_stored(w, d, s, &text);
        if (v == V_OK && x.effect) {
            x.effect->completed |= !is_soft(w, p, s, x.effect);
            if (once(x.effect)) /* the end of another is on disk before anything later is */
                acked(w, p, s);
        }
        if (v == V_OK && x.effect && strcmp(text.ptr ? text.ptr : "null", x.effect->result) != 0)
            wrong(w, "a step gives %s, it made %s", text.ptr, x.effect->result);
        if (code == TIDE_FAILED && x.effect && !tide_run_is_degraded(d->r)) {
            x.effect->failed = once(x.effect);
            if (once(x.effect))
                acked(w, p, s);
        }
        if (v == V_OK || (code == TIDE_FAILED && strcmp(op->effect, "once") == 0))
            d->pc++;
        else if (code == TIDE_FAILED)
            run_finish(w, p, s, "failed", "step");
        else if (code == TIDE_UNSETTLED)
            unsettled(w, p, s, op);
        else
            wrong(w, "step '%s': %s: %s", op->name, tide_code_name(code), err.msg);
    }
    if (v == V_TROUBLE)
        run_drop(w, p, s); /* done, perhaps, and its end is not stored: only the run's end is left */
    tide_text_done(&text);
}

/* ---- Call by call ----------------------------------------------------------------------------------------------- */

static void slot_failed(struct world *w, struct proc *p, int s, struct slot *slot)
{
    if (once(slot->effect))
        slot->state = SLOT_OVER; /* the program lives with it */
    else
        run_finish(w, p, s, "failed", "step");
}

/* What the library says is to be done. */
static void slot_answer(struct world *w, struct proc *p, int s, struct slot *slot, struct tide_step_answer *a)
{
    struct effect *e = slot->effect;

    slot->later_ms = 0;
    switch (a->state) {
    case TIDE_STEP_RUN:
        if (e->retry_left && now(w) < e->retry_at_ms && !p->doing[s].may_lose)
            wrong(w, "a failed step is to be done again before its time");
        slot->state = SLOT_ASKED;
        break;
    case TIDE_STEP_STORED:
        if (!p->doing[s].may_lose) /* else it may not know what another has done since */
            effect_stored(w, e, a->result.ptr ? a->result.ptr : "", a->failed);
        if (a->failed)
            slot_failed(w, p, s, slot);
        else
            slot->state = SLOT_OVER;
        break;
    case TIDE_STEP_PROBE:
        if (!once(e))
            wrong(w, "a step that may be done again is to be probed");
        slot->state = SLOT_PROBE;
        break;
    default:
        slot->later_ms = a->retry_at_ms;
        slot->state = SLOT_WANT;
        break;
    }
    tide_text_done(&a->result);
}

static void slot_ask(struct world *w, struct proc *p, int s, struct slot *slot)
{
    const struct op *op = &w->sessions[s].ops[slot->op];
    char args[16];
    const struct tide_step_spec spec = spec_of(op, slot->op, args);
    struct tide_step_answer a = {.state = TIDE_STEP_RUN};
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code = tide_step_ask(p->doing[s].r, &spec, &a, &err);
    enum verdict v = call_end(w, p, &c, "ask", code, &err);

    if (!run_goes_on(w, p, s, v, code)) {
        tide_text_done(&a.result);
        return;
    }
    if (code == TIDE_UNSETTLED) {
        unsettled(w, p, s, op);
        return;
    }
    if (v != V_OK) {
        wrong(w, "step '%s' (op %d): %s: %s", op->name, slot->op, tide_code_name(code), err.msg);
        return;
    }
    slot->effect = effect_of(w, &p->doing[s], s, slot->op, a.key);
    slot_answer(w, p, s, slot, &a);
}

static void slot_begin(struct world *w, struct proc *p, int s, struct slot *slot)
{
    struct doing *d = &p->doing[s];
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code;
    enum verdict v;

    slot->effect->begins++;
    code = tide_step_begin(d->r, w->sessions[s].ops[slot->op].name, 0, 0, &err);
    v = call_end(w, p, &c, "begin", code, &err);
    slot->state = v == V_OK ? SLOT_BEGUN : SLOT_WANT;
    if (v == V_OK)
        effect_begins(w, d, slot->effect);
    if (v == V_DEAD || v == V_TROUBLE)
        slot->effect->failed = slot->effect->retry_left = slot->effect->retry_soft = false; /* perhaps it has begun */
    if (!run_goes_on(w, p, s, v, code))
        return;
    if (v != V_OK) {
        wrong(w, "a step cannot begin: %s: %s", tide_code_name(code), err.msg);
        return;
    }
    slot->effect->begun |= !tide_run_is_degraded(d->r);
    acked(w, p, s);
}

static void slot_ended(struct world *w, struct proc *p, int s, struct slot *slot, const struct tide_step_answer *a)
{
    struct effect *e = slot->effect;
    bool soft = is_soft(w, p, s, e);

    if (slot->worked) {
        e->completed |= !soft;
        slot->state = SLOT_OVER;
    } else if (a->state == TIDE_STEP_LATER) {
        e->retry_at_ms = slot->later_ms = a->retry_at_ms;
        e->retry_left = !soft;
        e->retry_soft = soft && !tide_run_is_degraded(p->doing[s].r);
        e->soft = false;
        slot->state = SLOT_WANT;
        if (a->retry_at_ms <= p->called_ms)
            wrong(w, "a failed step is to be retried without a pause");
    } else {
        e->failed |= !soft;
        e->soft = false;
        slot_failed(w, p, s, slot);
    }
}

static void slot_end(struct world *w, struct proc *p, int s, struct slot *slot)
{
    struct tide_step_result result = {.size = sizeof result,
                                      .outcome = slot->worked ? TIDE_OUTCOME_COMPLETED : TIDE_OUTCOME_FAILED};
    struct tide_step_answer a = {.state = TIDE_STEP_STORED};
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code;
    enum verdict v;

    result.result = slot->worked ? slot->effect->result : NULL;
    result.error_code = slot->worked ? NULL : "exit";
    slot->effect->ends++;
    code = tide_step_end(p->doing[s].r, w->sessions[s].ops[slot->op].name, &result, &a, &err);
    v = call_end(w, p, &c, slot->worked ? "end" : "end, failed", code, &err);
    if (!run_goes_on(w, p, s, v, code))
        return;
    if (v != V_OK) {
        wrong(w, "a step cannot end: %s: %s", tide_code_name(code), err.msg);
        return;
    }
    if (once(slot->effect))
        acked(w, p, s);
    slot_ended(w, p, s, slot, &a);
}

static void slot_settle(struct world *w, struct proc *p, int s, struct slot *slot)
{
    const struct op *op = &w->sessions[s].ops[slot->op];
    struct tide_step_answer a = {.state = TIDE_STEP_RUN};
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    int happened = !w->calm && chance(w, 20) ? -1 : slot->effect->done > 0;
    enum tide_code code;
    enum verdict v;

    slot->effect->ends++;
    code = tide_step_settle(p->doing[s].r, op->name, happened, slot->effect->result, &a, &err);
    v = call_end(w, p, &c,
                 happened < 0 ? "settle: cannot be told"
                 : happened   ? "settle: yes"
                              : "settle: no",
                 code, &err);
    slot->state = SLOT_WANT;
    if (!run_goes_on(w, p, s, v, code)) {
        tide_text_done(&a.result);
        return;
    }
    if (code == TIDE_UNSETTLED && happened < 0) {
        unsettled(w, p, s, op);
        return;
    }
    if (v != V_OK || happened < 0) {
        wrong(w, "a step cannot be settled: %s: %s", tide_code_name(code), err.msg);
        return;
    }
    acked(w, p, s);
    slot_answer(w, p, s, slot, &a);
    if (!happened && !w->calm && chance(w, 15)) {
        say(w, "process %d is killed", p->number);
        sim_proc_kill(p->sim);
    }
}

static void slot_step(struct world *w, struct proc *p, int s, struct slot *slot)
{
    switch (slot->state) {
    case SLOT_WANT:
        if (slot->later_ms > now(w) && (w->calm || chance(w, 60)))
            clock_move(w, slot->later_ms - now(w));
        slot_ask(w, p, s, slot);
        break;
    case SLOT_PROBE:
        slot_settle(w, p, s, slot);
        break;
    case SLOT_ASKED:
        slot_begin(w, p, s, slot);
        break;
    case SLOT_BEGUN: /* no lease can keep a process that slept from doing what it began: it has to look */
        if (p->doing[s].may_lose && !run_look(w, p, s))
            break;
        slot->worked = effect_do(w, p, &p->doing[s], slot->effect);
        slot->state = SLOT_DID;
        say(w, "process %d: does op %d: %s", p->number, slot->op, slot->worked ? slot->effect->result : "it fails");
        break;
    case SLOT_DID:
        slot_end(w, p, s, slot);
        break;
    default:
        break;
    }
}

void op_step(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    const struct op *op = &w->sessions[s].ops[d->pc];
    int n = op->pair ? 2 : 1, first;
    bool over = true;

    if (op->whole) {
        step_whole(w, p, s);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (d->slots[i].state == SLOT_FREE)
            d->slots[i] = (struct slot){.state = SLOT_WANT, .op = d->pc + i};
    }
    first = n == 2 && chance(w, 50) ? 1 : 0;
    if (d->slots[first].state == SLOT_OVER)
        first = n - 1 - first;
    slot_step(w, p, s, &d->slots[first]);
    if (!d->r)
        return;
    for (int i = 0; i < n; i++)
        over &= d->slots[i].state == SLOT_OVER;
    if (over) {
        d->pc += n;
        memset(d->slots, 0, sizeof d->slots);
    }
}
