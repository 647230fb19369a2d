/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/recovery_thread.h"
#include "graph/resume.h"
#include "session/settle.h"

#define ANSWER_MAX ((size_t)1 << 20)

/* ---- what the graph needs ---- */

struct needs {
    bool agents, without_model;
    const char *model;                     /* of the first agent that has one */
    const struct spec_node *callback_node; /* the first that calls one */
};

static void look_at(const struct spec_graph *g, struct needs *ret);

static void look_at_node(const struct spec_node *n, struct needs *ret)
{
    while (n->type == SPEC_MAP && n->node)
        n = n->node;
    if (n->type == SPEC_SUBGRAPH && n->graph)
        look_at(n->graph, ret);
    if (n->type == SPEC_FUNCTION && n->callback.len && !ret->callback_node)
        ret->callback_node = n;
    if (n->type != SPEC_EVENT_LOOP)
        return;
    ret->agents = true;
    ret->without_model |= !n->model.len;
    if (n->model.len && !ret->model)
        ret->model = n->model.ptr;
}

static void look_at(const struct spec_graph *g, struct needs *ret)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        look_at_node(&g->nodes.at[i], ret);
    for (size_t i = 0; i < g->edges.n; i++)
        ret->agents |= g->edges.at[i].on == SPEC_LLM;
}

bool graph_node_asks(const struct spec_node *node)
{
    struct needs needs = {0};

    look_at_node(node, &needs);
    return needs.agents;
}

enum tide_code graph_setup(struct agent_setup *setup, tide_graph *graph, tide_session *session,
                           const struct graph_want *w, struct tide_err *err)
{
    const struct spec_graph *g = graph->spec->graph;
    struct spec_checkpoints ignored = g->checkpoints;
    struct agent_want want = w->who;
    struct needs needs = {0};
    struct str entry;

    look_at(g, &needs);
    if (needs.callback_node) {
        tide_fail(err, TIDE_INVALID,
                  "node '%s' calls '%s', which is registered by a program that embeds the library: give it a "
                  "`program` to run it here",
                  needs.callback_node->id.len ? needs.callback_node->id.ptr : "in a map",
                  needs.callback_node->callback.ptr);
        return tide_about(err, TIDE_SUBJECT_NODE, needs.callback_node->id.len ? needs.callback_node->id.ptr : "");
    }
    if (graph_entry(g, w->opt.entry, &entry, err))
        return err->code;
    if (w->opt.checkpoints && spec_change_checkpoints(graph->spec, str_from(w->opt.checkpoints), &ignored, err))
        return err->code;
    if (!want.provider && !w->who.script && g->provider.len)
        want.provider = g->provider.ptr;
    want.model = w->who.model || needs.without_model ? w->who.model : needs.model; /* each has its own */
    if (agent_setup_begin(setup, &want, err))
        return err->code;
    if (needs.agents && agent_setup_check(setup, session, err)) /* later: then a node that needs it fails with that */
        return w->agents_later ? TIDE_OK : err->code;
    return TIDE_OK;
}

/* The digest stays: it is one of the JSON. */
static void say_for_all(const struct spec_graph *g, const struct graph_want *w)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct spec_node *n = &g->nodes.at[i];

        while (n->type == SPEC_MAP && n->node)
            n = n->node;
        if (w->who.provider || w->who.script)
            n->provider = STR("");
        if (w->who.model)
            n->model = STR("");
        if (n->graph)
            say_for_all(n->graph, w);
    }
}

/* ---- the session: who answers, for all nodes ---- */

static void put_provider(struct json_out *o, const struct graph_want *w)
{
    AUTO(mem_freep) char *script = w->who.script ? realpath(w->who.script, NULL) : NULL;
    const char *type = w->who.provider ? w->who.provider : w->who.script ? "script" : NULL;

    if (!type && !w->who.model && !w->who.base_url)
        return;
    json_out_key(o, STR("provider"));
    json_out_begin(o, '{');
    json_out_kstr_opt(o, STR("type"), str_from(type));
    json_out_kstr_opt(o, STR("model"), str_from(w->who.model));
    json_out_kstr_opt(o, STR("base_url"), str_from(w->who.base_url));
    json_out_kstr_opt(o, STR("script"), str_from(script ? script : w->who.script));
    json_out_kbool(o, STR("all_nodes"), true);
    json_out_end(o, '}');
}

/* As given to `run`; NULL: nothing was given. */
static const struct json *recorded(struct arena *a, const tide_session *session)
{
    const char *text = map_get(&session->state->info.fields, STR("provider"));
    struct json *p = NULL;

    if (!text || json_parse(a, arena_dup(a, str_from(text)), NULL, &p, NULL, NULL))
        return NULL;
    return json_get_bool(p, STR("all_nodes"), false) ? p : NULL;
}

static const char *member(struct arena *a, const struct json *provider, const char *key)
{
    struct str text = json_get_text(a, provider, str_from(key));

    return text.len ? arena_dup(a, text).ptr : NULL;
}

