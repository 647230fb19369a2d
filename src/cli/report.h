/* SPDX-License-Identifier: Apache-2.0 */
/* What is said when a program that was run as a session has ended, or waits. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"
#include "program/supervisor.h"

struct report {
    const char *session_id, *program;
    char run_id[TIDE_ID_SIZE]; /* "": nothing ran */
    int token_fd;
    size_t left_behind;
    bool hidden; /* its command line held a secret: it is not run again from the log */
    struct ending ending;
    struct park park;
};

/* Sets cli->exit_status. A waiting run: for people on standard error, or with --json on standard output. */
enum tide_code report_end(struct cli *cli, const struct report *r, struct tide_err *err) MUST_CHECK;

/* Says it when something of the run waited in memory. */
void report_durability(int64_t degraded_events);

#endif
