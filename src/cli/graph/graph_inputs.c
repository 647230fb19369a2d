/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a graph needs from outside. An input that is in no memory and that no node before it sets fails its node when
 * everything before it has run and been paid for: that is said before anything is. Of keys that are stored nowhere all nodes
 * count that can be reached, also inside of others; of the rest those that come for certain unless something fails, since
 * what stands behind a condition may never be asked for.
 */
#include "cli/graph/graph_inputs.h"

#include <stdio.h>
#include <unistd.h>

#include "base/nearest.h"
#include "graph/exec.h"
#include "session/session.h"

struct lack {
    const struct spec_node *node;
    struct str key;
    bool secret;
};

struct needs {
    struct arena arena;
    const struct spec_checkpoints *checkpoints;
    struct map given; /* keys that are there -> anything */
    struct lack *list;
    size_t n, cap;
};

static bool has(const struct spec_texts *list, struct str key)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->at[i], key))
            return true;
    return false;
}

/* ---- what there is ---- */

static void take_members(struct needs *s, const struct json *object)
{
    for (const struct json *m = object && object->type == JSON_OBJECT ? object->first : NULL; m; m = m->next)
        map_put(&s->given, json_key_text(&s->arena, m), s);
}

static void take_text(struct needs *s, struct str json)
{
    struct json *v = NULL;

    if (json.len && !json_parse(&s->arena, arena_dup(&s->arena, json), NULL, &v, NULL, NULL))
        take_members(s, v);
}

/* One that is there already has a memory. */
static void take_session(struct cli *cli, struct needs *s, const char *id)
{
    tide_session *session = NULL;
    struct tide_err ignored;

    if (!id || cli_store_open(cli, NEED_READ, 0, &ignored))
        return;
    if (!tide_session_open(cli->store, id, TIDE_SESSION_READ, &session, &ignored)) {
        const struct map *memory = &session->state->content.memory;

        for (struct map_entry *e = map_next(memory, NULL); e; e = map_next(memory, e))
            map_put(&s->given, map_key(e), s);
        tide_session_close(session);
    }
    cli_store_close(cli);
}

/* ---- what is needed ---- */

/* Marks what can be reached over arcs; `certain`: only over those that are taken whenever a node is complete. */
static void mark(const struct spec_graph *g, unsigned char *seen, bool certain)
{
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < g->n_arcs; i++) {
            const struct spec_arc *arc = &g->arcs[i];
            bool plain = arc->edge && (arc->edge->on == SPEC_ALWAYS || arc->edge->on == SPEC_SUCCESS);

            if (seen[arc->from] && !seen[arc->to] && (plain || !certain))
                seen[arc->to] = grown = true;
        }
    }
}

static bool edge_gives(const struct spec_graph *g, const struct spec_node *to, struct str key)
{
    for (size_t i = 0; i < g->edges.n; i++)
        for (size_t k = 0; g->edges.at[i].to_index == to->index && k < g->edges.at[i].map.n; k++)
            if (str_eq(g->edges.at[i].map.at[k].key, key))
                return true;
    return false;
}

/* Whether some node that sets it can come before this one. */
static bool is_set_before(struct needs *s, const struct spec_graph *g, const struct spec_node *node, struct str key)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        unsigned char *seen;

        if (!has(&g->nodes.at[i].outputs, key))
            continue;
        seen = arena_zero(&s->arena, g->nodes.n + 1);
        for (size_t k = 0; k < g->nodes.at[i].n_arcs; k++)
            seen[g->arcs[g->nodes.at[i].first_arc + k].to] = 1;
        mark(g, seen, false);
        if (seen[node->index])
            return true;
    }
    return false;
}

static void add_need(struct needs *s, const struct spec_node *node, struct str key, bool secret)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->list[i].key, key))
            return;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 8;
        s->list = mem_grow(s->list, s->cap * sizeof(*s->list));
    }
    s->list[s->n++] = (struct lack){node, key, secret};
}

/* `node`: where it stands in the graph; the inputs may be those of what it runs for each item. */
static void look_at_inputs(struct needs *s, const struct spec_graph *g, const struct spec_node *node,
                           const struct spec_texts *inputs, bool certain)
{
    for (size_t i = 0; i < inputs->n; i++) {
        struct str key = inputs->at[i];
        bool secret = has(&s->checkpoints->exclude_memory_keys, key), item = node->type == SPEC_MAP;

        if ((!secret && !certain) || map_get(&s->given, key) || edge_gives(g, node, key) ||
            (item && (str_eq(key, node->as) || str_eq(key, STR("index")))) || is_set_before(s, g, node, key))
            continue;
        add_need(s, node, key, secret);
    }
}

static void look_at(struct needs *s, const struct spec_graph *g, bool outermost);

static void look_at_node(struct needs *s, const struct spec_graph *g, const struct spec_node *n, bool certain)
{
    const struct spec_texts over = {&n->over_key, n->over_key.len > 0};

    look_at_inputs(s, g, n, &n->inputs, certain);
    look_at_inputs(s, g, n, &over, certain);
    for (const struct spec_node *in = n->node; in; in = in->node)
        look_at_inputs(s, g, n, &in->inputs, false);
    for (const struct spec_node *in = n; in; in = in->node)
        if (in->graph)
            look_at(s, in->graph, false);
}

