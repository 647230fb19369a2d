/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges in the order in which they stand: high priority first. Of those that ask something only as many are asked as it
 * takes to find the one that holds: a question to a model costs money, and a condition may err.
 *
 * An expression of a `map` that fails is reported as well: its key is not set, and a target that needs it reports that.
 */
#include "graph/edge_choice.h"

#include "base/invariant.h"
#include "graph/node_work.h"

/* ---- expressions ---- */

enum { N_SEEN = 3 };

static void fill_seen(const struct edge_question *c, struct expr_value seen[N_SEEN])
{
    const struct expr_value all[N_SEEN] = {{"output", c->output}, {"memory", c->memory}, {"result", c->result}};

    for (size_t i = 0; i < N_SEEN; i++) {
        seen[i] = all[i];
        seen[i].json = seen[i].json.len ? seen[i].json : STR("{}");
    }
}

static void tell_edge(const struct edge_question *c, const struct spec_edge *e, const char *path, const char *what)
{
    if (c->problem)
        c->problem(c->arg, e, path, what);
}

static bool condition_holds(const struct edge_question *c, const struct spec_edge *e, const struct spec_expr *when,
                            const char *path)
{
    struct expr_value seen[N_SEEN];
    struct tide_err err = {0};
    bool yes = false;

    fill_seen(c, seen);
    if (when->expr && expr_test(when->expr, seen, N_SEEN, &yes, &err)) {
        tell_edge(c, e, arena_printf(c->arena, "%s.when", path), err.msg);
        return false;
    }
    return yes;
}

/* ---- what a way brings ---- */

static void put_value(const struct edge_question *c, const struct spec_edge *e, const struct spec_mapping *m,
                      struct buf *out)
{
    struct expr_value seen[N_SEEN];
    struct tide_err err = {0};
    size_t before = out->len;

    fill_seen(c, seen);
    buf_add_char(out, before ? ',' : '{');
    json_quote(out, m->key);
    buf_add_char(out, ':');
    if (out->failed)
        tide_fail(&err, TIDE_TOO_BIG, "the values of the edge have more than %zu bytes", out->max);
    if (!err.code && !expr_eval(m->value.expr, seen, N_SEEN, NULL, out, &err))
        return;
    out->len = before;
    out->failed = false;
    tell_edge(c, e, arena_printf(c->arena, "%s.map.%.*s", e->path, STR_ARG(m->key)), err.msg);
}

static struct str values_of(const struct edge_question *c, const struct spec_edge *e)
{
    AUTO(buf_done) struct buf out = BUF_INIT(NODE_WORK_OUTPUT_MAX);

    for (size_t i = 0; i < e->map.n; i++)
        put_value(c, e, &e->map.at[i], &out);
    if (out.len == 0)
        return (struct str){"", 0};
    out.max++; /* room for the end */
    buf_add_char(&out, '}');
    return arena_dup(c->arena, buf_view(&out));
}

/* ---- ways ---- */

struct ways {
    const struct edge_question *c;
    struct choice *at;
    size_t n;
    bool decided; /* one of those that ask something is taken */
};

static void add_way(struct ways *w, const struct spec_edge *e)
{
    INVARIANT(w->n <= w->c->node->n_edges && e->to_index < w->c->graph->nodes.n); /* one each, and one of a router */
    w->at[w->n++] = (struct choice){e->to_index, e, values_of(w->c, e)};
}

static bool is_closed(const struct edge_question *c, size_t to)
{
    return c->closed && c->closed(c->arg, to);
}

static void add_route(struct ways *w)
{
    const struct spec_node *n = w->c->node;

    for (size_t i = 0; i < n->routes.n; i++)
        if (condition_holds(w->c, NULL, &n->routes.at[i].when, n->routes.at[i].path) &&
            !is_closed(w->c, n->routes.at[i].to_index)) {
            w->at[w->n++] = (struct choice){n->routes.at[i].to_index, NULL, {"", 0}};
            return;
        }
    if (n->otherwise_index != SPEC_NONE && !is_closed(w->c, n->otherwise_index))
        w->at[w->n++] = (struct choice){n->otherwise_index, NULL, {"", 0}};
}

/* What nobody can read is no reason to end the graph there: the node succeeded, and the edge is its way. */
static enum tide_code ask_model(const struct edge_question *c, const struct spec_edge *e, bool *ret_yes,
                                struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int yes = -1;

    if (c->decide)
        code = c->decide(c->arg, e, &yes, err);
    if (code)
        return code;
    if (yes < 0)
        tell_edge(c, e, e->path,
                  c->decide ? "the model's answer is neither yes nor no: the edge is taken, as on success"
                            : "there is no model to ask: the edge is taken, as on success");
    *ret_yes = yes != 0;
    return TIDE_OK;
}

static enum tide_code look_at(struct ways *w, const struct spec_edge *e, struct tide_err *err)
{
    const struct edge_question *c = w->c;
    bool late = c->timed_out && spec_has_edge(c->graph, c->node, SPEC_TIMEOUT);
    bool plain = !late && !c->failed && c->node->type != SPEC_ROUTER, yes = false;
    enum tide_code code = TIDE_OK;

    if (e->on == SPEC_ALWAYS || (e->on == SPEC_SUCCESS && plain) || (e->on == SPEC_FAILURE && c->failed && !late) ||
        (e->on == SPEC_TIMEOUT && late)) {
        if (!is_closed(c, e->to_index))
            add_way(w, e);
        return TIDE_OK;
    }
    if (!plain || w->decided || (e->on != SPEC_CONDITION && e->on != SPEC_LLM))
        return TIDE_OK;
    if (e->on == SPEC_CONDITION)
        yes = condition_holds(c, e, &e->when, e->path);
    if ((e->on == SPEC_LLM || yes) && is_closed(c, e->to_index))
        return TIDE_OK;
    if (e->on == SPEC_LLM)
        code = ask_model(c, e, &yes, err);
    if (!code && yes) {
        w->decided = true;
        add_way(w, e);
    }
    return code;
}

enum tide_code edges_choose(const struct edge_question *c, struct choice **ret, size_t *ret_n, struct tide_err *err)
{
    AUTO(mem_freep) struct choice *at = mem_array(c->node->n_edges + 1, sizeof(*at));
    struct ways w = {.c = c, .at = at};
    enum tide_code code = TIDE_OK;

    if (c->node->type == SPEC_ROUTER && !c->failed)
        add_route(&w);
    for (size_t i = 0; i < c->node->n_edges && !code; i++)
        code = look_at(&w, &c->graph->edges.at[c->node->first_edge + i], err);
    if (code)
        return code;
    *ret = TAKE(at);
    *ret_n = w.n;
    return TIDE_OK;
}
