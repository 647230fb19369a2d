/* SPDX-License-Identifier: Apache-2.0 */
/* Two versions of a graph, and which of the sessions that are under way could go on with the new one. */
#ifndef ENGINE_GRAPH_VERSIONS_H
#define ENGINE_GRAPH_VERSIONS_H

#include "base/err.h"
#include "base/mem.h"

enum graph_change_kind {
    GRAPH_SAME,       /* byte for byte, and so are the ways that leave it */
    GRAPH_COMPATIBLE, /* changed, and a run that stands there can go on */
    GRAPH_BROKEN,     /* changed so that it cannot */
    GRAPH_REMOVED,
    GRAPH_ADDED,
};

struct graph_change {
    enum graph_change_kind kind;
    const char *word, *node, *why; /* word: "same"; why: "" when the same */
    const char *rename;            /* what one that was removed may be called now; NULL: nothing is like it */
    const struct str *needs;       /* inputs that it, or the one it may be called now, did not have before */
    size_t n_needs;
};

/* Nodes of the old one, then those that were added, ended by node NULL; in the arena. *ret_same: all of it, also what is no node's. */
const struct graph_change *graph_compare(struct arena *a, const tide_graph *before, const tide_graph *after,
                                         bool *ret_same);

enum running_fit {
    LIVE_SAME,       /* it runs this very version */
    LIVE_COMPATIBLE, /* another one, and it can go on with this */
    LIVE_MAPPING,    /* when it is told what a node is called now: `why` is "old=new", or several */
    LIVE_STUCK,      /* it cannot: `why` */
    LIVE_FITS
};
extern const char *const live_words[]; /* "same", "compatible", "mapping", "stuck" */

struct running_session {
    enum tide_status status;
    const char *id, *title, *digest; /* title NULL: none; digest: of the graph that it runs */
    enum running_fit fit;
    const char *node; /* that decides it; NULL: none */
    const char *why;  /* "" when it can go on as it is */
};

/* Not zero: that is enough. */
typedef int live_fn(void *arg, const struct running_session *s);

/*
 * Every session of the store that stands in a graph with the id of `graph` or of `also` and is not over. Reads what lists
 * read, and each version of the graph once: no logs. Judged by the version that the session runs, whatever that is.
 */
enum tide_code running_sessions_look(tide_store *store, const tide_graph *graph, const tide_graph *also, live_fn *fn,
                                     void *arg, struct tide_err *err) MUST_CHECK;

#endif
