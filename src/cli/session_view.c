/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_view.h"

#include <string.h>

#include "cli/next_command.h"

struct session_row session_row(const struct tide_session_info *info)
{
    return (struct session_row){*info, next_command};
}

enum tide_session_kind kind_from(const char *name)
{
    enum tide_session_kind kind = 0;

    while (name && kind <= TIDE_KIND_TASK && strcmp(tide_session_kind_name(kind), name) != 0)
        kind++;
    return kind;
}

enum color session_color(const struct tide_session_info *info)
{
    switch (info->status) {
    case TIDE_STATUS_RUNNING:
        return COLOR_GREEN;
    case TIDE_STATUS_WAITING:
        return COLOR_CYAN;
    case TIDE_STATUS_INTERRUPTED_STARTUP:
    case TIDE_STATUS_INTERRUPTED_WAITING:
        return COLOR_YELLOW;
    case TIDE_STATUS_DAMAGED:
        return COLOR_RED;
    case TIDE_STATUS_IDLE:
        break;
    }
    return info->outcome == TIDE_OUTCOME_FAILED ? COLOR_RED : COLOR_NONE;
}
