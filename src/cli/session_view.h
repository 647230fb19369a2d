/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions look, in JSON and on a terminal: the same in every command that shows them. */
#ifndef CLI_SESSION_VIEW_H
#define CLI_SESSION_VIEW_H

#include "cli/output.h"

/* False: it is so damaged that nobody knows how many events it has. */
bool session_is_known(const struct tide_session_info *info);

/* The members of one session, into an object that is open. */
void session_members(struct json_out *o, const struct tide_session_info *info);

/* "idle, failed"; the colour that goes with it. */
#define STATUS_SIZE 64
/* degraded: something of its latest run waited in memory while the store could not be written; else full. */
const char *session_durability(const struct tide_session_info *info);
const char *session_status(char buf[STATUS_SIZE], const struct tide_session_info *info);
enum color session_color(const struct tide_session_info *info);

#endif
