/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: runs a graph in memory, one node at a time, from what the format promises. Nothing is ever cut here, attempts
 * follow each other at once, people answer when nothing else is left. A graph that fails is mended and goes on.
 */
#include <inttypes.h>
#include <stdio.h>

#include "graph_oracle.h"

enum { WAYS = 64, ROUNDS = 20000 };

static void task_begin(struct oracle *o, struct o_task *t);

/* ---- tasks and frames ---- */

struct o_task *o_find(struct oracle *o, struct str name, bool ready)
{
    for (struct o_task *t = o->tasks; t; t = t->next)
        if (t->state != O_GONE && (t->state == O_READY) == ready && str_eq(t->name, name))
            return t;
    return NULL;
}

static void add_last(struct oracle *o, struct o_task *t)
{
    struct o_task **at = &o->tasks;

    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    while (*at)
        at = &(*at)->next;
    t->next = NULL;
    *at = t;
}

struct o_frame *o_frame_new(struct oracle *o, struct o_task *owner, struct str name)
{
    struct o_frame *f = arena_zero(&o->arena, sizeof *f), **at = &o->frames;

    f->name = name;
    f->owner = owner;
    f->up = owner ? owner->frame : NULL;
    while (*at)
        at = &(*at)->next;
    *at = f;
    return f;
}

/* What a node that is over, or begins anew, had inside. */
static void drop_inside(struct oracle *o, const struct o_task *owner)
{
    struct str frame = o_text(o, "%.*s#%" PRId64, STR_ARG(owner->name), owner->visit);

    for (struct o_task *t = o->tasks; t; t = t->next)
        if (is_inside(t->name, frame))
            t->state = O_GONE;
    for (struct o_frame *f = o->frames; f; f = f->next)
        if (str_eq(f->name, frame) || (str_starts(f->name, frame) && strchr("/[", f->name.ptr[frame.len]))) {
            f->gone = true;
            map_done(&f->memory, NULL);
            map_done(&f->writers, NULL);
        }
    for (struct map_entry *e = map_next(&o->visits, NULL); e; e = map_next(&o->visits, e))
        if (is_inside(map_key(e), frame))
            map_remove(&o->visits, map_key(e));
}

static void note(struct oracle *o, const struct o_task *t, char how)
{
    record_set(&o->end->record, o_text(o, "%.*s#%" PRId64, STR_ARG(t->name), t->visit), how);
}

/* ---- where it goes on ---- */

static struct str common(struct str a, struct str b)
{
    while (!o_within(b, a)) {
        while (a.len && a.ptr[a.len - 1] != '/')
            a.len--;
        a.len -= a.len > 0;
    }
    return a;
}

static struct str merge_inputs(struct oracle *o, struct str before, struct str values)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct json_out out = json_out_to(&b);
    const struct json *lists[] = {before.len ? o_parse(o, before) : NULL, values.len ? o_parse(o, values) : NULL};

    json_out_begin(&out, '{');
    for (size_t i = 0; i < 2; i++)
        for (const struct json *m = lists[i] ? lists[i]->first : NULL; m; m = m->next)
            if (i == 1 || !json_get(lists[1], json_key_text(&o->arena, m)))
                json_out_kraw(&out, json_key_text(&o->arena, m), json_source(m));
    json_out_end(&out, '}');
    return arena_dup(&o->arena, buf_view(&b));
}

void o_lead_to(struct oracle *o, struct o_frame *f, const struct spec_node *node, struct str from, struct str branch,
               struct str values)
{
    struct str name = f->name.len ? o_text(o, "%.*s/%.*s", STR_ARG(f->name), STR_ARG(node->id)) : node->id;
    struct o_task *t = o_find(o, name, true);

    record_add(&o->end->record, o_text(o, "%.*s>%.*s", STR_ARG(from), STR_ARG(name)), 1);
    if (!t) {
        t = arena_zero(&o->arena, sizeof *t);
        *t = (struct o_task){
            .name = name, .graph = f->graph, .node = node, .frame = f, .item = -1, .seq = ++o->seq, .branch = branch};
        add_last(o, t);
    }
    t->branch = common(branch, t->branch);
    if (values.len)
        t->inputs = merge_inputs(o, t->inputs, values);
}

