/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of Hive (agent.json) as graphs of ours. */
#ifndef HIVE_HIVE_H
#define HIVE_HIVE_H

#include "graph/spec.h"

bool hive_is(struct str text); /* and not a graph of ours */

/* Such a one as JSON of ours; what cannot be carried over is a warning. */
enum tide_code hive_to_graph(struct str text, problem_fn *warn, void *arg, struct buf *ret_json, struct tide_err *err)
    MUST_CHECK;

#endif
