/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may begin now. A node to which several ways lead waits while something that is open can still reach it: so branches
 * come together without anybody counting them, and a branch that ended elsewhere holds up nobody. When all that is left
 * waits for each other (in loops it may), the oldest goes first.
 */
#include <inttypes.h>

#include "base/digest.h"
#include "base/utf8.h"
#include "graph/resume.h"

#define LOOK_BACK_MAX 64 /* nodes */
#define QUESTION_MAX ((size_t)256 << 10)
#define WAIT_NAME_PLAIN 108 /* and a visit fits into the 128 bytes of a name */

/* ---- coming together ---- */

/*
 * From where the nodes of one frame can be reached, for all of them at once: two different open ones are enough to know for
 * each node whether there is another than itself.
 */
struct crowd {
    struct str frame;
    uint32_t (
        *from)[2]; /* by node: one more than the index of an open one from which a way leads to it; NULL: not known */
};

struct step {
    uint32_t node, from;
};

static bool is_open(const struct task *t, const struct spec_graph *g)
{
    return t->state != TASK_FAILED || g->branch_failure == SPEC_WAIT_ALL;
}

/* By the nodes of the graph, or by what is open anywhere: whichever are fewer. */
static size_t add_named(struct exec *x, const struct map *tasks, const struct place *p, struct step *todo, size_t n)
{
    for (size_t i = 0; i < p->graph->nodes.n; i++) {
        const char *name = place_beside(&x->scratch, p->frame, p->graph->nodes.at[i].id);
        const struct task *t = map_get(tasks, str_from(name));

        if (t && is_open(t, p->graph))
            todo[n++] = (struct step){(uint32_t)i, (uint32_t)i + 1};
    }
    return n;
}

static size_t add_open(struct exec *x, const struct map *tasks, const struct place *p, struct step *todo, size_t n)
{
    if (tasks->live > p->graph->nodes.n)
        return add_named(x, tasks, p, todo, n);
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        struct place other;

        if (!str_starts(map_key(e), p->frame) || !is_open(e->value, p->graph) ||
            !place_find(x->graph, map_key(e), &other) || !str_eq(other.frame, p->frame) || other.map)
            continue;
        todo[n++] = (struct step){(uint32_t)other.node->index, (uint32_t)other.node->index + 1};
    }
    return n;
}

static bool is_new(uint32_t from[2], uint32_t one)
{
    if (from[0] == one || from[1])
        return false;
    from[from[0] ? 1 : 0] = one;
    return true;
}

static void look_around_in(struct exec *x, const struct place *p, struct crowd *c)
{
    const struct position *pos = &x->view->content.position;
    size_t n = p->graph->nodes.n, depth;
    struct step *todo;

    x->crowd = mem_grow(x->crowd, n * (sizeof *c->from + 4 * sizeof *todo)); /* open: ready, active; new: two a node */
    c->frame = p->frame;
    c->from = x->crowd;
    todo = (struct step *)(void *)&c->from[n];
    memset(c->from, 0, n * sizeof *c->from);
    depth = add_open(x, &pos->ready, p, todo, 0);
    depth = add_open(x, &pos->active, p, todo, depth);
    while (depth > 0) {
        struct step at = todo[--depth];
        const struct spec_node *node = &p->graph->nodes.at[at.node];

        for (size_t i = node->first_arc; i < node->first_arc + node->n_arcs; i++)
            if (is_new(c->from[p->graph->arcs[i].to], at.from))
                todo[depth++] = (struct step){(uint32_t)p->graph->arcs[i].to, at.from};
    }
}

enum awaited { AWAITED, NOT_AWAITED, AWAITED_UNKNOWN };

static bool is_open_node(struct exec *x, const struct place *p, size_t node)
{
    const struct position *pos = &x->view->content.position;
    struct str name = str_from(place_beside(&x->scratch, p->frame, p->graph->nodes.at[node].id));
    const struct task *ready = map_get(&pos->ready, name), *active = map_get(&pos->active, name);

    return (ready && is_open(ready, p->graph)) || (active && is_open(active, p->graph));
}

/* The same from the node backwards, where few lead to it: a wide graph is not walked for each of its branches. */
static enum awaited look_back(struct exec *x, const struct place *p)
{
    size_t seen[LOOK_BACK_MAX] = {p->node->index}, n = 1;

