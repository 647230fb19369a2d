/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a graph needs from outside. An input that is in no memory and that no node before it sets fails its node when
 * everything before it has run and been paid for: that is said before anything is. Of keys that are stored nowhere all nodes
 * count that can be reached, also inside of others; of the rest those that come for certain unless something fails, since
 * what stands behind a condition may never be asked for.
 */
#include "engine/graph_inputs.h"

#include "base/nearest.h"
#include "engine/settings.h"
#include "graph/exec.h"
#include "graph/spec_fields.h"

struct needs {
    struct arena *arena;
    const struct spec_checkpoints *checkpoints;
    struct map given; /* keys that are there -> anything */
    struct map found; /* keys that are missing -> struct graph_missing * */
};

/* ---- what there is ---- */

static void take_members(struct needs *s, const struct json *object)
{
    for (const struct json *m = object && object->type == JSON_OBJECT ? object->first : NULL; m; m = m->next)
        map_put(&s->given, json_key_text(s->arena, m), s);
}

/* ---- what is needed ---- */

/* Marks what can be reached over arcs; `certain`: only over those that are taken whenever a node is complete. */
static void mark_reachable(const struct spec_graph *g, unsigned char *seen, bool certain)
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

        if (!texts_have(&g->nodes.at[i].outputs, key))
            continue;
        seen = arena_zero(s->arena, g->nodes.n + 1);
        for (size_t k = 0; k < g->nodes.at[i].n_arcs; k++)
            seen[g->arcs[g->nodes.at[i].first_arc + k].to] = 1;
        mark_reachable(g, seen, false);
        if (seen[node->index])
            return true;
    }
    return false;
}

/* `node`: where it stands in the graph; the inputs may be those of what it runs for each item. */
static void look_at_inputs(struct needs *s, const struct spec_graph *g, const struct spec_node *node,
                           const struct spec_texts *inputs, bool certain)
{
    for (size_t i = 0; i < inputs->n; i++) {
        struct str key = inputs->at[i];
        struct graph_missing *m;
        bool secret = texts_have(&s->checkpoints->exclude_memory_keys, key), item = node->type == SPEC_MAP;

        if ((!secret && !certain) || map_get(&s->given, key) || edge_gives(g, node, key) ||
            (item && (str_eq(key, node->as) || str_eq(key, STR("index")))) || is_set_before(s, g, node, key))
            continue;
        if (map_get(&s->found, key))
            continue;
        m = arena_alloc(s->arena, sizeof *m);
        *m = (struct graph_missing){node->id.ptr, arena_dup(s->arena, key).ptr, secret};
        map_put(&s->found, key, m);
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
    unsigned char *can = arena_zero(s->arena, g->nodes.n + 1), *must = arena_zero(s->arena, g->nodes.n + 1);

    can[g->entry_index] = must[g->entry_index] = 1;
    mark_reachable(g, can, false);
    mark_reachable(g, must, true);
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
static bool mentions_key(struct str text, struct str key)
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

void graph_find_unread(const tide_graph *graph, struct str memory, graph_unread_fn *fn, void *arg)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct spec_graph *g = graph->spec->graph;
    struct json *v = NULL;

    if (!memory.len || json_parse(&a, memory, NULL, &v, NULL, NULL))
        return;
    for (const struct json *m = v->type == JSON_OBJECT ? v->first : NULL; m; m = m->next) {
        struct str key = arena_dup(&a, json_key_text(&a, m));
        const char *near = nearest(key.ptr, next_input, &(struct names){g, 0, 0});

        if (!mentions_key(graph->spec->json, key) && (near || !takes_all(g)))
            fn(arg, key.ptr, near);
    }
}

/* ---- all of it ---- */

enum tide_code graph_refuse_missing(const struct graph_missing *list, struct tide_err *err)
{
    AUTO(buf_done) struct buf keys = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&keys);

    if (!list->key)
        return TIDE_OK;
    json_out_begin(&o, '{');
    for (size_t i = 0; i < 8 && list[i].key; i++) {
        json_out_key(&o, str_from(list[i].key));
        json_out_null(&o);
    }
    json_out_end(&o, '}');
    tide_fail_node(err, TIDE_INVALID, list->node, "needs '%.100s', which %s, and nothing was run", list->key,
                   list->secret ? "is never stored and was not given" : "no node sets");
    return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"set\":%s", buf_cstr(&keys));
}

