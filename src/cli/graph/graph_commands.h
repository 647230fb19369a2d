/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that go on with a graph, as they can work. */
#ifndef CLI_GRAPH_GRAPH_COMMANDS_H
#define CLI_GRAPH_GRAPH_COMMANDS_H

#include "base/mem.h"
#include "tidemark.h"

/*
 * What a session offers (`next` of its info, ended by NULL), with the values put in that it would miss and without what
 * would be refused. As it is for sessions that run no graph. Lives in the arena, or is `next`. Not inside of a callback of
 * tide_session_show().
 */
const char *const *graph_next(struct arena *a, tide_session *session, const char *const *next);

/* The same of what the session offers now. Never NULL. */
const char *const *graph_next_of(struct arena *a, tide_session *session);

#endif
