/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark run: a graph as a session that cannot be lost. Everything that can be known to be wrong is said before there is a
 * session: the graph, the values, the settings. An agent.json of Hive is taken as it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_set.h"
#include "cli/graph/graph_view.h"
#include "cli/report.h"
#include "cli/options.h"
#include "engine/graph_file.h"

#define PROBLEMS_TOLD 50

static const struct opt options[] = {
    {OPT_MANY("set", "KEY=VALUE",
              "set a key of the memory before anything runs: KEY=text, KEY:=JSON, KEY=@FILE, KEY=- (standard input), "
              "KEY=$VARIABLE")},
    {.name = "entry",
     .type = VALUE_TEXT,
     .value = "NAME",
     .help = "start at this one of the graph's `entry_points` (default: its `entry`)"},
    {.name = "goal",
     .type = VALUE_TEXT,
     .value = "TEXT",
     .help = "the value of {goal} in prompts and questions (default: the graph's `goal`)"},
    {.name = "session", .type = VALUE_ID, .value = "ID", .help = "the id of the session (default: a new one)"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "title of the session (default: the graph's name)"},
    {OPT_MANY("checkpoint", "KEY=VALUE",
              "override when checkpoints are made, over the graph and the configuration: a key of `checkpoints`, as in "
              "async_checkpoint=false")},
    {.name = "no-checkpoints", .help = "make no checkpoints, except before a question to a person and at safe points"},
    {OPT_PARALLEL("run at most N nodes at once (default: as in the graph)")},
    {OPT_PROVIDER("the provider of all nodes (default: as in the graph, else as configured)")},
    {OPT_MODEL("the model of all nodes (default: the same)")},
    {OPT_BASE_URL},
    {OPT_SCRIPT},
    {.name = "no-input", .help = "ask nothing at the terminal; a wait ends the process with exit status 7"},
    {OPT_YES},
    {.name = "no-tools", .help = "agents use no tools"},
    {OPT_ON_STORE_ERROR(STORE_ERROR_HELP)},
    {OPT_TOKEN_FD(1, "a")},
    {OPT_OUTPUT("print the outputs of the last nodes")},
    {OPT_QUIET},
    {.name = NULL},
};

/* ---- the graph ---- */

struct reading {
    bool quiet;
    size_t problems, told;
};

static void tell_problem(void *arg, const struct problem *p)
{
    struct reading *r = arg;
    struct out out;

    r->problems += !p->warning;
    if ((p->warning && r->quiet) || r->told == PROBLEMS_TOLD)
        return;
    r->told++;
    out_init(&out);
    outf(&out, "%s  ", p->warning ? "warning" : "problem");
    out_value(&out, p->path);
    outf(&out, ": ");
    out_value(&out, p->what);
    if (p->hint[0]) {
        outf(&out, "\n         ");
        out_value(&out, p->hint);
    }
    outf(&out, "\n");
    say_lines(buf_view(&out.text));
    out_done(&out);
}

/* All problems are reported. */
static enum tide_code read_graph(struct cli *cli, tide_graph **ret, struct tide_err *err)
{
    const char *file = args_operand(&cli->args, 0);
    struct reading r = {.quiet = args_on(&cli->args, "quiet")};
    bool hive = false;
    enum tide_code code = graph_file_read(file, tell_problem, &r, &hive, ret, err);

    if (hive && !r.quiet)
        say("%.150s is an agent.json of Hive, taken as a graph: `tidemark graph import %.150s` shows which", file,
            file);
    if (!code || !r.problems)
        return code == TIDE_INVALID ? tide_wrap(err, "%.150s", file) : code;
    tide_fail(err, TIDE_INVALID, "%.150s has %zu problem%s, and nothing was run", file, r.problems,
              r.problems == 1 ? "" : "s");
    if (r.told == PROBLEMS_TOLD) {
        char all[256];

        snprintf(all, sizeof(all), "`tidemark graph check %.150s` shows all of them", file);
        err_advise(err, all);
    }
    return tide_about(err, TIDE_SUBJECT_FILE, file);
}

/* ---- values ---- */

static enum tide_code take_memory(const struct cli *cli, struct buf *json, struct tide_err *err)
{
    AUTO(mem_freep) const char **sets = args_all(&cli->args, "set");
    const char *from_input = set_from_input(&cli->args);

    if (from_input && strcmp(args_operand(&cli->args, 0), "-") == 0)
        return args_refuse(err, "set", "--set %.60s: standard input is the graph: put one of them into a file",
                           from_input);
    return sets[0] ? graph_set_read(sets, json, err) : TIDE_OK;
}