static void take_ways(struct oracle *o, const struct o_task *t, const struct o_way *ways, size_t n)
{
    struct str local = t->name;

    for (size_t i = t->name.len; i > 0 && t->name.ptr[i - 1] != '/'; i--)
        local = (struct str){t->name.ptr + i - 1, t->name.len - i + 1};
    for (size_t i = 0; i < n; i++) {
        struct str branch = n == 1 ? t->branch
                                   : o_text(o, "%.*s%s%.*s#%" PRId64 ":%zu", STR_ARG(t->branch),
                                            t->branch.len ? "/" : "", STR_ARG(local), t->visit, i);

        o_lead_to(o, t->frame, &t->graph->nodes.at[ways[i].to], t->name, branch, ways[i].values);
    }
}

/* ---- over ---- */

void o_complete(struct oracle *o, struct o_task *t, struct str output)
{
    struct o_way ways[WAYS];
    const char *code = NULL;
    struct str set;
    size_t n;

    if (t->item >= 0) {
        t->frame->results[t->item] = output;
        note(o, t, 'c');
        drop_inside(o, t);
        t->state = O_GONE;
        return;
    }
    if (!o_values(o, t, o_parse(o, output), &set, &code)) {
        o_failed(o, t, code, false);
        return;
    }
    n = o_ways(o, t, output, set, NULL, ways, WAYS);
    if (t->node->type == SPEC_ROUTER && !n) {
        o_failed(o, t, "choice", false);
        return;
    }
    o_store(o, t, set);
    note(o, t, 'c');
    drop_inside(o, t);
    t->state = O_GONE;
    take_ways(o, t, ways, n);
}

/* What must happen once is not tried again by itself; what holds others leaves that to them. */
static bool may_help(const struct spec_node *n, const char *code)
{
    static const char *const never[] = {"conflict", "missing_input", "choice", "lua", "limit"};

    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (strcmp(never[i], code) == 0)
            return false;
    return n->type == SPEC_LUA || (n->type == SPEC_FUNCTION && n->effect != SPEC_ONCE);
}

/* A node of the frame failed for good. */
static void frame_failed(struct oracle *o, struct o_frame *f, const char *code)
{
    int rule = f->graph ? f->graph->branch_failure : f->owner->graph->branch_failure;

    if (!f->owner) {
        o->failed = true;
        o->halting |= rule != SPEC_WAIT_ALL;
    } else if (rule != SPEC_WAIT_ALL) {
        o_failed(o, f->owner, code, true);
    }
}

static void give_up(struct oracle *o, struct o_task *t, const char *code)
{
    bool go_on = t->graph->branch_failure == SPEC_CONTINUE;

    note(o, t, go_on ? 'd' : 'f');
    t->state = go_on ? O_GONE : O_FAILED;
    if (go_on) /* else it is kept: whoever goes on goes on inside */
        drop_inside(o, t);
    if (go_on && t->item >= 0)
        t->frame->results[t->item] = STR("null");
    if (!go_on)
        frame_failed(o, t->frame, t->item >= 0 ? "item_failed" : code);
}

void o_failed(struct oracle *o, struct o_task *t, const char *code, bool again)
{
    struct o_way ways[WAYS];
    size_t n;

    o->end->failures++;
    if (again && may_help(t->node, code) && t->attempt < t->node->retries) {
        t->attempt++;
        task_begin(o, t);
        return;
    }
    n = o_ways(o, t, STR("{}"), STR(""), code, ways, WAYS);
    if (n) {
        note(o, t, 'h');
        drop_inside(o, t);
        t->state = O_GONE;
        take_ways(o, t, ways, n);
    } else {
        give_up(o, t, code);
    }
}

/* ---- beginning ---- */

static void task_begin(struct oracle *o, struct o_task *t)
{
    t->state = O_RUNNING;
    if (t->node->type == SPEC_HUMAN_INPUT)
        t->state = O_BLOCKED;
    else if (t->node->type == SPEC_ROUTER)
        o_complete(o, t, STR("{}"));
    else if (t->node->type == SPEC_SUBGRAPH)
        o_begin_graph(o, t);
    else if (t->node->type == SPEC_MAP)
        o_begin_map(o, t);
    else
        o_work(o, t);
}

