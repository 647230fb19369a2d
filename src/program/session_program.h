/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a session: from a command line or from the log, looked at before it runs, and as its run records it. */
#ifndef PROGRAM_SESSION_PROGRAM_H
#define PROGRAM_SESSION_PROGRAM_H

#include "program/find.h"
#include "program/proc.h"

struct session_program {
    struct arena arena;
    char **argv;
    const char *cwd;
    const char *path;    /* $PATH, as its first run had it; NULL: it has none that could be recorded */
    const char *env;     /* names of variables it needs, "A,B"; NULL: none */
    const char *program; /* file that argv[0] means; NULL: found by session_program_check() */
    const char *digest;  /* of the file when it ran last; NULL: not known */
    const char *stat;    /* and by what it is known to be still that file; NULL or empty: not known */
    bool changed;
};

#define SESSION_PROGRAM_INIT                                                                                           \
    {                                                                                                                  \
        .arena = ARENA_INIT                                                                                            \
    }

void session_program_done(struct session_program *p);

/* This one, run where we are. */
enum tide_code session_program_from_argv(struct session_program *p, const char *const *argv, size_t n, const char *env,
                                         struct tide_err *err) MUST_CHECK;

/* What `session` ran last. TIDE_INVALID when that was no program. */
enum tide_code session_program_from_log(struct session_program *p, tide_session *session, struct tide_err *err)
    MUST_CHECK;

/*
 * The one that was given continues in `session`: it must be the one that ran there last (TIDE_INVALID), and continues where and how
 * that one ran. A command line that held a secret is known by what is recorded of it, and run as it was given.
 */
enum tide_code session_program_match(struct session_program *p, tide_session *session, struct tide_err *err) MUST_CHECK;

/*
 * The program, its directory and its variables are there: asked before anything is written or a token is used. *ret_status:
 * of a program that cannot be run the status that shells give (127, 126), else 0.
 */
enum tide_code session_program_check(struct session_program *p, int *ret_status, struct tide_err *err) MUST_CHECK;

/* The fields of run.started, of the process that is held at its gate. */
enum tide_code session_program_fields(const struct session_program *p, const struct proc *child, struct buf *out,
                                      struct tide_err *err) MUST_CHECK;

#endif