static enum tide_code take_checkpoints(const struct cli *cli, struct buf *json, struct tide_err *err)
{
    AUTO(mem_freep) const char **given = args_all(&cli->args, "checkpoint");
    bool off = args_on(&cli->args, "no-checkpoints");

    if (off && given[0])
        return args_refuse(err, "no-checkpoints", "--no-checkpoints and --checkpoint: give one of them");
    return graph_take_checkpoints("checkpoint", off ? graph_no_checkpoints : given, true,
                                  args_text(&cli->args, "config"), json, err);
}

static enum tide_code check_options(const struct cli *cli, const struct graph_face *f, const struct agent_want *w,
                                    struct tide_err *err)
{
    if (w->script && w->provider && strcmp(w->provider, "script") != 0)
        return args_refuse(err, "script", "--script and --provider %s: give one of them", w->provider);
    if (cli->out.json && f->output && strcmp(f->output, "json") != 0)
        return args_refuse(err, "output", "--json and --output %s: give one of them", f->output);
    if (w->model && !*w->model)
        return args_refuse(err, "model", "--model is empty: name one, or omit it");
    return TIDE_OK;
}

/* ---- the session ---- */

static enum tide_code run_graph(struct cli *cli, tide_graph *graph, const struct graph_face *f, struct graph_want *want,
                                struct tide_err *err)
{
    AUTO(mem_freep) const char **sets = args_all(&cli->args, "set");
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(graph_run_done) struct graph_run run = GRAPH_RUN_INIT;
    struct tide_graph_result result = {.token = ""};
    struct graph_driving d = {.view = NULL};
    bool made = false;
    enum tide_code code;

    if (cli_store_open_held(cli, NEED_CREATE, err))
        return err->code;
    graph_set_hide(sets, cli->store);
    code = graph_session_open(cli->store, args_text(&cli->args, "session"), args_text(&cli->args, "title"), graph, want,
                              &cli_hold, &session, &made, err);
    if (code)
        return code;
    run.graph = graph;
    run.session = session;
    run.want = want;
    graph_drive(&d, cli, f, want, &run);
    code = cli_setup_open(cli, &run.setup, err);
    code = code ? code : graph_run(&run, args_text(&cli->args, "config"), &result, err);
    code = graph_end(&d, code, &result, err);
    tide_text_done(&result.memory);
    if (code && made)
        graph_session_drop(cli->store, &session);
    return code;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(graph_set_done) struct buf memory = BUF_INIT(GRAPH_SETS_MAX);
    AUTO(buf_done) struct buf checkpoints = BUF_INIT((size_t)1 << 20);
    AUTO(graph_freep) tide_graph *graph = NULL;
    const struct args *a = &cli->args;
    struct graph_face f = graph_face_from(a);
    struct graph_want want = {.who = agent_want_from(a), .opt = {.threads = (int)args_int(a, "parallel", 0)}};

    want.who.no_tools = args_on(a, "no-tools");
    take_on_store_error(a, &want.who);
    f.token_fd = (int)args_int(a, "token-fd", 0);
    if (check_options(cli, &f, &want.who, err) || (f.token_fd && check_fd(f.token_fd, "--token-fd", err)) ||
        take_checkpoints(cli, &checkpoints, err) || read_graph(cli, &graph, err) || take_memory(cli, &memory, err))
        return err->code;
    want.opt.checkpoints = checkpoints.len ? buf_cstr(&checkpoints) : NULL;
    want.opt.entry = args_text(a, "entry");
    want.opt.goal = args_text(a, "goal");
    if (graph_check_here(cli, graph, &want, err) ||
        graph_given(cli, graph, args_text(a, "session"), &f, &want, &memory, err))
        return err->code;
    return run_graph(cli, graph, &f, &want, err);
}

const struct command cmd_run = {
    .name = "run",
    .run = run,
    .opens_store = true,
    .operands = {{"GRAPH", VALUE_FILE, 0}},
    .options = options,
    .help = "run a graph as a session that cannot be lost",
    .more = "GRAPH is a file, or - for standard input; it may be an agent.json of Hive, an agent framework. Progress "
            "goes to\n"
            "standard error, the outputs of the last nodes to standard output. Questions are asked at the terminal; "
            "without\n"
            "one, the session waits and the command exits. Completed nodes never run again: `tidemark sessions "
            "resume ID`\n"
            "continues after them.\n"
            "Exit status: 0 completed; 1 a node failed; 2 refused; 7 waits for a person; 10 a node that must happen "
            "once was\n"
            "interrupted; 11 the session of --session is not trusted (`tidemark sessions trust ID`); 128 plus the "
            "signal if it\n"
            "was stopped.",
};
