/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's memory, its branches, and which ways it takes. Of the code under test only what reads the graph and what
 * evaluates an expression is used here: rules, orders and merges are its own.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "graph_oracle.h"

struct str o_text(struct oracle *o, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return arena_dup(&o->arena, str_from(text));
}

void o_put(struct oracle *o, struct map *m, struct str key, struct str value)
{
    struct str *s = map_get(m, key);

    if (!s) {
        s = arena_alloc(&o->arena, sizeof *s);
        map_put(m, key, s);
    }
    *s = arena_dup(&o->arena, value);
}

struct str o_get(const struct map *m, struct str key)
{
    const struct str *s = map_get(m, key);

    return s ? *s : (struct str){NULL, 0};
}

const struct json *o_parse(struct oracle *o, struct str json)
{
    struct json *v = NULL;

    if (json_parse(&o->arena, json, NULL, &v, NULL, NULL))
        return NULL;
    return v;
}

/* ---- what a node sees ---- */

struct o_frame *o_memory_frame(struct o_frame *f)
{
    while (!f->graph)
        f = f->up;
    return f;
}

static void put_members(struct oracle *o, struct json_out *out, const struct json *more)
{
    for (const struct json *m = more ? more->first : NULL; m; m = m->next)
        json_out_kraw(out, json_key_text(&o->arena, m), json_source(m));
}

struct str o_memory(struct oracle *o, struct o_frame *f, const struct json *more)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 24);
    struct json_out out = json_out_to(&b);
    const struct map *m = &o_memory_frame(f)->memory;

    json_out_begin(&out, '{');
    for (struct map_entry *e = map_next(m, NULL); e; e = map_next(m, e))
        if (!json_get(more, map_key(e)))
            json_out_kraw(&out, map_key(e), *(struct str *)e->value);
    put_members(o, &out, more);
    json_out_end(&out, '}');
    return arena_dup(&o->arena, buf_view(&b));
}

/* An item gets what edges brought to its map, and itself. */
static const struct json *given(struct oracle *o, const struct o_task *t)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct json_out out = json_out_to(&b);
    const struct o_task *owner = t->frame->owner;
    const struct json *item;

    if (t->item < 0)
        return t->inputs.len ? o_parse(o, t->inputs) : NULL;
    item = t->frame->items->first;
    for (int64_t i = 0; i < t->item; i++)
        item = item->next;
    json_out_begin(&out, '{');
    put_members(o, &out, owner->inputs.len ? o_parse(o, owner->inputs) : NULL);
    json_out_kraw(&out, owner->node->as, json_source(item));
    json_out_kint(&out, STR("index"), t->item);
    json_out_end(&out, '}');
    return o_parse(o, arena_dup(&o->arena, buf_view(&b)));
}

static bool is_named(const struct spec_texts *keys, struct str key)
{
    bool named = false;

    for (size_t i = 0; i < keys->n; i++)
        named |= str_eq(keys->at[i], key);
    return named;
}

struct str o_inputs(struct oracle *o, const struct o_task *t, struct str *ret_missing)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 24);
    struct json_out out = json_out_to(&b);
    const struct json *more = given(o, t);
    const struct spec_texts *keys =
        t->item >= 0 && !t->node->inputs.n ? &t->frame->owner->node->inputs : &t->node->inputs;

    *ret_missing = STR("");
    if (!keys->n)
        return o_memory(o, t->frame, more);
    json_out_begin(&out, '{');
    for (size_t i = 0; i < keys->n; i++) {
        struct str v = o_get(&o_memory_frame(t->frame)->memory, keys->at[i]);

        if (json_get(more, keys->at[i]))
            continue;
        if (!v.ptr)
            *ret_missing = keys->at[i];
        else
            json_out_kraw(&out, keys->at[i], v);
    }
    for (const struct json *m = more ? more->first : NULL; m; m = m->next)
        if (t->item < 0 || !json_key_eq(m, STR("index")) || is_named(keys, STR("index")))
            json_out_kraw(&out, json_key_text(&o->arena, m), json_source(m));
    json_out_end(&out, '}');
    return arena_dup(&o->arena, buf_view(&b));
}

/* ---- branches ---- */

bool o_within(struct str branch, struct str outer)
{
    return !outer.len || (str_starts(branch, outer) && (branch.len == outer.len || branch.ptr[outer.len] == '/'));
}

