/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that were given to a store before anything runs them. Each is in a session of its own, whose id follows from its digest, so that
 * the same graph is stored once. What is loaded has the digest that was asked for: it is computed, not believed.
 */
#ifndef ENGINE_STORED_GRAPHS_H
#define ENGINE_STORED_GRAPHS_H

#include "base/err.h"
#include "tidemark.h"

#define STORED_GRAPH_AGENT "stored-graph" /* the agent of such a session */

struct stored_graph {
    const char *digest, *name, *session_id;
    int64_t created_ms;
};

/* On disk on return. One that is there already stays as it is. */
enum tide_code stored_graph_put(tide_store *store, const tide_graph *graph, char ret_session[TIDE_ID_SIZE],
                                struct tide_err *err) MUST_CHECK;

enum tide_code stored_graph_load(tide_store *store, const char *digest, tide_graph **ret_graph, struct tide_err *err)
    MUST_CHECK;

/* Of one that was loaded, before it runs: a store may hold graphs that came from elsewhere, to be shown. TIDE_UNTRUSTED. */
enum tide_code stored_graph_check_trust(tide_store *store, const char *digest, struct tide_err *err) MUST_CHECK;

typedef void stored_graph_fn(void *arg, const struct stored_graph *graph);
/* Newest first. */
enum tide_code stored_graph_list(tide_store *store, stored_graph_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

#endif
