/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs inside nodes, and maps. A node that holds others is begun and complete like any other; in between, what it holds
 * has a frame of its own ("review#2"), whose memory begins with what the node was given and is gone with it. A map keeps its
 * list and the results so far in its frame, so that after a cut only the items without a result run.
 */
#include <inttypes.h>

#include "graph/exec.h"

/* ---- beginning ---- */

static void open_scope(struct exec *x, const char *frame, const char *beneath, struct str values)
{
    struct json_out *o = exec_open(x, "memory.set");

    json_out_kstr(o, STR("frame"), str_from(frame));
    json_out_kstr_opt(o, STR("beneath"), str_from(beneath));
    json_out_kraw(o, STR("values"), values);
    exec_close(x);
}

/*
 * The frame in which a graph that begins with all of the memory reads what it has not set itself. In a map the memory is
 * written once, for all of its items; a graph of an item has the same below. NULL: it is written out.
 */
static const char *find_beneath(struct exec *x, const struct place *p)
{
    AUTO(buf_done) struct buf all = BUF_INIT(SIZE_MAX / 4);
    const struct position *pos = &x->view->content.position;
    struct str map = STR(""), around = place_around(x, p->frame, &map);
    const char *frame, *beneath = map_get(&pos->beneath, around);

    if (place_input_keys(p)->n || !p->map)
        return place_input_keys(p)->n ? NULL : beneath;
    frame = arena_printf(&x->scratch, "%.*s" ITEMS_FRAME, STR_ARG(map));
    if (!map_get(&pos->scopes, str_from(frame))) {
        place_memory(x, around, NULL, (struct sight){.own = true}, &all);
        open_scope(x, frame, beneath, buf_view(&all));
    }
    return frame;
}

/* What it begins with: the graph's own memory, and over it what the node is given. */
static bool begin_graph(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    AUTO(buf_done) struct buf given = BUF_INIT(SIZE_MAX / 4), all = BUF_INIT(SIZE_MAX / 4);
    const char *frame = place_frame(&x->scratch, name, t->visit), *beneath = find_beneath(x, p);
    const struct spec_graph *g = p->node->graph;
    const struct json *v = beneath && p->map ? place_given(x, p, t) : NULL;
    struct json_out o = json_out_to(&all);
    struct json *parsed = NULL;
    struct str missing;

    if (!v && !place_inputs(x, p, t, (struct sight){.own = beneath}, &given, &missing)) {
        end_missing(x, p, name, missing);
        return false;
    }
    if (!v && json_parse(&x->scratch, buf_view(&given), NULL, &parsed, NULL, &x->err)) {
        exec_break(x, &x->err);
        return false;
    }
    v = v ? v : parsed;
    json_out_begin(&o, '{');
    for (const struct json *m = g->memory ? g->memory->first : NULL; m; m = m->next)
        if (!json_get(v, json_key_text(&x->scratch, m)) &&
            !(beneath && position_value(&x->view->content, str_from(beneath), json_key_text(&x->scratch, m))))
            json_out_kraw(&o, json_key_text(&x->scratch, m), json_source(m));
    for (const struct json *m = v->first; m; m = m->next)
        json_out_kraw(&o, json_key_text(&x->scratch, m), json_source(m));
    json_out_end(&o, '}');
    open_scope(x, frame, beneath, buf_view(&all));
    exec_open(x, "edge.taken");
    json_out_kstr(&x->draft.out, STR("from"), str_from(name));
    json_out_kstr(&x->draft.out, STR("to"), str_from(place_beside(&x->scratch, str_from(frame), g->entry)));
    exec_close(x);
    return true;
}

/* The list of a map: a key of the memory, or an expression. */
static enum tide_code find_items(struct exec *x, const struct place *p, const struct task *t, struct buf *out,
                                 struct tide_err *err)
{
    AUTO(buf_done) struct buf memory = BUF_INIT(SIZE_MAX / 4);
    AUTO(buf_done) struct buf inputs = BUF_INIT(SIZE_MAX / 4);
    struct sight sight = {.key = p->node->over_key, .code = p->node->over.expr, .name = "memory"};
    struct json *all, *v;
    const struct json *list;
    struct str missing;

