/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph_progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/timefmt.h"

void graph_progress_init(struct graph_progress *p, const tide_graph *graph)
{
    const struct graph_outline *g;

    *p = (struct graph_progress){.arena = ARENA_INIT, .began_ms = monotonic_ms()};
    p->outline = g = graph_outline(&p->arena, graph);
    p->nodes = arena_zero(&p->arena, (g->n_nodes + 1) * sizeof *p->nodes);
    for (size_t i = 0; i < g->n_nodes; i++) {
        p->nodes[i].node = &g->nodes[i];
        map_put(&p->index, g->nodes[i].id, &p->nodes[i]);
    }
}

void graph_progress_done(struct graph_progress *p)
{
    map_done(&p->index, NULL);
    arena_done(&p->arena);
}

struct progress_node *graph_progress_find(const struct graph_progress *p, const char *name)
{
    return name ? map_get(&p->index, (struct str){name, strcspn(name, "#")}) : NULL;
}

bool graph_progress_is_inside(const char *name)
{
    return strchr(name, '#') != NULL;
}

/* Nodes of the graph that it runs. */
static int64_t inside_of(const struct outline_node *n)
{
    return n->type == NODE_SUBGRAPH && n->inside ? (int64_t)n->inside->n_nodes : 0;
}

/* ---- what was before ---- */

static void take_visits(struct graph_progress *p, struct arena *a, const struct json *visits)
{
    for (const struct json *m = visits ? visits->first : NULL; m; m = m->next) {
        struct progress_node *r = map_get(&p->index, json_key_text(a, m));

        if (!r || !json_int(m, &r->visit))
            continue;
        r->state = PROGRESS_DONE;
        snprintf(r->note, sizeof(r->note), "before");
    }
}

static void take_tasks(struct graph_progress *p, struct arena *a, const struct json *tasks)
{
    for (const struct json *m = tasks ? tasks->first : NULL; m; m = m->next) {
        struct str state = json_get_text(a, m, STR("state"));
        struct progress_node *r = map_get(&p->index, json_key_text(a, m));

        if (!r)
            continue;
        r->state = str_eq(state, STR("failed")) ? PROGRESS_FAILED : PROGRESS_WAITING;
        snprintf(r->note, sizeof(r->note), "%s",
                 str_eq(state, STR("failed"))    ? "failed before"
                 : str_eq(state, STR("running")) ? "was interrupted"
                                                 : "");
    }
}

static bool is_direct(struct str name, struct str frame)
{
    return name.len > frame.len && str_starts(name, frame) && strchr("/[", name.ptr[frame.len]) &&
           !memchr(name.ptr + frame.len, '#', name.len - frame.len);
}

/* How much of what is inside a node was complete: a map has a result for each, a graph has visits. */
static void take_inside(struct graph_progress *p, struct arena *a, const struct json *scope, const struct json *content)
{
    struct str frame = json_key_text(a, scope);
    const struct json *items = json_get(scope, STR("items")), *visits = json_get(content, STR("visits")),
                      *active = json_get(json_get(content, STR("position")), STR("active"));
    size_t hash = frame.len;
    struct progress_node *r;

    while (hash > 0 && frame.ptr[hash - 1] != '#')
        hash--;
    r = hash ? map_get(&p->index, (struct str){frame.ptr, hash - 1}) : NULL;
    if (!r || frame.ptr[frame.len - 1] == ']') /* the memory of a map's items */
        return;
    if (r->node->type == NODE_MAP) {
        r->inside = items ? (int64_t)items->count : 0;
        r->inside_done = (int64_t)scope->count - 1;
        return;
    }
    r->inside = inside_of(r->node);
    for (const struct json *m = visits ? visits->first : NULL; m; m = m->next)
        r->inside_done += is_direct(json_key_text(a, m), frame) && !json_get(active, json_key_text(a, m));
}

void graph_progress_before(struct graph_progress *p, tide_session *session, int64_t seq)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    const struct json *content, *position, *scopes;
    struct json *state = NULL;

    if (tide_session_get_state(session, seq, &text, NULL) ||
        json_parse(&a, (struct str){text.ptr, text.len}, NULL, &state, NULL, NULL))
        return; /* it is reported as it continues */
    content = json_get(state, STR("content"));
    position = json_get(content, STR("position"));
    take_visits(p, &a, json_get(content, STR("visits")));
    take_tasks(p, &a, json_get(position, STR("active")));
    take_tasks(p, &a, json_get(position, STR("ready")));
    scopes = json_get(position, STR("scopes"));
    for (const struct json *m = scopes ? scopes->first : NULL; m; m = m->next)
        take_inside(p, &a, m, content);
}

/* ---- folding ---- */

static void set_note(struct progress_node *r, const char *text)
{
    if (r)
        snprintf(r->note, sizeof(r->note), "%s", text ? text : "");
}

/* A node or item inside: "ask" of "review#2/ask", "[3]" of "pages#1[3]". */
static const char *local_name(const char *name)
{
    const char *slash = strrchr(name, '/'), *item = strrchr(name, '[');

    return slash && (!item || slash > item) ? slash + 1 : item ? item : name;
}

