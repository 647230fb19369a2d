/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark resume, which is tidemark sessions resume: answers a wait or continues an interruption, of whatever the session runs.
 *
 * The token is used by the library in the same append that resumes the run, after everything that can be refused was
 * looked at: a program that is gone costs no token.
 */
#include "cli/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/graph/graph_set.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/resume_remote.h"
#include "engine/shapes.h"

#define TOKEN_MAX 256
#define INPUT_MAX ((size_t)16 << 20)

static const struct opt options[] = {
    {OPT_INPUT("the answer to the pending question")},
    {OPT_INPUT_JSON},
    {OPT_TOKEN},
    {OPT_TOKEN_FD(0, "the next")},
    {OPT_REASON},
    {OPT_ASK_AGAIN},
    {.name = "dry-run", .help = "only show what would be done, and every obstacle"},
    {OPT_MANY("retry", "NAME", "run this step or node again although it must happen once")},
    {OPT_MANY("happened", "NAME[=JSON]",
              "record that this step or node, which must happen once, has happened; JSON is the outputs of the node")},
    {OPT_ON_STORE_ERROR(STORE_ERROR_HELP)},
    {.name = "now", .help = "for a program: end a sleep before it is due"},
    {.name = "accept-change",
     .help = "for a program: use recorded results of steps although their arguments have changed"},
    {.name = "request-id",
     .type = VALUE_TEXT,
     .value = "ID",
     .help = "for a program: run a call with this id only once; a repeated call returns the first result"},
    {.name = "checkpoint",
     .type = VALUE_CHECKPOINT,
     .value = "CHECKPOINT",
     .help = "for a graph: return to this checkpoint first; a completed session continues in a new fork"},
    {.name = "reuse-effects", .help = "with --checkpoint: reuse the recorded results of effects that must happen once"},
    {.name = "redo-effects", .help = "with --checkpoint: such effects may run again"},
    {OPT_MANY("set", "KEY=VALUE",
              "for a graph: set a key of the memory first: KEY=text, KEY:=JSON, KEY=@FILE, KEY=- (standard "
              "input), KEY=$VARIABLE, KEY==text as it is")},
    {.name = "graph", .type = VALUE_FILE, .value = "FILE", .help = "for a graph: continue with another version of it"},
    {OPT_MANY("map", "OLD=NEW", "for a graph: the node OLD has the name NEW in that graph")},
    {.name = "fallback",
     .help = "for a graph: if it cannot continue from there, use the newest checkpoint from which it can"},
    {OPT_MANY("checkpoint-config", "KEY=VALUE",
              "for a graph: override when checkpoints are made from now on: as --checkpoint of `run`")},
    {OPT_PARALLEL("for a graph: run at most N nodes at once")},
    {OPT_PROVIDER("for a chat or a graph: the provider (default: as before, else as configured)")},
    {OPT_MODEL("for a chat or a graph: the model (default: the same)")},
    {OPT_BASE_URL},
    {OPT_SCRIPT},
    {.name = "keep-pause",
     .help = "for a chat or a graph: respect the pause that a provider asked for, instead of retrying at once"},
    {OPT_YES},
    {.name = "no-input", .help = "for a graph: ask nothing at the terminal"},
    {OPT_OUTPUT("for a chat or a graph: print the result")},
    {OPT_QUIET},
    {.name = "request-fd",
     .type = VALUE_INT,
     .value = "FD",
     .hidden = true,
     .help = "from the server: answer, token and message as JSON, which others must not see in `ps`"},
    {.name = "unattended", .hidden = true, .help = "from `tidemark recover`: --keep-pause, where there can be a pause"},
    {.name = NULL},
};

/* A token from a file: one line, and what is behind it stays for others. */
static enum tide_code read_token(int fd, const char *from, struct buf *ret, struct tide_err *err)
{
    ssize_t n = 1;

    while (n > 0 && !memchr(ret->ptr ? ret->ptr : "", '\n', ret->len)) {
        char *room = buf_reserve(ret, 64);

        n = room ? read(fd, room, 64) : -1;
        if (!room)
            return tide_fail(err, TIDE_TOKEN_MALFORMED, "what %s gives is too long for a token", from);
        if (n < 0)
            return tide_fail_errno(err, errno, "read the token from %s", from);
        ret->len += (size_t)n;
    }
    buf_cstr(ret);
    if (ret->len > 0)
        ret->ptr[strcspn(ret->ptr, "\r\n")] = '\0';
    return ret->len > 0 ? TIDE_OK : tide_fail(err, TIDE_TOKEN_MALFORMED, "%s gives no token", from);
}

