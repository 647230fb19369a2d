/* SPDX-License-Identifier: Apache-2.0 */
/* What a running graph does, for programs: one JSON object a line on standard output, as it is on disk. */
#include <unistd.h>

#include "cli/graph/graph_view_internal.h"
#include "engine/shapes.h"
#include "engine/streamed_event.h"

static void put_event(const struct streamed_event *event)
{
    AUTO(buf_done) struct buf line = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&line);

    shape_put(&o, &shape_event, event);
    buf_add_char(&line, '\n');
    view_write(STDOUT_FILENO, buf_view(&line));
}

void view_stream(const struct tide_graph_event *e)
{
    struct streamed_event event;

    if (streamed_event_of_graph(&event, e))
        put_event(&event);
}

void view_stream_start(const struct graph_view *v, const char *session_id, const char *digest)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    put_event(&(struct streamed_event){.type = STREAMED_START,
                                       .session_id = session_id,
                                       .graph = arena_dup(&a, v->progress.outline->id).ptr,
                                       .graph_digest = digest});
}
