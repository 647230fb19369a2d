/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions look on every screen: a shape and a colour for each state, and what moves it in a word. */
#ifndef TUI_LOOK_H
#define TUI_LOOK_H

#include "tui/canvas.h"
#include "tui/source.h"
#include "tui/view.h"

struct look {
    const char *shape;
    enum ink ink;
};

struct look look_of_session(const struct tide_session_info *info);
struct look look_of_outcome(const char *word); /* of steps, waits, nodes and runs, as shapes name them */

/* "3m", "2h", "5d": at most 4 columns. */
#define AGE_SIZE 16
const char *look_age(char buf[AGE_SIZE], int64_t since_ms, int64_t now_ms);

/* What the first of `next` that can be done here is, in a word ("answer", "resume"); NULL: nothing moves it. */
const char *look_move(const struct tide_session_info *info);
enum act_what act_of(const struct tide_session_info *info);

#endif