void o_join(struct o_frame *f, struct str branch)
{
    for (struct map_entry *e = map_next(&f->writers, NULL); e; e = map_next(&f->writers, e)) {
        struct str *writer = e->value;

        if (o_within(*writer, branch))
            *writer = branch;
    }
}

static bool conflicts(const struct o_task *t, struct str key)
{
    struct str writer = o_get(&t->frame->writers, key);

    return writer.len && !o_within(t->branch, writer) && !o_within(writer, t->branch);
}

static bool is_promised(const struct spec_node *n, struct str key)
{
    for (size_t i = 0; i < n->outputs.n; i++)
        if (str_eq(n->outputs.at[i], key))
            return true;
    return false;
}

/* ---- what a node sets ---- */

static void merge_objects(struct oracle *o, const struct json *before, const struct json *now, struct json_out *out)
{
    json_out_begin(out, '{');
    for (const struct json *m = before->first; m; m = m->next) {
        const struct json *later = json_get(now, json_key_text(&o->arena, m));

        json_out_key(out, json_key_text(&o->arena, m));
        if (later && later->type == JSON_OBJECT && m->type == JSON_OBJECT)
            merge_objects(o, m, later, out);
        else
            json_out_raw(out, json_source(later ? later : m));
    }
    for (const struct json *m = now->first; m; m = m->next)
        if (!json_get(before, json_key_text(&o->arena, m)))
            json_out_kraw(out, json_key_text(&o->arena, m), json_source(m));
    json_out_end(out, '}');
}

static void join_lists(const struct json *before, const struct json *now, struct json_out *out)
{
    json_out_begin(out, '[');
    for (const struct json *m = before->first; m; m = m->next)
        json_out_raw(out, json_source(m));
    for (const struct json *m = now->first; m; m = m->next)
        json_out_raw(out, json_source(m));
    json_out_end(out, ']');
}

/* False: they are neither both lists nor both objects, and not equal. */
static bool merge(struct oracle *o, const struct json *before, const struct json *now, struct json_out *out)
{
    if (before->type == JSON_OBJECT && now->type == JSON_OBJECT)
        merge_objects(o, before, now, out);
    else if (before->type == JSON_ARRAY && now->type == JSON_ARRAY)
        join_lists(before, now, out);
    else if (str_eq(json_source(before), json_source(now)))
        json_out_raw(out, json_source(before));
    else
        return false;
    return true;
}

/* What becomes of a key that another branch has set: NULL, or the code of the failure. */
static const char *choose(struct oracle *o, const struct spec_rule *rule, struct str before, struct str *value)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 24);
    struct json_out out = json_out_to(&b);

    if (!rule || rule->rule == SPEC_CONFLICT_ERROR)
        return "conflict";
    if (rule->rule == SPEC_CONFLICT_FIRST)
        *value = before;
    if (rule->rule != SPEC_CONFLICT_MERGE)
        return NULL;
    if (!merge(o, o_parse(o, before), o_parse(o, *value), &out))
        return "choice";
    *value = arena_dup(&o->arena, buf_view(&b));
    return NULL;
}

bool o_values(struct oracle *o, const struct o_task *t, const struct json *output, struct str *ret_set,
              const char **ret_code)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 24);
    struct json_out out = json_out_to(&b);

    json_out_begin(&out, '{');
    for (const struct json *m = output->first; m; m = m->next) {
        struct str key = json_key_text(&o->arena, m), value = json_source(m), before = o_get(&t->frame->memory, key);

        if (!is_promised(t->node, key))
            continue;
        if (before.ptr && conflicts(t, key)) {
            *ret_code = choose(o, spec_conflict_rule(t->graph, key), before, &value);
            if (*ret_code)
                return false;
        }
        json_out_kraw(&out, key, value);
    }
    json_out_end(&out, '}');
    *ret_set = arena_dup(&o->arena, buf_view(&b));
    return true;
}

void o_store(struct oracle *o, const struct o_task *t, struct str set)
{
    const struct json *v = o_parse(o, set);

    for (const struct json *m = v->first; m; m = m->next) {
        o_put(o, &t->frame->memory, json_key_text(&o->arena, m), json_source(m));
        o_put(o, &t->frame->writers, json_key_text(&o->arena, m), t->branch);
    }
}

/* ---- where it goes on ---- */