static void look_at(struct needs *s, const struct spec_graph *g, bool outermost)
{
    unsigned char *can = arena_zero(&s->arena, g->nodes.n + 1), *must = arena_zero(&s->arena, g->nodes.n + 1);

    can[g->entry_index] = must[g->entry_index] = 1;
    mark(g, can, false);
    mark(g, must, true);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (can[i])
            look_at_node(s, g, &g->nodes.at[i], outermost && must[i]);
}

/* ---- what is given and nobody reads ---- */

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* As a word anywhere in its text: good enough for a note. */
static bool mentions(struct str text, struct str key)
{
    const char *at = text.ptr, *end = text.ptr + text.len;

    while (key.len && (at = memmem(at, (size_t)(end - at), key.ptr, key.len))) {
        bool begins = at == text.ptr || !in_name(at[-1]) || (at[-1] == 'n' && at - 1 > text.ptr && at[-2] == '\\');

        if (begins && (at + key.len == end || !in_name(at[key.len])))
            return true;
        at++;
    }
    return false;
}

/* A program that declares no inputs gets all of the memory. */
static bool takes_all(const struct spec_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node)
            if ((n->type == SPEC_FUNCTION && !n->inputs.n) || (n->graph && takes_all(n->graph)))
                return true;
    return false;
}

struct names {
    const struct spec_graph *g;
    size_t node, input;
};

static const char *next_input(void *arg)
{
    struct names *n = arg;

    for (; n->node < n->g->nodes.n; n->node++, n->input = 0)
        if (n->input < n->g->nodes.at[n->node].inputs.n)
            return n->g->nodes.at[n->node].inputs.at[n->input++].ptr;
    return NULL;
}

void graph_note_unread(const tide_graph *graph, struct str memory)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct spec_graph *g = graph->spec->graph;
    struct json *v = NULL;

    if (!memory.len || json_parse(&a, memory, NULL, &v, NULL, NULL))
        return;
    for (const struct json *m = v->type == JSON_OBJECT ? v->first : NULL; m; m = m->next) {
        struct str key = arena_dup(&a, json_key_text(&a, m));
        const char *near = nearest(key.ptr, next_input, &(struct names){g, 0, 0});

        if (mentions(graph->spec->json, key) || (!near && takes_all(g)))
            continue;
        say("nobody reads '%.60s'%s%.60s%s", key.ptr, near ? " (did you mean '" : "", near ? near : "",
            near ? "'?)" : "");
    }
}

/* ---- all of it ---- */

static enum tide_code refuse(const struct needs *s, struct tide_err *err)
{
    const struct lack *first = &s->list[0];
    AUTO(buf_done) struct buf sets = BUF_INIT(4096);

    for (size_t i = 0; i < s->n && i < 8; i++)
        buf_addf(&sets, " --set %.*s=…", STR_ARG(s->list[i].key));
    return tide_fail(err, TIDE_INVALID, "node '%.100s' needs '%.*s', which %s, and nothing was run: give%.200s",
                     first->node->id.ptr, (int)(first->key.len < 100 ? first->key.len : 100), first->key.ptr,
                     first->secret ? "is never stored and was not given" : "nobody sets", buf_cstr(&sets));
}

static enum tide_code ask(struct needs *s, struct buf *memory, struct tide_err *err)
{
    size_t left = 0;

    for (size_t i = 0; i < s->n; i++) {
        size_t before = memory->len;

        if (s->list[i].secret && graph_ask_secret(memory, s->list[i].key.ptr, s->list[i].node->id.ptr, err))
            return err->code;
        if (memory->len == before)
            s->list[left++] = s->list[i];
    }
    s->n = left;
    return TIDE_OK;
}

enum tide_code graph_given(struct cli *cli, tide_graph *graph, const char *session, struct graph_want *w,
                           struct buf *memory, struct tide_err *err)
{
    struct spec_checkpoints checkpoints = graph->spec->graph->checkpoints;
    struct needs s = {.arena = ARENA_INIT, .checkpoints = &checkpoints};
    enum tide_code code = TIDE_OK;

    if (w->opt.checkpoints)
        code = spec_change_checkpoints(graph->spec, str_from(w->opt.checkpoints), &checkpoints, err);
    if (!code) {
        take_members(&s, graph->spec->graph->memory);
        take_text(&s, buf_view(memory));
        take_session(cli, &s, session);
        look_at(&s, graph->spec->graph, true);
        if (!w->quiet)
            graph_note_unread(graph, buf_view(memory));
    }
    if (!code && !w->no_input && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        code = ask(&s, memory, err);
    if (!code && s.n)
        code = refuse(&s, err);
    w->opt.memory = memory->len ? buf_cstr(memory) : NULL;
    free(s.list);
    map_done(&s.given, NULL);
    arena_done(&s.arena);
    return code;
}
