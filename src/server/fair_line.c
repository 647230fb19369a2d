/* SPDX-License-Identifier: Apache-2.0 */
#include "server/fair_line.h"

#include <string.h>

#include "base/invariant.h"
#include "base/mem.h"

struct fair_task {
    struct fair_turn *asked, *due; /* first come, first served */
    struct fair_turn **asked_end, **due_end;
    size_t active;
    uint64_t last_turn; /* or when it came: a task that is new comes after those that wait */
    char name[];
};

static struct fair_task *find_task(struct fair_line *l, const char *name)
{
    struct fair_task *t = map_get(&l->tasks, str_from(name));
    size_t size = strlen(name) + 1;

    if (t)
        return t;
    t = mem_zero(sizeof *t + size);
    memcpy(t->name, name, size);
    t->asked_end = &t->asked;
    t->due_end = &t->due;
    t->last_turn = ++l->turns;
    map_put(&l->tasks, str_from(name), t);
    return t;
}

static void forget_idle(struct fair_line *l, struct fair_task *t)
{
    if (!t->asked && !t->due && !t->active)
        free(map_remove(&l->tasks, str_from(t->name)));
}

void fair_put(struct fair_line *l, const char *task, struct fair_turn *turn)
{
    struct fair_task *t = find_task(l, task);
    struct fair_turn ***end = turn->until_ms ? &t->asked_end : &t->due_end;

    turn->task = t;
    turn->next = NULL;
    **end = turn;
    *end = &turn->next;
    *(turn->until_ms ? &l->asked : &l->due) += 1;
}

/* Out of the list in which `*at` is the pointer to it. */
static struct fair_turn *unlink_turn(struct fair_line *l, struct fair_turn **at)
{
    struct fair_turn *turn = *at;
    struct fair_task *t = turn->task;

    *at = turn->next;
    if (!turn->next)
        *(turn->until_ms ? &t->asked_end : &t->due_end) = at;
    *(turn->until_ms ? &l->asked : &l->due) -= 1;
    return turn;
}

static bool is_before(const struct fair_task *a, const struct fair_task *b)
{
    return a->active != b->active ? a->active < b->active : a->last_turn < b->last_turn;
}

struct fair_turn *fair_take(struct fair_line *l)
{
    struct fair_task *best = NULL;

    for (struct map_entry *e = map_next(&l->tasks, NULL); e; e = map_next(&l->tasks, e)) {
        struct fair_task *t = e->value;

        if ((t->asked || t->due) && (!best || is_before(t, best)))
            best = t;
    }
    if (!best)
        return NULL;
    best->active++;
    best->last_turn = ++l->turns;
    return unlink_turn(l, best->asked ? &best->asked : &best->due);
}

void fair_ended(struct fair_line *l, struct fair_task *task)
{
    INVARIANT(task->active > 0);
    task->active--;
    forget_idle(l, task);
}

bool fair_waits(const struct fair_line *l, const char *session_id)
{
    for (struct map_entry *e = l->asked ? map_next(&l->tasks, NULL) : NULL; e; e = map_next(&l->tasks, e))
        for (const struct fair_turn *turn = ((struct fair_task *)e->value)->asked; turn; turn = turn->next)
            if (strcmp(turn->id, session_id) == 0)
                return true;
    return false;
}

struct fair_turn *fair_take_late(struct fair_line *l, int64_t now_ms)
{
    for (struct map_entry *e = l->asked ? map_next(&l->tasks, NULL) : NULL; e; e = map_next(&l->tasks, e)) {
        struct fair_task *t = e->value;

        if (t->asked && t->asked->until_ms <= now_ms) { /* the first one came first */
            struct fair_turn *late = unlink_turn(l, &t->asked);

            late->task = NULL;
            forget_idle(l, t);
            return late;
        }
    }
    return NULL;
}

int64_t fair_next_late(const struct fair_line *l)
{
    int64_t next = 0;

    for (struct map_entry *e = l->asked ? map_next(&l->tasks, NULL) : NULL; e; e = map_next(&l->tasks, e)) {
        const struct fair_turn *turn = ((struct fair_task *)e->value)->asked;

        if (turn && (!next || turn->until_ms < next))
            next = turn->until_ms;
    }
    return next;
}

void fair_done(struct fair_line *l, void (*drop)(struct fair_turn *turn))
{
    struct fair_turn *turn;

    while ((turn = fair_take(l)))
        drop(turn);
    map_done(&l->tasks, free);
}
