/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of Hive (agent.json) as ours. What has a counterpart is carried over; what has none is named with its place, never
 * dropped in silence. Conditions are translated to Lua; one that cannot be is left as it was written, so that a check
 * stops at it instead of a run taking another way.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/scan.h"
#include "hive/hive_internal.h"

#define JSON_DEPTH 64

void hive_warn(struct hive *h, const char *path, const char *hint, const char *fmt, ...)
{
    char what[512], place[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    snprintf(place, sizeof(place), "%s", path);
    clean_line(what, strlen(what));
    clean_line(place, strlen(place));
    if (h->warn)
        h->warn(h->arg, &(struct problem){true, place, what, hint});
}

/* ---- small things ---- */

struct str hive_text(struct hive *h, const struct json *v, const char *key)
{
    return v ? json_get_text(&h->arena, v, str_from(key)) : STR("");
}

const struct json *hive_items(const struct json *v, const char *key)
{
    const struct json *list = v ? json_get(v, str_from(key)) : NULL;

    return list && (list->type == JSON_ARRAY || list->type == JSON_OBJECT) ? list->first : NULL;
}

bool hive_lists(struct hive *h, const struct json *v, const char *key, struct str word)
{
    for (const struct json *item = hive_items(v, key); item; item = item->next)
        if (item->type == JSON_STRING && str_eq(json_text(&h->arena, item), word))
            return true;
    return false;
}

/* Ids there may have any characters. */
struct str hive_id(struct hive *h, struct str s)
{
    char *copy = (char *)(uintptr_t)arena_dup(&h->arena, s).ptr;
    size_t n = s.len < 64 ? s.len : 64;

    for (size_t i = 0; i < n; i++)
        if (!str_is_id((struct str){copy + i, 1}) && !(i > 0 && copy[i] == '-'))
            copy[i] = '_';
    return n ? (struct str){copy, n} : STR("graph");
}

void hive_put_id(struct hive *h, const char *key, struct str s, const char *path)
{
    struct str id = hive_id(h, s);

    if (!str_eq(id, s))
        hive_warn(h, path, "", "the id '%.*s' becomes '%.*s'", (int)(s.len < 80 ? s.len : 80), s.ptr, STR_ARG(id));
    json_out_kstr(&h->out, str_from(key), id);
}

void hive_put_list(struct hive *h, const char *key, const struct json *v, const char *from)
{
    if (!hive_items(v, from))
        return;
    json_out_key(&h->out, str_from(key));
    json_out_raw(&h->out, json_source(json_get(v, str_from(from))));
}

void hive_put_int(struct hive *h, const char *key, const struct json *v, const char *from, int64_t otherwise)
{
    int64_t n = json_get_int(v, str_from(from), otherwise);

    if (n >= 0)
        json_out_kint(&h->out, str_from(key), n);
}

/* ---- what has no counterpart ---- */

void hive_name_left_out(struct hive *h, const struct json *v, const char *path, const struct left_out *rows)
{
    for (; v && rows->key; rows++) {
        const struct json *m = json_get(v, str_from(rows->key));

        if (m && m->type != JSON_NULL && m->type != JSON_FALSE && (m->type < JSON_ARRAY || m->count > 0) &&
            (m->type != JSON_STRING || m->raw.len > 0))
            hive_warn(h, arena_printf(&h->arena, "%s.%s", path, rows->key), rows->why, "'%s' is not converted",
                      rows->key);
    }
}

/* ---- expressions ---- */

const char *hive_lua(struct hive *h, struct str python, const char *path)
{
    AUTO(buf_done) struct buf lua = BUF_INIT(64 << 10);
    struct tide_err err = {0};

    if (!expr_from_python(python, true, &lua, &err) && !lua.failed)
        return arena_dup(&h->arena, buf_view(&lua)).ptr;
    hive_warn(h, path, "write it in Lua", "this condition has no counterpart: %.300s", err.msg);
    return arena_dup(&h->arena, python).ptr;
}

/* What a key is there: the output of the node before, else the memory. */
static const char *lookup_key(struct hive *h, struct str key)
{
    AUTO(buf_done) struct buf b = BUF_INIT(4096);
    AUTO(buf_done) struct buf quoted = BUF_INIT(2048);

    if (spec_is_name(key))
        return arena_printf(&h->arena, "output.%.*s == nil and memory.%.*s or output.%.*s", STR_ARG(key), STR_ARG(key),
                            STR_ARG(key));
    json_quote(&quoted, key);
    buf_addf(&b, "output[%s] == nil and memory[%s] or output[%s]", buf_cstr(&quoted), buf_cstr(&quoted),
             buf_cstr(&quoted));
    return arena_dup(&h->arena, buf_view(&b)).ptr;
}

/* ---- places where it pauses for a person ---- */

static bool pauses(struct hive *h, const struct json *node)
{
    return hive_lists(h, h->graph, "pause_nodes", hive_text(h, node, "id")) &&
           !str_eq(hive_text(h, node, "node_type"), STR("human_input"));
}

static const struct json *node_called(struct hive *h, struct str id)
{
    for (const struct json *n = hive_items(h->graph, "nodes"); n; n = n->next)
        if (str_eq(hive_text(h, n, "id"), id))
            return n;
    return NULL;
}

/* The node that waits behind one that pauses. */
static struct str pause_id(struct hive *h, struct str id)
{
    return str_from(arena_printf(&h->arena, "%.*s_pause", (int)(id.len < 58 ? id.len : 58), hive_id(h, id).ptr));
}

static void put_plain_edge(struct hive *h, struct str from, struct str to)
{
    json_out_begin(&h->out, '{');
    json_out_kstr(&h->out, STR("from"), from);
    json_out_kstr(&h->out, STR("to"), to);
    json_out_kstr(&h->out, STR("on"), STR("success"));
    json_out_end(&h->out, '}');
}

static bool has_edge(struct hive *h, struct str from, struct str to)
{
    for (const struct json *e = hive_items(h->graph, "edges"); e; e = e->next)
        if (str_eq(hive_text(h, e, "source"), from) && str_eq(hive_text(h, e, "target"), to))
            return true;
    return false;
}

/* "<pause>_resume" is where it continues after an answer, which is an edge here. */
static bool is_resume(struct hive *h, struct str name)
{
    size_t tail = sizeof("_resume") - 1, cut = name.len > tail ? name.len - tail : 0;

    return cut && str_eq((struct str){name.ptr + cut, tail}, STR("_resume")) &&
           node_called(h, (struct str){name.ptr, cut});
}

static void put_entry_points(struct hive *h)
{
    bool any = false;

    for (const struct json *m = hive_items(h->graph, "entry_points"); m; m = m->next) {
        struct str name = json_key_text(&h->arena, m);

        if (m->type != JSON_STRING || is_resume(h, name))
            continue;
        if (!any) {
            json_out_key(&h->out, STR("entry_points"));
            json_out_begin(&h->out, '{');
        }
        json_out_kstr(&h->out, name, hive_id(h, json_text(&h->arena, m)));
        any = true;
    }
    if (any)
        json_out_end(&h->out, '}');
}

/* ---- the goal ---- */

static void add_points(struct hive *h, struct buf *out, const struct json *goal, const char *key, const char *title)
{
    bool any = false;

    for (const struct json *m = hive_items(goal, key); m; m = m->next) {
        struct str text = m->type == JSON_STRING ? json_text(&h->arena, m) : hive_text(h, m, "description");

        if (text.len)
            buf_addf(out, "%s\n- %.*s", any ? "" : title, STR_ARG(text));
        any |= text.len > 0;
    }
}

/* A text, or an object: what is to be reached, by what it is known, and what must not be done for it. */
static void put_goal(struct hive *h, const struct json *top)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);
    const struct json *goal = json_get(top, STR("goal"));
    struct str about;

    if (!goal)
        return;
    about = goal->type == JSON_STRING ? json_text(&h->arena, goal) : hive_text(h, goal, "description");
    buf_add_str(&text, about.len ? about : hive_text(h, goal, "name"));
    add_points(h, &text, goal, "success_criteria", "\nSuccess criteria:");
    add_points(h, &text, goal, "constraints", "\nConstraints:");
    json_out_kstr_opt(&h->out, STR("goal"), str_trim(buf_view(&text)));
}

