/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark tui: the full screen, on a store or through a server. */
#include "tui/tui.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/next_command.h"
#include "cli/remote.h"
#include "engine/session_words.h"
#include "terminal/progress.h"
#include "tui/source_store.h"

static const struct opt options[] = {
    {.name = "inbox", .help = "begin with what waits for a person"},
    {.name = "ascii", .help = "draw with ASCII alone (default: where the locale has no UTF-8)"},
    {.name = NULL},
};

static enum tide_code show_screen(struct cli *cli, struct source *source, const char *session, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *own = own_command(&a);
    const char *const starts[] = {arena_printf(&a, "%s chat", own), arena_printf(&a, "%s exec -- ./deploy.sh", own),
                                  arena_printf(&a, "%s run graph.json", own), NULL};
    const struct tui_options opt = {.session = session,
                                    .starts = cli->remote ? NULL : starts,
                                    .inbox = args_on(&cli->args, "inbox"),
                                    .ascii = args_on(&cli->args, "ascii"),
                                    .color = cli->out.color,
                                    .stop = &stop_signal};
    enum tide_code code = terminal_is_capable()
                              ? tui_run(source, &opt, err)
                              : tide_fail(err, TIDE_INVALID, "this terminal (TERM) cannot be drawn on");

    source_free(source);
    if (!code && stop_signal)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    return code;
}

/* A store on a full disk, or of somebody else, can still be looked at. */
static enum tide_code open_store(struct cli *cli, bool *ret_read_only, struct tide_err *err)
{
    enum tide_code code = cli_store_open(cli, NEED_WRITE, 0, err);

    *ret_read_only = code == TIDE_READ_ONLY || code == TIDE_DENIED || code == TIDE_FULL;
    return *ret_read_only ? cli_store_open(cli, NEED_READ, 0, err) : code;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(buf_done) struct buf url = BUF_INIT(4096);
    const char *operand = args_operand(&cli->args, 0);
    char id[TIDE_ID_SIZE];
    bool read_only;

    if (open_store(cli, &read_only, err) || cli_store_url(cli, &url, err) ||
        (operand && tide_session_resolve(cli->store, operand, id, err)))
        return err->code;
    return show_screen(cli,
                       source_store_new(&(struct source_store_options){.store = cli->store,
                                                                       .url = buf_cstr(&url),
                                                                       .config = args_text(&cli->args, "config"),
                                                                       .key_file = args_text(&cli->args, "key-file"),
                                                                       .read_only = read_only}),
                       operand ? id : NULL, err);
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    struct source *source = NULL;
    struct session_why why = {.since_ms = 0};
    const char *operand = args_operand(&cli->args, 0);

    if ((operand && remote_why(cli, &why, err)) ||
        source_server_new(remote_named(&cli->args), args_text(&cli->args, "pin"), &source, err))
        return err->code;
    return show_screen(cli, source, operand ? why.row.info.id : NULL, err);
}

const struct command cmd_tui = {
    .name = "tui",
    .run = run,
    .remote = run_remote,
    .opens_store = true,
    .operands = {{"ID", VALUE_SESSION, OPERAND_OPTIONAL}},
    .options = options,
    .help = "watch and control sessions on a full screen: list, inbox, conversation, timeline, log, state",
    .more =
        "The key ? shows all keys. Changes by any process appear at once. Sessions that it resumes or answers run in a process\n"
        "of their own, or in the server, and continue when the screen is closed. See tidemark-tui(1).",
};
