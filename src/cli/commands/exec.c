/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark exec: a program as a run of a session. */
#include "cli/report.h"
#include "cli/options.h"
#include "cli/resume.h"
#include "cli/next_command.h"
#include "engine/signed_request.h"

static const struct opt options[] = {
    {.name = "session",
     .type = VALUE_ID,
     .value = "ID",
     .help = "run in this session; create it if there is none (default: a new session)"},
    {.name = "resume",
     .type = VALUE_SESSION,
     .value = "ID",
     .help = "resume this session and its program, as `tidemark resume ID` does"},
    {.name = "ensure",
     .help = "with --session: start the program, resume it, or return its recorded result, as its state requires"},
    {.name = "new-run",
     .help = "with --session: start a new run although the last one is unfinished; its steps are repeated"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "title of a new session (default: the command)"},
    {.name = "env",
     .type = VALUE_TEXT,
     .value = "NAMES",
     .help = "environment variables that the program needs, NAME,NAME: only the names are recorded; a resume checks "
             "that they are set"},
    {OPT_ON_STORE_ERROR(STORE_ERROR_HELP)},
    {OPT_TOKEN_FD(0, "a")},
    {.name = "request-fd",
     .type = VALUE_INT,
     .value = "FD",
     .hidden = true,
     .help = "from the server: a socket that is told why the program was refused"},
    {.name = NULL},
};

/* What cannot be run leaves no store and no session behind; one that has completed answers all the same. */
static enum tide_code open_session(struct cli *cli, struct program_run *r, tide_session **ret, struct tide_err *err)
{
    const char *id = args_text(&cli->args, "session");
    struct tide_err why = {0}, ignored;
    enum tide_code code = program_run_check(r, &why);

    if (!code)
        return cli_store_open_held(cli, NEED_CREATE, err)
                   ? err->code
                   : program_run_create(r, cli->store, id, args_text(&cli->args, "title"), cli_held, ret, err);
    if (r->begin == PROGRAM_ENSURE && !cli_store_open_held(cli, NEED_WRITE, &ignored) &&
        !held_open(&cli_hold, cli->store, id, ret, &ignored))
        return TIDE_OK;
    return tide_err_copy(err, &why);
}

/* Of a request to the server. */
struct asked {
    struct arena arena;
    struct cause cause; /* its start says by which request it was: so a request that is repeated starts it once */
    struct str set;     /* values of its memory; empty: none */
};

static void asked_done(struct asked *a)
{
    arena_done(&a->arena);
}

static enum tide_code take_asked(const struct args *args, struct asked *ret, struct tide_err *err)
{
    int fd = (int)args_int(args, "request-fd", -1);
    const struct json *request, *set;

    if (fd < 0)
        return TIDE_OK;
    if (read_asked(fd, &ret->arena, &request, &ret->cause, err))
        return err->code;
    set = json_get(request, STR("set"));
    ret->set = set ? json_source(set) : STR("");
    return TIDE_OK;
}

static enum tide_code exec_program(struct cli *cli, struct program_run *r, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const struct args *args = &cli->args;
    const char *config = args_text(args, "config");
    struct tide_run_options opt = {.size = sizeof opt};
    AUTO(asked_done) struct asked asked = {.arena = ARENA_INIT};
    int token_fd = (int)args_int(args, "token-fd", -1);
    enum tide_code code;

    r->degrade = is_continue(args);
    r->begin = args_on(args, "ensure") ? PROGRAM_ENSURE : args_on(args, "new-run") ? PROGRAM_ANEW : PROGRAM_START;
    report_init(r);
    if ((token_fd >= 0 && check_fd(token_fd, "--token-fd", err)) || take_asked(args, &asked, err) ||
        program_run_from_argv(r, args->operands, args->n_operands, args_text(args, "env"), err) ||
        program_run_settings(r, config, args_text(args, "on-store-error") != NULL, err))
        return err->code;
    if (open_session(cli, r, &session, err))
        return report_not_run(cli, r, err);
    if (asked.set.len && program_run_set(r, session, asked.set, asked.cause.by, err))
        return report_not_run(cli, r, err);
    if (cause_is_set(&asked.cause))
        request_sign(session, &asked.cause);
    report_running(r, true);
    code = program_run(r, session, &opt, NULL, err);
    report_running(r, false);
    return report_end(cli, r, session, code, token_fd, err);
}

static enum tide_code refuse_pairs(const struct args *args, struct tide_err *err)
{
    bool ensure = args_on(args, "ensure"), anew = args_on(args, "new-run");

    if (ensure && anew)
        return args_refuse(err, "ensure", "--ensure and --new-run: give one of them");
    if ((ensure || anew) && !args_text(args, "session"))
        return args_refuse(err, "session", "--%s needs --session ID", ensure ? "ensure" : "new-run");
    return TIDE_OK;
}

static enum tide_code refuse_with_resume(struct cli *cli, struct tide_err *err)
{
    static const char *const not_with[] = {"session", "title", "env", "ensure", "new-run"};

    for (size_t i = 0; i < sizeof(not_with) / sizeof(not_with[0]); i++)
        if (args_on(&cli->args, not_with[i]))
            return args_refuse(err, not_with[i], "--%s cannot be combined with --resume: the session has it: omit it",
                               not_with[i]);
    if (cli->args.n_operands > 0)
        return args_refuse(err, "program", "--resume runs the program of the session: omit '%.60s'",
                           args_operand(&cli->args, 0));
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct program_run r = {.program = NULL};
    int fd = (int)args_int(&cli->args, "request-fd", -1);
    enum tide_code code;

    if (args_on(&cli->args, "resume")) {
        AUTO(resuming_done) struct resuming again = RESUMING_INIT;

        again.core.ask.id = args_text(&cli->args, "resume");
        again.token_fd = (int)args_int(&cli->args, "token-fd", -1);
        take_on_store_error(&cli->args, &again.core.ask.who);
        return refuse_with_resume(cli, err) ? err->code : resume_and_print(cli, &again, err);
    }
    if (cli->args.n_operands == 0)
        return args_refuse(err, "program", "exec: PROGRAM is missing: give it after --, as in `%s exec -- ./deploy.sh`",
                           own_command(&a));
    code = refuse_pairs(&cli->args, err) ? err->code : exec_program(cli, &r, err);
    if (fd >= 0 && (code || r.end.not_run))
        report_refusal(fd, err);
    program_run_done(&r);
    return code;
}

const struct command cmd_exec = {
    .name = "exec",
    .run = run,
    .opens_store = true,
    .operands = {{"PROGRAM", VALUE_PROGRAM, OPERAND_OPTIONAL},
                 {"ARGS", VALUE_PROGRAM, OPERAND_OPTIONAL | OPERAND_MANY}},
    .options = options,
    .help = "run a program as a session that cannot be lost",
    .more = "The program calls `tidemark step`, `wait`, `sleep`, `set`, `get` and `checkpoint` to record what it "
            "does. After\n"
            "an interruption, `tidemark resume ID` runs it again from its start; recorded work is not repeated, its "
            "results\n"
            "come from the log. If the last run of the session is interrupted, failed or waiting, a new run needs "
            "--new-run.\n"
            "In unit files and timers use --ensure: it does what is due and is safe to repeat.\n"
            "Exit status: that of the program; 4 if the last run is unfinished; 7 if it waits; 11 if the session is "
            "not\n"
            "trusted (`tidemark sessions trust ID`); 126 and 127 if the program cannot be run; 128 plus the signal.",
};
