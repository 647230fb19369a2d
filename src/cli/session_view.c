/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session_view.h"

#include "cli/next_command.h"

struct session_row session_row(const struct tide_session_info *info)
{
    return (struct session_row){*info, next_command};
}

enum color session_color(const struct tide_session_info *info)
{
    static const struct {
        const char *word;
        enum color color;
    } colors[] = {
        {"running", COLOR_GREEN},
        {"waiting", COLOR_CYAN},
        {"interrupted_startup", COLOR_YELLOW},
        {"interrupted_waiting", COLOR_YELLOW},
        {"failed", COLOR_RED},
        {"damaged", COLOR_RED},
    };

    for (size_t i = 0; i < sizeof(colors) / sizeof(colors[0]); i++)
        if ((info->status && strcmp(info->status, colors[i].word) == 0) ||
            (info->outcome && strcmp(info->outcome, colors[i].word) == 0))
            return colors[i].color;
    return COLOR_NONE;
}
