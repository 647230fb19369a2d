/* SPDX-License-Identifier: Apache-2.0 */
/* What goes between a run (guard.c) and its guard (guard_process.c): questions and answers over one socket, reports over one for each program. */
#ifndef PROGRAM_GUARD_PROTOCOL_H
#define PROGRAM_GUARD_PROTOCOL_H

#include <signal.h>
#include <stddef.h>

#include "program/guard.h"
#include "program/proc.h"

#define REQUEST_MAX ((size_t)64 << 20) /* more than the kernel takes as arguments and environment */

/* A start has the descriptors below with it. */
struct question {
    enum { ASK_START, ASK_EMPTY, ASK_LEAVE } what;
    uint32_t number; /* of ASK_EMPTY: the answer has it */
    size_t size;     /* of ASK_START: of the request */
};

struct answer {
    uint32_t number;
    bool empty;
};

enum { FD_REQUEST, FD_REPORT, FD_GATE, FD_FAULT, FD_DIR, FD_IN, FD_OUT, FD_ERR, N_FDS };

struct report {
    enum guard_word word;
    int value;
};

/* At the beginning of a request. Places count from there; 0 is none. Behind it is the table: argv, envp, shell_argv. */
struct request {
    size_t n_table, envp, shell_argv; /* of the last two: where in the table */
    size_t path, cwd, slots[PROC_SLOTS];
    sigset_t mask;
    bool detach;
};

/* One message with its descriptors. False: errno says why. */
bool guard_send(int socket, const void *bytes, size_t len, const int *fds, size_t n, int flags);

/* Its length; 0: the other side is gone, negative: errno. *ret_n descriptors are the caller's. */
ssize_t guard_receive(int socket, void *bytes, size_t len, int fds[N_FDS], size_t *ret_n, int flags);

/* The guard itself, in a process that was just forked, with its end of the socket and a pidfd of the run. */
_Noreturn void guard_main(int socket, int owner);

#endif
