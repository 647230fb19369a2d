/* SPDX-License-Identifier: Apache-2.0 */
/* What a running graph does, for programs: one JSON object a line on standard output, as it is on disk. */
#include <unistd.h>

#include "cli/graph/graph_view_internal.h"

static void put_line(struct buf *line)
{
    buf_add_char(line, '\n');
    view_write(STDOUT_FILENO, buf_view(line));
}

static void kint(struct json_out *o, const char *key, int64_t n)
{
    if (n)
        json_out_kint(o, str_from(key), n);
}

static void put_agent(struct json_out *o, const struct tide_agent_event *a)
{
    kint(o, "turn", a->turn);
    if (a->tool) {
        json_out_kstr(o, STR("tool"), str_from(a->tool));
        json_out_kstr_opt(o, STR("call_id"), str_from(a->call_id));
        json_out_kraw(o, STR("args"), str_from(a->args));
    }
    if (a->text)
        json_out_kstr(o, STR("text"), (struct str){a->text, a->text_len});
    if (a->what == TIDE_AGENT_TOOL_END) {
        json_out_kbool(o, STR("failed"), a->failed);
        json_out_kint(o, STR("ms"), a->ms);
    }
    kint(o, "attempt", a->attempt);
    kint(o, "attempts", a->attempts);
    kint(o, "delay_ms", a->delay_ms);
    if (a->what == TIDE_AGENT_USAGE) {
        json_out_kint(o, STR("input_tokens"), a->input_tokens);
        json_out_kint(o, STR("output_tokens"), a->output_tokens);
        json_out_kint(o, STR("cached_tokens"), a->cached_tokens);
    }
}

static void put_node(struct json_out *o, const struct tide_graph_event *e)
{
    if (e->type)
        json_out_kstr(o, STR("node_type"), str_from(e->type));
    kint(o, "visit", e->visit);
    if (e->what == TIDE_GRAPH_NODE_START || e->what == TIDE_GRAPH_NODE_FAILED) {
        kint(o, "attempt", e->attempt);
        kint(o, "attempts", e->attempts);
        kint(o, "items", e->items);
    }
    if (e->what == TIDE_GRAPH_NODE_END)
        json_out_kint(o, STR("ms"), e->ms);
    if (e->what == TIDE_GRAPH_NODE_FAILED) {
        json_out_kbool(o, STR("again"), e->delay_ms >= 0);
        kint(o, "delay_ms", e->delay_ms >= 0 ? e->delay_ms : 0);
    }
    if (e->to)
        json_out_kstr(o, STR("to"), str_from(e->to));
    if (e->what == TIDE_GRAPH_CHECKPOINT) {
        json_out_kstr(o, STR("checkpoint_id"), str_from(e->checkpoint_id));
        json_out_kstr(o, STR("checkpoint_type"), str_from(e->checkpoint_type));
    } else if (e->text) {
        json_out_kstr(o, STR("text"), str_from(e->text));
    }
}

void view_stream(const struct tide_graph_event *e)
{
    static const char *const types[] = {"node_start", "node_end", "node_failed", "edge",
                                        "checkpoint", "notice",   NULL,          NULL};
    static const char *const agents[] = {"text", "text_end", "discard", NULL,          "retry",
                                         "tool", "tool_end", "usage",   "agent_notice"};
    AUTO(buf_done) struct buf line = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&line);
    const char *type = e->what == TIDE_GRAPH_AGENT ? agents[e->agent->what] : types[e->what];

    if (!type)
        return;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("type"), str_from(type));
    if (e->node)
        json_out_kstr(&o, STR("node"), str_from(e->node));
    put_node(&o, e);
    if (e->agent)
        put_agent(&o, e->agent);
    json_out_end(&o, '}');
    put_line(&line);
}

void view_stream_start(const struct graph_view *v, const char *session_id, const char *digest)
{
    AUTO(buf_done) struct buf line = BUF_INIT(8192);
    struct json_out o = json_out_to(&line);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("type"), STR("start"));
    json_out_kstr(&o, STR("session_id"), str_from(session_id));
    json_out_kstr(&o, STR("graph"), v->g->id);
    json_out_kstr(&o, STR("graph_digest"), str_from(digest));
    json_out_end(&o, '}');
    put_line(&line);
}
