/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the runner share: runner.c has the places and who gets one, active_run.c what one run does, runner_due.c what is
 * due. An active run is freed by its own thread, when neither the follower nor the scheduler looks at it any more.
 */
#ifndef SERVER_RUNNER_INTERNAL_H
#define SERVER_RUNNER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/resume.h"
#include "server/fair_line.h"
#include "server/runner.h"

struct active {
    struct active *next, **before;
    struct runner *runner;
    int64_t handle;   /* of the scheduler; 0: somebody asked */
    int64_t last_seq; /* of the session, before it begins */
    char id[TIDE_ID_SIZE];
    enum tide_session_kind kind;
    struct resume core;
    struct arena arena;
    const char *message;
    int64_t expect_seq;   /* 0: any */
    struct cause request; /* with an id, by which its events are known */
    bool until_parked;
    char token[TIDE_TOKEN_SIZE]; /* of the wait where it is parked */
    const struct program_order *program;
    const struct graph_order *graph;
    struct fair_task *task;
    pthread_t thread;

    pthread_mutex_t mu; /* of what follows */
    int holders;        /* the thread, the follower */
    begun_fn *fn;       /* NULL: it was called, or nobody asked */
    void *arg;
    void *work; /* of a chat or a graph: what can be stopped now */
    bool stopping;
    int64_t follower; /* its number */
};

struct runner {
    tide_store *store;
    struct feed *feed;
    struct runner_options opt;
    struct arena arena;

    pthread_mutex_t mu; /* of the list, and of what came of the scheduler's jobs */
    pthread_cond_t less;
    struct active *list;
    struct fair_line line; /* those that wait for a place */
    size_t places;         /* that are taken */
    size_t threads;        /* that may still look at this */
    int64_t last_handle;
    struct ended {
        int64_t handle;
        bool failed;
    } * ended;
    size_t n_ended, cap_ended;
    atomic_uint_fast64_t started, failed, degraded;
    atomic_uint_fast64_t interrupted[5]; /* by reason */

    pthread_t thread;
    bool running;
    atomic_bool stopping;
    int wake, stop; /* stop: readable once it stops */
    struct scheduler scheduler;
};

/* ---- active_run.c ---- */

struct active *active_new(struct runner *r, const char *id);
void active_take_order(struct active *a, const struct order *o); /* what was asked for; everything is copied */
void active_release(struct active *a);                           /* by one of its holders; the last one frees it */

/* Answers the caller that asked, if nobody has yet. */
void active_answer(struct active *a, const struct begun *begun, const struct tide_err *err);
bool active_is_awaited(struct active *a);

enum tide_code active_watch_begin(struct active *a, struct tide_err *err)
    MUST_CHECK;                          /* from here on its events are seen */
void active_shut_down(struct active *a); /* with its mu held */
/* Its thread, from its place on. */
void *active_run(void *active);

/* ---- runner.c ---- */

void runner_leave_place(struct runner *r, struct active *a, bool failed); /* with mu held */
void runner_give_places(struct runner *r);                                /* to whose turn it is */
void runner_refuse_late(struct runner *r);                /* who has waited too long; all once it stops */
int64_t runner_put_due(struct runner *r, const char *id); /* it waits for its turn; its handle */

/* ---- runner_due.c ---- */

void runner_count_interruption(struct runner *r, const struct tide_recovered *what);
struct scheduler runner_scheduler(struct runner *r);
void *runner_run_due(void *runner); /* the scheduler's thread */

#endif
