/* SPDX-License-Identifier: Apache-2.0 */
/* The examples that the help of a command ends with. */
#ifndef CLI_EXAMPLES_H
#define CLI_EXAMPLES_H

#include "cli/command.h"

#define EXAMPLES 2

/* The first (0) or second (1); NULL: it has none, which a test refuses. */
const char *command_example(const struct command *c, int which);

#endif
