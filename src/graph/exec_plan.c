/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may begin now. A node to which several ways lead waits while something that is open can still reach it: so branches
 * come together without anybody counting them, and a branch that ended elsewhere holds up nobody. When all that is left
 * waits for each other (in loops it may), the oldest goes first.
 */
#include <inttypes.h>

#include "graph/resume.h"

/* ---- coming together ---- */

/* Which nodes of the graph lead to `to` without passing through it; one byte a node. */
static void mark_reaching(const struct spec_graph *g, size_t to, unsigned char *reach)
{
    memset(reach, 0, g->nodes.n);
    for (bool grown = true; grown;) { /* rounds until nothing is new: arcs stand by source, and a graph is small */
        grown = false;
        for (size_t i = 0; i < g->n_arcs; i++) {
            const struct spec_arc *a = &g->arcs[i];

            if (a->from != to && !reach[a->from] && (a->to == to || reach[a->to])) {
                reach[a->from] = 1;
                grown = true;
            }
        }
    }
}

static bool is_open(const struct task *t, const struct spec_graph *g)
{
    return t->state != TASK_FAILED || g->branch_failure == SPEC_WAIT_ALL;
}

/* Whether another open node of the same frame stands where it can still come to this one. */
static bool is_awaited(struct exec *x, const struct map *tasks, struct str name, const struct place *p,
                       const unsigned char *reach)
{
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        struct place other;

        if (str_eq(map_key(e), name) || !is_open(e->value, p->graph) || !place_find(x->graph, map_key(e), &other) ||
            !str_eq(other.frame, p->frame) || other.map)
            continue;
        if (reach[other.node->index])
            return true;
    }
    return false;
}

static bool may_begin(struct exec *x, struct str name, const struct place *p)
{
    const struct position *pos = &x->view->content.position;
    unsigned char *reach;

    if (map_get(&pos->active, name) || plan_is_held(x, name)) /* an earlier visit is under way */
        return false;
    if (pos->ready.live + pos->active.live == 1 || p->node->arcs_in == 0)
        return true;
    reach = arena_alloc(&x->scratch, p->graph->nodes.n);
    mark_reaching(p->graph, p->node->index, reach);
    return !is_awaited(x, &pos->ready, name, p, reach) && !is_awaited(x, &pos->active, name, p, reach);
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

    return place_find(x->graph, name, &p) && may_begin(x, name, &p);
}

/* ---- beginning ---- */

int plan_waiting(const struct exec *x)
{
    int n = 0;

    for (const struct job *j = x->todo; j; j = j->next)
        n++;
    return n;
}

static bool has_room(const struct exec *x)
{
    return x->running + plan_waiting(x) < x->capacity && !x->halting;
}

static bool is_work(const struct spec_node *n)
{
    return n->type == SPEC_FUNCTION || n->type == SPEC_LUA || n->type == SPEC_EVENT_LOOP;
}

static void put_started(struct exec *x, const struct place *p, const char *name, int64_t visit, int64_t attempt,
                        const char *branch)
{
    struct json_out *o = exec_open_node(x, "node.started", name, visit);

    json_out_kstr_opt(o, STR("branch"), str_from(branch));
    if (attempt)
        json_out_kint(o, STR("attempt"), attempt);
    json_out_kstr(o, STR("effect"), str_from(spec_effect_words[p->node->effect]));
    exec_close(x);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_NODE_START,
                                            .node = name,
                                            .type = spec_node_words[p->node->type],
                                            .visit = visit,
                                            .items = p->map ? inner_count(x, p->frame) : 0,
                                            .attempt = (int)attempt + 1,
                                            .attempts = (int)p->node->retries + 1});
}

static void ask_person(struct exec *x, const struct place *p, const char *name, const struct task *t)
{
    AUTO(buf_done)
    struct buf inputs = BUF_INIT(SIZE_MAX / 4), text = BUF_INIT(sizeof(((struct seat_wait *)0)->question));
    struct blocked *b, **at = &x->blocked;
    struct tide_err err;
    struct str missing;
    struct json *v;

    if (!place_inputs(x, p, t, false, &inputs, &missing)) {
        end_failed(x, p, name, "missing_input",
                   arena_printf(&x->scratch, "it needs '%.*s', which nobody has set", STR_ARG(missing)), false);
        return;
    }
    if (json_parse(&x->scratch, buf_view(&inputs), NULL, &v, NULL, &err) ||
        body_text(p->node->question, v, &text, &err)) {
        end_failed(x, p, name, "template", err.msg, false);
        return;
    }
    b = mem_zero(sizeof *b);
    b->name = mem_dup(str_from(name));
    b->human = true;
    b->deadline_ms = p->node->deadline_ms;
    snprintf(b->wait.name, sizeof b->wait.name, "%.120s#%" PRId64, name, t->visit);
    b->wait.kind = spec_ask_words[p->node->kind];
    snprintf(b->wait.question, sizeof b->wait.question, "%s", buf_cstr(&text));
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
    const char *branch = t && t->branch ? arena_dup(&x->scratch, str_from(t->branch)).ptr : NULL;
    int64_t visit = (visits ? *visits : 0) + 1;
    char key[33];
    struct place p;

    if (!place_find(x->graph, str_from(name), &p) || !check_steps(x, name))
        return;
    name = arena_dup(&x->scratch, str_from(name)).ptr;
    if (!p.map)
        marks_before(x, &p, name);
    run_idempotency(key, x->run, arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit));
    put_started(x, &p, name, visit, 0, branch);
    if (reuse_effect(x, &p, name, visit))
        return;
    end_effect_started(x, &p, name, visit, key);
    do_node(x, &p, name);
}

