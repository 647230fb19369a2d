/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session_words.h"

#include <stdio.h>
#include <string.h>

bool session_is_known(const struct tide_session_info *info)
{
    return info->last_seq > 0 || !info->status || strcmp(info->status, "damaged") != 0;
}

static bool has_outcome(const struct tide_session_info *info)
{
    return info->outcome && *info->outcome && strcmp(info->outcome, "none") != 0;
}

const char *session_durability(const struct tide_session_info *info)
{
    return info->degraded_events ? "degraded" : "full";
}

const char *session_status(char buf[STATUS_SIZE], const struct tide_session_info *info)
{
    bool idle = info->status && strcmp(info->status, "idle") == 0;

    snprintf(buf, STATUS_SIZE, "%s%s%s%s", info->status ? info->status : "", idle && has_outcome(info) ? ", " : "",
             idle && has_outcome(info) ? info->outcome : "", info->degraded_events ? ", degraded" : "");
    return buf;
}
