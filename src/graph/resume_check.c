/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a graph can continue: first what holds whatever it starts from (who holds it, what it waits for), then whether it can
 * start there: the names and values that are given, its nodes (resume_check_nodes.c), what would happen again.
 */
#include "graph/resume.h"
#include "session/settle.h"
#include "session/status.h"
#include "session/token.h"

/* ---- the session ---- */

static void refuse_err(struct outlook *o, const struct tide_err *err)
{
    outlook_refuse(o, REFUSED_FOR_GOOD, err->code, NULL, err->msg);
    memcpy(o->refused[o->n_refused - 1].hints, err->hints, sizeof err->hints);
}

static void check_answer(struct outlook *o, const struct status *st)
{
    const struct run *r = &o->s->state->ledger.run;
    const char *id = o->s->head.id;
    bool due = strcmp(st->reason, "due") == 0; /* a default has answered it: it continues, and takes no other answer */
    bool waiting = st->status == TIDE_STATUS_WAITING && !due, given = o->opt->input || o->opt->token;

    if (waiting && !given && !o->opt->checkpoint && !o->opt->message &&
        !(o->s->state->ledger.queue.live && settle_takes_queue(r))) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_WRONG_STATE, NULL,
                       WORDS(o, "session '%s' waits for %s%s%.200s", id, r->wait_kind ? r->wait_kind : "input",
                             r->question ? ": " : "", r->question ? r->question : ""));
        outlook_hint(o, TIDE_ACTION_ANSWER,
                     WORDS(o, "\"kind\":%s,\"input\":null", outlook_quote(o, r->wait_kind ? r->wait_kind : "input")));
        outlook_hint(o, TIDE_ACTION_RESUME, "\"checkpoint\":null");
    }
    if (!waiting && o->opt->input) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_WRONG_STATE, NULL,
                       WORDS(o, "session '%s' does not wait for an answer: %s", id, status_in_short(st)));
        if (r->waiting && !due)
            outlook_hint(o, TIDE_ACTION_ROTATE_TOKEN, "");
        else
            outlook_repeat(o, "\"input\":false");
    }
    if (given && o->opt->checkpoint)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                       "an answer and a checkpoint before the question cannot be combined: give one of them");
}

enum tide_code outlook_state(struct outlook *o, struct tide_err *err)
{
    struct tide_session *s = o->s;
    const struct run *r = &s->state->ledger.run;
    int64_t now = env_now_ms(s->store->env), answered = 0;
    struct tide_err wrong;
    struct status st;

    if (!s->state->content.position.graph_seq) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_NOT_FOUND, NULL,
                       WORDS(o, "session '%s' never ran a graph", s->head.id));
        outlook_hint(o, TIDE_ACTION_RESUME, "");
        return TIDE_OK;
    }
    if (session_held_alive(s)) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_HELD, NULL,
                       WORDS(o, "session '%s' is held by %s: wait for it to end", s->head.id, s->head.holder));
        outlook_hint(o, TIDE_ACTION_CANCEL, "");
    } else if (session_refuse_living(s, err) == TIDE_ALIVE)
        refuse_err(o, err);
    err->code = TIDE_OK;
    status_derive(&st, s->state, session_held_alive(s), now);
    /* a run that can be continued, unless none is: then a new one begins where the position is */
    if (!session_held_alive(s) && r->end != RUN_NONE && r->end != RUN_COMPLETED && !st.is_resumable)
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_WRONG_STATE, NULL,
                       WORDS(o, "session '%s' cannot be resumed: %.300s", s->head.id, st.why));
    if (o->opt->token && token_validate(s, str_from(o->opt->token), NULL, now, &answered, &wrong))
        refuse_err(o, &wrong);
    check_answer(o, &st);
    return TIDE_OK;
}

/* ---- other names ---- */

static bool was_there(const struct outlook *o, const char *name)
{
    struct place p;

    return place_find(o->before ? o->before->spec->graph : o->x->graph, str_from(name), &p);
}

