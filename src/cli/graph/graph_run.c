/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a graph from the command line: the settings become the options of its agents, a first signal parks it and a second
 * ends the process, and what it does is shown as it happens. What the command line says of provider and model counts for
 * every node: that is how a graph is tried without an account.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/chat/chat.h"
#include "cli/graph/graph_set.h"
#include "cli/graph/graph_view_internal.h"
#include "cli/terminal/progress.h"
#include "engine/rollback.h"
#include "engine/store_url.h"
#include "graph/resume.h"
#include "engine/recovery_thread.h"

struct driving {
    struct cli *cli;
    tide_graph *graph;
    tide_session *session;
    struct agent_setup setup;
    struct graph_view *view;
    struct recovery_thread *sweep;
    tide_session *fork;     /* it went on in this one; NULL: in the one that was given */
    struct buf answer, set; /* of a question at the terminal; what is stored nowhere, for the next run */
    char token[TIDE_TOKEN_SIZE];
    struct arena arena;
    int how; /* as in struct graph_ending */
    bool quiet;
    atomic_bool announced, told, held; /* which session it is; that it is being stopped; that it is held */
};

/* ---- what the graph needs ---- */

static const struct spec_node *bare(const struct spec_node *n)
{
    while (n->type == SPEC_MAP && n->node)
        n = n->node;
    return n;
}

struct needs {
    bool agents, without_model;
    const char *model;                     /* of the first agent that has one */
    const struct spec_node *callback_node; /* the first that calls one */
};

static void look_at_node(const struct spec_node *n, struct needs *ret);

static void look_at(const struct spec_graph *g, struct needs *ret)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        look_at_node(bare(&g->nodes.at[i]), ret);
    for (size_t i = 0; i < g->edges.n; i++)
        ret->agents |= g->edges.at[i].on == SPEC_LLM;
}

static void look_at_node(const struct spec_node *n, struct needs *ret)
{
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

bool graph_node_asks(const struct spec_node *node)
{
    struct needs needs = {0};

    look_at_node(bare(node), &needs);
    return needs.agents;
}

/* The digest stays: it is one of the JSON. */
static void say_for_all(const struct spec_graph *g, const struct graph_want *w)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct spec_node *n = &g->nodes.at[i];

        while (n->type == SPEC_MAP && n->node)
            n = n->node;
        if (w->provider || w->script)
            n->provider = STR("");
        if (w->model)
            n->model = STR("");
        if (n->graph)
            say_for_all(n->graph, w);
    }
}

/* ---- who answers, for all nodes ---- */

void graph_put_provider(struct json_out *o, const struct graph_want *w)
{
    AUTO(mem_freep) char *script = w->script ? realpath(w->script, NULL) : NULL;
    const char *type = w->provider ? w->provider : w->script ? "script" : NULL;

    if (!type && !w->model && !w->base_url)
        return;
    json_out_key(o, STR("provider"));
    json_out_begin(o, '{');
    json_out_kstr_opt(o, STR("type"), str_from(type));
    json_out_kstr_opt(o, STR("model"), str_from(w->model));
    json_out_kstr_opt(o, STR("base_url"), str_from(w->base_url));
    json_out_kstr_opt(o, STR("script"), str_from(script ? script : w->script));
    json_out_kbool(o, STR("all_nodes"), true);
    json_out_end(o, '}');
}

static const char *recorded(struct driving *d, const struct json *provider, const char *key)
{
    struct str text = json_get_text(&d->arena, provider, str_from(key));

    return text.len ? arena_dup(&d->arena, text).ptr : NULL;
}

/* What `run` was told holds for a resume, unless it says otherwise. The address is found by the chat, which knows to
 * whom a key may go. */
