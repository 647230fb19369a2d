/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark exec: a program as a run of a session. */
#include "base/utf8.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "cli/resume.h"

#define TITLE_MAX 80

static const struct opt options[] = {
    {.name = "session",
     .type = VALUE_ID,
     .value = "ID",
     .help = "the session it is a run of; made when there is none (default: a new one)"},
    {.name = "resume",
     .type = VALUE_SESSION,
     .value = "ID",
     .help = "go on with this session and the program it has: the same as `tidemark resume ID`"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "title of a new session (default: the command)"},
    {.name = "env",
     .type = VALUE_TEXT,
     .value = "NAMES",
     .help = "variables that the program needs, NAME,NAME: only names are recorded, and looked for when it is resumed"},
    {OPT_ON_STORE_ERROR(STORE_ERROR_HELP)},
    {OPT_TOKEN_FD(0, "a")},
    {.name = NULL},
};

static void put_title(struct cli *cli, const struct launch *l, struct json_out *o)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)1 << 20);
    const char *given = args_text(&cli->args, "title");

    for (size_t i = 0; l->argv[i] && text.len <= TITLE_MAX; i++)
        buf_addf(&text, "%s%.*s", i ? " " : "", 4 * TITLE_MAX, l->argv[i]);
    json_out_kstr(o, STR("title"), given ? str_from(given) : utf8_clip(buf_view(&text), TITLE_MAX));
}

/* A new session, or the one that has this id. */
static enum tide_code open_session(struct cli *cli, const struct launch *l, tide_session **ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&fields);
    const char *id = args_text(&cli->args, "session");
    enum tide_code code;

    json_out_begin(&o, '{');
    put_title(cli, l, &o);
    json_out_kstr(&o, STR("working_dir"), str_from(l->cwd));
    json_out_end(&o, '}');
    code = cli_session_create(cli, id, buf_cstr(&fields), ret, err);
    return code == TIDE_EXISTS ? tide_session_open(cli->store, id, TIDE_SESSION_APPEND, ret, err) : code;
}

static enum tide_code exec_program(struct cli *cli, struct launch *l, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct tide_run_options opt = {0};
    int status = 0;

    l->env = args_text(&cli->args, "env");
    l->token_fd = (int)args_int(&cli->args, "token-fd", -1);
    l->degrade = is_continue(&cli->args);
    l->degrade_said = args_text(&cli->args, "on-store-error") != NULL;
    if ((l->token_fd >= 0 && check_fd(l->token_fd, "--token-fd", err)) || launch_from_args(l, cli, 0, err) ||
        launch_check(l, cli, &status, err))
        return err->code;
    cli->exit_status = status;
    if (status)
        return TIDE_OK;
    if (cli_store_open(cli, NEED_CREATE, 0, err) || open_session(cli, l, &session, err))
        return err->code;
    return launch_run(l, cli, session, &opt, NULL, err);
}

static enum tide_code refuse_with_resume(struct cli *cli, struct tide_err *err)
{
    static const char *const not_with[] = {"session", "title", "env"};

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
    struct launch l = LAUNCH_INIT;
    enum tide_code code;

    if (args_on(&cli->args, "resume")) {
        struct resume r = {.id = args_text(&cli->args, "resume"),
                           .degrade = is_continue(&cli->args),
                           .degrade_said = args_text(&cli->args, "on-store-error") != NULL,
                           .token_out_fd = (int)args_int(&cli->args, "token-fd", -1)};

        return refuse_with_resume(cli, err) ? err->code : resume_session(cli, &r, err);
    }
    if (cli->args.n_operands == 0)
        return tide_fail(err, TIDE_INVALID,
                         "exec: PROGRAM is missing: give it behind --, as in `tidemark exec -- ./deploy.sh`");
    code = exec_program(cli, &l, err);
    launch_done(&l);
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
        "Exit status: that of the program; 7 when it waits; 11 when the session is not trusted (`tidemark sessions trust\n"
        "ID`); 126 and 127 when it cannot be run; 128 and the signal.",
};
