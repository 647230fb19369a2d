/* SPDX-License-Identifier: Apache-2.0 */
/* Where a graph continues behind a node: the ways that are open, chosen by conditions or by a model, and recorded. */
#include <inttypes.h>

#include "graph/exec.h"

static void on_problem(void *arg, const struct spec_edge *edge, const char *path, const char *what)
{
    struct job *j = arg;
    struct exec *x = j->x;
    size_t len = strlen(path);
    struct json_out *o = exec_open(x, "edge.refused");

    json_out_kstr(o, STR("from"), str_from(j->name));
    if (edge) {
        json_out_kstr(o, STR("to"), edge->to);
        json_out_kstr_opt(o, STR("edge"), edge->id);
    }
    json_out_kstr(o, STR("reason"), str_from(what));
    exec_close(x);
    if (edge && len > 5 && strcmp(path + len - 5, ".when") == 0)
        exec_notice_edge(x, j->name, edge->to.ptr, what, path);
    else
        exec_notice(x, j->name, "%s: %s", path, what);
}

/* A node that was entered as often as it may be. */
static bool is_closed(void *arg, size_t to)
{
    struct job *j = arg;
    const struct content *c = &j->x->view->content;
    const struct spec_node *n = &j->place.graph->nodes.at[to];
    const int64_t *visits;
    const char *name;
    struct json_out *o;

    if (!n->max_visits)
        return false;
    name = place_beside(&j->x->scratch, j->place.frame, n->id);
    visits = map_get(&c->visits, str_from(name));
    if ((visits ? *visits : 0) < n->max_visits || map_get(&c->position.ready, str_from(name)))
        return false; /* one that is to be entered is entered once, however many come to it */
    o = exec_open(j->x, "edge.refused");
    json_out_kstr(o, STR("from"), str_from(j->name));
    json_out_kstr(o, STR("to"), str_from(name));
    json_out_kstr(o, STR("reason"), STR("max_visits"));
    exec_close(j->x);
    exec_notice(j->x, j->name, "%s has reached its limit (max_visits %" PRId64 ")", name, n->max_visits);
    return true;
}

static struct str result_json(struct exec *x, const char *name, int64_t visit, int64_t attempt, struct str error)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 16);
    struct json_out o = json_out_to(&text);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("status"), error.len ? STR("failure") : STR("success"));
    json_out_kbool(&o, STR("success"), !error.len);
    json_out_kstr(&o, STR("node"), str_from(name));
    json_out_kint(&o, STR("visit"), visit);
    json_out_kint(&o, STR("attempt"), attempt);
    if (error.len)
        json_out_kraw(&o, STR("error"), error);
    json_out_end(&o, '}');
    return arena_dup(&x->scratch, buf_view(&text));
}

bool ways_use(const struct place *p, struct str key)
{
    const struct spec_node *n = p->node;

    for (size_t i = 0; i < n->n_edges; i++) {
        const struct spec_edge *e = &p->graph->edges.at[n->first_edge + i];

        if (e->when.expr && expr_uses(e->when.expr, "memory", key))
            return true;
        for (size_t k = 0; k < e->map.n; k++)
            if (expr_uses(e->map.at[k].value.expr, "memory", key))
                return true;
    }
    for (size_t i = 0; i < n->routes.n; i++)
        if (expr_uses(n->routes.at[i].when.expr, "memory", key))
            return true;
    return false;
}

/* Only then is the memory written out for them, as far as they use it. */
bool ways_have_expressions(const struct place *p)
{
    const struct spec_graph *g = p->graph;
    const struct spec_node *n = p->node;

    for (size_t i = 0; i < n->n_edges; i++)
        if (g->edges.at[n->first_edge + i].when.expr || g->edges.at[n->first_edge + i].map.n)
            return true;
    return n->routes.n > 0;
}

/* `values`: what the node sets, seen by conditions as if it were in the memory already. */
enum tide_code end_choose(struct job *j, struct str output, const struct json *values, struct str error, bool ask,
                          struct tide_err *err)
{
    struct exec *x = j->x;
    AUTO(buf_done) struct buf memory = BUF_INIT(SIZE_MAX / 4);
    struct edge_question c = {.graph = j->place.graph,
                              .node = j->place.node,
                              .failed = error.len > 0,
                              .timed_out = x->timed_out,
                              .output = output,
                              .decide = ask ? job_decide : NULL,
                              .problem = on_problem,
                              .closed = is_closed,
                              .arg = j,
                              .arena = &j->arena};

    if (!j->place.node->n_arcs || j->place.map)
        return TIDE_OK;
    if (ways_have_expressions(&j->place)) {
        place_memory(x, j->place.frame, values, (struct sight){.ways = &j->place}, &memory);
        c.memory = buf_view(&memory);
        c.result = arena_dup(&j->arena, result_json(x, j->name, j->visit, j->attempt, error)); /* beyond the lock */
    }
    return edges_choose(&c, &j->ways, &j->n_ways, err);
}

static void put_way(struct job *j, const struct choice *way, size_t i)
{
    struct exec *x = j->x;
    const struct spec_node *to = &j->place.graph->nodes.at[way->to];
    const char *target = place_beside(&x->scratch, j->place.frame, to->id);
    struct str local = place_local(str_from(j->name));
    struct json_out *o = exec_open(x, "edge.taken");

    json_out_kstr(o, STR("from"), str_from(j->name));
    json_out_kstr(o, STR("to"), str_from(target));
    if (way->edge)
        json_out_kstr_opt(o, STR("edge"), way->edge->id);
    if (j->n_ways > 1)
        json_out_kstr(o, STR("branch"),
                      str_from(arena_printf(&x->scratch, "%s%s%.*s#%" PRId64 ":%zu", j->branch ? j->branch : "",
                                            j->branch && j->branch[0] ? "/" : "", STR_ARG(local), j->visit, i)));
    else
        json_out_kstr_opt(o, STR("branch"), str_from(j->branch));
    if (way->values.len)
        json_out_kraw(o, STR("values"), way->values);
    exec_close(x);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_EDGE, .node = j->name, .to = target});
}

const char *ways_put(struct job *j)
{
    for (size_t i = 0; i < j->n_ways; i++)
        put_way(j, &j->ways[i], i);
    for (size_t i = 0; i < j->n_ways; i++) /* behind all of them: from between two the others would be lost */
        checkpoint_edge(j->x, j->name,
                        place_beside(&j->x->scratch, j->place.frame, j->place.graph->nodes.at[j->ways[i].to].id));
    return j->n_ways ? place_beside(&j->x->scratch, j->place.frame, j->place.graph->nodes.at[j->ways[0].to].id) : NULL;
}
