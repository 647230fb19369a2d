/* SPDX-License-Identifier: Apache-2.0 */
/* The demo: a program of five steps and an approval, killed at random and resumed, and what the world says of it. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include <sys/types.h>

#include "cli/cli.h"

/* What the program does, in order; the approval stands before the third. */
struct demo_step {
    const char *name, *effect, *says;
    int ran; /* how often it happened in the world */
};
#define DEMO_STEPS 5

/* A place of its own: directory, store, program, and the tidemark that plays. */
struct demo_place {
    char dir[512], store[600], path[4096];
};
/* `steps` NULL: without a program. */
enum tide_code demo_place_make(struct demo_place *place, const struct demo_step *steps, int step_ms,
                               struct tide_err *err) MUST_CHECK;
void demo_place_remove(struct demo_place *place);
void demo_show_program(struct out *out, const struct demo_step *steps);

/* Counts what has happened: one line a step in world.log. */
void demo_read_world(const struct demo_place *place, struct demo_step *steps);

/* A child of this same program in that place, its output on a pipe. */
struct demo_child {
    pid_t pid; /* 0: none */
    int fd;
};
enum tide_code demo_spawn(const struct demo_place *place, const char *const *args, struct demo_child *ret_child,
                          struct tide_err *err) MUST_CHECK;
int demo_reap(struct demo_child *child); /* waits for its end; the wait status */

/* Kills it if a run of it is under way: before it is in the log there is nothing to go on with, and one that waits is over. */
bool demo_kill(const struct demo_place *place, pid_t pid);

/* The other demo: an agent that may be killed by whoever watches. */
enum tide_code demo_chat(struct cli *cli, struct tide_err *err) MUST_CHECK;

/* The graphs of examples/graphs, to be chosen from. */
enum tide_code demo_graph(struct cli *cli, struct tide_err *err) MUST_CHECK;

/* Their files, by tools/embed.awk; the last has no name. */
struct demo_file {
    const char *name, *text;
};
extern const struct demo_file demo_files[];

#endif