static bool is_known(const struct outlook *o, const char *name)
{
    const struct content *c = &o->x->view->content;
    struct str n = str_from(name);

    return map_get(&c->visits, n) || map_get(&c->position.ready, n) || map_get(&c->position.active, n) ||
           was_there(o, name);
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

/* If no name is similar, all are listed, if they are few. */
static const char *all_nodes(struct outlook *o)
{
    const struct spec_graph *g = o->x->graph;
    const char *all = "it has";

    for (size_t i = 0; i < g->nodes.n && i < 8; i++)
        all = WORDS(o, "%s%s %.*s", all, i ? "," : "", STR_ARG(g->nodes.at[i].id));
    return g->nodes.n > 8 ? WORDS(o, "%s, …", all) : all;
}

static void check_rename(struct outlook *o, const char *from, const char *to)
{
    const struct position *pos = &o->x->view->content.position;
    const char *map = WORDS(o, "'%s' for '%s': ", to, from);
    const char *likely = NULL;
    struct place p;

    if (!place_find(o->x->graph, str_from(to), &p))
        likely = outlook_likely(o, from, to);
    if (!place_find(o->x->graph, str_from(to), &p) && is_known(o, to) && place_find(o->x->graph, str_from(from), &p)) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, to,
                       WORDS(o, "%sthe wrong way round: the old name comes first", map));
        outlook_repeat(o, WORDS(o, "\"map\":{%s:%s}", outlook_quote(o, to), outlook_quote(o, from)));
    } else if (!place_find(o->x->graph, str_from(to), &p))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, to,
                       WORDS(o, "%sthe graph has no node '%s': %s", map, to,
                             likely ? WORDS(o, "did you mean '%s'?", likely) : all_nodes(o)));
    else if (!is_known(o, from))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, from,
                       WORDS(o, "%sthe session has no node '%s': the old name comes first", map, from));
    else if (map_get(&pos->ready, str_from(to)) || map_get(&pos->active, str_from(to)))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, to,
                       WORDS(o, "%s'%s' is to be run as it is: two nodes cannot become one", map, to));
    else if (has_inside(o, from))
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, from,
                       WORDS(o,
                             "%s'%s' is in the middle of what runs inside it: take a checkpoint before it, or rename "
                             "it when it is complete",
                             map, from));
    else if (place_find(o->x->graph, str_from(from), &p) && was_there(o, to)) {
        outlook_refuse(
            o, REFUSED_FOR_GOOD, TIDE_INVALID, from,
            WORDS(o, "%s'%s' is in this graph, and '%s' is another node that was there before", map, from, to));
        outlook_repeat(o, "\"map\":false");
    } else if (place_find(o->x->graph, str_from(from), &p))
        outlook_warn(o, WORDS(o, "node '%s' is in the graph as well: its records apply to '%s' now", from, to));
}

/* One node has one new name. */
static bool check_alone(struct outlook *o, const char *const *rename)
{
    for (const char *const *r = o->opt->renames; r < rename; r += 2)
        if (strcmp(r[0], rename[0]) == 0) {
            outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, r[0],
                           WORDS(o, "'%s' gets two new names, '%s' and '%s': give one of them", r[0], r[1], rename[1]));
            return false;
        }
    return true;
}

static bool check_renames(struct outlook *o)
{
    size_t n = o->n_refused;

    for (const char *const *r = o->opt->renames; r && r[0] && r[1]; r += 2)
        if (check_alone(o, r))
            check_rename(o, r[0], r[1]);
    return o->n_refused == n;
}

/* ---- into the draft ---- */

enum tide_code resume_changes(struct exec *x, struct tide_err *err)
{
    const struct map *scopes = &x->view->content.position.scopes;
    AUTO(buf_done) struct buf stored = BUF_INIT(SIZE_MAX / 4), own = BUF_INIT(SIZE_MAX / 4);

    for (const char *const *r = x->opt->renames; r && r[0] && r[1]; r += 2) {
        struct json_out *o = exec_open(x, "node.renamed");

        json_out_kstr(o, STR("from"), str_from(r[0]));
        json_out_kstr(o, STR("to"), str_from(r[1]));
        json_out_kstr(o, STR("by"), str_from(x->opt->by ? x->opt->by : "local"));
        exec_close(x);
    }
    /* what the graph itself brings is in the memory, but for what is stored nowhere */
    if ((x->graph->memory && exec_take_values(x, json_source(x->graph->memory), &own, err)) ||
        (x->opt->memory && exec_take_values(x, str_from(x->opt->memory), &stored, err)))
        return err->code;
    if (stored.len <= 2)
        return TIDE_OK;
    exec_put_memory(x, "override", NULL, buf_view(&stored));
    for (struct map_entry *e = map_next(scopes, NULL); e; e = map_next(scopes, e)) /* of maps in the graph itself */
        if (e->key[e->key_len - 1] == ']' && !strchr(e->key, '/'))
            exec_put_memory(x, "override", e->key, buf_view(&stored));
    return TIDE_OK;
}

/* ---- what would happen again ---- */

/* In a fork it would happen again: nothing of it is recorded there. */
static void refuse_in_fork(struct outlook *o, const char *names)
{
    outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_EFFECTS, NULL,
                   WORDS(o, "in a fork at checkpoint '%s' this would happen again, and must happen once: %s",
                         o->checkpoint, names));
    outlook_repeat(o, "\"redo_effects\":true");
}

/* What happened after it is not known. A person who wants another checkpoint gets a fork: the session stays as
 * it is. */
static void check_unreadable(struct outlook *o, const struct tide_err *err)
{
    const char *what = WORDS(
        o, "events after checkpoint '%s' cannot be read, so it is unknown what must not happen again", o->checkpoint);

    if (!o->opt->fallback) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_CORRUPT, NULL,
                       WORDS(o, "%s (%.120s): find out what happened", what, err->msg));
        outlook_repeat(o, "\"redo_effects\":true");
        return;
    }
    outlook_warn(o, what);
    o->fork = o->anew = true;
    o->rollback = false;
}

