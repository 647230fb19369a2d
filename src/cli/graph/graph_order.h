/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the nodes of a graph are drawn, and which of its ways lead back up. */
#ifndef CLI_GRAPH_GRAPH_ORDER_H
#define CLI_GRAPH_GRAPH_ORDER_H

#include "engine/graph_outline.h"

struct graph_order {
    size_t *row;   /* of each node */
    size_t *nodes; /* the node of each row */
    bool *back;    /* of each arc: it leads to its own row or one above */
};

/* From the entry down: whatever comes before a node stands above it, loops aside. Lives in the arena. */
void graph_order_make(struct arena *a, const struct graph_outline *g, struct graph_order *ret_order);

#endif
