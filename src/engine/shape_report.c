/* SPDX-License-Identifier: Apache-2.0 */
/* The last word of a chat, of a graph, and of a program that waits. */
#include "engine/shapes.h"

#define AT(member) SHAPE_AT(struct wait_shown, member)

static const struct shape shape_wait_shown = {
    .members =
        (const struct shape_member[]){
            {"name", SHAPE_TEXT, AT(name), SHAPE_OPTIONAL, "its name"},
            {"kind", SHAPE_TEXT, AT(kind), 0, "what is waited for"},
            {"question", SHAPE_TEXT, AT(question), SHAPE_OPTIONAL, "what is asked"},
            {"deadline_at", SHAPE_TIME, AT(deadline_ms), SHAPE_OPTIONAL, "when the wait is over without an answer"},
            {"due_at", SHAPE_TIME, AT(due_ms), SHAPE_OPTIONAL, "when a sleep is over"},
            {.name = NULL},
        },
};
#undef AT

#define AT(member) SHAPE_AT(struct parked_report, member)

const struct shape shape_parked = {
    .name = "parked",
    .help = "A program that waits: what exec and resume print then.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session"},
            {"run_id", SHAPE_TEXT, AT(run_id), 0, "the run"},
            {"status", SHAPE_TEXT, AT(status), 0, "its status", .words = "waiting"},
            {"wait", SHAPE_OBJECT, AT(wait), 0, "what it waits for", .of = &shape_wait_shown},
            {"token", SHAPE_TEXT, AT(token), SHAPE_OPTIONAL, "the right to answer; shown only here"},
            {.name = NULL},
        },
};
#undef AT

static bool chat_has_usage(const void *data)
{
    return ((const struct chat_report *)data)->has_usage;
}

#define AT(member) SHAPE_AT(struct chat_report, member)

const struct shape shape_chat = {
    .name = "chat",
    .help = "The end of a chat that is not at a terminal: the answer, or why there is none.",
    .members =
        (const struct shape_member[]){
            {"type", SHAPE_TEXT, AT(type), SHAPE_OPTIONAL, "of the last line of a stream", .words = "result"},
            {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session"},
            {"status", SHAPE_TEXT, AT(status), 0, "how it ended", .words = "completed waiting stopped idle failed"},
            {"durability", SHAPE_TEXT, AT(durability), 0,
             "degraded: something waited in memory while the store could not be written", .words = "full degraded"},
            {"answer", SHAPE_STR, AT(answer), SHAPE_OPTIONAL, "of the model"},
            {"question", SHAPE_TEXT, AT(question), SHAPE_OPTIONAL, "of one that waits: what is asked"},
            {"message", SHAPE_TEXT, AT(message), SHAPE_OPTIONAL, "without an answer: why"},
            {"resume_token", SHAPE_TEXT, AT(resume_token), SHAPE_OPTIONAL, "the right to answer; shown only here"},
            {"turns", SHAPE_INT, AT(turns), 0, "answers of the model in this run"},
            {"usage", SHAPE_OBJECT, AT(usage), SHAPE_OPTIONAL, "of the whole session", .of = &shape_usage,
             .has = chat_has_usage},
            {.name = NULL},
        },
};
#undef AT

static bool graph_has_usage(const void *data)
{
    return ((const struct graph_report *)data)->has_usage;
}

static bool graph_has_wait(const void *data)
{
    return ((const struct graph_report *)data)->has_wait;
}

/* Null where it failed at none. */
static bool graph_has_failed_node(const void *data)
{
    return ((const struct graph_report *)data)->has_failed_node;
}

static void put_failed_node(struct json_out *o, const void *data)
{
    const char *node = ((const struct graph_report *)data)->failed_node;

    if (node)
        json_out_str(o, str_from(node));
    else
        json_out_null(o);
}

#define AT(member) SHAPE_AT(struct graph_report, member)

const struct shape shape_run = {
    .name = "run",
    .help = "The end of a graph: its memory, or why it did not complete.",
    .members =
        (const struct shape_member[]){
            {"type", SHAPE_TEXT, AT(type), SHAPE_OPTIONAL, "of the last line of a stream", .words = "result"},
            {"session_id", SHAPE_TEXT, AT(session_id), 0, "the session"},
            {"run_id", SHAPE_TEXT, AT(run_id), SHAPE_OPTIONAL, "the run"},
            {"status", SHAPE_TEXT, AT(status), 0, "how it ended",
             .words = "completed waiting stopped unsettled failed"},
            {"durability", SHAPE_TEXT, AT(durability), 0,
             "degraded: something waited in memory while the store could not be written", .words = "full degraded"},
            {"wait", SHAPE_OBJECT, AT(wait), SHAPE_OPTIONAL, "of one that waits", .of = &shape_wait_shown,
             .has = graph_has_wait},
            {"token", SHAPE_TEXT, AT(token), SHAPE_OPTIONAL, "the right to answer; shown only here"},
            {"message", SHAPE_TEXT, AT(message), SHAPE_OPTIONAL, "if it did not complete: why"},
            {"failed_node", SHAPE_TEXT, AT(failed_node), SHAPE_NULLABLE | SHAPE_OPTIONAL, "where it failed",
             .has = graph_has_failed_node, .put = put_failed_node},
            {"memory", SHAPE_ANY, AT(memory), 0, "its keys and values"},
            {"nodes", SHAPE_INT, AT(nodes), 0, "completed nodes"},
            {"retries", SHAPE_INT, AT(retries), 0, "attempts after the first"},
            {"failed_nodes", SHAPE_LIST, AT(failed_nodes), 0, "nodes that failed while others continued"},
            {"edges_not_judged", SHAPE_INT, AT(edges_not_judged), 0, "edges whose condition could not be judged"},
            {"checkpoints", SHAPE_INT, AT(checkpoints), 0, "checkpoints that were made"},
            {"ms", SHAPE_INT, AT(ms), 0, "how long it took"},
            {"usage", SHAPE_OBJECT, AT(usage), SHAPE_OPTIONAL, "of the whole session; missing without a model",
             .of = &shape_usage, .has = graph_has_usage},
            {.name = NULL},
        },
};
