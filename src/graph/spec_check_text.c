/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What texts and expressions ask for. A placeholder that nobody fills would fail the node after everything before it has run
 * and been paid for; a key that is stored nowhere cannot be part of a prompt, because prompts are stored.
 */
#include "base/map.h"
#include "graph/node_work.h"
#include "graph/spec_internal.h"

struct texts {
    struct spec_parser *p;
    const struct spec_graph *g;
    const struct map *keys;
    const char *path; /* of the text that is looked at */
};

/* ---- placeholders ---- */

/* {a.b}: a member of a, or a key that has a dot. */
static struct str first_of(struct str key)
{
    const char *dot = memchr(key.ptr, '.', key.len);

    return dot ? (struct str){key.ptr, (size_t)(dot - key.ptr)} : key;
}

static const char *hint_of(struct texts *t, struct str key)
{
    struct arena *a = &t->p->spec->arena;
    const char **words = arena_zero(a, (t->keys->len + 1) * sizeof(*words));
    struct str first = first_of(key);
    size_t n = 0;

    for (struct map_entry *e = NULL; (e = map_next(t->keys, e));)
        words[n++] = arena_dup(a, map_key(e)).ptr;
    return arena_printf(a, "%s%sname it in the node's inputs; {{%.*s}} where braces are meant%s",
                        n ? spec_hint_of(t->p, first, words) : "", n ? " (or " : "", STR_ARG(key), n ? ")" : "");
}

static bool is_excluded(const struct spec_graph *g, struct str key)
{
    return texts_have(&g->checkpoints.exclude_memory_keys, key);
}

static void check_placeholder(void *arg, struct str key)
{
    struct texts *t = arg;
    struct str shown = {key.ptr, key.len < 64 ? key.len : 64};

    if (is_excluded(t->g, key) || is_excluded(t->g, first_of(key))) {
        spec_say(t->p, SPEC_PROBLEM, t->path, "give it to a function as an input",
                 "'%.*s' is never stored, so it cannot be part of a prompt", STR_ARG(shown));
        return;
    }
    /* What a graph inside another one finds in its memory is known only there. */
    if (t->p->nesting > 1 || map_get(t->keys, key) || map_get(t->keys, first_of(key)) || str_eq(key, STR("goal")))
        return;
    spec_say(t->p, SPEC_PROBLEM, t->path, t->p->spec->problems < SPEC_MAX_PROBLEMS ? hint_of(t, key) : "",
             "an unknown placeholder: {%.*s}", STR_ARG(shown));
}

static void check_text(struct texts *t, struct str text, const char *path, const char *member)
{
    t->path = arena_printf(&t->p->spec->arena, "%s.%s", path, member);
    placeholders_keys(text, check_placeholder, t);
}

/* ---- expressions ---- */

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Behind "memory": .KEY, ["KEY"] or ['KEY']. */
static bool asks_for(struct str rest, struct str key)
{
    bool dot = str_starts(rest, STR(".")), bracket = str_starts(rest, STR("[\"")) || str_starts(rest, STR("['"));
    size_t skip = dot ? 1 : 2, end = skip + key.len;

    if ((!dot && !bracket) || rest.len < end || memcmp(rest.ptr + skip, key.ptr, key.len) != 0)
        return false;
    return dot ? rest.len == end || !in_name(rest.ptr[end]) : rest.len > end && rest.ptr[end] == rest.ptr[1];
}

/* As text: good enough for a warning. */
static bool mentions_key(struct str source, struct str key)
{
    static const struct str memory = {"memory", 6};
    const char *at = source.ptr;
    size_t left = source.len;

    while (left > 0 && (at = memmem(at, left, memory.ptr, memory.len))) {
        left = source.len - (size_t)(at - source.ptr);
        if ((at == source.ptr || !in_name(at[-1])) && asks_for((struct str){at + 6, left - 6}, key))
            return true;
        at += memory.len;
        left -= memory.len;
    }
    return false;
}

static void warn_nil(struct texts *t, const char *path, struct str key)
{
    spec_say(t->p, SPEC_WARNING, path, "give it to a function as an input",
             "'%.*s' is never stored: expressions see nil", STR_ARG(key));
}

static const char *const seen_by_ways[] = {"output", "memory", "result", NULL};
static const char *const seen_by_maps[] = {"memory", "inputs", NULL};

/* `seen`: the values it gets; NULL: statements, which have names of their own. */
static void check_expr(struct texts *t, const struct spec_expr *e, const char *const *seen, const char *path,
                       const char *member)
{
    const struct spec_texts *keys = &t->g->checkpoints.exclude_memory_keys;

    if (e->expr && seen)
        spec_check_names(t->p, e->source, seen, t->keys, arena_printf(&t->p->spec->arena, "%s.%s", path, member));
    for (size_t i = 0; e->source.len > 0 && i < keys->n; i++)
        if (mentions_key(e->source, keys->at[i]))
            warn_nil(t, arena_printf(&t->p->spec->arena, "%s.%s", path, member), keys->at[i]);
}

