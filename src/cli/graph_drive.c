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

#include "cli/chat.h"
#include "cli/graph_view_internal.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "cli/store_url.h"
#include "graph/exec.h"
#include "program/sweep.h"

struct driving {
    struct cli *cli;
    tide_graph *graph;
    tide_session *session;
    struct chat chat;
    struct chat_want chat_want;
    struct graph_view *view;
    struct sweep *sweep;
    int how; /* as in struct graph_ending */
    bool quiet;
    atomic_bool announced, told; /* which session it is; that it is being stopped */
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

/* ---- settings ---- */

static enum tide_code open_settings(struct driving *d, const struct graph_want *w, struct tide_err *err)
{
    struct needs needs = {0};
    enum tide_code code;

    look_at(d->graph->spec->graph, &needs);
    d->chat_want = (struct chat_want){.provider = w->provider ? w->provider
                                                  : w->script ? NULL
                                                              : d->graph->spec->graph->provider.ptr,
                                      .model = w->model              ? w->model
                                               : needs.without_model ? NULL
                                                                     : needs.model, /* each has its own */
                                      .base_url = w->base_url,
                                      .script = w->script,
                                      .yes = w->yes,
                                      .no_tools = w->no_tools,
                                      .degrade = w->opt.on_store_error_continue};
    if (d->chat_want.provider && !*d->chat_want.provider)
        d->chat_want.provider = NULL;
    code = chat_init(&d->chat, d->cli, &d->chat_want, NULL, NULL, NULL, err);
    d->chat.session = d->session;
    d->chat.quiet = !code && !config_text(d->chat.settings.config, "log_file") && !args_on(&d->cli->args, "verbose");
    if (!code && needs.agents)
        code = chat_check(&d->chat, err);
    return code;
}

/* The session and the store are the caller's. */
static void close_settings(struct driving *d)
{
    tide_store *store = TAKE(d->cli->store);

    d->chat.session = NULL;
    chat_done(&d->chat);
    d->cli->store = store;
}

enum tide_code graph_check_here(struct cli *cli, tide_graph *graph, const struct graph_want *w, struct tide_err *err)
{
    struct driving d = {.cli = cli, .graph = graph};
    struct spec_checkpoints ignored = graph->spec->graph->checkpoints;
    struct needs needs = {0};
    enum tide_code code;

    look_at(graph->spec->graph, &needs);
    if (needs.callback_node)
        return tide_fail(err, TIDE_INVALID,
                         "node '%s' calls '%s', which is registered by a program that holds the library: give it a "
                         "`program` to run it here",
                         needs.callback_node->id.len ? needs.callback_node->id.ptr : "in a map",
                         needs.callback_node->callback.ptr);
    if (w->opt.checkpoints && spec_change_checkpoints(graph->spec, str_from(w->opt.checkpoints), &ignored, err))
        return err->code;
    code = open_settings(&d, w, err);
    close_settings(&d);
    return code;
}

const struct spec_graph *graph_spec(const tide_graph *graph)
{
    return graph->spec->graph;
}

bool graph_made(tide_session *session)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    const struct json_limits deeper = {0, JSON_MAX_DEPTH + 16};
    struct json *body = NULL;

    return !tide_run_program(session, &text, NULL) &&
           !json_parse(&a, (struct str){text.ptr, text.len}, &deeper, &body, NULL, NULL) &&
           str_eq(json_get_text(&a, body, STR("loop")), STR("graph"));
}

/* ---- signals ---- */

static tide_graph *volatile working; /* for the handler */

/* Ctrl-C is a person's; the others say that the process is to end. */
static void on_signal(int number)
{
    stop_signal = number;
    if (working && number == SIGINT)
        tide_graph_stop(working);
    else if (working)
        tide_graph_shutdown(working);
}

static void set_signals(tide_graph *graph)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, before;

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

static void on_event(void *arg, const struct tide_graph_event *e)
{
    struct driving *d = arg;

    announce(d);       /* not before it is taken: a refusal is one line */
    if (stop_signal) { /* also one that came before the handler was there */
        on_signal(stop_signal);
        if (!atomic_exchange(&d->told, true))
            graph_view_say(d->view, "stopping…, to go on later; again to leave at once");
    }
    if (e->agent)
        chat_log(&d->chat, e->agent);
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

    w->opt.agent = &d->chat.opt;
    w->opt.on_store_error_continue |= d->chat.opt.on_store_error_continue; /* as set */
    w->opt.event = on_event;
    w->opt.arg = d;
    set_signals(d->graph);
    code = w->resume ? tide_graph_resume(d->session, d->graph, &w->opt, ret, err)
                     : tide_graph_execute(d->session, d->graph, &w->opt, ret, err);
    set_signals(NULL);
    return code;
}

static void show_before(struct driving *d, const struct graph_want *w)
{
    struct tide_err ignored; /* what is wrong with the checkpoint is said by the resume */
    int64_t seq = 0;

    if (!w->opt.checkpoint || !cli_position(d->session, w->opt.checkpoint, &seq, &ignored))
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
    struct driving d = {.cli = cli, .graph = graph, .session = session, .quiet = w->quiet};
    int64_t sweep_ms = 0;
    enum tide_code code;

    d.how = w->output && strcmp(w->output, "stream-json") == 0               ? END_STREAM
            : cli->out.json || (w->output && strcmp(w->output, "json") == 0) ? END_JSON
                                                                             : END_TEXT;
    code = open_settings(&d, w, err);
    code = code ? code : store_sweep_interval(cli, &sweep_ms, err);
    if (!code) {
        say_for_all(graph->spec->graph, w);
        d.sweep = sweep_start(cli->store, sweep_ms);
        code = drive(&d, w, err);
        sweep_stop(d.sweep);
    }
    close_settings(&d);
    return code;
}
