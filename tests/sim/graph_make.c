/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs, written as JSON: a tree of nodes first, so that each can be reached, then more edges over it, forwards and,
 * where the order allows it, back. And a few fixed ones with everything in them, to be cut at every operation.
 */
#include <stdio.h>

#include "../seeded.h"
#include "graph.h"

enum { EDGES = 8, MOST = 30, DEEP = 2 };

enum e_kind { E_SUCCESS, E_ALWAYS, E_FAILURE, E_CONDITION };

struct e {
    int to, priority;
    enum e_kind kind;
    int when, map; /* numbers of a condition and of a mapping; 0: none */
};

struct n {
    int id, type;
    int max_visits;
    struct e edges[EDGES];
    int n_edges;
};

struct make {
    struct plan *p;
    struct rnd *r;
    struct buf *out;
    int left; /* nodes that may still be made */
    int deep;
    bool loops;
};

/* ---- choices ---- */

uint64_t rnd_below(struct rnd *r, uint64_t n)
{
    return seeded_next(&r->s) % n;
}

bool rnd_chance(struct rnd *r, unsigned percent)
{
    return rnd_below(r, 100) < percent;
}

static int pick(struct make *m, int n)
{
    return (int)rnd_below(m->r, (uint64_t)n);
}

static bool chance(struct make *m, unsigned percent)
{
    return rnd_chance(m->r, percent);
}

/* ---- the shape ---- */

static int pick_type(struct make *m)
{
    static const int types[] = {SPEC_FUNCTION, SPEC_FUNCTION, SPEC_FUNCTION,    SPEC_FUNCTION, SPEC_LUA,
                                SPEC_LUA,      SPEC_ROUTER,   SPEC_HUMAN_INPUT, SPEC_SUBGRAPH, SPEC_MAP};
    int type = types[pick(m, sizeof types / sizeof types[0])];

    if (type == SPEC_SUBGRAPH && (m->deep >= DEEP || m->left < 2))
        return SPEC_FUNCTION;
    if (type == SPEC_HUMAN_INPUT && chance(m, 50))
        return SPEC_FUNCTION;
    return type;
}

static bool has_edge(const struct n *n, int to)
{
    for (int i = 0; i < n->n_edges; i++)
        if (n->edges[i].to == to)
            return true;
    return false;
}

/* In a graph of one branch only one way is ever taken: a lone plain edge, or conditions. */
static enum e_kind pick_kind(struct make *m, const struct n *from)
{
    if (from->type == SPEC_ROUTER)
        return E_SUCCESS;
    if (m->p->order == ALONE)
        return from->n_edges == 0 && chance(m, 60) ? E_SUCCESS : E_CONDITION;
    return chance(m, 60) ? E_SUCCESS : chance(m, 15) ? E_ALWAYS : E_CONDITION;
}

static void add_edge(struct make *m, struct n *from, int to, int priority)
{
    struct e *e = &from->edges[from->n_edges];

    if (from->n_edges == EDGES || has_edge(from, to))
        return;
    *e = (struct e){.to = to, .priority = priority, .kind = pick_kind(m, from)};
    if (m->p->order == ALONE && from->n_edges > 0 && from->type != SPEC_ROUTER) {
        if (from->edges[0].kind != E_CONDITION)
            from->edges[0] = (struct e){.to = from->edges[0].to, .kind = E_CONDITION, .when = pick(m, 8)};
        e->kind = E_CONDITION;
    }
    e->when = pick(m, 8);
    e->map = !chance(m, 25) ? 0 : m->p->order == FREE ? 1 : 1 + pick(m, 3); /* the last who brings something wins */
    from->n_edges++;
}

static bool is_tried(int type)
{
    return type == SPEC_FUNCTION || type == SPEC_SUBGRAPH || type == SPEC_MAP;
}

static void add_failure(struct make *m, struct n *from, int to)
{
    for (int i = 0; i < from->n_edges; i++)
        if (from->edges[i].kind == E_ALWAYS || from->edges[i].kind == E_FAILURE)
            return;
    if (from->n_edges < EDGES && is_tried(from->type))
        from->edges[from->n_edges++] = (struct e){.to = to, .kind = E_FAILURE};
    (void)m;
}