    if (!place_inputs(x, p, t, sight, &inputs, &missing))
        return tide_fail(err, TIDE_NOT_FOUND, "it needs '%.*s', which is not set", STR_ARG(missing));
    if (json_parse(&x->scratch, arena_dup(&x->scratch, buf_view(&inputs)), NULL, &all, NULL, err))
        return err->code;
    place_memory(x, p->frame, all, sight, &memory);
    if (p->node->over_key.len) {
        if (json_parse(&x->scratch, arena_dup(&x->scratch, buf_view(&memory)), NULL, &all, NULL, err))
            return err->code;
        list = json_get(all, p->node->over_key);
        if (!list)
            return tide_fail(err, TIDE_NOT_FOUND, "there is no '%.*s' in the memory to iterate over",
                             STR_ARG(p->node->over_key));
        json_write(out, list);
    } else {
        struct expr_value seen[] = {{"memory", buf_view(&memory)}, {"inputs", {NULL, 0}}};

        inputs.len = 0;
        sight.name = seen[1].name;
        if (place_inputs(x, p, t, sight, &inputs, &missing))
            seen[1].json = buf_view(&inputs);
        if (expr_eval(p->node->over.expr, seen, 2, NULL, out, err))
            return err->code;
    }
    if (json_parse(&x->scratch, arena_dup(&x->scratch, buf_view(out)), NULL, &v, NULL, err))
        return err->code;
    if (v->type != JSON_ARRAY)
        return tide_fail(err, TIDE_INVALID, "the value to iterate over is not a list");
    return TIDE_OK;
}

static bool begin_map(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    AUTO(buf_done) struct buf items = BUF_INIT(SIZE_MAX / 4), values = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&values);
    struct tide_err err;

    if (find_items(x, p, t, &items, &err)) {
        end_failed(x, p, name, err.code == TIDE_NOT_FOUND ? "missing_input" : "lua", err.msg, false);
        return false;
    }
    json_out_begin(&o, '{');
    json_out_kraw(&o, STR("items"), buf_view(&items));
    json_out_end(&o, '}');
    open_scope(x, place_frame(&x->scratch, name, t->visit), NULL, buf_view(&values));
    return true;
}

bool inner_begin(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    return p->node->type == SPEC_MAP ? begin_map(x, p, name, t) : begin_graph(x, p, name, t);
}

/* ---- items ---- */

/* "FRAME[N]": what runs inside an item has more behind that. */
static bool is_item(struct str name, struct str frame)
{
    const char *end;

    if (name.len <= frame.len || !str_starts(name, frame) || name.ptr[frame.len] != '[')
        return false;
    end = memchr(name.ptr + frame.len, ']', name.len - frame.len);
    return end == name.ptr + name.len - 1;
}

/* How far a map is, and its list, taken apart once: one piece of memory. */
struct cursor {
    int64_t next, total; /* no item before `next` is to be begun */
    struct str at[];
};

static struct cursor *make_cursor(struct exec *x, const struct map *scope)
{
    struct str text = str_from(map_get(scope, STR("items")));
    struct json *v = NULL;
    struct cursor *c;
    size_t n;
    char *copy;

    if (json_parse(&x->scratch, text, NULL, &v, NULL, NULL))
        return mem_zero(sizeof *c);
    n = v->count;
    c = mem_alloc(sizeof *c + n * sizeof c->at[0] + text.len);
    copy = (char *)&c->at[n];
    memcpy(copy, text.ptr, text.len);
    c->next = c->total = 0;
    for (const struct json *m = v->first; m; m = m->next) {
        struct str item = json_source(m);

        INVARIANT(item.ptr >= text.ptr && item.ptr + item.len <= text.ptr + text.len); /* a piece of the text */
        c->at[c->total++] = (struct str){copy + (item.ptr - text.ptr), item.len};
    }
    INVARIANT((size_t)c->total == n);
    return c;
}

static struct cursor *cursor_of(struct exec *x, struct str frame, const struct map *scope)
{
    struct cursor *c = map_get(&x->cursors, frame);

    if (!c) {
        c = make_cursor(x, scope);
        map_put(&x->cursors, frame, c);
    }
    return c;
}

struct str inner_item(struct exec *x, struct str frame, int64_t index)
{
    const struct map *scope = position_scope(&x->view->content, frame, false);
    const struct cursor *c = scope ? cursor_of(x, frame, scope) : NULL;

    INVARIANT(index >= 0);
    return c && index < c->total ? c->at[index] : STR("null");
}

int64_t inner_count(const struct exec *x, struct str frame)
{
    const struct cursor *c = map_get(&x->cursors, frame);

    return c ? c->total : 0;
}