/* The address is found by the agents' setup, which knows to whom a key may go. */
static void take_recorded(struct graph_run *r)
{
    struct graph_want *w = r->want;
    const struct json *p = w->resume ? recorded(&r->arena, r->session) : NULL;
    const char *told = w->who.provider ? w->who.provider
                       : w->who.script ? "script"
                                       : NULL,
               *type = member(&r->arena, p, "type");

    if (!p || (told && !(type && strcmp(told, type) == 0)))
        return; /* the rest belongs to the other one */
    w->who.provider = told ? w->who.provider : type;
    w->who.model = w->who.model ? w->who.model : member(&r->arena, p, "model");
    w->who.script = w->who.script ? w->who.script : member(&r->arena, p, "script");
}

/* What was given to an earlier run no longer applies. In the middle of a graph a change is refused. */
static enum tide_code change_provider(tide_session *session, const struct graph_want *w, const struct held *held,
                                      struct tide_err *err)
{
    AUTO(buf_done) struct buf body = BUF_INIT((size_t)1 << 20);
    const struct position *at = &session->state->content.position;
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_out o = json_out_to(&body);

    json_out_begin(&o, '{');
    put_provider(&o, w);
    if (body.len == 1 && recorded(&a, session))
        json_out_kraw(&o, STR("provider"), STR("{}"));
    json_out_end(&o, '}');
    if (body.len == 2 || at->ready.live || at->active.live)
        return TIDE_OK;
    return held_append(held, session, &(struct tide_new_event){.kind = "session.updated", .body = buf_cstr(&body)},
                       err);
}

static enum tide_code make_or_open(tide_store *store, const char *id, struct str fields, const struct graph_want *w,
                                   const struct held *held, tide_session **ret, bool *ret_made, struct tide_err *err)
{
    enum tide_code code = held_create(held, store, id, fields.ptr, ret, err);

    *ret_made = !code;
    if (code != TIDE_EXISTS)
        return code;
    code = held_open(held, store, id, ret, err);
    return code ? code : change_provider(*ret, w, held, err);
}

enum tide_code graph_session_open(tide_store *store, const char *id, const char *title, tide_graph *graph,
                                  const struct graph_want *w, const struct held *held, tide_session **ret_session,
                                  bool *ret_made, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);
    struct hidden_values hidden = {NULL, 0, 0};
    struct json_out o = json_out_to(&fields);
    enum tide_code code = graph_hide_memory(store, &hidden, graph, &w->opt, err);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("agent"), graph->spec->graph->id);
    json_out_kstr_opt(&o, STR("title"), title ? str_from(title) : graph->spec->graph->name);
    json_out_kstr_opt(&o, STR("working_dir"), str_from(w->working_dir ? w->working_dir : cwd));
    session_fields_put(&o, w->fields);
    json_out_kstr(&o, STR("loop"), STR("graph")); /* one that is cut before its first run is known to be for a graph */
    put_provider(&o, w);
    json_out_end(&o, '}');
    code = code ? code : make_or_open(store, id, str_from(buf_cstr(&fields)), w, held, ret_session, ret_made, err);
    if (!code)
        (*ret_session)->hidden = hidden; /* from here on as long as its handle */
    else
        redact_release(store_of(store), &hidden);
    return code;
}

void graph_session_drop(tide_store *store, tide_session **session)
{
    char id[TIDE_ID_SIZE];
    struct tide_err ignored;

    if (session_sync(*session, &ignored) || (*session)->state->ledger.run.run_id)
        return;
    snprintf(id, sizeof id, "%s", tide_session_id(*session));
    tide_session_close(TAKE(*session));
    (void)!tide_session_delete(store, id, &ignored);
}

/* ---- running ---- */

static enum tide_code make_ready(struct graph_run *r, struct tide_err *err)
{
    take_recorded(r);
    if (graph_setup(&r->setup, r->graph, r->session, r->want, err))
        return err->code;
    say_for_all(r->graph->spec->graph, r->want);
    r->want->opt.size = sizeof r->want->opt;
    r->want->opt.agent = &r->setup.opt;
    r->want->opt.on_store_error_continue = r->setup.opt.on_store_error_continue; /* as configured */
    return TIDE_OK;
}

/* It waits. The session that does is r->session from now on; false: it cannot be opened. */
static bool follow_wait(struct graph_run *r, const struct tide_graph_result *result)
{
    struct tide_err ignored;

    if (strcmp(result->session_id, tide_session_id(r->session)) == 0)
        return true;
    if (r->fork || tide_session_open(r->setup.store, result->session_id, TIDE_SESSION_APPEND, &r->fork, &ignored))
        return false;
    r->session = r->fork;
    return true;
}

