/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions show: what a session is and where it stands. The JSON form holds the members that
 * lists have, the totals, and the snapshot shape that the files store writes (id, …, run{…}, recovery{…}).
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/next_command.h"
#include "cli/remote.h"
#include "cli/session_view.h"
#include "engine/session_detail.h"

struct view {
    struct cli *cli;
    struct arena *arena;
};

static void show_json(void *arg, const struct session_detail *detail)
{
    out_shape(&((const struct view *)arg)->cli->out, &shape_session_detail, detail);
}

static void field_time(struct out *out, const char *name, int64_t ms)
{
    char text[TIME_PEOPLE_SIZE], ago[AGO_SIZE], line[TIME_PEOPLE_SIZE + AGO_SIZE + 4];

    snprintf(line, sizeof(line), "%s (%s)", time_people(text, ms), time_ago(ago, ms));
    out_field(out, name, line);
}

static void field_usage(struct out *out, const struct view *v, const struct tide_usage *u)
{
    const char *cost = "";

    if (u->cost_nano > 0) /* else there are no prices: nothing is known, which is not nothing */
        cost = arena_printf(v->arena, ", cost %" PRId64 ".%06" PRId64, u->cost_nano / 1000000000,
                            u->cost_nano % 1000000000 / 1000);
    if (u->calls > 0)
        out_field(out, "usage",
                  arena_printf(
                      v->arena, "%" PRId64 " call%s, %" PRId64 " tokens in (%" PRId64 " cached), %" PRId64 " out%s",
                      u->calls, u->calls == 1 ? "" : "s", u->input_tokens, u->cached_tokens, u->output_tokens, cost));
}

static void fields_standing(struct out *out, const struct view *v, const struct tide_session_info *info)
{
    const char *const *offered = next_commands(v->arena, info->next);
    char status[STATUS_SIZE];

    outf(out, "%s%-12s%s ", color_code(out, COLOR_DIM), "status", color_code(out, COLOR_NONE));
    out_colored(out, session_color(info), session_status(status, info));
    outf(out, "\n");
    out_field(out, "why", info->why);
    for (size_t i = 0; offered[i]; i++)
        out_field_command(out, i == 0 ? "next" : "", offered[i]);
    out_field(out, "held by", info->holder);
    out_field(out, "error", info->error_message);
    out_field(out, "failed at", info->failed_at_node);
    if (info->parent_id)
        out_field(out, "fork of", arena_printf(v->arena, "%s at %" PRId64, info->parent_id, info->parent_seq));
    out_field(out, "events", arena_printf(v->arena, "%" PRId64, info->last_seq));
}

static void show_text(void *arg, const struct session_detail *detail)
{
    const struct tide_session_info *info = &detail->row.info;
    struct view *v = arg;
    struct out *out = &v->cli->out;
    struct json *provider = NULL;
    struct str type, model;

    if (!detail->provider.len || json_parse(v->arena, detail->provider, NULL, &provider, NULL, NULL))
        provider = NULL;
    type = json_get_text(v->arena, provider, STR("type"));
    model = json_get_text(v->arena, provider, STR("model"));
    out_field(out, "session", info->id);
    out_field(out, "title", info->title);
    out_field(out, "kind", info->kind ? tide_session_kind_name(info->kind) : NULL);
    fields_standing(out, v, info);
    out_field(out, "checkpoints",
              arena_printf(v->arena, "%" PRId64 "%s%s", detail->total_checkpoints,
                           info->resume_from_checkpoint_id ? ", resumes from " : "",
                           info->resume_from_checkpoint_id ? info->resume_from_checkpoint_id : ""));
    field_usage(out, v, &detail->row.info.usage);
    out_field(out, "agent", info->agent);
    out_field(out, "agent id", info->agent_id);
    out_field(out, "task", info->task_id);
    if (type.len || model.len)
        out_field(
            out, "provider",
            arena_printf(v->arena, "%.*s%s%.*s", STR_ARG(type), type.len && model.len ? ", " : "", STR_ARG(model)));
    out_field(out, "directory", info->working_dir);
    field_time(out, "created", info->created_ms);
    field_time(out, "updated", info->updated_ms);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct view v = {.cli = cli, .arena = &arena};

    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err))
        return err->code;
    return session_show_detail(session, next_command, cli->out.json ? show_json : show_text, &v, err);
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    struct session_detail detail = {.row.command = next_command};
    struct view v = {.cli = cli, .arena = remote_arena(cli->remote)};
    struct json *dir = NULL;

    remote_begin(cli->remote, "GET", "sessions", args_operand(&cli->args, 0));
    if (remote_read(cli->remote, REMOTE_SOON, &shape_session_detail, &detail, err))
        return err->code;
    if (detail.working_dir.len && !json_parse(v.arena, detail.working_dir, NULL, &dir, NULL, NULL) &&
        dir->type == JSON_STRING)
        detail.row.info.working_dir = arena_dup(v.arena, json_text(v.arena, dir)).ptr;
    (cli->out.json ? show_json : show_text)(&v, &detail);
    return TIDE_OK;
}

const struct command cmd_sessions_show = {
    .group = "sessions",
    .name = "show",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .help = "show a session: its status, the reason, and which process holds it",
};
