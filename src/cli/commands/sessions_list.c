/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions list: what changed last first, as a table, as JSON, or only the ids (what completion asks for). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "terminal/progress.h"
#include "cli/session_view.h"
#include "terminal/table.h"
#include "engine/session_next.h"

#define PAGE 1000 /* that a server gives at once */
#define SHOWN 50  /* at a terminal, unless --limit says otherwise */

static const struct opt options[] = {
    {.name = "status",
     .type = VALUE_TEXT,
     .value = "STATUS",
     .words = "running waiting idle completed failed cancelled interrupted interrupted_startup interrupted_waiting "
              "damaged active paused",
     .help = "only these: running (also: active), waiting (also: paused), idle, completed, failed, cancelled, "
             "interrupted, interrupted_startup, interrupted_waiting, damaged; or as task sessions call it: RUNNING, "
             "WAITING_FOR_INPUT, COMPLETED, FAILED, CANCELLED, ERROR"},
    {.name = "kind",
     .type = VALUE_WORD,
     .value = "KIND",
     .words = SHAPE_KINDS,
     .help = "only these: log (events alone), program (exec), chat, graph (run), task (tasks set)"},
    {.name = "agent", .type = VALUE_TEXT, .value = "NAME", .help = "only of this agent (name or id)"},
    {.name = "task-id", .type = VALUE_TEXT, .value = "ID", .help = "only of this task"},
    {.name = "since",
     .type = VALUE_SINCE,
     .value = "WHEN",
     .help = "only those that changed since then: 2d (ago), or 2026-02-21T10:00:00Z"},
    {.name = "limit",
     .type = VALUE_INT,
     .value = "N",
     .help = "only the first N; 0: all (default: 50 on a terminal, else all)"},
    {.name = "ids", .help = "print only the ids, one per line; with --json: {\"ids\":[...]}"},
    {.name = NULL},
};

static const struct table_column columns[] = {
    {.head = "ID"},
    {.head = "STATUS", .gives = true},
    {.head = "KIND", .drop = 3},
    {.head = "TITLE", .gives = true, .drop = 1},
    {.head = "AGE", .drop = 2},
    {.head = "EVENTS", .right = true, .drop = 4},
};

/* Of what failed: where, why, and from where it can continue. */
static const struct table_column failed_columns[] = {
    {.head = "ID"},
    {.head = "STATUS", .gives = true},
    {.head = "NODE", .drop = 2},
    {.head = "CHECKPOINT", .drop = 4},
    {.head = "AGE", .drop = 3},
    {.head = "ERROR", .gives = true, .drop = 1},
};

/* Of a server: all of them, because it gives them in another order. */
struct rows {
    struct session_row *at;
    size_t n, cap;
};

struct listing {
    struct cli *cli;
    const struct tide_list_filter *filter;
    const struct rows *rows; /* NULL: of the store */
    size_t most;             /* that are shown; 0: all */
    struct json_out *json;
    struct table table;
    size_t n;
    enum tide_code code; /* of what is listed as JSON */
    struct tide_err *err;
};

static int add_json(void *arg, const struct tide_session_info *info)
{
    const struct listing *l = arg;
    const struct session_row row = session_row(info);

    shape_put(l->json, &shape_session, &row);
    return stop_signal != 0;
}

static int add_id(void *arg, const struct tide_session_info *info)
{
    struct listing *l = arg;

    if (l->cli->out.json)
        json_out_str(l->json, str_from(info->id));
    else
        outf(&l->cli->out, "%s\n", info->id);
    return stop_signal != 0;
}

/* Its status, and what waits for its next run. */
static void status_cell(struct table *t, const struct tide_session_info *info)
{
    char status[STATUS_SIZE + 32];
    size_t n = strlen(session_status(status, info));

    if (info->queued_messages)
        snprintf(status + n, sizeof(status) - n, ", %" PRId64 " queued", info->queued_messages);
    table_cell(t, status, session_color(info));
}

