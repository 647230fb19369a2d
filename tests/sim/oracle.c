/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each session without asking the store. */
#include <stdio.h>

#include "world.h"

struct o_session *o_add(struct world *w, const char *id)
{
    struct o_session *s = NULL;

    for (size_t i = 0; i < w->session_count; i++) { /* the id of one that is gone may come again */
        if (strcmp(w->sessions[i].id, id) == 0)
            s = &w->sessions[i];
    }
    if (!s && w->session_count == MAX_SESSIONS)
        return NULL;
    s = s ? s : &w->sessions[w->session_count++];
    free(s->events);
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "%s", id);
    s->first_seq = 1;
    s->holder = s->doubt_by = -1;
    s->holder_sure = true;
    return s;
}

int64_t o_last(const struct o_session *s)
{
    return s->first_seq - 1 + (int64_t)s->n;
}

const struct o_event *o_at(const struct o_session *s, int64_t seq)
{
    return s->events[seq - s->first_seq];
}

static void push(struct o_session *s, struct o_event *e)
{
    MEM_ROOM(s->events, s->n, s->cap);
    s->events[s->n++] = e;
}

void o_acked(struct world *w, struct o_session *s, const struct o_batch *b, struct proc *by)
{
    (void)w;
    for (size_t i = 0; i < b->n; i++) {
        if (by && !b->events[i].input)
            b->events[i].owner = by->number;
        push(s, &b->events[i]);
    }
    o_drop_doubt(s); /* what was in doubt at this seq did not get there */
}

void o_doubt(struct world *w, struct o_session *s, const struct o_batch *batches, size_t n, struct proc *by)
{
    struct o_chain *c = &s->alts[s->alt_count];

    if (n == 0)
        return;
    if (s->alt_count == MAX_ALTS) {
        wrong(w, "the harness has too many doubts about %s", s->id);
        return;
    }
    s->alt_count++;
    c->n = n;
    c->batches = arena_alloc(&w->arena, n * sizeof *batches);
    memcpy(c->batches, batches, n * sizeof *batches);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < batches[i].n; j++)
            batches[i].events[j].owner = by && !batches[i].events[j].input ? by->number : -1;
    }
    s->doubt_at = w->commits;
    s->doubt_by = by ? by->number : -1;
    s->holder_sure = false;
}

void o_drop_doubt(struct o_session *s)
{
    s->alt_count = 0;
    s->doubt_by = -1;
}

void o_gone(struct world *w, struct o_session *s)
{
    size_t at = o_index(w, s);

    s->presence = ABSENT;
    s->n = 0;
    s->kept_n = s->marks_n = 0;
    o_drop_doubt(s);
    s->holder = -1;
    s->holder_sure = true;
    for (int i = 0; i < w->proc_count; i++) {
        struct handle *h = &w->procs[i].handles[at];

        if (!proc_alive(&w->procs[i]) || !h->h)
            continue;
        tide_session_close(h->h);
        w->touch_ms[w->procs[i].number] = now(w);
        *h = (struct handle){0};
        drain(w, &w->procs[i]); /* what it had queued for other sessions went through with it */
    }
}

void note_commit(struct world *w, struct proc *p)
{
    w->commits++;
    if (!call_excused(w)) /* else its heartbeat may have failed */
        w->commit_ms[p->number] = now(w);
}

void o_lease(struct world *w, struct o_session *s, struct proc *by, bool released)
{
    size_t at = o_index(w, s);

    for (int i = 0; i < w->proc_count; i++) {
        struct handle *h = &w->procs[i].handles[at];

        if (&w->procs[i] != by && h->holds)
            h->lost = true;
    }
    by->handles[at].holds = !released;
    s->holder = released ? -1 : by->number;
    s->holder_sure = true;
    note_commit(w, by);
}

struct o_session *o_pick(struct world *w)
{
    size_t start = w->session_count ? rnd(w, w->session_count) : 0;

    for (size_t i = 0; i < w->session_count; i++) {
        struct o_session *s = &w->sessions[(start + i) % w->session_count];

        if (s->presence == PRESENT)
            return s;
    }
    return NULL;
}

size_t o_index(struct world *w, const struct o_session *s)
{
    return (size_t)(s - w->sessions);
}

bool o_has_forks(struct world *w, const struct o_session *s, bool surely)
{
    for (size_t i = 0; i < w->session_count; i++) {
        const struct o_session *f = &w->sessions[i];

        if (f->parent == s && (f->presence == PRESENT || (f->presence != ABSENT && !surely)))
            return true;
    }
    return false;
}
