/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When there is a checkpoint, and which ones go. A checkpoint is an event in the batch of what it marks, so it is never
 * ahead of the truth and costs no sync of its own; what it marks is the log up to there, so its size does not follow the memory's.
 */
#include <inttypes.h>

#include "graph/exec.h"
#include "session/usage_json.h"

/* ---- those that are there ---- */

static void remember_checkpoint(struct kept_checkpoints *m, const char *id, bool clean)
{
    MEM_ROOM(m->at, m->n, m->cap);
    snprintf(m->at[m->n].id, TIDE_ID_SIZE, "%s", id);
    m->at[m->n++].clean = clean;
}

struct earlier {
    struct kept_checkpoints checkpoints_kept;
    int64_t before;
};

static int take_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    struct earlier *e = arg;

    if (c->seq < e->before)
        remember_checkpoint(&e->checkpoints_kept, c->id, c->is_clean);
    return 0;
}

/* Those of earlier runs are only looked for when some are to go. */
static void find_earlier(struct exec *x)
{
    struct earlier e = {.before = x->view->ledger.run.active_seq};
    struct tide_err ignored;

    if (x->view->ledger.checkpoints <= 0) { /* as the run found it: those of this run are not added to the view */
        x->checkpoints_kept.found = true;
        return;
    }
    if (run_flush(x->run, &ignored))
        return; /* listing would get a failure of the queue instead of the run, which would lose it */
    x->checkpoints_kept.found = true;
    if (tide_checkpoint_list(x->s, NULL, take_checkpoint, &e, &ignored)) {
        free(e.checkpoints_kept.at);
        return; /* cannot be listed: they stay */
    }
    for (size_t i = 0; i < x->checkpoints_kept.n; i++)
        remember_checkpoint(&e.checkpoints_kept, x->checkpoints_kept.at[i].id, x->checkpoints_kept.at[i].clean);
    free(x->checkpoints_kept.at);
    x->checkpoints_kept.at = e.checkpoints_kept.at;
    x->checkpoints_kept.n = e.checkpoints_kept.n;
    x->checkpoints_kept.cap = e.checkpoints_kept.cap;
}

static bool is_pruned(const struct exec *x, size_t i, size_t keep_from)
{
    return i < keep_from || (x->checkpoints.keep_clean_only && !x->checkpoints_kept.at[i].clean);
}