static bool has_once(const struct spec_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        for (const struct spec_node *n = &g->nodes.at[i]; n; n = n->node)
            if (node_is_once(n) || (n->graph && has_once(n->graph)))
                return true;
    return false;
}

/* There is no recorded result, and it may have happened: it never runs again unless it is allowed. */
static void check_kept(struct outlook *o)
{
    AUTO(buf_done) struct buf again = BUF_INIT(SIZE_MAX / 4);

    for (struct map_entry *e = o->kept ? map_next(&o->kept->past.effects, NULL) : NULL; e;
         e = map_next(&o->kept->past.effects, e)) {
        const struct kept_effect *f = e->value;

        if (!outlook_is_unsettled(o, f))
            continue;
        if (o->fork)
            buf_addf(&again, "%s%s (it failed)", again.len ? ", " : "", f->now);
        else
            outlook_ask(o, f->now, f->past.state == PAST_FAILED ? "failed" : "was interrupted");
    }
    if (again.len)
        refuse_in_fork(o, buf_cstr(&again));
}

static enum tide_code check_effects(struct outlook *o, struct tide_err *err)
{
    AUTO(buf_done) struct buf names = BUF_INIT(400);
    unsigned reuse = o->opt->rollback & TIDE_ROLLBACK_REUSE_EFFECTS;
    enum tide_code code;

    if (!o->rollback && !o->fork) {
        if (o->unreadable && (has_once(o->x->graph) || (o->before && has_once(o->before->spec->graph)))) {
            outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_CORRUPT, NULL,
                           WORDS(o, "%s: find out what happened",
                                 o->s->state->ledger.rollbacks
                                     ? "it was rolled back, and the events that must not happen again cannot be read"
                                     : "the graph has changed, and the events that must not happen again cannot be "
                                       "read"));
            outlook_repeat(o, "\"checkpoint\":null,\"redo_effects\":true");
        }
        check_kept(o);
        return TIDE_OK;
    }
    if (o->anew && reuse) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL, "a fork has no effects of its own to reuse");
        outlook_repeat(o, "\"reuse_effects\":false");
        outlook_repeat(o, "\"redo_effects\":true");
        return TIDE_OK;
    }
    code = rollback_check(o->s, o->seq, o->opt->rollback, &names, err);
    if (!code && reuse && o->unreadable) /* what is to be reused is not known */
        code = tide_fail(err, TIDE_CORRUPT, "the log is damaged");
    if (code == TIDE_EFFECTS && o->fork)
        refuse_in_fork(o, buf_cstr(&names));
    else if (code == TIDE_EFFECTS || code == TIDE_INVALID)
        refuse_err(o, err);
    else if (code == TIDE_CORRUPT)
        check_unreadable(o, err);
    else if (!code)
        check_kept(o);
    return code == TIDE_EFFECTS || code == TIDE_INVALID || code == TIDE_CORRUPT ? TIDE_OK : code;
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

/*
 * What was rolled back and must not happen again, as it will be when it starts there. Another graph may no longer say what
 * must happen once: what is open and began as such is known from there, too.
 */
static enum tide_code read_kept(struct outlook *o, struct tide_err *err)
{
    const char *before = o->s->state->content.position.graph_digest;
    bool changed = before && strcmp(before, o->x->g->digest) != 0;
    enum tide_code code;

    if (!o->rollback && !o->fork && !o->s->state->ledger.rollbacks && !changed)
        return TIDE_OK;
    code = kept_load(o->s->store, &o->s->head, &o->kept, err);
    o->unreadable = code == TIDE_CORRUPT;
    if ((o->rollback || o->fork) && o->opt->rollback & TIDE_ROLLBACK_REDO_EFFECTS)
        past_effects_forget(&o->kept->past, o->seq);
    return o->unreadable ? TIDE_OK : code;
}

enum tide_code outlook_judge(struct outlook *o, struct tide_err *err)
{
    enum tide_code code = open_view(o, err);

    code = code ? code : read_kept(o, err);
    if (!code && !o->then->content.position.graph_seq) {
        outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, NULL,
                       WORDS(o, "checkpoint '%s' is from before the graph began: take a later one", o->checkpoint));
        outlook_hint(o, TIDE_ACTION_LIST_CHECKPOINTS, "");
        return TIDE_OK;
    }
    if (!code)
        outlook_names(o);
    if (!code && check_renames(o))
        code = resume_changes(o->x, err);
    if (code == TIDE_INVALID) {
        refuse_err(o, err);
        return TIDE_OK;
    }
    if (code)
        return code;
    if (o->kept)
        kept_resolve(o->kept, o->x->graph, o->opt->renames);
    outlook_nodes(o);
    return check_effects(o, err);
}
