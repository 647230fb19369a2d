/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark tasks list, show, set: what the sessions of a task are together, and what a person says of it. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/session_view.h"
#include "engine/session_next.h"
#include "engine/shapes.h"
#include "engine/tasks.h"
#include "terminal/progress.h"
#include "terminal/table.h"

#define PAGE 1000 /* that a server gives at once */

/* ---- list ---- */

static const struct opt list_options[] = {
    {.name = "state", .type = VALUE_TEXT, .value = "STATE", .help = "only tasks of this state"},
    {.name = "limit", .type = VALUE_INT, .value = "N", .help = "only the first N; 0: all (default: all)"},
    {.name = "ids", .help = "print only the ids, one per line"},
    {.name = NULL},
};

static const struct table_column columns[] = {
    {.head = "TASK"},
    {.head = "STATE"},
    {.head = "TITLE", .gives = true, .drop = 1},
    {.head = "SESSIONS", .right = true, .drop = 3},
    {.head = "AGE", .drop = 2},
};

struct listing {
    const struct task_list *list;
    const char *state;
    int64_t limit;
};

typedef void task_fn(void *arg, const struct task_row *task);

static void each_task(const struct listing *l, task_fn *fn, void *arg)
{
    int64_t n = 0;

    for (size_t i = 0; i < l->list->n && (!l->limit || n < l->limit); i++)
        if (!l->state || strcmp(l->state, l->list->at[i].state) == 0) {
            fn(arg, &l->list->at[i]);
            n++;
        }
}

static void put_json(void *o, const struct task_row *task)
{
    shape_put(o, &shape_task, task);
}

static void write_tasks(struct json_out *o, void *arg)
{
    each_task(arg, put_json, o);
}

static void put_id(void *out, const struct task_row *task)
{
    out_value(out, task->task_id);
    outf(out, "\n");
}

static void add_row(void *table, const struct task_row *task)
{
    char ago[AGO_SIZE], sessions[24];

    snprintf(sessions, sizeof sessions, "%" PRId64, task->sessions);
    table_cell(table, task->task_id, COLOR_NONE);
    table_cell(table, task->state, task->is_set ? COLOR_BOLD : COLOR_NONE);
    table_cell(table, task->title, COLOR_NONE);
    table_cell(table, sessions, COLOR_NONE);
    table_cell(table, time_ago(ago, task->updated_ms), COLOR_DIM);
}

static void print_list(struct cli *cli, const struct task_list *list)
{
    struct listing l = {list, args_text(&cli->args, "state"), args_int(&cli->args, "limit", 0)};
    struct table table;

    if (cli->out.json) {
        out_shape(&cli->out, &shape_tasks, &(struct tasks_listed){{write_tasks, &l}});
    } else if (args_on(&cli->args, "ids")) {
        each_task(&l, put_id, &cli->out);
    } else {
        table_init(&table, columns, sizeof columns / sizeof columns[0]);
        each_task(&l, add_row, &table);
        if (list->n)
            table_print(&table, &cli->out);
        table_done(&table);
    }
}

static enum tide_code run_list(struct cli *cli, struct tide_err *err)
{
    AUTO(task_list_done) struct task_list list = {.at = NULL};

    if (task_list_read(cli->store, NULL, &list, err))
        return err->code;
    print_list(cli, &list);
    return TIDE_OK;
}

/* A server gives the first 1000 alone. */
static enum tide_code list_remote(struct cli *cli, struct tide_err *err)
{
    AUTO(task_list_done) struct task_list list = {.arena = ARENA_INIT};
    int64_t limit = args_int(&cli->args, "limit", 0);
    const struct json *v, *tasks;

    remote_begin(cli->remote, "GET", "tasks");
    remote_param_int(cli->remote, "limit", PAGE);
    if (remote_ask(cli->remote, REMOTE_SOON, &v, err))
        return err->code;
    tasks = json_get(v, STR("tasks"));
    for (const struct json *one = tasks ? tasks->first : NULL; one; one = one->next) {
        MEM_ROOM(list.at, list.n, list.cap);
        list.at[list.n] = (struct task_row){0};
        if (remote_take(cli->remote, &shape_task, one, &list.at[list.n], err))
            return err->code;
        list.n++;
    }
    if (list.n == PAGE && (!limit || limit > PAGE || args_on(&cli->args, "state")))
        say("a server lists the %d tasks that changed last", PAGE);
    print_list(cli, &list);
    return TIDE_OK;
}

const struct command cmd_tasks_list = {
    .group = "tasks",
    .name = "list",
    .run = run_list,
    .remote = list_remote,
    .need = NEED_READ,
    .options = list_options,
    .help = "list tasks, the one that changed last first",
    .more = "A task exists while a session has its id (--task-id of `tidemark sessions new`, task_id of a request).",
};

/* ---- show ---- */

static void put_task(struct out *out, const struct task_row *task)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char ago[AGO_SIZE];

    out_field(out, "task", task->task_id);
    out_field(out, "state",
              task->is_set
                  ? arena_printf(&a, "%s, as a person set it; from its sessions: %s", task->state, task->derived)
                  : task->state);
    out_field(out, "title", task->title);
    out_field(out, "sessions",
              arena_printf(&a, "%" PRId64 ", %" PRId64 " running, %" PRId64 " waiting", task->sessions, task->running,
                           task->waiting));
    out_field(out, "changed", time_ago(ago, task->updated_ms));
}

