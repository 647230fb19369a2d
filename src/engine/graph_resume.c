/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph_resume.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/graph_file.h"
#include "graph/resume.h"

static enum tide_code open_graph(struct graph_resume *r, struct tide_err *err)
{
    enum tide_code code;
    bool hive;

    if (!r->file)
        return tide_graph_load(r->session, &r->graph, err);
    code = graph_file_read(r->file, NULL, NULL, &hive, &r->graph, err);
    return code == TIDE_INVALID ? tide_wrap(err, "%.100s", r->file) : code;
}

static enum tide_code take_session(struct graph_resume *r, struct tide_err *err)
{
    const struct run *run;

    if (tide_session_check_trust(r->session, err)) /* the first thing in its way, also when it is only looked at */
        return err->code;
    run = &r->session->state->ledger.run;
    r->waits = run->end == RUN_OPEN && run->waiting && !run->due_ms;
    return open_graph(r, err);
}

static enum tide_code take_fork(struct graph_resume *r, const char *id, struct tide_err *err)
{
    r->want->opt.checkpoint = NULL;
    if (tide_session_open(r->store, id, TIDE_SESSION_APPEND, &r->fork, err))
        return err->code;
    r->session = r->fork;
    return TIDE_OK;
}

/* The log cannot be read to its end: on from the newest checkpoint that can be, in a fork, said aloud. */
static enum tide_code open_damaged(struct graph_resume *r, struct tide_err *err)
{
    const struct tide_graph_options *o = &r->want->opt;
    struct graph_refusal *why;
    struct rescue found;
    enum tide_code code = graph_rescue(r->store, r->id, o->checkpoint, o->fallback,
                                       o->rollback & TIDE_ROLLBACK_REDO_EFFECTS, r->look, &found, err);
    bool asked = o->checkpoint && str_starts(str_from(found.checkpoint), str_from(o->checkpoint));

    if (!code) {
        r->tell(r->arg, arena_printf(&r->arena, "session %s is damaged: %s", found.session, found.damage.msg));
        r->news = arena_printf(&r->arena, "%s fork%s%s, from checkpoint %s, seq %" PRId64 "%s",
                               r->look ? "it would continue in a" : "continuing in the", r->look ? "" : " ", found.fork,
                               found.checkpoint, found.seq, asked ? "" : ", the newest that can be read");
    }
    if (!code && r->look) {
        r->tell(r->arg, r->news);
        rescue_json(&found, &r->plan);
        why = arena_zero(&r->arena, 2 * sizeof *why);
        why->what = rescue_refusal(&r->arena, &found);
        why->hints[0] = rescue_hint(&found);
        r->refused = why;
        r->code = why->what ? TIDE_EFFECTS : TIDE_OK;
    } else if (!code) {
        code = take_fork(r, found.fork, err);
        code = code ? code : take_session(r, err);
    }
    rescue_done(&found);
    return code;
}

enum tide_code graph_resume_open(struct graph_resume *r, struct tide_err *err)
{
    r->want->resume = true;
    return r->session ? take_session(r, err) : open_damaged(r, err);
}

static void drop_outlook(struct graph_resume *r)
{
    if (r->outlook)
        outlook_done(r->outlook);
    free(TAKE(r->outlook));
}

enum tide_code graph_resume_look(struct graph_resume *r, struct tide_err *err)
{
    struct graph_missing *list;
    struct graph_refusal *why;
    struct outlook *o;

    if (r->plan.len) /* it cannot be opened */
        return TIDE_OK;
    drop_outlook(r);
    r->outlook = o = mem_zero(sizeof *o);
    if (outlook_take(o, r->session, r->graph, &r->want->opt, err))
        return err->code;
    r->missing = list = arena_zero(&r->arena, (o->n_missing + 1) * sizeof *list);
    for (size_t i = 0; i < o->n_missing; i++)
        list[i] = (struct graph_missing){o->missing[i].node, o->missing[i].key, o->missing[i].secret};
    r->refused = why = arena_zero(&r->arena, (o->n_refused + 1) * sizeof *why);
    for (size_t i = 0; i < o->n_refused; i++) {
        why[i].what = o->refused[i].what;
        memcpy(why[i].hints, o->refused[i].hints, sizeof why[i].hints);
    }
    r->code = o->n_refused ? o->refused[0].code : TIDE_OK;
    if (r->look)
        outlook_json(o, &r->plan);
    return TIDE_OK;
}

/* Whether a model is asked before anything else is: only then what it needs must be here at once. */
static bool asks_now(const struct outlook *o)
{
    const struct position *p = &(o->x->view ? o->x->view : o->s->state)->content.position;
    const struct map *all[] = {&p->active, &p->ready};

    for (size_t i = 0; i < 2; i++)
        for (struct map_entry *e = map_next(all[i], NULL); e; e = map_next(all[i], e)) {
            const struct task *t = e->value;
            struct place at;

            if (t->state == TASK_DECIDING)
                return true;
            if (!place_find(o->x->graph, map_key(e), &at))
                continue;
            if (all[i] == &p->active && at.node->type == SPEC_SUBGRAPH && t->state != TASK_FAILED)
                continue; /* what is inside stands here as well */
            if (graph_node_asks(at.node))
                return true;
        }
    return false;
}

/* It continues with the graph that ran there. What it picks by itself is shown, whatever the run may show. */
static enum tide_code fork_damaged(struct graph_resume *r, const struct outlook *o, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(SIZE_MAX / 4);
    char id[TIDE_ID_SIZE];

    resume_fork_fields(o->then, &fields);
    if (tide_session_fork(r->store, o->s->head.id, o->seq, NULL, buf_cstr(&fields), id, err))
        return err->code;
    for (size_t i = 0; i < o->n_warnings; i++)
        r->tell(r->arg, o->warnings[i]);
    r->tell(r->arg, arena_printf(&r->arena,
                                 "session %s is damaged: continuing in the fork %s, from checkpoint %s, seq %" PRId64,
                                 o->s->head.id, id, o->checkpoint, o->seq));
    if (take_fork(r, id, err))
        return err->code;
    if (!r->file)
        tide_graph_free(TAKE(r->graph));
    return r->file ? TIDE_OK : open_graph(r, err);
}

enum tide_code graph_resume_decide(struct graph_resume *r, struct tide_err *err)
{
    const struct outlook *o = r->outlook;

    if (outlook_error(o, err))
        return err->code;
    r->want->agents_later = !asks_now(o);
    if (o->fork && o->s->state->ledger.run.end != RUN_COMPLETED) {
        if (fork_damaged(r, o, err))
            return err->code;
    } else if (r->quiet && o->fell_back)
        r->tell(r->arg, o->warnings[o->n_warnings - 1]); /* which is that one */
    if (r->news)
        r->tell(r->arg, r->news);
    r->news = NULL;
    return TIDE_OK;
}

void graph_resume_done(struct graph_resume *r)
{
    char id[TIDE_ID_SIZE];
    struct tide_err ignored; /* then it stays: nobody was notified of it */

    drop_outlook(r);
    snprintf(id, sizeof id, "%s", r->fork ? tide_session_id(r->fork) : "");
    tide_session_close(r->fork);
    if (r->fork && r->news) /* it did not begin */
        (void)!tide_session_delete(r->store, id, &ignored);
    tide_graph_free(r->graph);
    buf_done(&r->plan);
    arena_done(&r->arena);
}
