/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark resume: answers a wait or continues an interruption, by running the session's program again.
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
    {OPT_TOKEN},
    {OPT_TOKEN_FD(0, "the next")},
    {OPT_INPUT("the answer")},
    {OPT_INPUT_JSON},
    {OPT_REASON},
    {.name = "request-id",
     .type = VALUE_TEXT,
     .value = "ID",
     .help = "the same call with the same id is done once and gets the first answer again"},
    {OPT_MANY("set", "KEY=VALUE", "of a graph: set a key of the memory first, as of `tidemark sessions resume`")},
    {.name = "now", .help = "end a sleep before it is due"},
    {OPT_MANY("retry", "STEP", "this step may run again although it must happen once")},
    {OPT_MANY("happened", "STEP", "this step, which must happen once, did happen: it answers as done")},
    {.name = "accept-change", .help = "recorded steps answer although they are called with other arguments now"},
    {.name = "no-input", .help = "ask nothing at the terminal: of a graph"},
    {.name = "keep-pause", .help = "wait for the pause that a provider asked for; else its model is asked at once"},
    {.name = "unattended", .hidden = true, .help = "from `tidemark recover`: --keep-pause, where there can be a pause"},
    {OPT_ON_STORE_ERROR(STORE_ERROR_HELP)},
    {.name = NULL},
};

static enum tide_code resume_program(struct cli *cli, const struct resume *r, struct program_run *p,
                                     tide_session *session, struct tide_err *err)
{
    struct tide_run_options opt = {
        .size = sizeof opt,
        .flags = (r->ask.now ? TIDE_RUN_NOW : 0u) | (r->ask.accept_change ? TIDE_RUN_ACCEPT_CHANGE : 0u),
        .token = r->ask.token,
        .request_id = r->ask.request_id,
        .input = r->ask.input,
        .retry = r->ask.retry,
        .happened = r->ask.happened,
    };
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
static enum tide_code resume_chat(struct cli *cli, const struct resume *r, struct tide_err *err)
{
    const struct chat_want want = {.resume = r->ask.id,
                                   .input = r->ask.input,
                                   .token = r->ask.token,
                                   .token_fd = r->token_out_fd > 0 ? r->token_out_fd : 0,
                                   .who = {.degrade = r->degrade,
                                           .degrade_said = r->degrade_said,
                                           .keep_pause = r->ask.keep_pause || r->ask.unattended}};

    cli_store_close(cli);
    return chat_print(cli, &want, err);
}

/* With the graph that it has, from where it stands; `tidemark sessions resume` can be told more. */
static enum tide_code resume_graph(struct cli *cli, const struct resume *r, tide_session *session, struct tide_err *err)
{
    struct graph_again again = {.r = r, .memory = BUF_INIT(GRAPH_SETS_MAX)};
    enum tide_code code = TIDE_OK;

    if (r->sets && r->sets[0])
        code = graph_set_read(r->sets, &again.memory, err);
    code = code ? code : graph_again(cli, &again, session, err);
    graph_set_done(&again.memory);
    return code;
}

enum tide_code resume_session(struct cli *cli, const struct resume *r, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(program_run_done) struct program_run p = {.begin = PROGRAM_RESUME, .degrade = r->degrade};
    enum tide_session_kind kind;
    enum tide_code code;

    if (r->token_out_fd >= 0 && check_fd(r->token_out_fd, "--token-fd", err))
        return err->code;
    if (cli_store_open(cli, NEED_WRITE, 0, err))
        return err->code;
    code = held_open(&cli_hold, cli->store, r->ask.id, &session, err);
    if (code && code != TIDE_CORRUPT)
        return code;
    if (resume_kind(session, &r->ask, &kind, err))
        return err->code;
    if (kind == TIDE_KIND_GRAPH)
        return resume_graph(cli, r, session, err);
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

enum tide_code resume_take(struct cli *cli, struct resume *ret, struct tide_err *err)
{
    const struct args *a = &cli->args;

    *ret = (struct resume){.ask = {.id = args_operand(a, 0),
                                   .retry = args_all(a, "retry"),
                                   .happened = args_all(a, "happened"),
                                   .values = args_nth(a, "set", 0) != NULL,
                                   .no_input = args_on(a, "no-input")},
                           .sets = args_all(a, "set"),
                           .degrade = is_continue(a),
                           .degrade_said = args_text(a, "on-store-error") != NULL,
                           .token_out_fd = (int)args_int(a, "token-fd", -1),
                           .token_text = BUF_INIT(TOKEN_MAX),
                           .input_text = BUF_INIT(INPUT_MAX)};
    if (take_token(args_text(a, "token"), &ret->token_text, &ret->ask.token, err))
        return err->code;
    return take_input(a, ret, err);
}

void resume_done(struct resume *r)
{
    free(r->ask.retry);
    free(r->ask.happened);
    free(r->sets);
    buf_done(&r->token_text);
    buf_done(&r->input_text);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(resume_done) struct resume r = {0};

    if (resume_take(cli, &r, err))
        return err->code;
    r.ask.request_id = args_text(&cli->args, "request-id");
    r.ask.now = args_on(&cli->args, "now");
    r.ask.accept_change = args_on(&cli->args, "accept-change");
    r.ask.keep_pause = args_on(&cli->args, "keep-pause");
    r.ask.unattended = args_on(&cli->args, "unattended");
    return resume_session(cli, &r, err);
}

const struct command cmd_resume = {
    .name = "resume",
    .run = run,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "answer a wait, or go on with what was interrupted",
    .more =
        "Runs the session's program again from its start, where it ran before; recorded steps, waits and sleeps answer\n"
        "from the log. A chat or a graph goes on where it was; for graphs `tidemark sessions resume` can be told more.\n"
        "Exit status: that of the program; 7 when it waits again; 8 when the token is refused; 11 when the session is not\n"
        "trusted (`tidemark sessions trust ID`).",
};
