/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMANDS_DOCTOR_PRINT_H
#define CLI_COMMANDS_DOCTOR_PRINT_H

#include "engine/findings.h"
#include "terminal/output.h"

/* The report for people; `all`: every finding of a kind. */
void doctor_print(struct out *out, struct check_report *r, bool all);

#endif