enum tide_code graph_missing_inputs(struct arena *a, tide_graph *graph, const struct tide_graph_options *opt,
                                    tide_session *session, const struct graph_missing **ret, struct tide_err *err)
{
    struct spec_checkpoints checkpoints = graph->spec->graph->checkpoints;
    const struct map *memory = session ? &session->state->content.memory : NULL;
    struct needs s = {.arena = a, .checkpoints = &checkpoints};
    struct graph_missing *list;
    struct json *given = NULL;
    size_t n = 0;

    if (opt->checkpoints && spec_change_checkpoints(graph->spec, str_from(opt->checkpoints), &checkpoints, err))
        return err->code;
    if (opt->memory && json_parse(a, arena_dup(a, str_from(opt->memory)), NULL, &given, NULL, err))
        return err->code;
    take_members(&s, graph->spec->graph->memory);
    take_members(&s, given);
    for (struct map_entry *e = memory ? map_next(memory, NULL) : NULL; e; e = map_next(memory, e))
        map_put(&s.given, map_key(e), &s);
    look_at(&s, graph->spec->graph, true);
    list = arena_zero(a, (s.found.live + 1) * sizeof *list);
    for (struct map_entry *e = map_next(&s.found, NULL); e; e = map_next(&s.found, e))
        list[n++] = *(const struct graph_missing *)e->value;
    *ret = list;
    map_done(&s.given, NULL);
    map_done(&s.found, NULL);
    return TIDE_OK;
}

/* ---- when there is a checkpoint ---- */

/* As the graph has it, or without its "checkpoint_". */
static const struct spec_field *field_of(struct str key)
{
    for (const struct spec_field *f = spec_checkpoints_object.fields; f->name; f++)
        if (str_eq(str_from(f->name), key) ||
            (strncmp(f->name, "checkpoint_", 11) == 0 && str_eq(str_from(f->name + 11), key)))
            return f;
    return NULL;
}

static enum tide_code refuse_key(const char *option, struct str key, struct tide_err *err)
{
    AUTO(buf_done) struct buf names = BUF_INIT(4096);

    for (const struct spec_field *f = spec_checkpoints_object.fields; f->name; f++)
        buf_addf(&names, "%s%s", names.len ? ", " : "", f->name);
    tide_fail(err, TIDE_INVALID, "there is no '%.*s': use one of %s", (int)(key.len < 60 ? key.len : 60), key.ptr,
              buf_cstr(&names));
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, option);
}

/* "a,b" */
static void put_list(struct json_out *o, const char *value)
{
    json_out_begin(o, '[');
    while (*value) {
        size_t n = strcspn(value, ",");

        if (n)
            json_out_str(o, (struct str){value, n});
        value += n + (value[n] == ',');
    }
    json_out_end(o, ']');
}

static enum tide_code put_checkpoint(struct json_out *o, const char *option, const char *given, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str key = {given, strcspn(given, "=")};
    const char *value = given[key.len] ? given + key.len + 1 : NULL;
    const struct spec_field *f = field_of(key);
    struct json *v = NULL;

    if (!value || !*value) {
        tide_fail(err, TIDE_INVALID, "'%.60s' has no value: give KEY=VALUE, as in async_checkpoint=false", given);
        return tide_about(err, TIDE_SUBJECT_ARGUMENT, option);
    }
    if (!f)
        return refuse_key(option, key, err);
    json_out_key(o, str_from(f->name));
    if (json_parse(&a, str_from(value), NULL, &v, NULL, NULL) && (f->type == FIELD_TEXTS || f->type == FIELD_KEYS))
        put_list(o, value);
    else if (v)
        json_out_raw(o, str_from(value));
    else {
        tide_fail(err, TIDE_INVALID, "%s: '%.60s' is not a value for it: give true, false or a number", f->name, value);
        return tide_about(err, TIDE_SUBJECT_ARGUMENT, option);
    }
    return TIDE_OK;
}

const char *const graph_no_checkpoints[] = {"checkpoint_on_node_start=false",
                                            "checkpoint_on_node_complete=false",
                                            "checkpoint_on_edge=false",
                                            "checkpoint_on_loop_iteration=false",
                                            "checkpoint_every_n_iterations=0",
                                            "slow_node_ms=0",
                                            "memory_delta_keys=0",
                                            "risky_nodes=[]",
                                            NULL};

enum tide_code graph_take_checkpoints(const char *option, const char *const *given, bool settings, const char *file,
                                      struct buf *ret_json, struct tide_err *err)
{
    AUTO(buf_done) struct buf told = BUF_INIT((size_t)1 << 20);
    AUTO(mem_freep) char *set = NULL;
    char from[SETTINGS_FROM_SIZE] = "";
    struct json_out o = json_out_to(&told);

    if (settings && settings_word(file, "checkpoints", &set, from, err))
        return err->code;
    json_out_begin(&o, '{');
    for (size_t i = 0; given[i]; i++)
        if (put_checkpoint(&o, option, given[i], err))
            return err->code;
    json_out_end(&o, '}');
    if (!set && told.len == 2)
        return TIDE_OK;
    return spec_merge_members(str_from(set ? set : "{}"), buf_view(&told), ret_json, err) ? tide_wrap(err, "%s", from)
                                                                                          : TIDE_OK;
}
