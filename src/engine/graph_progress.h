/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a graph is: what is known of each of its nodes, and what is counted of the whole, folded from the events of a run. Nodes
 * of the graph itself have an entry each; of what runs inside them only the number is kept and the last name, so that a map over
 * thousands of items stays one. No lock: the caller that uses it from several threads holds one.
 */
#ifndef ENGINE_GRAPH_PROGRESS_H
#define ENGINE_GRAPH_PROGRESS_H

#include <stdbool.h>

#include "base/map.h"
#include "engine/graph_outline.h"

enum progress_state {
    PROGRESS_WAITING,
    PROGRESS_RUNNING,
    PROGRESS_DONE,
    PROGRESS_FAILED,
    PROGRESS_RETRY,
    PROGRESS_PARKED,
    PROGRESS_NOT_TAKEN
};

struct progress_node {
    const struct outline_node *node;
    enum progress_state state;
    int64_t visit, began_ms, ms, retry_at_ms; /* began: of the monotonic clock; ms: of the last visit */
    int64_t inside, inside_done;              /* nodes or items inside, and how many of them are complete */
    int attempt, attempts;                    /* from 1 */
    bool handled;                             /* it failed, and an edge leads on from there */
    int64_t tokens;
    double cost;
    char note[256]; /* what was said of it last */
};

struct graph_progress {
    struct arena arena;
    const struct graph_outline *outline;
    struct progress_node *nodes; /* by index */
    struct map index;            /* id -> struct progress_node * */
    const struct progress_node *last_done;
    int64_t events, began_ms, completed, retries, checkpoints, tokens, edges_not_judged;
    double cost;
};

/* The graph must outlive it. */
void graph_progress_init(struct graph_progress *p, const tide_graph *graph);
void graph_progress_done(struct graph_progress *p);

/* What the session did before, up to `seq` (0: all of it). One that cannot be read says nothing. */
void graph_progress_before(struct graph_progress *p, tide_session *session, int64_t seq);

void graph_progress_take(struct graph_progress *p, const struct tide_graph_event *event);

/* Nothing runs now: others failed, it was stopped, or it waits. */
void graph_progress_park(struct graph_progress *p);
void graph_progress_end(struct graph_progress *p, enum tide_code code);

/* The node of the graph itself in which this one stands: "review" of "review#2/ask"; NULL: none. */
struct progress_node *graph_progress_find(const struct graph_progress *p, const char *name);
bool graph_progress_is_inside(const char *name);

/* It failed, nobody took care of it, and the others continued. */
bool progress_is_dropped(const struct progress_node *n);

/* Whether this key is an output of a node that ended a way, or, where none did, of the one that ended last: what the graph gives. */
bool graph_progress_gives(const struct graph_progress *p, struct str key);

#endif
