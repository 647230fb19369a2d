/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for nodes. Of a loop those ways lead back that go to a node written earlier (the entry counts as the first): people write
 * graphs from the beginning to the end. Without them the order is that in which a depth-first walk leaves the nodes, turned
 * round: a branch stays together, and where branches meet stands behind all of them. The walk keeps its own
 * stack: a chain may be thousands of nodes long.
 */
#include "cli/graph/graph_order.h"

struct walk {
    const struct graph_outline *g;
    struct graph_order *order;
    size_t *stack, *left; /* the way here; arcs not yet looked at, per node */
    char *state;          /* 0 not seen, 1 on the way, 2 done */
    size_t depth, next_row;
};

static size_t rank(const struct graph_outline *g, size_t node)
{
    return node == g->entry ? 0 : node + 1;
}

/* Whether a way leads from one node to the other. `state` is clean before and after. */
static bool leads_to(struct walk *w, size_t from, size_t to)
{
    size_t head = 0, tail = 0;
    bool found = from == to;

    w->state[from] = 1;
    w->stack[tail++] = from;
    while (head < tail && !found) {
        const struct outline_node *n = &w->g->nodes[w->stack[head++]];

        for (size_t i = 0; i < n->n_ways; i++) {
            size_t next = w->g->ways[n->first_way + i].to;

            found = found || next == to;
            if (w->state[next] == 0) {
                w->state[next] = 1;
                w->stack[tail++] = next;
            }
        }
    }
    while (tail > 0)
        w->state[w->stack[--tail]] = 0;
    return found;
}

static void enter_node(struct walk *w, size_t node)
{
    w->state[node] = 1;
    w->left[node] = w->g->nodes[node].n_ways;
    w->stack[w->depth++] = node;
}

/* The last arc first: its target is left first and stands lowest, and the first one follows right behind. */
static void walk_from(struct walk *w, size_t start)
{
    enter_node(w, start);
    while (w->depth > 0) {
        size_t at = w->stack[w->depth - 1], arc;

        if (w->left[at] == 0) {
            w->state[at] = 2;
            w->depth--;
            w->order->row[at] = --w->next_row;
            w->order->nodes[w->next_row] = at;
            continue;
        }
        arc = w->g->nodes[at].first_way + --w->left[at];
        if (!w->order->back[arc] && w->state[w->g->ways[arc].to] == 0)
            enter_node(w, w->g->ways[arc].to);
    }
}

void graph_order_make(struct arena *a, const struct graph_outline *g, struct graph_order *ret_order)
{
    size_t n = g->n_nodes;
    struct graph_order order = {arena_zero(a, n * sizeof(size_t)), arena_zero(a, n * sizeof(size_t)),
                                arena_zero(a, g->n_ways + 1)};
    struct walk w = {g, &order, arena_zero(a, n * sizeof(size_t)), arena_zero(a, n * sizeof(size_t)), arena_zero(a, n),
                     0, n};
    bool *below = arena_zero(a, n); /* some way leads down to it */

    for (size_t i = 0; i < g->n_ways; i++)
        order.back[i] =
            rank(g, g->ways[i].to) <= rank(g, g->ways[i].from) && leads_to(&w, g->ways[i].to, g->ways[i].from);
    for (size_t i = 0; i < g->n_ways; i++)
        below[g->ways[i].to] = below[g->ways[i].to] || !order.back[i];
    for (size_t i = n; i-- > 0;) /* what only a loop leads to: it is left before the entry, which so stands on top */
        if (i != g->entry && !below[i])
            walk_from(&w, i);
    walk_from(&w, g->entry);
    *ret_order = order;
}
