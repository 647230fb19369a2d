/* SPDX-License-Identifier: Apache-2.0 */
/* The way from a command inside a run (step, wait, set, …) to the `exec` that holds the run: one request at a time. */
#ifndef PROGRAM_RUN_CLIENT_H
#define PROGRAM_RUN_CLIENT_H

#include "base/json.h"
#include "program/frame.h"

struct run_client {
    int fd;
    struct frame_reader reader;
    struct arena arena;
    struct buf request; /* the JSON of the next one */
    struct json_out o;  /* writes into it */
};

/* By $TIDEMARK_RUN. TIDE_INVALID: not inside a run; says how to be. `command` is how the message begins. */
enum tide_code run_client_open(struct run_client *l, const char *command, struct tide_err *err) MUST_CHECK;
void run_client_close(struct run_client *l);

/* Begins {"op":op; write the further members through link->o, then call. */
void run_client_begin(struct run_client *l, const char *op);

struct reply {
    const struct json *json;
    struct str blob; /* both until the next request */
};

/*
 * Sends the request and waits for the answer. An answer that is an error comes back as that error. TIDE_IO: the other side
 * is gone; TIDE_CANCELLED: a signal came while waiting.
 */
enum tide_code run_client_call(struct run_client *l, struct str blob, struct reply *ret_reply, struct tide_err *err)
    MUST_CHECK;

/* We are inside a step of the run. */
bool run_client_is_nested(void);

/* The code with this name ("CHANGED"); TIDE_FAILED when there is none. */
enum tide_code code_by_name(struct str name);

#endif
