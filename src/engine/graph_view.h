/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph as it stood at any moment of its session: the graph itself, what is known of each of its nodes and edges, and the way that was taken.
 * Of graphs inside nodes, only the node is shown. What a rollback has cut off is left out.
 */
#ifndef ENGINE_GRAPH_VIEW_H
#define ENGINE_GRAPH_VIEW_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/shape.h"
#include "tidemark.h"

#define GRAPH_VIEW_EVENTS 20000 /* that are read for times, edges and the path: the newest ones */
#define GRAPH_VIEW_PATH 500

enum graph_view_state {
    VIEW_NONE,
    VIEW_READY,
    VIEW_ACTIVE,
    VIEW_WAITING,     /* its run is parked */
    VIEW_INTERRUPTED, /* its run ended while it worked */
    VIEW_COMPLETED,
    VIEW_FAILED,
    VIEW_SKIPPED /* on a way that was not taken, of a run that is complete */
};

struct view_node {
    const char *id, *type;
    enum graph_view_state state;
    int64_t visits, attempts;     /* attempts: of the latest visit, from 1 */
    int64_t started_ms, ended_ms; /* of the latest visit; 0: it has not, or it is not known */
    int64_t ms, seq;              /* -1: not known; of the latest event about it, 0: not known */
    const char *error;            /* of the latest attempt that failed; NULL: none */
};

struct view_edge {
    const char *id, *from, *to; /* id NULL: it has none */
    int64_t taken, last_seq;    /* 0: never */
};

struct view_step {
    const char *node;
    int64_t visit, seq, ts_ms;
};

struct graph_view {
    struct arena arena;
    struct buf spec; /* JSON */
    char session_id[TIDE_ID_SIZE];
    int64_t seq;  /* as of this event */
    bool partial; /* older events were not read: times, edges and the path lack them */
    struct view_node *nodes;
    size_t n_nodes;
    struct view_edge *edges; /* routes of routers as well */
    size_t n_edges;
    struct view_step path[GRAPH_VIEW_PATH]; /* a ring */
    size_t n_path;                          /* in all */
    struct map by_id;                       /* id -> struct view_node * */
};

/* As of `seq`; 0: now. TIDE_NOT_FOUND: no graph had run by then. graph_view_done() it, whatever this returns. */
enum tide_code graph_view_read(tide_session *session, int64_t seq, struct graph_view *ret, struct tide_err *err)
    MUST_CHECK;
void graph_view_done(struct graph_view *v);

extern const struct shape shape_graph_view; /* struct graph_view */

#endif
