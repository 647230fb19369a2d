/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions send: a user's message. A run that waits is continued by a new run, and the message answers its next wait
 * of kind input; after a completed run a new one begins with it. Where somebody runs the session the message is queued for that
 * one. In each case it is on disk before anything is said.
 */
#include "cli/resume.h"
#include "cli/resume_remote.h"

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(resuming_done) struct resuming r = RESUMING_INIT;

    r.core.ask.id = args_operand(&cli->args, 0);
    r.face.no_input = true;
    return send_and_print(cli, &r, args_operand(&cli->args, 1), args_on(&cli->args, "queue"), err);
}

const struct command cmd_sessions_send = {
    .group = "sessions",
    .name = "send",
    .run = run,
    .remote = send_remote,
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