/* Passes over items that have a result or were begun: after a resume those before the cut. */
static bool has_next_item(struct exec *x, struct str frame, const struct map *scope, struct cursor *c)
{
    const struct position *pos = &x->view->content.position;

    for (; c->next < c->total; c->next++) {
        struct str name = str_from(arena_printf(&x->scratch, "%.*s[%" PRId64 "]", STR_ARG(frame), c->next));
        const char *key = arena_printf(&x->scratch, "%" PRId64, c->next);

        if (!map_get(scope, str_from(key)) && !map_get(&pos->active, name) && !map_get(&pos->ready, name))
            return true;
    }
    return false;
}

/* Makes the next items ready; they begin like any other node. */
static void open_items(struct exec *x, const struct place *p, struct str frame, const struct map *scope, int room)
{
    struct cursor *c = cursor_of(x, frame, scope);
    int64_t parallel = p->node->parallel ? p->node->parallel : p->graph->parallel;
    const struct task *t;
    int running = 0;

    for (struct map_entry *e = tasks_next(x, NULL, &t); e; e = tasks_next(x, e, &t))
        running += is_item(map_key(e), frame);
    for (; running < parallel && room > 0 && has_next_item(x, frame, scope, c); running++, room--) {
        plan_begin(x, arena_printf(&x->scratch, "%.*s[%" PRId64 "]", STR_ARG(frame), c->next));
        if (x->halting || map_get(&x->cursors, frame) != c)
            return; /* the item failed at once, and the map with it */
        c->next++;
        INVARIANT(c->next <= c->total);
    }
}

void inner_items(struct exec *x)
{
    struct position *pos = &x->view->content.position;
    int64_t steps = pos->steps;
    const struct task *t;

    for (struct map_entry *e = tasks_next(x, NULL, &t); e; e = tasks_next(x, e, &t)) {
        const struct map *scope;
        const char *frame;
        struct place p;

        if (t->state != TASK_RUNNING || !place_find(x->graph, map_key(e), &p) || p.node->type != SPEC_MAP ||
            plan_is_held(x, map_key(e)))
            continue;
        frame = place_frame(&x->scratch, e->key, t->visit);
        scope = map_get(&pos->scopes, str_from(frame));
        if (scope)
            open_items(x, &p, str_from(frame), scope, x->capacity - x->running - plan_waiting(x));
        if (x->halting || pos->steps != steps)
            return; /* what is walked over may have changed */
    }
}

static void put_item(struct exec *x, const struct place *p, struct str value)
{
    struct json_out *o = exec_open(x, "memory.set");

    json_out_kstr(o, STR("frame"), p->frame);
    json_out_key(o, STR("values"));
    json_out_begin(o, '{');
    json_out_kraw(o, str_from(arena_printf(&x->scratch, "%" PRId64, p->item)), value);
    json_out_end(o, '}');
    exec_close(x);
}

void inner_item_over(struct exec *x, const struct place *p, const char *name, struct str output, int64_t ms)
{
    const struct task *t = map_get(&x->view->content.position.active, str_from(name));
    int64_t visit = t ? t->visit : 1;
    struct json *v = NULL;

    exec_keep(x, p->node, ms);
    output = json_parse(&x->scratch, output, NULL, &v, NULL, NULL) ? STR("null") : end_without_secrets(x, v);
    put_item(x, p, output);
    end_effect_over(x, p, name, visit, output);
    exec_open_node(x, "node.completed", name, visit);
    json_out_kint(&x->draft.out, STR("ms"), ms);
    exec_close(x);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_NODE_END,
                                            .node = name,
                                            .type = spec_node_words[p->node->type],
                                            .visit = visit,
                                            .ms = ms});
    checkpoint_after(x, p, name, ms, NULL);
}

/* As the graph says: the map fails with it, or the list has null in its place. */
void inner_item_failed(struct job *j, struct str error, const char *message)
{
    struct exec *x = j->x;
    bool go_on = j->place.graph->branch_failure == SPEC_CONTINUE;

    if (go_on)
        put_item(x, &j->place, STR("null"));
    end_put_failed(j, error, 0, go_on ? "dropped" : NULL);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_NODE_FAILED,
                                            .node = j->name,
                                            .type = spec_node_words[j->place.node->type],
                                            .visit = j->visit,
                                            .text = message,
                                            .attempt = 1,
                                            .attempts = 1,
                                            .delay_ms = -1});
    if (!go_on)
        inner_failed(x, j->place.frame, j->name, "item_failed", message);
}

/* ---- the end of what is inside ---- */