static void take_recorded(struct driving *d, struct graph_want *w)
{
    const char *text = map_get(&d->session->state->info.fields, STR("provider")), *type;
    const char *told = w->provider ? w->provider : w->script ? "script" : NULL;
    struct json *p = NULL;

    if (!w->resume || !text || json_parse(&d->arena, arena_dup(&d->arena, str_from(text)), NULL, &p, NULL, NULL) ||
        !json_get_bool(p, STR("all_nodes"), false))
        return;
    type = recorded(d, p, "type");
    if (told && !(type && strcmp(told, type) == 0))
        return; /* the rest belongs to the other one */
    w->provider = told ? w->provider : type;
    w->model = w->model ? w->model : recorded(d, p, "model");
    w->script = w->script ? w->script : recorded(d, p, "script");
}

/* ---- settings ---- */

static enum tide_code open_settings(struct driving *d, const struct graph_want *w, struct tide_err *err)
{
    struct needs needs = {0};
    struct agent_want want;
    enum tide_code code;

    look_at(d->graph->spec->graph, &needs);
    want = (struct agent_want){.provider = w->provider ? w->provider
                                           : w->script ? NULL
                                                       : d->graph->spec->graph->provider.ptr,
                               .model = w->model              ? w->model
                                        : needs.without_model ? NULL
                                                              : needs.model, /* each has its own */
                               .base_url = w->base_url,
                               .script = w->script,
                               .yes = w->yes,
                               .no_tools = w->no_tools,
                               .degrade = w->opt.on_store_error_continue,
                               .degrade_said = w->degrade_said,
                               .keep_pause = w->keep_pause};
    if (want.provider && !*want.provider)
        want.provider = NULL;
    code = chat_setup(d->cli, &want, &d->setup, err);
    if (!code && !config_text(d->setup.settings.config, "log_file") && !args_on(&d->cli->args, "verbose"))
        tide_log_set(TIDE_LOG_OFF, NULL, NULL);                                 /* it would be drawn over */
    if (!code && needs.agents && agent_setup_check(&d->setup, d->session, err)) /* then a node that needs it says so */
        code = w->agents_later ? TIDE_OK : err->code;
    return code;
}

static enum tide_code check_callbacks(const tide_graph *graph, struct tide_err *err)
{
    struct needs needs = {0};

    look_at(graph->spec->graph, &needs);
    if (!needs.callback_node)
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID,
                     "node '%s' calls '%s', which is registered by a program that holds the library: give it a "
                     "`program` to run it here",
                     needs.callback_node->id.len ? needs.callback_node->id.ptr : "in a map",
                     needs.callback_node->callback.ptr);
}

enum tide_code graph_check_here(struct cli *cli, tide_graph *graph, const struct graph_want *w, struct tide_err *err)
{
    struct driving d = {.cli = cli, .graph = graph};
    struct spec_checkpoints ignored = graph->spec->graph->checkpoints;
    enum tide_code code;

    if (check_callbacks(graph, err))
        return err->code;
    if (w->opt.checkpoints && spec_change_checkpoints(graph->spec, str_from(w->opt.checkpoints), &ignored, err))
        return err->code;
    code = open_settings(&d, w, err);
    agent_setup_done(&d.setup);
    return code;
}

const struct spec_graph *graph_spec(const tide_graph *graph)
{
    return graph->spec->graph;
}

/* ---- signals ---- */

static tide_graph *volatile working; /* for the handler */

static void stop(int number)
{
    if (working && number == SIGINT)
        tide_graph_stop(working);
    else if (working)
        tide_graph_shutdown(working);
}

#define SECOND_MS 700 /* one that comes sooner is the same wish: what was stopped is still to be recorded */

static int64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Ctrl-C is a person's; the others say that the process is to end. The second one ends it at once. */
static void on_signal(int number)
{
    static _Atomic int64_t first_ms;
    int64_t none = 0;

    if (!atomic_compare_exchange_strong(&first_ms, &none, clock_ms()) && clock_ms() - first_ms >= SECOND_MS) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stop_signal = number;
    stop(number);
}

