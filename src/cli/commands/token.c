/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark token rotate: a new token for a wait, shown once; the old one stops working. */
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "engine/shapes.h"

static const struct opt options[] = {
    {OPT_DEADLINE},
    {OPT_EXPIRES},
    {.name = "token-fd",
     .type = VALUE_INT,
     .value = "FD",
     .max = 1 << 20,
     .help = "write the token to this file descriptor instead of printing it"},
    {.name = NULL},
};

static enum tide_code give_token(struct cli *cli, const char *id, const char *token, int fd, struct tide_err *err)
{
    if (cli->out.json)
        out_shape(&cli->out, &shape_token, &(struct command_result){.session_id = id, .token = fd < 0 ? token : NULL});
    else if (fd < 0)
        outf(&cli->out, "%s\n", token);
    return fd >= 0 ? write_fd(fd, "--token-fd", token, err) : TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    int fd = (int)args_int(&cli->args, "token-fd", -1);
    char token[TIDE_TOKEN_SIZE];

    if ((fd >= 0 && check_fd(fd, "--token-fd", err)) || cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) ||
        tide_token_rotate(session, args_int(&cli->args, "deadline", 0), args_int(&cli->args, "expires", 0), token, err))
        return err->code;
    if (give_token(cli, tide_session_id(session), token, fd, err))
        return err->code;
    explicit_bzero(token, sizeof(token));
    return TIDE_OK;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    int fd = (int)args_int(&cli->args, "token-fd", -1);
    struct command_result r = {0};
    struct session_why why;

    if ((fd >= 0 && check_fd(fd, "--token-fd", err)) || remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "POST", "sessions", why.row.info.id, "token");
    if (args_on(&cli->args, "deadline"))
        json_out_kint(remote_body(cli->remote), STR("deadline_ms"), args_int(&cli->args, "deadline", 0));
    if (args_on(&cli->args, "expires"))
        json_out_kint(remote_body(cli->remote), STR("expires_ms"), args_int(&cli->args, "expires", 0));
    if (remote_read(cli->remote, REMOTE_SOON, &shape_token, &r, err))
        return err->code;
    if (!r.token)
        return tide_fail(err, TIDE_UNKNOWN,
                         "the new token of session '%s' was lost with the connection: make another one",
                         why.row.info.id);
    return give_token(cli, why.row.info.id, r.token, fd, err);
}

const struct command cmd_token_rotate = {
    .group = "token",
    .name = "rotate",
    .run = run,
    .remote = run_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "replace the token of a pending wait and print the new one once; the old one stops working",
    .more = "Exit status 11 if the session is not trusted (`tidemark sessions trust ID`).",
};
