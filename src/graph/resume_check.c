/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a graph can go on: first what holds whatever it starts from (who holds it, what it waits for), then whether the
 * graph that is given fits where it would start: every node that is open is there, has what it needs, and may run.
 */
#include <inttypes.h>

#include "base/nearest.h"
#include "graph/resume.h"
#include "session/status.h"
#include "session/token.h"

#define WORDS(o, ...) arena_printf(&(o)->arena, __VA_ARGS__)

/* ---- the session ---- */

static void refuse_err(struct outlook *o, const struct tide_err *err)
{
    outlook_refuse(o, REFUSED_FOR_GOOD, err->code, NULL, err->msg, "");
}

static void check_token(struct outlook *o, int64_t now_ms)
{
    int64_t answered = 0;
    struct tide_err err;

    if (o->opt->token && token_validate(o->s, str_from(o->opt->token), NULL, now_ms, &answered, &err))
        refuse_err(o, &err);
}

static void check_answer(struct outlook *o, const struct status *st)
{
    const struct run *r = &o->s->state->ledger.run;
    const char *id = o->s->head.id;
    bool waiting = strcmp(st->status, "waiting") == 0, given = o->opt->input || o->opt->token;

    if (waiting && !given && !o->opt->checkpoint)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                       WORDS(o, "session '%s' waits for %s%s%.200s", id, r->wait_kind ? r->wait_kind : "input",
                             r->question ? ": " : "", r->question ? r->question : ""),
                       "give the answer with --input TEXT, or go back before the question with --checkpoint ID");
    if (!waiting && o->opt->input)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                       WORDS(o, "session '%s' does not wait for an answer (%s)", id, st->reason),
                       r->waiting ? WORDS(o, "`tidemark token rotate %s` opens the wait again", id)
                                  : "resume it without --input");
    if (given && o->opt->checkpoint)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                       "an answer goes to the question, a checkpoint goes back to before it", "give one of them");
}

/* A run that can be continued, unless none is: then a new one begins where the position is. */
static void check_resumable(struct outlook *o, const struct status *st)
{
    const struct run *r = &o->s->state->ledger.run;

    if (r->end == RUN_NONE || r->end == RUN_COMPLETED || st->is_resumable)
        return;
    outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                   WORDS(o, "session '%s' cannot be resumed: %.300s", o->s->head.id, st->why), "");
}

enum tide_code outlook_state(struct outlook *o, struct tide_err *err)
{
    struct tide_session *s = o->s;
    int64_t now = env_now_ms(s->store->env);
    struct status st;

    if (!s->state->content.position.graph_seq) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_NOT_FOUND, NULL,
                       WORDS(o, "session '%s' never ran a graph", s->head.id), "`tidemark resume` goes on with others");
        return TIDE_OK;
    }
    if (session_held_alive(s))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_HELD, NULL,
                       WORDS(o, "session '%s' is held by %s", s->head.id, s->head.holder),
                       WORDS(o, "wait for it to end, or `tidemark cancel %s`", s->head.id));
    else if (session_refuse_living(s, err) == TIDE_ALIVE)
        refuse_err(o, err);
    err->code = TIDE_OK;
    status_derive(&st, s->state, session_held_alive(s), now);
    if (!session_held_alive(s))
        check_resumable(o, &st);
    check_token(o, now);
    check_answer(o, &st);
    return TIDE_OK;
}

/* ---- other names ---- */

struct ids {
    const struct spec_graph *g;
    size_t i;
};

static const char *next_id(void *arg)
{
    struct ids *ids = arg;

    return ids->i < ids->g->nodes.n ? ids->g->nodes.at[ids->i++].id.ptr : NULL;
}

static bool is_known(const struct outlook *o, const char *name)
{
    const struct content *c = &o->x->view->content;
    struct str n = str_from(name);
    struct place p;

    return map_get(&c->visits, n) || map_get(&c->position.ready, n) || map_get(&c->position.active, n) ||
           place_find(o->before ? o->before->spec->graph : o->x->graph, n, &p);
}

/* What runs inside a node is named after it. */
static bool has_inside(const struct outlook *o, const char *name)
{
    const struct map *scopes = &o->x->view->content.position.scopes;
    size_t len = strlen(name);

    for (struct map_entry *e = map_next(scopes, NULL); e; e = map_next(scopes, e))
        if (strncmp(e->key, name, len) == 0 && e->key[len] == '#')
            return true;
    return false;
}