static void shape(struct make *m, struct n *nodes, int count)
{
    for (int i = 0; i < count; i++) {
        nodes[i] = (struct n){.id = m->p->n++, .type = pick_type(m)};
        nodes[i].max_visits = m->loops ? 1 + pick(m, 4) : chance(m, 15) ? 1 + pick(m, 2) : 0;
    }
    for (int i = 1; i < count; i++) {
        int from = chance(m, 50) ? i - 1 : pick(m, i);

        while (nodes[from].n_edges == EDGES)
            from = (from + 1) % i;
        add_edge(m, &nodes[from], i, pick(m, 3));
    }
    for (int i = pick(m, count + 1); i > 0 && count > 1; i--) {
        int to = 1 + pick(m, count - 1);

        add_edge(m, &nodes[pick(m, to)], to, pick(m, 3));
    }
    for (int i = m->loops ? 1 + pick(m, 3) : 0; i > 0; i--) {
        int from = pick(m, count);

        add_edge(m, &nodes[from], pick(m, from + 1), 5);
    }
    for (int i = 0; i + 1 < count; i++)
        if (chance(m, 25))
            add_failure(m, &nodes[i], i + 1 + pick(m, count - i - 1));
    for (int i = 0; i < count; i++)
        if (nodes[i].type == SPEC_ROUTER && !nodes[i].n_edges)
            nodes[i].type = SPEC_LUA;
}

/* ---- as JSON ---- */

/* With a number in it on both sides: different for each edge of a node, because two of the same are refused. */
struct condition {
    const char *before, *middle, *after;
};

static void put_condition(struct make *m, int which, int unique)
{
    static const struct condition steady[] = {
        {"memory.m0 + ", " > 3 + ", ""},        {"memory.m1 * 2 + ", " > 5 + ", ""},
        {"result.visit + ", " == 1 + ", ""},    {"result.success and ", " == ", ""},
        {"memory.nope.x == ", " or 1 == ", ""}, {"", " == ", " + 1"}};
    static const struct condition moving[] = {{"(memory.n0 or 0) + ", " < 3 + ", ""},
                                              {"(memory.n1 or 0) + ", " < 2 + ", ""}};
    const struct condition *c = m->p->order != FREE && which % 2 ? &moving[which / 2 % 2] : &steady[which % 6];

    buf_addf(m->out, "%s%d%s%d%s", c->before, unique, c->middle, unique, c->after);
}

static void put_edge(struct make *m, const struct n *from, const struct e *e, const struct n *nodes, int unique)
{
    static const char *const on[] = {"success", "always", "failure"};
    static const char *const maps[] = {"memory.m0 + 1", "result.visit * 10", "1 + 1"};

    buf_addf(m->out, "{\"from\":\"n%d\",\"to\":\"n%d\",\"priority\":%d", from->id, nodes[e->to].id, e->priority);
    if (e->kind == E_CONDITION) {
        buf_addf(m->out, ",\"when\":\"");
        put_condition(m, e->when, unique);
        buf_addf(m->out, "\"");
    } else {
        buf_addf(m->out, ",\"on\":\"%s\"", on[e->kind]);
    }
    if (e->map)
        buf_addf(m->out, ",\"map\":{\"q\":\"%s\"}", maps[e->map - 1]);
    buf_addf(m->out, "}");
}

static void put_edges(struct make *m, const struct n *nodes, int count)
{
    bool any = false;

    buf_addf(m->out, "],\"edges\":[");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < nodes[i].n_edges; k++) {
            if (nodes[i].type == SPEC_ROUTER && nodes[i].edges[k].kind != E_FAILURE)
                continue;
            buf_addf(m->out, "%s", any ? "," : "");
            put_edge(m, &nodes[i], &nodes[i].edges[k], nodes, i * EDGES + k);
            any = true;
        }
    buf_addf(m->out, "]");
}

static void put_routes(struct make *m, const struct n *n, const struct n *nodes)
{
    bool any = false;

    buf_addf(m->out, ",\"routes\":[");
    for (int i = 1; i < n->n_edges; i++)
        if (n->edges[i].kind != E_FAILURE) {
            buf_addf(m->out, "%s{\"to\":\"n%d\",\"when\":\"", any ? "," : "", nodes[n->edges[i].to].id);
            put_condition(m, n->edges[i].when, i);
            buf_addf(m->out, "\"}");
            any = true;
        }
    buf_addf(m->out, "],\"otherwise\":\"n%d\"", nodes[n->edges[0].to].id);
}

/* Keys that other branches set too, where the order is known. */
static const char *shared_key(struct make *m)
{
    static const char *const keys[] = {"c0", "c1", "c2", "c3", "c4"};

    return m->p->order == FREE || !chance(m, 25) ? NULL : keys[chance(m, 10) ? 4 : pick(m, 4)];
}

