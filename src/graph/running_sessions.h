/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that are under way, and whether they could go on with another version of their graph. */
#ifndef GRAPH_RUNNING_SESSIONS_H
#define GRAPH_RUNNING_SESSIONS_H

#include "graph/spec.h"
#include "session/session.h"

enum running_fit {
    LIVE_SAME,       /* it runs this very version */
    LIVE_COMPATIBLE, /* another one, and it can go on with this */
    LIVE_MAPPING,    /* when it is told what a node is called now: `why` is "old=new", or several */
    LIVE_STUCK,      /* it cannot: `why` */
    LIVE_FITS
};
extern const char *const live_words[]; /* "same", "compatible", "mapping", "stuck" */

struct running_session {
    const char *id, *title, *status, *digest; /* title NULL: none; digest: of the graph that it runs */
    enum running_fit fit;
    const char *node; /* that decides it; NULL: none */
    const char *why;  /* "" when it can go on as it is */
};

/* Not zero: that is enough. */
typedef int live_fn(void *arg, const struct running_session *s);

/*
 * Every session of the store that stands in a graph with the id of `graph` or `also` (may be empty) and is not over. Reads
 * what lists read, and each version of the graph once: no logs. Judged by the version that the session runs, whatever that is.
 */
enum tide_code running_sessions_look(tide_store *store, const struct spec *graph, struct str also, live_fn *fn,
                                     void *arg, struct tide_err *err) MUST_CHECK;

#endif
