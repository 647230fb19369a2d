/* SPDX-License-Identifier: Apache-2.0 */
/* What a command inside a run asks, and its answer: each request becomes one call of the library. */
#ifndef PROGRAM_RUN_REQUESTS_H
#define PROGRAM_RUN_REQUESTS_H

#include "program/run_server.h"

struct conn {
    struct conn *next;
    int fd, slot; /* slot: its place among the polled */
    struct frame_reader in;
    struct buf out;
    size_t out_at;
    bool held, ended;
    char step[STEP_NAME_SIZE]; /* under way; "" when none is */
    bool begun, once;
    pid_t group; /* of the program of the step, once it has begun */
};

/* One request while it is being answered. */
struct request {
    struct run_server *s;
    struct conn *c;
    struct arena arena;
    const struct json *json;
    struct str blob;
    struct tide_err err;
    struct buf reply;
    struct json_out o;
};

/* Answers it into r->c->out; false: it is held until something else is over. */
bool run_request_answer(struct request *r);

/* Who ends with a failure names the step that it came from. */
void run_note_step(struct run_server *s, const char *name, bool failed);
void run_step_over(struct conn *c);

#endif