    for (size_t at = 0; at < n; at++) {
        const struct spec_node *node = &p->graph->nodes.at[seen[at]];

        if (at && is_open_node(x, p, seen[at]))
            return AWAITED;
        for (size_t i = 0; i < node->arcs_in; i++) {
            size_t from = p->graph->sources[node->first_in + i], k = 0;

            while (k < n && seen[k] != from)
                k++;
            if (k == LOOK_BACK_MAX)
                return AWAITED_UNKNOWN;
            if (k == n)
                seen[n++] = from;
        }
    }
    return NOT_AWAITED;
}

/* Whether another open node of the same frame stands where it can still come to this one. */
static bool is_awaited(struct exec *x, const struct place *p, struct crowd *c)
{
    uint32_t self = (uint32_t)p->node->index + 1;
    enum awaited near = look_back(x, p);
    const uint32_t *from;

    if (near != AWAITED_UNKNOWN)
        return near == AWAITED;
    if (!c->from || !str_eq(c->frame, p->frame))
        look_around_in(x, p, c);
    from = c->from[p->node->index];
    return (from[0] && from[0] != self) || (from[1] && from[1] != self);
}

static bool may_begin(struct exec *x, struct str name, const struct place *p, struct crowd *c)
{
    const struct position *pos = &x->view->content.position;

    if (map_get(&pos->active, name) || plan_is_held(x, name)) /* an earlier visit is under way */
        return false;
    return pos->ready.live + pos->active.live == 1 || p->node->arcs_in == 0 || !is_awaited(x, p, c);
}

bool plan_is_held(const struct exec *x, struct str name)
{
    struct place p;

    while (place_find(x->graph, name, &p) && p.frame.len) {
        const struct task *t;

        name = p.frame;
        while (name.ptr[--name.len] != '#') /* its owner */
            ;
        t = map_get(&x->view->content.position.active, name);
        if (t && t->state == TASK_FAILED)
            return true;
    }
    return false;
}

bool plan_may_begin(struct exec *x, struct str name)
{
    struct place p;

    return place_find(x->graph, name, &p) && may_begin(x, name, &p, &(struct crowd){0});
}

/* ---- beginning ---- */

int plan_waiting(const struct exec *x)
{
    int n = 0;

    for (const struct job *j = x->todo; j; j = j->next)
        n++;
    return n;
}

/* A branch has room among the branches; what is part of a map has the map's own limit. */
static bool has_branch_room(const struct exec *x, const char *name)
{
    int outside = 0;

    if (x->branches >= x->capacity || strchr(name, '['))
        return true;
    for (const struct job *j = x->todo; j; j = j->next)
        outside += !strchr(j->name, '[');
    for (int i = 0; i < x->capacity; i++)
        outside += x->jobs[i] && !strchr(x->jobs[i]->name, '[');
    return outside < x->branches;
}

static bool is_work(const struct spec_node *n)
{
    return n->type == SPEC_FUNCTION || n->type == SPEC_LUA || n->type == SPEC_EVENT_LOOP;
}

static void put_started(struct exec *x, const struct place *p, const char *name, int64_t visit, int64_t attempt,
                        const char *branch)
{
    bool once = effect_is_once(x, p, name, visit);
    struct json_out *o = exec_open_node(x, "node.started", name, visit);

    json_out_kstr_opt(o, STR("branch"), str_from(branch));
    if (attempt)
        json_out_kint(o, STR("attempt"), attempt);
    json_out_kstr(o, STR("effect"), str_from(spec_effect_words[once ? SPEC_ONCE : p->node->effect]));
    exec_close(x);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_NODE_START,
                                            .node = name,
                                            .type = spec_node_words[p->node->type],
                                            .visit = visit,
                                            .items = p->map ? inner_count(x, p->frame) : 0,
                                            .attempt = (int)attempt + 1,
                                            .attempts = (int)p->node->retries + 1});
}

/* A name has 128 bytes at most, and two nodes that share it would share the answer. */
static void name_wait(char *out, size_t size, struct str name, int64_t visit)
{
    char hex[DIGEST_NAME_SIZE];
    struct str begin = utf8_clip(name, 80);

    if (name.len <= WAIT_NAME_PLAIN) {
        snprintf(out, size, "%.*s#%" PRId64, STR_ARG(name), visit);
        return;
    }
    digest_name(hex, name);
    snprintf(out, size, "%.*s~%s#%" PRId64, STR_ARG(begin), hex, visit);
}

