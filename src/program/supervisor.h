/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a run of a session, from the gate to the record of its end. One thread, one loop.
 *
 *   supervisor_open      socket, output, the program held at its gate: its pid is known
 *   (the caller)         tide_run_start or tide_run_resume, with that pid in the record
 *   supervisor_run       lets it run, serves it, ends it, records how it ended
 *   supervisor_close
 */
#ifndef PROGRAM_SUPERVISOR_H
#define PROGRAM_SUPERVISOR_H

#include "program/run_socket.h"
#include "program/guard.h"
#include "program/proc.h"
#include "program/relay.h"
#include "program/run_server.h"

struct supervised {
    const char *path; /* as program_find() gave it */
    char *const *argv;
    const char *cwd;         /* NULL: where we are */
    const char *search_path; /* $PATH of the program; NULL: ours */
    const char *binary;      /* what `tidemark` means inside: in $TIDEMARK, and found by $PATH; NULL: nothing is set */
    const char *session_id;
    int signals;                                            /* of capture_next_signal(): those that stop it; -1: none */
    void (*trouble)(void *arg, const struct tide_err *why); /* with the store, when it begins; NULL: it is over */
    void *arg;
    bool degrade; /* what trouble with the store means to the run: continues in memory, else it is held */
};

enum stop {
    STOP_NONE,
    STOP_LEFT,   /* the program has ended and left processes behind */
    STOP_SIGNAL, /* a signal asked us to stop */
    STOP_CANCEL, /* somebody cancelled the run */
    STOP_PARKED, /* the run waits */
    STOP_LOST,   /* the lease is somebody else's */
};

struct supervisor {
    const struct supervised *job;
    struct guard guard;
    struct proc child;
    struct relay out, err;
    struct run_server server;
    struct arena arena;
    int listener;
    bool trouble; /* with the store, now */
    enum stop stop;
    int stop_signal;
    int64_t kill_at, exited_at; /* by monotonic_ms(); 0: not yet */
    size_t left_behind;
    bool exited, had_terminal;
    int status; /* of the program, as of waitpid */
};

enum tide_code supervisor_open(struct supervisor *s, const struct supervised *job, struct tide_err *err) MUST_CHECK;

/* For struct tide_run_options: reports when the store begins to fail and when it works again; gives up when asked to stop. */
int supervisor_trouble(void *supervisor, const struct tide_err *why, int64_t waited_ms);

struct ending {
    enum stop stop;
    int exit_status; /* of the program, or 128 + the signal */
    bool start_failed;
    bool clean;        /* completed */
    char message[512]; /* what to say about it; "" when nothing */
};

/* Ends the run as well, unless it is parked or lost (that comes back as the error). */
enum tide_code supervisor_run(struct supervisor *s, tide_run *run, struct ending *ret_ending, struct tide_err *err)
    MUST_CHECK;

void supervisor_close(struct supervisor *s);

#endif
