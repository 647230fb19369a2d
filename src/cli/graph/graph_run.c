/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a graph from the command line: a first signal parks it and a second ends the process, what it does is shown as it
 * happens, and a person who is here is asked what it waits for.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/graph/graph_view_internal.h"
#include "cli/signal_pipe.h"
#include "cli/terminal/progress.h"
#include "engine/recovery_thread.h"
#include "engine/rollback.h"

struct driving {
    struct cli *cli;
    struct graph_face *face;
    struct graph_run run;
    struct graph_view *view;
    int how;                           /* as in struct graph_ending */
    atomic_bool announced, told, held; /* which session it is; that it is being stopped; that it is held */
};

/* ---- before it runs ---- */

enum tide_code graph_check_here(struct cli *cli, tide_graph *graph, const struct graph_want *w, struct tide_err *err)
{
    AUTO(agent_setup_done) struct agent_setup setup = {0};

    return cli_setup_open(cli, &setup, err) ? err->code : graph_setup(&setup, graph, NULL, w, err);
}

enum tide_code graph_given(struct cli *cli, tide_graph *graph, const char *id, struct graph_face *f, struct buf *memory,
                           struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_graph_options *opt = &f->want.opt;
    const struct graph_missing *missing = NULL;
    tide_session *session = NULL;
    struct tide_err ignored;
    bool asked = false;
    enum tide_code code;

    if (id && !cli_store_open(cli, NEED_READ, 0, &ignored) && /* one that is there already has a memory */
        tide_session_open(cli->store, id, TIDE_SESSION_READ, &session, &ignored))
        session = NULL;
    opt->memory = memory->len ? buf_cstr(memory) : NULL;
    code = graph_missing_inputs(&a, graph, opt, session, &missing, err);
    if (!code && !f->quiet)
        graph_say_unread(graph, buf_view(memory));
    if (!code && graph_may_ask(f))
        code = graph_ask_missing(missing, memory, &asked, err);
    opt->memory = memory->len ? buf_cstr(memory) : NULL;
    if (!code && asked)
        code = graph_missing_inputs(&a, graph, opt, session, &missing, err);
    tide_session_close(session);
    cli_store_close(cli);
    return code ? code : graph_refuse_missing(missing, err);
}

/* ---- while it runs ---- */

static void on_event(void *arg, const struct tide_graph_event *e)
{
    struct driving *d = arg;

    if (!atomic_exchange(&d->announced, true)) { /* not before it is taken: a refusal is one line */
        const char *id = tide_session_id(d->run.session);

        if (d->how == END_STREAM)
            view_stream_start(d->view, id, tide_graph_digest(d->run.graph));
        else if (!d->face->quiet)
            fprintf(stderr, "session %s\n", id);
    }
    if (signals_stopped() && !atomic_exchange(&d->told, true))
        graph_view_say(d->view, "stopping…, to go on later; again to leave at once");
    /* Who waits for it wants to know why it stands still, however quiet it is to be. */
    if (e->what == TIDE_GRAPH_NOTICE && e->delay_ms < 0 && d->face->quiet && d->how != END_STREAM &&
        !atomic_exchange(&d->held, true))
        graph_view_say(d->view, e->text);
    graph_view_event(d->view, e);
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
    bool screen = isatty(STDERR_FILENO) && terminal_is_capable();

    if (d->how == END_STREAM)
        return GRAPH_SHOW_JSON;
    if (d->face->quiet)
        return GRAPH_SHOW_NOTHING;
    return args_on(&d->cli->args, "verbose") ? GRAPH_SHOW_ALL : screen ? GRAPH_SHOW_TREE : GRAPH_SHOW_LINES;
}

/* Ctrl-C is a person's; the others say that the process is to end. */
static void stop_graph(void *graph, bool person)
{
    (person ? tide_graph_stop : tide_graph_shutdown)(graph);
}

static enum tide_code run_graph(struct driving *d, struct tide_graph_result *ret, struct tide_err *err)
{
    enum tide_code code;

    signals_stop(stop_graph, d->run.graph);
    code = graph_run_go(&d->run, ret, err);
    signals_stop(stop_graph, NULL);
    return code;
}

/* It is parked: a person who is here is asked, and it goes on. */
static bool answered(struct driving *d, const struct tide_graph_result *result, struct buf *answer)
{
    if (d->how != END_TEXT || d->face->token_fd || !graph_may_ask(d->face) || !graph_run_follow(&d->run, result))
        return false;
    graph_view_pause(d->view);
    buf_clear(answer);
    if (!graph_ask(d->run.session, answer))
        return false;
    graph_run_answer(&d->run, result, buf_cstr(answer));
    return true;
}

static enum tide_code drive_graph(struct driving *d, struct tide_err *err)
{
    AUTO(buf_done) struct buf answer = BUF_INIT((size_t)1 << 20);
    struct tide_graph_result result = {.token = ""};
    struct graph_ending e = {.face = d->face, .result = &result, .how = d->how};
    const struct graph_want *w = &d->face->want;
    struct tide_err ignored; /* what is wrong with the checkpoint is said by the resume */
    enum tide_code code;
    int64_t seq = 0;

    e.view = d->view = graph_view_open(d->run.graph, how_shown(d), has_color(d->cli));
    if (w->resume && (!w->opt.checkpoint || !session_position(d->run.session, w->opt.checkpoint, &seq, &ignored)))
        graph_view_before(d->view, d->run.session, seq);
    e.code = run_graph(d, &result, err);
    while (e.code == TIDE_WAITING && answered(d, &result, &answer)) {
        tide_text_done(&result.memory);
        e.code = run_graph(d, &result, err);
    }
    e.session = d->run.session;
    view_finish(d->view, e.code);
    code = graph_end(d->cli, &e, err);
    graph_view_close(d->view, e.code);
    tide_text_done(&result.memory);
    return code;
}

enum tide_code graph_drive(struct cli *cli, tide_session *session, tide_graph *graph, struct graph_face *f,
                           struct tide_err *err)
{
    struct driving d = {.cli = cli, .face = f, .run = GRAPH_RUN_INIT};
    struct recovery_thread *sweep;
    int64_t sweep_ms = 0;
    enum tide_code code;

    d.how = f->output && strcmp(f->output, "stream-json") == 0               ? END_STREAM
            : cli->out.json || (f->output && strcmp(f->output, "json") == 0) ? END_JSON
                                                                             : END_TEXT;
    d.run.graph = graph;
    d.run.session = session;
    d.run.want = &f->want;
    f->want.opt.event = on_event;
    f->want.opt.arg = &d;
    code = cli_setup_open(cli, &d.run.setup, err);
    code = code ? code : graph_run_begin(&d.run, err);
    code = code ? code : settings_sweep_interval(args_text(&cli->args, "config"), &sweep_ms, err);
    if (!code) {
        if (!config_text(d.run.setup.settings.config, "log_file") && !args_on(&cli->args, "verbose"))
            tide_log_set(TIDE_LOG_OFF, NULL, NULL); /* it would be drawn over */
        sweep = recovery_thread_start(cli->store, sweep_ms);
        code = drive_graph(&d, err);
        recovery_thread_stop(sweep);
    }
    graph_run_done(&d.run);
    return code;
}