/* --token TOKEN|-|@FILE; `room` keeps what is not given as it is. */
static enum tide_code take_token(const char *given, struct buf *room, const char **ret, struct tide_err *err)
{
    bool from_stdin = given && strcmp(given, "-") == 0, from_file = given && given[0] == '@';
    int fd = from_file ? open(given + 1, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;

    *ret = given;
    if (!from_stdin && !from_file)
        return TIDE_OK;
    if (fd < 0)
        return tide_fail_file(err, errno, "--token: open", given + 1);
    if (read_token(fd, from_stdin ? "standard input" : given + 1, room, err))
        tide_about(err, TIDE_SUBJECT_ARGUMENT, "token");
    if (from_file)
        close(fd);
    *ret = room->ptr;
    return err->code;
}

/* The answer, and the reason that goes with it. */
static enum tide_code take_input(const struct args *a, struct resuming *r, struct tide_err *err)
{
    AUTO(buf_done) struct buf room = BUF_INIT(INPUT_MAX);
    const char *input, *reason = args_text(a, "reason");

    if (text_or_json(a, "input", reason ? &room : &r->input_text, &input, err))
        return err->code;
    r->core.ask.input = input;
    r->core.ask.has_reason = reason != NULL;
    if (!reason)
        return TIDE_OK;
    if (resume_give_reason(input, reason, &r->input_text, err))
        return err->code;
    r->core.ask.input = buf_cstr(&r->input_text);
    return TIDE_OK;
}

static enum tide_code take_maps(struct cli *cli, struct resuming *r, struct tide_err *err)
{
    const char *map;
    size_t n = 0;

    r->renames = mem_array(2 * cli->args.n_more + 1, sizeof(char *));
    for (size_t i = 0; (map = args_nth(&cli->args, "map", i)); i++) {
        const char *eq = strchr(map, '=');

        if (!eq || eq == map || !eq[1])
            return args_refuse(err, "map", "--map %.60s: give OLD=NEW", map);
        r->renames[n++] = arena_dup(&r->arena, (struct str){map, (size_t)(eq - map)}).ptr;
        r->renames[n++] = eq + 1;
    }
    r->renames[n] = NULL;
    return TIDE_OK;
}

static enum tide_code check_together(const struct args *args, struct tide_err *err)
{
    bool reuse = args_on(args, "reuse-effects"), redo = args_on(args, "redo-effects");
    const char *token = args_text(args, "token"), *graph = args_text(args, "graph");

    if (reuse && redo)
        return args_refuse(err, "reuse-effects", "--reuse-effects and --redo-effects: give one of them");
    if ((reuse || redo) && !args_text(args, "checkpoint") && !args_on(args, "fallback"))
        return args_refuse(err, reuse ? "reuse-effects" : "redo-effects",
                           "--%s-effects: only with --checkpoint does anything happen again", reuse ? "reuse" : "redo");
    if (token && strcmp(token, "-") == 0 && set_from_input(args))
        return args_refuse(err, "token", "--token and --set: only one of them can be standard input");
    if (graph && strcmp(graph, "-") == 0 && set_from_input(args))
        return args_refuse(err, "graph", "--graph and --set: only one of them can be standard input");
    return TIDE_OK;
}

static void take_given(const struct args *args, struct resuming *r)
{
    const char *name;
    size_t n = 0, max = 0;

    while (resume_option_name(max))
        max++;
    r->given = mem_array(max + 1, sizeof(char *));
    for (size_t i = 0; (name = resume_option_name(i)); i++)
        if (args_on(args, name) || args_text(args, name) || args_nth(args, name, 0))
            r->given[n++] = name;
    r->given[n] = NULL;
    r->core.ask.given = r->given;
}

static enum tide_code take_options(struct cli *cli, struct resuming *r, struct tide_err *err)
{
    const struct args *a = &cli->args;
    AUTO(mem_freep) const char **sets = args_all(a, "set");
    AUTO(mem_freep) const char **config = args_all(a, "checkpoint-config");

