/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be wrong with a graph whose parts are right: nodes nobody reaches, loops that nothing ends, branches that overwrite
 * each other, edges that can never be taken. Problems keep it from running; warnings are for what may be meant.
 */
#include <stdio.h>

#include "base/map.h"
#include "graph/spec_internal.h"

#define NEIGHBOURS 64 /* edges of one node that are compared with each other: thousands would take quadratic time */

static const char *member(struct spec_parser *p, const char *path, const char *key)
{
    return arena_printf(&p->spec->arena, "%s.%s", path, key);
}

/* Of one that another is compared with: there may be two between the same nodes. */
static const char *edge_name(struct spec_parser *p, const struct spec_edge *e)
{
    return arena_printf(&p->spec->arena, "'%.*s' → '%.*s' (%s)", STR_ARG(e->from), STR_ARG(e->to), e->path);
}

/* Taken whenever the node succeeds, whatever comes of it. */
static bool is_plain(const struct spec_edge *e)
{
    return e && (e->on == SPEC_ALWAYS || e->on == SPEC_SUCCESS);
}

/* A condition that always holds: taken when none before it is. */
static bool is_else(const struct spec_edge *e)
{
    struct str s = e && e->on == SPEC_CONDITION ? e->when.source : STR("");

    return str_eq(str_trim(s), STR("true"));
}

/* ---- edges by themselves ---- */

static void check_edge(struct spec_parser *p, const struct spec_graph *g, const struct spec_edge *e)
{
    bool routed = e->from_index != SPEC_NONE && g->nodes.at[e->from_index].type == SPEC_ROUTER;

    if (e->on == SPEC_CONDITION && !e->when.source.ptr)
        spec_say(p, SPEC_PROBLEM, e->path, "give it a 'when', or another 'on'", "a condition without an expression");
    if (e->on != SPEC_CONDITION && e->when.source.ptr)
        spec_say(p, SPEC_PROBLEM, member(p, e->path, "when"), "\"on\": \"condition\"",
                 "an edge that is taken on %s has no condition", spec_on_words[e->on]);
    if (e->on == SPEC_LLM && e->question.len == 0 && e->description.len == 0)
        spec_say(p, SPEC_PROBLEM, e->path, "give it a 'question'", "the model decides, but is asked nothing");
    if (e->on != SPEC_LLM && e->question.len > 0)
        spec_say(p, SPEC_PROBLEM, member(p, e->path, "question"), "\"on\": \"llm\"",
                 "only an edge that a model decides asks a question");
    if (e->on == SPEC_TIMEOUT && e->from_index != SPEC_NONE &&
        (g->nodes.at[e->from_index].type != SPEC_HUMAN_INPUT || !g->nodes.at[e->from_index].deadline_ms))
        spec_say(p, SPEC_PROBLEM, e->path, "give the node a 'deadline', or the edge another 'on'",
                 "only a human_input node with a deadline has an edge for when it has passed");
    if (routed && e->on != SPEC_FAILURE)
        spec_say(p, SPEC_PROBLEM, e->path, "make it a route, or remove it",
                 "a router uses its routes: this edge is never taken");
}

static bool is_shadowed(const struct spec_edge *first, const struct spec_edge *e)
{
    if (first->on != e->on || e->on == SPEC_LLM || first->to_index == SPEC_NONE || e->to_index == SPEC_NONE)
        return false; /* one that leads nowhere is a problem by itself */
    if (e->on == SPEC_CONDITION)
        return e->when.source.len && str_eq(first->when.source, e->when.source);
    return e->on == SPEC_FAILURE || first->to_index == e->to_index;
}

/* Of edges that can never be taken because another one, looked at before, is. */
static void check_shadows(struct spec_parser *p, const struct spec_graph *g, const struct spec_node *n)
{
    for (size_t i = 1; i < n->n_edges; i++) {
        const struct spec_edge *e = &g->edges.at[n->first_edge + i];

        for (size_t k = i > NEIGHBOURS ? i - NEIGHBOURS : 0; k < i; k++) {
            const struct spec_edge *first = &g->edges.at[n->first_edge + k];

            if (!is_shadowed(first, e))
                continue;
            spec_say(p, SPEC_PROBLEM, e->path, "remove one of them",
                     e->on == SPEC_FAILURE     ? "only one edge can be taken on failure, and %s is"
                     : e->on == SPEC_CONDITION ? "%s has the same condition and is evaluated before"
                                               : "the same as %s",
                     edge_name(p, first));
            break;
        }
    }
}

