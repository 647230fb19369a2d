/* SPDX-License-Identifier: Apache-2.0 */
/* For a program without a console: one that has it brings a table of its own, and the linker leaves this one away. */
#include "server/console.h"

const struct console_file console_files[] = {{.path = NULL}};
