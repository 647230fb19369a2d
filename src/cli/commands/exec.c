/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark exec: a program as a run of a session. */
#include "cli/report.h"
#include "cli/options.h"
#include "cli/resume.h"

static const struct opt options[] = {
    {.name = "session",
     .type = VALUE_ID,
     .value = "ID",
     .help = "the session it is a run of; made when there is none (default: a new one)"},
    {.name = "resume",
     .type = VALUE_SESSION,
     .value = "ID",
     .help = "go on with this session and the program it has: the same as `tidemark resume ID`"},
    {.name = "ensure",
     .help = "with --session: begin the program, resume it, or answer with its recorded result, whichever is due"},
    {.name = "new-run",
     .help = "with --session: begin a new run although the last one is unfinished; its steps are repeated"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "title of a new session (default: the command)"},
    {.name = "env",
     .type = VALUE_TEXT,
     .value = "NAMES",
     .help = "variables that the program needs, NAME,NAME: only names are recorded, and looked for when it is resumed"},
    {OPT_ON_STORE_ERROR(STORE_ERROR_HELP)},
    {OPT_TOKEN_FD(0, "a")},
    {.name = NULL},
};

/* What cannot be run leaves no store and no session behind; one that has completed answers all the same. */
static enum tide_code open_session(struct cli *cli, struct program_run *r, tide_session **ret, struct tide_err *err)
{
    const char *id = args_text(&cli->args, "session");
    struct tide_err why = {0}, ignored;
    enum tide_code code = program_run_check(r, &why);

    if (!code)
        return cli_store_open(cli, NEED_CREATE, 0, err)
                   ? err->code
                   : program_run_create(r, cli->store, id, args_text(&cli->args, "title"), cli_held, ret, err);
    if (r->begin == PROGRAM_ENSURE && !cli_store_open(cli, NEED_WRITE, 0, &ignored) &&
        !held_open(&cli_hold, cli->store, id, ret, &ignored))
        return TIDE_OK;
    return tide_err_copy(err, &why);
}

static enum tide_code exec_program(struct cli *cli, struct program_run *r, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const struct args *args = &cli->args;
    struct tide_run_options opt = {.size = sizeof opt};
    int token_fd = (int)args_int(args, "token-fd", -1);

    r->degrade = is_continue(args);
    r->begin = args_on(args, "ensure") ? PROGRAM_ENSURE : args_on(args, "new-run") ? PROGRAM_ANEW : PROGRAM_START;
    if ((token_fd >= 0 && check_fd(token_fd, "--token-fd", err)) ||
        program_run_from_argv(r, args->operands, args->n_operands, args_text(args, "env"), err) ||
        report_init(cli, r, args_text(args, "on-store-error") != NULL, err))
        return err->code;
    if (open_session(cli, r, &session, err))
        return report_not_run(cli, r, err);
    return report_run(cli, r, session, &opt, NULL, token_fd, err);
}

static enum tide_code refuse_pairs(const struct args *args, struct tide_err *err)
{
    bool ensure = args_on(args, "ensure"), anew = args_on(args, "new-run");

    if (ensure && anew)
        return tide_fail(err, TIDE_INVALID, "--ensure and --new-run: give one of them");
    if ((ensure || anew) && !args_text(args, "session"))
        return tide_fail(err, TIDE_INVALID, "--%s needs --session ID", ensure ? "ensure" : "new-run");
    return TIDE_OK;
}

static enum tide_code refuse_with_resume(struct cli *cli, struct tide_err *err)
{
    static const char *const not_with[] = {"session", "title", "env", "ensure", "new-run"};

    for (size_t i = 0; i < sizeof(not_with) / sizeof(not_with[0]); i++)
        if (args_on(&cli->args, not_with[i]))
            return tide_fail(err, TIDE_INVALID, "--%s does not go with --resume: the session has it: leave it out",
                             not_with[i]);
    if (cli->args.n_operands > 0)
        return tide_fail(err, TIDE_INVALID, "--resume runs the program that the session has: leave out '%.60s'",
                         args_operand(&cli->args, 0));
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct program_run r = {.program = NULL};
    enum tide_code code;

    if (args_on(&cli->args, "resume")) {
        AUTO(resume_done) struct resume again = RESUME_INIT;

        again.ask.id = args_text(&cli->args, "resume");
        again.degrade = is_continue(&cli->args);
        again.degrade_said = args_text(&cli->args, "on-store-error") != NULL;
        again.token_out_fd = (int)args_int(&cli->args, "token-fd", -1);
        return refuse_with_resume(cli, err) ? err->code : resume_session(cli, &again, err);
    }
    if (cli->args.n_operands == 0)
        return tide_fail(err, TIDE_INVALID,
                         "exec: PROGRAM is missing: give it behind --, as in `tidemark exec -- ./deploy.sh`");
    code = refuse_pairs(&cli->args, err) ? err->code : exec_program(cli, &r, err);
    program_run_done(&r);
    return code;
}

const struct command cmd_exec = {
    .name = "exec",
    .run = run,
    .operands = {{"PROGRAM", VALUE_PROGRAM, OPERAND_OPTIONAL},
                 {"ARGS", VALUE_PROGRAM, OPERAND_OPTIONAL | OPERAND_MANY}},
    .options = options,
    .help = "run a program as a session that cannot be lost",
    .more =
        "Inside it `tidemark step`, `wait`, `sleep`, `set`, `get` and `checkpoint` record what it does. When it is cut,\n"
        "`tidemark resume ID` runs it again from its start: what is recorded answers from the log and is not done again.\n"
        "A session whose last run is interrupted, failed or waiting takes no new run unless --new-run is given. For unit\n"
        "files and timers: --ensure, which does what is due and can be repeated.\n"
        "Exit status: that of the program; 4 when the last run is unfinished; 7 when it waits; 11 when the session is not trusted (`tidemark sessions trust\n"
        "ID`); 126 and 127 when it cannot be run; 128 and the signal.",
};
