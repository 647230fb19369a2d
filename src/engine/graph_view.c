/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sources. The state as of there says where the graph stands: which nodes are ready or work, and how often each was visited. The events
 * before it say when, and which edges were taken.
 */
#include "engine/graph_view.h"

#include <string.h>

#include "base/json.h"
#include "engine/graph_file.h"
#include "graph/exec.h"
#include "graph/resume.h"

#define SPEC_MAX ((size_t)64 << 20)

struct reading {
    struct graph_view *v;
    const struct state *state;
    struct arena scratch;
};

/* ---- from the graph ---- */

static const char *text_or_null(struct arena *a, struct str s)
{
    return s.len ? arena_dup(a, s).ptr : NULL;
}

static void take_graph(struct graph_view *v, const tide_graph *graph)
{
    const struct spec_graph *g = graph->spec->graph;
    struct arena *a = &v->arena;

    graph_write(graph, GRAPH_AS_JSON, &v->spec);
    v->n_nodes = g->nodes.n;
    v->nodes = arena_zero(a, (g->nodes.n + 1) * sizeof *v->nodes);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct spec_node *n = &g->nodes.at[i];

        v->nodes[i] = (struct view_node){.id = arena_dup(a, n->id).ptr, .type = spec_node_words[n->type], .ms = -1};
        map_put(&v->by_id, n->id, &v->nodes[i]);
    }
    v->n_edges = g->n_arcs;
    v->edges = arena_zero(a, (g->n_arcs + 1) * sizeof *v->edges);
    for (size_t i = 0; i < g->n_arcs; i++) {
        const struct spec_arc *arc = &g->arcs[i];

        v->edges[i] = (struct view_edge){.id = arc->edge ? text_or_null(a, arc->edge->id) : NULL,
                                         .from = v->nodes[arc->from].id,
                                         .to = v->nodes[arc->to].id};
    }
}

/* ---- from the events ---- */

static int64_t started_or(int64_t ms, int64_t otherwise)
{
    return ms ? ms : otherwise;
}

static void on_node(struct reading *r, const struct tide_event *ev, const struct json *body)
{
    struct str name = json_get_text(&r->scratch, body, STR("node"));
    struct view_node *n = map_get(&r->v->by_id, name);
    int64_t visit = json_get_int(body, STR("visit"), 1);
    const char *what = ev->kind + strlen("node.");

    if (!n)
        return;
    n->seq = ev->seq;
    n->attempts = json_get_int(body, STR("attempt"), n->attempts ? n->attempts - 1 : 0) + 1;
    if (strcmp(what, "started") == 0) {
        bool retry = n->visits == visit && n->started_ms && !n->ended_ms;

        n->visits = visit;
        n->started_ms = retry ? n->started_ms : ev->ts_ms;
        n->ended_ms = 0;
        n->ms = -1;
        n->state = VIEW_ACTIVE;
        r->v->path[r->v->n_path++ % GRAPH_VIEW_PATH] = (struct view_step){n->id, visit, ev->seq, ev->ts_ms};
    } else if (strcmp(what, "completed") == 0 || strcmp(what, "failed") == 0) {
        const struct json *error = json_get(body, STR("error")), *message = json_get(error, STR("message"));

        error = message ? message : error;
        n->error = what[0] == 'c' || !error     ? NULL
                   : error->type == JSON_STRING ? arena_dup(&r->v->arena, json_text(&r->scratch, error)).ptr
                                                : arena_dup(&r->v->arena, json_source(error)).ptr;
        n->state = what[0] == 'c' ? VIEW_COMPLETED : VIEW_FAILED;
        if (json_get_text(&r->scratch, body, STR("retry_at")).len)
            return;
        n->ended_ms = ev->ts_ms;
        n->ms = json_get_int(body, STR("ms"), ev->ts_ms - started_or(n->started_ms, ev->ts_ms + 1));
    }
}

/* By its id where it has one, else the first between the two. */
static void on_edge(struct reading *r, const struct tide_event *ev, const struct json *body)
{
    struct str from = json_get_text(&r->scratch, body, STR("from")), to = json_get_text(&r->scratch, body, STR("to")),
               id = json_get_text(&r->scratch, body, STR("edge"));

    for (size_t i = 0; i < r->v->n_edges; i++) {
        struct view_edge *e = &r->v->edges[i];

        if (!str_eq(str_from(e->from), from) || !str_eq(str_from(e->to), to) || !str_eq(str_from(e->id), id))
            continue;
        e->taken++;
        e->last_seq = ev->seq;
        return;
    }
}

