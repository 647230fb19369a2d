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
#include <inttypes.h>
#include <unistd.h>

#include "cli/chat/chat.h"
#include "cli/graph/graph_set.h"
#include "cli/report.h"
#include "cli/options.h"
#include "engine/shapes.h"

#define TOKEN_MAX 256

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
    {.name = "unattended", .hidden = true, .help = "from `tidemark recover`: --keep-pause, where there can be a pause"},
    {.name = NULL},
};

static struct tide_run_options run_options(const struct resume *r)
{
    return (struct tide_run_options){
        .size = sizeof(struct tide_run_options),
        .flags = (r->ask.now ? TIDE_RUN_NOW : 0u) | (r->ask.accept_change ? TIDE_RUN_ACCEPT_CHANGE : 0u),
        .token = r->ask.token,
        .request_id = r->ask.request_id,
        .input = r->ask.input,
        .retry = r->ask.retry,
        .happened = r->ask.happened,
    };
}

/* Of a program or a chat; whether its program can be run is part of it. */
static enum tide_code dry_run(struct cli *cli, const struct resume *r, enum tide_session_kind kind,
                              tide_session *session, struct tide_err *err)
{
    AUTO(buf_done) struct buf plan = BUF_INIT(SIZE_MAX / 4);
    AUTO(program_run_done) struct program_run p = {.begin = PROGRAM_RESUME};
    const struct tide_run_options opt = run_options(r);
    struct tide_err refused = {0};

    if (kind != TIDE_KIND_CHAT && !program_run_from_log(&p, session, &refused))
        (void)!program_run_check(&p, &refused);
    if (resume_plan(session, &opt, &refused, &plan, err))
        return err->code;
    return plan_print(cli, buf_view(&plan), &refused, err);
}

static enum tide_code resume_program(struct cli *cli, const struct resume *r, struct program_run *p,
                                     tide_session *session, struct tide_err *err)
{
    struct tide_run_options opt = run_options(r);
    struct tide_resumed resumed = {0};
    bool runs = false;
    enum tide_code code;

    code = program_run_from_log(p, session, err);
    code = code ? code : report_check(cli, p, r->degrade_said, &runs, err);
    if (code || !runs)
        return code;
    code = report_run(cli, p, session, &opt, &resumed, r->token_out_fd, err);
    if (code || !resumed.repeated)
        return code;
    if (cli->out.json)
        out_shape(
            &cli->out, &shape_resumed,
            &(struct command_result){
                .session_id = tide_session_id(session), .run_id = resumed.run_id, .seq = resumed.seq, .yes = true});
    else
        outf(&cli->out, "session %s was resumed by this request before: run %s, seq %" PRId64 "\n",
             tide_session_id(session), resumed.run_id, resumed.seq);
    return TIDE_OK;
}

/* A chat goes on without a terminal: its answer is printed. */
static enum tide_code resume_chat(struct cli *cli, struct resume *r, struct tide_err *err)
{
    struct chat_want *want = &r->chat;

    want->resume = r->ask.id;
    want->input = r->ask.input;
    want->token = r->ask.token;
    want->token_fd = r->token_out_fd > 0 ? r->token_out_fd : 0;
    want->who.degrade = r->degrade;
    want->who.degrade_said = r->degrade_said;
    want->who.keep_pause = r->ask.keep_pause || r->ask.unattended;
    cli_store_close(cli);
    return chat_print(cli, want, err);
}

static enum tide_code resume_question(struct cli *cli, const struct resume *r, tide_session *session, bool *ret_waits,
                                      struct tide_err *err)
{
    const struct tide_session_info *info;
    struct program_end end = {.waits = true};

