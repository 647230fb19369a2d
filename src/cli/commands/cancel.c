/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark cancel: ends the run of a session, no matter who runs it. */
#include <string.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "engine/session_words.h"
#include "engine/shapes.h"

static const char *const how_text[] = {
    [TIDE_CANCEL_NOTHING] = "had nothing to cancel: it is unchanged",
    [TIDE_CANCEL_DONE] = "was cancelled",
    [TIDE_CANCEL_ANSWERED] = "was cancelled: its process has ended it",
    [TIDE_CANCEL_FORCED] = "was cancelled: its process did not respond, so it lost the right to write",
};

static void print_cancelled(struct out *out, const char *id, enum tide_cancelled how)
{
    if (out->json)
        out_shape(out, &shape_cancelled, &(struct command_result){.session_id = id, .word = cancelled_word(how)});
    else
        outf(out, "session %s %s\n", id, how_text[how]);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    enum tide_cancelled how = TIDE_CANCEL_NOTHING;
    char id[TIDE_ID_SIZE];

    if (tide_session_resolve(cli->store, args_operand(&cli->args, 0), id, err) ||
        tide_session_cancel(cli->store, id, "local", args_text(&cli->args, "reason"), 0, &how, err))
        return err->code;
    print_cancelled(&cli->out, id, how);
    return TIDE_OK;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    enum tide_cancelled how = TIDE_CANCEL_NOTHING;
    struct command_result result = {0};
    struct session_why why;

    if (remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "POST", "sessions", why.row.info.id, "cancel");
    remote_body_text(cli->remote, "reason", args_text(&cli->args, "reason"));
    if (remote_read(cli->remote, REMOTE_SOON, &shape_cancelled, &result, err))
        return err->code;
    while (how < TIDE_CANCEL_FORCED && strcmp(cancelled_word(how), result.word ? result.word : "") != 0)
        how++;
    print_cancelled(&cli->out, why.row.info.id, how);
    return TIDE_OK;
}

const struct command cmd_cancel = {
    .name = "cancel",
    .run = run,
    .remote = run_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options =
        (const struct opt[]){{.name = "reason", .type = VALUE_TEXT, .value = "TEXT", .help = "the reason, for the log"},
                             {.name = NULL}},
    .help = "cancel the run of a session, in any process; a process that does not respond loses the right to write",
};