static bool is_retrying(const struct make *m)
{
    return m->p->order != ORDERED;
}

static void put_function(struct make *m, const struct n *n, bool item)
{
    static const char *const effects[] = {"pure", "idempotent", "once"};
    struct behaviour *h = &m->p->behaviours[n->id];
    bool once = chance(m, 20);
    const char *key = item ? NULL : shared_key(m);
    int retries = pick(m, 3);

    h->item = item && chance(m, 50) ? pick(m, 3) : -1;
    if (chance(m, 20)) {
        h->hard = !is_retrying(m) || once || chance(m, 40);
        retries = is_retrying(m) ? retries : 0;
        h->fails = h->hard ? 1000000 : pick(m, retries + 1);
    }
    buf_addf(m->out, ",\"callback\":\"work\",\"effect\":\"%s\",\"retries\":%d,\"outputs\":[\"k%d\"%s%s%s]",
             effects[once ? 2 : pick(m, 2)], retries, n->id, key ? ",\"" : "", key ? key : "", key ? "\"" : "");
    if (chance(m, 30))
        buf_addf(m->out, ",\"inputs\":[\"m0\"%s]", m->p->order == FREE ? "" : ",\"n0\"");
}

static void put_lua(struct make *m, const struct n *n, bool item)
{
    int which = m->p->order == FREE || item ? 2 + pick(m, 2) : pick(m, 4);

    if (which < 2)
        buf_addf(
            m->out,
            ",\"code\":\"local n = (memory.n%d or 0) + 1 return {k%d = n, n%d = n}\",\"outputs\":[\"k%d\",\"n%d\"]",
            which, n->id, which, n->id, which);
    else if (which == 2)
        buf_addf(m->out, ",\"code\":\"return {k%d = {inputs.m0 + %d, inputs.q or 0}}\",\"outputs\":[\"k%d\"]", n->id,
                 n->id, n->id);
    else
        buf_addf(m->out, ",\"code\":\"return {k%d = memory.m1 * 3}\",\"outputs\":[\"k%d\"]", n->id, n->id);
}

static void put_graph(struct make *m, int count);

static int inner_count(struct make *m)
{
    int count = 1 + pick(m, 4);

    return m->left < 1 ? 1 : count < m->left ? count : m->left;
}

/* A graph inside; what it gives is the key of its first node. */
static void put_subgraph(struct make *m, bool nullable, bool item)
{
    int first;

    m->deep++;
    buf_addf(m->out, ",\"retries\":%d,\"graph\":", is_retrying(m) ? pick(m, 2) : 0);
    first = m->p->n;
    put_graph(m, inner_count(m));
    m->deep--;
    if (chance(m, 70) || item) /* all that it remembers holds what other branches did by then */
        buf_addf(m->out, ",\"outputs\":[\"k%d\"]", first);
    if (nullable && m->out->ptr[m->out->len - 1] == ']')
        buf_addf(m->out, ",\"nullable_outputs\":[\"k%d\"]", first);
}

static void put_map(struct make *m, const struct n *n)
{
    int what = m->deep < DEEP && m->left > 1 && chance(m, 25) ? 2 : pick(m, 2);

    int parallel =
        m->p->order == ALONE ? 1 : pick(m, 3); /* one branch only: an item that is tried again holds up the next */

    buf_addf(m->out, ",\"over\":\"%s\",\"as\":\"it\",\"retries\":%d,\"parallel\":%d,\"outputs\":[\"k%d\"],\"node\":{",
             chance(m, 50) ? "list" : "memory.list", is_retrying(m) ? pick(m, 2) : 0, parallel, n->id);
    if (what == 0) {
        buf_addf(m->out, "\"type\":\"function\"");
        put_function(m, n, true);
    } else if (what == 1) {
        buf_addf(m->out, "\"type\":\"lua\"");
        put_lua(m, n, true);
    } else {
        buf_addf(m->out, "\"type\":\"subgraph\"");
        put_subgraph(m, true, true);
    }
    buf_addf(m->out, "}");
}

