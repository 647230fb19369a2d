/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as people keep it: a file of ours, or an agent.json of Hive; and a graph written out for others. */
#ifndef ENGINE_GRAPH_FILE_H
#define ENGINE_GRAPH_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/problem.h"

#define GRAPH_MAX_PROBLEMS 200 /* that are reported; the others are counted */

/*
 * `path` "-" is standard input. `problem` (may be NULL) is called for everything that is wrong or may be a mistake, then it is
 * TIDE_INVALID. ret_hive: whether it was one of Hive; NULL: such a one is refused.
 */
enum tide_code graph_file_read(const char *path, problem_fn *problem, void *arg, bool *ret_hive, tide_graph **ret_graph,
                               struct tide_err *err) MUST_CHECK;

/* The same of one of ours as text. `dir`: where files are that it names; NULL: such a one is refused. */
enum tide_code graph_text_read(struct str text, const char *dir, problem_fn *problem, void *arg, tide_graph **ret_graph,
                               struct tide_err *err) MUST_CHECK;

/* One of Hive as JSON of ours; what cannot be carried over is a warning. */
enum tide_code graph_file_import(const char *path, problem_fn *warn, void *arg, struct buf *ret_json,
                                 struct tide_err *err) MUST_CHECK;

/* The problems that graph_file_read() found, and the graph (NULL: none), into a report of shape_graph_check. `graph` and the arena must live as long. */
struct check_report;
struct arena;
void graph_check_hear(void *report, const struct problem *p);
void graph_check_take(struct arena *a, struct check_report *r, const tide_graph *graph);

enum graph_format { GRAPH_AS_JSON /* as it is stored with a run */, GRAPH_AS_DOT, GRAPH_AS_MERMAID };
void graph_write(const tide_graph *graph, enum graph_format format, struct buf *out);

static inline void graph_freep(tide_graph **graph)
{
    tide_graph_free(*graph);
}

void graph_schema(struct buf *out); /* the JSON Schema of the format */

#endif
