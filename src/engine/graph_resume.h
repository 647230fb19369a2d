/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resuming a graph: from where it stands or from a checkpoint, with other values or another version of the graph, of a
 * damaged log in a fork. Everything that can be refused is said before anything is written.
 *
 *   graph_resume_open()     its graph; of a log that cannot be read to its end a fork is made, or with `look` looked for
 *   graph_resume_look()     what it would do and miss; again, when values were added
 *   graph_resume_decide()   refuses, or makes ready: `session`, `graph` and `want` are those to run
 */
#ifndef ENGINE_GRAPH_RESUME_H
#define ENGINE_GRAPH_RESUME_H

#include "engine/graph_inputs.h"
#include "engine/graph_run.h"

/* Why it is not resumed, and what helps. */
struct graph_refusal {
    const char *what;
    struct tide_hint hints[2]; /* action 0: none */
};

struct graph_resume {
    tide_store *store;
    const char *id;        /* as it was given */
    tide_session *session; /* NULL: its log cannot be read to its end */
    const char *file;      /* of another version of the graph; NULL: the one that is stored */
    struct graph_want *want;
    bool look;                                 /* nothing is written */
    bool quiet;                                /* the events of the run are not shown */
    void (*tell)(void *arg, const char *line); /* the place where it continues, if that is not where it stopped */
    void *arg;

    tide_graph *graph;
    bool waits;                          /* for an answer */
    const struct graph_missing *missing; /* ended by key NULL */
    struct buf plan;                     /* with `look`: JSON, as of tide_graph_make_plan() */
    const struct graph_refusal *refused; /* the same; ended by what NULL */
    enum tide_code code;                 /* of the first of them; TIDE_OK: there is none */

    struct outlook *outlook;
    tide_session *fork;
    const char *news; /* where it continues: shown when it does */
    struct arena arena;
};

#define GRAPH_RESUME_INIT                                                                                              \
    {                                                                                                                  \
        .plan = BUF_INIT(SIZE_MAX / 4), .arena = ARENA_INIT                                                            \
    }

enum tide_code graph_resume_open(struct graph_resume *r, struct tide_err *err) MUST_CHECK;
enum tide_code graph_resume_look(struct graph_resume *r, struct tide_err *err) MUST_CHECK;
enum tide_code graph_resume_decide(struct graph_resume *r, struct tide_err *err) MUST_CHECK;

/* The fork of one that was refused after all goes with it. */
void graph_resume_done(struct graph_resume *r);

#endif
