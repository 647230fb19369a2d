/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions look: the same in every command that shows them. */
#ifndef CLI_SESSION_VIEW_H
#define CLI_SESSION_VIEW_H

#include "terminal/output.h"
#include "engine/session_words.h"
#include "engine/shapes.h"

/* As JSON: what moves it stands there as commands, too. */
struct session_row session_row(const struct tide_session_info *info);

/* By its name; 0 for NULL. */
enum tide_session_kind kind_from(const char *name);

/* The colour of its status. */
enum color session_color(const struct tide_session_info *info);

#endif