static void task_start(struct oracle *o, struct o_task *t)
{
    struct str visits = o_get(&o->visits, t->name);

    if (visits.ptr)
        str_to_int64(visits, &t->visit);
    t->visit++;
    o_put(o, &o->visits, t->name, o_text(o, "%" PRId64, t->visit));
    o->end->steps++;
    add_last(o, t);
    if (o->plan->verbose)
        printf("# oracle: %.*s#%" PRId64 " in branch '%.*s'\n", STR_ARG(t->name), t->visit, STR_ARG(t->branch));
    o_join(t->frame, t->branch);
    task_begin(o, t);
}

/* ---- what may begin ---- */

static void mark_reaching(const struct spec_graph *g, size_t to, bool *reach)
{
    for (size_t round = 0; round < g->nodes.n; round++)
        for (size_t i = 0; i < g->n_arcs; i++)
            reach[g->arcs[i].from] |= g->arcs[i].from != to && (g->arcs[i].to == to || reach[g->arcs[i].to]);
}

/* Nobody who is under way in the same graph can still come to it. */
static bool may_begin(struct oracle *o, const struct o_task *t)
{
    bool reach[NODES] = {false};

    mark_reaching(t->graph, t->node->index, reach);
    for (const struct o_task *u = o->tasks; u; u = u->next) {
        if (u == t || u->state == O_GONE || u->frame != t->frame || u->item >= 0)
            continue;
        if (str_eq(u->name, t->name) || reach[u->node->index])
            return false;
    }
    return true;
}

/* ---- what is inside is over ---- */

/* Inside something that failed: it goes on with that. */
static bool is_suspended(const struct o_frame *f)
{
    for (; f->owner; f = f->up)
        if (f->owner->state == O_FAILED || f->owner->state == O_LEFT)
            return true;
    return false;
}

struct inside {
    int open, failed;
};

/* What waits for one that failed waits in vain. */
static struct inside look_inside(struct oracle *o, const struct o_frame *f)
{
    struct inside in = {0, 0};

    for (const struct o_task *t = o->tasks; t; t = t->next)
        in.failed += t->state == O_FAILED && is_inside(t->name, f->name) && !is_suspended(t->frame);
    for (const struct o_task *t = o->tasks; t; t = t->next) {
        if (t->state == O_GONE || t->state == O_FAILED || !is_inside(t->name, f->name) || is_suspended(t->frame))
            continue;
        in.open += t->state != O_READY || !in.failed || may_begin(o, t);
    }
    return in;
}

static bool look_at_frames(struct oracle *o)
{
    for (struct o_frame *f = o->frames; f; f = f->next) {
        struct inside in = look_inside(o, f);
        bool left = !f->graph && f->next_item < f->total; /* they run whatever became of the others */

        if (f->gone || !f->owner || f->owner->state != O_RUNNING || in.open || left)
            continue;
        if (in.failed)
            o_failed(o, f->owner, "inner_failed", true);
        else
            o_frame_over(o, f);
        return true;
    }
    return false;
}

/* ---- what comes next ---- */

static struct o_task *oldest(struct oracle *o, bool any)
{
    struct o_task *best = NULL;

    for (struct o_task *t = o->tasks; t; t = t->next)
        if (t->state == O_READY && !is_suspended(t->frame) && (!best || t->seq < best->seq) &&
            (any ? !o_find(o, t->name, false) : may_begin(o, t)))
            best = t;
    return best;
}

static struct o_task *first_in(struct oracle *o, enum o_state state)
{
    for (struct o_task *t = o->tasks; t; t = t->next)
        if (t->state == state && (state != O_BLOCKED || !is_suspended(t->frame)))
            return t;
    return NULL;
}

static int64_t running_items(struct oracle *o, const struct o_frame *f)
{
    int64_t n = 0;

    for (const struct o_task *t = o->tasks; t; t = t->next)
        n += t->frame == f && t->state != O_GONE && t->state != O_FAILED;
    return n;
}

static bool begin_item(struct oracle *o)
{
    for (struct o_frame *f = o->frames; f; f = f->next) {
        const struct spec_node *n = f->owner ? f->owner->node : NULL;
        int64_t parallel = n && n->parallel ? n->parallel : n ? f->owner->graph->parallel : 0;
        struct o_task *t;

        if (f->gone || f->graph || f->owner->state != O_RUNNING || f->next_item == f->total ||
            running_items(o, f) >= parallel || is_suspended(f))
            continue;
        t = arena_zero(&o->arena, sizeof *t);
        *t = (struct o_task){.name = o_text(o, "%.*s[%" PRId64 "]", STR_ARG(f->name), f->next_item),
                             .graph = f->owner->graph,
                             .node = n->node,
                             .frame = f,
                             .item = f->next_item++};
        task_start(o, t);
        return true;
    }
    return false;
}

