/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program in a process of its own that is held at a gate: its pid is known, and can be written down, before it runs.
 *
 *   proc_hold ── proc_go ── runs ── proc_exited … proc_reap
 *           └─── proc_drop: it never ran
 */
#ifndef PROGRAM_PROC_H
#define PROGRAM_PROC_H

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

static inline void shut_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

#define PROC_GRACE_MS 2000 /* between being asked to end and being made to */

#define PROC_SLOTS 2
#define PROC_MESSAGE_MAX 80

struct guard;

struct proc_spec {
    struct guard *guard; /* the run's: it starts the program and is its parent. NULL: we are, as `tidemark step` is */
    const char *path;    /* the file, as program_find() gave it */
    char *const *argv, *const *envp;
    char *slots
        [PROC_SLOTS]; /* where the gate's messages go: room for PROC_MESSAGE_MAX at the end of strings of envp; NULL: none */
    const char *cwd; /* NULL: where we are */
    int out, err;    /* become its standard output and error; -1: ours */
    int in;          /* becomes its standard input, and it has no terminal to ask at; 0: ours */
};

struct proc {
    pid_t pid; /* also its group; 0: none */
    uint64_t start;
    int pidfd;
    int gate, fault; /* the message goes in; the errno of a failed start comes out */
    int terminal;    /* descriptor of the terminal that its group was given; -1: none */
    int report;      /* from its guard; -1: it is our child */
    bool stopped;    /* and nobody took note of it yet */
};

#define PROC_INIT                                                                                                      \
    {                                                                                                                  \
        .pidfd = -1, .gate = -1, .fault = -1, .terminal = -1, .report = -1                                             \
    }

/* Into a process and a group of its own. It dies with us, whatever we die of. */
enum tide_code proc_hold(const struct proc_spec *spec, struct proc *ret_proc, struct tide_err *err) MUST_CHECK;

/* The same with a pipe for its output and one for its errors; the ends to read are the caller's, also after a failure. */
enum tide_code proc_hold_piped(struct proc_spec *spec, struct proc *ret_proc, int *ret_out, int *ret_err,
                               struct tide_err *err) MUST_CHECK;

/*
 * A standard input: a file in memory and not a pipe, so that a program that does not read it cannot block us, and one that ends
 * early cannot break us.
 */
enum tide_code proc_input(struct str bytes, struct str end, int *ret_fd, struct tide_err *err) MUST_CHECK;

/* Opens the gate. `messages` fill the slots (NULL: none). */
enum tide_code proc_open(struct proc *p, const char *const *messages, struct tide_err *err) MUST_CHECK;

/* Whether it could be started: waits until that is known. A failed start is reaped. */
enum tide_code proc_started(struct proc *p, struct tide_err *err) MUST_CHECK;

/* Both: returns when the program runs. */
enum tide_code proc_go(struct proc *p, const char *const *messages, struct tide_err *err) MUST_CHECK;

/* A held one ends without having run; one that runs is killed. Takes one that has ended as well. */
void proc_drop(struct proc *p);

/* Signal to the whole group. */
void proc_signal(const struct proc *p, int number);

/* Takes note of its end when it has ended: *ret_status as of waitpid. */
bool proc_reap(struct proc *p, int *ret_status);

/* The descriptor that is readable when proc_reap() and proc_follow_stop() may have something to do. */
int proc_wait_fd(const struct proc *p);

/*
 * When standard input is a terminal and we are in its foreground, the group gets it; proc_terminal_back() takes it again.
 * Without this a program that reads from the terminal would be stopped, and Ctrl-C would not reach it.
 */
void proc_terminal_give(struct proc *p);
void proc_terminal_back(struct proc *p);

/* Ctrl-Z stops the group that has the terminal; the shell that waits for us must see us stop, and get its terminal. */
void proc_follow_stop(struct proc *p);

/* Field 22 of /proc/PID/stat: with the pid it names one process for ever (of this boot). 0: no such process. */
uint64_t proc_start_time(pid_t pid);

/* The environment with these "NAME=value" put in or replaced; `sets` ends with NULL. */
char **proc_env(struct arena *a, char *const *base, char *const *sets);

/* ---- for guard.c: everything that the child needs between fork and exec, made before the fork ---- */

struct proc_birth {
    const struct proc_spec *spec;
    char **shell_argv;
    pid_t parent;
    int gate, gate_write, fault;
    int dir;     /* where it begins, before the spec's directory; -1: where it is */
    bool detach; /* the spec's input is its own, and it has no terminal */
    sigset_t mask;
};

_Noreturn void proc_become(const struct proc_birth *b);

#endif