static void halt_inside(struct exec *x, struct str frame)
{
    for (int i = 0; i < x->capacity; i++)
        if (x->jobs[i] && str_starts(str_from(x->jobs[i]->name), frame))
            atomic_store(&x->jobs[i]->halt, true);
    for (struct job *j = x->todo; j; j = j->next)
        if (str_starts(str_from(j->name), frame))
            atomic_store(&j->halt, true);
}

/* A node of this frame failed for good, and its failure counts. */
void inner_failed(struct exec *x, struct str frame, const char *node, const char *code, const char *message)
{
    const char *owner;
    struct place p;

    if (!frame.len) {
        if (!x->failed_node) {
            x->failed_node = mem_dup(str_from(node));
            snprintf(x->failed_code, sizeof x->failed_code, "%s", code);
            tide_fail_node(&x->err, TIDE_FAILED, node, "failed: %s", message);
            x->code = TIDE_FAILED;
        }
        x->halting |= x->graph->branch_failure != SPEC_WAIT_ALL;
        return;
    }
    owner = arena_dup(&x->scratch, place_owner(frame)).ptr;
    if (!place_find(x->graph, str_from(owner), &p))
        return;
    if (p.node->type == SPEC_MAP ? p.graph->branch_failure == SPEC_WAIT_ALL
                                 : p.node->graph->branch_failure == SPEC_WAIT_ALL)
        return; /* inner_look() sees it when the others are over */
    halt_inside(x, frame);
    map_drop(&x->cursors, frame);
    end_failed(x, &p, owner, code, arena_printf(&x->scratch, "%s: %s", node, message), true);
}

static bool is_in(const struct map_entry *e, struct str frame)
{
    return e->key_len > frame.len && str_starts(map_key(e), frame) && strchr("/[", e->key[frame.len]);
}

static bool runs_inside(struct exec *x, struct str frame)
{
    const struct task *t;

    for (struct map_entry *e = tasks_next(x, NULL, &t); e; e = tasks_next(x, e, &t))
        if (is_in(e, frame) && !plan_is_held(x, map_key(e)))
            return true;
    return false;
}

/* Of the nodes of a graph; what is inside of them is held, or they run themselves. */
static const char *failed_node(struct exec *x, const struct spec_graph *g, struct str frame)
{
    const struct map *active = &x->view->content.position.active;
    const char *last = NULL;
    int64_t seq = -1;

    for (size_t i = 0; i < g->nodes.n; i++) {
        const char *name = place_beside(&x->scratch, frame, g->nodes.at[i].id);
        const struct task *t = map_get(active, str_from(name));

        if (t && t->state == TASK_FAILED && t->seq > seq) {
            last = name;
            seq = t->seq;
        }
    }
    return last;
}

/* The last that failed; NULL: none did. Of a map, walks over all that did: only asked when none of its items runs or begins. */
static const char *failed_inside(struct exec *x, const struct spec_node *n, struct str frame)
{
    const struct map *active = &x->view->content.position.active;
    const char *name = NULL;

    if (n->type != SPEC_MAP && n->graph->nodes.n < active->live)
        return failed_node(x, n->graph, frame);
    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e)) {
        const struct task *t = e->value;

        if (t->state == TASK_FAILED && is_in(e, frame) && !plan_is_held(x, map_key(e)))
            name = e->key;
    }
    return arena_text(&x->scratch, name);
}

/* What waits for one that failed waits in vain. */
static bool begins_inside(struct exec *x, struct str frame, bool failed)
{
    const struct map *ready = &x->view->content.position.ready;

    for (struct map_entry *e = map_next(ready, NULL); e; e = map_next(ready, e))
        if (is_in(e, frame) && (!failed || plan_may_begin(x, map_key(e))) && !plan_is_held(x, map_key(e)))
            return true;
    return false;
}

static struct str item_value(struct exec *x, const struct spec_node *inner, struct str key, const char *json)
{
    const struct json *member = NULL;
    struct json *v;

    if (!json || json_parse(&x->scratch, str_from(json), NULL, &v, NULL, NULL))
        return STR("null");
    if (v->type == JSON_OBJECT && inner->outputs.n) {
        for (size_t i = 0; i < inner->outputs.n && !member; i++)
            if (str_eq(inner->outputs.at[i], key) || inner->outputs.n == 1)
                member = json_get(v, inner->outputs.at[i]);
        if (inner->outputs.n == 1 && !member)
            return STR("null");
    }
    return member ? json_source(member) : json_source(v);
}

