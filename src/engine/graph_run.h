/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of a graph, for whoever starts or resumes one: its session, who answers in its agents, and going on with an answer
 * when it waits. What is asked for of provider and model counts for every node: that is how a graph is tried without an
 * account.
 */
#ifndef ENGINE_GRAPH_RUN_H
#define ENGINE_GRAPH_RUN_H

#include "engine/agent_setup.h"
#include "engine/session_fields.h"
#include "engine/user_store.h"

struct graph_want {
    /* memory, checkpoints, threads, event, arg, and of a resume token … fallback; agent and on_store_error_continue are
     * filled in by graph_run() */
    struct tide_graph_options opt;
    struct agent_want who;               /* of all nodes; what it does not say is as the graph says, as set */
    bool resume;                         /* tide_graph_resume(), else tide_graph_run() */
    const char *working_dir;             /* of a new session [here] */
    const struct session_fields *fields; /* of a new session; NULL: none */
    bool agents_later;                   /* no agent runs at once: what they need is missed when one does */
};

/* ---- the session ---- */

/*
 * A new one, or the one that has this id; NULL: any. `title` NULL: the graph's name. Trouble of the store is waited for. Of one that is there: who answers is as `want` says from now on.
 */
enum tide_code graph_session_open(tide_store *store, const char *id, const char *title, tide_graph *graph,
                                  const struct graph_want *want, const struct held *held, tide_session **ret_session,
                                  bool *ret_made, struct tide_err *err) MUST_CHECK;

/* What is refused leaves no session behind: deletes one in which nothing ran. */
void graph_session_drop(tide_store *store, tide_session **session);

/* ---- running ---- */

/*
 * Whether it can be run here: no callbacks, a key and a model where agents work. The settings of `setup` are open; its options
 * are those of the agents. `session` NULL: there is none yet.
 */
enum tide_code graph_setup(struct agent_setup *setup, tide_graph *graph, tide_session *session,
                           const struct graph_want *want, struct tide_err *err) MUST_CHECK;

struct graph_run {
    tide_graph *graph;
    tide_session *session; /* a fork takes its place when it goes on in one */
    struct graph_want *want;
    struct agent_setup setup;              /* settings and store: the caller's */
    void (*running)(void *arg, bool runs); /* around every stretch in which it runs; NULL: nobody is told */
    bool (*answer)(void *arg, tide_session *session,
                   struct buf *ret_json); /* to what it waits for; NULL, false: none */
    void *arg;

    bool began; /* what it ended with is that of the graph */
    tide_session *fork;
    struct buf memory; /* what is stored nowhere, for the next run */
    struct arena arena;
    char token[TIDE_TOKEN_SIZE];
};

#define GRAPH_RUN_INIT                                                                                                 \
    {                                                                                                                  \
        .memory = BUF_INIT(SIZE_MAX / 4), .arena = ARENA_INIT                                                          \
    }

/*
 * Runs it to its end, or until it waits and there is no answer; recovery of what others left goes on beside it. What `run` was
 * told of who answers holds for a resume, unless it says otherwise. `config`: as of settings_find(). While it waits for an answer
 * here, what is set for the deadline is carried out when that passes.
 */
enum tide_code graph_run(struct graph_run *r, const char *config, struct tide_graph_result *ret, struct tide_err *err)
    MUST_CHECK;

/*
 * There is no answer: what is set for the deadline is carried out, if that has passed. TIDE_OK: a resume goes on without an
 * answer. TIDE_WAITING: it stays parked. Else it does not wait any more.
 */
enum tide_code graph_lapse(tide_store *store, tide_session *session, struct tide_err *err) MUST_CHECK;

void graph_run_done(struct graph_run *r);

struct spec_node;
bool graph_node_asks(const struct spec_node *node); /* a model is asked by it or by what is inside it */

#endif