/* ---- all of them ---- */

static void check_outputs(struct texts *t, const struct spec_node *n, bool in_map)
{
    /* An agent's outputs are in its conversation, a person's answer is an event, a map's results are kept each. */
    const char *who = n->type == SPEC_EVENT_LOOP      ? "an agent"
                      : n->type == SPEC_HUMAN_INPUT   ? "a person"
                      : n->type == SPEC_MAP || in_map ? "a map"
                                                      : NULL;

    for (size_t i = 0; who && i < n->outputs.n; i++)
        if (is_excluded(t->g, n->outputs.at[i]))
            spec_say(t->p, SPEC_PROBLEM, arena_printf(&t->p->spec->arena, "%s.outputs[%zu]", n->path, i),
                     n->type == SPEC_HUMAN_INPUT ? "give it when it runs" : "let a function give it",
                     "'%.*s' is never stored, so %s cannot set it", STR_ARG(n->outputs.at[i]), who);
}

/* What they are given is stored, or shown to a model. */
static void check_inputs(struct texts *t, const struct spec_node *n)
{
    bool stored = n->type == SPEC_LUA || n->type == SPEC_ROUTER || n->type == SPEC_EVENT_LOOP;

    for (size_t i = 0; stored && i < n->inputs.n; i++)
        if (is_excluded(t->g, n->inputs.at[i]))
            spec_say(t->p, SPEC_PROBLEM, arena_printf(&t->p->spec->arena, "%s.inputs[%zu]", n->path, i),
                     "give it to a function", "'%.*s' is never stored: a node of type %s gets nil",
                     STR_ARG(n->inputs.at[i]), spec_node_words[n->type]);
}

static void check_node(struct texts *t, const struct spec_node *n, bool in_map)
{
    check_text(t, n->prompt, n->path, "prompt");
    check_text(t, n->system_prompt, n->path, "system_prompt");
    check_text(t, n->question, n->path, "question");
    check_inputs(t, n);
    check_outputs(t, n, in_map);
    spec_check_tools(t->p, n);
    if (n->as.len > 0 && is_excluded(t->g, n->as))
        spec_say(t->p, SPEC_PROBLEM, arena_printf(&t->p->spec->arena, "%s.as", n->path), "take another name",
                 "'%.*s' is never stored, and the list of a map is stored", STR_ARG(n->as));
    check_expr(t, &n->code, NULL, n->path, "code");
    check_expr(t, &n->over, n->over_key.len ? NULL : seen_by_maps, n->path, "over");
    if (n->over_key.len > 0 && is_excluded(t->g, n->over_key))
        warn_nil(t, arena_printf(&t->p->spec->arena, "%s.over", n->path), n->over_key);
    for (size_t i = 0; i < n->routes.n; i++)
        check_expr(t, &n->routes.at[i].when, seen_by_ways, n->routes.at[i].path, "when");
}

static void check_edge(struct texts *t, const struct spec_edge *e)
{
    check_expr(t, &e->when, seen_by_ways, e->path, "when");
    for (size_t i = 0; i < e->map.n; i++) {
        const char *member = arena_printf(&t->p->spec->arena, "map.%.*s", STR_ARG(e->map.at[i].key));

        check_expr(t, &e->map.at[i].value, seen_by_ways, e->path, member);
        if (is_excluded(t->g, e->map.at[i].key))
            spec_say(t->p, SPEC_PROBLEM, arena_printf(&t->p->spec->arena, "%s.%s", e->path, member),
                     "take another name, or let a function set it",
                     "'%.*s' is never stored, and the values of an edge are stored", STR_ARG(e->map.at[i].key));
    }
}

void spec_check_texts(struct spec_parser *p, const struct spec_graph *g, struct map *keys)
{
    struct texts t = {.p = p, .g = g, .keys = keys};

    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node) {
            for (size_t k = 0; k < n->inputs.n; k++) /* what is given from outside has a name in somebody's inputs */
                map_put(keys, n->inputs.at[k], keys);
            if (n->type == SPEC_MAP && n->as.len > 0)
                map_put(keys, n->as, keys);
        }
    for (const struct json *m = g->memory ? g->memory->first : NULL; m; m = m->next) {
        struct str key = json_key_text(&p->spec->arena, m);

        if (is_excluded(g, key)) /* the graph itself is stored: such a value cannot stand in it */
            spec_say(p, SPEC_PROBLEM, arena_printf(&p->spec->arena, "%s.memory.%.*s", g->path, STR_ARG(key)),
                     "give it when it runs", "'%.*s' is never stored, and the graph is stored", STR_ARG(key));
    }
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node)
            check_node(&t, n, n != &g->nodes.at[i]);
    for (size_t i = 0; i < g->edges.n; i++)
        check_edge(&t, &g->edges.at[i]);
}
