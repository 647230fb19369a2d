/* SPDX-License-Identifier: Apache-2.0 */
/* Resuming a graph: what is shown before, and the resume itself. */
#include "graph/resume.h"

#include <inttypes.h>

#include "program/tree.h"
#include "base/yes_no.h"
#include "session/settle.h"

/* ---- the outlook ---- */

void outlook_refuse(struct outlook *o, enum refusal_kind kind, enum tide_code code, const char *node, const char *what)
{
    MEM_ROOM(o->refused, o->n_refused, o->cap_refused);
    o->refused[o->n_refused++] =
        (struct refusal){kind, code, arena_text(&o->arena, node), NULL, arena_text(&o->arena, what), {{0}}};
}

void outlook_hint(struct outlook *o, enum tide_action action, const char *members)
{
    struct refusal *r = &o->refused[o->n_refused - 1];
    struct tide_err err = {.code = TIDE_FAILED};

    tide_hint_with(&err, action, o->s->head.id, "%s", members);
    err.hints[0].kind = o->s->state->content.position.graph_seq ? TIDE_KIND_GRAPH : 0;
    r->hints[r->hints[0].action ? 1 : 0] = err.hints[0];
}

void outlook_about_checkpoint(struct outlook *o, const char *id)
{
    o->refused[o->n_refused - 1].checkpoint = arena_text(&o->arena, id);
}

const char *outlook_quote(struct outlook *o, const char *name)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)1 << 20);

    json_quote(&text, str_from(name));
    return arena_dup(&o->arena, buf_view(&text)).ptr;
}

void outlook_warn(struct outlook *o, const char *what)
{
    MEM_ROOM(o->warnings, o->n_warnings, o->cap_warnings);
    o->warnings[o->n_warnings++] = arena_text(&o->arena, what);
}

enum tide_code outlook_error(const struct outlook *o, struct tide_err *err)
{
    const struct refusal *r = o->refused;
    char more[40] = "";

    if (!o->n_refused)
        return TIDE_OK;
    if (o->n_refused > 1)
        snprintf(more, sizeof more, " (and %zu more)", o->n_refused - 1);
    tide_fail(err, r->code, "%.400s%s", r->what, more);
    if (r->node)
        tide_about(err, TIDE_SUBJECT_NODE, r->node);
    else if (r->checkpoint)
        tide_about(err, TIDE_SUBJECT_CHECKPOINT, r->checkpoint);
    if (err)
        memcpy(err->hints, r->hints, sizeof err->hints);
    if (o->n_refused > 1 && !r->hints[1].action)
        tide_hint_with(err, TIDE_ACTION_REPEAT, o->s->head.id, "\"dry_run\":true");
    return tide_about_session(err, o->s->head.id);
}

/* A caller that asked for a fallback first gets the reason why it does not help. */
static void put_final_first(struct outlook *o)
{
    for (size_t i = 1; i < o->n_refused && o->refused[0].kind == REFUSED_HERE; i++)
        if (o->refused[i].kind == REFUSED_FOR_GOOD) {
            struct refusal final = o->refused[i];

            memmove(o->refused + 1, o->refused, i * sizeof final);
            o->refused[0] = final;
        }
}

/* Only when it is another: to compare. Without it nodes are still found by their names. */
static void read_before(struct outlook *o)
{
    const struct position *p = &o->s->state->content.position;
    struct tide_err why;

    if (p->graph_seq && strcmp(p->graph_digest, o->x->g->digest) != 0 &&
        graph_read(o->s->store, o->s->state, &o->before, &why))
        outlook_warn(o,
                     arena_printf(&o->arena, "the graph it ran cannot be read, so nothing is compared: %s", why.msg));
}

/* A word that is neither yes nor no decides nothing: the wait stays open. A resume refuses it; here it is reported with
 * the rest. */