static void set_signals(tide_graph *graph)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_signal}, before;

    working = graph;
    for (size_t i = 0; graph && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL)
            sigaction(numbers[i], &act, NULL);
}

/* ---- while it runs ---- */

static void announce(struct driving *d)
{
    const char *id = tide_session_id(d->session);

    if (atomic_exchange(&d->announced, true))
        return;
    if (d->how == END_STREAM)
        view_stream_start(d->view, id, tide_graph_digest(d->graph));
    else if (!d->quiet)
        fprintf(stderr, "session %s\n", id);
}

/* Who waits for it wants to know why it stands still, however quiet it is to be. */
static void say_held(struct driving *d, const struct tide_graph_event *e)
{
    bool held = e->what == TIDE_GRAPH_NOTICE && !e->node && e->text && strstr(e->text, EXEC_HELD);

    if (held && d->quiet && d->how != END_STREAM && !atomic_exchange(&d->held, true))
        graph_view_say(d->view, e->text);
}

static void on_event(void *arg, const struct tide_graph_event *e)
{
    struct driving *d = arg;

    announce(d);       /* not before it is taken: a refusal is one line */
    if (stop_signal) { /* also one that came before the handler was there */
        stop(stop_signal);
        if (!atomic_exchange(&d->told, true))
            graph_view_say(d->view, "stopping…, to go on later; again to leave at once");
    }
    say_held(d, e);
    graph_view_event(d->view, e);
}

