/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark run: a graph as a session that cannot be lost. Everything that can be known to be wrong is said before there is a
 * session: the graph, the values, the settings. An agent.json of Hive is taken as it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/graph/graph_inputs.h"
#include "cli/graph/graph_set.h"
#include "cli/report.h"
#include "cli/options.h"
#include "graph/exec.h"
#include "graph/spec_fields.h"
#include "hive/hive.h"
#include "session/session.h"

#define PROBLEMS_TOLD 50

static const struct opt options[] = {
    {OPT_MANY("set", "KEY=VALUE",
              "set a key of the memory before anything runs: KEY=text, KEY:=JSON, KEY=@FILE, KEY=- (standard input), "
              "KEY=$VARIABLE")},
    {.name = "session", .type = VALUE_ID, .value = "ID", .help = "the id of the session (default: a new one)"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "title of the session (default: the graph's name)"},
    {OPT_MANY("checkpoint", "KEY=VALUE",
              "when there is a checkpoint, instead of what the graph says: a key of its `checkpoints`, as in "
              "async_checkpoint=false")},
    {.name = "no-checkpoints", .help = "make none, but before a person is asked and at safe points"},
    {OPT_PARALLEL("nodes at once (default: as the graph says)")},
    {OPT_PROVIDER("who answers in all nodes (default: as the graph says, else as set)")},
    {OPT_MODEL("the model of all nodes (default: the same)")},
    {OPT_BASE_URL},
    {OPT_SCRIPT},
    {.name = "no-input", .help = "ask nothing at the terminal: what it waits for parks it"},
    {OPT_YES},
    {.name = "no-tools", .help = "agents may only talk"},
    {OPT_ON_STORE_ERROR(STORE_ERROR_HELP)},
    {OPT_TOKEN_FD(1, "a")},
    {OPT_OUTPUT("what its last nodes gave")},
    {OPT_QUIET},
    {.name = NULL},
};

/* ---- the graph ---- */

struct reading {
    bool quiet;
    size_t problems, told;
};

static void tell_problem(void *arg, const struct spec_problem *p)
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
    fprintf(stderr, "%s\n", buf_cstr(&out.text));
    out_done(&out);
}

static enum tide_code take_hive(const char *file, struct buf *text, struct reading *r, struct tide_err *err)
{
    AUTO(buf_done) struct buf json = BUF_INIT(4 * SPEC_MAX_BYTES);

    if (hive_to_graph(buf_view(text), tell_problem, r, &json, err))
        return tide_wrap(err, "%.150s", file);
    if (!r->quiet)
        say("%.150s is an agent.json of Hive, taken as a graph: `tidemark graph import` shows which", file);
    buf_clear(text);
    buf_add_str(text, buf_view(&json));
    return TIDE_OK;
}

static const char *dir_of(struct arena *a, const char *file)
{
    const char *slash = strrchr(file, '/');

    return !slash ? "." : slash == file ? "/" : arena_dup(a, (struct str){file, (size_t)(slash - file)}).ptr;
}

/* All that is wrong with it is told. */
static enum tide_code read_graph(struct cli *cli, tide_graph **ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(4 * SPEC_MAX_BYTES);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(spec_freep) struct spec *s = NULL;
    const char *file = args_operand(&cli->args, 0);
    struct reading r = {.quiet = args_on(&cli->args, "quiet")};
    const struct spec_options opt = {dir_of(&a, file), tell_problem, &r};

    if (spec_read(file, &text, err) || (hive_is(buf_view(&text)) && take_hive(file, &text, &r, err)))
        return err->code;
    if (!spec_parse(buf_view(&text), &opt, &s, err))
        return tide_graph_parse(s->json.ptr, s->json.len, NULL, NULL, NULL, ret, err);
    if (!r.problems)
        return tide_wrap(err, "%.150s", file);
    return tide_fail(err, TIDE_INVALID, "%.150s has %zu problem%s, and nothing was run%s", file, r.problems,
                     r.problems == 1 ? "" : "s",
                     r.told == PROBLEMS_TOLD ? ": `tidemark graph check` shows all of them" : "");
}

/* ---- values ---- */

static enum tide_code take_memory(const struct cli *cli, struct buf *json, struct tide_err *err)
{
    AUTO(mem_freep) const char **sets = args_all(&cli->args, "set");
    const char *from_input = set_from_input(&cli->args);

    if (from_input && strcmp(args_operand(&cli->args, 0), "-") == 0)
        return tide_fail(err, TIDE_INVALID, "--set %.60s: standard input is the graph: put one of them into a file",
                         from_input);
    return sets[0] ? graph_set_read(sets, json, err) : TIDE_OK;
}