/* ---- what an earlier run left ---- */

/* What is known of what it gave: values that were set for it. */
static struct str known_output(struct exec *x, const struct place *p)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    const struct map *scope = position_scope(&x->view->content, p->frame, false);
    struct json_out o = json_out_to(&out);

    json_out_begin(&o, '{');
    for (size_t i = 0; scope && i < p->node->outputs.n; i++) {
        const char *v = map_get(scope, p->node->outputs.at[i]);

        if (v)
            json_out_kraw(&o, p->node->outputs.at[i], str_from(v));
    }
    json_out_end(&o, '}');
    return arena_dup(&x->scratch, buf_view(&out));
}

/* It must happen once and was begun: only who knows more goes on. True: it is taken care of. */
static bool settle_once(struct exec *x, const struct place *p, const char *name)
{
    if (p->node->type != SPEC_FUNCTION || p->node->effect != SPEC_ONCE)
        return false;
    if (map_get(&x->run->happened, str_from(name))) {
        end_complete(x, p, name, known_output(x, p), 0);
        return true;
    }
    if (map_get(&x->run->retry, str_from(name)))
        return false;
    end_unsettled(x, name, "");
    return true;
}

static void begin_again(struct exec *x, const struct place *p, const char *name, const struct task *t, int64_t attempt)
{
    const char *branch = t->branch ? arena_dup(&x->scratch, str_from(t->branch)).ptr : NULL;
    int64_t visit = t->visit;
    char key[33];

    run_idempotency(key, x->run, arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit));
    put_started(x, p, name, visit, attempt, branch);
    end_effect_started(x, p, name, visit, key);
    do_node(x, p, name);
}

/* A map or a graph inside that was begun: what it holds goes on by itself. */
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
        put_started(x, &p, name, t->visit, 0, t->branch ? arena_dup(&x->scratch, str_from(t->branch)).ptr : NULL);
    } else if (t->state == TASK_FAILED) {
        if (!settle_once(x, &p, name))
            begin_again(x, &p, name, t, 0);
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

    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e)) {
        const struct task *t = e->value;
        struct place p;

        if (!place_find(x->graph, map_key(e), &p) || has_job(x, e->key))
            continue;
        *ret = t;
        if (t->state == TASK_RETRY && t->retry_at_ms <= now && !plan_is_held(x, map_key(e)))
            return arena_dup(&x->scratch, map_key(e)).ptr;
        if (t->state == TASK_DECIDING || (x->fresh && t->state != TASK_RETRY && !map_get(&x->looked, map_key(e))))
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
    map_put(&x->looked, str_from(name), x);
    take_up(x, name, t);
    return true;
}

/* ---- all of it ---- */

/* The oldest that may begin; `any`: they all wait for each other. */
static const char *find_ready(struct exec *x, bool any)
{
    const struct map *ready = &x->view->content.position.ready;
    const struct map_entry *best = NULL;

    for (struct map_entry *e = map_next(ready, NULL); e; e = map_next(ready, e)) {
        const struct task *t = e->value;
        struct place p;

        if ((best && ((const struct task *)best->value)->seq <= t->seq) || !place_find(x->graph, map_key(e), &p))
            continue;
        if (any ? !map_get(&x->view->content.position.active, map_key(e)) && !plan_is_held(x, map_key(e))
                : may_begin(x, map_key(e), &p))
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
        if (!has_room(x))
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
    const struct map *active = &x->view->content.position.active;
    int64_t at = INT64_MAX;

    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e)) {
        const struct task *t = e->value;

        if (t->state == TASK_RETRY && t->retry_at_ms < at && !plan_is_held(x, map_key(e)))
            at = t->retry_at_ms;
    }
    return at;
}
