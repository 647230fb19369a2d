/* SPDX-License-Identifier: Apache-2.0 */
/* Two versions of a graph, and which of the sessions that are under way could continue with the new one. */
#ifndef ENGINE_GRAPH_VERSIONS_H
#define ENGINE_GRAPH_VERSIONS_H

#include "base/err.h"
#include "base/mem.h"

enum graph_change_kind {
    GRAPH_SAME,       /* byte for byte, and so are the ways that leave it */
    GRAPH_COMPATIBLE, /* changed, and a run that stands there can continue */
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

enum running_fit {
    LIVE_SAME,       /* it runs this very version */
    LIVE_COMPATIBLE, /* another one, and it can continue with this */
    LIVE_MAPPING,    /* with `arguments`: when the new name of a node is given */
    LIVE_STUCK,      /* it cannot: `why` */
    LIVE_FITS
};
extern const char *const live_words[]; /* "same", "compatible", "mapping", "stuck" */

struct running_session {
    enum tide_status status;
    const char *id, *title, *digest; /* title NULL: none; digest: of the graph that it runs */
    enum running_fit fit;
    const char *node;      /* that decides it; NULL: none */
    const char *why;       /* "" when it can continue as it is */
    const char *arguments; /* LIVE_MAPPING: of a resume, JSON object; else NULL */
};

struct graph_diff {
    bool same;                          /* all of it, also what is no node's */
    const struct graph_change *changes; /* nodes of the old one, then those that were added */
    size_t n_changes;
    bool live; /* sessions were looked at: */
    struct running_session *sessions;
    size_t n_sessions, cap_sessions;
    int64_t fits[LIVE_FITS]; /* how many of each */
    struct arena arena;      /* of all texts */
};

/* graph_diff_done() it; the graphs must live as long. */
void graph_diff(struct graph_diff *ret, const tide_graph *before, const tide_graph *after);
void graph_diff_done(struct graph_diff *d);

/*
 * Every session of the store that stands in a graph with the id of one of both and is not over. Reads what lists read, and
 * each version of the graph once: no logs. Judged by the version that the session runs, whatever that is.
 */
enum tide_code graph_diff_sessions(struct graph_diff *d, tide_store *store, const tide_graph *before,
                                   const tide_graph *after, struct tide_err *err) MUST_CHECK;

#endif