    *ret_waits = false;
    if (!r->ask.ask_again || !session)
        return TIDE_OK;
    if (r->dry_run)
        return tide_fail(err, TIDE_INVALID, "--ask-again and --dry-run: give one of them");
    if (resume_ask_again(session, &r->ask, end.wait.token, err))
        return err->code;
    if (r->ask.input) /* and it is answered */
        return TIDE_OK;
    *ret_waits = true;
    if (tide_session_get_info(session, &info, err))
        return err->code;
    snprintf(end.run_id, sizeof(end.run_id), "%s", info->run_id);
    snprintf(end.wait.name, sizeof(end.wait.name), "%s", info->wait_name);
    snprintf(end.wait.kind, sizeof(end.wait.kind), "%s", info->wait_word);
    snprintf(end.wait.question, sizeof(end.wait.question), "%s", info->question ? info->question : "");
    return report_wait(cli, tide_session_id(session), &end, r->token_out_fd > 0 ? r->token_out_fd : -1, err);
}

enum tide_code resume_session(struct cli *cli, struct resume *r, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(program_run_done) struct program_run p = {.begin = PROGRAM_RESUME, .degrade = r->degrade};
    enum tide_session_kind kind;
    enum tide_code code;
    bool waits;

    if (r->token_out_fd >= 0 && check_fd(r->token_out_fd, "--token-fd", err))
        return err->code;
    if (cli_store_open(cli, r->dry_run ? NEED_READ : NEED_WRITE, 0, err))
        return err->code;
    code = held_open(&cli_hold, cli->store, r->ask.id, &session, err); /* a dry run sees the same damage */
    if (code && code != TIDE_CORRUPT)
        return code;
    if (resume_kind(session, &r->ask, &kind, err) || resume_question(cli, r, session, &waits, err))
        return err->code;
    if (waits)
        return TIDE_OK;
    if (kind == TIDE_KIND_GRAPH) {
        r->graph.r = r;
        return graph_again(cli, &r->graph, session, err);
    }
    if (r->dry_run)
        return dry_run(cli, r, kind, session, err);
    if (!r->ask.input && !r->ask.token && resume_delivers(session))
        p.begin = PROGRAM_SEND; /* of a completed one: a new run takes what is queued */
    if (kind == TIDE_KIND_CHAT) {
        tide_session_close(TAKE(session));
        return resume_chat(cli, r, err);
    }
    return resume_program(cli, r, &p, session, err);
}

/* ---- the command ---- */

/* A token from a file: one line. */
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
        return tide_fail_errno(err, errno, "--token: open '%.200s'", given + 1);
    (void)!read_token(fd, from_stdin ? "standard input" : given + 1, room, err);
    if (from_file)
        close(fd);
    *ret = room->ptr;
    return err->code;
}

/* The answer, and the reason that goes with it. */
static enum tide_code take_input(const struct args *a, struct resume *r, struct tide_err *err)
{
    AUTO(buf_done) struct buf room = BUF_INIT(INPUT_MAX);
    const char *input, *reason = args_text(a, "reason");

    if (text_or_json(a, "input", reason ? &room : &r->input_text, &input, err))
        return err->code;
    r->ask.input = input;
    r->ask.has_reason = reason != NULL;
    if (!reason)
        return TIDE_OK;
    if (resume_give_reason(input, reason, &r->input_text, err))
        return err->code;
    r->ask.input = buf_cstr(&r->input_text);
    return TIDE_OK;
}

static enum tide_code take_maps(struct cli *cli, struct resume *r, struct tide_err *err)
{
    const char *map;
    size_t n = 0;