/* Keys that are stored nowhere went with the run that parked; all others are in the log. */
static void keep_secrets(struct graph_run *r)
{
    AUTO(mem_freep) struct exec *x = mem_zero(sizeof(*x));
    struct tide_graph_options *opt = &r->want->opt;
    struct json_out o = json_out_to(&r->memory);
    struct json *given = NULL;
    struct tide_err ignored;

    if (r->memory.len || !opt->memory) /* found when it was asked before */
        return;
    json_out_begin(&o, '{');
    if (!exec_begin(x, r->session, r->graph, opt, &ignored) && !exec_inherit(x, &ignored) &&
        !json_parse(&r->arena, str_from(opt->memory), NULL, &given, NULL, NULL))
        for (const struct json *m = given->first; m; m = m->next)
            if (exec_is_excluded(x, json_key_text(&r->arena, m)))
                json_out_kraw(&o, json_key_text(&r->arena, m), json_source(m));
    json_out_end(&o, '}');
    exec_done(x);
    opt->memory = r->memory.len > 2 ? buf_cstr(&r->memory) : NULL;
}

/* The next stretch resumes it with this answer (JSON; NULL: none), bound to its question by the token ("": to none). */
static void take_answer(struct graph_run *r, const char *token, const char *answer)
{
    struct tide_graph_options *opt = &r->want->opt;

    keep_secrets(r);
    snprintf(r->token, sizeof(r->token), "%s", token);
    r->want->resume = true;
    opt->token = r->token[0] ? r->token : NULL;
    opt->input = answer;
    opt->checkpoint = NULL;
    opt->renames = opt->retry = opt->happened = NULL;
    opt->entry = opt->goal = NULL;
    opt->rollback = 0;
    opt->fallback = 0;
}

/* Trouble with recording it is none here: a resume records it as well. */
enum tide_code graph_lapse(tide_store *store, tide_session *session, struct tide_err *err)
{
    int64_t now_ms = env_now_ms(session->store->env), deadline_ms = session->state->ledger.run.deadline_ms;
    const struct tide_session_info *info;
    struct tide_err ignored;
    const struct run *r;

    if (deadline_ms && deadline_ms <= now_ms)
        (void)!tide_store_recover(store, 0, NULL, NULL, NULL, &ignored);
    if (tide_session_refresh(session, err) || tide_session_get_info(session, &info, err))
        return err->code;
    r = &session->state->ledger.run;
    if (info->status == TIDE_STATUS_WAITING)
        return info->due_ms || settle_deadline(r, now_ms) == TIDE_ON_DEADLINE_DEFAULT
                   ? TIDE_OK
                   : tide_fail_session(err, TIDE_WAITING, info->id, "waits for an answer");
    if (info->status != TIDE_STATUS_INTERRUPTED_WAITING)
        return tide_fail_session(err, TIDE_HELD, info->id, "was answered elsewhere meanwhile");
    tide_fail_session(err, TIDE_FAILED, info->id, "waited for %s, and there was no answer before the deadline",
                      r->wait_name ? r->wait_name : "an answer");
    return tide_hint(err, TIDE_ACTION_RESUME, info->id);
}

static enum tide_code run_once(struct graph_run *r, struct tide_graph_result *ret, struct tide_err *err)
{
    enum tide_code code;

    tide_text_done(&ret->memory);
    if (r->running)
        r->running(r->arg, true);
    code = (r->want->resume ? tide_graph_resume : tide_graph_run)(r->session, r->graph, &r->want->opt, ret, err);
    if (r->running)
        r->running(r->arg, false);
    return code;
}

/*
 * TIDE_OK: it waits, and the next stretch continues with an answer, or at the deadline without one. An answer that was too late is
 * refused: it continues as it would have without. Else what it has ended with.
 */
static enum tide_code go_on(struct graph_run *r, enum tide_code code, const struct tide_graph_result *result,
                            struct buf *answer, struct tide_err *err)
{
    bool late = code == TIDE_WRONG_STATE && answer->len;
    enum tide_code lapsed;
    struct tide_err ignored;

    if ((code != TIDE_WAITING && !late) || !r->answer || (!late && !follow_wait(r, result)))
        return code;
    buf_clear(answer);
    if (!late && r->answer(r->arg, r->session, answer)) {
        take_answer(r, result->token, buf_cstr(answer));
        return TIDE_OK;
    }
    buf_clear(answer);
    lapsed = graph_lapse(r->setup.store, r->session, late ? &ignored : err);
    if (!lapsed)
        take_answer(r, "", NULL);
    return lapsed && late ? code : lapsed; /* else it was refused for something else */
}

enum tide_code graph_run(struct graph_run *r, const char *config, struct tide_graph_result *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    struct recovery_thread *sweep;
    int64_t sweep_ms = 0;
    enum tide_code code;

    if (make_ready(r, err) || settings_sweep_interval(config, &sweep_ms, err))
        return err->code;
    r->began = true;
    sweep = recovery_thread_start(r->setup.store, sweep_ms);
    do
        code = run_once(r, ret, err);
    while (code && !(code = go_on(r, code, ret, &answer, err)));
    recovery_thread_stop(sweep);
    return code;
}

void graph_run_done(struct graph_run *r)
{
    agent_setup_done(&r->setup);
    tide_session_close(r->fork);
    if (r->memory.ptr)
        explicit_bzero(r->memory.ptr, r->memory.len);
    buf_done(&r->memory);
    arena_done(&r->arena);
}