static bool is_screen(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static bool has_color(const struct cli *cli)
{
    const char *when = args_text(&cli->args, "color"), *no = getenv("NO_COLOR");

    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return isatty(STDERR_FILENO) && !(no && *no);
}

static enum graph_show how_shown(const struct driving *d)
{
    if (d->how == END_STREAM)
        return GRAPH_SHOW_JSON;
    if (d->quiet)
        return GRAPH_SHOW_NOTHING;
    return args_on(&d->cli->args, "verbose") ? GRAPH_SHOW_ALL : is_screen() ? GRAPH_SHOW_TREE : GRAPH_SHOW_LINES;
}

static enum tide_code run(struct driving *d, struct graph_want *w, struct tide_graph_result *ret, struct tide_err *err)
{
    enum tide_code code;

    w->opt.agent = &d->setup.opt;
    w->opt.on_store_error_continue = d->setup.opt.on_store_error_continue; /* as set */
    w->opt.event = on_event;
    w->opt.arg = d;
    set_signals(d->graph);
    code = w->resume ? tide_graph_resume(d->session, d->graph, &w->opt, ret, err)
                     : tide_graph_run(d->session, d->graph, &w->opt, ret, err);
    set_signals(NULL);
    return code;
}

/* ---- what it waits for ---- */

/* Keys that are stored nowhere went with the run that parked; all others are in the log. */
static void keep_secrets(struct driving *d, struct graph_want *w)
{
    AUTO(mem_freep) struct exec *x = mem_zero(sizeof(*x));
    struct json_out o = json_out_to(&d->set);
    struct json *given = NULL;
    struct tide_err ignored;

    if (d->set.len || !w->opt.memory) /* found when it was asked before */
        return;
    json_out_begin(&o, '{');
    if (!exec_begin(x, d->session, d->graph, &w->opt, &ignored) && !exec_inherit(x, &ignored) &&
        !json_parse(&d->arena, str_from(w->opt.memory), NULL, &given, NULL, NULL))
        for (const struct json *m = given->first; m; m = m->next)
            if (exec_is_excluded(x, json_key_text(&d->arena, m)))
                json_out_kraw(&o, json_key_text(&d->arena, m), json_source(m));
    json_out_end(&o, '}');
    exec_done(x);
    w->opt.memory = d->set.len > 2 ? buf_cstr(&d->set) : NULL;
}

static bool may_ask(const struct driving *d, const struct graph_want *w)
{
    return d->how == END_TEXT && !w->no_input && !w->token_fd && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* A completed session goes on in a fork. */
static bool follow(struct driving *d, const char *id)
{
    struct tide_err ignored;

    if (strcmp(id, tide_session_id(d->session)) == 0)
        return true;
    if (d->fork || tide_session_open(d->cli->store, id, TIDE_SESSION_APPEND, &d->fork, &ignored))
        return false;
    d->session = d->fork;
    return true;
}

/* It is parked: a person who is here is asked, and it goes on. The token binds the answer to this question. */
static bool answered(struct driving *d, struct graph_want *w, const struct tide_graph_result *result)
{
    if (!may_ask(d, w) || !follow(d, result->session_id))
        return false;
    graph_view_pause(d->view);
    buf_clear(&d->answer);
    if (!graph_ask(d->session, &d->answer))
        return false;
    keep_secrets(d, w);
    memcpy(d->token, result->token, sizeof(d->token));
    w->resume = true;
    w->opt.token = d->token[0] ? d->token : NULL;
    w->opt.input = buf_cstr(&d->answer);
    w->opt.checkpoint = NULL;
    w->opt.renames = w->opt.retry = w->opt.happened = NULL;
    w->opt.rollback = 0;
    w->opt.fallback = 0;
    return true;
}

static void show_before(struct driving *d, const struct graph_want *w)
{
    struct tide_err ignored; /* what is wrong with the checkpoint is said by the resume */
    int64_t seq = 0;

    if (!w->opt.checkpoint || !session_position(d->session, w->opt.checkpoint, &seq, &ignored))
        graph_view_before(d->view, d->session, seq);
}

static enum tide_code drive(struct driving *d, struct graph_want *w, struct tide_err *err)
{
    struct tide_graph_result result = {.token = ""};
    struct graph_ending e = {d->session, NULL, w, &result, TIDE_OK, d->how};
    enum tide_code code;

    d->view = graph_view_open(d->graph->spec->graph, how_shown(d), has_color(d->cli));
    if (w->resume)
        show_before(d, w);
    e.code = run(d, w, &result, err);
    while (e.code == TIDE_WAITING && answered(d, w, &result)) {
        tide_text_done(&result.memory);
        e.code = run(d, w, &result, err);
    }
    e.session = d->session;
    e.view = d->view;
    view_finish(d->view, e.code);
    code = graph_end(d->cli, &e, err);
    graph_view_close(d->view, e.code);
    tide_text_done(&result.memory);
    return code;
}

enum tide_code graph_drive(struct cli *cli, tide_session *session, tide_graph *graph, struct graph_want *w,
                           struct tide_err *err)
{
    struct driving d = {.cli = cli,
                        .graph = graph,
                        .session = session,
                        .quiet = w->quiet,
                        .answer = BUF_INIT((size_t)1 << 20),
                        .set = BUF_INIT(SIZE_MAX / 4),
                        .arena = ARENA_INIT};
    int64_t sweep_ms = 0;
    enum tide_code code;

    d.how = w->output && strcmp(w->output, "stream-json") == 0               ? END_STREAM
            : cli->out.json || (w->output && strcmp(w->output, "json") == 0) ? END_JSON
                                                                             : END_TEXT;
    if (check_callbacks(graph, err))
        return err->code;
    take_recorded(&d, w);
    code = open_settings(&d, w, err);
    code = code ? code : settings_sweep_interval(args_text(&cli->args, "config"), &sweep_ms, err);
    if (!code) {
        say_for_all(graph->spec->graph, w);
        d.sweep = recovery_thread_start(cli->store, sweep_ms);
        code = drive(&d, w, err);
        recovery_thread_stop(d.sweep);
    }
    agent_setup_done(&d.setup);
    tide_session_close(d.fork);
    graph_set_done(&d.set);
    buf_done(&d.answer);
    arena_done(&d.arena);
    return code;
}
