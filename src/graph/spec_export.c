/* SPDX-License-Identifier: Apache-2.0 */
/* A graph for other people's pictures: Graphviz and Mermaid. Names are quoted for each, whatever is in them. */
#include <stdio.h>

#include "base/utf8.h"
#include "graph/spec.h"

#define LABEL_MAX 60 /* bytes of a condition at an edge */

const char *spec_arc_label(struct arena *a, const struct spec_graph *g, const struct spec_arc *arc)
{
    (void)g;
    if (!arc->edge)
        return arc->route ? arena_dup(a, arc->route->when.source).ptr : "otherwise";
    switch ((enum spec_on)arc->edge->on) {
    case SPEC_CONDITION:
        return arena_dup(a, arc->edge->when.source).ptr;
    case SPEC_FAILURE:
        return "on failure";
    case SPEC_TIMEOUT:
        return "on timeout";
    case SPEC_ALWAYS:
        return "always";
    case SPEC_LLM:
        return arena_printf(a, "model: %s",
                            arc->edge->question.len ? arc->edge->question.ptr : arc->edge->description.ptr);
    case SPEC_SUCCESS:
        break;
    }
    return "";
}

/* ---- Graphviz ---- */

static void dot_text(struct buf *out, struct str s)
{
    struct str shown = utf8_clip(s, LABEL_MAX);

    for (size_t i = 0; i < shown.len; i++) {
        char c = shown.ptr[i];

        if (c == '"' || c == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c);
    }
    if (shown.len < s.len)
        buf_add_str(out, STR("…"));
}

struct look {
    const char *shape, *color;         /* Graphviz */
    const char *open, *close, *class_; /* Mermaid */
};

static const struct look looks[SPEC_NODE_TYPES] = {
    [SPEC_EVENT_LOOP] = {"box", "#dbeafe", "(", ")", "loop"},
    [SPEC_FUNCTION] = {"box", "#e5e7eb", "[", "]", "program"},
    [SPEC_ROUTER] = {"diamond", "#fef3c7", "{", "}", "router"},
    [SPEC_HUMAN_INPUT] = {"hexagon", "#fce7f3", "{{", "}}", "human"},
    [SPEC_LUA] = {"note", "#e0e7ff", "[/", "/]", "lua"},
    [SPEC_SUBGRAPH] = {"box3d", "#dcfce7", "[[", "]]", "nested"},
    [SPEC_MAP] = {"folder", "#ccfbf1", "[(", ")]", "map"},
};

static void dot_node(struct buf *out, const struct spec_graph *g, const struct spec_node *n)
{
    buf_addf(out, "  \"%.*s\" [label=\"%.*s\\n%s\", shape=%s, fillcolor=\"%s\"%s];\n", STR_ARG(n->id), STR_ARG(n->id),
             spec_node_words[n->type], looks[n->type].shape, looks[n->type].color,
             n->index == g->entry_index ? ", penwidth=2.5" : "");
}

static void dot_arc(struct buf *out, struct arena *a, const struct spec_graph *g, const struct spec_arc *arc)
{
    bool failure = arc->edge && arc->edge->on == SPEC_FAILURE;
    bool maybe = !arc->edge || arc->edge->on == SPEC_CONDITION || arc->edge->on == SPEC_LLM;

    buf_addf(out, "  \"%.*s\" -> \"%.*s\" [label=\"", STR_ARG(g->nodes.at[arc->from].id),
             STR_ARG(g->nodes.at[arc->to].id));
    dot_text(out, str_from(spec_arc_label(a, g, arc)));
    buf_addf(out, "\"%s];\n", failure ? ", style=dashed, color=\"#b91c1c\"" : maybe ? ", style=dashed" : "");
}

void spec_dot(struct buf *out, const struct spec_graph *g)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    buf_addf(out, "digraph \"%.*s\" {\n  label=\"", STR_ARG(g->id));
    dot_text(out, g->name.len ? g->name : g->id);
    buf_add_str(out, STR("\";\n  labelloc=t;\n  fontname=\"sans-serif\";\n"
                         "  node [style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=11, color=\"#6b7280\"];\n"
                         "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#374151\"];\n"));
    for (size_t i = 0; i < g->nodes.n; i++)
        dot_node(out, g, &g->nodes.at[i]);
    for (size_t i = 0; i < g->n_arcs; i++)
        dot_arc(out, &a, g, &g->arcs[i]);
    buf_add_str(out, STR("}\n"));
}

/* ---- Mermaid ---- */

/* Between quotes everything may stand but what would end them or be taken for markup: written by number. */
static void mermaid_text(struct buf *out, struct str s)
{
    struct str shown = utf8_clip(s, LABEL_MAX);

    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.ptr[i];

        if (c < 0x20 || c == 0x7f)
            buf_add_char(out, ' ');
        else if (strchr("\"#<>&|`;", c))
            buf_addf(out, "#%d;", c);
        else
            buf_add_char(out, (char)c);
    }
    if (shown.len < s.len)
        buf_add_str(out, STR("…"));
}

/* Nodes are called by number: some ids are words of Mermaid's own ("end"). */
static void mermaid_arc(struct buf *out, struct arena *a, const struct spec_graph *g, const struct spec_arc *arc)
{
    bool plain = arc->edge && (arc->edge->on == SPEC_ALWAYS || arc->edge->on == SPEC_SUCCESS);
    const char *label = spec_arc_label(a, g, arc);

    buf_addf(out, "  n%zu %s", arc->from, plain ? "-->" : "-.->");
    if (label[0]) {
        buf_add_str(out, STR("|\""));
        mermaid_text(out, str_from(label));
        buf_add_str(out, STR("\"|"));
    }
    buf_addf(out, " n%zu\n", arc->to);
}

void spec_mermaid(struct buf *out, const struct spec_graph *g)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    buf_add_str(out, STR("flowchart TD\n"));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct spec_node *n = &g->nodes.at[i];

        buf_addf(out, "  n%zu%s\"%.*s<br/><small>%s</small>\"%s:::%s\n", i, looks[n->type].open, STR_ARG(n->id),
                 spec_node_words[n->type], looks[n->type].close, looks[n->type].class_);
    }
    for (size_t i = 0; i < g->n_arcs; i++)
        mermaid_arc(out, &a, g, &g->arcs[i]);
    for (size_t i = 0; i < SPEC_NODE_TYPES; i++)
        buf_addf(out, "  classDef %s fill:%s,stroke:#6b7280,color:#111827\n", looks[i].class_, looks[i].color);
}
