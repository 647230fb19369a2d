/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions resume: what going on with a graph can be told: from where, with which values, with which version of the
 * graph. Chats and programs go on as with `tidemark resume`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/graph_set.h"
#include "cli/graph_view.h"
#include "cli/launch.h"
#include "cli/resume.h"

#define MEMORY_MAX ((size_t)64 << 20)

static const struct opt options[] = {
    {.name = "checkpoint",
     .type = VALUE_CHECKPOINT,
     .value = "CHECKPOINT",
     .help = "go back to it first; of a completed session: in a fork that begins there"},
    {.name = "set",
     .type = VALUE_TEXT,
     .value = "KEY=VALUE",
     .many = true,
     .help = "set a key of the memory first: KEY=text, KEY:=JSON, KEY=@FILE, KEY=- (standard input), KEY=$VARIABLE, "
             "KEY==text as it is; may be given more than once"},
    {.name = "graph", .type = VALUE_FILE, .value = "FILE", .help = "another version of the graph"},
    {.name = "map",
     .type = VALUE_TEXT,
     .value = "OLD=NEW",
     .many = true,
     .help = "this node is called otherwise in that graph; may be given more than once"},
    {.name = "fallback", .help = "where it cannot go on from there: take the newest checkpoint from which it can"},
    {.name = "dry-run", .help = "only say what would be done, and everything that stands in the way"},
    {.name = "retry",
     .type = VALUE_TEXT,
     .value = "NODE",
     .many = true,
     .help = "this node may run again although it must happen once; may be given more than once"},
    {.name = "happened",
     .type = VALUE_TEXT,
     .value = "NODE",
     .many = true,
     .help = "this node, which must happen once, did happen; may be given more than once"},
    {.name = "reuse-effects", .help = "with --checkpoint: what must happen once and did answers from the log"},
    {.name = "redo-effects", .help = "with --checkpoint: it may happen again"},
    {.name = "input", .type = VALUE_TEXT, .value = "TEXT", .help = "the answer to what it waits for"},
    {.name = "input-json", .type = VALUE_TEXT, .value = "JSON", .help = "the answer, as JSON"},
    {.name = "token",
     .type = VALUE_TEXT,
     .value = "TOKEN|-|@FILE",
     .help = "the token of the wait; others can see it in `ps`: better - (standard input) or @ and a file"},
    {.name = "token-fd",
     .type = VALUE_INT,
     .value = "FD",
     .min = 1,
     .max = 1 << 20,
     .help = "write the token of the next wait into this descriptor instead of showing it"},
    {.name = "on-store-error",
     .type = VALUE_WORD,
     .words = "stop continue",
     .value = "HOW",
     .help = "when the store cannot be written: stop (the default) or continue, as of `tidemark run`"},
    {.name = "parallel", .type = VALUE_INT, .value = "N", .min = 1, .max = 1024, .help = "nodes at once"},
    {.name = "provider",
     .type = VALUE_WORD,
     .words = "anthropic openai script",
     .value = "TYPE",
     .help = "who answers in all nodes (default: as `run` was told, else as the graph says, else as set)"},
    {.name = "model", .type = VALUE_TEXT, .value = "NAME", .help = "the model of all nodes (default: the same)"},
    {.name = "base-url",
     .type = VALUE_TEXT,
     .value = "URL",
     .help = "another server that speaks the provider's protocol"},
    {.name = "script", .type = VALUE_FILE, .value = "FILE", .help = "answer from this file: no account, no network"},
    {.name = "no-input", .help = "ask nothing at the terminal"},
    {.name = "yes", .help = "allow every tool that the settings do not refuse"},
    {.name = "output",
     .type = VALUE_WORD,
     .words = "text json stream-json",
     .value = "HOW",
     .help = "what its last nodes gave (text, the default), one object, or one object a line as it happens"},
    {.name = "quiet", .letter = 'q', .help = "show nothing of what happens, only what comes of it"},
    {.name = NULL},
};

struct again {
    struct cli *cli;
    struct resume r; /* of what a chat or a program takes as well */
    struct graph_again g;
    struct buf token, input;
    const char **sets, **maps, **retry, **happened, **renames;
    struct arena arena;
    tide_session *session;
};

/* ---- what is given ---- */

static const char **all_of(const struct cli *cli, const char *option)
{
    const char **list = mem_array(cli->args.n_more + 2, sizeof(*list));

    for (size_t i = 0; (list[i] = args_nth(&cli->args, option, i)); i++)
        ;
    return list;
}

static enum tide_code take_maps(struct again *a, struct tide_err *err)
{
    size_t n = 0;

    a->renames = mem_array(2 * a->cli->args.n_more + 3, sizeof(char *));
    for (size_t i = 0; a->maps[i]; i++) {
        const char *eq = strchr(a->maps[i], '=');

        if (!eq || eq == a->maps[i] || !eq[1])
            return tide_fail(err, TIDE_INVALID, "--map %.60s: give OLD=NEW", a->maps[i]);
        a->renames[n++] = arena_dup(&a->arena, (struct str){a->maps[i], (size_t)(eq - a->maps[i])}).ptr;
        a->renames[n++] = eq + 1;
    }
    a->renames[n] = NULL;
    return TIDE_OK;
}

