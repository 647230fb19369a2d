/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions look, in JSON and on a terminal: the same in every command that shows them. */
#ifndef CLI_SESSION_VIEW_H
#define CLI_SESSION_VIEW_H

#include "cli/output.h"
#include "engine/session_words.h"

/* The members of one session, into an object that is open. */
void session_members(struct json_out *o, const struct tide_session_info *info);

/* The colour of its status. */
enum color session_color(const struct tide_session_info *info);

#endif