/* Only those that wait for each other are left. */
static bool is_knotted(struct oracle *o)
{
    for (const struct o_task *t = o->tasks; t; t = t->next)
        if (t->state == O_FAILED || t->state == O_BLOCKED)
            return false;
    return true;
}

static void answer(struct oracle *o, struct o_task *t)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 16);
    struct str key = t->node->outputs.n ? t->node->outputs.at[0] : STR("answer");
    struct str said;

    behaviour_answer(t->node, o_text(o, "%.*s#%" PRId64, STR_ARG(t->name), t->visit), &b);
    said = buf_view(&b);
    if (t->node->kind == SPEC_APPROVAL)
        said = str_eq(said, STR("\"yes\"")) ? STR("true") : STR("false");
    o_complete(o, t, o_text(o, "{\"%.*s\":%.*s}", STR_ARG(key), STR_ARG(said)));
}

/* Another process goes on: what failed is tried first. */
static void take_up(struct oracle *o)
{
    for (struct o_task *t = o->tasks; t; t = t->next)
        if (t->state == O_FAILED) {
            t->state = O_LEFT;
            t->attempt = 0;
        }
}

/* Nothing else is left: who was answered goes on; else the first is, and everything else goes on before it. */
static bool ask(struct oracle *o)
{
    struct o_task *first = first_in(o, O_BLOCKED);

    for (struct o_task *t = o->tasks; t; t = t->next)
        if (t->state == O_BLOCKED && t->answered) {
            answer(o, t);
            return true;
        }
    if (!first)
        return false;
    first->answered = true;
    take_up(o);
    return true;
}

static void task_again(struct oracle *o, struct o_task *t)
{
    struct str frame = o_text(o, "%.*s#%" PRId64, STR_ARG(t->name), t->visit);

    for (const struct o_frame *f = o->frames; f; f = f->next)
        if (!f->gone && str_eq(f->name, frame)) {
            t->state = O_RUNNING;
            return;
        }
    task_begin(o, t);
}

static bool next(struct oracle *o)
{
    struct o_task *t;

    if ((t = first_in(o, O_LEFT)) != NULL) {
        task_again(o, t);
        return true;
    }
    if (look_at_frames(o))
        return true;
    if ((t = oldest(o, false)) != NULL) {
        task_start(o, t);
        return true;
    }
    if (begin_item(o))
        return true;
    if (is_knotted(o) && (t = oldest(o, true)) != NULL) {
        task_start(o, t);
        return true;
    }
    return !o->failed && ask(o);
}

/* Mends what was found to be broken; false: nothing is. */
static bool mend(struct oracle *o)
{
    bool any = false;

    for (int i = 0; i < NODES; i++) {
        any |= o->broke[i] && !o->mended[i];
        o->mended[i] |= o->broke[i];
    }
    o->failed = o->halting = false;
    take_up(o);
    return any;
}

static void copy_memory(const struct map *from, struct map *to)
{
    for (struct map_entry *e = map_next(from, NULL); e; e = map_next(from, e))
        map_put(to, map_key(e), mem_dup(*(struct str *)e->value));
}

void oracle_run(const struct plan *p, const struct spec_graph *g, struct end *ret)
{
    struct oracle o = {.plan = p, .graph = g, .arena = ARENA_INIT, .end = ret};
    struct o_frame *top = o_frame_new(&o, NULL, STR(""));
    int rounds = 0;

    top->graph = g;
    for (const struct json *m = g->memory ? g->memory->first : NULL; m; m = m->next)
        o_put(&o, &top->memory, json_key_text(&o.arena, m), json_source(m));
    o_lead_to(&o, top, &g->nodes.at[g->entry_index], STR(""), STR(""), STR(""));
    do
        while (rounds++ < ROUNDS && !o.halting && next(&o))
            ;
    while (o.failed && mend(&o) && rounds < ROUNDS);
    ret->failed = first_in(&o, O_FAILED) || first_in(&o, O_LEFT);
    copy_memory(&top->memory, &ret->memory);
    for (struct o_frame *f = o.frames; f; f = f->next) {
        map_done(&f->memory, NULL);
        map_done(&f->writers, NULL);
    }
    map_done(&o.visits, NULL);
    arena_done(&o.arena);
}