static void prune_checkpoints(struct exec *x)
{
    struct kept_checkpoints *m = &x->checkpoints_kept;
    size_t max = (size_t)x->checkpoints.max_per_session, from, kept = 0, n = 0;
    struct json_out *o;

    m->nodes = 0;
    if (!m->found)
        find_earlier(x);
    from = max && m->n > max ? m->n - max : 0;
    for (size_t i = 0; i < m->n; i++)
        n += is_pruned(x, i, from);
    if (!n)
        return;
    o = exec_open(x, "checkpoint.deleted");
    json_out_key(o, STR("checkpoint_ids"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < m->n; i++) {
        if (is_pruned(x, i, from))
            json_out_str(o, str_from(m->at[i].id));
        else
            m->at[kept++] = m->at[i];
    }
    json_out_end(o, ']');
    json_out_kstr(o, STR("reason"), STR("pruned"));
    exec_close_mark(x);
    INVARIANT(kept + n == m->n);
    m->n = kept;
}

/* ---- making one ---- */

/* Whether everything else stands still: what is half-way done could not be continued with from here. */
static bool is_settled(struct exec *x, const char *but)
{
    const struct task *t;

    for (struct map_entry *e = tasks_next(x, NULL, &t); e; e = tasks_next(x, e, &t)) {
        struct place p;

        if (t->state != TASK_RUNNING || (but && strcmp(e->key, but) == 0)) /* one that is deciding asks again */
            continue;
        if (!place_find(x->graph, map_key(e), &p) || (p.node->type != SPEC_SUBGRAPH && p.node->type != SPEC_MAP))
            return false;
    }
    return true;
}

static void put_count(struct json_out *o, const char *key, int64_t n)
{
    if (n)
        json_out_kint(o, str_from(key), n);
}

/* What is zero is left out: this is written with every node. */
static void write_metrics(const struct exec *x, struct json_out *o)
{
    const struct position *p = &x->view->content.position;
    const struct tide_usage usage = usage_of(&x->s->state->ledger);
    size_t n = 0;

    json_out_key(o, STR("metrics"));
    json_out_begin(o, '{');
    json_out_kint(o, STR("steps"), p->steps);
    put_count(o, "total_retries", p->retries);
    if (p->troubles.live) {
        json_out_key(o, STR("nodes_with_failures"));
        json_out_begin(o, '[');
        for (struct map_entry *e = map_next(&p->troubles, NULL); e && n++ < 100; e = map_next(&p->troubles, e))
            json_out_str(o, map_key(e));
        json_out_end(o, ']');
    }
    usage_put(o, &usage, USAGE_NONZERO);
    put_count(o, "degraded_events", x->s->state->ledger.run.degraded + (int64_t)x->run->backlog.n);
    json_out_end(o, '}');
}

static void write_mark(struct exec *x, struct json_out *o, const char *id, enum tide_checkpoint_type type,
                       const char *node, const char *next, const char *description, bool settled)
{
    bool clean = x->view->content.failures == 0 && x->s->state->content.failures == 0;
    char says[CHECKPOINT_SAYS];

    json_out_kstr(o, STR("checkpoint_id"), str_from(id));
    json_out_kstr(o, STR("type"), str_from(tide_checkpoint_type_name(type)));
    if (x->s->state->content.turn)
        json_out_kint(o, STR("turn"), x->s->state->content.turn);
    json_out_kstr_opt(o, STR("node"), str_from(node));
    json_out_kstr_opt(o, STR("next_node"), str_from(next));
    json_out_kbool(o, STR("is_clean"), clean);
    json_out_kbool(o, STR("can_resume_from"), settled);
    json_out_kstr(
        o, STR("description"),
        str_from(description ? description : checkpoint_describe(says, type, node, next, x->s->state->content.turn)));
    write_metrics(x, o);
    remember_checkpoint(&x->checkpoints_kept, id, clean);
    if (settled)
        snprintf(x->view->content.resume_checkpoint, TIDE_ID_SIZE, "%s", id);
    x->checkpoints_kept.changed = 0;
    x->checkpoints_kept.made_steps++;
}

static void make_checkpoint(struct exec *x, enum tide_checkpoint_type type, const char *node, const char *next,
                            const char *description, const char *but)
{
    char id[TIDE_ID_SIZE];
    struct json_out *o = exec_open(x, "checkpoint");

    session_make_id(x->s->store, "ckpt", id);
    write_mark(x, o, id, type, node, next, description, is_settled(x, but));
    exec_close_mark(x);
    exec_note(x, &(struct tide_graph_event){
                     .what = TIDE_GRAPH_CHECKPOINT, .node = node, .checkpoint_type = type, .text = id});
}

/* ---- when ---- */

static bool is_risky(const struct exec *x, const struct spec_node *n)
{
    const struct str names[] = {n->id, str_from(spec_node_words[n->type]), n->callback,
                                n->program.n ? n->program.at[0] : STR("")};
    const struct spec_texts *risky = &x->checkpoints.risky_nodes;

    for (size_t i = 0; i < risky->n; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (names[k].len && str_eq(risky->at[i], names[k]))
                return true;
    return false;
}

void checkpoint_before(struct exec *x, const struct place *p, const char *name)
{
    bool risky = is_risky(x, p->node);

    if (x->checkpoints.on_node_start || risky)
        make_checkpoint(x, TIDE_CHECKPOINT_NODE_START, name, name, risky ? "before a risky node" : NULL, NULL);
}

void checkpoint_after(struct exec *x, const struct place *p, const char *name, int64_t ms, const char *next)
{
    const struct spec_checkpoints *c = &x->checkpoints;
    uint64_t before = x->checkpoints_kept.made_steps;
    char why[80];

    if (p->node->safe_point)
        make_checkpoint(x, TIDE_CHECKPOINT_SAFE_POINT, name, next, NULL, NULL);
    if (c->on_node_complete)
        make_checkpoint(x, TIDE_CHECKPOINT_NODE_COMPLETE, name, next, NULL, NULL);
    if (before == x->checkpoints_kept.made_steps && c->slow_node_ms && ms >= c->slow_node_ms) {
        snprintf(why, sizeof why, "after a slow node: %" PRId64 ".%03" PRId64 " s", ms / 1000, ms % 1000);
        make_checkpoint(x, TIDE_CHECKPOINT_SAFE_POINT, name, next, why, NULL);
    }
    if (before == x->checkpoints_kept.made_steps && c->memory_delta_keys &&
        x->checkpoints_kept.changed >= c->memory_delta_keys) {
        snprintf(why, sizeof why, "%" PRId64 " keys of the memory changed", x->checkpoints_kept.changed);
        make_checkpoint(x, TIDE_CHECKPOINT_SAFE_POINT, name, next, why, NULL);
    }
    if (c->prune_after_node_count && ++x->checkpoints_kept.nodes >= c->prune_after_node_count)
        prune_checkpoints(x);
}

void checkpoint_edge(struct exec *x, const char *from, const char *to)
{
    if (x->checkpoints.on_edge)
        make_checkpoint(x, TIDE_CHECKPOINT_EDGE_TRANSITION, from, to, NULL, NULL);
}

void checkpoint_wait(struct exec *x, const char *name, const char *question)
{
    char text[120];

    snprintf(text, sizeof text, "before asking: %.100s", question);
    make_checkpoint(x, TIDE_CHECKPOINT_USER, name, name, text, name);
}

/* It is on disk by now: the agent has appended it, and has continued or ended. */
void checkpoint_tell_turn(struct job *j)
{
    if (!j->turn_mark[0])
        return;
    exec_note(j->x, &(struct tide_graph_event){.what = TIDE_GRAPH_CHECKPOINT,
                                               .node = j->name,
                                               .checkpoint_type = TIDE_CHECKPOINT_LOOP_ITERATION,
                                               .text = j->turn_mark});
    j->turn_mark[0] = 0;
}

/* With the lock; into the agent's draft, because it is part of what the agent appends. */
void checkpoint_turn(void *job, struct draft *d, int64_t turn)
{
    struct job *j = job;
    struct exec *x = j->x;
    const struct spec_checkpoints *c = &x->checkpoints;
    char id[TIDE_ID_SIZE], why[64];

    checkpoint_tell_turn(j);
    if (!c->on_loop_iteration && !c->every_n_iterations)
        return;
    if (c->every_n_iterations && turn % c->every_n_iterations != 0)
        return;
    snprintf(why, sizeof why, "after turn %" PRId64, turn);
    session_make_id(x->s->store, "ckpt", id);
    draft_open(d, "checkpoint");
    write_mark(x, &d->out, id, TIDE_CHECKPOINT_LOOP_ITERATION, j->name, j->name, why, is_settled(x, j->name));
    draft_close(d);
    memcpy(j->turn_mark, id, sizeof id);
}