static void check_answer(struct outlook *o)
{
    const struct run *r = &o->s->state->ledger.run;
    struct tide_err why;
    struct json *v = NULL;

    if (!o->opt->input || !r->waiting || !str_eq(str_from(r->wait_kind), STR("approval")))
        return;
    if (json_parse(&o->arena, str_from(o->opt->input), NULL, &v, NULL, &why) || yes_no_check(&o->arena, v, &why)) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL, why.msg);
        outlook_hint(o, TIDE_ACTION_ANSWER, "\"kind\":\"approval\",\"input\":null");
    }
}

enum tide_code outlook_take(struct outlook *o, tide_session *s, tide_graph *g, const struct tide_graph_options *opt,
                            struct tide_err *err)
{
    bool only_here = true; /* what is refused would not be from another checkpoint */
    enum tide_code code;

    *o = (struct outlook){.x = mem_zero(sizeof *o->x), .s = s, .given = opt, .named = *opt, .arena = ARENA_INIT};
    o->opt = &o->named;
    code = exec_begin(o->x, s, g, o->opt, err);
    code = code ? code : session_sync(s, err);
    code = code ? code : exec_inherit(o->x, err);
    code = code ? code : outlook_state(o, err);
    if (code)
        return code;
    read_before(o);
    check_answer(o);
    code = outlook_from(o, err);
    if (!code && o->then)
        code = outlook_judge(o, err);
    for (size_t i = 0; i < o->n_refused; i++)
        only_here &= o->refused[i].kind == REFUSED_HERE;
    if (!code && o->n_refused && only_here && o->opt->fallback)
        code = outlook_fall_back(o, err);
    if (o->opt->fallback)
        put_final_first(o);
    INVARIANT(!o->x->run); /* what is drafted is for its view alone */
    return code;
}

void outlook_done(struct outlook *o)
{
    if (o->x)
        exec_done(o->x);
    free(o->x);
    tide_graph_free(o->before);
    state_free(o->own);
    kept_free(o->kept);
    free(o->refused);
    free(o->missing);
    free(o->warnings);
    map_done(&o->gave, NULL);
    arena_done(&o->arena);
}

/* ---- doing it ---- */

static enum tide_code make_fork(const struct outlook *o, tide_session **ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(SIZE_MAX / 4);
    tide_store *store = (tide_store *)(void *)o->s->store;
    char id[TIDE_ID_SIZE];

    resume_fork_fields(o->then, &fields);
    if (tide_session_fork(store, o->s->head.id, o->seq, NULL, buf_cstr(&fields), id, err))
        return err->code;
    return tide_session_open(store, id, TIDE_SESSION_APPEND, ret, err);
}

/*
 * The run that is left behind is over: its wait, which nobody can answer any more, or what was cut when its process died.
 * Must come before the rollback, because with that the session is ours, and a run that is open would look like ours, too.
 */
static enum tide_code end_run(struct tide_session *s, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    enum tide_code code;

    do { /* a process that recovers sessions may be faster */
        code = session_sync(s, err);
        draft_reset(&d);
        if (!code && s->state->ledger.run.end == RUN_OPEN) {
            settle_for_resume(&d, s->state, "superseded", env_now_ms(s->store->env));
            code = session_append(s, 0, d.events, d.n, NULL, err);
        }
    } while (code == TIDE_CONFLICT);
    draft_done(&d);
    return code;
}

static enum tide_code open_run(struct exec *x, const struct outlook *o, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(SIZE_MAX / 4);
    const struct run *r = &x->s->state->ledger.run;
    const char *old = r->run_id;
    struct tide_run_options run;
    enum tide_code code;

    x->goal = x->opt->goal ? x->opt->goal : x->s->state->content.position.goal;
    x->goal = arena_text(&x->g->spec->arena, x->goal); /* the state may be read anew */
    x->fresh = true;
    exec_run_fields(x, &fields);
    run = exec_run_options(x, buf_cstr(&fields));
    run.token = x->opt->token;
    run.input = x->opt->input;
    run.message = x->opt->message;
    run.by = x->opt->by;
    run.retry = x->opt->retry;
    run.happened = x->opt->happened;
    old = arena_text(&x->scratch, old);
    code = o->anew ? run_start_with(x->s, &run, NULL, false, &x->run, err)
                   : tide_run_resume(x->s, &run, NULL, &x->run, err);
    if (!code && old && strcmp(old, x->run->id) != 0)
        tree_end_run(old); /* what a killed process of it left behind */
    return code;
}

