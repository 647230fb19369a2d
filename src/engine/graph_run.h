/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of a graph, started or resumed: its session, the provider of its agents, and continuing with an answer when it waits.
 * A provider and a model that the caller names apply to every node: so a graph can be tried without an account.
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
    struct agent_want who;   /* of all nodes; what it leaves out is as in the graph, then as in the settings */
    bool resume;             /* tide_graph_resume(), else tide_graph_run() */
    const char *working_dir; /* of a new session [here] */
    const struct session_fields *fields; /* of a new session; NULL: none */
    bool agents_later;                   /* no agent runs at once: a missing model or key is an error when one does */
};

/* ---- the session ---- */

/*
 * A new session, or the one that has this id; NULL: any id. `title` NULL: the graph's name. A failing store is waited for. In a
 * session that exists the provider is the one of `want` from now on.
 */
enum tide_code graph_session_open(tide_store *store, const char *id, const char *title, tide_graph *graph,
                                  const struct graph_want *want, const struct held *held, tide_session **ret_session,
                                  bool *ret_made, struct tide_err *err) MUST_CHECK;

/* A refused run leaves no session behind: deletes one in which nothing ran. */
void graph_session_drop(tide_store *store, tide_session **session);

/* ---- running ---- */

/*
 * Whether the graph can be run here: it needs no callbacks, and there is a key and a model where agents work. The settings of `setup`
 * are open; its options are those of the agents. `session` NULL: there is none yet.
 */
enum tide_code graph_setup(struct agent_setup *setup, tide_graph *graph, tide_session *session,
                           const struct graph_want *want, struct tide_err *err) MUST_CHECK;

struct graph_run {
    tide_graph *graph;
    tide_session *session; /* a fork takes its place when it continues in one */
    struct graph_want *want;
    struct agent_setup setup;              /* settings and store: the caller's */
    void (*running)(void *arg, bool runs); /* called before and after every stretch in which it runs; NULL: not */
    bool (*answer)(void *arg, tide_session *session,
                   struct buf *ret_json); /* answers what it waits for; NULL, false: no answer */
    void *arg;

    bool began; /* the error is that of the graph, not of its start */
    tide_session *fork;
    struct buf memory; /* values that are never stored, for the next run */
    struct arena arena;
    char token[TIDE_TOKEN_SIZE];
};

#define GRAPH_RUN_INIT                                                                                                 \
    {                                                                                                                  \
        .memory = BUF_INIT(SIZE_MAX / 4), .arena = ARENA_INIT                                                          \
    }

/*
 * Runs the graph to its end, or until it waits and has no answer; recovery of other sessions runs meanwhile. A resume uses the
 * provider that the run had, unless it names another. `config`: as of settings_find(). If the deadline of a wait passes while an
 * answer is awaited here, its action is carried out.
 */
enum tide_code graph_run(struct graph_run *r, const char *config, struct tide_graph_result *ret, struct tide_err *err)
    MUST_CHECK;

/*
 * There is no answer: carries out the action of the deadline, if that has passed. TIDE_OK: a resume continues without an
 * answer. TIDE_WAITING: it still waits. Otherwise it does not wait any more.
 */
enum tide_code graph_lapse(tide_store *store, tide_session *session, struct tide_err *err) MUST_CHECK;

void graph_run_done(struct graph_run *r);

struct spec_node;
bool graph_node_asks(const struct spec_node *node); /* a model is asked by it or by what is inside it */

#endif
