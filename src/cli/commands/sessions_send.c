/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions send: a user's message. A run that waits is continued by a new run, and the message answers its next wait
 * of kind input; after a completed run a new one begins with it. Where somebody runs the session the message is queued for that
 * one. In each case it is on disk before anything is said.
 */
#include <inttypes.h>

#include "cli/chat/chat.h"
#include "cli/report.h"
#include "cli/resume.h"
#include "engine/resume.h"
#include "engine/shapes.h"

#define TEXT_MAX ((size_t)16 << 20)

static enum tide_code queue_message(struct cli *cli, const char *id, struct str content, struct tide_err *err)
{
    char queue_id[QUEUE_ID_SIZE];
    int64_t seq = 0;

    if (send_queue(cli->store, id, content, queue_id, &seq, err))
        return err->code;
    if (!cli->out.json) {
        outf(&cli->out, "queued for session %s: seq %" PRId64 "\n", id, seq);
        return TIDE_OK;
    }
    out_shape(&cli->out, &shape_queued, &(struct command_result){.session_id = id, .queue_id = queue_id, .seq = seq});
    return TIDE_OK;
}

/* *ret_queue: it is to be queued instead, because there is no program or somebody runs it. */
static enum tide_code start_run(struct cli *cli, struct program_run *r, tide_session *session, const char *content,
                                bool *ret_queue, struct tide_err *err)
{
    struct tide_run_options opt = {.size = sizeof opt, .message = content};
    bool runs = false;
    enum tide_code code = program_run_from_log(r, session, err);

    *ret_queue = code == TIDE_INVALID;
    if (code)
        return *ret_queue ? TIDE_OK : code;
    code = report_check(cli, r, false, &runs, err);
    if (code || !runs)
        return code;
    code = report_run(cli, r, session, &opt, NULL, -1, err);
    *ret_queue = code == TIDE_HELD;
    return *ret_queue ? TIDE_OK : code;
}

/* The graph that waits goes on with it. */
static enum tide_code send_graph(struct cli *cli, tide_session *session, const char *content, struct tide_err *err)
{
    AUTO(resume_done) struct resume r = RESUME_INIT;

    r.ask.id = tide_session_id(session);
    r.ask.no_input = true;
    r.graph.r = &r;
    r.graph.run.want.opt.message = content;
    return graph_again(cli, &r.graph, session, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(buf_done) struct buf content = BUF_INIT(TEXT_MAX);
    AUTO(program_run_done) struct program_run r = {.begin = PROGRAM_SEND};
    const struct chat_want want = {.resume = args_operand(&cli->args, 0), .prompt = args_operand(&cli->args, 1)};
    enum tide_session_kind kind = TIDE_KIND_LOG;
    bool queued = args_on(&cli->args, "queue");
    enum tide_code code = cli_session_open(cli, 0, queued ? TIDE_SESSION_READ : TIDE_SESSION_APPEND, &session, err);

    if (code)
        return code;
    if (!args_operand(&cli->args, 1)[strspn(args_operand(&cli->args, 1), " \t\r\n")])
        return tide_fail(err, TIDE_INVALID, "the message is empty");
    json_quote(&content, str_from(args_operand(&cli->args, 1)));
    if (!queued && send_kind(session, &kind, err))
        return err->code;
    if (kind == TIDE_KIND_CHAT) {
        tide_session_close(TAKE(session));
        cli_store_close(cli);
        return chat_print(cli, &want, err);
    }
    if (kind == TIDE_KIND_GRAPH)
        return send_graph(cli, session, buf_cstr(&content), err);
    if (kind == TIDE_KIND_PROGRAM)
        code = start_run(cli, &r, session, buf_cstr(&content), &queued, err);
    if (code || (kind == TIDE_KIND_PROGRAM && !queued))
        return code;
    return queue_message(cli, tide_session_id(session), buf_view(&content), err);
}

const struct command cmd_sessions_send = {
    .group = "sessions",
    .name = "send",
    .run = run,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}, {"TEXT", VALUE_TEXT, 0}},
    .options = (const struct opt[]){{.name = "queue",
                                     .help = "only queue the message; the next run of the session "
                                             "takes it"},
                                    {.name = NULL}},
    .help = "send a message to a session: its run continues with it, a chat answers, or the message is queued",
    .more = "A waiting run is superseded: its token is revoked, and a new run continues. Finished steps are not "
            "repeated, and\n"
            "the message answers the next wait of kind input. After a completed run, a new run starts.\n"
            "Exit status: that of the program; 11 if the session is not trusted (`tidemark sessions trust ID`).",
};
