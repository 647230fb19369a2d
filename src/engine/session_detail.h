/* SPDX-License-Identifier: Apache-2.0 */
/* All that is known of one session, for its shape and for people. */
#ifndef ENGINE_SESSION_DETAIL_H
#define ENGINE_SESSION_DETAIL_H

#include "base/err.h"
#include "engine/shapes.h"

typedef void session_detail_fn(void *arg, const struct session_detail *detail);

/* Hands it to `fn`, with what moves it as session_show_next() has it. `command`: as of struct session_row. */
enum tide_code session_show_detail(tide_session *session, next_command_fn *command, session_detail_fn *fn, void *arg,
                                   struct tide_err *err) MUST_CHECK;

#endif