static void on_start(struct progress_node *r, const struct tide_graph_event *e)
{
    if (graph_progress_is_inside(e->node)) {
        if (r->state != PROGRESS_RUNNING) /* begun before this run */
            r->began_ms = monotonic_ms();
        r->state = PROGRESS_RUNNING;
        r->inside = e->items > r->inside ? e->items : r->inside;
        set_note(r, r->node->type == NODE_MAP ? "" : local_name(e->node));
        return;
    }
    r->state = r->node->type == NODE_HUMAN_INPUT ? PROGRESS_PARKED : PROGRESS_RUNNING;
    r->visit = e->visit;
    r->attempt = e->attempt;
    r->attempts = e->attempts;
    r->began_ms = monotonic_ms();
    r->inside = inside_of(r->node);
    r->inside_done = 0;
    set_note(r, r->state == PROGRESS_PARKED ? "waits for an answer" : "");
}

static void on_end(struct graph_progress *p, struct progress_node *r, const struct tide_graph_event *e)
{
    if (graph_progress_is_inside(e->node)) {
        bool direct = strcspn(strchr(e->node, '#') + 1, "#") == strlen(strchr(e->node, '#') + 1);

        r->inside_done += direct; /* what is inside that again is part of it */
        return;
    }
    p->completed++;
    r->state = PROGRESS_DONE;
    r->ms = e->ms > 0 || !r->began_ms ? e->ms : monotonic_ms() - r->began_ms;
    r->inside_done = r->inside_done > r->inside || !r->inside ? r->inside_done : r->inside;
    set_note(r, "");
    p->last_done = r;
}

static void on_failed(struct graph_progress *p, struct progress_node *r, const struct tide_graph_event *e)
{
    p->retries += e->delay_ms >= 0;
    set_note(r, e->text);
    if (graph_progress_is_inside(e->node))
        return;
    r->state = e->delay_ms >= 0 ? PROGRESS_RETRY : PROGRESS_FAILED;
    r->handled = false;
    r->retry_at_ms = monotonic_ms() + e->delay_ms;
    r->ms = r->began_ms ? monotonic_ms() - r->began_ms : 0;
}

static void on_agent(struct graph_progress *p, struct progress_node *r, const struct tide_agent_event *a)
{
    char line[256], time[TIME_TAKEN_SIZE];

    if (r->state == PROGRESS_PARKED) /* it was asked about, and continues */
        r->state = PROGRESS_RUNNING;
    switch (a->what) {
    case TIDE_AGENT_USAGE:
        r->tokens += a->input_tokens + a->output_tokens;
        r->cost += a->cost;
        p->tokens += a->input_tokens + a->output_tokens;
        p->cost += a->cost;
        break;
    case TIDE_AGENT_TOOL:
        snprintf(line, sizeof(line), "%.40s %.200s", a->tool, a->args);
        set_note(r, line);
        break;
    case TIDE_AGENT_RETRY:
        snprintf(line, sizeof(line), "again in %s: %.*s", time_taken(time, a->delay_ms),
                 (int)(a->text_len < 200 ? a->text_len : 200), a->text);
        set_note(r, line);
        break;
    case TIDE_AGENT_NOTICE:
        snprintf(line, sizeof(line), "%.*s", (int)(a->text_len < 250 ? a->text_len : 250), a->text);
        set_note(r, line);
        break;
    default:
        break;
    }
}

void graph_progress_take(struct graph_progress *p, const struct tide_graph_event *e)
{
    struct progress_node *r = graph_progress_find(p, e->node);

    p->events++;
    p->checkpoints += e->what == TIDE_GRAPH_CHECKPOINT;
    p->edges_not_judged += e->what == TIDE_GRAPH_NOTICE && e->to; /* a condition that erred has no event of its own */
    if (!r)
        return;
    if (e->what == TIDE_GRAPH_NODE_START)
        on_start(r, e);
    else if (e->what == TIDE_GRAPH_NODE_END)
        on_end(p, r, e);
    else if (e->what == TIDE_GRAPH_NODE_FAILED)
        on_failed(p, r, e);
    else if (e->what == TIDE_GRAPH_EDGE)
        r->handled |= !graph_progress_is_inside(e->node);
    else if (e->what == TIDE_GRAPH_AGENT)
        on_agent(p, r, e->agent);
    else if (e->what == TIDE_GRAPH_NOTICE)
        set_note(r, e->text);
}

/* ---- where it stands ---- */

void graph_progress_park(struct graph_progress *p)
{
    for (size_t i = 0; i < p->outline->n_nodes; i++)
        if (p->nodes[i].state == PROGRESS_RUNNING || p->nodes[i].state == PROGRESS_RETRY)
            p->nodes[i].state = PROGRESS_PARKED;
}

void graph_progress_end(struct graph_progress *p, enum tide_code code)
{
    graph_progress_park(p);
    for (size_t i = 0; code == TIDE_OK && i < p->outline->n_nodes; i++)
        if (p->nodes[i].state == PROGRESS_WAITING) { /* it is complete: this is on a way that was not taken */
            p->nodes[i].state = PROGRESS_NOT_TAKEN;
            set_note(&p->nodes[i], "not taken");
        }
}

bool progress_is_dropped(const struct progress_node *n)
{
    return n->state == PROGRESS_FAILED && !n->handled;
}

static bool ends_way(const struct progress_node *n)
{
    return n->state == PROGRESS_DONE && n->node->n_ways == 0;
}

bool graph_progress_gives(const struct graph_progress *p, struct str key)
{
    bool any = false;

    for (size_t i = 0; i < p->outline->n_nodes; i++)
        any |= ends_way(&p->nodes[i]);
    for (size_t i = 0; i < p->outline->n_nodes; i++) {
        const struct progress_node *n = &p->nodes[i];
        bool is_last = any ? ends_way(n) : n == p->last_done;

        for (size_t k = 0; is_last && k < n->node->n_outputs; k++)
            if (str_eq(n->node->outputs[k], key))
                return true;
    }
    return false;
}
