/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark notify: sends the notifications that are due. */
#include "cli/commands/notify.h"

#include <inttypes.h>

#include "base/timefmt.h"
#include "cli/next_command.h"
#include "terminal/progress.h"

#define URL_MAX 4096

static bool is_stopped(void *arg)
{
    (void)arg;
    return stop_signal != 0;
}

void notify_ignore(void *cli, const struct notify_outcome *outcome)
{
    (void)cli;
    (void)outcome;
}

static void say_outcome(void *arg, const struct notify_outcome *n)
{
    struct out *out = &((struct cli *)arg)->out;
    char when[TIME_PEOPLE_SIZE];

    if (out->json) {
        out_shape(out, &shape_notified, n);
        return;
    }
    outf(out, "%-8s  %s  %s", !n->why ? "sent" : n->retry_ms ? "failed" : "given up", n->id, n->transition);
    if (n->why) {
        outf(out, ": ");
        out_value(out, n->why);
    }
    if (n->why && n->retry_ms) {
        outf(out, "; tried again from %s on", time_people(when, n->retry_ms));
    }
    outf(out, "\n");
}

enum tide_code notify_all(struct cli *cli, notify_told_fn *told, struct tide_err *err)
{
    AUTO(buf_done) struct buf url = BUF_INIT(URL_MAX);
    const struct notify_faces faces = {.command = next_command, .stopped = is_stopped, .told = told, .arg = cli};

    if (cli_store_url(cli, &url, err))
        return err->code;
    return notify_send(cli->store, buf_cstr(&url), args_text(&cli->args, "config"), &faces, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    return notify_all(cli, say_outcome, err);
}

const struct command cmd_notify = {
    .name = "notify",
    .run = run,
    .need = NEED_WRITE,
    .help = "send pending notifications to the program that the key notify configures",
    .more =
        "The command that records that a run waits, was interrupted, failed or completed also starts this command, "
        "and\n"
        "`tidemark recover` sends what remains. Reports the result of each notification; prints nothing if none is\n"
        "pending or if another process sends them. Keys: notify, notify_on, notify_timeout_ms, notify_retry_ms.",
};
