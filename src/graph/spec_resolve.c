/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From names to indexes: what a node of each type must have, files of subgraphs, edges by their source and in the order in
 * which they are looked at, and the ways of edges and routes as one list.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/map.h"
#include "graph/spec_internal.h"

#include "base/yes_no.h"

#define DEFAULT_MAX 4000 /* bytes: a wait takes no longer default */

#define FILE_DEPTH 48 /* so that the whole, put together, is not too deep to be read again */

/* ---- nodes ---- */

/* `file` becomes `graph` in the JSON as well: what is stored with a run needs no file any more. */
static void put_in_place(struct json *member, const struct json *graph)
{
    static const char name[] = "\"graph\"";
    struct json *next = member->next;

    *member = *graph;
    member->next = next;
    member->key = (struct str){name + 1, sizeof(name) - 3};
    member->key_escaped = false;
}

static bool is_open(const struct spec_open_file *f, const struct stat *st)
{
    for (; f; f = f->up)
        if (f->device == st->st_dev && f->inode == st->st_ino && f->inode)
            return true;
    return false;
}

static const struct json *parse_file(struct spec_parser *p, const char *path, const struct spec_place *at)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);
    struct arena *a = &p->spec->arena;
    struct tide_err err = {0};
    struct json_limits limits = {0, FILE_DEPTH};
    struct json *v = NULL;

    if (p->file_bytes > SPEC_MAX_BYTES) {
        spec_say_at(p, at, "", "the graph and the files it names have more than %zu bytes", SPEC_MAX_BYTES);
        return NULL;
    }
    if (spec_read(path, &text, &err)) {
        spec_say_at(p, at, "", "%.300s", err.msg);
        return NULL;
    }
    if (json_parse(a, arena_dup(a, buf_view(&text)), &limits, &v, NULL, &err)) {
        spec_say_at(p, at, "", "%.200s: not JSON: %.200s", path, err.msg);
        return NULL;
    }
    p->file_bytes += text.len;
    return v;
}

/* "./" of a plain name. */
static const char *directory_of(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? arena_dup(a, (struct str){path, (size_t)(slash - path) + 1}).ptr : "./";
}

/* A program that a file of a subgraph names beside itself is named from the directory of the graph, in the JSON as well. */
static void place_program(struct spec_parser *p, struct spec_node *n, const struct json *v)
{
    struct json *name = (struct json *)(uintptr_t)json_get(v, STR("program"))->first;
    AUTO(buf_done) struct buf quoted = BUF_INIT(SPEC_MAX_BYTES);
    struct str *at = (struct str *)(uintptr_t)n->program.at, text;

    if (!p->prefix || at[0].ptr[0] == '/' || !memchr(at[0].ptr, '/', at[0].len))
        return;
    at[0] =
        str_from(arena_printf(&p->spec->arena, "%s%s", p->prefix, at[0].ptr + (str_starts(at[0], STR("./")) ? 2 : 0)));
    json_quote(&quoted, at[0]);
    text = arena_dup(&p->spec->arena, buf_view(&quoted));
    name->raw = (struct str){text.ptr + 1, text.len - 2};
    name->text_escaped = memchr(name->raw.ptr, '\\', name->raw.len) != NULL;
}

/* The place of everything in it begins with the file's name. */
static void read_file(struct spec_parser *p, struct spec_node *n, const char *path, const struct stat *st,
                      const struct spec_place *at)
{
    struct spec_open_file *file = arena_zero(&p->spec->arena, sizeof(*file));
    struct spec_place top = {.path = arena_printf(&p->spec->arena, "%s: $", path)};
    const struct json *v = parse_file(p, path, at);
    const struct spec_parser outer = *p;

    if (!v)
        return;
    *file = (struct spec_open_file){p->files, st->st_dev, st->st_ino};
    p->files = file;
    p->dir = directory_of(&p->spec->arena, path);
    p->document = v;
    p->prefix = n->file.ptr[0] == '/' || !p->prefix
                    ? directory_of(&p->spec->arena, n->file.ptr)
                    : arena_printf(&p->spec->arena, "%s%s", p->prefix, directory_of(&p->spec->arena, n->file.ptr));
    n->graph = spec_read_graph(p, v, &top);
    p->dir = outer.dir;
    p->document = outer.document;
    p->prefix = outer.prefix;
    p->files = file->up;
}

