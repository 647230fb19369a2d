/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run_report.h"

#include "base/clock.h"
#include "engine/session_words.h"

static const char *word_of(enum tide_code code)
{
    switch (code) {
    case TIDE_OK:
        return "completed";
    case TIDE_WAITING:
        return "waiting";
    case TIDE_CANCELLED:
        return "stopped";
    default:
        return "failed";
    }
}

void chat_report_fill(struct chat_report *ret, tide_session *session, enum tide_code code, const char *message)
{
    const struct tide_session_info *info;
    bool waits = code == TIDE_WAITING;

    *ret = (struct chat_report){
        .session_id = tide_session_id(session),
        .status = code == TIDE_NOT_FOUND ? "idle" : word_of(code), /* nothing was left to do */
        .durability = tide_session_get_info(session, &info, NULL) ? "full" : session_durability(info),
        .question = waits ? message : NULL,
        .message = code && !waits ? message : NULL,
    };
    ret->has_usage = tide_session_get_usage(session, 0, &ret->usage, NULL) == TIDE_OK;
}

/* Nodes that failed while others continued, ended by NULL. */
static const char *const *dropped_nodes(struct arena *a, const struct graph_progress *p)
{
    const char **names = arena_zero(a, (p->outline->n_nodes + 1) * sizeof *names);
    size_t n = 0;

    for (size_t i = 0; i < p->outline->n_nodes; i++)
        if (progress_is_dropped(&p->nodes[i]))
            names[n++] = arena_dup(a, p->nodes[i].node->id).ptr;
    return names;
}

void graph_report_fill(struct graph_report *ret, struct arena *a, tide_session *session,
                       const struct tide_session_info *info, const struct graph_progress *p,
                       const struct tide_graph_result *result, enum tide_code code, const char *message)
{
    bool waits = code == TIDE_WAITING;

    *ret = (struct graph_report){
        .session_id = result->session_id,
        .run_id = info->run_id,
        .status = code == TIDE_UNSETTLED ? "unsettled" : word_of(code),
        .durability = session_durability(info),
        .has_wait = waits,
        .wait = {.name = info->wait_name,
                 .kind = info->wait_word ? info->wait_word : "input",
                 .question = info->question,
                 .deadline_ms = info->deadline_ms},
        .message = code && !waits ? message : NULL,
        .has_failed_node = code == TIDE_FAILED || code == TIDE_UNSETTLED,
        .failed_node = info->failed_at_node,
        .memory = {result->memory.ptr, result->memory.len},
        .nodes = p->completed,
        .retries = p->retries,
        .failed_nodes = dropped_nodes(a, p),
        .edges_not_judged = p->edges_not_judged,
        .checkpoints = p->checkpoints,
        .ms = monotonic_ms() - p->began_ms,
    };
    ret->has_usage = !tide_session_get_usage(session, 0, &ret->usage, NULL) && ret->usage.calls;
}
