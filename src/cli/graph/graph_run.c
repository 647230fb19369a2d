/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a graph from the command line: a first signal parks it and a second ends the process, what it does is shown as it
 * happens, and a person who is here is asked what it waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_view_internal.h"
#include "cli/signals.h"
#include "terminal/progress.h"
#include "engine/rollback.h"

/* ---- before it runs ---- */

enum tide_code graph_check_here(struct cli *cli, tide_graph *graph, const struct graph_want *w, struct tide_err *err)
{
    AUTO(agent_setup_done) struct agent_setup setup = {0};

    return cli_setup_open(cli, &setup, err) ? err->code : graph_setup(&setup, graph, NULL, w, err);
}

enum tide_code graph_given(struct cli *cli, tide_graph *graph, const char *id, const struct graph_face *f,
                           struct graph_want *want, struct buf *memory, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_graph_options *opt = &want->opt;
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
        graph_find_unread(graph, buf_view(memory), graph_say_unread, NULL);
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

/* Trouble of the store is shown with what helps against it. */
static struct tide_graph_event with_help(struct arena *a, const struct tide_graph_event *e,
                                         struct tide_agent_event *agent)
{
    struct tide_graph_event shown = *e;

    shown.text = trouble_text(a, e->text, e->why);
    if (e->agent && e->agent->why) {
        *agent = *e->agent;
        agent->text = trouble_text(a, agent->text, agent->why);
        agent->text_len = strlen(agent->text);
        shown.agent = agent;
    }
    return shown;
}

static void on_event(void *arg, const struct tide_graph_event *told)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_agent_event agent;
    const struct tide_graph_event shown = with_help(&a, told, &agent), *e = &shown;
    struct graph_driving *d = arg;

    if (!atomic_exchange(&d->announced, true)) { /* not before it is taken: a refusal is one line */
        const char *id = tide_session_id(d->run->session);

        if (d->how == END_STREAM)
            view_stream_start(d->view, id, tide_graph_digest(d->run->graph));
        else if (!d->face->quiet)
            fprintf(stderr, "session %s\n", id);
    }
    if (signals_stopped() && !atomic_exchange(&d->told, true))
        graph_view_say(d->view, "stopping…; it can be resumed; again to exit at once");
    /* A person who waits for it must see why it does not continue, also with --quiet. */
    if (e->what == TIDE_GRAPH_NOTICE && e->delay_ms < 0 && d->face->quiet && d->how != END_STREAM &&
        !atomic_exchange(&d->held, true))
        graph_view_say(d->view, e->text);
    graph_view_event(d->view, e);
}

bool graph_has_color(const struct cli *cli)
{
    const char *when = args_text(&cli->args, "color"), *no = getenv("NO_COLOR");

    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return isatty(STDERR_FILENO) && !(no && *no);
}

static enum graph_show how_shown(const struct graph_driving *d)
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

/* The view is opened when the graph is known. */
static void open_view(struct graph_driving *d)
{
    const struct graph_want *w = d->run->want;
    struct tide_err ignored; /* what is wrong with the checkpoint is said by the resume */
    int64_t seq = 0;

    if (!config_text(d->run->setup.settings.config, "log_file") && !args_on(&d->cli->args, "verbose"))
        tide_log_set(TIDE_LOG_OFF, NULL, NULL); /* it would be drawn over */
    d->view = graph_view_open(d->run->graph, how_shown(d), graph_has_color(d->cli));
    if (w->resume && (!w->opt.checkpoint || !session_position(d->run->session, w->opt.checkpoint, &seq, &ignored)))
        graph_view_before(d->view, d->run->session, seq);
}

static void on_running(void *arg, bool runs)
{
    struct graph_driving *d = arg;

    if (runs && !d->view)
        open_view(d);
    signals_stop(stop_graph, runs ? d->run->graph : NULL);
}

/* It is parked: a person who is here is asked, and it continues. */
static bool on_wait(void *arg, tide_session *session, struct buf *ret_answer)
{
    struct graph_driving *d = arg;

    graph_view_pause(d->view);
    return graph_ask(d->cli, session, ret_answer);
}

void graph_drive(struct graph_driving *d, struct cli *cli, const struct graph_face *f, struct graph_want *want,
                 struct graph_run *run)
{
    d->cli = cli;
    d->face = f;
    d->run = run;
    d->how = f->output && strcmp(f->output, "stream-json") == 0               ? END_STREAM
             : cli->out.json || (f->output && strcmp(f->output, "json") == 0) ? END_JSON
                                                                              : END_TEXT;
    want->opt.event = on_event;
    want->opt.arg = d;
    run->running = on_running;
    run->answer = d->how == END_TEXT && !f->token_fd && graph_may_ask(f) ? on_wait : NULL;
    run->arg = d;
}
