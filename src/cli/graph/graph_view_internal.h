/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the view of a running graph share. */
#ifndef CLI_GRAPH_GRAPH_VIEW_INTERNAL_H
#define CLI_GRAPH_GRAPH_VIEW_INTERNAL_H

#include <pthread.h>

#include "base/clock.h"
#include "cli/graph/graph_order.h"
#include "cli/graph/graph_view.h"
#include "engine/graph_progress.h"

#define VIEW_LINES 1024

struct graph_view {
    pthread_mutex_t lock;
    struct graph_progress progress;
    enum graph_show how;
    bool color, ended;
    bool paused; /* drawn as it stands, and nothing has happened since */
    struct graph_order order;

    /* of the tree */
    int lines, columns; /* on the screen: rows it has, the window's width then */
    unsigned short widths[VIEW_LINES];
    size_t top; /* first row of the window */
    int64_t drawn_ms;
    int frame;
};

#define VIEW_TOKENS 24
const char *view_tokens(char out[VIEW_TOKENS], int64_t tokens); /* "812", "12.4k" */

void view_draw(struct graph_view *v, bool last);
void view_erase(struct graph_view *v);
void view_write(int fd, struct str text);

void view_finish(struct graph_view *v, enum tide_code code); /* the last drawing, and the sum */

/* One event as JSON, one line; and that it begins. */
void view_stream(const struct tide_graph_event *e);
void view_stream_start(const struct graph_view *v, const char *session_id, const char *digest);

#endif
