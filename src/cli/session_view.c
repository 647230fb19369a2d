/* SPDX-License-Identifier: Apache-2.0 */
/* Members are always there, null when not set, so that programs need not ask first. */
#include "cli/session_view.h"

#include <stdio.h>

#include "cli/next_command.h"

static void put_parent(struct json_out *o, const struct tide_session_info *info)
{
    json_out_key(o, STR("parent"));
    if (!info->parent_id) {
        json_out_null(o);
        return;
    }
    json_out_begin(o, '{');
    json_out_kstr(o, STR("session_id"), str_from(info->parent_id));
    json_out_kint(o, STR("seq"), info->parent_seq);
    json_out_end(o, '}');
}

static void put_next(struct json_out *o, const struct tide_session_info *info)
{
    struct arena a = ARENA_INIT;

    json_out_key(o, STR("next"));
    json_out_begin(o, '[');
    for (const struct tide_next *n = info->next; n && n->action; n++) {
        json_out_begin(o, '{');
        json_out_kstr(o, STR("action"), str_from(tide_action_name(n->action)));
        json_out_kstr(o, STR("session_id"), str_from(n->session_id));
        json_out_kraw(o, STR("arguments"), str_from(n->arguments));
        json_kopt(o, "command", next_command(&a, n));
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    arena_done(&a);
}

static bool is_interrupted(const struct tide_session_info *info)
{
    return info->outcome && strcmp(info->outcome, "interrupted") == 0;
}

/* Where it stands in the words that graphs and task sessions use, and the error that goes with the word there. */
static void put_other_words(struct json_out *o, const struct tide_session_info *info)
{
    json_kopt(o, "graph_status", info->graph_status);
    json_kopt(o, "graph_error", is_interrupted(info) ? "interrupted" : NULL);
    json_kopt(o, "task_state", info->task_state);
    json_kopt(o, "task_error", is_interrupted(info) && !info->is_resumable ? "not_resumable" : NULL);
}

static void put_time(struct json_out *o, const char *key, int64_t unix_ms)
{
    if (unix_ms)
        json_ktime(o, key, unix_ms);
    else
        json_kopt(o, key, NULL);
}

/* Of a damaged one that cannot be read nobody knows. */
static void put_extent(struct json_out *o, const struct tide_session_info *info)
{
    put_time(o, "created_at", info->created_ms);
    put_time(o, "updated_at", info->updated_ms);
    if (session_is_known(info)) {
        json_out_kint(o, STR("first_seq"), info->first_seq);
        json_out_kint(o, STR("last_seq"), info->last_seq);
    } else {
        json_kopt(o, "first_seq", NULL);
        json_kopt(o, "last_seq", NULL);
    }
}

void session_members(struct json_out *o, const struct tide_session_info *info)
{
    json_out_kstr(o, STR("session_id"), str_from(info->id));
    json_kopt(o, "title", info->title);
    json_kopt(o, "agent", info->agent);
    json_kopt(o, "agent_id", info->agent_id);
    json_kopt(o, "task_id", info->task_id);
    json_kopt(o, "status", info->status);
    json_kopt(o, "outcome", info->outcome);
    json_kopt(o, "reason", info->reason);
    json_kopt(o, "why", info->why);
    json_out_kstr(o, STR("durability"), str_from(session_durability(info)));
    put_next(o, info);
    put_other_words(o, info);
    json_kopt(o, "holder", info->holder);
    json_out_kbool(o, STR("is_resumable"), info->is_resumable);
    json_out_kbool(o, STR("needs_resume"), info->needs_resume);
    json_out_kbool(o, STR("trusted"), info->trusted);
    put_extent(o, info);
    put_parent(o, info);
    json_kopt(o, "error", info->error_message);
    json_kopt(o, "failed_at_node", info->failed_at_node);
    json_kopt(o, "resume_from_checkpoint_id", info->resume_from_checkpoint_id);
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
