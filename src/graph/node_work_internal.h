/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a node's work share: the program, and words that hold no secret. */
#ifndef GRAPH_NODE_WORK_INTERNAL_H
#define GRAPH_NODE_WORK_INTERNAL_H

#include "graph/node_work.h"

/* Runs the program; its output, as it is, is added to *ret_json (empty: it printed nothing). False: *ret says why. */
bool node_work_program(const struct node_work *b, struct buf *ret_json, struct node_work_result *ret);

/* As node_work_fail, the secrets masked before anything is cut off. */
bool node_work_fail_masked(const struct node_work *b, struct node_work_result *ret, const char *code, const char *fmt,
                           ...) __attribute__((format(printf, 4, 5)));

bool node_work_is_code(struct str code); /* of an error: letters, digits and '_', not too many */

/*
 * A copy without secrets of a piece that was cut out of something longer: half a secret at its ends goes too. In the arena,
 * NUL-terminated.
 */
const char *node_work_piece(struct arena *a, const struct node_work *b, struct str piece);

/*
 * Looks for values of secrets in an object; members whose key is a secret's own are passed over, and their values are looked
 * for in the others. Both keys are NUL-terminated, in the arena.
 */
bool node_work_leaks(struct arena *a, const struct node_work *b, const struct json *object, const char **ret_secret,
                     const char **ret_where);

#endif