static int on_event(void *arg, const struct tide_event *ev)
{
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct reading *r = arg;
    struct json *body = NULL;
    bool node = strncmp(ev->kind, "node.", 5) == 0;

    if ((!node && strcmp(ev->kind, "edge.taken") != 0) || !content_has(&r->state->content, ev->seq))
        return 0;
    arena_reset(&r->scratch);
    if (json_parse(&r->scratch, (struct str){ev->body, ev->body_len}, &limits, &body, NULL, NULL))
        return 0;
    if (node)
        on_node(r, ev, body);
    else
        on_edge(r, ev, body);
    return 0;
}

/* ---- from the state ---- */

static enum graph_view_state state_of_task(const struct task *t, const struct run *run)
{
    if (t->state == TASK_FAILED)
        return VIEW_FAILED;
    if (t->state == TASK_WITHDRAWN)
        return VIEW_READY;
    if (run->end != RUN_OPEN)
        return VIEW_INTERRUPTED;
    return run->waiting ? VIEW_WAITING : VIEW_ACTIVE;
}

static void settle_node(struct view_node *n, const struct state *s)
{
    const struct position *p = &s->content.position;
    const int64_t *visits = map_get(&s->content.visits, str_from(n->id));
    const struct task *t = map_get(&p->active, str_from(n->id));

    n->visits = visits ? *visits : 0;
    if (t) {
        n->state = state_of_task(t, &s->ledger.run);
        n->attempts = t->attempt + 1;
        if (t->state != TASK_FAILED)
            n->ended_ms = 0;
        n->ms = n->ended_ms ? n->ms : -1;
    } else if (map_get(&p->ready, str_from(n->id))) {
        n->state = VIEW_READY;
    } else if (map_get(&p->dropped, str_from(n->id))) {
        n->state = VIEW_FAILED;
    } else if (n->visits) {
        n->state = n->state == VIEW_FAILED ? VIEW_FAILED : VIEW_COMPLETED;
    } else {
        n->state = s->ledger.run.end == RUN_COMPLETED && content_has(&s->content, s->ledger.run.ended_seq)
                       ? VIEW_SKIPPED
                       : VIEW_NONE;
    }
}

static enum tide_code read_at(tide_session *session, int64_t seq, const struct state *state, struct graph_view *v,
                              struct tide_err *err)
{
    struct reading r = {.v = v, .state = state};
    tide_graph *graph = NULL;
    enum tide_code code = graph_read(session->store, state, &graph, err);

    if (code)
        return code;
    take_graph(v, graph);
    tide_graph_free(graph);
    v->seq = seq;
    v->partial = seq > GRAPH_VIEW_EVENTS;
    code = tide_session_read(session, TIDE_READ_INHERITED, v->partial ? seq - GRAPH_VIEW_EVENTS + 1 : 1, seq, on_event,
                             &r, err);
    for (size_t i = 0; i < v->n_nodes; i++)
        settle_node(&v->nodes[i], state);
    arena_done(&r.scratch);
    return code;
}

enum tide_code graph_view_read(tide_session *session, int64_t seq, struct graph_view *v, struct tide_err *err)
{
    AUTO(state_freep) struct state *own = NULL;
    const struct state *state;
    enum tide_code code;

    *v = (struct graph_view){.arena = ARENA_INIT, .spec = BUF_INIT(SPEC_MAX)};
    memcpy(v->session_id, tide_session_id(session), strlen(tide_session_id(session)) + 1);
    code = session_state(session, seq, &own, &state, err);
    return code ? code : read_at(session, state->seq, state, v, err);
}

void graph_view_done(struct graph_view *v)
{
    map_done(&v->by_id, NULL);
    buf_done(&v->spec);
    arena_done(&v->arena);
}

/* ---- as JSON ---- */

static const char *const state_words[] = {"none",        "ready",     "active", "waiting",
                                          "interrupted", "completed", "failed", "skipped"};

static void put_state(struct json_out *o, const void *data)
{
    json_out_str(o, str_from(state_words[((const struct view_node *)data)->state]));
}

static bool has_ms(const void *data)
{
    return ((const struct view_node *)data)->ms >= 0;
}

static bool has_seq(const void *data)
{
    return ((const struct view_node *)data)->seq > 0;
}

static bool has_attempts(const void *data)
{
    return ((const struct view_node *)data)->attempts > 0;
}