static void load_file(struct spec_parser *p, struct spec_node *n, const struct json *v, const struct spec_place *up)
{
    struct spec_place at = {.up = up, .key = STR("file")};
    struct json *member = (struct json *)(uintptr_t)json_get(v, STR("file"));
    const char *path;
    struct stat st;

    if (!p->dir) {
        spec_say_at(p, &at, "put the graph itself there, as 'graph'", "files of subgraphs are not read here");
        return;
    }
    path = n->file.ptr[0] == '/' ? n->file.ptr
                                 : arena_printf(&p->spec->arena, "%s%s%s", p->dir,
                                                p->dir[0] && p->dir[strlen(p->dir) - 1] != '/' ? "/" : "", n->file.ptr);
    if (stat(path, &st) != 0)
        spec_say_at(p, &at, "it is relative to the file that names it", "%.200s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        spec_say_at(p, &at, "", "%.200s: not a file", path);
    else if (is_open(p->files, &st))
        spec_say_at(p, &at, "a loop is made with edges", "%.200s contains itself", path);
    else
        read_file(p, n, path, &st, &at);
    if (n->graph)
        put_in_place(member, n->graph->json);
}

static bool is_given(const struct json *v, const char *key)
{
    return json_get(v, str_from(key)) != NULL;
}

static bool is_filled(const struct json *v, const char *key)
{
    const struct json *m = key ? json_get(v, str_from(key)) : NULL;

    return m && (m->type == JSON_STRING ? m->raw.len > 0 : m->type != JSON_ARRAY || m->count > 0);
}

static void check_parts(struct spec_parser *p, const struct spec_node *n, const struct json *v,
                        const struct spec_place *at)
{
    for (const struct spec_part *part = spec_parts; part->first; part++) {
        bool first = is_filled(v, part->first), second = is_filled(v, part->second);

        if ((int)part->type != n->type)
            continue;
        if (first && second && part->rule == PART_ONE)
            spec_say_at(p, at, "keep one of them", "has both %s and %s", part->first, part->second);
        else if (!first && !second && part->second)
            spec_say_at(p, at, "", "a node of type %s must have %s or %s", spec_node_words[n->type], part->first,
                        part->second);
        else if (!first && !part->second)
            spec_say_at(p, at, "", "a node of type %s must have %s", spec_node_words[n->type], part->first);
    }
    if (n->program.n > 0 && n->program.at[0].len == 0)
        spec_say_at(p, at, "[\"./fetch\", \"all\"]", "the name of the program is empty");
}

static void check_nullable(struct spec_parser *p, const struct spec_node *n, const struct spec_place *up)
{
    struct spec_place list = {.up = up, .key = STR("nullable_outputs")}, at = {.up = &list};

    for (; at.index < n->nullable_outputs.n; at.index++) {
        size_t i = 0;

        while (i < n->outputs.n && !str_eq(n->outputs.at[i], n->nullable_outputs.at[at.index]))
            i++;
        if (i == n->outputs.n)
            spec_say_at(p, &at, "add it to outputs", "'%.*s' is not an output",
                        STR_ARG(n->nullable_outputs.at[at.index]));
    }
}

static void check_default(struct spec_parser *p, const struct spec_node *n, const struct spec_place *up)
{
    struct spec_place at = {.up = up, .key = STR("default")};
    struct tide_err why;

    if (!n->otherwise_answer || n->type != SPEC_HUMAN_INPUT)
        return;
    if (!n->deadline_ms)
        spec_say_at(p, &at, "give it a 'deadline'", "an answer for when the deadline has passed, and there is none");
    if (json_source(n->otherwise_answer).len > DEFAULT_MAX)
        spec_say_at(p, &at, "", "it has more than %d bytes", DEFAULT_MAX);
    if (n->kind == SPEC_APPROVAL && yes_no_check(&p->spec->arena, n->otherwise_answer, &why))
        spec_say_at(p, &at, "", "%s", why.msg);
}

static void find_over_key(struct spec_node *n)
{
    static const char *const taken[] = {"memory", "output", "result", "true", "false", "nil"};
    struct str s = n->over.source;

    if (!spec_is_name(s))
        return;
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (str_eq(s, str_from(taken[i])))
            return;
    n->over_key = s;
}

void spec_finish_node(struct spec_parser *p, struct spec_node *n, const struct json *v, const struct spec_place *at)
{
    static const int effects[SPEC_NODE_TYPES] = {[SPEC_EVENT_LOOP] = SPEC_IDEMPOTENT,
                                                 [SPEC_FUNCTION] = SPEC_IDEMPOTENT,
                                                 [SPEC_ROUTER] = SPEC_PURE,
                                                 [SPEC_HUMAN_INPUT] = SPEC_IDEMPOTENT,
                                                 [SPEC_LUA] = SPEC_PURE,
                                                 [SPEC_SUBGRAPH] = SPEC_IDEMPOTENT,
                                                 [SPEC_MAP] = SPEC_IDEMPOTENT};
    AUTO(buf_done) struct buf b = BUF_INIT(SPEC_MAX_BYTES * 4);

    n->json = v;
    n->index = n->otherwise_index = SPEC_NONE;
    if (!str_eq(json_get_text(&p->spec->arena, v, STR("type")), str_from(spec_node_words[n->type])))
        return; /* it has no known one: that is reported, and nothing follows from it */
    if (!is_given(v, "effect"))
        n->effect = effects[n->type];
    if (!is_given(v, "retries"))
        n->retries = -1; /* the graph's, which may stand behind */
    check_parts(p, n, v, at);
    check_nullable(p, n, at);
    check_default(p, n, at);
    if (n->type == SPEC_SUBGRAPH && n->file.len > 0 && !n->graph)
        load_file(p, n, v, at);
    if (n->type == SPEC_FUNCTION && n->program.n > 0)
        place_program(p, n, v);
    if (n->type == SPEC_MAP)
        find_over_key(n);
    json_write(&b, v);
    digest_of(n->digest, buf_view(&b));
}

void spec_finish_edge(struct spec_edge *e, const struct json *v)
{
    e->from_index = e->to_index = SPEC_NONE;
    if (v->type == JSON_OBJECT && !is_given(v, "on"))
        e->on = is_given(v, "when") ? SPEC_CONDITION : is_given(v, "question") ? SPEC_LLM : SPEC_SUCCESS;
}

/* ---- names ---- */

static void name_nodes(struct spec_parser *p, struct spec_graph *g, struct map *ids)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct spec_node *n = &g->nodes.at[i];
        uintptr_t before;

        n->index = i;
        if (n->id.len == 0)
            continue;
        before = (uintptr_t)map_get(ids, n->id);
        if (before)
            spec_say(p, SPEC_PROBLEM, arena_printf(&p->spec->arena, "%s.id", n->path), "each id may be used only once",
                     "'%.*s' is the id of %s already", STR_ARG(n->id), g->nodes.at[before - 1].path);
        else
            map_put(ids, n->id, (void *)(i + 1)); /* NOLINT(performance-no-int-to-ptr): an index, not an address */
    }
}

