/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions delete: a whole session, for good; by its whole id, since a prefix may come to mean another one. */
#include "cli/cli.h"
#include "engine/shapes.h"

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const char *id = args_operand(&cli->args, 0);
    enum tide_code code = tide_session_delete(cli->store, id, err);

    if (code == TIDE_NOT_FOUND)
        return tide_wrap(err, "a prefix is not enough to delete");
    if (code)
        return code;
    if (!cli->out.json) {
        outf(&cli->out, "deleted %s\n", id);
        return TIDE_OK;
    }
    out_shape(&cli->out, &shape_deleted, &(struct command_result){.session_id = id});
    return TIDE_OK;
}

const struct command cmd_sessions_delete = {
    .group = "sessions",
    .name = "delete",
    .run = run,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .help = "delete a session for good; refused while forks stand on it",
    .more = "ID is the whole id: a prefix is not enough to delete.",
};
