/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools share among themselves: the rows of the table, and small things that all of them do. */
#ifndef AGENT_TOOL_LIST_H
#define AGENT_TOOL_LIST_H

#include "agent/confined.h"
#include "agent/tool.h"

extern const struct tool tool_bash, tool_read, tool_write, tool_edit, tool_glob, tool_grep;

/* A result that the model gets as an error. */
void tool_fail(struct tool_result *ret, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline struct confined tool_beneath(const struct tool_work *w)
{
    return (struct confined){w->place->cwd, w->place->dir};
}

static inline bool tool_stopped(const struct tool_work *w)
{
    return w->place->stop && w->place->stop(w->place->arg);
}

/* How many characters of a result the model gets. */
static inline size_t tool_room(const struct tool_work *w)
{
    size_t most = TOOL_RESULT_MAX / 4 - 64; /* so that it fits with its mark, whatever the characters are */

    return w->place->max_result_chars && w->place->max_result_chars < most ? w->place->max_result_chars : most;
}

/* The same for lists of names and lines: room for one more line, and for our own words at the end, is kept. */
static inline size_t tool_room_for_names(const struct tool_work *w)
{
    size_t room = tool_room(w);

    return room > 2000 ? room - 1000 : room / 2;
}

#endif