static size_t find_node(struct spec_parser *p, const struct spec_graph *g, const struct map *ids, struct str id,
                        const char *path, const char *key)
{
    uintptr_t at = id.len ? (uintptr_t)map_get(ids, id) : 0; /* index + 1: a map gives NULL for what it has not */
    const char **words;

    if (at || id.len == 0 || g->nodes.n == 0) /* no nodes at all: that is reported */
        return at ? at - 1 : SPEC_NONE;
    if (p->spec->problems >= SPEC_MAX_PROBLEMS) { /* nobody gets the hint */
        p->spec->problems++;
        return SPEC_NONE;
    }
    words = arena_zero(&p->spec->arena, (g->nodes.n + 1) * sizeof(*words));
    for (size_t i = 0, n = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].id.len)
            words[n++] = g->nodes.at[i].id.ptr;
    spec_say(p, SPEC_PROBLEM, arena_printf(&p->spec->arena, "%s.%s", path, key),
             words[0] ? spec_hint_of(p, id, words) : "", "there is no node '%.*s'", STR_ARG(id));
    return SPEC_NONE;
}

static void link_edges(struct spec_parser *p, struct spec_graph *g, const struct map *ids)
{
    struct map names = {0};

    for (size_t i = 0; i < g->edges.n; i++) {
        struct spec_edge *e = &g->edges.at[i];

        e->order = i;
        e->from_index = find_node(p, g, ids, e->from, e->path, "from");
        e->to_index = find_node(p, g, ids, e->to, e->path, "to");
        if (e->id.len && map_put(&names, e->id, e))
            spec_say(p, SPEC_PROBLEM, arena_printf(&p->spec->arena, "%s.id", e->path), "each id may be used only once",
                     "another edge is called '%.*s'", STR_ARG(e->id));
    }
    map_done(&names, NULL);
}