/* What a wait answers itself with. A graph that has a way for that, or for a failure, continues without an answer. */
static char *default_of(const struct place *p)
{
    if (p->node->otherwise_answer)
        return mem_dup(json_source(p->node->otherwise_answer));
    if (!p->node->deadline_ms ||
        !(spec_has_edge(p->graph, p->node, SPEC_TIMEOUT) || spec_has_edge(p->graph, p->node, SPEC_FAILURE)))
        return NULL;
    return mem_dup(STR("null"));
}

static void ask_person(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    AUTO(buf_done) struct buf inputs = BUF_INIT(SIZE_MAX / 4), text = BUF_INIT(QUESTION_MAX);
    struct blocked *b, **at = &x->blocked;
    struct tide_err err;
    struct str missing;
    struct json *v;

    if (!place_inputs(x, p, t, (struct sight){0}, &inputs, &missing)) {
        end_missing(x, p, name, missing);
        return;
    }
    if (place_text_values(x, p, &x->scratch, buf_view(&inputs), &v, &err) ||
        placeholders_fill(p->node->question, v, &text, &err)) {
        end_failed(x, p, name, "template", err.msg, false);
        return;
    }
    b = mem_zero(sizeof *b);
    b->name = mem_dup(str_from(name));
    b->human = true;
    b->deadline_ms = p->node->deadline_ms;
    b->default_answer = default_of(p);
    name_wait(b->wait.name, sizeof b->wait.name, str_from(name), t->visit);
    b->wait.kind = p->node->kind == SPEC_APPROVAL ? TIDE_WAIT_APPROVAL : TIDE_WAIT_INPUT;
    b->question = mem_dup(buf_view(&text));
    while (*at)
        at = &(*at)->next;
    *at = b;
}

/* Queues the work of a node that was begun, or does at once what needs no worker. */
static void queue_job(struct exec *x, struct job *j)
{
    struct job **at = &x->todo;

    if (!j)
        return; /* it has failed */
    x->must_sync |= j->deciding || j->place.node->effect != SPEC_PURE;
    x->must_hold |= !j->deciding && exec_touches(j->place.node);
    while (*at)
        at = &(*at)->next;
    *at = j;
}

static void do_node(struct exec *x, const struct place *p, const char *name)
{
    const struct task *t = map_get(&x->view->content.position.active, str_from(name));

    if (!t)
        return;
    if (p->node->type == SPEC_HUMAN_INPUT) {
        ask_person(x, p, name, t);
    } else if (p->node->type == SPEC_ROUTER) {
        end_complete(x, p, name, STR("{}"), 0);
    } else if (!is_work(p->node)) {
        inner_begin(x, p, name, t);
    } else {
        queue_job(x, job_new(x, p, name, t));
    }
}

static bool check_steps(struct exec *x, const char *name)
{
    struct tide_err err;

    if (!x->graph->max_steps || x->view->content.position.steps < x->graph->max_steps)
        return true;
    tide_fail(&err, TIDE_FAILED, "max_steps: %" PRId64 " nodes have run, and '%s' would be one more: raise max_steps",
              x->graph->max_steps, name);
    x->failed_node = x->failed_node ? x->failed_node : mem_dup(str_from(name));
    snprintf(x->failed_code, sizeof x->failed_code, "max_steps");
    x->err = err;
    x->code = TIDE_FAILED;
    x->halting = true;
    return false;
}

/* Also of an item of a map, which no way leads to. */
void plan_begin(struct exec *x, const char *name)
{
    const struct content *c = &x->view->content;
    const struct task *t = map_get(&c->position.ready, str_from(name));
    const int64_t *visits = map_get(&c->visits, str_from(name));
    const char *branch = t ? arena_text(&x->scratch, t->branch) : NULL;
    int64_t visit = (visits ? *visits : 0) + 1;
    struct place p;

    if (!place_find(x->graph, str_from(name), &p) || !check_steps(x, name))
        return;
    INVARIANT(t || p.map);
    name = arena_dup(&x->scratch, str_from(name)).ptr;
    if (!p.map)
        checkpoint_before(x, &p, name);
    put_started(x, &p, name, visit, 0, branch);
    if (reuse_effect(x, &p, name, visit))
        return;
    end_effect_started(x, &p, name, visit);
    do_node(x, &p, name);
}

/* ---- what an earlier run left ---- */

