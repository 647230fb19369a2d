/* SPDX-License-Identifier: Apache-2.0 */
/* What moves a session that runs a graph, as it can work. */
#ifndef GRAPH_RESUME_NEXT_H
#define GRAPH_RESUME_NEXT_H

#include <stdbool.h>

#include "base/mem.h"
#include "tidemark.h"

/*
 * What a session offers now, ended by action 0: of one that runs a graph with the values named that it would miss, and
 * without what would be refused. Never NULL; in the arena.
 */
const struct tide_next *graph_next_of(struct arena *a, tide_session *session);

/* Its graph contained a secret, which is not stored: it runs only with the graph given again. */
bool graph_is_withheld(tide_session *session);

#endif
