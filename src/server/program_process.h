/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program in a process of its own (`tidemark exec`, `tidemark resume`), with its own lease, so that it outlives this one.
 */
#ifndef SERVER_PROGRAM_PROCESS_H
#define SERVER_PROGRAM_PROCESS_H

#include "server/runner.h"

struct program_process {
    const char *session_id;
    const struct runner_options *runner;
    const struct program_order *program; /* that begins; NULL: the session continues, as `ask` and `message` say */
    const struct resume_request *ask;
    const char *message;
    struct str memory; /* of a graph: values, a JSON object, in no argument; empty: none */
    char *token;       /* TIDE_TOKEN_SIZE: gets that of the wait where it parks */
    int stop;          /* readable once this server stops: nobody waits for the program then */
};

/* Until it has ended. Why it was refused, or failed. */
enum tide_code program_process_run(const struct program_process *p, struct tide_err *err) MUST_CHECK;

#endif
