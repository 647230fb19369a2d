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

const char *session_status(char buf[STATUS_SIZE], const struct tide_session_info *info)
{
    bool ended = info->status == TIDE_STATUS_IDLE && info->outcome != TIDE_OUTCOME_NONE;

    snprintf(buf, STATUS_SIZE, "%s%s%s%s", tide_status_name(info->status), ended ? ", " : "",
             ended ? tide_outcome_name(info->outcome) : "", info->degraded_events ? ", degraded" : "");
    return buf;
}