static void check_rename(struct outlook *o, const char *from, const char *to)
{
    const struct position *pos = &o->x->view->content.position;
    const char *near = nearest(to, next_id, &(struct ids){o->x->graph, 0});
    const char *map = WORDS(o, "--map %s=%s: ", from, to);
    struct place p;

    if (!place_find(o->x->graph, str_from(to), &p) && is_known(o, to) && place_find(o->x->graph, str_from(from), &p))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, to,
                       WORDS(o, "%sthe wrong way round: the old name stands first", map),
                       WORDS(o, "--map %s=%s", to, from));
    else if (!place_find(o->x->graph, str_from(to), &p))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, to, WORDS(o, "%sthe graph has no node '%s'", map, to),
                       near ? WORDS(o, "did you mean '%s'?", near) : "");
    else if (!is_known(o, from))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, from, WORDS(o, "%sthe session knows no node '%s'", map, from),
                       "the old name stands first");
    else if (map_get(&pos->ready, str_from(to)) || map_get(&pos->active, str_from(to)))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, to,
                       WORDS(o, "%s'%s' is to be run as it is: two nodes cannot become one", map, to), "");
    else if (has_inside(o, from))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, from,
                       WORDS(o, "%s'%s' is in the middle of what runs inside it", map, from),
                       "take a checkpoint before it, or rename it when it is complete");
    else if (place_find(o->x->graph, str_from(from), &p))
        outlook_warn(
            o, WORDS(o, "node '%s' is in the graph as well: what is recorded of it counts for '%s' now", from, to));
}

static bool check_renames(struct outlook *o)
{
    size_t n = o->n_refused;

    for (const char *const *r = o->opt->renames; r && r[0] && r[1]; r += 2)
        check_rename(o, r[0], r[1]);
    return o->n_refused == n;
}

/* ---- into the draft ---- */

/* What the graph itself brings and is stored nowhere else. */
static enum tide_code take_own_secrets(struct exec *x, struct tide_err *err)
{
    AUTO(buf_done) struct buf ignored = BUF_INIT(SIZE_MAX / 4);

    return x->graph->memory ? exec_take_values(x, json_source(x->graph->memory), &ignored, err) : TIDE_OK;
}

enum tide_code resume_changes(struct exec *x, struct tide_err *err)
{
    AUTO(buf_done) struct buf stored = BUF_INIT(SIZE_MAX / 4);

    for (const char *const *r = x->opt->renames; r && r[0] && r[1]; r += 2) {
        struct json_out *o = exec_open(x, "node.renamed");

        json_out_kstr(o, STR("from"), str_from(r[0]));
        json_out_kstr(o, STR("to"), str_from(r[1]));
        json_out_kstr(o, STR("by"), str_from(x->opt->by ? x->opt->by : "local"));
        exec_close(x);
    }
    if (take_own_secrets(x, err) || (x->opt->memory && exec_take_values(x, str_from(x->opt->memory), &stored, err)))
        return err->code;
    if (stored.len > 2)
        exec_put_memory(x, "override", buf_view(&stored));
    return TIDE_OK;
}

/* ---- a node that is open ---- */

static bool is_named(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static const char *old_name(const struct outlook *o, const char *name)
{
    for (const char *const *r = o->opt->renames; r && r[0] && r[1]; r += 2)
        if (strcmp(r[1], name) == 0)
            return r[0];
    return name;
}

static void refuse_gone(struct outlook *o, const char *name)
{
    struct spec_diff diff;
    const struct spec_node *old = o->before ? spec_find(o->before->spec->graph, str_from(name)) : NULL;
    const char *remedy = "give the graph a node of this name, name the one it is now with --map OLD=NEW, or --fallback";

    if (old) {
        spec_compare(&o->arena, o->before->spec->graph, o->x->graph, &diff);
        if (diff.nodes[old->index].rename != SPEC_NONE)
            remedy = WORDS(o, "--map %s=%s if that is its new name", name,
                           o->x->graph->nodes.at[diff.nodes[old->index].rename].id.ptr);
    }
    outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, name,
                   WORDS(o, "node '%s', which is to run next, is not in this graph", name), remedy);
}

