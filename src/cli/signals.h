/* SPDX-License-Identifier: Apache-2.0 */
/* The signals of this process: those that stop it, and as bytes in a pipe. The command line's alone: the library installs no handler. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>

/*
 * For the loops that wait for a program: from now on SIGINT, SIGTERM, SIGHUP (those that are ignored left alone) and SIGCHLD come out of a descriptor, whichever
 * thread they reach: the library has threads of its own, so blocking them in ours would not be enough. -1: none to be had.
 */
int signal_pipe_open(void);
void signal_pipe_close(int signals);

/* Handles SIGINT, SIGTERM and SIGHUP; those that are ignored stay so. `flags`: of sigaction. `default_too`: also those without a handler. */
void signals_catch(void (*handler)(int), int flags, bool default_too);

/* … by noting it: stop_signal. */
void signals_note(int flags);

/*
 * The first signal that stops us calls `stop` in its handler; `person`: it was Ctrl-C, the others say that the process is to
 * end. A later one ends the process at once. `work` NULL: there is nothing to stop any more.
 */
void signals_stop(void (*stop)(void *work, bool person), void *work);
bool signals_stopped(void); /* one came; also before signals_stop(), whose work is stopped then */

/*
 * The signals that stop us end the process again: for one that only asks and has nothing to tidy up, and whose answer may
 * never come. A handler that only takes note would lose a signal that comes just before the read.
 */
void signals_end_us(void);

#endif