/* One list for each output: of the items' values of that name, or of all that they gave. */
static void map_output(struct exec *x, const struct spec_node *n, const struct map *scope, int64_t total,
                       struct buf *out)
{
    static const struct str lone = {"items", 5};
    const struct str *keys = n->outputs.n ? n->outputs.at : &lone;
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    for (size_t k = 0; k < (n->outputs.n ? n->outputs.n : 1); k++) {
        json_out_key(&o, keys[k]);
        json_out_begin(&o, '[');
        for (int64_t i = 0; i < total; i++) {
            const char *index = arena_printf(&x->scratch, "%" PRId64, i);

            json_out_raw(&o, item_value(x, n->node, keys[k], map_get(scope, str_from(index))));
        }
        json_out_end(&o, ']');
    }
    json_out_end(&o, '}');
}

static void graph_output(struct exec *x, const struct spec_node *n, struct str frame, struct buf *out)
{
    struct json_out o = json_out_to(out);

    if (!n->outputs.n) {
        place_memory(x, frame, NULL, (struct sight){.own = true}, out);
        return;
    }
    json_out_begin(&o, '{');
    for (size_t i = 0; i < n->outputs.n; i++) {
        const char *v = position_value(&x->view->content, frame, n->outputs.at[i]);

        if (v)
            json_out_kraw(&o, n->outputs.at[i], str_from(v));
    }
    json_out_end(&o, '}');
}

static struct str missing_output(struct exec *x, const struct spec_node *n, struct str output)
{
    struct json *v;

    if (json_parse(&x->scratch, output, NULL, &v, NULL, NULL))
        return STR("");
    for (size_t i = 0; i < n->outputs.n; i++)
        if (!texts_have(&n->nullable_outputs, n->outputs.at[i]) && !json_get(v, n->outputs.at[i]) &&
            !exec_is_excluded(x, n->outputs.at[i]))
            return n->outputs.at[i];
    return STR("");
}

static void finish_frame(struct exec *x, const struct place *p, const char *owner, struct str frame, int64_t total)
{
    AUTO(buf_done) struct buf output = BUF_INIT(EXEC_MEMORY_MAX);
    struct str missing, text;

    if (p->node->type == SPEC_MAP)
        map_output(x, p->node, position_scope(&x->view->content, frame, false), total, &output);
    else
        graph_output(x, p->node, frame, &output);
    if (output.failed) {
        end_failed(x, p, owner, "too_big", "its result is too big: keep big data in files", false);
        return;
    }
    text = arena_dup(&x->scratch, buf_view(&output));
    missing = missing_output(x, p->node, text);
    if (missing.len)
        end_failed(x, p, owner, "missing_output",
                   arena_printf(&x->scratch, "the inner graph ended without setting '%.*s'", STR_ARG(missing)), true);
    else
        end_complete(x, p, owner, text, 0);
}

static bool look_at(struct exec *x, const char *owner, struct str frame, const struct map *scope)
{
    struct cursor *c = NULL;
    const char *failed, *why;
    struct place p;
    bool more;

    if (runs_inside(x, frame) || !place_find(x->graph, str_from(owner), &p))
        return false;
    c = p.node->type == SPEC_MAP ? cursor_of(x, frame, scope) : NULL;
    more = c && has_next_item(x, frame, scope, c);
    if (more && p.graph->branch_failure == SPEC_WAIT_ALL)
        return false;
    failed = failed_inside(x, p.node, frame);
    if (begins_inside(x, frame, failed) || (more && !failed))
        return false;
    if (failed) {
        map_drop(&x->cursors, frame);
        why = map_get(&x->reasons, str_from(failed)); /* the latest, kept while the owner is open */
        why = arena_printf(&x->scratch, "%s: %s", failed, why ? why : "it failed in an earlier run");
        end_failed(x, &p, owner, "inner_failed", why, true);
        return true;
    }
    finish_frame(x, &p, owner, frame, c ? c->total : 0);
    map_drop(&x->cursors, frame);
    return true;
}

bool inner_look(struct exec *x)
{
    const struct task *t;

    for (struct map_entry *e = tasks_next(x, NULL, &t); e; e = tasks_next(x, e, &t)) {
        const char *frame = t->state == TASK_RUNNING ? place_frame(&x->scratch, e->key, t->visit) : "";
        const struct map *scope = map_get(&x->view->content.position.scopes, str_from(frame));

        if (scope && look_at(x, arena_dup(&x->scratch, map_key(e)).ptr, str_from(frame), scope))
            return true; /* what is walked over has changed: begin again */
    }
    return false;
}
