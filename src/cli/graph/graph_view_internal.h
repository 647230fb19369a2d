/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the view of a running graph share. */
#ifndef CLI_GRAPH_GRAPH_VIEW_INTERNAL_H
#define CLI_GRAPH_GRAPH_VIEW_INTERNAL_H

#include <pthread.h>

#include "base/clock.h"
#include "base/map.h"
#include "cli/graph/graph_order.h"
#include "cli/graph/graph_view.h"

enum view_sign { SIGN_WAITING, SIGN_RUNNING, SIGN_DONE, SIGN_FAILED, SIGN_RETRY, SIGN_PARKED, SIGN_NOT_TAKEN };

/* One node of the graph itself; what runs inside it is counted here. */
struct view_row {
    const struct outline_node *node;
    enum view_sign sign;
    int64_t visit, began_ms, ms, retry_at_ms; /* began: of the monotonic clock; ms: of the last visit */
    int64_t inside, inside_done;              /* nodes or items inside, and how many of them are complete */
    int attempt, attempts;                    /* from 1 */
    bool handled;                             /* it failed, and an edge leads on from there */
    int64_t tokens;
    double cost;
    char note[256];
};

#define VIEW_LINES 1024

struct graph_view {
    pthread_mutex_t lock;
    const struct graph_outline *g;
    enum graph_show how;
    bool color, ended;
    bool paused; /* drawn as it stands, and nothing has happened since */
    struct arena arena;
    struct graph_order order;
    struct view_row *rows; /* by the node's index */
    struct map index;      /* id -> struct view_row * */
    const struct view_row *last_done;
    int64_t events, began_ms, nodes, retries, failures, checkpoints, tokens, unjudged;
    double cost;

    /* of the tree */
    int lines, columns; /* on the screen: rows it has, the window's width then */
    unsigned short widths[VIEW_LINES];
    size_t top; /* first row of the window */
    int64_t drawn_ms;
    int frame;
};

/* "0.4 s", "3m 12s" */
#define VIEW_TIME 24
const char *view_time(char out[VIEW_TIME], int64_t ms);
const char *view_tokens(char out[VIEW_TIME], int64_t tokens); /* "812", "12.4k" */

void view_draw(struct graph_view *v, bool last);
void view_erase(struct graph_view *v);
void view_write(int fd, struct str text);

bool view_is_dropped(const struct graph_view *v, size_t node); /* failed, and the others went on without it */
void view_finish(struct graph_view *v, enum tide_code code);   /* the last drawing, and the sum */

/* One event as JSON, one line; and that it begins. */
void view_stream(const struct tide_graph_event *e);
void view_stream_start(const struct graph_view *v, const char *session_id, const char *digest);

#endif