/* As the graph has it, or without its "checkpoint_". */
static const struct spec_field *field_of(struct str key)
{
    for (const struct spec_field *f = spec_checkpoints_object.fields; f->name; f++)
        if (str_eq(str_from(f->name), key) ||
            (strncmp(f->name, "checkpoint_", 11) == 0 && str_eq(str_from(f->name + 11), key)))
            return f;
    return NULL;
}

static enum tide_code refuse_key(struct str key, struct tide_err *err)
{
    AUTO(buf_done) struct buf names = BUF_INIT(4096);

    for (const struct spec_field *f = spec_checkpoints_object.fields; f->name; f++)
        buf_addf(&names, "%s%s", names.len ? ", " : "", f->name);
    return tide_fail(err, TIDE_INVALID, "--checkpoint: there is no '%.*s': use one of %s",
                     (int)(key.len < 60 ? key.len : 60), key.ptr, buf_cstr(&names));
}

/* "a,b" */
static void put_list(struct json_out *o, const char *value)
{
    json_out_begin(o, '[');
    while (*value) {
        size_t n = strcspn(value, ",");

        if (n)
            json_out_str(o, (struct str){value, n});
        value += n + (value[n] == ',');
    }
    json_out_end(o, ']');
}

static enum tide_code put_checkpoint(struct json_out *o, const char *given, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str key = {given, strcspn(given, "=")};
    const char *value = given[key.len] ? given + key.len + 1 : NULL;
    const struct spec_field *f = field_of(key);
    struct json *v = NULL;

    if (!value || !*value)
        return tide_fail(err, TIDE_INVALID, "--checkpoint %.60s: give KEY=VALUE, as in async_checkpoint=false", given);
    if (!f)
        return refuse_key(key, err);
    json_out_key(o, str_from(f->name));
    if (json_parse(&a, str_from(value), NULL, &v, NULL, NULL) && (f->type == FIELD_TEXTS || f->type == FIELD_KEYS))
        put_list(o, value);
    else if (v)
        json_out_raw(o, str_from(value));
    else
        return tide_fail(err, TIDE_INVALID,
                         "--checkpoint %.60s: '%.60s' is no value for it: give true, false or a number", given, value);
    return TIDE_OK;
}

static enum tide_code take_checkpoints(const struct cli *cli, struct buf *json, struct tide_err *err)
{
    static const char *const none[] = {"checkpoint_on_node_start=false",
                                       "checkpoint_on_node_complete=false",
                                       "checkpoint_on_edge=false",
                                       "checkpoint_on_loop_iteration=false",
                                       "checkpoint_every_n_iterations=0",
                                       "slow_node_ms=0",
                                       "memory_delta_keys=0",
                                       "risky_nodes=[]",
                                       NULL};
    AUTO(mem_freep) const char **given = args_all(&cli->args, "checkpoint");
    bool off = args_on(&cli->args, "no-checkpoints");
    const char *const *list = off ? none : given;
    struct json_out o = json_out_to(json);

    if (off && given[0])
        return tide_fail(err, TIDE_INVALID, "--no-checkpoints and --checkpoint: give one of them");
    if (!list[0])
        return TIDE_OK;
    json_out_begin(&o, '{');
    for (size_t i = 0; list[i]; i++)
        if (put_checkpoint(&o, list[i], err))
            return err->code;
    json_out_end(&o, '}');
    return TIDE_OK;
}

static enum tide_code check_options(const struct cli *cli, const struct graph_want *w, struct tide_err *err)
{
    if (w->script && w->provider && strcmp(w->provider, "script") != 0)
        return tide_fail(err, TIDE_INVALID, "--script and --provider %s: give one of them", w->provider);
    if (cli->out.json && w->output && strcmp(w->output, "json") != 0)
        return tide_fail(err, TIDE_INVALID, "--json and --output %s: give one of them", w->output);
    if (w->model && !*w->model)
        return tide_fail(err, TIDE_INVALID, "--model is empty: name one, or leave it out");
    return TIDE_OK;
}

/* ---- the session ---- */

static void put_fields(const struct cli *cli, const tide_graph *graph, const struct graph_want *w, struct buf *out)
{
    struct str name = graph_spec(graph)->name;
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);
    const char *title = args_text(&cli->args, "title");
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("agent"), str_from(tide_graph_id(graph)));
    json_out_kstr_opt(&o, STR("title"), title ? str_from(title) : name);
    json_out_kstr_opt(&o, STR("working_dir"), str_from(cwd));
    json_out_kstr(&o, STR("loop"), STR("graph")); /* one that is cut before its first run is known to be for a graph */
    graph_put_provider(&o, w);
    json_out_end(&o, '}');
}

