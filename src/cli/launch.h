/* SPDX-License-Identifier: Apache-2.0 */
/* Running a program as a run of a session: what exec, resume and sessions send share. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/cli.h"
#include "program/find.h"

/* What is run. Everything in it was looked at by launch_check() before anything is written or a token is used. */
struct launch {
    struct arena arena;
    char **argv;
    const char *cwd;
    const char *env;     /* names of variables it needs, "A,B"; NULL: none */
    const char *program; /* file that argv[0] means; NULL: found by launch_check() */
    const char *digest;  /* of the file when it ran last; NULL: not known */
    bool changed;
    int token_fd;      /* a token that the run waits for is written there; -1: shown */
    bool degrade;      /* --on-store-error continue */
    bool degrade_said; /* by the command line: what is set does not count */
    int64_t sweep_ms;  /* between recoveries of what others left; 0: none */
};

#define LAUNCH_INIT                                                                                                    \
    {                                                                                                                  \
        .arena = ARENA_INIT, .token_fd = -1                                                                            \
    }

void launch_done(struct launch *l);

/* The argv, from operand `first` on, and where we are. */
enum tide_code launch_from_args(struct launch *l, struct cli *cli, size_t first, struct tide_err *err) MUST_CHECK;

/* What `session` ran last. TIDE_INVALID when that was no program. */
enum tide_code launch_from_session(struct launch *l, tide_session *session, struct tide_err *err) MUST_CHECK;

/*
 * The program, its directory and its variables are there. *ret_status 0, or the exit status (127, 126) after saying why
 * not on standard error.
 */
enum tide_code launch_check(struct launch *l, const struct cli *cli, int *ret_status, struct tide_err *err) MUST_CHECK;

/*
 * Starts (resume NULL) or resumes the session with it, and stays with it to its end; sets cli->exit_status and prints what
 * there is to say. Of `opt`, fields and trouble are filled in here.
 */
enum tide_code launch_run(struct launch *l, struct cli *cli, tide_session *session, struct tide_run_options *opt,
                          struct tide_resumed *resume, struct tide_err *err) MUST_CHECK;

/* One line on standard error, as main() says errors. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Puts `text` and a newline into a descriptor that a person gave. */
enum tide_code write_fd(int fd, const char *option, const char *text, struct tide_err *err) MUST_CHECK;

/* --token-fd must be open before anything is written; what we run does not inherit it. */
enum tide_code check_fd(int fd, const char *option, struct tide_err *err) MUST_CHECK;

#endif
