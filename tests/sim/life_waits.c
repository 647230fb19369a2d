/* SPDX-License-Identifier: Apache-2.0 */
/* Waits, sleeps, memory and marks of a program. */
#include <stdio.h>

#include "life.h"

static int name_index(const struct op *op)
{
    return op->name[0] - 'a';
}

/* Waits and sleeps count together. */
static void wait_key(const struct world *w, const struct doing *d, int s, char key[KEY])
{
    const struct op *op = &w->sessions[s].ops[d->pc];

    snprintf(key, KEY, "%s/%s/%d", d->chain, op->name, d->uses[name_index(op)] + 1);
}

static void pass_wait(struct world *w, struct proc *p, int s, const char *answer)
{
    struct doing *d = &p->doing[s];
    struct passed *x;
    char key[KEY];

    wait_key(w, d, s, key);
    for (size_t i = 0; i < w->passed.n; i++) {
        x = w->passed.all[i];
        if (x->session != s || strcmp(x->key, key) != 0)
            continue;
        if (strcmp(x->answer, answer) != 0 && !w->sessions[s].asked_again)
            wrong(w, "wait '%s' answers %s, it answered %s before", key, answer, x->answer);
        if (strcmp(x->run_id, d->run_id) == 0)
            return;
    }
    x = ADD(w, passed);
    x->session = s;
    snprintf(x->run_id, sizeof x->run_id, "%s", d->run_id);
    snprintf(x->key, sizeof x->key, "%s", key);
    snprintf(x->answer, sizeof x->answer, "%s", answer);
}

static bool has_passed(const struct world *w, int s, const char *key)
{
    for (size_t i = 0; i < w->passed.n; i++) {
        if (w->passed.all[i]->session == s && strcmp(w->passed.all[i]->key, key) == 0)
            return true;
    }
    return false;
}

/* Where the deadline of a wait that asks for the same one always is kept. */
static struct asked *asked_before(struct world *w, struct doing *d, int s)
{
    struct asked *a;
    char key[KEY];

    wait_key(w, d, s, key);
    for (size_t i = 0; i < w->asked.n; i++) {
        if (w->asked.all[i]->session == s && strcmp(w->asked.all[i]->key, key) == 0)
            return w->asked.all[i];
    }
    a = ADD(w, asked);
    a->session = s;
    snprintf(a->key, sizeof a->key, "%s", key);
    return a;
}

/* A deadline in the past is refused, but never that of a wait that was answered. */
static bool too_late(struct world *w, struct doing *d, int s, const struct tide_wait_options *opt)
{
    struct asked *a = asked_before(w, d, s);
    bool late = opt->deadline_ms && opt->deadline_ms <= w->max_wall_ms;

    a->deadline_ms = 0;                                        /* the program asks for another */
    return late && (d->may_lose || !has_passed(w, s, a->key)); /* who lost the run may not know of the answer */
}

static void next_op(struct world *w, struct doing *d, int s)
{
    d->uses[name_index(&w->sessions[s].ops[d->pc])]++;
    d->pc++;
}

void keep_token(struct world *w, int s, const char *text)
{
    struct token_out *t = ADD(w, tokens);

    t->session = s;
    snprintf(t->text, sizeof t->text, "%s", text);
    snprintf(t->id, sizeof t->id, "%.*s", (int)strcspn(text, "."), text);
}

static void parked(struct world *w, struct proc *p, int s)
{
    acked(w, p, s);
    run_drop(w, p, s);
}

void op_wait(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    const struct op *op = &w->sessions[s].ops[d->pc];
    int64_t at = now(w);
    struct tide_wait_options opt = {.size = sizeof opt,
                                    op->name,
                                    (enum tide_wait_kind)tide_wait_kind_from(op->wait_kind),
                                    "well?",
                                    op->span_ms ? at + op->span_ms : 0,
                                    op->good_ms ? at + op->good_ms : 0,
                                    op->on_deadline,
                                    op->on_deadline == TIDE_ON_DEADLINE_DEFAULT ? LIFE_DEFAULT : NULL};
    char token[TIDE_TOKEN_SIZE] = "";
    struct tide_text answer = {NULL, 0};
    struct tide_err err = {0};
    struct asked *before = op->fixed ? asked_before(w, d, s) : NULL;
    struct call c;
    enum tide_code code;
    enum verdict v;

    if (before && before->deadline_ms)
        opt.deadline_ms = before->deadline_ms;
    else if (before)
        before->deadline_ms = opt.deadline_ms;
    c = call_release(w, p);
    code = tide_run_wait(d->r, &opt, &answer, token, &err);
    v = call_end(w, p, &c, "wait", code, &err);

    if (!run_goes_on(w, p, s, v, code)) {
        tide_text_done(&answer);
        return;
    }
    if (code == TIDE_WAITING) {
        keep_token(w, s, token);
        parked(w, p, s);
    } else if (v == V_OK) {
        pass_wait(w, p, s, answer.ptr);
        next_op(w, d, s);
    } else if (code != TIDE_INVALID || !too_late(w, d, s, &opt)) {
        wrong(w, "wait '%s': %s: %s", op->name, tide_code_name(code), err.msg);
    }
    tide_text_done(&answer);
}