static int put_session(void *arg, const struct tide_session_info *info)
{
    struct out *out = arg;
    char status[STATUS_SIZE];

    if (info->kind == TIDE_KIND_TASK)
        return 0;
    outf(out, "\n  %s  %s", info->id, session_status(status, info));
    if (info->title) {
        outf(out, "  ");
        out_value(out, info->title);
    }
    return 0;
}

static enum tide_code show_task(struct cli *cli, const char *task_id, struct tide_err *err)
{
    const struct tide_list_filter filter = {.size = sizeof filter, .task_id = task_id};
    AUTO(task_list_done) struct task_list list = {.at = NULL};
    const struct task_row *task;

    if (task_find(cli->store, task_id, &list, &task, err))
        return err->code;
    if (cli->out.json) {
        out_shape(&cli->out, &shape_task, task);
        return TIDE_OK;
    }
    put_task(&cli->out, task);
    if (!task->sessions)
        return TIDE_OK;
    if (tide_session_list(cli->store, &filter, put_session, &cli->out, err))
        return err->code;
    outf(&cli->out, "\n");
    return TIDE_OK;
}

/* Its sessions are asked for a page at a time. */
static enum tide_code put_sessions_remote(struct cli *cli, const char *task_id, struct tide_err *err)
{
    const char *after = NULL;
    const struct json *v, *list, *next;

    do {
        remote_begin(cli->remote, "GET", "tasks", task_id, "sessions");
        remote_param(cli->remote, "after", after);
        remote_param_int(cli->remote, "limit", PAGE);
        if (remote_ask(cli->remote, REMOTE_SOON, &v, err))
            return err->code;
        list = json_get(v, STR("sessions"));
        for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
            struct session_row row = {0};

            if (remote_take(cli->remote, &shape_session, one, &row, err))
                return err->code;
            (void)put_session(&cli->out, &row.info);
        }
        next = json_get(v, STR("next_cursor"));
        after = next && next->type == JSON_STRING
                    ? arena_dup(remote_arena(cli->remote), json_text(remote_arena(cli->remote), next)).ptr
                    : NULL;
    } while (after);
    outf(&cli->out, "\n");
    return TIDE_OK;
}

static enum tide_code show_remote(struct cli *cli, struct tide_err *err)
{
    const char *task_id = args_operand(&cli->args, 0);
    struct task_row task = {0};

    remote_begin(cli->remote, "GET", "tasks", task_id);
    if (remote_read(cli->remote, REMOTE_SOON, &shape_task, &task, err))
        return err->code;
    if (cli->out.json) {
        out_shape(&cli->out, &shape_task, &task);
        return TIDE_OK;
    }
    put_task(&cli->out, &task);
    return task.sessions ? put_sessions_remote(cli, task_id, err) : TIDE_OK;
}

static enum tide_code run_show(struct cli *cli, struct tide_err *err)
{
    return show_task(cli, args_operand(&cli->args, 0), err);
}

const struct command cmd_tasks_show = {
    .group = "tasks",
    .name = "show",
    .run = run_show,
    .remote = show_remote,
    .need = NEED_READ,
    .operands = {{"TASK", VALUE_TEXT, 0}},
    .help = "show the state of a task, and its sessions",
};

/* ---- set ---- */

static const struct opt set_options[] = {
    {.name = "state",
     .type = VALUE_TEXT,
     .value = "STATE",
     .help = "its state, such as REVIEW: A to Z and _; empty: it follows from the sessions again"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "the text shown in lists"},
    {.name = NULL},
};

static enum tide_code refuse_nothing(struct tide_err *err)
{
    return args_refuse(err, "state", "tasks set: there is nothing to set: give --state or --title");
}

static enum tide_code set_remote(struct cli *cli, struct tide_err *err)
{
    const char *state = args_text(&cli->args, "state"), *title = args_text(&cli->args, "title");
    const struct json *v;

    if (!state && !title)
        return refuse_nothing(err);
    remote_begin(cli->remote, "PUT", "tasks", args_operand(&cli->args, 0));
    remote_body_text(cli->remote, "state", state);
    remote_body_text(cli->remote, "title", title);
    return remote_ask(cli->remote, REMOTE_SOON, &v, err) ? err->code : show_remote(cli, err);
}

static enum tide_code run_set(struct cli *cli, struct tide_err *err)
{
    const char *task_id = args_operand(&cli->args, 0);
    const struct task_change change = {.state = args_text(&cli->args, "state"),
                                       .title = args_text(&cli->args, "title"),
                                       .by = "local",
                                       .expect_seq = -1};

    if (!change.state && !change.title)
        return refuse_nothing(err);
    return task_set(cli->store, task_id, &change, err) ? err->code : show_task(cli, task_id, err);
}

const struct command cmd_tasks_set = {
    .group = "tasks",
    .name = "set",
    .run = run_set,
    .remote = set_remote,
    .need = NEED_CREATE,
    .operands = {{"TASK", VALUE_TEXT, 0}},
    .options = set_options,
    .help = "set the state or the title of a task; make the task if there is none",
    .more =
        "The state that is set applies until it is removed with --state '', whatever the sessions do. It is stored in a\n"
        "session of kind `task`.",
};