static void put_node(struct make *m, const struct n *n, const struct n *nodes)
{
    buf_addf(m->out, "{\"id\":\"n%d\",\"type\":\"%s\"", n->id, spec_node_words[n->type]);
    if (n->max_visits)
        buf_addf(m->out, ",\"max_visits\":%d", n->max_visits);
    if (chance(m, 10))
        buf_addf(m->out, ",\"safe_point\":true");
    if (n->type == SPEC_FUNCTION)
        put_function(m, n, false);
    else if (n->type == SPEC_LUA)
        put_lua(m, n, false);
    else if (n->type == SPEC_ROUTER)
        put_routes(m, n, nodes);
    else if (n->type == SPEC_HUMAN_INPUT)
        buf_addf(m->out, ",\"question\":\"what of {m0}?\",\"kind\":\"%s\",\"outputs\":[\"k%d\"]",
                 chance(m, 30) ? "approval" : "input", n->id);
    else if (n->type == SPEC_SUBGRAPH)
        put_subgraph(m, chance(m, 50), false);
    else
        put_map(m, n);
    buf_addf(m->out, "}");
}

/* What runs inside until it fails depends on the order, and is not mended when the failure is taken care of. */
static bool cares_for_maps(const struct n *nodes, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < nodes[i].n_edges && nodes[i].type == SPEC_MAP; k++)
            if (nodes[i].edges[k].kind == E_FAILURE || nodes[i].edges[k].kind == E_ALWAYS)
                return true;
    return false;
}

static void put_head(struct make *m, const struct n *nodes, int count)
{
    static const char *const rules[] = {"fail_all", "continue", "wait_all"};
    int items = pick(m, 4), rule = pick(m, 3), entry = nodes[0].id;

    if (m->p->order == FREE && rule == 0 && (m->deep || cares_for_maps(nodes, count)))
        rule = 1 + pick(m, 2);
    buf_addf(m->out, "{\"tidemark_graph\":1,\"id\":\"g%d\",\"entry\":\"n%d\",\"branch_failure\":\"%s\",", entry, entry,
             rules[rule]);
    buf_addf(m->out, "\"conflict\":{\"n0\":\"last\",\"n1\":\"last\",\"c0\":\"last\",\"c1\":\"first\",\"c2\":\"merge\","
                     "\"c3\":\"merge\",\"c4\":\"error\"},");
    buf_addf(m->out, "\"memory\":{\"m0\":%d,\"m1\":%d,\"n0\":0,\"list\":[", pick(m, 8), pick(m, 8));
    for (int i = 0; i < items; i++)
        buf_addf(m->out, "%s%d", i ? "," : "", pick(m, 100));
    buf_addf(m->out, "]}");
    if (chance(m, 40))
        buf_addf(
            m->out,
            ",\"checkpoints\":{\"async_checkpoint\":%s,\"checkpoint_on_edge\":%s,\"max_checkpoints_per_session\":%d,"
            "\"prune_after_node_count\":%d}",
            chance(m, 50) ? "true" : "false", chance(m, 50) ? "true" : "false", 1 + pick(m, 6), 1 + pick(m, 4));
    buf_addf(m->out, ",\"nodes\":[");
}

static void put_graph(struct make *m, int count)
{
    struct n nodes[MOST];
    bool loops = m->loops;

    m->left -= count;
    m->loops = m->p->order != FREE && chance(m, m->deep ? 20 : 50);
    shape(m, nodes, count);
    put_head(m, nodes, count);
    for (int i = 0; i < count; i++) {
        buf_addf(m->out, "%s", i ? "," : "");
        put_node(m, &nodes[i], nodes);
    }
    put_edges(m, nodes, count);
    buf_addf(m->out, "}");
    m->loops = loops;
}

void plan_random(struct plan *p, struct rnd *r)
{
    struct make m = {.p = p, .r = r, .out = &p->json};
    int most = rnd_chance(r, 80) ? 12 : MOST;

    *p = (struct plan){.json = BUF_INIT(1 << 20), .order = (enum order)rnd_below(r, ORDERS)};
    for (int i = 0; i < NODES; i++)
        p->behaviours[i].item = -1;
    m.left = 2 + pick(&m, most - 1);
    put_graph(&m, 1 + pick(&m, m.left));
}

void plan_done(struct plan *p)
{
    buf_done(&p->json);
}

/* ---- fixed ones ---- */

/* clang-format off */
#define GRAPH(entry, nodes, edges, more)                                                                               \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"n" entry "\",\"memory\":{\"m0\":3,\"m1\":4,\"n0\":0,"              \
    "\"list\":[5,6,7]},\"conflict\":{\"c2\":\"merge\",\"n0\":\"last\"},\"nodes\":[" nodes "],\"edges\":[" edges "]" more "}"