    r->renames = mem_array(2 * cli->args.n_more + 1, sizeof(char *));
    for (size_t i = 0; (map = args_nth(&cli->args, "map", i)); i++) {
        const char *eq = strchr(map, '=');

        if (!eq || eq == map || !eq[1])
            return tide_fail(err, TIDE_INVALID, "--map %.60s: give OLD=NEW", map);
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

static void take_given(const struct args *args, struct resume *r)
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
    r->ask.given = r->given;
}

static void take_for_graph(const struct args *args, struct resume *r)
{
    r->graph.graph = args_text(args, "graph");
    r->graph.dry_run = r->dry_run;
    r->graph.run = graph_face_from(args);
    r->graph.run.want.opt.checkpoint = args_text(args, "checkpoint");
    r->graph.run.want.opt.checkpoints = r->checkpoints.len ? buf_cstr(&r->checkpoints) : NULL;
    r->graph.run.want.opt.renames = r->renames;
    r->graph.run.want.opt.rollback = (args_on(args, "reuse-effects") ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                                     (args_on(args, "redo-effects") ? TIDE_ROLLBACK_REDO_EFFECTS : 0u);
    r->graph.run.want.opt.fallback = args_on(args, "fallback");
}

static void take_for_chat(const struct args *args, struct resume *r)
{
    r->chat = (struct chat_want){.who = {.provider = args_text(args, "provider"),
                                         .model = args_text(args, "model"),
                                         .base_url = args_text(args, "base-url"),
                                         .script = args_text(args, "script"),
                                         .yes = args_on(args, "yes")},
                                 .output = args_text(args, "output")};
}

static enum tide_code take(struct cli *cli, struct resume *r, struct tide_err *err)
{
    const struct args *a = &cli->args;
    AUTO(mem_freep) const char **sets = args_all(a, "set");
    AUTO(mem_freep) const char **config = args_all(a, "checkpoint-config");

    r->ask = (struct resume_request){.id = args_operand(a, 0),
                                     .retry = args_all(a, "retry"),
                                     .happened = args_all(a, "happened"),
                                     .ask_again = args_text(a, "ask-again"),
                                     .request_id = args_text(a, "request-id"),
                                     .now = args_on(a, "now"),
                                     .accept_change = args_on(a, "accept-change"),
                                     .no_input = args_on(a, "no-input"),
                                     .keep_pause = args_on(a, "keep-pause"),
                                     .unattended = args_on(a, "unattended")};
    r->degrade = is_continue(a);
    r->degrade_said = args_text(a, "on-store-error") != NULL;
    r->dry_run = args_on(a, "dry-run");
    r->token_out_fd = (int)args_int(a, "token-fd", -1);
    r->token_text = (struct buf)BUF_INIT(TOKEN_MAX);
    r->input_text = (struct buf)BUF_INIT(INPUT_MAX);
    take_given(a, r);
    if (check_together(a, err) || take_maps(cli, r, err) ||
        take_token(args_text(a, "token"), &r->token_text, &r->ask.token, err) || take_input(a, r, err) ||
        (sets[0] && graph_set_read(sets, &r->graph.memory, err)) ||
        graph_take_checkpoints("checkpoint_config", config, false, NULL, &r->checkpoints, err))
        return err->code;
    take_for_graph(a, r);
    take_for_chat(a, r);
    return TIDE_OK;
}

void resume_done(struct resume *r)
{
    free(r->ask.retry);
    free(r->ask.happened);
    free(r->given);
    free(r->renames);
    buf_done(&r->token_text);
    buf_done(&r->input_text);
    buf_done(&r->checkpoints);
    graph_set_done(&r->graph.memory);
    arena_done(&r->arena);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(resume_done) struct resume r = RESUME_INIT;

    return take(cli, &r, err) ? err->code : resume_session(cli, &r, err);
}

#define RESUME_COMMAND                                                                                                       \
    .name = "resume", .run = run, .operands = {{"ID", VALUE_SESSION, 0}}, .options = options,                                \
    .help = "answer a pending wait, or resume a session that was interrupted or failed",                                     \
    .more =                                                                                                                  \
        "A program runs again from its start, in its original directory; recorded steps, waits and sleeps return their\n"    \
        "results from the log. A chat or a graph continues where it stopped: completed nodes do not run again. Obstacles\n"  \
        "are reported before anything is written; --dry-run lists them all. `tidemark resume ID`, `tidemark sessions\n"      \
        "resume ID` and `tidemark --resume ID` are the same.\n"                                                              \
        "Exit status: that of the program; 0 completed; 1 failed; 2 refused; 3 not found; 4 another process owns it or an\n" \
        "effect needs a decision; 5 damaged; 7 waits again; 8 the token is refused; 11 not trusted (`tidemark sessions\n"    \
        "trust ID`)."

const struct command cmd_resume = {RESUME_COMMAND};
const struct command cmd_sessions_resume = {.group = "sessions", RESUME_COMMAND};
