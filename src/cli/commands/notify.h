/* SPDX-License-Identifier: Apache-2.0 */
/* Sending notifications from a command. */
#ifndef CLI_COMMANDS_NOTIFY_H
#define CLI_COMMANDS_NOTIFY_H

#include "cli/cli.h"
#include "engine/notify.h"

typedef void notify_told_fn(void *cli, const struct notify_outcome *outcome);

void notify_ignore(void *cli, const struct notify_outcome *outcome); /* says nothing */

/* Sends what is due in the open store. */
enum tide_code notify_all(struct cli *cli, notify_told_fn *told, struct tide_err *err) MUST_CHECK;

#endif
