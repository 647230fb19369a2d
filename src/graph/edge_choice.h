/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ways are taken when a node is over. After success: every edge `always` and `success`, and of those with a condition
 * or a model's decision the first that holds, the higher priority first. After failure: `always` and `failure`. A router: the
 * first of its routes that holds, else `otherwise`, and its `always` edges. A condition that fails is reported and not taken.
 */
#ifndef GRAPH_EDGE_CHOICE_H
#define GRAPH_EDGE_CHOICE_H

#include "graph/spec.h"

struct choice {
    size_t to;                    /* index of the node */
    const struct spec_edge *edge; /* NULL: a route */
    struct str values;            /* JSON object: what the map of the edge gives; empty: none */
};

struct edge_question {
    const struct spec_graph *graph;
    const struct spec_node *node;
    bool failed;
    bool timed_out; /* nobody answered it before its deadline: its edges for that are its ways, where it has some */
    struct str output, memory,
        result; /* JSON objects: what expressions see; memory without keys that are stored nowhere */
    /*
     * Asks a model about an edge: 1 yes, 0 no, -1 what it said could not be read (then it holds, as one on success does, and
     * that is reported). NULL: nobody can be asked: as -1. TIDE_… when it cannot be found out at all: the choice is not made.
     */
    enum tide_code (*decide)(void *arg, const struct spec_edge *edge, int *ret_yes, struct tide_err *err);
    void (*problem)(void *arg, const struct spec_edge *edge, const char *path,
                    const char *what); /* what failed; NULL: not reported */
    bool (*closed)(void *arg,
                   size_t to); /* the node may not be entered any more: as if there were no such way. NULL: all may */
    void *arg;
    struct arena *arena; /* of the values */
};

/* *ret is malloc. Two ways to the same node are both taken: the target runs once. */
enum tide_code edges_choose(const struct edge_question *c, struct choice **ret, size_t *ret_n, struct tide_err *err)
    MUST_CHECK;

/* What becomes of a key that another branch has set at the same time. TIDE_CONFLICT under the rule `error`, TIDE_INVALID when values cannot be merged. */
enum tide_code memory_merge_value(enum spec_conflict rule, struct str key, struct str before, struct str now,
                                  struct arena *a, struct str *ret_value, struct tide_err *err) MUST_CHECK;

#endif
