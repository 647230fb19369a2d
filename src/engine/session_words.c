/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session_words.h"

#include <stdio.h>
#include <string.h>

bool session_is_known(const struct tide_session_info *info)
{
    return info->last_seq > 0 || info->status != TIDE_STATUS_DAMAGED;
}

const char *session_durability(const struct tide_session_info *info)
{
    return info->degraded_events ? "degraded" : "full";
}

const char *reason_words(const char *reason)
{
    static const struct {
        const char *reason, *words;
    } known[] = {
        {"owner_gone", "its process ended"},
        {"process_restart", "its process ended"},
        {"process_exit", "its process ended"},
        {"shutdown", "stopped"},
        {"store_trouble", "store not writable"},
        {"wait_timeout", "deadline passed"},
        {"timed_out", "timed out"},
        {"token_revoked", "token revoked"},
        {"token_expired", "token expired"},
        {"token_consumed", "token used"},
        {"token_missing", "no token"},
        {"superseded", "replaced by a newer run"},
        {"requested", "on request"},
        {"hook_stop", "by a hook"},
        {"max_turns", "turn limit reached"},
        {"timer", "sleeps"},
        {"tool_result", "tool result"},
    };

    for (size_t i = 0; reason && i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].reason, reason) == 0)
            return known[i].words;
    return reason;
}

const char *cancelled_word(enum tide_cancelled how)
{
    static const char *const words[] = {
        [TIDE_CANCEL_NOTHING] = "nothing",
        [TIDE_CANCEL_DONE] = "done",
        [TIDE_CANCEL_ANSWERED] = "answered",
        [TIDE_CANCEL_FORCED] = "forced",
    };

    return words[how];
}

const char *session_codes(char buf[STATUS_SIZE], const struct tide_session_info *info)
{
    bool ended = info->status == TIDE_STATUS_IDLE && info->outcome != TIDE_OUTCOME_NONE;

    snprintf(buf, STATUS_SIZE, "%s%s%s%s", tide_status_name(info->status), ended ? ", " : "",
             ended ? tide_outcome_name(info->outcome) : "", info->degraded_events ? ", degraded" : "");
    return buf;
}

const char *status_word(enum tide_status status)
{
    bool interrupted = status == TIDE_STATUS_INTERRUPTED_STARTUP || status == TIDE_STATUS_INTERRUPTED_WAITING;

    return interrupted ? tide_outcome_name(TIDE_OUTCOME_INTERRUPTED) : tide_status_name(status);
}

/* The first word is one that lists can be filtered by. */
const char *session_status(char buf[STATUS_SIZE], const struct tide_session_info *info)
{
    bool ended = info->status == TIDE_STATUS_IDLE && info->outcome != TIDE_OUTCOME_NONE,
         stands = info->outcome == TIDE_OUTCOME_INTERRUPTED || info->status == TIDE_STATUS_WAITING;
    const char *word = ended ? tide_outcome_name(info->outcome) : status_word(info->status),
               *why = stands ? reason_words(info->reason) : NULL;
    bool says = why && strlen(why) < STATUS_SIZE / 2 && strcmp(why, word) != 0; /* others' reasons may be sentences */

    snprintf(buf, STATUS_SIZE, "%s%s%s%s%s", word, says ? " (" : "", says ? why : "", says ? ")" : "",
             info->degraded_events ? ", degraded" : "");
    return buf;
}
