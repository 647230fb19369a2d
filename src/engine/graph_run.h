/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of a graph, for whoever starts or resumes one: its session, who answers in its agents, and going on with an answer
 * when it waits. What is asked for of provider and model counts for every node: that is how a graph is tried without an
 * account.
 */
#ifndef ENGINE_GRAPH_RUN_H
#define ENGINE_GRAPH_RUN_H

#include "engine/agent_setup.h"
#include "engine/user_store.h"

struct graph_want {
    /* memory, checkpoints, threads, on_store_error_continue, event, arg, and of a resume token … fallback; agent is filled
     * in by graph_run_begin() */
    struct tide_graph_options opt;
    bool resume;                                      /* tide_graph_resume(), else tide_graph_run() */
    const char *provider, *model, *base_url, *script; /* for all nodes; NULL: as the graph says, as set */
    bool yes, no_tools, keep_pause, degrade_said;     /* as of struct agent_want */
    bool agents_later; /* no agent runs at once: what they need is missed when one does */
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
    struct agent_setup setup; /* settings and store: the caller's */

    tide_session *fork;
    struct buf memory; /* what is stored nowhere, for the next run */
    struct arena arena;
    char token[TIDE_TOKEN_SIZE];
};

#define GRAPH_RUN_INIT                                                                                                 \
    {                                                                                                                  \
        .memory = BUF_INIT(SIZE_MAX / 4), .arena = ARENA_INIT                                                          \
    }

/* What `run` was told of who answers holds for a resume, unless it says otherwise. */
enum tide_code graph_run_begin(struct graph_run *r, struct tide_err *err) MUST_CHECK;
enum tide_code graph_run_go(struct graph_run *r, struct tide_graph_result *ret, struct tide_err *err) MUST_CHECK;

/* It waits. The session that does is r->session from now on; false: it cannot be opened. */
bool graph_run_follow(struct graph_run *r, const struct tide_graph_result *result);
/* The next graph_run_go() resumes it with this answer (JSON), bound to its question by the token. */
void graph_run_answer(struct graph_run *r, const struct tide_graph_result *result, const char *answer);

void graph_run_done(struct graph_run *r);

struct spec_node;
bool graph_node_asks(const struct spec_node *node); /* a model is asked by it or by what is inside it */

#endif
