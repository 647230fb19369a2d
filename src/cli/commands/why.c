/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark why: where a session stands, the sentence that says why, since when, and the commands that move it. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/next_command.h"
#include "cli/remote.h"
#include "cli/session_view.h"
#include "terminal/wrap.h"
#include "engine/session_next.h"
#include "engine/shapes.h"

struct why {
    struct cli *cli;
    int64_t since_ms;
};

static int why_json(void *arg, const struct tide_session_info *info)
{
    struct why *w = arg;

    out_shape(&w->cli->out, &shape_why, &(struct session_why){session_row(info), w->since_ms});
    return 0;
}

static int why_text(void *arg, const struct tide_session_info *info)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct why *w = arg;
    struct out *out = &w->cli->out;
    char status[STATUS_SIZE], ago[AGO_SIZE];
    const char *const *offered;
    size_t sentence;

    outf(out, "%s%s%s  ", color_code(out, COLOR_BOLD), info->id, color_code(out, COLOR_NONE));
    out_colored(out, session_color(info), session_status(status, info));
    outf(out, "  %s%s%s%s%s\n", color_code(out, COLOR_DIM), info->kind ? tide_session_kind_name(info->kind) : "",
         info->kind ? ", " : "", time_ago(ago, w->since_ms), color_code(out, COLOR_NONE));
    sentence = out->text.len;
    out_value(out, info->why);
    out_wrap(out, sentence);
    outf(out, "\n\n");
    offered = next_commands(&a, info->next);
    for (size_t i = 0; offered[i]; i++) {
        outf(out, "  %s", color_code(out, COLOR_CYAN));
        out_command(out, offered[i]);
        outf(out, "%s\n", color_code(out, COLOR_NONE));
    }
    return 0;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct why w = {.cli = cli};

    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err) || session_since(session, &w.since_ms, err))
        return err->code;
    return session_show_next(session, cli->out.json ? why_json : why_text, &w, err);
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    struct session_why why;
    struct why w = {.cli = cli};

    if (remote_why(cli, &why, err))
        return err->code;
    w.since_ms = why.since_ms;
    (cli->out.json ? why_json : why_text)(&w, &why.row.info);
    return TIDE_OK;
}

const struct command cmd_why = {
    .name = "why",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .help = "explain in one sentence why a session is in its state, and list the commands that help",
};
