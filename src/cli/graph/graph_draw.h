/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as text for people: one node per row, lanes beside them for the ways between. */
#ifndef CLI_GRAPH_GRAPH_DRAW_H
#define CLI_GRAPH_GRAPH_DRAW_H

#include "terminal/output.h"
#include "engine/graph_outline.h"

/* One to look at, from a file; when something is wrong with it, it is said how to see all of that. */
enum tide_code graph_open_file(const char *file, tide_graph **ret_graph, struct tide_err *err) MUST_CHECK;

/* No line is longer than `columns`. Graphs inside nodes come behind, each with its heading. */
void graph_draw(struct out *out, const tide_graph *graph, int columns);

#endif