#define NODE(n, type, more) "{\"id\":\"n" n "\",\"type\":\"" type "\"" more "}"
#define WORK(n, more) NODE(n, "function", ",\"callback\":\"work\",\"outputs\":[\"k" n "\"]" more)
#define BOTH(n) NODE(n, "function", ",\"callback\":\"work\",\"outputs\":[\"k" n "\",\"c2\"]")
#define ASK(n, kind) NODE(n, "human_input", ",\"question\":\"?\",\"kind\":\"" kind "\",\"outputs\":[\"k" n "\"]")
#define COUNT(n) NODE(n, "lua", ",\"max_visits\":4,\"code\":\"return {n0 = (memory.n0 or 0) + 1}\",\"outputs\":[\"n0\"]")
#define INSIDE(n, gives, graph) NODE(n, "subgraph", ",\"outputs\":[\"" gives "\"],\"graph\":" graph)
#define OVER(n, inner) NODE(n, "map", ",\"over\":\"list\",\"as\":\"it\",\"parallel\":2,\"outputs\":[\"k" n "\"],\"node\":{" inner "}")
#define ITEM(n) "\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"k" n "\"],\"retries\":1"
#define EDGE(a, b) "{\"from\":\"n" a "\",\"to\":\"n" b "\"}"
#define FAILS(a, b) "{\"from\":\"n" a "\",\"to\":\"n" b "\",\"on\":\"failure\"}"
#define BRINGS(a, b) "{\"from\":\"n" a "\",\"to\":\"n" b "\",\"map\":{\"q\":\"memory.m0 * 7\"}}"
#define ONCE ",\"effect\":\"once\""
#define PURE ",\"effect\":\"pure\""
#define TRIES(n) ",\"retries\":" n
#define ROUTER(n, when, to, other) NODE(n, "router", ",\"max_visits\":4,\"routes\":[{\"when\":\"" when "\",\"to\":\"n" to "\"}],\"otherwise\":\"n" other "\"")
#define FOR_EVER 1000000

