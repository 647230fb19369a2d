/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent does, for the log: with what it works, turns, tool calls, retries, notices. Never what was said. How its run
 * begins and ends is logged with the runs of all kinds (session/).
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/agent.h"
#include "base/log.h"

void agent_log_begin(const struct tide_agent *a)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;

    if (!log_enabled(TIDE_LOG_INFO))
        return;
    log_write(TIDE_LOG_INFO, "agent works", "session", a->id, "agent",
              arena_dup(&arena, info_text(&arena, &a->s->state->info, STR("agent"))).ptr, "provider", a->type, "model",
              a->model, NULL);
}

void agent_log_event(const struct tide_agent *a, const struct tide_agent_event *e)
{
    char one[32], two[32];

    switch (e->what) {
    case TIDE_AGENT_TOOL:
        log_write(TIDE_LOG_DEBUG, "tool call", "session", a->id, "tool", e->tool, "call", e->call_id, NULL);
        break;
    case TIDE_AGENT_TOOL_END:
        snprintf(one, sizeof(one), "%" PRId64, e->ms);
        log_write(TIDE_LOG_DEBUG, e->failed ? "tool failed" : "tool done", "session", a->id, "tool", e->tool, "call",
                  e->call_id, "ms", one, NULL);
        break;
    case TIDE_AGENT_RETRY:
        snprintf(one, sizeof(one), "%d of %d", e->attempt, e->attempts);
        snprintf(two, sizeof(two), "%" PRId64, e->delay_ms);
        log_write(TIDE_LOG_WARN, "model call is tried again", "session", a->id, "attempt", one, "delay_ms", two, "why",
                  e->text, NULL);
        break;
    case TIDE_AGENT_NOTICE:
        log_write(TIDE_LOG_WARN, e->text, "session", a->id, NULL);
        break;
    case TIDE_AGENT_USAGE:
        snprintf(one, sizeof(one), "%" PRId64, e->input_tokens);
        snprintf(two, sizeof(two), "%" PRId64, e->output_tokens);
        log_write(TIDE_LOG_DEBUG, "turn", "session", a->id, "input_tokens", one, "output_tokens", two, NULL);
        break;
    default:
        break;
    }
}
