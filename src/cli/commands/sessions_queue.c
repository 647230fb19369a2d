/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions queue: messages that no run has taken yet. */
#include <inttypes.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "engine/message_queue.h"
#include "engine/shapes.h"

static const struct opt options[] = {
    {.name = "withdraw", .type = VALUE_TEXT, .value = "QUEUE_ID", .help = "remove this message from the queue"},
    {.name = NULL},
};

static void print_message(void *arg, const struct queued_message *m)
{
    struct out *out = arg;
    char when[TIME_PEOPLE_SIZE];

    if (out->json) {
        out_shape(out, &shape_queued_message, m);
        return;
    }
    out_value(out, m->queue_id);
    outf(out, "  %s  ", time_people(when, m->ts_ms));
    out_value(out, m->content.ptr);
    outf(out, "\n");
}

static void print_withdrawn(struct out *out, const struct command_result *r)
{
    if (out->json)
        out_shape(out, &shape_queued, r);
    else
        outf(out, "withdrawn from session %s: %s\n", r->session_id, r->queue_id);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const char *withdrawn = args_text(&cli->args, "withdraw");
    int64_t seq = 0;

    if (cli_store_open(cli, withdrawn ? NEED_WRITE : NEED_READ, 0, err) ||
        cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err))
        return err->code;
    if (!withdrawn)
        return message_queue_list(session, print_message, &cli->out, err);
    if (message_queue_withdraw(cli->store, session, withdrawn, &(struct cause){.by = "local"}, &seq, err))
        return err->code;
    print_withdrawn(
        &cli->out, &(struct command_result){.session_id = tide_session_id(session), .queue_id = withdrawn, .seq = seq});
    return TIDE_OK;
}

static enum tide_code list_remote(struct cli *cli, const char *id, struct tide_err *err)
{
    const struct json *v, *list;

    remote_begin(cli->remote, "GET", "sessions", id, "queue");
    if (remote_ask(cli->remote, REMOTE_SOON, &v, err))
        return err->code;
    list = json_get(v, STR("messages"));
    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        struct queued_message m = {0};

        if (remote_take(cli->remote, &shape_queued_message, one, &m, err))
            return err->code;
        print_message(&cli->out, &m);
    }
    return TIDE_OK;
}

/* Its event is the last one of the log that this saw. */
static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    const char *withdrawn = args_text(&cli->args, "withdraw");
    struct session_why why;
    const struct json *v;

    if (!withdrawn)
        return list_remote(cli, args_operand(&cli->args, 0), err);
    if (remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "DELETE", "sessions", why.row.info.id, "queue", withdrawn);
    if (remote_ask(cli->remote, REMOTE_SOON, &v, err) || remote_why(cli, &why, err))
        return err->code;
    print_withdrawn(&cli->out, &(struct command_result){
                                   .session_id = why.row.info.id, .queue_id = withdrawn, .seq = why.row.info.last_seq});
    return TIDE_OK;
}

const struct command cmd_sessions_queue = {
    .group = "sessions",
    .name = "queue",
    .run = run,
    .remote = run_remote,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "list the messages that no run has taken yet, or withdraw one",
    .more =
        "A run that waits for input, and a chat that has completed, take them with `tidemark resume ID` or\n"
        "`tidemark recover --run-due`; a program that has completed, with its next `tidemark exec`. A message cannot be withdrawn while a process runs the session.",
};
