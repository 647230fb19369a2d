/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions timeline: the life of a session, drawn for people or as data for programs. */
#include <unistd.h>

#include "cli/cli.h"
#include "cli/terminal/progress.h"
#include "cli/timeline/timeline_draw.h"
#include "engine/shapes.h"

static const struct opt options[] = {
    {.name = "width",
     .type = VALUE_INT,
     .value = "N",
     .min = 80,
     .max = 132,
     .help = "draw in N columns, 80 to 132 (default: those of the terminal, else 80)"},
    {.name = NULL},
};

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(timeline_done) struct timeline t = {.n_runs = 0};
    int64_t width = args_int(&cli->args, "width", cli->out.tty ? terminal_columns(STDOUT_FILENO) : 80);

    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err) || timeline_read(session, &stop_signal, &t, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_timeline, &t);
    else
        timeline_draw(&t, &cli->out, (int)width);
    return TIDE_OK;
}

const struct command cmd_sessions_timeline = {
    .group = "sessions",
    .name = "timeline",
    .run = run,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "draw the life of a session: its runs, what each did, and what it kept instead of doing it again",
    .more =
        "One lane per run. █ ran, ▓ failed or ✗ cut, ▒ outcome unknown, ▚ found to have happened, ╍ waits for someone,\n"
        "┈ sleeps, ░ kept from an earlier run: finished there, not run again.",
};