/* ---- order ---- */

static int by_source(const void *left, const void *right)
{
    const struct spec_edge *a = left, *b = right;

    if (a->from_index != b->from_index)
        return a->from_index < b->from_index ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static void add_arc(struct spec_graph *g, struct spec_node *n, size_t to, const struct spec_edge *e,
                    const struct spec_route *r)
{
    if (to == SPEC_NONE)
        return;
    g->arcs[g->n_arcs++] = (struct spec_arc){n->index, to, e, r};
    g->nodes.at[to].arcs_in++;
    n->n_arcs++;
}

/* Edges without a source stand at the end, where no node looks for them. */
static void make_arcs(struct spec_parser *p, struct spec_graph *g)
{
    size_t at = 0, count = g->edges.n;

    for (size_t i = 0; i < g->nodes.n; i++)
        count += g->nodes.at[i].routes.n + 1;
    g->arcs = arena_zero(&p->spec->arena, (count + 1) * sizeof(*g->arcs));
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct spec_node *n = &g->nodes.at[i];

        n->first_edge = at;
        n->first_arc = g->n_arcs;
        for (; at < g->edges.n && g->edges.at[at].from_index == i; at++, n->n_edges++)
            add_arc(g, n, g->edges.at[at].to_index, &g->edges.at[at], NULL);
        for (size_t r = 0; r < n->routes.n; r++)
            add_arc(g, n, n->routes.at[r].to_index, NULL, &n->routes.at[r]);
        add_arc(g, n, n->otherwise_index, NULL, NULL);
    }
    g->sources = arena_alloc(&p->spec->arena, (g->n_arcs + 1) * sizeof(*g->sources));
    at = 0;
    for (size_t i = 0; i < g->nodes.n; at += g->nodes.at[i++].arcs_in)
        g->nodes.at[i].first_in = at;
    for (size_t i = g->n_arcs; i-- > 0; g->nodes.at[g->arcs[i].to].first_in++)
        g->sources[g->nodes.at[g->arcs[i].to].first_in] = g->arcs[i].from;
    for (size_t i = 0; i < g->nodes.n; i++)
        g->nodes.at[i].first_in -= g->nodes.at[i].arcs_in;
}