static bool reads_input(const struct again *a)
{
    for (size_t i = 0; a->sets[i]; i++) {
        const char *eq = strchr(a->sets[i], '=');

        if (eq && strcmp(eq + 1, "-") == 0)
            return true;
    }
    return false;
}

static enum tide_code check_together(const struct again *a, struct tide_err *err)
{
    const struct args *args = &a->cli->args;
    bool reuse = args_on(args, "reuse-effects"), redo = args_on(args, "redo-effects");
    const char *token = args_text(args, "token"), *graph = args_text(args, "graph");

    if (reuse && redo)
        return tide_fail(err, TIDE_INVALID, "--reuse-effects and --redo-effects: give one of them");
    if ((reuse || redo) && !args_text(args, "checkpoint") && !args_on(args, "fallback"))
        return tide_fail(err, TIDE_INVALID, "--%s-effects: only with --checkpoint does anything happen again",
                         reuse ? "reuse" : "redo");
    if (token && strcmp(token, "-") == 0 && reads_input(a))
        return tide_fail(err, TIDE_INVALID, "--token and --set: only one of them can be standard input");
    if (graph && strcmp(graph, "-") == 0 && reads_input(a))
        return tide_fail(err, TIDE_INVALID, "--graph and --set: only one of them can be standard input");
    return TIDE_OK;
}

static enum tide_code take_all(struct again *a, struct tide_err *err)
{
    const struct args *args = &a->cli->args;

    if (check_together(a, err) || take_maps(a, err) ||
        take_token(args_text(args, "token"), &a->token, &a->r.token, err) ||
        take_input(a->cli, &a->input, &a->r.input, err) || (a->sets[0] && graph_set_read(a->sets, &a->g.memory, err)))
        return err->code;
    a->g.r = &a->r;
    a->g.graph = args_text(args, "graph");
    a->g.dry_run = args_on(args, "dry-run");
    a->g.want = (struct graph_want){.provider = args_text(args, "provider"),
                                    .model = args_text(args, "model"),
                                    .base_url = args_text(args, "base-url"),
                                    .script = args_text(args, "script"),
                                    .yes = args_on(args, "yes"),
                                    .output = args_text(args, "output"),
                                    .quiet = args_on(args, "quiet")};
    a->g.want.opt =
        (struct tide_graph_options){.threads = (int)args_int(args, "parallel", 0),
                                    .checkpoint = args_text(args, "checkpoint"),
                                    .renames = a->renames,
                                    .rollback = (args_on(args, "reuse-effects") ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                                                (args_on(args, "redo-effects") ? TIDE_ROLLBACK_REDO_EFFECTS : 0u),
                                    .fallback = args_on(args, "fallback")};
    return a->r.token_out_fd > 0 ? check_fd(a->r.token_out_fd, "--token-fd", err) : TIDE_OK;
}

/* ---- all of it ---- */

/* What only means something to a graph. */
static enum tide_code refuse_for_others(const struct again *a, struct tide_err *err)
{
    static const char *const only[] = {"checkpoint", "graph",    "fallback", "dry-run", "reuse-effects", "redo-effects",
                                       "parallel",   "provider", "model",    "script",  "output",        "base-url"};
    const struct args *args = &a->cli->args;
    const char *given = a->sets[0] ? "set" : a->maps[0] ? "map" : NULL;

    for (size_t i = 0; i < sizeof(only) / sizeof(only[0]) && !given; i++)
        given = args_on(args, only[i]) || args_text(args, only[i]) ? only[i] : NULL;
    if (given)
        return tide_fail(err, TIDE_INVALID, "session '%s' runs no graph: --%s is for graphs", a->r.id, given);
    return TIDE_OK;
}

static enum tide_code resume(struct again *a, struct tide_err *err)
{
    bool dry = args_on(&a->cli->args, "dry-run");
    enum tide_code code;

    if (take_all(a, err) || cli_store_open(a->cli, dry ? NEED_READ : NEED_WRITE, 0, err))
        return err->code;
    code = tide_session_open(a->cli->store, a->r.id, dry ? TIDE_SESSION_READ : TIDE_SESSION_APPEND, &a->session, err);
    if (code && code != TIDE_CORRUPT)
        return cli_advise_session(code, err);
    if (code || graph_made(a->session))
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
                      .g = {.memory = BUF_INIT(MEMORY_MAX)},
                      .token = BUF_INIT(TOKEN_MAX),
                      .input = BUF_INIT(INPUT_MAX),
                      .sets = all_of(cli, "set"),
                      .maps = all_of(cli, "map"),
                      .retry = all_of(cli, "retry"),
                      .happened = all_of(cli, "happened"),
                      .arena = ARENA_INIT};
    enum tide_code code;

    a.r = (struct resume){.id = args_operand(&cli->args, 0),
                          .retry = a.retry,
                          .happened = a.happened,
                          .degrade = is_continue(&cli->args),
                          .no_input = args_on(&cli->args, "no-input"),
                          .token_out_fd = (int)args_int(&cli->args, "token-fd", -1)};
    code = resume(&a, err);
    if (a.g.memory.ptr)
        explicit_bzero(a.g.memory.ptr, a.g.memory.len);
    tide_session_close(a.session);
    buf_done(&a.g.memory);
    buf_done(&a.token);
    buf_done(&a.input);
    free(a.sets);
    free(a.maps);
    free(a.retry);
    free(a.happened);
    free(a.renames);
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
        "5 damaged, 8 the token is refused.",
};