static void say_aloud(struct exec *x, const struct outlook *o)
{
    const char *const *r = x->opt->renames;

    for (size_t i = 0; i < o->n_warnings; i++)
        exec_notice(x, NULL, "%s", o->warnings[i]);
    for (; r && r[0] && r[1]; r += 2)
        exec_notice(x, r[1], "node '%s' is called '%s' in this graph", r[0], r[1]);
    if (o->fork)
        exec_notice(x, NULL, "session %s %s: continuing in the fork %s, from checkpoint %s", o->s->head.id,
                    o->s->state->ledger.run.end == RUN_COMPLETED ? "has completed" : "is damaged", x->s->head.id,
                    o->checkpoint);
    else if (o->rollback)
        exec_notice(x, NULL, "back to checkpoint %s, seq %" PRId64, o->checkpoint, o->seq);
}

static enum tide_code do_resume(struct exec *x, const struct outlook *o, tide_session **ret_fork, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    char reason[TIDE_ID_SIZE + 40];

    INVARIANT(!o->n_refused && !(o->fork && o->rollback));
    if (o->fork) {
        code = make_fork(o, ret_fork, err);
        x->s = code ? x->s : *ret_fork;
    } else if (o->rollback) {
        snprintf(reason, sizeof reason, "resume from checkpoint %s", o->checkpoint);
        code = end_run(o->s, err);
        code = code ? code : tide_session_rollback(o->s, o->seq, o->opt->rollback, reason, err);
    }
    code = code ? code : open_run(x, o, err);
    code = code ? code : exec_open_view(x, err);
    if (code)
        return code;
    x->gave = &o->gave;
    code = resume_changes(x, err);
    if (code)
        return code;
    tasks_index(x);
    say_aloud(x, o);
    return exec_go(x, err);
}

enum tide_code tide_graph_resume(tide_session *s, tide_graph *g, const struct tide_graph_options *opt,
                                 struct tide_graph_result *ret, struct tide_err *err)
{
    AUTO(mem_freep) struct exec *x = mem_zero(sizeof *x);
    tide_session *fork = NULL;
    struct graph_options own;
    struct outlook o;
    enum tide_code code;

    ERR_LOCAL(err);
    if (graph_options_read(&own, opt, err))
        return err->code;
    *x = (struct exec){.g = g, .opt = &own.opt};
    session_be_patient(s, exec_trouble, x); /* until exec_finish() */
    code = tide_session_check_trust(s, err);
    if (code) {
        session_be_quick(s);
        atomic_store(&g->stop, GRAPH_GO_ON); /* one that ended this wait is not for the next run */
        return code;
    }
    code = outlook_take(&o, s, g, &own.opt, err);
    code = code ? code : outlook_error(&o, err);
    if (exec_begin(x, s, g, o.opt, code ? NULL : err) && !code)
        code = err->code;
    code = code ? code : exec_inherit(x, err);
    if (!o.fork) /* the effects of a fork are its own */
        x->kept = TAKE(o.kept);
    code = code ? code : do_resume(x, &o, &fork, err);
    exec_finish(x, ret);
    tide_session_close(fork);
    outlook_done(&o);
    return code;
}

enum tide_code tide_graph_make_plan(tide_session *s, tide_graph *g, const struct tide_graph_options *opt,
                                    struct tide_text *ret_json, struct tide_err *err)
{
    AUTO(buf_done) struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct graph_options own;
    struct outlook o;
    enum tide_code code;

    ERR_LOCAL(err);
    if (graph_options_read(&own, opt, err))
        return err->code;
    code = outlook_take(&o, s, g, &own.opt, err);
    if (!code) {
        outlook_json(&o, &out);
        ret_json->len = out.len;
        buf_cstr(&out);
        ret_json->ptr = buf_take(&out);
    }
    outlook_done(&o);
    return code;
}
