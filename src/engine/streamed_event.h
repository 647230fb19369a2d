/* SPDX-License-Identifier: Apache-2.0 */
/* What happens while an agent or a graph works, one line each: the events of both in one struct. */
#ifndef ENGINE_STREAMED_EVENT_H
#define ENGINE_STREAMED_EVENT_H

#include "base/str.h"
#include "tidemark.h"

enum streamed_type {
    STREAMED_TEXT,
    STREAMED_TEXT_END,
    STREAMED_DISCARD,
    STREAMED_RETRY,
    STREAMED_TOOL,
    STREAMED_TOOL_END,
    STREAMED_USAGE,
    STREAMED_AGENT_NOTICE,
    STREAMED_NOTICE,
    STREAMED_START,
    STREAMED_NODE_START,
    STREAMED_NODE_END,
    STREAMED_NODE_FAILED,
    STREAMED_EDGE,
    STREAMED_CHECKPOINT,
};

struct streamed_event {
    enum streamed_type type;
    const char *session_id, *graph, *graph_digest; /* of a graph that starts */
    const char *node, *node_type, *to, *checkpoint_id, *checkpoint_type;
    int64_t visit, items;
    int64_t turn;
    const char *tool, *call_id;
    struct str args, text; /* args: JSON */
    bool failed, again;
    int64_t ms, attempt, attempts, delay_ms, input_tokens, output_tokens, cached_tokens;
};

/* False: it is nothing that is streamed. The result points into what is given. */
bool streamed_event_of_agent(struct streamed_event *ret, const struct tide_agent_event *event);
bool streamed_event_of_graph(struct streamed_event *ret, const struct tide_graph_event *event);

#endif