static int add_row(void *arg, const struct tide_session_info *info)
{
    struct listing *l = arg;
    char ago[AGO_SIZE], events[24] = "-";

    if (l->most && l->n == l->most) { /* there are more */
        l->n++;
        return 1;
    }
    if (session_is_known(info))
        snprintf(events, sizeof(events), "%" PRId64, info->last_seq);
    table_cell(&l->table, info->id, COLOR_NONE);
    status_cell(&l->table, info);
    table_cell(&l->table, info->kind ? tide_session_kind_name(info->kind) : "-", COLOR_NONE);
    table_cell(&l->table, info->title ? info->title : info->agent, COLOR_NONE); /* a graph without a name has an id */
    table_cell(&l->table, time_ago(ago, info->updated_ms), COLOR_DIM);
    table_cell(&l->table, events, COLOR_NONE);
    l->n++;
    return stop_signal != 0;
}

static int add_failed(void *arg, const struct tide_session_info *info)
{
    struct listing *l = arg;
    char ago[AGO_SIZE];

    if (l->most && l->n == l->most) { /* there are more */
        l->n++;
        return 1;
    }
    table_cell(&l->table, info->id, COLOR_NONE);
    status_cell(&l->table, info);
    table_cell(&l->table, info->failed_at_node, COLOR_BOLD);
    table_cell(&l->table, info->resume_from_checkpoint_id, COLOR_NONE);
    table_cell(&l->table, time_ago(ago, info->updated_ms), COLOR_DIM);
    table_cell(&l->table, info->error_message ? info->error_message : info->why, COLOR_NONE);
    l->n++;
    return stop_signal != 0;
}

static bool is_of_failed(const char *status)
{
    static const char *const words[] = {"failed", "FAILED", "interrupted", "interrupted_startup", "ERROR"};

    for (size_t i = 0; status && i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], status) == 0)
            return true;
    return false;
}

static enum tide_code each_row(struct listing *l, tide_session_info_fn *fn, struct tide_err *err)
{
    size_t most = l->filter->limit ? (size_t)l->filter->limit : SIZE_MAX;

    if (!l->rows)
        return fn == add_json ? session_list_next(l->cli->store, l->filter, fn, l, err)
                              : tide_session_list(l->cli->store, l->filter, fn, l, err);
    for (size_t i = 0; i < l->rows->n && i < most; i++)
        if (fn(l, &l->rows->at[i].info))
            break;
    return TIDE_OK;
}

static void write_rows(struct json_out *o, void *arg)
{
    struct listing *l = arg;

    l->json = o;
    l->code = each_row(l, add_json, l->err);
}

static void write_ids(struct json_out *o, void *arg)
{
    struct listing *l = arg;

    l->json = o;
    l->code = each_row(l, add_id, l->err);
}

static enum tide_code list_table(struct listing *l, const struct tide_list_filter *filter, struct tide_err *err)
{
    enum tide_code code;

    if (is_of_failed(filter->status))
        table_init(&l->table, failed_columns, sizeof(failed_columns) / sizeof(failed_columns[0]));
    else
        table_init(&l->table, columns, sizeof(columns) / sizeof(columns[0]));
    code = each_row(l, is_of_failed(filter->status) ? add_failed : add_row, err);
    if (!code && l->n > 0)
        table_print(&l->table, &l->cli->out);
    if (!code && l->most && l->n > l->most)
        outf(&l->cli->out, "%sthe %zu that changed last; --limit 0 shows all%s\n", color_code(&l->cli->out, COLOR_DIM),
             l->most, color_code(&l->cli->out, COLOR_NONE));
    if (!code && l->n == 0 && isatty(STDERR_FILENO))
        fputs("no sessions\n", stderr);
    table_done(&l->table);
    return code;
}

