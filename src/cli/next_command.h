/* SPDX-License-Identifier: Apache-2.0 */
/* An action as the command that does it: the one place where the command line names its own commands. */
#ifndef CLI_NEXT_COMMAND_H
#define CLI_NEXT_COMMAND_H

#include <stdbool.h>

#include "base/mem.h"
#include "cli/args.h"
#include "tidemark.h"

/* Once, before anything is offered: the options by which this command found its store are given again in every offer. */
void own_command_init(const struct args *args);

/* A command that opens a store itself, inside a run too: the store that the run was given is not its store. */
void own_command_here(const struct args *args);

/* "tidemark --store my.db": what every command of ours begins with that a person may paste. In the arena. */
const char *own_command(struct arena *a);

/* In the arena. NULL: a name in it does not go into a command as it is. What a person has to fill in is in capitals. */
const char *next_command(struct arena *a, const struct tide_next *next);

/* Of TIDE_ACTION_REPEAT, which goes with the command that was given: its options. NULL: the same, or another action. */
const char *next_options(struct arena *a, const struct tide_next *next);

/* Whether the command that runs takes all of them: what it does not take, adding it to that command does not help. */
bool next_options_fit(struct arena *a, const struct tide_next *next);

/* "--accept-change" of accept_change, in the arena. */
const char *argument_option(struct arena *a, const char *argument);

/* Of all of a list (ended by action 0) that can be rendered, ended by NULL. */
const char *const *next_commands(struct arena *a, const struct tide_next *next);

/* "`tidemark resume x` resumes it"; where there are several ways, the command that shows them. NULL: nothing is offered. */
const char *how_on(struct arena *a, const char *id, const struct tide_next *next);

#endif
