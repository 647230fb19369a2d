/* SPDX-License-Identifier: Apache-2.0 */
/* What a chat writes into the log, at the levels that a reader of logs expects; never what was said. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "cli/chat/chat.h"

void chat_log_open(const struct chat *c)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct json *info = NULL;

    if (c->quiet || !log_enabled(LOG_INFO) || tide_agent_info(c->core.agent, &text, NULL) ||
        json_parse(&a, (struct str){text.ptr, text.len}, NULL, &info, NULL, NULL))
        return;
    log_write(LOG_INFO, c->core.resumed ? "session goes on" : "session open", "agent",
              c->want->agent ? c->want->agent : "chat", "session", tide_session_id(c->core.session), "provider",
              arena_dup(&a, json_get_text(&a, info, STR("provider"))).ptr, "model",
              arena_dup(&a, json_get_text(&a, info, STR("model"))).ptr, (char *)NULL);
}

void chat_log_end(const struct chat *c, enum tide_code code, const char *why)
{
    const char *id = tide_session_id(c->core.session);
    struct tide_usage u = {0};
    char in[32], out[32];

    if (c->quiet)
        return;
    if (code && code != TIDE_WAITING && code != TIDE_CANCELLED && code != TIDE_NOT_FOUND) {
        log_write(LOG_ERROR, "the run ended by failure", "session", id, "why", why, (char *)NULL);
        return;
    }
    if (tide_session_usage(c->core.session, 0, &u, NULL))
        return;
    snprintf(in, sizeof(in), "%" PRId64, u.input_tokens);
    snprintf(out, sizeof(out), "%" PRId64, u.output_tokens);
    log_write(LOG_INFO, code ? "session parked" : "answered", "session", id, "input_tokens", in, "output_tokens", out,
              (char *)NULL);
}

void chat_log_event(const char *id, const struct tide_agent_event *e)
{
    char numbers[80];

    switch (e->what) {
    case TIDE_AGENT_TOOL:
        log_write(LOG_DEBUG, "tool call", "session", id, "tool", e->tool, "call", e->call_id, (char *)NULL);
        break;
    case TIDE_AGENT_TOOL_END:
        if (e->failed && e->text && strncmp(e->text, "denied", 6) == 0) {
            log_write(LOG_WARN, "tool denied", "session", id, "tool", e->tool, "call", e->call_id, (char *)NULL);
            break;
        }
        snprintf(numbers, sizeof(numbers), "%" PRId64, e->ms);
        log_write(LOG_DEBUG, e->failed ? "tool failed" : "tool done", "session", id, "tool", e->tool, "ms", numbers,
                  (char *)NULL);
        break;
    case TIDE_AGENT_RETRY:
        snprintf(numbers, sizeof(numbers), "attempt %d of %d in %.1f s", e->attempt, e->attempts,
                 (double)e->delay_ms / 1000);
        log_write(LOG_WARN, numbers, "session", id, "why", e->text, (char *)NULL);
        break;
    case TIDE_AGENT_NOTICE:
        log_write(LOG_WARN, e->text, "session", id, (char *)NULL);
        break;
    case TIDE_AGENT_USAGE:
        snprintf(numbers, sizeof(numbers), "%" PRId64 " in, %" PRId64 " out", e->input_tokens, e->output_tokens);
        log_write(LOG_DEBUG, "turn", "session", id, "tokens", numbers, (char *)NULL);
        break;
    default:
        break;
    }
}

void chat_log(const struct chat *c, const struct tide_agent_event *e)
{
    if (!c->quiet)
        chat_log_event(c->core.session ? tide_session_id(c->core.session) : "", e);
}