static const struct {
    const char *name;
    enum order order;
    const char *json;
    struct {
        int node, fails, item;
        bool hard;
    } behaviours[4];
} fixed[] = {
    {"chain_with_a_retry_and_a_once", ALONE,
     GRAPH("1", WORK("1", PURE) "," WORK("2", TRIES("2")) "," WORK("3", ONCE) "," WORK("4", PURE),
           BRINGS("1", "2") "," EDGE("2", "3") "," EDGE("3", "4"), ""),
     {{2, 2, -1, false}}},
    {"fan_out_with_conflicts_and_people", ORDERED,
     GRAPH("1", WORK("1", "") "," BOTH("2") "," BOTH("3") "," ASK("4", "input") "," WORK("5", "") "," WORK("6", ONCE) "," ASK("7", "approval"),
           EDGE("1", "2") "," EDGE("1", "3") "," EDGE("1", "4") "," EDGE("1", "7") "," EDGE("2", "6") "," EDGE("6", "5") ","
           BRINGS("3", "5") "," EDGE("4", "5") "," EDGE("7", "5"), ""),
     {{0, 0, -1, false}}},
    {"map_with_a_retry_inside_a_graph", FREE,
     GRAPH("1", WORK("1", "") "," INSIDE("2", "k3", GRAPH("3", OVER("3", ITEM("3")) "," WORK("4", PURE), EDGE("3", "4"), "")) "," WORK("5", ""),
           EDGE("1", "2") "," EDGE("2", "5"), ""),
     {{3, 1, 1, false}}},
    {"loop_with_a_router_and_a_failure_edge", ALONE,
     GRAPH("1", COUNT("1") "," WORK("2", ",\"max_visits\":4,\"retries\":1") "," ROUTER("3", "memory.n0 < 3", "1", "4") ","
           WORK("4", ",\"max_visits\":4"), EDGE("1", "2") "," FAILS("2", "3") "," EDGE("2", "4"), ""),
     {{2, FOR_EVER, -1, true}}},
    {"failed_branch_that_is_mended", ORDERED,
     GRAPH("1", WORK("1", PURE) "," WORK("2", TRIES("0")) "," WORK("3", "") "," WORK("4", ""),
           EDGE("1", "2") "," EDGE("1", "3") "," EDGE("2", "4") "," EDGE("3", "4"), ",\"branch_failure\":\"wait_all\""),
     {{2, FOR_EVER, -1, true}}},
    {"people_and_failures_inside_graphs", ORDERED,
     GRAPH("1", INSIDE("1", "k2", GRAPH("2", WORK("2", "") "," WORK("3", TRIES("0")) "," ASK("4", "input") "," WORK("5", ""),
           EDGE("2", "3") "," EDGE("2", "4") "," EDGE("3", "5") "," EDGE("4", "5"), "")) ","
           OVER("6", "\"type\":\"subgraph\",\"outputs\":[\"k7\"],\"graph\":" GRAPH("7", ASK("7", "input") "," WORK("8", PURE), EDGE("7", "8"), "")),
           EDGE("1", "6"), ""),
     {{3, FOR_EVER, -1, true}}},
    {"graph_inside_that_fails_beside_others", ORDERED,
     GRAPH("1", WORK("1", PURE) "," INSIDE("2", "k5", GRAPH("3", WORK("3", PURE) "," WORK("4", TRIES("0")) "," WORK("5", "") "," WORK("6", ""),
           EDGE("3", "4") "," EDGE("3", "5") "," EDGE("4", "6") "," EDGE("5", "6"), "")) "," WORK("7", "") "," WORK("8", ""),
           EDGE("1", "2") "," EDGE("1", "7") "," EDGE("2", "8") "," EDGE("7", "8"), ",\"branch_failure\":\"wait_all\""),
     {{4, FOR_EVER, -1, true}}},
    {"synchronous_checkpoints_that_are_pruned", FREE,
     GRAPH("1", WORK("1", PURE) "," WORK("2", PURE) "," WORK("3", "") "," WORK("4", ONCE) "," WORK("5", ""),
           EDGE("1", "2") "," EDGE("1", "3") "," EDGE("1", "4") "," EDGE("2", "5") "," EDGE("3", "5") "," EDGE("4", "5"),
           ",\"checkpoints\":{\"async_checkpoint\":false,\"checkpoint_on_edge\":true,\"max_checkpoints_per_session\":2,\"prune_after_node_count\":1}"),
     {{3, 2, -1, false}}},
    {"map_that_is_mended_goes_on_before_later_nodes", ORDERED,
     GRAPH("1", WORK("1", PURE) "," OVER("2", "\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"k2\"],\"retries\":0") ","
           WORK("3", TRIES("0")) "," WORK("4", ",\"inputs\":[\"n0\"]") "," COUNT("5") "," COUNT("6"),
           EDGE("1", "2") "," EDGE("1", "3") "," EDGE("2", "4") "," EDGE("3", "5") "," EDGE("5", "6"), ",\"branch_failure\":\"wait_all\""),
     {{2, FOR_EVER, -1, true}, {3, FOR_EVER, -1, true}}},
    {"once_started_beside_one_that_fails", FREE,
     GRAPH("1", WORK("1", PURE) "," WORK("2", TRIES("0")) "," WORK("3", ONCE) "," WORK("4", ONCE) "," WORK("5", ""),
           EDGE("1", "2") "," EDGE("1", "3") "," EDGE("1", "4") "," EDGE("3", "5"), ""),
     {{2, FOR_EVER, -1, true}}},
    {"once_of_which_the_output_conflicts", ORDERED,
     GRAPH("1", WORK("1", PURE) "," NODE("2", "function", ",\"callback\":\"work\",\"outputs\":[\"c4\"]") ","
           NODE("3", "function", ",\"callback\":\"work\",\"outputs\":[\"c4\"]" ONCE),
           EDGE("1", "2") ",{\"from\":\"n1\",\"to\":\"n3\",\"when\":\"true\"}", ",\"branch_failure\":\"wait_all\""),
     {{0, 0, -1, false}}},
};
/* clang-format on */

const char *plan_fixed(struct plan *p, size_t i)
{
    if (i >= sizeof fixed / sizeof fixed[0])
        return NULL;
    *p = (struct plan){.json = BUF_INIT(1 << 20), .order = fixed[i].order};
    buf_add_str(&p->json, str_from(fixed[i].json));
    for (int n = 0; n < NODES; n++)
        p->behaviours[n].item = -1;
    for (size_t h = 0; h < 4; h++) {
        struct behaviour *to = &p->behaviours[fixed[i].behaviours[h].node];

        if (!fixed[i].behaviours[h].fails)
            continue;
        to->fails = fixed[i].behaviours[h].fails;
        to->item = fixed[i].behaviours[h].item;
        to->hard = fixed[i].behaviours[h].hard;
    }
    return fixed[i].name;
}