/* ---- edges ---- */

static const char *on_of(struct hive *h, const struct json *edge, const char *path)
{
    static const struct {
        const char *theirs, *ours;
    } rows[] = {{"always", "always"},         {"on_success", "success"}, {"on_failure", "failure"},
                {"conditional", "condition"}, {"llm_decide", "llm"},     {"", "always"}};
    struct str word = hive_text(h, edge, "condition");
    size_t i = 0;

    while (rows[i].theirs[0] && !str_eq(word, str_from(rows[i].theirs)))
        i++;
    if (!rows[i].theirs[0] && word.len)
        hive_warn(h, path, "it becomes always", "the condition '%.*s' is not known",
                  (int)(word.len < 64 ? word.len : 64), word.ptr);
    if (strcmp(rows[i].ours, "condition") == 0 && hive_text(h, edge, "condition_expr").len == 0) {
        hive_warn(h, path, "it becomes success", "conditional, but without an expression");
        return "success";
    }
    return rows[i].ours;
}

static void put_edge(struct hive *h, const struct json *edge, const char *path)
{
    struct str from = hive_text(h, edge, "source"), about = hive_text(h, edge, "description");
    const struct json *source = node_called(h, from);
    const char *on = on_of(h, edge, path);

    if (hive_lists(h, h->graph, "terminal_nodes", from)) {
        hive_warn(h, path, "it ended there", "an edge that leaves the terminal node '%.*s' is not converted",
                  STR_ARG(from));
        return;
    }
    json_out_begin(&h->out, '{');
    if (hive_text(h, edge, "id").len)
        json_out_kstr(&h->out, STR("id"), hive_id(h, hive_text(h, edge, "id")));
    json_out_kstr(&h->out, STR("from"),
                  source && pauses(h, source) && strcmp(on, "failure") != 0 ? pause_id(h, from) : hive_id(h, from));
    json_out_kstr(&h->out, STR("to"), hive_id(h, hive_text(h, edge, "target")));
    json_out_kstr(&h->out, STR("on"), str_from(on));
    if (strcmp(on, "condition") == 0)
        json_out_kstr(&h->out, STR("when"),
                      str_from(hive_lua(h, hive_text(h, edge, "condition_expr"),
                                        arena_printf(&h->arena, "%s.condition_expr", path))));
    if (strcmp(on, "llm") == 0)
        json_out_kstr(&h->out, STR("question"), about.len ? about : STR("Take this edge?"));
    json_out_kint(&h->out, STR("priority"), json_get_int(edge, STR("priority"), 0));
    if (hive_items(edge, "input_mapping")) {
        json_out_key(&h->out, STR("map"));
        json_out_begin(&h->out, '{');
        for (const struct json *m = hive_items(edge, "input_mapping"); m; m = m->next)
            if (m->type == JSON_STRING)
                json_out_kstr(&h->out, json_key_text(&h->arena, m), str_from(lookup_key(h, json_text(&h->arena, m))));
        json_out_end(&h->out, '}');
    }
    json_out_kstr_opt(&h->out, STR("description"), about);
    json_out_end(&h->out, '}');
}

