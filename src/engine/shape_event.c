/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"
#include "engine/streamed_event.h"

/* ---- from what the library says ---- */

bool streamed_event_of_agent(struct streamed_event *ret, const struct tide_agent_event *e)
{
    static const int types[] = {[TIDE_AGENT_TEXT] = STREAMED_TEXT,         [TIDE_AGENT_TEXT_END] = STREAMED_TEXT_END,
                                [TIDE_AGENT_DISCARD] = STREAMED_DISCARD,   [TIDE_AGENT_WAIT] = -1,
                                [TIDE_AGENT_RETRY] = STREAMED_RETRY,       [TIDE_AGENT_TOOL] = STREAMED_TOOL,
                                [TIDE_AGENT_TOOL_END] = STREAMED_TOOL_END, [TIDE_AGENT_USAGE] = STREAMED_USAGE,
                                [TIDE_AGENT_NOTICE] = STREAMED_NOTICE};

    if (types[e->what] < 0)
        return false;
    *ret = (struct streamed_event){
        .type = (enum streamed_type)types[e->what],
        .turn = e->turn,
        .tool = e->tool,
        .call_id = e->call_id,
        .args = str_from(e->args),
        .text = {e->text, e->text_len},
        .failed = e->failed,
        .ms = e->ms,
        .attempt = e->attempt,
        .attempts = e->attempts,
        .delay_ms = e->delay_ms,
        .input_tokens = e->input_tokens,
        .output_tokens = e->output_tokens,
        .cached_tokens = e->cached_tokens,
    };
    return true;
}

bool streamed_event_of_graph(struct streamed_event *ret, const struct tide_graph_event *e)
{
    static const enum streamed_type types[] = {
        [TIDE_GRAPH_NODE_START] = STREAMED_NODE_START,   [TIDE_GRAPH_NODE_END] = STREAMED_NODE_END,
        [TIDE_GRAPH_NODE_FAILED] = STREAMED_NODE_FAILED, [TIDE_GRAPH_EDGE] = STREAMED_EDGE,
        [TIDE_GRAPH_CHECKPOINT] = STREAMED_CHECKPOINT,   [TIDE_GRAPH_NOTICE] = STREAMED_NOTICE,
    };

    if (e->what == TIDE_GRAPH_TICK || (e->what == TIDE_GRAPH_AGENT && !streamed_event_of_agent(ret, e->agent)))
        return false;
    /* What an agent inside of a node does is the agent's event, with the node beside it. */
    if (e->what == TIDE_GRAPH_AGENT && ret->type == STREAMED_NOTICE)
        ret->type = STREAMED_AGENT_NOTICE;
    if (e->what != TIDE_GRAPH_AGENT)
        *ret = (struct streamed_event){
            .type = types[e->what],
            .to = e->to,
            .checkpoint_id = e->checkpoint_id,
            .checkpoint_type = e->checkpoint_type ? tide_checkpoint_type_name(e->checkpoint_type) : NULL,
            .items = e->items,
            .text = {e->text, e->text ? strlen(e->text) : 0},
            .again = e->delay_ms >= 0,
            .ms = e->ms,
            .attempt = e->attempt,
            .attempts = e->attempts,
            .delay_ms = e->delay_ms > 0 ? e->delay_ms : 0,
        };
    ret->node = e->node;
    ret->node_type = e->type;
    ret->visit = e->visit;
    return true;
}

/* ---- as JSON ---- */

static const char *const types[] = {
    [STREAMED_TEXT] = "text",
    [STREAMED_TEXT_END] = "text_end",
    [STREAMED_DISCARD] = "discard",
    [STREAMED_RETRY] = "retry",
    [STREAMED_TOOL] = "tool",
    [STREAMED_TOOL_END] = "tool_end",
    [STREAMED_USAGE] = "usage",
    [STREAMED_AGENT_NOTICE] = "agent_notice",
    [STREAMED_NOTICE] = "notice",
    [STREAMED_START] = "start",
    [STREAMED_NODE_START] = "node_start",
    [STREAMED_NODE_END] = "node_end",
    [STREAMED_NODE_FAILED] = "node_failed",
    [STREAMED_EDGE] = "edge",
    [STREAMED_CHECKPOINT] = "checkpoint",
    NULL,
};

static int type_of(const void *data)
{
    return (int)((const struct streamed_event *)data)->type;
}

#define BIT(type) (1u << STREAMED_##type)
#define AGENT_EVENTS                                                                                                   \
    (BIT(TEXT) | BIT(TEXT_END) | BIT(DISCARD) | BIT(RETRY) | BIT(TOOL) | BIT(TOOL_END) | BIT(USAGE) | BIT(AGENT_NOTICE))
