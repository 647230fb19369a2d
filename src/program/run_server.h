/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side of the run's socket that holds the run: each request of a command inside becomes one call of the library, and
 * is answered when that is on disk.
 *
 * A wait ends the program, so it must not come while steps are under way: it is held until they have ended, and new steps
 * are held behind it. Steps inside a step are not (the outer one could never end).
 */
#ifndef PROGRAM_RUN_SERVER_H
#define PROGRAM_RUN_SERVER_H

#include <poll.h>

#include "base/json.h"
#include "program/frame.h"

#define SERVER_CONNS_MAX 512 /* more wait in the queue of the socket */
#define STEP_NAME_SIZE 132

struct conn;

/* What the run waits for since it was parked. */
struct park {
    bool parked, is_sleep;
    char token[TIDE_TOKEN_SIZE];
    char name[STEP_NAME_SIZE], kind[24], question[1024];
    int64_t deadline_ms, due_ms; /* 0: none */
};

struct run_server {
    tide_run *run;
    int listener;
    struct conn *conns;
    size_t n_conns;
    const struct conn *waiter; /* whose wait is held until the steps have ended */
    bool closing;              /* the program is being ended: nothing new begins */
    bool lost;                 /* the lease is: see `err` */
    struct tide_err err;
    struct park park;
    char failed_step[STEP_NAME_SIZE]; /* the last step that ended, when it did not succeed; "": it did */
};

void run_server_init(struct run_server *s, tide_run *run, int listener);

/* What to wait for, and what to do when it has come: `fds` as run_server_wants() filled them. */
size_t run_server_wants(struct run_server *s, struct pollfd fds[SERVER_CONNS_MAX + 1]);
void run_server_move(struct run_server *s, const struct pollfd *fds, size_t n);

/* Steps that have been asked for and have not ended. */
size_t run_server_under_way(const struct run_server *s);

/* Closes all connections; steps under way are recorded as killed, unless the run is parked or lost. */
void run_server_close(struct run_server *s);

#endif
