/* SPDX-License-Identifier: Apache-2.0 */
/* What is said when a program that was run as a session has ended, or waits. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/cli.h"
#include "engine/program_run.h"

/* Fills in the callbacks. */
void report_init(struct program_run *r);

/* Signals go to it while it runs. */
void report_running(struct program_run *r, bool runs);

/* TIDE_OK: it cannot be run, and that was said; else the error that there is. */
enum tide_code report_not_run(struct cli *cli, const struct program_run *r, struct tide_err *err) MUST_CHECK;

/*
 * What program_run() ended with, `code`; sets cli->exit_status. A waiting run: for people on standard error, or with --json on
 * standard output; its token goes to `token_fd`, or is shown (-1).
 */
enum tide_code report_end(struct cli *cli, const struct program_run *r, tide_session *session, enum tide_code code,
                          int token_fd, struct tide_err *err) MUST_CHECK;

/* The same of a run that waits, whatever it runs. */
enum tide_code report_wait(struct cli *cli, const char *session, const struct program_end *e, int token_fd,
                           struct tide_err *err) MUST_CHECK;

/* Says it when something of the run waited in memory. */
void report_durability(int64_t degraded_events);

/* The caller that sent the request over this socket reads there why it was refused. */
void report_refusal(int fd, const struct tide_err *err);

/* Puts `text` and a newline into a descriptor that a person gave. */
enum tide_code write_fd(int fd, const char *option, const char *text, struct tide_err *err) MUST_CHECK;

/* --token-fd must be open before anything is written; what we run does not inherit it. */
enum tide_code check_fd(int fd, const char *option, struct tide_err *err) MUST_CHECK;

#endif