static const char *lost_output(const struct spec_node *old, const struct spec_node *new)
{
    for (size_t i = 0; i < old->outputs.n; i++) {
        size_t k = 0;

        while (k < new->outputs.n && !str_eq(new->outputs.at[k], old->outputs.at[i]))
            k++;
        if (k == new->outputs.n)
            return old->outputs.at[i].ptr;
    }
    return NULL;
}

/* One that was begun cannot become another; one that begins anew can. */
static void check_changed(struct outlook *o, const char *name, const struct task *t, const struct spec_node *new)
{
    const char *lost, *what = NULL;
    struct place p;

    if (!o->before || !place_find(o->before->spec->graph, str_from(old_name(o, name)), &p))
        return;
    lost = lost_output(p.node, new);
    if (p.node->type != new->type)
        what =
            WORDS(o, "node '%s' was %s and is %s now", name, spec_node_words[p.node->type], spec_node_words[new->type]);
    else if (lost)
        what = WORDS(o, "node '%s' no longer sets '%s'", name, lost);
    if (what && (t->state == TASK_READY || t->state == TASK_FAILED))
        outlook_warn(o, what);
    else if (what)
        outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, name, WORDS(o, "%s, and it was cut half-way", what),
                       "go on with the graph it ran, or take a checkpoint before it (--checkpoint, --fallback)");
}

/* False: it is there already. */
static bool note_missing(struct outlook *o, const char *node, struct str key, bool secret, bool later)
{
    for (size_t i = 0; i < o->n_missing; i++)
        if (strcmp(o->missing[i].node, node) == 0 && str_eq(str_from(o->missing[i].key), key))
            return false;
    if (o->n_missing == o->cap_missing) {
        o->cap_missing = o->cap_missing ? o->cap_missing * 2 : 8;
        o->missing = mem_grow(o->missing, o->cap_missing * sizeof *o->missing);
    }
    o->missing[o->n_missing++] =
        (struct missing){arena_dup(&o->arena, str_from(node)).ptr, arena_dup(&o->arena, key).ptr, secret, later};
    return true;
}

static void add_missing(struct outlook *o, const char *node, struct str key, bool later)
{
    bool secret = exec_is_excluded(o->x, key);

    if (!note_missing(o, node, key, secret, later))
        return;
    if (later)
        outlook_warn(o, WORDS(o, "node '%s', which may come later, needs '%.*s', which is never stored: --set %.*s=…",
                              node, STR_ARG(key), STR_ARG(key)));
    else
        outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, node,
                       WORDS(o, "node '%s' needs '%.*s', which %s", node, STR_ARG(key),
                             secret ? "is never stored and was not given again" : "nobody has set"),
                       WORDS(o, "--set %.*s=…", STR_ARG(key)));
}

/* Those that are still to come from others that are open are not missed yet. */
static void check_inputs(struct outlook *o, const char *name, const struct task *t, const struct place *p)
{
    const struct position *pos = &o->x->view->content.position;
    bool alone = pos->ready.live + pos->active.live == 1;
    struct map *given = &o->x->secrets;
    struct str missing[64];
    size_t n = 0;

    if (t->state == TASK_DECIDING || (t->state == TASK_READY && !alone) || is_named(o->opt->happened, name) ||
        map_get(&pos->scopes, str_from(place_frame(&o->arena, name, t->visit))))
        return;
    while (n < sizeof missing / sizeof missing[0]) {
        AUTO(buf_done) struct buf ignored = BUF_INIT(SIZE_MAX / 4);

        if (place_inputs(o->x, p, t, true, &ignored, &missing[n]))
            break;
        map_set_text(given, missing[n++], STR("null")); /* so that the next one is told */
    }
    for (size_t i = 0; i < n; i++) {
        map_drop(given, missing[i]);
        add_missing(o, name, missing[i], false);
    }
}

static bool is_stuck(const struct task *t, const struct place *p)
{
    return p->node->type == SPEC_FUNCTION && p->node->effect == SPEC_ONCE &&
           (t->state == TASK_RUNNING || t->state == TASK_FAILED);
}