struct seen {
    struct oracle *o;
    const struct o_task *t;
    struct expr_value v[3];
};

static bool holds(const struct seen *s, const struct spec_expr *when)
{
    struct tide_err err;
    bool yes = false;

    return when->expr && !expr_test(when->expr, s->v, 3, &yes, &err) && yes;
}

/* It has reached its limit; one that is to be entered anyway is entered once. */
static bool is_closed(const struct seen *s, size_t to)
{
    const struct spec_node *n = &s->t->graph->nodes.at[to];
    struct str name =
        s->t->frame->name.len ? o_text(s->o, "%.*s/%.*s", STR_ARG(s->t->frame->name), STR_ARG(n->id)) : n->id;
    struct str visits = o_get(&s->o->visits, name);
    int64_t count = 0;

    if (!n->max_visits || o_find(s->o, name, true))
        return false;
    if (visits.ptr)
        str_to_int64(visits, &count);
    return count >= n->max_visits;
}

static struct str values_of(const struct seen *s, const struct spec_edge *e)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct json_out out = json_out_to(&b);

    json_out_begin(&out, '{');
    for (size_t i = 0; i < e->map.n; i++) {
        AUTO(buf_done) struct buf v = BUF_INIT(1 << 20);
        struct tide_err err;

        if (!expr_eval(e->map.at[i].value.expr, s->v, 3, NULL, &v, &err))
            json_out_kraw(&out, e->map.at[i].key, buf_view(&v));
    }
    json_out_end(&out, '}');
    return b.len > 2 ? arena_dup(&s->o->arena, buf_view(&b)) : STR("");
}

static size_t route(const struct seen *s, struct o_way *ret)
{
    const struct spec_node *n = s->t->node;

    for (size_t i = 0; i < n->routes.n; i++)
        if (holds(s, &n->routes.at[i].when) && !is_closed(s, n->routes.at[i].to_index)) {
            ret[0] = (struct o_way){n->routes.at[i].to_index, STR("")};
            return 1;
        }
    if (n->otherwise_index == SPEC_NONE || is_closed(s, n->otherwise_index))
        return 0;
    ret[0] = (struct o_way){n->otherwise_index, STR("")};
    return 1;
}

static bool is_taken(const struct seen *s, const struct spec_edge *e, bool failed, bool *decided)
{
    bool plain = !failed && s->t->node->type != SPEC_ROUTER;

    if (e->on == SPEC_ALWAYS || (e->on == SPEC_SUCCESS && plain) || (e->on == SPEC_FAILURE && failed))
        return !is_closed(s, e->to_index);
    if (e->on != SPEC_CONDITION || !plain || *decided || !holds(s, &e->when) || is_closed(s, e->to_index))
        return false;
    *decided = true;
    return true;
}

/* High priority first, then as they stand in the file. */
static bool is_before(const struct spec_edge *a, const struct spec_edge *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
}

static const struct spec_edge *edge_after(const struct o_task *t, const struct spec_edge *last)
{
    const struct spec_edge *best = NULL;

    for (size_t i = 0; i < t->node->n_edges; i++) {
        const struct spec_edge *e = &t->graph->edges.at[t->node->first_edge + i];

        if ((!last || is_before(last, e)) && (!best || is_before(e, best)))
            best = e;
    }
    return best;
}

size_t o_ways(struct oracle *o, const struct o_task *t, struct str output, struct str set, const char *error,
              struct o_way *ret, size_t max)
{
    struct str more = error ? o_text(o, ",\"error\":{\"code\":\"%s\"}", error) : STR("");
    struct seen s = {o,
                     t,
                     {{"output", output},
                      {"memory", o_memory(o, t->frame, set.len ? o_parse(o, set) : NULL)},
                      {"result", o_text(o, "{\"success\":%s,\"visit\":%" PRId64 "%.*s}", error ? "false" : "true",
                                        t->visit, STR_ARG(more))}}};
    const struct spec_edge *e = NULL;
    bool decided = false;
    size_t count = 0;

    if (t->item >= 0)
        return 0;
    if (t->node->type == SPEC_ROUTER && !error)
        count = route(&s, ret);
    while (count < max && (e = edge_after(t, e)) != NULL)
        if (is_taken(&s, e, error != NULL, &decided))
            ret[count++] = (struct o_way){e->to_index, values_of(&s, e)};
    return count;
}
