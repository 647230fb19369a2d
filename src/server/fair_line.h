/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line in which tasks take turns: the next is of the task that has the fewest active runs, and among such tasks of the one whose last
 * turn was longest ago. Sessions without a task are one task together. Of one task, what somebody asked for comes before what is
 * due. The caller holds a lock; nothing is kept of a task that neither waits nor runs.
 */
#ifndef SERVER_FAIR_LINE_H
#define SERVER_FAIR_LINE_H

#include "base/map.h"
#include "tidemark.h"

struct fair_task;

struct fair_turn {
    struct fair_turn *next; /* the line's, as is `task` */
    struct fair_task *task;
    char id[TIDE_ID_SIZE]; /* of the session; the rest is the caller's as well */
    int64_t until_ms;      /* somebody asked, and does not wait longer; 0: it is due, and waits as long as it takes */
    int64_t handle;
    void *what;
};

struct fair_line {
    struct map tasks; /* name -> struct fair_task * */
    uint64_t turns;
    size_t asked, due; /* that wait */
};

void fair_put(struct fair_line *l, const char *task, struct fair_turn *turn);
/* Whose turn it is: it waits no more, and its task has one more that runs, until fair_ended(). NULL: nobody waits. */
struct fair_turn *fair_take(struct fair_line *l);
void fair_ended(struct fair_line *l, struct fair_task *task);

bool fair_waits(const struct fair_line *l, const char *session_id); /* … for somebody who asked */
/* One that has waited too long, which waits no more; NULL: none. And when the next one has; 0: nobody asked. */
struct fair_turn *fair_take_late(struct fair_line *l, int64_t now_ms);
int64_t fair_next_late(const struct fair_line *l);

void fair_done(struct fair_line *l, void (*drop)(struct fair_turn *turn));

#endif