/* Of conditions and questions one is taken, in the order of priority. */
static void check_behind_else(struct spec_parser *p, const struct spec_graph *g, const struct spec_node *n)
{
    const struct spec_edge *otherwise = NULL;

    for (size_t i = 0; i < n->n_edges; i++) {
        const struct spec_edge *e = &g->edges.at[n->first_edge + i];

        if (otherwise && (e->on == SPEC_CONDITION || e->on == SPEC_LLM))
            spec_say(p, SPEC_WARNING, e->path, "give it a higher priority", "never taken: %s is always true before it",
                     edge_name(p, otherwise));
        if (!otherwise && is_else(e))
            otherwise = e;
    }
}

/* ---- ways ---- */

/*
 * Marks what can be reached from `from`; returns how many. With a `barrier` (SPEC_NONE: none) that is not entered, and nor
 * are ways of failure.
 */
static size_t reach_nodes(const struct spec_graph *g, size_t from, size_t barrier, bool *seen, size_t *queue)
{
    size_t head = 0, tail = 0;

    seen[from] = true;
    queue[tail++] = from;
    while (head < tail) {
        const struct spec_node *n = &g->nodes.at[queue[head++]];

        for (size_t i = 0; i < n->n_arcs; i++) {
            const struct spec_edge *e = g->arcs[n->first_arc + i].edge;
            size_t to = g->arcs[n->first_arc + i].to;

            if (!seen[to] && to != barrier && (barrier == SPEC_NONE || !e || e->on != SPEC_FAILURE)) {
                seen[to] = true;
                queue[tail++] = to;
            }
        }
    }
    return tail;
}

static bool has_its_id_before(const struct spec_graph *g, size_t node)
{
    for (size_t i = 0; i < node; i++)
        if (str_eq(g->nodes.at[i].id, g->nodes.at[node].id))
            return true;
    return false;
}

static void check_reachable(struct spec_parser *p, const struct spec_graph *g)
{
    bool *seen = arena_zero(&p->spec->arena, g->nodes.n * sizeof(*seen));
    size_t *queue = arena_zero(&p->spec->arena, g->nodes.n * sizeof(*queue));

    if (g->entry_index == SPEC_NONE)
        return;
    reach_nodes(g, g->entry_index, SPEC_NONE, seen, queue);
    for (size_t i = 0; i < g->entry_points.n; i++)
        if (g->entry_points.at[i].to_index != SPEC_NONE && !seen[g->entry_points.at[i].to_index])
            reach_nodes(g, g->entry_points.at[i].to_index, SPEC_NONE, seen, queue);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!seen[i] && !has_its_id_before(g, i)) /* that is what is wrong with it */
            spec_say(p, SPEC_PROBLEM, g->nodes.at[i].path, "lead an edge to it, or remove it",
                     "'%.*s' cannot be reached from the entry '%.*s'%s", STR_ARG(g->nodes.at[i].id), STR_ARG(g->entry),
                     g->entry_points.n ? " or an entry point" : "");
}

/* Whenever it succeeds, something comes next. */
static bool goes_on(const struct spec_graph *g, const struct spec_node *n)
{
    for (size_t i = 0; i < n->n_arcs; i++)
        if (is_plain(g->arcs[n->first_arc + i].edge) || is_else(g->arcs[n->first_arc + i].edge))
            return true;
    return n->type == SPEC_ROUTER && n->otherwise_index != SPEC_NONE;
}

static void check_dead_end(struct spec_parser *p, const struct spec_graph *g, const struct spec_node *n)
{
    bool chooses = false;

    for (size_t i = 0; i < n->n_arcs; i++) {
        const struct spec_edge *e = g->arcs[n->first_arc + i].edge;

        chooses |= !e || e->on == SPEC_CONDITION || e->on == SPEC_LLM;
    }
    if (!chooses || goes_on(g, n))
        return;
    spec_say(p, SPEC_WARNING, n->path,
             n->type == SPEC_ROUTER ? "give it an 'otherwise'"
                                    : "an else is an edge with \"when\": \"true\" and the lowest priority",
             n->type == SPEC_ROUTER ? "when no route of '%.*s' is true it fails"
                                    : "when no condition of '%.*s' is true the graph ends there",
             STR_ARG(n->id));
}