/* ---- the whole ---- */

/* NULL: it is not one of Hive. */
static const struct json *graph_of(const struct json *top)
{
    const struct json *graph = json_get(top, STR("graph"));

    graph = graph ? graph : top;
    return json_get(graph, STR("nodes")) && json_get(graph, STR("entry_node")) ? graph : NULL;
}

bool hive_is(struct str text)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    return !json_parse(&a, text, NULL, &v, NULL, NULL) && v->type == JSON_OBJECT &&
           !json_get(v, STR("tidemark_graph")) && graph_of(v);
}

static void put_head(struct hive *h, const struct json *top)
{
    struct str id = hive_text(h, h->agent, "id");

    json_out_kint(&h->out, STR("tidemark_graph"), 1);
    hive_put_id(h, "id", id.len ? id : hive_text(h, h->graph, "id"), "$.agent.id");
    json_out_kstr_opt(&h->out, STR("name"), hive_text(h, h->agent, "name"));
    json_out_kstr_opt(&h->out, STR("version"), hive_text(h, h->agent, "version"));
    json_out_kstr_opt(&h->out, STR("description"), hive_text(h, h->agent, "description"));
    put_goal(h, top);
    json_out_kstr(&h->out, STR("entry"), hive_id(h, hive_text(h, h->graph, "entry_node")));
    put_entry_points(h);
    json_out_kstr_opt(&h->out, STR("model"), hive_text(h, h->graph, "default_model"));
    hive_put_int(h, "max_retries", h->graph, "max_retries_per_node", 3);
    hive_put_int(h, "max_steps", h->graph, "max_steps", 100);
}

static void put_nodes(struct hive *h)
{
    size_t i = 0;

    json_out_key(&h->out, STR("nodes"));
    json_out_begin(&h->out, '[');
    for (const struct json *n = hive_items(h->graph, "nodes"); n; n = n->next, i++) {
        const char *path = arena_printf(&h->arena, "$.graph.nodes[%zu]", i);
        struct str id;

        hive_put_node(h, n, path);
        if (!pauses(h, n))
            continue;
        id = pause_id(h, hive_text(h, n, "id"));
        hive_warn(h, path, "check its question, and the conditions after it",
                  "it pauses: a human_input node '%s' comes after it", id.ptr);
        json_out_begin(&h->out, '{');
        json_out_kstr(&h->out, STR("id"), id);
        json_out_kstr(&h->out, STR("type"), STR("human_input"));
        json_out_kstr(&h->out, STR("question"), hive_said(h, n));
        json_out_end(&h->out, '}');
    }
    json_out_end(&h->out, ']');
}

