/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What moves a session, the likeliest first. What stands in the way of continuing is found out first: an action that would
 * only end there again is not offered.
 */
#include "session/status_internal.h"

#include <assert.h>
#include <inttypes.h>

#include "session/settle.h"

/* ---- What stands in the way ---------------------------------------------------------------------------------------- */

/* Nodes, or steps of a program, that must happen once and were cut: how many, and the names of the first ones. */
size_t status_cut(const struct subject *o, const char **names, size_t max)
{
    const struct map *effects = &o->state->ledger.effects;
    size_t n = 0;

    for (struct map_entry *e = map_next(effects, NULL); e; e = map_next(effects, e)) {
        const struct effect *f = e->value;

        if (f->past || !f->tool || !f->effect || strcmp(f->effect, "once") != 0 ||
            o->graph != (strncmp(e->key, "node:", 5) == 0))
            continue;
        if (n < max)
            names[n] = f->tool;
        n++;
    }
    return n;
}

static const char *cut_once(const struct subject *o)
{
    const char *name;

    return status_cut(o, &name, 1) ? name : NULL;
}

/* What must happen once, failed or was cut, and is still to be continued with. A rollback leaves a node behind; an edge may
 * have taken care of it. */
const char *status_stuck(const struct subject *o)
{
    const char *cut = o->graph ? cut_once(o) : NULL, *stuck = o->state->ledger.stuck;
    const struct task *t = o->graph && stuck ? map_get(&o->state->content.position.active, str_from(stuck)) : NULL;

    if (o->chat || cut || !o->graph)
        return o->chat ? NULL : cut ? cut : stuck;
    return t && (t->state == TASK_RUNNING || t->state == TASK_FAILED) ? stuck : NULL;
}

enum mending status_mending(const struct subject *o)
{
    static const struct {
        const char *code;
        enum mending mend;
    } known[] = {
        {"max_steps", MEND_GRAPH}, {"conflict", MEND_GRAPH}, {"secret", MEND_GRAPH},        {"too_big", MEND_EITHER},
        {"template", MEND_EITHER}, {"lua", MEND_EITHER},     {"choice", MEND_EITHER},       {"limit", MEND_EITHER},
        {"not_found", MEND_HERE},  {"denied", MEND_HERE},    {"missing_input", MEND_VALUE},
    };
    const struct run *r = o->run;
    const char *code = o->graph && r->end == RUN_FAILED && o->st->is_resumable ? r->error_code : NULL;

    for (size_t i = 0; code && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].code, code) == 0)
            return known[i].mend;
    return MEND_NOTHING;
}

/* A graph inside that is over without what it promised: nothing in it is left to run. */
bool status_hollow(const struct subject *o)
{
    const struct run *r = o->run;
    const struct position *p = &o->state->content.position;
    const struct task *t = o->graph && r->failed_at_node ? map_get(&p->active, str_from(r->failed_at_node)) : NULL;
    char frame[256];

    if (!t || !r->error_code || strcmp(r->error_code, "missing_output") != 0)
        return false;
    snprintf(frame, sizeof frame, "%s#%" PRId64, r->failed_at_node, t->visit);
    return map_get(&p->scopes, str_from(frame)) != NULL;
}

/* ---- What is offered ------------------------------------------------------------------------------------------------ */

static struct action *offer_action(const struct subject *o, enum tide_action action)
{
    struct status *s = o->st;

    assert(s->next_count < STATUS_NEXT);
    s->next[s->next_count] = (struct action){.action = action, .kind = s->kind};
    return &s->next[s->next_count++];
}

/* Programs that were recorded, and graphs; others are resumed by whatever made them. */
static bool can_resume(const struct subject *o)
{
    return o->has_program && o->st->is_resumable;
}

static void offer_resume(const struct subject *o, unsigned wants)
{
    if (can_resume(o))
        offer_action(o, TIDE_ACTION_RESUME)->wants = wants;
}

/* The user who has the program: it continues the chain where that can be, else a new run begins. */
static void offer_start(const struct subject *o)
{
    bool unfinished = o->run->end != RUN_NONE && o->run->end != RUN_COMPLETED && o->run->end != RUN_CANCELLED;
    bool continues = o->st->is_resumable && o->st->status != TIDE_STATUS_WAITING;

    offer_action(o, TIDE_ACTION_START)->wants = !unfinished ? 0u : continues ? ACTION_ENSURE : ACTION_NEW_RUN;
}

static void offer_new_run(const struct subject *o)
{
    const struct position *p = &o->state->content.position;

    if (status_is_new_graph(o->state))
        offer_action(o, TIDE_ACTION_START);
    else if (o->graph)
        offer_action(o, TIDE_ACTION_RESUME)->wants = p->ready.live || p->active.live ? 0 : ACTION_CHECKPOINT;
    else if (o->chat)
        offer_action(o, TIDE_ACTION_PROMPT);
    else
        offer_start(o);
}

