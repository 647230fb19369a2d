/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process between a run and the programs that it starts, one for each run: created with the first program, ended with
 * the run. It is the parent of the programs and the subreaper of all their descendants. So each of several runs in one
 * process has a tree of its own, and processes that a program leaves behind are found after the program has ended.
 */
#ifndef PROGRAM_GUARD_H
#define PROGRAM_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guard {
    pthread_mutex_t lock; /* programs may be started by several threads */
    pid_t pid;            /* 0: there is none */
    int pidfd, socket;
    uint32_t asked; /* number of the last request */
    bool lost;      /* it was killed: what is left of its tree is found by the run's id */
};

#define GUARD_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .pidfd = -1, .socket = -1                                                   \
    }

/* True when the kernel reports that nothing is below it (a lost guard cannot be asked: true). One without programs is empty. */
bool guard_is_empty(struct guard *g);

/* Sends a signal to everything below it (0: only counts). Returns how many processes were found, without zombies. */
size_t guard_signal(struct guard *g, int number);

/*
 * Kills the guard and everything below it; returns when nothing is left, or after a few seconds if the kernel does not end a
 * process. The guard can be used again: the next program gets a new process. Takes one that was never used.
 */
void guard_end(struct guard *g);

/*
 * Ends the guard alone, when no program runs: processes that left for a session of their own keep running and get another parent.
 * For runs whose programs may start something that is to stay; if the process of such a run is killed, that is ended as well.
 */
void guard_leave(struct guard *g);

/* ---- for proc.c ---- */

struct proc_birth;

/*
 * Has the program started at its gate. *ret_report is the descriptor from which its events are read; the program stays a zombie
 * until that is closed, so its pid is not used again. Returns 0 or an errno. The caller holds the lock of all births.
 */
int guard_start(struct guard *g, const struct proc_birth *b, int *ret_report);

enum guard_word { GUARD_SILENT, GUARD_STARTED, GUARD_FAILED, GUARD_STOPPED, GUARD_ENDED, GUARD_GONE };

/*
 * Reads the next event of a program: *ret_value is its pid, an errno, nothing, or its status as of waitpid. When it was started,
 * *ret_pidfd is its descriptor. With `wait` never GUARD_SILENT.
 */
enum guard_word guard_hear(int report, bool wait, int *ret_value, int *ret_pidfd);

#endif
