/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions resume: what going on with a graph can be told: from where, with which values, with which version of the
 * graph. Chats and programs go on as with `tidemark resume`.
 */
#include "cli/graph/graph_set.h"
#include "cli/report.h"
#include "cli/options.h"
#include "cli/resume.h"
#include "engine/resume.h"

static const struct opt options[] = {
    {.name = "checkpoint",
     .type = VALUE_CHECKPOINT,
     .value = "CHECKPOINT",
     .help = "go back to it first; of a completed session: in a fork that begins there"},
    {OPT_MANY("set", "KEY=VALUE",
              "set a key of the memory first: KEY=text, KEY:=JSON, KEY=@FILE, KEY=- (standard input), KEY=$VARIABLE, "
              "KEY==text as it is")},
    {OPT_MANY("checkpoint-config", "KEY=VALUE",
              "when there is a checkpoint from now on, over what `run` was told: as --checkpoint of `run`")},
    {.name = "graph", .type = VALUE_FILE, .value = "FILE", .help = "another version of the graph"},
    {OPT_MANY("map", "OLD=NEW", "this node is called otherwise in that graph")},
    {.name = "fallback", .help = "where it cannot go on from there: take the newest checkpoint from which it can"},
    {.name = "dry-run", .help = "only say what would be done, and everything that stands in the way"},
    {OPT_MANY("retry", "NODE", "this node may run again although it must happen once")},
    {OPT_MANY("happened", "NODE[=JSON]", "this node, which must happen once, did happen; JSON: what it gave")},
    {.name = "reuse-effects", .help = "with --checkpoint: what must happen once and did answers from the log"},
    {.name = "redo-effects", .help = "with --checkpoint: it may happen again"},
    {OPT_INPUT("the answer to what it waits for")},
    {OPT_INPUT_JSON},
    {OPT_REASON},
    {OPT_TOKEN},
    {OPT_TOKEN_FD(1, "the next")},
    {OPT_ON_STORE_ERROR("or continue, as of `tidemark run`")},
    {OPT_PARALLEL("nodes at once")},
    {OPT_PROVIDER("who answers in all nodes (default: as `run` was told, else as the graph says, else as set)")},
    {OPT_MODEL("the model of all nodes (default: the same)")},
    {OPT_BASE_URL},
    {OPT_SCRIPT},
    {.name = "no-input", .help = "ask nothing at the terminal"},
    {OPT_YES},
    {OPT_OUTPUT("what its last nodes gave")},
    {OPT_QUIET},
    {.name = NULL},
};

struct again {
    struct cli *cli;
    struct resume r; /* of what a chat or a program takes as well */
    struct graph_again g;
    const char **renames;
    struct buf checkpoints;
    struct arena arena;
    tide_session *session;
};

/* ---- what is given ---- */

static enum tide_code take_maps(struct again *a, struct tide_err *err)
{
    const char *map;
    size_t n = 0;

    a->renames = mem_array(2 * a->cli->args.n_more + 1, sizeof(char *));
    for (size_t i = 0; (map = args_nth(&a->cli->args, "map", i)); i++) {
        const char *eq = strchr(map, '=');

        if (!eq || eq == map || !eq[1])
            return tide_fail(err, TIDE_INVALID, "--map %.60s: give OLD=NEW", map);
        a->renames[n++] = arena_dup(&a->arena, (struct str){map, (size_t)(eq - map)}).ptr;
        a->renames[n++] = eq + 1;
    }
    a->renames[n] = NULL;
    return TIDE_OK;
}

static enum tide_code check_together(const struct args *args, struct tide_err *err)
{
    bool reuse = args_on(args, "reuse-effects"), redo = args_on(args, "redo-effects");
    const char *token = args_text(args, "token"), *graph = args_text(args, "graph");

    if (reuse && redo)
        return tide_fail(err, TIDE_INVALID, "--reuse-effects and --redo-effects: give one of them");
    if ((reuse || redo) && !args_text(args, "checkpoint") && !args_on(args, "fallback"))
        return tide_fail(err, TIDE_INVALID, "--%s-effects: only with --checkpoint does anything happen again",
                         reuse ? "reuse" : "redo");
    if (token && strcmp(token, "-") == 0 && set_from_input(args))
        return tide_fail(err, TIDE_INVALID, "--token and --set: only one of them can be standard input");
    if (graph && strcmp(graph, "-") == 0 && set_from_input(args))
        return tide_fail(err, TIDE_INVALID, "--graph and --set: only one of them can be standard input");
    return TIDE_OK;
}

