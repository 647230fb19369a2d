/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph needs from the caller that runs it, looked at before anything runs; and what it is given that nobody reads. */
#ifndef ENGINE_GRAPH_INPUTS_H
#define ENGINE_GRAPH_INPUTS_H

#include "base/json.h"
#include "base/mem.h"

struct graph_missing {
    const char *node, *key;
    bool secret; /* never stored: a person can be asked for it */
};

/*
 * Inputs that nobody sets, each key once, ended by key NULL; in the arena. Of `opt`, memory and checkpoints count;
 * `session`: whose memory counts as well; NULL: none.
 */
enum tide_code graph_missing_inputs(struct arena *a, tide_graph *graph, const struct tide_graph_options *opt,
                                    tide_session *session, const struct graph_missing **ret, struct tide_err *err)
    MUST_CHECK;

/* As an error, TIDE_INVALID; nothing is missing: TIDE_OK. */
enum tide_code graph_refuse_missing(const struct graph_missing *list, struct tide_err *err) MUST_CHECK;

/* A key of `memory` (a JSON object or nothing) that no node reads, and one that may have been meant; NULL: none. */
typedef void graph_unread_fn(void *arg, const char *key, const char *near);
void graph_find_unread(const tide_graph *graph, struct str memory, graph_unread_fn *fn, void *arg);

/*
 * When a run makes checkpoints, over what its graph says: as the settings have it (`file` NULL: where they are), and over that
 * the list of KEY=VALUE that was given with `option`. Empty: as the graph says. Of a resume `settings` is false: they were taken when it began.
 */
enum tide_code graph_take_checkpoints(const char *option, const char *const *given, bool settings, const char *file,
                                      struct buf *ret_json, struct tide_err *err) MUST_CHECK;
extern const char *const graph_no_checkpoints[]; /* what is given for a run that makes none of its own accord */

#endif