/* Backwards from every node at which a graph can end, until nothing more is found. */
static void check_ends(struct spec_parser *p, const struct spec_graph *g)
{
    bool *ends = arena_zero(&p->spec->arena, g->nodes.n * sizeof(*ends)), more = true;
    AUTO(buf_done) struct buf names = BUF_INIT(200);
    const struct spec_node *first = NULL;

    for (size_t i = 0; i < g->nodes.n; i++)
        ends[i] = !goes_on(g, &g->nodes.at[i]);
    while (more) {
        more = false;
        for (size_t i = g->n_arcs; i-- > 0;)
            if (ends[g->arcs[i].to] && !ends[g->arcs[i].from])
                ends[g->arcs[i].from] = more = true;
    }
    for (size_t i = 0; i < g->nodes.n; i++)
        if (!ends[i]) {
            buf_addf(&names, first ? ", %.*s" : "%.*s", STR_ARG(g->nodes.at[i].id));
            first = first ? first : &g->nodes.at[i];
        }
    if (first)
        spec_say(p, SPEC_WARNING, first->path, "add an edge that leaves the loop", "no end can be reached from: %s%s",
                 buf_cstr(&names), names.failed ? ", …" : "");
}

/* ---- loops ---- */

struct walk {
    struct spec_parser *p;
    const struct spec_graph *g;
    size_t *stack, *next; /* the way here; which of its arcs comes next, per node */
    char *state;          /* 0 not seen, 1 on the way, 2 done */
    bool *told;
    size_t depth;
};

static void tell_loop(struct walk *w, size_t head)
{
    AUTO(buf_done) struct buf names = BUF_INIT(300);
    size_t from = w->depth;

    while (from > 0 && w->stack[from - 1] != head)
        from--;
    for (size_t i = from ? from - 1 : 0; i < w->depth; i++) {
        w->told[w->stack[i]] = true;
        buf_addf(&names, "%.*s → ", STR_ARG(w->g->nodes.at[w->stack[i]].id));
    }
    spec_say(w->p, SPEC_PROBLEM, w->g->nodes.at[head].path, "give one of its nodes max_visits, or the graph max_steps",
             "a loop that nothing limits: %s%.*s", names.failed ? "… → " : buf_cstr(&names),
             STR_ARG(w->g->nodes.at[head].id));
}

static void enter_node(struct walk *w, size_t node)
{
    w->state[node] = 1;
    w->stack[w->depth++] = node;
}

/* One step of a depth-first walk; nodes with a limit are as good as not there. */
static void step_walk(struct walk *w)
{
    size_t at = w->stack[w->depth - 1], to;
    const struct spec_node *n = &w->g->nodes.at[at];

    if (w->next[at] == n->n_arcs) {
        w->state[at] = 2;
        w->depth--;
        return;
    }
    to = w->g->arcs[n->first_arc + w->next[at]++].to;
    if (w->g->nodes.at[to].max_visits > 0)
        return;
    if (w->state[to] == 0)
        enter_node(w, to);
    else if (w->state[to] == 1 && !w->told[to])
        tell_loop(w, to);
}

static void check_loops(struct spec_parser *p, const struct spec_graph *g)
{
    struct arena *a = &p->spec->arena;
    size_t n = g->nodes.n;
    struct walk w = {p,
                     g,
                     arena_zero(a, n * sizeof(size_t)),
                     arena_zero(a, n * sizeof(size_t)),
                     arena_zero(a, n),
                     arena_zero(a, n * sizeof(bool)),
                     0};

    if (g->max_steps_given)
        return;
    for (size_t i = 0; i < n; i++) {
        if (w.state[i] || g->nodes.at[i].max_visits > 0)
            continue;
        enter_node(&w, i);
        while (w.depth > 0)
            step_walk(&w);
    }
}

/* ---- branches ---- */

struct fan {
    struct spec_parser *p;
    const struct spec_graph *g;
    bool *seen;
    size_t *queue;
    uint32_t *branches; /* how many branches reach a node */
    uint32_t *owner;    /* the last of them, from 1 */
    size_t *touched;    /* nodes with branches */
    size_t n_touched;
};