    r->core.ask = (struct resume_request){
        .id = args_operand(a, 0),
        .retry = args_all(a, "retry"),
        .happened = args_all(a, "happened"),
        .ask_again = args_text(a, "ask-again"),
        .request_id = args_text(a, "request-id"),
        .now = args_on(a, "now"),
        .accept_change = args_on(a, "accept-change"),
        .dry_run = args_on(a, "dry-run"),
        .unattended = args_on(a, "unattended"),
        .who = agent_want_from(a),
        .graph_file = args_text(a, "graph"),
        .graph = {.threads = (int)args_int(a, "parallel", 0),
                  .checkpoint = args_text(a, "checkpoint"),
                  .rollback = (args_on(a, "reuse-effects") ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                              (args_on(a, "redo-effects") ? TIDE_ROLLBACK_REDO_EFFECTS : 0u),
                  .fallback = args_on(a, "fallback")},
    };
    r->core.ask.who.keep_pause = args_on(a, "keep-pause");
    take_on_store_error(a, &r->core.ask.who);
    r->face = graph_face_from(a);
    r->token_fd = (int)args_int(a, "token-fd", -1);
    r->token_text = (struct buf)BUF_INIT(TOKEN_MAX);
    r->input_text = (struct buf)BUF_INIT(INPUT_MAX);
    take_given(a, r);
    if (check_together(a, err) || take_maps(cli, r, err) ||
        take_token(args_text(a, "token"), &r->token_text, &r->core.ask.token, err) || take_input(a, r, err) ||
        (sets[0] && graph_set_read(sets, &r->core.memory, err)) ||
        graph_take_checkpoints("checkpoint_config", config, false, NULL, &r->checkpoints, err))
        return err->code;
    r->core.ask.graph.renames = r->renames;
    r->core.ask.graph.checkpoints = r->checkpoints.len ? buf_cstr(&r->checkpoints) : NULL;
    return TIDE_OK;
}

static const char *text_member(struct arena *a, const struct json *request, struct str key)
{
    const struct json *m = json_get(request, key);

    return m ? arena_dup(a, json_text(a, m)).ptr : NULL;
}

/* {"message":…,"token":…,"input":…,"set":{…}}, each of them or none; *ret_message is NULL where there is none. */
static enum tide_code take_request(struct cli *cli, struct resuming *r, const char **ret_message, struct tide_err *err)
{
    int fd = (int)args_int(&cli->args, "request-fd", -1);
    const struct json *request, *input, *memory;

    if (fd < 0)
        return TIDE_OK;
    if (read_asked(fd, &r->arena, &request, &r->request, err))
        return err->code;
    *ret_message = text_member(&r->arena, request, STR("message"));
    r->core.ask.token = text_member(&r->arena, request, STR("token"));
    r->core.ask.request = cause_is_set(&r->request) ? &r->request : NULL;
    input = json_get(request, STR("input"));
    memory = json_get(request, STR("set"));
    if (input)
        r->core.ask.input = arena_dup(&r->arena, json_source(input)).ptr;
    if (memory)
        buf_add_str(&r->core.memory, json_source(memory));
    return TIDE_OK;
}

static enum tide_code run_or_send(struct cli *cli, struct resuming *r, struct tide_err *err)
{
    const char *message = NULL;

    if (take_options(cli, r, err) || take_request(cli, r, &message, err))
        return err->code;
    return message ? send_and_print(cli, r, message, false, err) : resume_and_print(cli, r, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(resuming_done) struct resuming r = RESUMING_INIT;
    int fd = (int)args_int(&cli->args, "request-fd", -1);
    enum tide_code code = run_or_send(cli, &r, err);

    if (code && fd >= 0)
        report_refusal(fd, err);
    return code;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    AUTO(resuming_done) struct resuming r = RESUMING_INIT;

    return take_options(cli, &r, err) ? err->code : resume_remote(cli, &r, err);
}

#define RESUME_COMMAND                                                                                                       \
    .name = "resume", .run = run, .remote = run_remote, .operands = {{"ID", VALUE_SESSION, 0}}, .options = options,          \
    .help = "answer a pending wait, or resume a session that was interrupted or failed",                                     \
    .more =                                                                                                                  \
        "A program runs again from its start, in its original directory; recorded steps, waits and sleeps return their\n"    \
        "results from the log. A chat or a graph continues where it stopped: completed nodes do not run again. Obstacles\n"  \
        "are reported before anything is written; --dry-run lists them all. `tidemark resume ID`, `tidemark sessions\n"      \
        "resume ID` and `tidemark --resume ID` are the same.\n"                                                              \
        "Exit status: that of the program; 0 completed; 1 failed; 2 refused; 3 not found; 4 another process holds it or\n"   \
        "an effect needs a decision; 5 damaged; 7 waits again; 8 the token is refused; 11 not trusted (`tidemark sessions\n" \
        "trust ID`)."

const struct command cmd_resume = {RESUME_COMMAND};
const struct command cmd_sessions_resume = {.group = "sessions", RESUME_COMMAND};