static void check_once(struct outlook *o, const char *name, const struct task *t, const struct place *p)
{
    bool inside = p->frame.len && p->node->outputs.n; /* nobody can say what it gave */

    if (!is_stuck(t, p) || is_named(o->opt->retry, name) || is_named(o->opt->happened, name))
        return;
    outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_UNSETTLED, name,
                   WORDS(o, "node '%s' must happen once and %s", name, t->state == TASK_FAILED ? "failed" : "was cut"),
                   inside ? WORDS(o, "--retry '%s' runs it again, if it did not happen", name)
                          : WORDS(o, "find out whether it happened, then --happened %s or --retry %s", name, name));
}

/* ---- what was allowed by name ---- */

static void check_named(struct outlook *o, const char *option, const char *const *names)
{
    for (; names && *names; names++) {
        const struct task *t = map_get(&o->x->view->content.position.active, str_from(*names));
        struct place p;

        if (!t || !place_find(o->x->graph, str_from(*names), &p) || !is_stuck(t, &p))
            outlook_refuse(
                o, REFUSED_FOR_GOOD, TIDE_INVALID, *names,
                WORDS(o, "%s %s: no node of this name that must happen once failed or was cut", option, *names),
                "leave it out");
    }
}

static bool has_text(const struct spec_texts *list, struct str text)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->at[i], text))
            return true;
    return false;
}

/* What it gave is known from the memory alone: nodes behind it must not find nothing where it has promised something. */
static void check_happened(struct outlook *o, const char *name)
{
    AUTO(buf_done) struct buf keys = BUF_INIT((size_t)1 << 20), sets = BUF_INIT((size_t)1 << 20);
    const struct map *scope;
    struct place p;

    if (!map_get(&o->x->view->content.position.active, str_from(name)) || !place_find(o->x->graph, str_from(name), &p))
        return;
    scope = p.map ? NULL : position_scope(&o->x->view->content, p.frame, false);
    for (size_t i = 0; i < p.node->outputs.n; i++) {
        struct str key = p.node->outputs.at[i];

        if (has_text(&p.node->nullable_outputs, key) || exec_is_excluded(o->x, key) || (scope && map_get(scope, key)))
            continue;
        buf_addf(&keys, "%s%.*s", keys.len ? ", " : "", STR_ARG(key));
        buf_addf(&sets, "%s--set %.*s=…", sets.len ? " " : "", STR_ARG(key));
        if (!p.frame.len)
            note_missing(o, name, key, false, false);
    }
    if (keys.len && p.frame.len)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, name,
                       WORDS(o, "--happened %s: what it gave (%s) is not known, and inside a %s no value can be set",
                             name, buf_cstr(&keys), p.map ? "map" : "graph of a node"),
                       WORDS(o, "--retry '%s' runs it again; --checkpoint goes back to before it", name));
    else if (keys.len)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, name,
                       WORDS(o, "--happened %s: outputs of %s stay unset (%s)", name, name, buf_cstr(&keys)),
                       buf_cstr(&sets));
}

static void check_all_happened(struct outlook *o)
{
    check_named(o, "--happened", o->opt->happened);
    for (const char *const *name = o->opt->happened; name && *name; name++)
        check_happened(o, *name);
}

/* ---- how far it may go ---- */

static void check_steps(struct outlook *o)
{
    const struct position *p = &o->x->view->content.position;
    int64_t most = o->x->graph->max_steps;

    if (most && p->ready.live && p->steps >= most)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                       WORDS(o, "max_steps: %" PRId64 " nodes have run, and the graph allows %" PRId64, p->steps, most),
                       "--graph NEW.json with a higher max_steps");
}

/* ---- secrets that are needed later ---- */

static void mark_after(const struct spec_graph *g, unsigned char *reach)
{
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < g->n_arcs; i++)
            if (reach[g->arcs[i].from] && !reach[g->arcs[i].to])
                reach[g->arcs[i].to] = grown = true;
    }
}

static void mark_open(const struct spec_graph *g, const struct map *tasks, unsigned char *reach)
{
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        const struct spec_node *n = spec_find(g, (struct str){e->key, strcspn(e->key, "#/[")});

        if (n)
            reach[n->index] = 1;
    }
}