static void count_branch(struct fan *f, size_t from, size_t target, uint32_t branch)
{
    size_t n = reach_nodes(f->g, target, from, f->seen, f->queue);

    for (size_t i = 0; i < n; i++) {
        size_t node = f->queue[i];

        f->seen[node] = false;
        f->owner[node] = branch;
        if (f->branches[node]++ == 0)
            f->touched[f->n_touched++] = node;
    }
}

/* A node that one branch alone reaches runs beside those of the others; behind that they have met. */
static void compare_branches(struct fan *f, const struct spec_node *from)
{
    struct arena *a = &f->p->spec->arena;
    struct map keys = {0};

    for (size_t t = 0; t < f->n_touched; t++) {
        const struct spec_node *n = &f->g->nodes.at[f->touched[t]];

        for (size_t i = 0; i < n->outputs.n && f->branches[n->index] == 1; i++) {
            struct str key = n->outputs.at[i];
            const struct spec_node *other = map_get(&keys, key);

            if (!other)
                map_put(&keys, key, (void *)(uintptr_t)n);
            else if (f->owner[other->index] != f->owner[n->index] && !spec_conflict_rule(f->g, key))
                spec_say(f->p, SPEC_PROBLEM, arena_printf(a, "%s.outputs[%zu]", n->path, i),
                         arena_printf(a, "\"conflict\": {\"%.*s\": \"last\"}, or another name", STR_ARG(key)),
                         "'%.*s' is set by '%.*s' as well, in a branch that runs at the same time (from '%.*s')",
                         STR_ARG(key), STR_ARG(other->id), STR_ARG(from->id));
        }
    }
    map_done(&keys, NULL);
}

/* A branch begins at each node once, however many edges lead there. */
static bool begins_branch(const struct spec_graph *g, const struct spec_node *n, size_t arc)
{
    size_t to = g->arcs[arc].to;

    for (size_t i = n->first_arc; i < arc; i++)
        if (g->arcs[i].to == to && is_plain(g->arcs[i].edge))
            return false;
    return is_plain(g->arcs[arc].edge) && to != n->index;
}

static void check_fan_out(struct fan *f, const struct spec_node *n)
{
    uint32_t branches = 0, branch = 0;

    for (size_t i = 0; i < n->n_arcs; i++)
        branches += is_plain(f->g->arcs[n->first_arc + i].edge);
    if (branches < 2)
        return;
    for (size_t i = n->first_arc; i < n->first_arc + n->n_arcs; i++)
        if (begins_branch(f->g, n, i))
            count_branch(f, n->index, f->g->arcs[i].to, ++branch);
    compare_branches(f, n);
    while (f->n_touched > 0)
        f->branches[f->touched[--f->n_touched]] = 0;
}

static void check_fan_outs(struct spec_parser *p, const struct spec_graph *g)
{
    struct arena *a = &p->spec->arena;
    size_t n = g->nodes.n;
    struct fan f = {p,
                    g,
                    arena_zero(a, n),
                    arena_zero(a, n * sizeof(size_t)),
                    arena_zero(a, n * sizeof(uint32_t)),
                    arena_zero(a, n * sizeof(uint32_t)),
                    arena_zero(a, n * sizeof(size_t)),
                    0};

    for (size_t i = 0; i < n; i++)
        check_fan_out(&f, &g->nodes.at[i]);
}

/* ---- keys of the memory ---- */

static void add_keys(struct map *keys, const struct spec_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        map_put(keys, texts->at[i], keys);
}

static void gather_keys(struct spec_parser *p, const struct spec_graph *g, struct map *keys)
{
    for (const struct json *m = g->memory ? g->memory->first : NULL; m; m = m->next)
        map_put(keys, json_key_text(&p->spec->arena, m), keys);
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node)
            add_keys(keys, &n->outputs);
    for (size_t i = 0; i < g->edges.n; i++)
        for (size_t k = 0; k < g->edges.at[i].map.n; k++)
            map_put(keys, g->edges.at[i].map.at[k].key, keys);
    add_keys(keys, &g->checkpoints.exclude_memory_keys); /* supplied from outside, by what they are */
}