static enum tide_code print_list(struct cli *cli, const struct rows *rows, struct tide_err *err)
{
    const struct tide_list_filter filter = {
        .size = sizeof filter,
        .status = args_text(&cli->args, "status"),
        .agent = args_text(&cli->args, "agent"),
        .task_id = args_text(&cli->args, "task-id"),
        .limit = args_int(&cli->args, "limit", 0),
        .kind = kind_from(args_text(&cli->args, "kind")),
        .since_ms = args_int(&cli->args, "since", 0),
        .order = TIDE_LIST_BY_CHANGE,
    };
    bool table = !cli->out.json && !args_on(&cli->args, "ids");
    struct listing l = {.cli = cli,
                        .filter = &filter,
                        .rows = rows,
                        .most = table && cli->out.tty && !args_on(&cli->args, "limit") ? SHOWN : 0};

    if (cli->out.json) {
        l.err = err;
        if (args_on(&cli->args, "ids"))
            out_shape(&cli->out, &shape_ids, &(struct ids_listed){{write_ids, &l}});
        else
            out_shape(&cli->out, &shape_sessions, &(struct sessions_listed){{write_rows, &l}});
        return l.code;
    }
    if (args_on(&cli->args, "ids"))
        return each_row(&l, add_id, err);
    return list_table(&l, &filter, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    return print_list(cli, NULL, err);
}

/* ---- of a server ---- */

/* As a store sorts them: what is damaged comes last; of the same moment the one that was made later comes first. */
static int by_change(const void *a, const void *b)
{
    const struct tide_session_info *x = &((const struct session_row *)a)->info,
                                   *y = &((const struct session_row *)b)->info;
    int64_t x_ms = x->status == TIDE_STATUS_DAMAGED ? 0 : x->updated_ms,
            y_ms = y->status == TIDE_STATUS_DAMAGED ? 0 : y->updated_ms;

    return x_ms != y_ms                     ? (x_ms < y_ms) - (x_ms > y_ms)
           : x->created_ms != y->created_ms ? (x->created_ms < y->created_ms) - (x->created_ms > y->created_ms)
                                            : strcmp(y->id, x->id);
}

static void ask_page(struct cli *cli, const char *after)
{
    const struct args *args = &cli->args;

    remote_begin(cli->remote, "GET", "sessions");
    remote_param(cli->remote, "status", args_text(args, "status"));
    remote_param(cli->remote, "kind", args_text(args, "kind"));
    remote_param(cli->remote, "agent", args_text(args, "agent"));
    remote_param(cli->remote, "task_id", args_text(args, "task-id"));
    if (args_on(args, "since"))
        remote_param_int(cli->remote, "since_ms", args_int(args, "since", 0));
    remote_param(cli->remote, "after", after);
    remote_param_int(cli->remote, "limit", PAGE);
}

static enum tide_code take_page(struct cli *cli, const struct json *page, struct rows *rows, const char **ret_after,
                                struct tide_err *err)
{
    const struct json *list = json_get(page, STR("sessions")), *after = json_get(page, STR("next_cursor"));

    *ret_after = NULL;
    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        MEM_ROOM(rows->at, rows->n, rows->cap);
        rows->at[rows->n] = (struct session_row){0};
        if (remote_take(cli->remote, &shape_session, one, &rows->at[rows->n], err))
            return err->code;
        rows->n++;
    }
    if (after && after->type == JSON_STRING)
        *ret_after = arena_dup(remote_arena(cli->remote), json_text(remote_arena(cli->remote), after)).ptr;
    return TIDE_OK;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    struct rows rows = {NULL, 0, 0};
    const char *after = NULL;
    const struct json *page;
    enum tide_code code = TIDE_OK;

    do {
        ask_page(cli, after);
        code = remote_ask(cli->remote, REMOTE_SOON, &page, err);
        code = code ? code : take_page(cli, page, &rows, &after, err);
    } while (!code && after);
    if (rows.n > 1)
        qsort(rows.at, rows.n, sizeof *rows.at, by_change);
    code = code ? code : print_list(cli, &rows, err);
    free(rows.at);
    return code;
}

const struct command cmd_sessions_list = {
    .group = "sessions",
    .name = "list",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .options = options,
    .help = "list sessions, the one that changed last first",
};
