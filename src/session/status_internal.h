/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of a status: what status.c finds out and the others put into words. */
#ifndef SESSION_STATUS_INTERNAL_H
#define SESSION_STATUS_INTERNAL_H

#include "session/settle.h"
#include "session/status.h"

/* What the sentences and commands are made of. */
struct subject {
    struct status *st;
    const struct state *state;
    const struct run *run;
    bool has_program; /* `tidemark resume` can run it */
    int64_t now_ms;
    const struct status_alive *alive;
    bool chat;  /* that is the agent's loop: a prompt begins its next run */
    bool graph; /* it is a graph: what it stands at are nodes */
};

/* What a node that failed with this code needs before it can continue. */
enum mending {
    MEND_NOTHING, /* it may be able to continue as it is */
    MEND_GRAPH,   /* another graph alone helps */
    MEND_EITHER,  /* another graph, or another value: with the same of both it ends there again */
    MEND_HERE,    /* something of this machine, or another graph */
    MEND_VALUE
};

/* A program of the last run stands in the way of the next. */
static inline bool is_leftover(const struct subject *o)
{
    return !o->alive->owner && o->alive->pid > 0;
}

void status_say(const struct subject *o);   /* status_why.c: the sentence */
void status_offer(const struct subject *o); /* status_next.c: the commands */

/* ---- status_next.c: what stands in the way of continuing; the sentence says it, the commands follow from it */
const char *status_stuck(const struct subject *o); /* at what; NULL: at nothing */
size_t status_cut(const struct subject *o, const char **names, size_t max);
enum mending status_mending(const struct subject *o);
bool status_hollow(const struct subject *o);

/* A question that was answered with no and can be asked again; NULL: there is none. */
static inline const char *status_denied(const struct subject *o)
{
    const struct denied *d = &o->state->ledger.denied;

    return d->name && !d->then && strlen(d->name) < ACTION_NAME && o->st->status != TIDE_STATUS_RUNNING &&
                   o->st->status != TIDE_STATUS_DAMAGED
               ? d->name
               : NULL;
}

/* When it continues without anybody's answer: a sleep, or a wait that its deadline has answered; 0: it does not. */
static inline int64_t status_due_ms(const struct subject *o)
{
    const struct run *r = o->run;

    return r->due_ms ? r->due_ms : settle_deadline(r, o->now_ms) == TIDE_ON_DEADLINE_DEFAULT ? r->deadline_ms : 0;
}

static inline const char *wait_word(const struct run *r)
{
    return r->wait_kind ? r->wait_kind : "input";
}

#endif