#define NODE_EVENTS (BIT(NODE_START) | BIT(NODE_END) | BIT(NODE_FAILED) | BIT(EDGE) | BIT(CHECKPOINT))
#define TOOL_EVENTS (BIT(TOOL) | BIT(TOOL_END))
#define SAID_EVENTS (BIT(TEXT) | BIT(RETRY) | BIT(TOOL_END) | BIT(AGENT_NOTICE) | BIT(NOTICE) | BIT(NODE_FAILED))
#define AT(member) SHAPE_AT(struct streamed_event, member)

const struct shape shape_event = {
    .name = "event",
    .help = "What happens while a chat or a graph works, one object a line (output stream-json). The last line of the "
            "stream is the report, with type result.",
    .variants = types,
    .variant = type_of,
    .members =
        (const struct shape_member[]){
            {"type", SHAPE_VARIANT, AT(type), 0, "what happens"},
            {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session", .only = BIT(START)},
            {"graph", SHAPE_TEXT, AT(graph), 0, "the id of the graph", .only = BIT(START)},
            {"graph_digest", SHAPE_TEXT, AT(graph_digest), 0, "its digest", .only = BIT(START)},
            {"node", SHAPE_TEXT, AT(node), SHAPE_OPTIONAL, "the node",
             .only = AGENT_EVENTS | NODE_EVENTS | BIT(NOTICE)},
            {"node_type", SHAPE_TEXT, AT(node_type), SHAPE_OPTIONAL, "its type",
             .only = AGENT_EVENTS | NODE_EVENTS | BIT(NOTICE)},
            {"visit", SHAPE_INT, AT(visit), SHAPE_OPTIONAL, "its visit, from 1",
             .only = AGENT_EVENTS | NODE_EVENTS | BIT(NOTICE)},
            {"turn", SHAPE_INT, AT(turn), SHAPE_OPTIONAL, "of the conversation", .only = AGENT_EVENTS | BIT(NOTICE)},
            {"tool", SHAPE_TEXT, AT(tool), 0, "its name", .only = TOOL_EVENTS},
            {"call_id", SHAPE_TEXT, AT(call_id), SHAPE_OPTIONAL, "of the call", .only = TOOL_EVENTS},
            {"args", SHAPE_ANY, AT(args), 0, "of the call", .only = TOOL_EVENTS},
            {"attempt", SHAPE_INT, AT(attempt), 0, "the next one, from 1", .only = BIT(RETRY)},
            {"attempts", SHAPE_INT, AT(attempts), 0, "how many there may be", .only = BIT(RETRY)},
            {"delay_ms", SHAPE_INT, AT(delay_ms), 0, "until then", .only = BIT(RETRY)},
            {"attempt", SHAPE_INT, AT(attempt), SHAPE_OPTIONAL, "of the node, from 1",
             .only = BIT(NODE_START) | BIT(NODE_FAILED)},
            {"attempts", SHAPE_INT, AT(attempts), SHAPE_OPTIONAL, "how many there may be",
             .only = BIT(NODE_START) | BIT(NODE_FAILED)},
            {"items", SHAPE_INT, AT(items), SHAPE_OPTIONAL, "of a map: how many items there are",
             .only = BIT(NODE_START) | BIT(NODE_FAILED)},
            {"again", SHAPE_BOOL, AT(again), 0, "it is tried again", .only = BIT(NODE_FAILED)},
            {"delay_ms", SHAPE_INT, AT(delay_ms), SHAPE_OPTIONAL, "until then", .only = BIT(NODE_FAILED)},
            {"to", SHAPE_TEXT, AT(to), 0, "the node to which the edge leads", .only = BIT(EDGE)},
            {"to", SHAPE_TEXT, AT(to), SHAPE_OPTIONAL, "the node that comes next", .only = NODE_EVENTS & ~BIT(EDGE)},
            {"checkpoint_id", SHAPE_TEXT, AT(checkpoint_id), 0, "its id", .only = BIT(CHECKPOINT)},
            {"checkpoint_type", SHAPE_TEXT, AT(checkpoint_type), 0, "what made it", .only = BIT(CHECKPOINT)},
            {"text", SHAPE_STR, AT(text), 0, "a piece of the answer, the reason, the result or the notice",
             .only = SAID_EVENTS},
            {"text", SHAPE_STR, AT(text), SHAPE_OPTIONAL, "the text",
             .only = (AGENT_EVENTS | NODE_EVENTS) & ~SAID_EVENTS & ~BIT(CHECKPOINT)},
            {"failed", SHAPE_BOOL, AT(failed), 0, "the tool failed", .only = BIT(TOOL_END)},
            {"ms", SHAPE_INT, AT(ms), 0, "how long it took", .only = BIT(TOOL_END) | BIT(NODE_END)},
            {"input_tokens", SHAPE_INT, AT(input_tokens), 0, "tokens that were sent", .only = BIT(USAGE)},
            {"output_tokens", SHAPE_INT, AT(output_tokens), 0, "tokens that were answered", .only = BIT(USAGE)},
            {"cached_tokens", SHAPE_INT, AT(cached_tokens), 0, "of those sent, which the provider had cached",
             .only = BIT(USAGE)},
            {.name = NULL},
        },
};
