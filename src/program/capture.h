/* SPDX-License-Identifier: Apache-2.0 */
/* A step's program from its start to its end: output gathered up to a bound, time limited, nothing left behind. */
#ifndef PROGRAM_CAPTURE_H
#define PROGRAM_CAPTURE_H

#include "program/proc.h"

#include "base/buf.h"

struct capture {
    struct proc *proc;  /* runs, or is about to */
    int out;            /* read end of its standard output; closed at the end */
    int link;           /* the run's socket: when it breaks the program is killed; -1: none */
    int signals;        /* of capture_next_signal(): passed on to the program; -1: none */
    int echo;           /* where output goes as it comes; -1: nowhere */
    int64_t timeout_ms; /* 0: none */
    size_t max_output;
    void *arg;
    bool (*stop)(void *arg); /* asked at least ten times a second; true: the program is ended. NULL: nobody asks */
    void (*take)(void *arg, const char *bytes, size_t n); /* gets the output instead of `output`; NULL: nobody does */

    /* what came of it */
    struct buf output;
    uint64_t bytes; /* of output in all */
    int status;     /* as of waitpid */
    bool timed_out, broken, stopped;
    int stop_signal;    /* that was passed on; 0: none */
    size_t left_behind; /* processes of its group that were ended */
};

void capture_init(struct capture *c, struct proc *proc, int out, size_t max_output);

/* Returns when the program and its group are gone. */
void capture_run(struct capture *c);
void capture_done(struct capture *c);

/* The exit status that a shell would give for a status of waitpid: 128 + the signal when it was killed. */
int capture_exit_status(int status);

/*
 * The next number in a descriptor that does not block and gives one byte for each signal (the caller's: nothing here sets
 * up signals of the process), SIGCHLD passed over; 0 when there is none.
 */
int capture_next_signal(int signals);

#endif
