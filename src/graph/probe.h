/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An observer of nodes at work: it is called when a node's work begins and when it ends, before anything of its end is
 * recorded. For a caller that counts what really happened, outside the log (tidemark torture). Not part of the public interface.
 */
#ifndef GRAPH_PROBE_H
#define GRAPH_PROBE_H

#include "graph/spec.h"

/* Pointers are valid during the call. */
struct probe_node {
    const char *name; /* as the log names it */
    int64_t visit, attempt;
    const struct spec_node *node;
    /* of an end */
    bool ok;
    struct str output; /* JSON object; empty unless it is ok */
};

/* Called on the thread that does the work, without a lock held; several at a time. */
struct probe {
    void (*begin)(void *arg, const struct probe_node *n);
    void (*end)(void *arg, const struct probe_node *n);
    void *arg;
};

/* `probe` must outlive the graph; NULL: nobody. Before it runs. */
void graph_watch(tide_graph *graph, const struct probe *probe);

#endif
