/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph_outline.h"

#include "graph/exec.h"

_Static_assert((int)NODE_TYPES == (int)SPEC_NODE_TYPES && (int)NODE_MAP == (int)SPEC_MAP &&
                   (int)NODE_HUMAN_INPUT == (int)SPEC_HUMAN_INPUT,
               "the same");

static const char *note_of(struct arena *a, const struct spec_node *n)
{
    AUTO(buf_done) struct buf program = BUF_INIT(500);

    if (n->type == SPEC_MAP && n->node)
        return arena_printf(a, "%s for each of %s", spec_node_words[n->node->type], n->over.source.ptr);
    if (n->type == SPEC_HUMAN_INPUT)
        return n->question.ptr;
    if (n->type == SPEC_FUNCTION && !n->program.n)
        return n->callback.ptr;
    for (size_t i = 0; n->type == SPEC_FUNCTION && i < n->program.n; i++)
        buf_addf(&program, i ? " %s" : "%s", n->program.at[i].ptr);
    if (program.len)
        return arena_dup(a, buf_view(&program)).ptr;
    return n->description.len ? n->description.ptr : n->name.len ? n->name.ptr : "";
}

static const struct graph_outline *make_outline(struct arena *a, const struct spec_graph *g)
{
    struct outline_node *nodes = arena_zero(a, (g->nodes.n + 1) * sizeof *nodes);
    struct outline_way *ways = arena_zero(a, (g->n_arcs + 1) * sizeof *ways);
    struct graph_outline *o = arena_zero(a, sizeof *o);

    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct spec_node *n = &g->nodes.at[i], *in = n;

        while (!in->graph && in->node)
            in = in->node;
        nodes[i] = (struct outline_node){.id = n->id,
                                         .type = (enum outline_type)n->type,
                                         .type_word = spec_node_words[n->type],
                                         .note = note_of(a, n),
                                         .outputs = n->outputs.at,
                                         .n_outputs = n->outputs.n,
                                         .index = i,
                                         .first_way = n->first_arc,
                                         .n_ways = n->n_arcs,
                                         .inside = in->graph ? make_outline(a, in->graph) : NULL};
    }
    for (size_t i = 0; i < g->n_arcs; i++) {
        const struct spec_arc *arc = &g->arcs[i];

        ways[i] = (struct outline_way){arc->from, arc->to, spec_arc_label(a, g, arc),
                                       arc->edge && (arc->edge->on == SPEC_SUCCESS || arc->edge->on == SPEC_ALWAYS)};
    }
    *o = (struct graph_outline){g->id, g->name, g->description, nodes, g->nodes.n, g->entry_index, ways, g->n_arcs};
    return o;
}

const struct graph_outline *graph_outline(struct arena *a, const tide_graph *graph)
{
    return make_outline(a, graph->spec->graph);
}