/* One that is there: what an earlier run was told holds no more. In the middle of a graph nothing changes: it is refused. */
static enum tide_code change_provider(tide_session *session, const struct graph_want *w, struct tide_err *err)
{
    AUTO(buf_done) struct buf body = BUF_INIT((size_t)1 << 20);
    const struct position *at = &session->state->content.position;
    const char *before = map_get(&session->state->info.fields, STR("provider"));
    struct json_out o = json_out_to(&body);

    json_out_begin(&o, '{');
    graph_put_provider(&o, w);
    if (body.len == 1 && before && strstr(before, "\"all_nodes\""))
        json_out_kraw(&o, STR("provider"), STR("{}"));
    json_out_end(&o, '}');
    if (body.len == 2 || at->ready.live || at->active.live)
        return TIDE_OK;
    const struct tide_new_event event = {.kind = "session.updated", .body = buf_cstr(&body)};

    return held_append(&cli_hold, session, &event, err);
}

static enum tide_code open_session(struct cli *cli, const tide_graph *graph, const struct graph_want *w,
                                   tide_session **ret, bool *ret_made, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    const char *id = args_text(&cli->args, "session");
    enum tide_code code;

    put_fields(cli, graph, w, &fields);
    code = held_create(&cli_hold, cli->store, id, buf_cstr(&fields), ret, err);
    *ret_made = !code;
    if (code != TIDE_EXISTS)
        return code;
    code = held_open(&cli_hold, cli->store, id, ret, err);
    return code ? code : change_provider(*ret, w, err);
}

static int take_run(void *arg, const struct tide_session_info *info)
{
    *(bool *)arg = info->run_id != NULL;
    return 0;
}

/* What is refused leaves no session behind. */
static void drop_unused(struct cli *cli, tide_session **session)
{
    char id[TIDE_ID_SIZE];
    struct tide_err ignored;
    bool ran = true;

    if (tide_session_show(*session, take_run, &ran, &ignored) || ran)
        return;
    snprintf(id, sizeof(id), "%s", tide_session_id(*session));
    tide_session_close(TAKE(*session));
    (void)!tide_session_delete(cli->store, id, &ignored);
}

static enum tide_code run_graph(struct cli *cli, tide_graph *graph, struct graph_want *w, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    bool made = false;
    enum tide_code code;

    if (cli_store_open(cli, NEED_CREATE, 0, err) || graph_hide_memory(cli->store, graph, &w->opt, err) ||
        open_session(cli, graph, w, &session, &made, err))
        return err->code;
    code = graph_drive(cli, session, graph, w, err);
    if (code && made)
        drop_unused(cli, &session);
    return code;
}

static void graph_freep(tide_graph **graph)
{
    tide_graph_free(*graph);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(graph_set_done) struct buf memory = BUF_INIT(GRAPH_SETS_MAX);
    AUTO(buf_done) struct buf checkpoints = BUF_INIT((size_t)1 << 20);
    AUTO(graph_freep) tide_graph *graph = NULL;
    const struct args *a = &cli->args;
    struct graph_want w = graph_want_from(a);

    w.no_tools = args_on(a, "no-tools");
    w.token_fd = (int)args_int(a, "token-fd", 0);
    if (check_options(cli, &w, err) || (w.token_fd && check_fd(w.token_fd, "--token-fd", err)) ||
        take_checkpoints(cli, &checkpoints, err) || read_graph(cli, &graph, err) || take_memory(cli, &memory, err))
        return err->code;
    w.opt.checkpoints = checkpoints.len ? buf_cstr(&checkpoints) : NULL;
    if (graph_check_here(cli, graph, &w, err) || graph_given(cli, graph, args_text(a, "session"), &w, &memory, err))
        return err->code;
    return run_graph(cli, graph, &w, err);
}

const struct command cmd_run = {
    .name = "run",
    .run = run,
    .operands = {{"GRAPH", VALUE_FILE, 0}},
    .options = options,
    .help = "run a graph as a session that cannot be lost",
    .more =
        "GRAPH is a file (`-`: standard input), also an agent.json of Hive. What it does is shown on standard error, what\n"
        "its last nodes gave is printed. What it waits for is asked at the terminal; elsewhere it is parked. Nodes that are\n"
        "complete are never run again: `tidemark sessions resume ID` goes on.\n"
        "Exit status: 0 completed; 1 a node failed; 2 refused; 7 waits for a person; 10 a node that must happen once was cut;\n"
        "11 the session of --session is not trusted (`tidemark sessions trust ID`); 128 and the signal when it was stopped.",
};