/* The same program with the same arguments would be refused at that step again. */
static unsigned change_of(const struct subject *o)
{
    return o->run->end == RUN_FAILED && o->run->changed_step ? ACTION_ACCEPT_CHANGE : 0;
}

/* It happened, or it runs again. */
static void offer_both(const struct subject *o, const char *name)
{
    struct action *a = offer_action(o, TIDE_ACTION_RESUME);

    a->wants = change_of(o);
    snprintf(a->happened, sizeof a->happened, "%s", name);
    a->needs_output = o->graph && strchr(name, '#'); /* inside of something its outputs are no keys of the memory */
    a = offer_action(o, TIDE_ACTION_RESUME);
    a->wants = change_of(o);
    snprintf(a->retry, sizeof a->retry, "%s", name);
}

/*
 * A step that must happen once has failed, or nobody knows: continuing as before would end at it again. False when there is
 * none, or its name is too long to be offered.
 */
static bool offer_settling(const struct subject *o)
{
    const char *name = status_stuck(o);

    if (!name || strlen(name) >= ACTION_NAME)
        return false;
    if (can_resume(o))
        offer_both(o, name);
    return true;
}

/* Of a program: a probe may find out, and the log does not record whether the step has one. */
static void offer_cut_step(const struct subject *o)
{
    const char *name = o->graph || o->chat ? NULL : cut_once(o);

    if (name && strlen(name) < ACTION_NAME && can_resume(o))
        offer_both(o, name);
}

/* The same graph with the same memory would fail again. */
static bool offer_mending(const struct subject *o)
{
    enum mending m = status_mending(o);

    if (status_hollow(o)) { /* what is inside is complete: it runs again only from before it */
        offer_resume(o, ACTION_CHECKPOINT | ACTION_GRAPH);
        return true;
    }
    if (m == MEND_HERE)
        offer_resume(o, 0);
    if (m == MEND_EITHER || m == MEND_VALUE)
        offer_resume(o, ACTION_SET);
    if (m == MEND_GRAPH || m == MEND_EITHER || m == MEND_HERE)
        offer_resume(o, ACTION_GRAPH);
    return m != MEND_NOTHING;
}

static void next_waiting(const struct subject *o)
{
    int64_t due_ms = status_due_ms(o);
    bool due = due_ms && due_ms <= o->now_ms;

    if (settle_delivers(o->state)) {
        offer_resume(o, 0);
        offer_action(o, TIDE_ACTION_RECOVER)->wants = ACTION_RUN_DUE;
        return;
    }
    if (due_ms)
        offer_resume(o, due ? 0 : ACTION_NOW);
    else if (can_resume(o))
        offer_action(o, TIDE_ACTION_ANSWER)->wait_kind = wait_word(o->run);
    if (due && o->has_program) {
        offer_action(o, TIDE_ACTION_RECOVER)->wants = ACTION_RUN_DUE;
        return;
    }
    if (!due_ms)
        offer_action(o, TIDE_ACTION_ROTATE_TOKEN);
    offer_action(o, TIDE_ACTION_CANCEL);
    if (!o->has_program)
        offer_start(o);
}

/* A plain resume would get the same no again. */
static void offer_ask_again(const struct subject *o)
{
    if (status_denied(o) && o->has_program)
        snprintf(offer_action(o, TIDE_ACTION_RESUME)->ask_again, ACTION_NAME, "%s", status_denied(o));
}

void status_offer(const struct subject *o)
{
    bool asks_first = o->run->end != RUN_COMPLETED && o->st->status != TIDE_STATUS_WAITING;

    if (is_leftover(o)) { /* first that has to end */
        offer_action(o, TIDE_ACTION_END_PROCESS)->pid = o->alive->pid;
        if (o->st->status != TIDE_STATUS_IDLE)
            offer_action(o, TIDE_ACTION_CANCEL);
        return;
    }
    if (asks_first)
        offer_ask_again(o);
    switch (o->st->status) {
    case TIDE_STATUS_INTERRUPTED_STARTUP:
    case TIDE_STATUS_INTERRUPTED_WAITING:
        if (o->run->waiting && !o->run->due_ms && o->st->is_resumable)
            offer_action(o, TIDE_ACTION_ROTATE_TOKEN);
        if (!offer_settling(o)) {
            offer_resume(o, 0);
            offer_cut_step(o);
        }
        offer_action(o, TIDE_ACTION_CANCEL);
        if (!o->graph && (!o->has_program || !o->st->is_resumable))
            offer_start(o);
        break;
    case TIDE_STATUS_WAITING:
        next_waiting(o);
        break;
    case TIDE_STATUS_RUNNING:
        offer_action(o, TIDE_ACTION_CANCEL);
        break;
    case TIDE_STATUS_IDLE:
        if (o->run->end == RUN_COMPLETED || (!offer_settling(o) && !offer_mending(o)))
            offer_resume(o, change_of(o));
        if (o->st->next_count == 0)
            offer_new_run(o);
        break;
    case TIDE_STATUS_DAMAGED:
        break;
    }
    if (!asks_first)
        offer_ask_again(o);
}
