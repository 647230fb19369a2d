/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent does, for the log: with what it works, turns, tool calls, retries, notices. Never what was said. How its run
 * begins and ends is logged with the runs of all kinds (session/).
 */
#include "agent/agent.h"
#include "base/log.h"

void agent_log_begin(const struct tide_agent *a)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;

    log_write(TIDE_LOG_INFO, "agent works", log_text("session", a->id),
              log_text("agent", arena_dup(&arena, info_text(&arena, &a->s->state->info, STR("agent"))).ptr),
              log_text("provider", a->type), log_text("model", a->model));
}

void agent_log_event(const struct tide_agent *a, const struct tide_agent_event *e)
{
    switch (e->what) {
    case TIDE_AGENT_TOOL:
        log_write(TIDE_LOG_DEBUG, "tool call", log_text("session", a->id), log_number("turn", e->turn),
                  log_text("tool", e->tool), log_text("call", e->call_id), log_text("args", e->args));
        break;
    case TIDE_AGENT_TOOL_END:
        log_write(TIDE_LOG_DEBUG, e->failed ? "tool failed" : "tool done", log_text("session", a->id),
                  log_number("turn", e->turn), log_text("tool", e->tool), log_text("call", e->call_id),
                  log_number("ms", e->ms));
        break;
    case TIDE_AGENT_RETRY:
        log_write(TIDE_LOG_WARN, "model call is tried again", log_text("session", a->id),
                  log_number("attempt", e->attempt), log_number("attempts", e->attempts),
                  log_number("delay_ms", e->delay_ms), log_text("why", e->text));
        break;
    case TIDE_AGENT_NOTICE:
        log_write(TIDE_LOG_WARN, e->text, log_text("session", a->id));
        break;
    case TIDE_AGENT_USAGE:
        log_write(TIDE_LOG_DEBUG, "turn", log_text("session", a->id), log_number("turn", e->turn),
                  log_number("input_tokens", e->input_tokens), log_number("output_tokens", e->output_tokens));
        break;
    default:
        break;
    }
}
