/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as faces draw and list it: its nodes, the ways between them, and the graphs inside nodes. */
#ifndef ENGINE_GRAPH_OUTLINE_H
#define ENGINE_GRAPH_OUTLINE_H

#include "base/mem.h"
#include "tidemark.h"

#define OUTLINE_NONE SIZE_MAX

enum outline_type { /* as the format has them */
                    NODE_EVENT_LOOP,
                    NODE_FUNCTION,
                    NODE_ROUTER,
                    NODE_HUMAN_INPUT,
                    NODE_LUA,
                    NODE_SUBGRAPH,
                    NODE_MAP,
                    NODE_TYPES
};

struct outline_node {
    struct str id;
    enum outline_type type;
    const char *type_word;     /* "function" */
    const char *note;          /* what it does, as the graph says: a program, a question, a description; "" nothing */
    const struct str *outputs; /* keys */
    size_t n_outputs;
    size_t index, first_way, n_ways;
    const struct graph_outline *inside; /* the graph that it runs, once or for each item; NULL: none */
};

struct outline_way {
    size_t from, to;
    const char *label; /* its condition, "failure", "otherwise"…; "" for a plain one */
    bool plain;        /* taken whenever the node is complete */
};

struct graph_outline {
    struct str id, name, description;
    const struct outline_node *nodes;
    size_t n_nodes, entry;
    const struct outline_way *ways; /* by source, in the order in which they are looked at */
    size_t n_ways;
};

/* Lives in the arena, and no longer than the graph. */
const struct graph_outline *graph_outline(struct arena *a, const tide_graph *graph);

#endif