#define AT(member) SHAPE_AT(struct view_node, member)

static const struct shape shape_view_node = {
    .members =
        (const struct shape_member[]){
            {"id", SHAPE_TEXT, AT(id), 0, "the node"},
            {"type", SHAPE_TEXT, AT(type), 0, "its type"},
            {"state", SHAPE_TEXT, AT(state), 0, "where it stands",
             .words = "none ready active waiting interrupted completed failed skipped", .put = put_state},
            {"visits", SHAPE_INT, AT(visits), 0, "how often it was begun, without retries"},
            {"attempts", SHAPE_INT, AT(attempts), SHAPE_NULLABLE, "of the latest visit; null: not known",
             .has = has_attempts},
            {"started_at", SHAPE_TIME, AT(started_ms), SHAPE_NULLABLE, "of the latest visit"},
            {"ended_at", SHAPE_TIME, AT(ended_ms), SHAPE_NULLABLE, "the same"},
            {"ms", SHAPE_INT, AT(ms), SHAPE_NULLABLE, "how long that took", .has = has_ms},
            {"error", SHAPE_TEXT, AT(error), SHAPE_NULLABLE, "of its latest attempt, if that failed"},
            {"seq", SHAPE_INT, AT(seq), SHAPE_NULLABLE, "the latest event about it", .has = has_seq},
            {.name = NULL},
        },
};
#undef AT

static bool has_last(const void *data)
{
    return ((const struct view_edge *)data)->last_seq > 0;
}

#define AT(member) SHAPE_AT(struct view_edge, member)

static const struct shape shape_view_edge = {
    .members =
        (const struct shape_member[]){
            {"id", SHAPE_TEXT, AT(id), SHAPE_NULLABLE, "its id, where it has one"},
            {"from", SHAPE_TEXT, AT(from), 0, "the node that it leads from"},
            {"to", SHAPE_TEXT, AT(to), 0, "the node that it leads to"},
            {"taken", SHAPE_INT, AT(taken), 0, "how often it was taken"},
            {"last_seq", SHAPE_INT, AT(last_seq), SHAPE_NULLABLE, "with which event last; null: never",
             .has = has_last},
            {.name = NULL},
        },
};
#undef AT

#define AT(member) SHAPE_AT(struct view_step, member)

static const struct shape shape_view_step = {
    .members =
        (const struct shape_member[]){
            {"node", SHAPE_TEXT, AT(node), 0, "the node that was begun"},
            {"visit", SHAPE_INT, AT(visit), 0, "for how many-th time"},
            {"seq", SHAPE_INT, AT(seq), 0, "with this event"},
            {"ts", SHAPE_TIME, AT(ts_ms), SHAPE_NULLABLE, "when"},
            {.name = NULL},
        },
};
#undef AT

static void put_spec(struct json_out *o, const void *data)
{
    json_out_raw(o, buf_view(&((const struct graph_view *)data)->spec));
}

static void put_path(struct json_out *o, const void *data)
{
    const struct graph_view *v = data;
    size_t n = v->n_path < GRAPH_VIEW_PATH ? v->n_path : GRAPH_VIEW_PATH;

    json_out_begin(o, '[');
    for (size_t i = v->n_path - n; i < v->n_path; i++)
        shape_put(o, &shape_view_step, &v->path[i % GRAPH_VIEW_PATH]);
    json_out_end(o, ']');
}

#define AT(member) SHAPE_AT(struct graph_view, member)

SHAPE(graph_view, "A graph as it stood at a moment of its session.",
      {"session_id", SHAPE_CHARS, AT(session_id), SHAPE_ID, "the session"},
      {"seq", SHAPE_INT, AT(seq), 0, "as of this event"},
      {"partial", SHAPE_BOOL, AT(partial), 0,
       "older events than the newest 20,000 were not read: times, errors, edges and the path lack them"},
      {"graph", SHAPE_ANY, AT(spec), 0, "the graph as its run stored it", .put = put_spec},
      {"nodes", SHAPE_ROWS, SHAPE_ROWS_AT(struct graph_view, nodes, n_nodes), 0, "of the graph itself, in its order",
       .of = &shape_view_node},
      {"edges", SHAPE_ROWS, SHAPE_ROWS_AT(struct graph_view, edges, n_edges), 0,
       "ways between them, routes of routers as well", .of = &shape_view_edge},
      {"path", SHAPE_LIST, AT(path), 0, "nodes in the order in which they were begun, the last 500",
       .of = &shape_view_step, .put = put_path});
