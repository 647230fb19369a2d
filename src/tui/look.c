/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/look.h"

#include <stdio.h>

struct look look_of_session(const struct tide_session_info *info)
{
    switch (info->status) {
    case TIDE_STATUS_RUNNING:
        return (struct look){"●", INK_RUNNING};
    case TIDE_STATUS_WAITING:
        return info->wait_kind == TIDE_WAIT_TIMER ? (struct look){"⧗", INK_DIM} : (struct look){"◆", INK_WAITING};
    case TIDE_STATUS_INTERRUPTED_STARTUP:
    case TIDE_STATUS_INTERRUPTED_WAITING:
        return (struct look){"▲", INK_WARN};
    case TIDE_STATUS_DAMAGED:
        return (struct look){"■", INK_BAD};
    case TIDE_STATUS_IDLE:
        break;
    }
    switch (info->outcome) {
    case TIDE_OUTCOME_COMPLETED:
        return (struct look){"✓", INK_GOOD};
    case TIDE_OUTCOME_FAILED:
        return (struct look){"✗", INK_BAD};
    case TIDE_OUTCOME_CANCELLED:
        return (struct look){"–", INK_DIM};
    default:
        return (struct look){"○", INK_DIM};
    }
}

struct look look_of_outcome(const char *word)
{
    static const struct {
        const char *word;
        struct look look;
    } looks[] = {
        {"ran", {"✓", INK_GOOD}},         {"completed", {"✓", INK_GOOD}},    {"ok", {"✓", INK_GOOD}},
        {"answered", {"✓", INK_GOOD}},    {"failed", {"✗", INK_BAD}},        {"unknown", {"▲", INK_WARN}},
        {"interrupted", {"▲", INK_WARN}}, {"cut", {"▲", INK_WARN}},          {"gone", {"▲", INK_WARN}},
        {"waiting", {"◆", INK_WAITING}},  {"waits", {"◆", INK_WAITING}},     {"running", {"●", INK_RUNNING}},
        {"active", {"●", INK_RUNNING}},   {"under way", {"●", INK_RUNNING}}, {"open", {"●", INK_RUNNING}},
        {"ready", {"◇", INK_ACCENT}},     {"skipped", {"–", INK_DIM}},       {"cancelled", {"–", INK_DIM}},
        {"settled", {"✓", INK_GOOD}},     {"done", {"✓", INK_GOOD}},         {"ran anew", {"✓", INK_GOOD}},
        {"slept", {"✓", INK_GOOD}},       {"asleep", {"⧗", INK_DIM}},        {"over", {"–", INK_DIM}},
        {"no_result", {"▲", INK_WARN}},   {"started", {"●", INK_RUNNING}},   {"continued", {"●", INK_RUNNING}},
    };

    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++)
        if (strcmp(looks[i].word, word) == 0)
            return looks[i].look;
    return (struct look){"○", INK_DIM};
}

const char *look_age(char buf[AGE_SIZE], int64_t since_ms, int64_t now_ms)
{
    int64_t s = (now_ms - since_ms) / 1000;

    if (!since_ms)
        return "";
    if (s < 0)
        s = 0;
    if (s < 60)
        snprintf(buf, AGE_SIZE, "%llds", (long long)s);
    else if (s < 3600)
        snprintf(buf, AGE_SIZE, "%lldm", (long long)(s / 60));
    else if (s < 86400)
        snprintf(buf, AGE_SIZE, "%lldh", (long long)(s / 3600));
    else
        snprintf(buf, AGE_SIZE, "%lldd", (long long)(s / 86400 < 9999 ? s / 86400 : 9999));
    return buf;
}

enum act_what act_of(const struct tide_session_info *info)
{
    for (const struct tide_next *n = info->next; n && n->action; n++)
        switch (n->action) {
        case TIDE_ACTION_ANSWER:
            return ACT_ANSWER;
        case TIDE_ACTION_RESUME:
            return info->status == TIDE_STATUS_WAITING && info->wait_kind != TIDE_WAIT_TIMER ? ACT_ANSWER : ACT_RESUME;
        case TIDE_ACTION_PROMPT:
            return ACT_SEND;
        default:
            break;
        }
    return ACT_NOTHING;
}

const char *look_move(const struct tide_session_info *info)
{
    switch (act_of(info)) {
    case ACT_ANSWER:
        return "answer";
    case ACT_RESUME:
        return "resume";
    case ACT_SEND:
        return info->kind == TIDE_KIND_CHAT ? "send" : NULL;
    default:
        return NULL;
    }
}
