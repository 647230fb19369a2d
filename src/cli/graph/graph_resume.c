/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going on with a graph, behind `tidemark resume` and `tidemark sessions resume`: from where it stands or from a checkpoint,
 * with other values or another version of the graph. Everything that can be refused is said before anything is written.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_inputs.h"
#include "cli/graph/graph_view.h"
#include "cli/resume.h"
#include "graph/resume.h"
#include "hive/hive.h"

struct going {
    struct cli *cli;
    struct graph_again *g;
    struct arena arena;
    tide_session *session, *fork; /* fork: of a damaged one; NULL: none */
    tide_graph *graph;
    struct buf answer;
    const char *news; /* where it goes on: said when it does */
};

/* ---- the graph ---- */

static enum tide_code read_graph(struct going *a, const char *file, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(4 * SPEC_MAX_BYTES), json = BUF_INIT(4 * SPEC_MAX_BYTES);
    const char *slash = strrchr(file, '/');
    const char *dir = slash ? arena_dup(&a->arena, (struct str){file, (size_t)(slash - file) + 1}).ptr : ".";
    struct str view;

    if (spec_read(file, &text, err))
        return err->code;
    view = buf_view(&text);
    if (hive_is(view)) {
        if (hive_to_graph(view, NULL, NULL, &json, err))
            return tide_wrap(err, "%.150s", file);
        view = buf_view(&json);
    }
    if (tide_graph_parse(view.ptr, view.len, dir, NULL, NULL, &a->graph, err))
        return tide_fail(err, err->code, "%.100s: %.300s: `tidemark graph check` tells all", file,
                         arena_dup(&a->arena, str_from(err->msg)).ptr);
    return TIDE_OK;
}

static enum tide_code open_graph(struct going *a, struct tide_err *err)
{
    return a->g->graph ? read_graph(a, a->g->graph, err) : tide_graph_load(a->session, &a->graph, err);
}

/* ---- what it would do, for people ---- */

/* It must happen once, and did, before what is rolled back. */
static bool answers(const struct outlook *o, const char *name, const struct task *t)
{
    const int64_t *visits = map_get(&o->x->view->content.visits, str_from(name));

    return t->state == TASK_READY && !o->fork && kept_done(o->kept, name, (visits ? *visits : 0) + 1);
}

static void show_tasks(struct out *out, struct arena *arena, const struct outlook *o, const struct map *tasks)
{
    static const char *const words[] = {"ready", "was cut", "is to be tried again", "failed", "asks where to go on"};

    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        const struct task *t = e->value;

        if (o && answers(o, e->key, t))
            out_field(out, "answers", arena_printf(arena, "%s (from the log)", e->key));
        else if (outlook_runs(o, e->key))
            out_field(out, "runs", arena_printf(arena, "%s (%s)", e->key, words[t->state]));
        else
            out_field(out, "happened", arena_printf(arena, "%s (as you say)", e->key));
    }
}

/* Which keys: what they are set to may be a secret. */
static void show_sets(struct out *out, struct arena *arena, const struct outlook *o)
{
    struct json *v = NULL;

    if (!o->opt->memory || json_parse(arena, str_from(o->opt->memory), NULL, &v, NULL, NULL))
        return;
    for (const struct json *m = v->first; m; m = m->next) {
        struct str key = json_key_text(arena, m);

        out_field(out, "sets",
                  arena_printf(arena, "%.*s%s", STR_ARG(key), exec_is_excluded(o->x, key) ? " (never stored)" : ""));
    }
}

static void show_reasons(struct out *out, struct arena *arena, const struct outlook *o)
{
    for (size_t i = 0; i < o->n_warnings; i++)
        out_field(out, "note", o->warnings[i]);
    for (size_t i = 0; i < o->n_refused; i++) {
        const struct refusal *r = &o->refused[i];

        const char *hint = hint_text(arena, &r->hint);

        out_field(out, "refused",
                  arena_printf(arena, "%s%s%s%s%s", r->what, r->remedy[0] ? ": " : "", r->remedy, hint ? ": " : "",
                               hint ? hint : ""));
    }
}

/* `o` NULL: of a session that cannot be opened. */
static void show_nodes(struct going *a, const struct outlook *o, const struct content *c)
{
    struct out *out = &a->cli->out;

    for (struct map_entry *e = map_next(&c->visits, NULL); e; e = map_next(&c->visits, e))
        if (outlook_is_complete(c, e->key))
            out_field(out, "complete", e->key);
    for (struct map_entry *e = map_next(&c->position.dropped, NULL); e; e = map_next(&c->position.dropped, e))
        out_field(out, "failed", arena_printf(&a->arena, "%s (the others went on)", e->key));
    show_tasks(out, &a->arena, o, &c->position.active);
    show_tasks(out, &a->arena, o, &c->position.ready);
}

