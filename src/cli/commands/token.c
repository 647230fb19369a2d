/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark token rotate: a new token for a wait, shown once; the old one stops working. */
#include "cli/options.h"
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

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    int fd = (int)args_int(&cli->args, "token-fd", -1);
    char token[TIDE_TOKEN_SIZE];

    if ((fd >= 0 && check_fd(fd, "--token-fd", err)) || cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) ||
        tide_token_rotate(session, args_int(&cli->args, "deadline", 0), args_int(&cli->args, "expires", 0), token, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_token,
                  &(struct command_result){.session_id = tide_session_id(session), .token = fd < 0 ? token : NULL});
    else if (fd < 0)
        outf(&cli->out, "%s\n", token);
    if (fd >= 0 && write_fd(fd, "--token-fd", token, err))
        return err->code;
    explicit_bzero(token, sizeof(token));
    return TIDE_OK;
}

const struct command cmd_token_rotate = {
    .group = "token",
    .name = "rotate",
    .run = run,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "replace the token of a pending wait and print the new one once; the old one stops working",
    .more = "Exit status 11 if the session is not trusted (`tidemark sessions trust ID`).",
};