static int str_order(struct str a, struct str b)
{
    size_t both = a.len < b.len ? a.len : b.len;
    int order = both ? memcmp(a.ptr, b.ptr, both) : 0;

    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

static int by_name(const void *left, const void *right, void *graph)
{
    const struct spec_node *nodes = ((const struct spec_graph *)graph)->nodes.at;

    return str_order(nodes[*(const size_t *)left].id, nodes[*(const size_t *)right].id);
}

void spec_resolve(struct spec_parser *p, struct spec_graph *g)
{
    struct map ids = {0};

    g->by_id = arena_alloc(&p->spec->arena, (g->nodes.n + 1) * sizeof(*g->by_id));
    for (size_t i = 0; i < g->nodes.n; i++)
        g->by_id[i] = i;
    qsort_r(g->by_id, g->nodes.n, sizeof(*g->by_id), by_name, g);
    name_nodes(p, g, &ids);
    g->entry_index = find_node(p, g, &ids, g->entry, g->path, "entry");
    for (size_t i = 0; i < g->entry_points.n; i++)
        g->entry_points.at[i].to_index =
            find_node(p, g, &ids, g->entry_points.at[i].to, arena_printf(&p->spec->arena, "%s.entry_points", g->path),
                      g->entry_points.at[i].name.ptr);
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct spec_node *n = &g->nodes.at[i];

        n->otherwise_index = find_node(p, g, &ids, n->otherwise, n->path, "otherwise");
        for (size_t r = 0; r < n->routes.n; r++)
            n->routes.at[r].to_index = find_node(p, g, &ids, n->routes.at[r].to, n->routes.at[r].path, "to");
    }
    link_edges(p, g, &ids);
    if (g->edges.n > 0)
        qsort(g->edges.at, g->edges.n, sizeof(*g->edges.at), by_source);
    make_arcs(p, g);
    for (size_t i = 0; i < g->nodes.n; i++)
        for (struct spec_node *n = &g->nodes.at[i]; n; n = n->node) {
            if (n->type == SPEC_MAP && n->node) { /* they count for its items */
                n->node->retries = n->node->retries < 0 ? n->retries : n->node->retries;
                n->node->retry_on = n->node->retry_on.n ? n->node->retry_on : n->retry_on;
            }
            n->retries = n->retries < 0 ? g->max_retries : n->retries;
            n->model = n->model.len ? n->model : g->model;
            n->provider = n->provider.len ? n->provider : g->provider;
        }
    map_done(&ids, NULL);
}

bool spec_is_sound(const struct spec_graph *g)
{
    size_t n = g->nodes.n;
    bool ok = g->entry_index < n;

    for (size_t i = 0; ok && i < n; i++) {
        const struct spec_node *at = &g->nodes.at[i];

        ok = at->index == i && at->first_edge + at->n_edges <= g->edges.n && at->first_arc + at->n_arcs <= g->n_arcs &&
             (i == 0 || by_name(&g->by_id[i - 1], &g->by_id[i], (void *)(uintptr_t)g) < 0);
        for (const struct spec_node *in = at; ok && in; in = in->node)
            ok = (in->type == SPEC_MAP) == (in->node != NULL) && (in->type == SPEC_SUBGRAPH) == (in->graph != NULL) &&
                 (!in->graph || spec_is_sound(in->graph));
    }
    for (size_t i = 0; ok && i < g->edges.n; i++)
        ok = g->edges.at[i].from_index < n && g->edges.at[i].to_index < n;
    for (size_t i = 0; ok && i < g->n_arcs; i++)
        ok = g->arcs[i].from < n && g->arcs[i].to < n;
    return ok;
}

const struct spec_entry *spec_entry_point(const struct spec_graph *g, struct str name)
{
    for (size_t i = 0; i < g->entry_points.n; i++)
        if (str_eq(g->entry_points.at[i].name, name))
            return &g->entry_points.at[i];
    return NULL;
}

const struct spec_node *spec_find(const struct spec_graph *g, struct str id)
{
    size_t from = 0, to = g->by_id ? g->nodes.n : 0;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = str_order(g->nodes.at[g->by_id[middle]].id, id);

        if (order == 0)
            return &g->nodes.at[g->by_id[middle]];
        *(order < 0 ? &from : &to) = order < 0 ? middle + 1 : middle;
    }
    return NULL;
}

bool spec_has_edge(const struct spec_graph *g, const struct spec_node *n, enum spec_on on)
{
    for (size_t i = 0; i < n->n_edges; i++)
        if (g->edges.at[n->first_edge + i].on == (int)on)
            return true;
    return false;
}

const struct spec_rule *spec_conflict_rule(const struct spec_graph *g, struct str key)
{
    for (size_t i = 0; i < g->conflict.n; i++)
        if (str_eq(g->conflict.at[i].key, key))
            return &g->conflict.at[i];
    return NULL;
}