static void show_outlook(struct going *a, const struct outlook *o)
{
    struct out *out = &a->cli->out;
    const struct state *view = o->x->view ? o->x->view : o->s->state;

    out_field(out, "session", o->s->head.id);
    out_field(out, "from",
              o->checkpoint[0] ? arena_printf(&a->arena, "checkpoint %s, seq %" PRId64, o->checkpoint, o->seq)
                               : arena_printf(&a->arena, "where it stands, seq %" PRId64, o->s->state->seq));
    out_field(out, "does", o->fork ? "begins a fork there" : o->rollback ? "goes back there" : "goes on");
    show_nodes(a, o, &view->content);
    show_sets(out, &a->arena, o);
    show_reasons(out, &a->arena, o);
}

static enum tide_code dry_run(struct going *a, const struct outlook *o)
{
    if (a->cli->out.json) {
        outlook_json(o, &a->cli->out.text);
        out_json_end(&a->cli->out);
    } else {
        show_outlook(a, o);
    }
    a->cli->exit_status = o->n_refused ? tide_code_exit(o->refused[0].code) : 0;
    return TIDE_OK;
}

/* ---- what is stored nowhere is asked for ---- */

static bool may_ask(const struct going *a)
{
    return !a->g->want.no_input && !a->g->dry_run && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* It waits, and no answer was given: without one it is refused. */
static void ask_answer(struct going *a)
{
    struct tide_graph_options *o = &a->g->want.opt;
    const struct ledger *l = &a->session->state->ledger;

    if (!o->input && !o->token && !o->checkpoint && !o->fallback && l->run.end == RUN_OPEN && l->run.waiting &&
        may_ask(a) && graph_ask(a->session, &a->answer))
        o->input = buf_cstr(&a->answer);
}

/* Once for every key, whoever needs it. */
static enum tide_code ask_for_all(struct going *a, const struct outlook *o, bool *ret_asked, struct tide_err *err)
{
    *ret_asked = false;
    if (!may_ask(a))
        return TIDE_OK;
    for (size_t i = 0; i < o->n_missing; i++) {
        const struct missing *m = &o->missing[i];
        bool before = false;

        for (size_t k = 0; k < i; k++)
            before |= strcmp(o->missing[k].key, m->key) == 0;
        if (!m->secret || before)
            continue;
        if (graph_ask_secret(&a->g->memory, m->key, m->node, err))
            return err->code;
        *ret_asked = true;
    }
    a->g->want.opt.memory = a->g->memory.len ? buf_cstr(&a->g->memory) : NULL;
    return TIDE_OK;
}

/* ---- agents ---- */

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

/* ---- all of it ---- */

static enum tide_code take_fork(struct going *a, const char *id, struct tide_err *err)
{
    a->g->want.opt.checkpoint = NULL;
    if (tide_session_open(a->cli->store, id, TIDE_SESSION_APPEND, &a->fork, err))
        return err->code;
    a->session = a->fork;
    return TIDE_OK;
}

/* What a resume takes by itself is said whatever the run may show: nobody else knows where it goes on. */
static enum tide_code fork_damaged(struct going *a, const struct outlook *o, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(SIZE_MAX / 4);
    char id[TIDE_ID_SIZE];

    resume_fork_fields(o->then, &fields);
    if (tide_session_fork(a->cli->store, o->s->head.id, o->seq, NULL, buf_cstr(&fields), id, err))
        return err->code;
    for (size_t i = 0; i < o->n_warnings; i++)
        say("%s", o->warnings[i]);
    say("session %s is damaged: going on in the fork %s, from checkpoint %s, seq %" PRId64, o->s->head.id, id,
        o->checkpoint, o->seq);
    return take_fork(a, id, err);
}

static enum tide_code decide(struct going *a, const struct outlook *o, struct tide_err *err)
{
    if (outlook_error(o, err))
        return err->code;
    a->g->want.agents_later = !asks_now(o);
    if (o->fork && o->s->state->ledger.run.end != RUN_COMPLETED)
        return fork_damaged(a, o, err);
    if (o->fell_back && a->g->want.quiet)
        say("%s", o->warnings[o->n_warnings - 1]); /* which is that one */
    return TIDE_OK;
}

static enum tide_code look(struct going *a, bool *ret_again, struct tide_err *err)
{
    struct outlook o;
    enum tide_code code = outlook_take(&o, a->session, a->graph, &a->g->want.opt, err);
    bool ask = !*ret_again; /* only once: who gives nothing then is told what is missing */

    *ret_again = false;
    if (!code && a->g->dry_run)
        code = dry_run(a, &o);
    else if (!code && ask)
        code = ask_for_all(a, &o, ret_again, err);
    if (!code && !*ret_again && !a->g->dry_run)
        code = decide(a, &o, err);
    outlook_done(&o);
    return code;
}

static enum tide_code resume_this(struct going *a, struct tide_err *err)
{
    const tide_session *before = a->session;
    bool again = false;

    if (tide_session_check_trust(a->session, err)) /* the first thing in its way, also of a dry run */
        return err->code;
    ask_answer(a);
    if (!a->graph && open_graph(a, err))
        return err->code;
    if (!a->g->want.quiet)
        graph_note_unread(a->graph, buf_view(&a->g->memory));
    if (look(a, &again, err) || (again && look(a, &again, err)))
        return err->code;
    if (a->g->dry_run)
        return TIDE_OK;
    if (a->session != before && !a->g->graph) { /* a fork goes on with the graph that ran there */
        tide_graph_free(TAKE(a->graph));
        if (open_graph(a, err))
            return err->code;
    }
    if (a->news)
        say("%s", a->news);
    a->news = NULL;
    return graph_drive(a->cli, a->session, a->graph, &a->g->want, err);
}

/* Where it would go on, of a log that cannot be read to its end. */
static void show_rescue(struct going *a, const struct rescue *r)
{
    struct out *out = &a->cli->out;

    a->cli->exit_status = r->again[0] ? tide_code_exit(TIDE_EFFECTS) : 0;
    if (out->json) {
        rescue_json(r, &out->text);
        out_json_end(out);
        return;
    }
    out_field(out, "session", r->session);
    out_field(out, "from", arena_printf(&a->arena, "checkpoint %s, seq %" PRId64, r->checkpoint, r->seq));
    out_field(out, "does", "begins a fork there");
    show_nodes(a, NULL, &r->then->content);
    out_field(out, "note", r->damage.msg);
    if (r->again[0])
        out_field(out, "refused",
                  arena_printf(&a->arena,
                               "this would happen again, and must happen once: %s: --fallback --redo-effects lets it",
                               r->again));
}

/* What was refused after all leaves nothing behind. */
static void drop_unused(struct going *a, const char *fork)
{
    struct tide_err err; /* then it stays: nobody was told of it */

    if (!a->news)
        return; /* it began */
    tide_session_close(TAKE(a->fork));
    (void)!tide_session_delete(a->cli->store, fork, &err);
}

/* The log cannot be read to its end: on from the newest checkpoint that can be, in a fork, said aloud. */
static enum tide_code resume_damaged(struct going *a, struct tide_err *err)
{
    const struct tide_graph_options *o = &a->g->want.opt;
    bool dry = a->g->dry_run, asked;
    struct rescue r;
    enum tide_code code = graph_rescue(a->cli->store, a->g->r->ask.id, o->checkpoint, o->fallback,
                                       o->rollback & TIDE_ROLLBACK_REDO_EFFECTS, dry, &r, err);

    asked = o->checkpoint && str_starts(str_from(r.checkpoint), str_from(o->checkpoint));
    if (!code) {
        say("session %s is damaged: %s", r.session, r.damage.msg);
        a->news = arena_printf(&a->arena, "%s fork%s%s, from checkpoint %s, seq %" PRId64 "%s",
                               dry ? "it would go on in a" : "going on in the", dry ? "" : " ", r.fork, r.checkpoint,
                               r.seq, asked ? "" : ", the newest that can be read");
    }
    if (!code && dry) {
        say("%s", a->news);
        show_rescue(a, &r);
    } else if (!code) {
        code = take_fork(a, r.fork, err);
        code = code ? code : resume_this(a, err);
        drop_unused(a, r.fork);
    }
    rescue_done(&r);
    return code;
}

enum tide_code graph_again(struct cli *cli, struct graph_again *again, tide_session *session, struct tide_err *err)
{
    struct going a = {.cli = cli, .g = again, .arena = ARENA_INIT, .session = session, .answer = BUF_INIT(INPUT_MAX)};
    struct tide_graph_options *o = &again->want.opt;
    const struct resume *r = again->r;
    enum tide_code code;

    again->want.resume = true;
    again->want.token_fd = r->token_out_fd > 0 ? r->token_out_fd : 0;
    again->want.no_input = r->ask.no_input;
    again->want.keep_pause = r->ask.keep_pause || r->ask.unattended;
    o->memory = again->memory.len ? buf_cstr(&again->memory) : NULL;
    o->on_store_error_continue = r->degrade;
    again->want.degrade_said = r->degrade_said;
    o->token = r->ask.token;
    o->input = r->ask.input;
    o->retry = r->ask.retry;
    o->happened = r->ask.happened;
    code = session ? resume_this(&a, err) : resume_damaged(&a, err);
    tide_graph_free(a.graph);
    tide_session_close(a.fork);
    buf_done(&a.answer);
    arena_done(&a.arena);
    return code;
}