struct str plan_known_output(struct exec *x, const struct place *p, const char *name)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    const char *gave = x->gave ? map_get(x->gave, str_from(name)) : NULL;
    struct json_out o = json_out_to(&out);

    if (gave)
        return arena_dup(&x->scratch, str_from(gave));
    json_out_begin(&o, '{');
    for (size_t i = 0; !p->map && i < p->node->outputs.n; i++) {
        const char *v = position_value(&x->view->content, p->frame, p->node->outputs.at[i]);

        if (v)
            json_out_kraw(&o, p->node->outputs.at[i], str_from(v));
    }
    json_out_end(&o, '}');
    return arena_dup(&x->scratch, buf_view(&out));
}

/* It must happen once and was begun: only who knows more continues. True: it is taken care of. */
static bool settle_as(struct exec *x, const struct place *p, const char *name)
{
    const struct task *t = map_get(&x->view->content.position.active, str_from(name));

    if (!node_is_once(p->node) || (t && t->unbegun))
        return false;
    if (map_get(&x->run->happened, str_from(name))) {
        end_complete(x, p, name, plan_known_output(x, p, name), 0);
        return true;
    }
    if (map_get(&x->run->retry, str_from(name)))
        return false;
    if (t && t->happened && reuse_result(x, p, name, t->visit, "it failed"))
        return true;
    end_unsettled(x, name, "");
    return true;
}

/* As what it began counts, whatever the graph says of it now. */
static bool settle_once(struct exec *x, const struct place *p, const char *name)
{
    const struct task *t = map_get(&x->view->content.position.active, str_from(name));
    struct place then = *p;
    struct spec_node once = *p->node;

    if (t && effect_is_once(x, p, name, t->visit)) {
        once.effect = SPEC_ONCE;
        once.type = SPEC_FUNCTION;
        then.node = &once;
    }
    return settle_as(x, &then, name);
}

static void begin_again(struct exec *x, const struct place *p, const char *name, const struct task *t, int64_t attempt)
{
    const char *branch = arena_text(&x->scratch, t->branch);
    int64_t visit = t->visit;

    put_started(x, p, name, visit, attempt, branch);
    end_effect_started(x, p, name, visit);
    do_node(x, p, name);
}

/* A map or a graph inside that was begun: what it holds continues by itself. */
static bool holds_frame(struct exec *x, const char *name, const struct task *t)
{
    const char *frame = place_frame(&x->scratch, name, t->visit);

    return map_get(&x->view->content.position.scopes, str_from(frame)) != NULL;
}

static void take_up(struct exec *x, const char *name, const struct task *t)
{
    struct place p;

    if (!place_find(x->graph, str_from(name), &p))
        return; /* refused before it came to this */
    if (t->state == TASK_FAILED && holds_frame(x, name, t)) {
        put_started(x, &p, name, t->visit, 0, arena_text(&x->scratch, t->branch));
    } else if (t->state == TASK_FAILED) {
        if (!settle_once(x, &p, name))
            begin_again(x, &p, name, t, 0);
    } else if (t->state == TASK_WITHDRAWN) {
        begin_again(x, &p, name, t, t->attempt);
    } else if (t->state == TASK_DECIDING) {
        queue_job(x, job_new_decision(x, &p, name, t));
    } else if (t->state == TASK_RUNNING && p.node->type == SPEC_HUMAN_INPUT) {
        ask_person(x, &p, name, t);
    } else if (t->state == TASK_RUNNING && (is_work(p.node) || p.node->type == SPEC_ROUTER)) {
        if (!settle_once(x, &p, name))
            begin_again(x, &p, name, t, t->attempt);
    } else if (t->state == TASK_RUNNING && !holds_frame(x, name, t)) {
        begin_again(x, &p, name, t, t->attempt);
    }
}

static bool has_job(const struct exec *x, const char *name)
{
    for (const struct job *j = x->todo; j; j = j->next)
        if (strcmp(j->name, name) == 0)
            return true;
    for (int i = 0; i < x->capacity; i++)
        if (x->jobs[i] && strcmp(x->jobs[i]->name, name) == 0)
            return true;
    for (const struct blocked *b = x->blocked; b; b = b->next)
        if (strcmp(b->name, name) == 0)
            return true;
    return false;
}