/* Whether another node sets it, or it is there from the beginning: without `inputs` all of the memory goes in. */
static bool comes_in(const struct spec_graph *g, const struct spec_node *into, struct str key)
{
    bool found = into->inputs.n == 0 && g->memory && json_get(g->memory, key);

    for (size_t i = 0; into->inputs.n == 0 && !found && i < g->nodes.n; i++)
        for (size_t k = 0; &g->nodes.at[i] != into && !found && k < g->nodes.at[i].outputs.n; k++)
            found = str_eq(g->nodes.at[i].outputs.at[k], key);
    return found;
}

/* The memory of a graph inside at its end: what its nodes set, what it began with, and its inputs. */
static void check_inner(struct spec_parser *p, const struct spec_graph *g, const struct spec_node *n)
{
    struct map keys = {0};

    for (size_t i = 0; i < n->graph->nodes.n; i++)
        if (n->graph->nodes.at[i].outputs.n == 0 && n->graph->nodes.at[i].type != SPEC_ROUTER)
            return; /* one that names no outputs gives what it likes; only a router gives nothing */
    gather_keys(p, n->graph, &keys);
    add_keys(&keys, &n->inputs);
    for (size_t i = 0; i < n->outputs.n; i++)
        if (!map_get(&keys, n->outputs.at[i]) && !comes_in(g, n, n->outputs.at[i]))
            spec_say(p, SPEC_WARNING, arena_printf(&p->spec->arena, "%s.outputs[%zu]", n->path, i),
                     "name it in the outputs of one of its nodes", "the inner graph never sets '%.*s'",
                     STR_ARG(n->outputs.at[i]));
    map_done(&keys, NULL);
}

/* A graph inside another one gets what it needs from there. */
static void check_keys(struct spec_parser *p, const struct spec_graph *g)
{
    struct map keys = {0};

    gather_keys(p, g, &keys);
    for (size_t i = 0; p->nesting <= 1 && i < g->nodes.n; i++)
        for (size_t k = 0; k < g->nodes.at[i].inputs.n; k++)
            if (!map_get(&keys, g->nodes.at[i].inputs.at[k]))
                spec_say(p, SPEC_WARNING, arena_printf(&p->spec->arena, "%s.inputs[%zu]", g->nodes.at[i].path, k),
                         "name it in some node's outputs or in memory, or give it when the graph is run",
                         "no node sets '%.*s'", STR_ARG(g->nodes.at[i].inputs.at[k]));
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].graph)
            check_inner(p, g, &g->nodes.at[i]);
    for (size_t i = 0; i < g->conflict.n; i++)
        if (!map_get(&keys, g->conflict.at[i].key))
            spec_say(p, SPEC_WARNING, member(p, g->path, "conflict"), "", "a rule for '%.*s', which no node sets",
                     STR_ARG(g->conflict.at[i].key));
    spec_check_texts(p, g, &keys);
    map_done(&keys, NULL);
}

/* A graph inside has attempts of its own nodes alone. */
static void check_retries(struct spec_parser *p, const struct spec_node *n)
{
    static const char *const keys[] = {"retries", "retry_on"};

    for (; n; n = n->node)
        for (size_t i = 0; n->type == SPEC_SUBGRAPH && i < 2; i++)
            if (json_get(n->json, str_from(keys[i])))
                spec_say(p, SPEC_WARNING, member(p, n->path, keys[i]),
                         "give it to the nodes inside, or max_retries to the inner graph",
                         "'%s' of a subgraph has no effect: the nodes inside are tried again", keys[i]);
}

void spec_check(struct spec_parser *p, struct spec_graph *g)
{
    if (g->nodes.n == 0) {
        const struct json *nodes = json_get(g->json, STR("nodes"));

        if (nodes && nodes->type == JSON_ARRAY && nodes->count == 0)
            spec_say(p, SPEC_PROBLEM, member(p, g->path, "nodes"), "", "there is no node");
        return;
    }
    for (size_t i = 0; i < g->edges.n; i++)
        check_edge(p, g, &g->edges.at[i]);
    check_reachable(p, g);
    for (size_t i = 0; i < g->nodes.n; i++) {
        check_shadows(p, g, &g->nodes.at[i]);
        check_behind_else(p, g, &g->nodes.at[i]);
        check_dead_end(p, g, &g->nodes.at[i]);
        check_retries(p, &g->nodes.at[i]);
    }
    check_ends(p, g);
    check_loops(p, g);
    check_fan_outs(p, g);
    check_keys(p, g);
}