static enum tide_code take_all(struct again *a, struct tide_err *err)
{
    const struct args *args = &a->cli->args;
    AUTO(mem_freep) const char **config = args_all(args, "checkpoint-config");

    if (check_together(args, err) || take_maps(a, err) || resume_take(a->cli, &a->r, err) ||
        (a->r.sets[0] && graph_set_read(a->r.sets, &a->g.memory, err)))
        return err->code;
    a->g.r = &a->r;
    a->g.graph = args_text(args, "graph");
    a->g.dry_run = args_on(args, "dry-run");
    a->g.run = graph_face_from(args);
    a->g.run.want.opt.checkpoint = args_text(args, "checkpoint");
    a->g.run.want.opt.renames = a->renames;
    if (graph_take_checkpoints("checkpoint-config", config, false, NULL, &a->checkpoints, err))
        return err->code;
    a->g.run.want.opt.checkpoints = a->checkpoints.len ? buf_cstr(&a->checkpoints) : NULL;
    a->g.run.want.opt.rollback = (args_on(args, "reuse-effects") ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                                 (args_on(args, "redo-effects") ? TIDE_ROLLBACK_REDO_EFFECTS : 0u);
    a->g.run.want.opt.fallback = args_on(args, "fallback");
    return a->r.token_out_fd > 0 ? check_fd(a->r.token_out_fd, "--token-fd", err) : TIDE_OK;
}

/* ---- all of it ---- */

/* What only means something to a graph. */
static enum tide_code refuse_for_others(const struct again *a, struct tide_err *err)
{
    static const char *const only[] = {"checkpoint",   "graph",    "fallback", "dry-run", "reuse-effects",
                                       "redo-effects", "parallel", "provider", "model",   "script",
                                       "output",       "base-url", "yes",      "quiet"};
    const struct args *args = &a->cli->args;
    const char *given = a->r.sets[0] ? "set" : a->renames[0] ? "map" : a->checkpoints.len ? "checkpoint-config" : NULL;

    for (size_t i = 0; i < sizeof(only) / sizeof(only[0]) && !given; i++)
        given = args_on(args, only[i]) || args_text(args, only[i]) ? only[i] : NULL;
    if (given)
        return resume_refuse_no_graph(a->session, given, err);
    return TIDE_OK;
}

static enum tide_code resume(struct again *a, struct tide_err *err)
{
    bool dry = args_on(&a->cli->args, "dry-run");
    enum tide_code code;

    if (take_all(a, err) || cli_store_open(a->cli, dry ? NEED_READ : NEED_WRITE, 0, err))
        return err->code;
    code = held_open(&cli_hold, a->cli->store, a->r.ask.id, &a->session, err); /* a dry run sees the same damage */
    if (code && code != TIDE_CORRUPT)
        return code;
    if (code || session_kind_of(a->session) == TIDE_KIND_GRAPH)
        return graph_again(a->cli, &a->g, a->session, err);
    if (refuse_for_others(a, err))
        return err->code;
    tide_session_close(TAKE(a->session));
    cli_store_close(a->cli);
    return resume_session(a->cli, &a->r, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct again a = {.cli = cli,
                      .g = {.memory = BUF_INIT(GRAPH_SETS_MAX)},
                      .checkpoints = BUF_INIT((size_t)1 << 20),
                      .arena = ARENA_INIT};
    enum tide_code code = resume(&a, err);

    tide_session_close(a.session);
    graph_set_done(&a.g.memory);
    resume_done(&a.r);
    free(a.renames);
    buf_done(&a.checkpoints);
    arena_done(&a.arena);
    return code;
}

const struct command cmd_sessions_resume = {
    .group = "sessions",
    .name = "resume",
    .run = run,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "go on with a graph, from where it stands or from a checkpoint",
    .more =
        "Nodes that are complete are not run again. What stands in the way is said before anything is written: --dry-run\n"
        "lists all of it. Values that are never stored are asked for again. Chats and programs go on as with\n"
        "`tidemark resume`. Exit status: as of `tidemark run`; 2 refused, 3 not found, 4 held or an effect in the way,\n"
        "5 damaged, 8 the token is refused, 11 not trusted (`tidemark sessions trust ID`).",
};