/* One that is open and nobody is at: cut in an earlier run, or its attempt is due. */
static const char *find_left(struct exec *x, const struct task **ret)
{
    const struct map *active = &x->view->content.position.active;
    int64_t now = env_now_ms(x->s->store->env);
    const struct task *t;
    const char *name;
    struct place p;

    while (x->fresh && (name = tasks_left(x))) {
        *ret = t = map_get(active, str_from(name));
        if (t && t->state != TASK_RETRY && place_find(x->graph, str_from(name), &p) && !has_job(x, name))
            return arena_dup(&x->scratch, str_from(name)).ptr;
    }
    for (struct map_entry *e = tasks_next(x, NULL, &t); e; e = tasks_next(x, e, &t)) {
        bool due = t->state == TASK_RETRY && t->retry_at_ms <= now && !plan_is_held(x, map_key(e));

        *ret = t;
        if ((due || t->state == TASK_DECIDING) && place_find(x->graph, map_key(e), &p) && !has_job(x, e->key))
            return arena_dup(&x->scratch, map_key(e)).ptr;
    }
    return NULL;
}

static bool begin_left(struct exec *x)
{
    const struct task *t;
    const char *name = find_left(x, &t);
    struct place p;

    if (!name) {
        x->fresh = false;
        return false;
    }
    if (t->state == TASK_RETRY) {
        if (!place_find(x->graph, str_from(name), &p))
            return false;
        begin_again(x, &p, name, t, t->attempt + 1);
        return true;
    }
    take_up(x, name, t);
    return true;
}

/* ---- all of it ---- */

/* The oldest that may begin; `any`: they all wait for each other. */
static const char *find_ready(struct exec *x, bool any)
{
    const struct map *ready = &x->view->content.position.ready;
    const struct map_entry *best = NULL;
    struct crowd c = {0};

    for (struct map_entry *e = map_next(ready, NULL); e; e = map_next(ready, e)) {
        const struct task *t = e->value;
        struct place p;

        if ((best && ((const struct task *)best->value)->seq <= t->seq) || !has_branch_room(x, e->key) ||
            !place_find(x->graph, map_key(e), &p))
            continue;
        if (any ? !map_get(&x->view->content.position.active, map_key(e)) && !plan_is_held(x, map_key(e))
                : may_begin(x, map_key(e), &p, &c))
            best = e;
    }
    return best ? arena_dup(&x->scratch, map_key(best)).ptr : NULL;
}

/* Only nodes that wait for each other, or for what failed, are left: nobody will come any more. */
static bool is_knotted(const struct exec *x)
{
    const struct position *pos = &x->view->content.position;

    if (x->running || x->todo || x->blocked || !pos->ready.live)
        return false;
    for (struct map_entry *e = map_next(&pos->active, NULL); e; e = map_next(&pos->active, e)) {
        const struct task *t = e->value;
        struct place p;

        if (t->state == TASK_FAILED || t->state == TASK_RETRY || t->state == TASK_DECIDING)
            return false;
        if (place_find(x->graph, map_key(e), &p) && p.node->type != SPEC_SUBGRAPH && p.node->type != SPEC_MAP)
            return false;
    }
    return true;
}

void plan_all(struct exec *x)
{
    const char *name;

    while (!x->halting) {
        int64_t steps = x->view->content.position.steps;
        bool fresh = x->fresh;

        if (!x->fresh && inner_look(x)) /* what failed in an earlier run has not failed in this one */
            continue;
        if (x->running + plan_waiting(x) >= x->capacity || x->halting)
            return;
        if (begin_left(x) || (fresh && !x->fresh)) /* what is over inside goes before what may begin */
            continue;
        name = find_ready(x, false);
        if (name) {
            plan_begin(x, name);
            continue;
        }
        inner_items(x);
        if (inner_look(x) ||
            steps != x->view->content.position.steps) /* an item that holds a graph has more to begin */
            continue;
        name = is_knotted(x) ? find_ready(x, true) : NULL;
        if (!name)
            return;
        plan_begin(x, name);
    }
}

int64_t plan_next_ms(struct exec *x)
{
    const struct task *t;
    int64_t at = INT64_MAX;

    for (struct map_entry *e = tasks_next(x, NULL, &t); e; e = tasks_next(x, e, &t)) {
        if (t->state == TASK_RETRY && t->retry_at_ms < at && !plan_is_held(x, map_key(e)))
            at = t->retry_at_ms;
    }
    return at;
}
