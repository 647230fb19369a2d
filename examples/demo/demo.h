/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: tidemark, used as anyone uses it, by its commands, in a temporary directory of its own. It is killed while it
 * works, and what then happened outside the store is counted. Anything that goes wrong ends the demo (fail, say);
 * place_remove() runs at every exit.
 */
#ifndef DEMO_H
#define DEMO_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum color { PLAIN, BOLD, DIM, RED, GREEN };

struct demo {
    bool json;     /* nothing for people; one line of JSON at the end */
    bool terminal; /* a person watches, and may press keys */
    bool colored;
};
extern struct demo demo;
extern volatile sig_atomic_t stop_signal;

/* For people: in the terminal's width, at once. */
void say(enum color color, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *paint(enum color color); /* "" without colours */
_Noreturn void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void leave_if_stopped(void); /* by a signal */
int random_below(int n);
int64_t clock_ms(void);

/*
 * A temporary directory with a copy of the files in examples/`files`, and with a store; commands are run in it. It takes the place of the
 * one before, and stays until the end.
 */
void place_make(const char *files);
void place_remove(void);
int place_count(const char *line); /* how often world.log has it: what really happened */
void place_show(const char *file); /* without its comments */

/* A shell command in the place. Its output goes to `out_fd` (-1: where ours goes, with --json nowhere); it dies with us. */
pid_t child_start(const char *command, int out_fd);
int child_wait(pid_t pid); /* its exit status, or 128 and the number of its signal */

/* Kills it if a run of it is under way: before that there is nothing to resume, and one that waits has ended. */
bool child_kill(pid_t pid);

/* The three demos; true: everything that must happen once happened once. */
bool play_deploy(void);
bool play_agent(void);
bool play_graphs(void);

/* At a terminal: the server on the store that the last of them left, until Enter. */
void play_server(void);

#endif
