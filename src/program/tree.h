/* SPDX-License-Identifier: Apache-2.0 */
/* What a program leaves behind: its group, and the processes that it started and that became those of its guard, or ours. */
#ifndef PROGRAM_TREE_H
#define PROGRAM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Sends a signal to every descendant of a process (0: none, only counts); how many were found, zombies not counted. */
size_t tree_signal(pid_t root, int number);

/* True when we have no child at all, so nothing is below us. One that ended counts until it is reaped. */
bool tree_is_empty(void);

/* How many processes of a group live, zombies not counted. Reads all of /proc: for rare paths. */
size_t tree_group_size(pid_t group);

/*
 * Ends what an earlier supervisor of this run left behind when it was killed: every process of ours that has the run's id
 * in its environment. Only for the process that holds the run and has not started its own program yet. How many there were.
 */
size_t tree_end_run(const char *run_id);

/* The same of one process group: what a step that was killed left behind. */
void tree_end_group(const char *run_id, pid_t group);

/* Takes note of the ends of children that were adopted; `except` is left alone. */
void tree_reap(pid_t except);

#endif
