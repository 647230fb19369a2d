/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions delete: whole sessions, for good. One by its whole id, since a prefix may come to mean another one; or all
 * that filters mean, which is asked about first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/yes_no.h"
#include "cli/cli.h"
#include "cli/session_view.h"
#include "terminal/table.h"
#include "engine/shapes.h"

static const struct opt options[] = {
    {.name = "older-than",
     .type = VALUE_SINCE,
     .value = "WHEN",
     .help = "those whose last change was before that: 30d (ago), or 2026-02-21T10:00:00Z"},
    {.name = "status",
     .type = VALUE_TEXT,
     .value = "STATUS",
     .words = "completed failed cancelled idle interrupted waiting damaged",
     .help = "those with this status, as `sessions list` takes it (default: those that have ended; none that runs, "
             "waits, is interrupted or damaged, or has a message in its queue)"},
    {.name = "kind",
     .type = VALUE_WORD,
     .value = "KIND",
     .words = SHAPE_KINDS,
     .help = "those of this kind: log, program, chat, graph, task"},
    {.name = "agent", .type = VALUE_TEXT, .value = "NAME", .help = "those of this agent (name or id)"},
    {.name = "task-id", .type = VALUE_TEXT, .value = "ID", .help = "those of this task"},
    {.name = "dry-run", .help = "only show which ones would be deleted"},
    {.name = "yes", .letter = 'y', .help = "do not ask"},
    {.name = NULL},
};

static const char *const filters[] = {"older-than", "status", "kind", "agent", "task-id"};

static bool has_filter(const struct args *args)
{
    bool has = false;

    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        has |= args_on(args, filters[i]);
    return has;
}

static enum tide_code delete_one(struct cli *cli, const char *id, struct tide_err *err)
{
    enum tide_code code = tide_session_delete(cli->store, id, err);

    if (code == TIDE_NOT_FOUND)
        return tide_wrap(err, "a prefix is not enough to delete");
    if (code)
        return code;
    if (!cli->out.json) {
        outf(&cli->out, "deleted %s\n", id);
        return TIDE_OK;
    }
    out_shape(&cli->out, &shape_deleted, &(struct command_result){.session_id = id});
    return TIDE_OK;
}

static void print_found(struct out *out, const struct housekeeping *h, bool done)
{
    static const struct table_column columns[] = {{.head = "ID"},
                                                  {.head = "STATUS", .gives = true},
                                                  {.head = "TITLE", .gives = true, .drop = 2},
                                                  {.head = "AGE", .drop = 1},
                                                  {.head = ""}};
    struct table t;

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]) - !done);
    for (size_t i = 0; i < h->n; i++) {
        const struct housekeeping_found *f = &h->at[i];
        char ago[AGO_SIZE];

        table_cell(&t, f->id, COLOR_NONE);
        table_cell(&t, f->status, COLOR_NONE);
        table_cell(&t, f->title, COLOR_NONE);
        table_cell(&t, time_ago(ago, f->updated_ms), COLOR_DIM);
        if (done)
            table_cell(&t, f->deleted ? "deleted" : f->kept.msg, f->deleted ? COLOR_NONE : COLOR_YELLOW);
    }
    if (h->n)
        table_print(&t, out);
    table_done(&t);
}

/* False: the person says no. */
static enum tide_code ask_person(struct cli *cli, const struct housekeeping *h, bool *ret_yes, struct tide_err *err)
{
    struct out people;
    char line[64];

    *ret_yes = args_on(&cli->args, "yes");
    if (*ret_yes)
        return TIDE_OK;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return args_refuse(err, "yes",
                           "sessions delete: %zu session%s would be deleted permanently, and there is no terminal to "
                           "ask at: give --yes, or check with --dry-run",
                           h->n, h->n == 1 ? "" : "s");
    out_init(&people);
    people.tty = true;
    print_found(&people, h, false);
    fwrite(people.text.ptr, 1, people.text.len, stderr);
    out_done(&people);
    fprintf(stderr, "Delete %zu session%s permanently? [y/N] ", h->n, h->n == 1 ? "" : "s");
    *ret_yes = fgets(line, sizeof(line), stdin) && yes_no_word(str_from(line)) == YES_NO_YES;
    return TIDE_OK;
}

static void report_deleted(struct cli *cli, const struct housekeeping *h, bool dry_run)
{
    size_t deleted = 0;

    for (size_t i = 0; i < h->n; i++)
        deleted += h->at[i].deleted;
    if (cli->out.json) {
        out_shape(&cli->out, &shape_deletion,
                  &(struct deletion_report){.dry_run = dry_run, .deleted = deleted, .found = h->at, .n = h->n});
        return;
    }
    print_found(&cli->out, h, !dry_run);
    if (dry_run)
        outf(&cli->out, "%zu session%s would be deleted\n", h->n, h->n == 1 ? "" : "s");
    else
        outf(&cli->out, "%zu deleted%s\n", deleted, deleted < h->n ? "; the others were kept" : "");
}

static enum tide_code delete_found(struct cli *cli, struct housekeeping *h, struct tide_err *err)
{
    const struct args *args = &cli->args;
    const struct housekeeping_filter filter = {.status = args_text(args, "status"),
                                               .agent = args_text(args, "agent"),
                                               .task_id = args_text(args, "task-id"),
                                               .kind = kind_from(args_text(args, "kind")),
                                               .until_ms = args_int(args, "older-than", 0)};
    bool dry_run = args_on(args, "dry-run"), yes = false;
    struct tide_err later;
    enum tide_code code = housekeeping_find(cli->store, &filter, h, err);

    if (code)
        return code;
    if (h->n && !dry_run) {
        if (ask_person(cli, h, &yes, err))
            return err->code;
        if (!yes)
            return tide_fail(err, TIDE_CANCELLED, "nothing was deleted");
        code = housekeeping_delete(cli->store, h, err);
    }
    report_deleted(cli, h, dry_run);
    if (code && out_flush(&cli->out, &later)) /* what is gone is gone: that is said */
        return code;
    return code;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const char *id = cli->args.n_operands ? args_operand(&cli->args, 0) : NULL;
    struct housekeeping h = {0};
    enum tide_code code;

    if (id && has_filter(&cli->args))
        return args_refuse(err, "id", "sessions delete: give an ID or filters, not both");
    if (id && args_on(&cli->args, "dry-run"))
        return args_refuse(err, "dry-run", "sessions delete: --dry-run goes with filters");
    if (!id && !has_filter(&cli->args))
        return args_refuse(err, "id", "sessions delete: ID is missing; or give filters, as --older-than 30d");
    if (cli_store_open(cli, args_on(&cli->args, "dry-run") ? NEED_READ : NEED_WRITE, 0, err))
        return err->code;
    if (id)
        return delete_one(cli, id, err);
    code = delete_found(cli, &h, err);
    housekeeping_done(&h);
    return code;
}

const struct command cmd_sessions_delete = {
    .group = "sessions",
    .name = "delete",
    .run = run,
    .opens_store = true,
    .operands = {{"ID", VALUE_SESSION, OPERAND_OPTIONAL}},
    .options = options,
    .help = "delete a session permanently, or all that match filters; refused while forks depend on it",
    .more = "ID must be the whole id: a prefix is not enough to delete. With filters the command asks first; without "
            "a terminal\n"
            "it needs --yes. Sessions that change meanwhile, run, or have forks that stay are kept and reported.",
};
