/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions delete: a whole session, for good. */
#include "cli/cli.h"

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct json_out o = out_json(&cli->out);
    char id[TIDE_ID_SIZE];

    if (cli_session_resolve(cli, 0, id, err) || tide_session_delete(cli->store, id, err))
        return err->code;
    if (!cli->out.json) {
        outf(&cli->out, "deleted %s\n", id);
        return TIDE_OK;
    }
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("deleted"), str_from(id));
    json_out_end(&o, '}');
    out_json_end(&cli->out);
    return TIDE_OK;
}

const struct command cmd_sessions_delete = {
    .group = "sessions",
    .name = "delete",
    .run = run,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .help = "delete a session for good; refused while forks stand on it",
};
