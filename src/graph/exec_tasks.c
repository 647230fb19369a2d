/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the nodes that were begun are open. Those that failed stay in the position, so that a resume finds them, and of a
 * map that waits for all its items they may be thousands: a caller that needs the running ones does not walk over them.
 *
 *   x->open   every node that was begun and has not failed, and maybe some that are over: a walk leaves them out
 *   x->left   what an earlier run left, failed or not, oldest first: each is taken up once
 */
#include "graph/exec.h"

void tasks_index(struct exec *x)
{
    const struct map *active = &x->view->content.position.active;

    tasks_done(x);
    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e)) {
        const struct task *t = e->value;

        if (t->state != TASK_FAILED)
            tasks_begun(x, e->key);
        tasks_leave(x, e->key);
    }
}

void tasks_begun(struct exec *x, const char *name)
{
    map_put(&x->open, str_from(name), x);
}

struct map_entry *tasks_next(struct exec *x, struct map_entry *after, const struct task **ret)
{
    struct map_entry *e = after;

    while ((e = map_next(&x->open, e))) {
        const struct task *t = map_get(&x->view->content.position.active, map_key(e));

        if (t && t->state != TASK_FAILED) {
            *ret = t;
            return e;
        }
        map_remove(&x->open, map_key(e));
    }
    return NULL;
}

bool tasks_are_open(const struct exec *x)
{
    const struct map *active = &x->view->content.position.active;

    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e))
        if (((const struct task *)e->value)->state != TASK_FAILED && !map_get(&x->open, map_key(e)))
            return false;
    return true;
}

void tasks_leave(struct exec *x, const char *name)
{
    MEM_ROOM(x->left, x->n_left, x->cap_left);
    x->left[x->n_left++] = mem_dup(str_from(name));
}

const char *tasks_left(struct exec *x)
{
    return x->left_at < x->n_left ? x->left[x->left_at++] : NULL;
}

void tasks_done(struct exec *x)
{
    for (size_t i = 0; i < x->n_left; i++)
        free(x->left[i]);
    free(TAKE(x->left));
    x->n_left = x->cap_left = x->left_at = 0;
    map_done(&x->open, NULL);
}