static void check_later(struct outlook *o)
{
    const struct spec_graph *g = o->x->graph;
    const struct content *c = &o->x->view->content;
    unsigned char *reach = arena_zero(&o->arena, g->nodes.n + 1);

    mark_open(g, &c->position.ready, reach);
    mark_open(g, &c->position.active, reach);
    mark_after(g, reach);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct spec_texts *in = &g->nodes.at[i].inputs;

        for (size_t k = 0; reach[i] && k < in->n; k++)
            if (exec_is_excluded(o->x, in->at[k]) && !map_get(&o->x->secrets, in->at[k]) &&
                !map_get(&c->memory, in->at[k]))
                add_missing(o, g->nodes.at[i].id.ptr, in->at[k], true);
    }
}

/* ---- what would happen again ---- */

/* In a fork it would happen again: nothing of it is recorded there. */
static void refuse_again(struct outlook *o, const struct tide_err *err)
{
    const char *from = strstr(err->msg, "once: "), *to = strrchr(err->msg, ';');

    outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_EFFECTS, NULL,
                   WORDS(o, "in a fork at checkpoint '%s' this would happen again, and must happen once: %.*s",
                         o->checkpoint, from && to > from ? (int)(to - from - 6) : 0, from ? from + 6 : ""),
                   "--redo-effects lets it");
}

/* Nobody can tell what happened after it. Whoever wants another checkpoint anyway gets a fork: the session stays as it is. */
static void check_unreadable(struct outlook *o, const struct tide_err *err)
{
    const char *what = WORDS(
        o, "what happened after checkpoint '%s' cannot be read, nor what of it must not happen again", o->checkpoint);

    if (!o->opt->fallback) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_CORRUPT, NULL, WORDS(o, "%s (%.120s)", what, err->msg),
                       "look, then --redo-effects goes back all the same");
        return;
    }
    outlook_warn(o, what);
    o->fork = o->anew = true;
    o->rollback = false;
}

static enum tide_code check_effects(struct outlook *o, struct tide_err *err)
{
    unsigned reuse = o->opt->rollback & TIDE_ROLLBACK_REUSE_EFFECTS;
    enum tide_code code;

    if (!o->rollback && !o->fork)
        return TIDE_OK;
    if (o->anew && reuse) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                       "--reuse-effects: a fork has no effects of its own that could be used again",
                       "--redo-effects lets them happen in it");
        return TIDE_OK;
    }
    code = rollback_check(o->s, o->seq, o->opt->rollback, err);
    if (code == TIDE_EFFECTS && o->fork)
        refuse_again(o, err);
    else if (code == TIDE_EFFECTS || code == TIDE_INVALID)
        refuse_err(o, err);
    else if (code == TIDE_CORRUPT)
        check_unreadable(o, err);
    else
        return code;
    return TIDE_OK;
}

/* ---- all of it ---- */

static enum tide_code open_view(struct outlook *o, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct exec *x = o->x;

    state_free(TAKE(x->view));
    map_done(&x->secrets, free);
    map_done(&x->cursors, free); /* of another state */
    draft_reset(&x->draft);
    state_encode(&text, o->then, STATE_ALL);
    return state_decode(buf_view(&text), &x->view, err);
}

static void check_tasks(struct outlook *o, const struct map *tasks)
{
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        struct place p;

        if (!place_find(o->x->graph, map_key(e), &p)) {
            refuse_gone(o, e->key);
            continue;
        }
        check_changed(o, e->key, e->value, p.node);
        check_inputs(o, e->key, e->value, &p);
        check_once(o, e->key, e->value, &p);
    }
}

enum tide_code outlook_judge(struct outlook *o, struct tide_err *err)
{
    enum tide_code code = open_view(o, err);

    if (!code && !o->then->content.position.graph_seq) {
        outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, NULL,
                       WORDS(o, "checkpoint '%s' is from before the graph began", o->checkpoint), "take a later one");
        return TIDE_OK;
    }
    if (!code && check_renames(o))
        code = resume_changes(o->x, err);
    if (code == TIDE_INVALID) {
        refuse_err(o, err);
        return TIDE_OK;
    }
    if (code)
        return code;
    check_tasks(o, &o->x->view->content.position.active);
    check_tasks(o, &o->x->view->content.position.ready);
    check_named(o, "--retry", o->opt->retry);
    check_all_happened(o);
    check_steps(o);
    check_later(o);
    return check_effects(o, err);
}