static void put_edges(struct hive *h)
{
    size_t i = 0;

    json_out_key(&h->out, STR("edges"));
    json_out_begin(&h->out, '[');
    for (const struct json *e = hive_items(h->graph, "edges"); e; e = e->next)
        put_edge(h, e, arena_printf(&h->arena, "$.graph.edges[%zu]", i++));
    for (const struct json *n = hive_items(h->graph, "nodes"); n; n = n->next) {
        struct str id = hive_text(h, n, "id"), to;

        /* entry_points has "<pause>_resume": where it continues after the answer. */
        to = hive_text(h, json_get(h->graph, STR("entry_points")), arena_printf(&h->arena, "%.*s_resume", STR_ARG(id)));
        if (pauses(h, n))
            put_plain_edge(h, hive_id(h, id), pause_id(h, id));
        if (to.len && !has_edge(h, id, to) && (pauses(h, n) || !str_eq(id, to)))
            put_plain_edge(h, pauses(h, n) ? pause_id(h, id) : hive_id(h, id), hive_id(h, to));
    }
    json_out_end(&h->out, ']');
}

static void name_the_rest(struct hive *h, const struct json *top)
{
    static const struct left_out tops[] = {{"required_tools", ""}, {NULL, NULL}};
    static const struct left_out graphs[] = {
        {"max_tokens", "set it where the provider is configured"}, {"cleanup_llm_model", ""}, {NULL, NULL}};
    const struct json *loop = json_get(h->graph, STR("loop_config"));

    hive_name_left_out(h, top, "$", tops);
    hive_name_left_out(h, h->graph, "$.graph", graphs);
    if (str_eq(hive_text(h, h->graph, "conversation_mode"), STR("continuous")))
        hive_warn(h, "$.graph.conversation_mode", "pass values by outputs and inputs",
                  "each node has a conversation of its own");
    for (const struct json *m = hive_items(h->graph, "loop_config"); loop && m; m = m->next)
        if (!json_key_eq(m, STR("max_iterations")))
            hive_warn(h, "$.graph.loop_config", "", "'%.*s' is not converted", (int)(m->key.len < 64 ? m->key.len : 64),
                      m->key.ptr);
}

static size_t count_members(const struct json *v, const char *key)
{
    const struct json *list = json_get(v, str_from(key));

    return list ? list->count : 0;
}

static enum tide_code convert_graph(struct hive *h, struct str source, struct buf *ret_json, struct tide_err *err)
{
    AUTO(buf_done) struct buf flat = BUF_INIT(SPEC_MAX_BYTES);
    struct json_limits limits = {SPEC_MAX_BYTES, JSON_DEPTH};
    struct json *top = NULL, *whole = NULL;

    if (json_parse(&h->arena, source, &limits, &top, NULL, err))
        return tide_wrap(err, "not JSON");
    h->graph = graph_of(top);
    if (!h->graph)
        return tide_fail(err, TIDE_INVALID, "not an agent.json of Hive: it has no graph with nodes and an entry_node");
    h->agent = json_get(top, STR("agent"));
    /* Before names are looked up one by one. */
    if (count_members(h->graph, "nodes") > SPEC_MAX_NODES || count_members(h->graph, "edges") > SPEC_MAX_EDGES ||
        count_members(h->graph, "pause_nodes") > SPEC_MAX_LIST ||
        count_members(h->graph, "terminal_nodes") > SPEC_MAX_LIST)
        return tide_fail(err, TIDE_TOO_BIG, "more than %d nodes or %d edges", SPEC_MAX_NODES, SPEC_MAX_EDGES);
    h->out = json_out_to(&flat);
    json_out_begin(&h->out, '{');
    put_head(h, top);
    put_nodes(h);
    put_edges(h);
    json_out_end(&h->out, '}');
    name_the_rest(h, top);
    if (!flat.failed && !json_parse(&h->arena, buf_view(&flat), NULL, &whole, NULL, err))
        json_write_pretty(ret_json, whole);
    return !whole || ret_json->failed ? tide_fail(err, TIDE_TOO_BIG, "the graph is too big") : TIDE_OK;
}

enum tide_code hive_to_graph(struct str text_, problem_fn *warn_fn, void *arg, struct buf *ret_json,
                             struct tide_err *err)
{
    struct hive h = {.warn = warn_fn, .arg = arg};
    enum tide_code code;

    ERR_LOCAL(err);
    code = convert_graph(&h, text_, ret_json, err);
    arena_done(&h.arena);
    return code;
}