void op_sleep(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    const struct op *op = &w->sessions[s].ops[d->pc];
    int64_t due = 0;
    struct tide_err err = {0};
    struct call c = call_release(w, p);
    enum tide_code code = tide_run_sleep(d->r, op->name, now(w) + op->span_ms, &due, &err);
    enum verdict v = call_end(w, p, &c, "sleep", code, &err);

    if (!run_goes_on(w, p, s, v, code))
        return;
    if (code == TIDE_WAITING)
        parked(w, p, s);
    else if (v == V_OK)
        next_op(w, d, s);
    else
        wrong(w, "sleep '%s': %s: %s", op->name, tide_code_name(code), err.msg);
}

void op_set(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    const struct op *op = &w->sessions[s].ops[d->pc];
    char value[24];
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code;
    enum verdict v;

    snprintf(value, sizeof value, "%d", d->pc);
    code = tide_run_set(d->r, op->name, value, &err);
    v = call_end(w, p, &c, "set", code, &err);
    if (!run_goes_on(w, p, s, v, code))
        return;
    if (v == V_OK)
        d->pc++;
    else
        wrong(w, "set: %s: %s", tide_code_name(code), err.msg);
}

/* What the latest set of this name before said; -1: none did. */
static int last_set(const struct world *w, int s, int pc)
{
    const struct op *ops = w->sessions[s].ops;

    for (int i = pc - 1; i >= 0; i--) {
        if (ops[i].kind == OP_SET && strcmp(ops[i].name, ops[pc].name) == 0)
            return i;
    }
    return -1;
}

void op_get(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    const struct op *op = &w->sessions[s].ops[d->pc];
    int want = last_set(w, s, d->pc);
    char value[24];
    struct tide_text text = {NULL, 0};
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code = tide_run_get(d->r, op->name, &text, &err);
    enum verdict v = call_end(w, p, &c, "get", code, &err);

    if (!run_goes_on(w, p, s, v, code)) {
        tide_text_done(&text);
        return;
    }
    snprintf(value, sizeof value, "%d", want);
    if (want >= 0 && (v != V_OK || strcmp(text.ptr, value) != 0))
        wrong(w, "get '%s': %s, it was set to %s", op->name, v == V_OK ? text.ptr : err.msg, value);
    d->pc++;
    tide_text_done(&text);
}

static void keep_mark(struct world *w, struct doing *d, int s, const char *id)
{
    struct marked *m;

    for (size_t i = 0; i < w->marked.n; i++) {
        m = w->marked.all[i];
        if (m->session != s || m->op != d->pc || strcmp(m->chain, d->chain) != 0)
            continue;
        if (strcmp(m->id, id) != 0 && !w->sessions[s].asked_again)
            wrong(w, "a program that is executed again makes another checkpoint");
        snprintf(m->id, sizeof m->id, "%s", id);
        return;
    }
    m = ADD(w, marked);
    m->session = s;
    m->op = d->pc;
    snprintf(m->chain, sizeof m->chain, "%s", d->chain);
    snprintf(m->id, sizeof m->id, "%s", id);
}

void op_mark(struct world *w, struct proc *p, int s)
{
    struct doing *d = &p->doing[s];
    char id[TIDE_ID_SIZE] = "";
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code = tide_run_checkpoint(d->r, 0, NULL, id, &err);
    enum verdict v = call_end(w, p, &c, "checkpoint", code, &err);

    if (!run_goes_on(w, p, s, v, code))
        return;
    if (v != V_OK) {
        wrong(w, "checkpoint: %s: %s", tide_code_name(code), err.msg);
        return;
    }
    keep_mark(w, d, s, id);
    d->pc++;
}
