/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process between a run and the programs that it starts, one for each run: made when the first program starts, ended
 * with the run. It is the parent of the programs and the subreaper of everything below them, so that several runs of one
 * process have each a tree of their own, and what a program leaves behind is found whatever became of the program.
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
    uint32_t asked; /* number of the last question */
    bool lost;      /* somebody killed it: what is left of its tree has to be looked for by the run's id */
};

#define GUARD_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .pidfd = -1, .socket = -1                                                   \
    }

/* True when nothing is below it, by the word of the kernel (a lost one cannot be asked: true). One without programs is empty. */
bool guard_is_empty(struct guard *g);

/* Sends a signal to everything below it (0: only counts); how many were found, zombies not counted. */
size_t guard_signal(struct guard *g, int number);

/*
 * Kills everything below it, and it; returns when nothing is left, or after a few seconds when the kernel does not let go
 * of a process. The guard can be used again: the next program gets a new one. Takes one that was never used.
 */
void guard_end(struct guard *g);

/*
 * Lets it go when no program runs: what programs put into sessions of their own works on, as nobody's child. For runs whose
 * programs may start something that is to stay; when the process of such a run is killed, that is ended like all else.
 */
void guard_leave(struct guard *g);

/* ---- for proc.c ---- */

struct proc_birth;

/*
 * Has the program started at its gate; what is told of it comes out of *ret_report, whose closing says that its number is
 * not needed any more: until then it stays a zombie. 0, or an errno. The caller holds the lock of all births.
 */
int guard_start(struct guard *g, const struct proc_birth *b, int *ret_report);

enum guard_word { GUARD_SILENT, GUARD_STARTED, GUARD_FAILED, GUARD_STOPPED, GUARD_ENDED, GUARD_GONE };

/*
 * The next thing that is told of a program: *ret_value is its pid, an errno, nothing, its status as of waitpid. Of one that
 * was started *ret_pidfd is the descriptor. With `wait` never GUARD_SILENT.
 */
enum guard_word guard_hear(int report, bool wait, int *ret_value, int *ret_pidfd);

#endif
