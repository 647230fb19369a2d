/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions checkpoints, checkpoint, inspect, prune: the marks of a session. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "terminal/table.h"
#include "engine/checkpoint_list.h"
#include "engine/shapes.h"

#define PAGE 1000 /* that a server gives at once */
#define TYPES "turn node_start node_complete edge_transition loop_iteration safe_point user_checkpoint"

/* ---- checkpoints ---- */

static const struct opt list_options[] = {
    {.name = "type", .type = VALUE_WORD, .words = TYPES, .value = "TYPE", .help = "only of this type"},
    {.name = "clean", .help = "only those with no failure or retry before them"},
    {.name = "all", .help = "also those that a rollback undid"},
    {.name = "limit", .type = VALUE_INT, .value = "N", .min = 1, .help = "only the newest N"},
    {.name = "ids", .help = "print only the ids, one per line; with --json: {\"ids\":[...]}"},
    {.name = NULL},
};

static const struct table_column columns[] = {
    {.head = "CHECKPOINT"},
    {.head = "SEQ", .right = true},
    {.head = "TYPE"},
    {.head = "NODE", .gives = true},
    {.head = "STATE"},
    {.head = "AGE", .drop = 2},
    {.head = "DESCRIPTION", .gives = true, .drop = 1}, /* type and node mostly say it */
};

static void add_row(struct table *table, const struct tide_checkpoint *c)
{
    char seq[24], ago[AGO_SIZE];
    const char *state = c->rolled_back        ? "rolled back"
                        : !c->can_resume_from ? "unsettled"
                        : c->is_clean         ? "clean"
                                              : "unclean";

    snprintf(seq, sizeof(seq), "%" PRId64, c->seq);
    table_cell(table, c->id, COLOR_NONE);
    table_cell(table, seq, COLOR_NONE);
    table_cell(table, c->type_word, COLOR_NONE);
    table_cell(table, c->node, COLOR_NONE);
    table_cell(table, state, c->rolled_back || !c->can_resume_from ? COLOR_YELLOW : COLOR_GREEN);
    table_cell(table, time_ago(ago, c->ts_ms), COLOR_DIM);
    table_cell(table, c->description, COLOR_NONE);
}

static void write_rows(struct json_out *o, void *arg)
{
    const struct checkpoint_list *l = arg;

    for (size_t i = 0; i < l->n; i++)
        shape_put(o, &shape_checkpoint, &l->at[i]);
}

static void write_ids(struct json_out *o, void *arg)
{
    const struct checkpoint_list *l = arg;

    for (size_t i = 0; i < l->n; i++)
        json_out_str(o, str_from(l->at[i].id));
}

static void print_table(struct out *out, const struct checkpoint_list *l)
{
    struct table table;

    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < l->n; i++)
        add_row(&table, &l->at[i]);
    if (l->n > 0)
        table_print(&table, out);
    else if (isatty(STDERR_FILENO))
        fputs("no checkpoints\n", stderr);
    table_done(&table);
}

static void print_list(struct cli *cli, struct checkpoint_list *l)
{
    const struct checkpoints_listed doc = {.session_id = l->session_id,
                                           .checkpoints = {write_rows, l},
                                           .latest_checkpoint_id = l->latest,
                                           .total = l->total};
    bool ids = args_on(&cli->args, "ids");

    if (ids && cli->out.json)
        out_shape(&cli->out, &shape_ids, &(struct ids_listed){{write_ids, l}});
    else if (cli->out.json)
        out_shape(&cli->out, &shape_checkpoints, &doc);
    else if (!ids)
        print_table(&cli->out, l);
    for (size_t i = 0; i < l->n && ids && !cli->out.json; i++) {
        out_value(&cli->out, l->at[i].id);
        outf(&cli->out, "\n");
    }
}

static enum tide_checkpoint_type type_asked(const struct cli *cli, enum tide_checkpoint_type otherwise)
{
    const char *word = args_text(&cli->args, "type");

    return word ? (enum tide_checkpoint_type)tide_checkpoint_type_from(word) : otherwise;
}

static enum tide_code run_list(struct cli *cli, struct tide_err *err)
{
    AUTO(checkpoint_list_done) struct checkpoint_list list = {.arena = ARENA_INIT};
    const struct tide_checkpoint_filter filter = {
        .size = sizeof filter,
        .type = type_asked(cli, TIDE_CHECKPOINT_OTHER),
        .clean_only = args_on(&cli->args, "clean"),
        .rolled_back = args_on(&cli->args, "all"),
        .limit = args_int(&cli->args, "limit", 0),
    };

    if (checkpoint_list_read(cli->store, args_operand(&cli->args, 0), &filter, &list, err))
        return err->code;
    print_list(cli, &list);
    if (!list.damage.code)
        return TIDE_OK;
    return out_flush(&cli->out, err) ? err->code : tide_err_copy(err, &list.damage); /* what was listed stands */
}

/* ---- of a server ---- */

/* The newest ones before an event (0: of all); how many there are. */
static enum tide_code ask_checkpoints(struct cli *cli, int64_t before_seq, int64_t limit, struct checkpoint_list *l,
                                      const struct json **ret, struct tide_err *err)
{
    struct checkpoints_listed doc = {.total = 0};
    const struct json *v;

    remote_begin(cli->remote, "GET", "sessions", args_operand(&cli->args, 0), "checkpoints");
    remote_param(cli->remote, "type", args_text(&cli->args, "type"));
    remote_param(cli->remote, "clean", args_on(&cli->args, "clean") ? "true" : NULL);
    remote_param(cli->remote, "rolled_back", args_on(&cli->args, "all") ? "true" : NULL);
    if (before_seq)
        remote_param_int(cli->remote, "before_seq", before_seq);
    remote_param_int(cli->remote, "limit", limit);
    if (remote_ask(cli->remote, REMOTE_SOON, &v, err) || remote_take(cli->remote, &shape_checkpoints, v, &doc, err))
        return err->code;
    snprintf(l->session_id, sizeof l->session_id, "%s", doc.session_id ? doc.session_id : "");
    l->latest = doc.latest_checkpoint_id;
    l->total = doc.total;
    *ret = json_get(v, STR("checkpoints"));
    return TIDE_OK;
}

/* A page that ends before those that are there already. */
static enum tide_code take_checkpoints(struct cli *cli, const struct json *list, struct checkpoint_list *l,
                                       struct tide_err *err)
{
    size_t n = list ? list->count : 0, i = 0;

    while (l->n + n > l->cap)
        l->at = mem_room(l->at, &l->cap, sizeof *l->at);
    if (l->n)
        memmove(l->at + n, l->at, l->n * sizeof *l->at);
    for (const struct json *one = list ? list->first : NULL; one; one = one->next, i++) {
        l->at[i] = (struct tide_checkpoint){0};
        if (remote_take(cli->remote, &shape_checkpoint, one, &l->at[i], err))
            return err->code;
    }
    l->n += n;
    return TIDE_OK;
}

static enum tide_code list_remote(struct cli *cli, struct tide_err *err)
{
    AUTO(checkpoint_list_done) struct checkpoint_list l = {.arena = ARENA_INIT};
    int64_t left = args_int(&cli->args, "limit", 0), want = PAGE, before = 0;
    const struct json *list = NULL;

    do {
        want = left && left < PAGE ? left : PAGE;
        if (ask_checkpoints(cli, before, want, &l, &list, err) || take_checkpoints(cli, list, &l, err))
            return err->code;
        before = l.n ? l.at[0].seq : 0;
        left -= left ? want : 0;
    } while (list && list->count == want && (left || !args_on(&cli->args, "limit")));
    print_list(cli, &l);
    return TIDE_OK;
}

const struct command cmd_sessions_checkpoints = {
    .group = "sessions",
    .name = "checkpoints",
    .run = run_list,
    .remote = list_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = list_options,
    .help = "list the checkpoints of a session, oldest first",
};

/* ---- checkpoint ---- */

static const struct opt save_options[] = {
    {.name = "type",
     .type = VALUE_WORD,
     .words = TYPES,
     .value = "TYPE",
     .help = "the type of the checkpoint "
             "(default: user_checkpoint)"},
    {.name = "description", .type = VALUE_TEXT, .value = "TEXT", .help = "the text shown in lists"},
    {.name = "node", .type = VALUE_TEXT, .value = "NODE", .help = "the current node"},
    {.name = "next-node", .type = VALUE_TEXT, .value = "NODE", .help = "the next node"},
    {.name = NULL},
};

static void say_saved(struct out *out, const struct command_result *r)
{
    if (out->json)
        out_shape(out, &shape_saved, r);
    else
        outf(out, "%s\n", r->checkpoint_id);
}

static enum tide_code run_save(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const struct tide_new_checkpoint checkpoint = {
        .size = sizeof checkpoint,
        .type = type_asked(cli, TIDE_CHECKPOINT_USER),
        .node = args_text(&cli->args, "node"),
        .next_node = args_text(&cli->args, "next-node"),
        .description = args_text(&cli->args, "description"),
        .append_flags = TIDE_APPEND_ANY | TIDE_APPEND_RELEASE,
    };
    char id[TIDE_ID_SIZE];

    if (cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) ||
        tide_checkpoint_save(session, &checkpoint, id, err))
        return err->code;
    say_saved(&cli->out, &(struct command_result){.session_id = tide_session_id(session),
                                                  .checkpoint_id = id,
                                                  .seq = tide_session_last_seq(session)});
    return TIDE_OK;
}

static enum tide_code save_remote(struct cli *cli, struct tide_err *err)
{
    static const char *const local[] = {"type", "node", "next-node", NULL};
    struct command_result r = {0};
    struct session_why why;

    if (remote_check_options(cli, local, err) || remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "POST", "sessions", why.row.info.id, "checkpoints");
    remote_body_text(cli->remote, "description", args_text(&cli->args, "description"));
    if (remote_read(cli->remote, REMOTE_SOON, &shape_saved, &r, err))
        return err->code;
    say_saved(&cli->out, &r);
    return TIDE_OK;
}

const struct command cmd_sessions_checkpoint = {
    .group = "sessions",
    .name = "checkpoint",
    .run = run_save,
    .remote = save_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = save_options,
    .help = "make a checkpoint of the current state and print its id",
};

static enum tide_code say_deleted(struct cli *cli, const char *id, int64_t n)
{
    if (cli->out.json)
        out_shape(&cli->out, &shape_pruned, &(struct command_result){.session_id = id, .n = n});
    else
        outf(&cli->out, "%" PRId64 " checkpoint%s deleted\n", n, n == 1 ? "" : "s");
    return TIDE_OK;
}

/* ---- checkpoint delete ---- */

static enum tide_code run_delete(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const char *id = args_operand(&cli->args, 1);

    if (cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) || tide_checkpoint_delete(session, &id, 1, err))
        return err->code;
    return say_deleted(cli, tide_session_id(session), 1);
}

static enum tide_code delete_remote(struct cli *cli, struct tide_err *err)
{
    const struct json *nothing;
    struct session_why why;

    if (remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "DELETE", "sessions", why.row.info.id, "checkpoints", args_operand(&cli->args, 1));
    return remote_ask(cli->remote, REMOTE_SOON, &nothing, err) ? err->code : say_deleted(cli, why.row.info.id, 1);
}

const struct command cmd_sessions_checkpoint_delete = {
    .group = "sessions",
    .name = "checkpoint delete",
    .run = run_delete,
    .remote = delete_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}, {"CHECKPOINT", VALUE_CHECKPOINT, 0}},
    .help = "delete a checkpoint; the log stays complete",
};

/* ---- prune ---- */

#define KEEP 10

static const struct opt prune_options[] = {
    {.name = "keep", .type = VALUE_INT, .value = "N", .help = "keep the newest N (default: 10)"},
    {.name = "clean-only", .help = "also delete those that are not clean"},
    {.name = NULL},
};

static enum tide_code run_prune(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    unsigned flags = args_on(&cli->args, "clean-only") ? TIDE_PRUNE_KEEP_CLEAN_ONLY : 0;
    int64_t deleted = 0;

    if (cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) ||
        tide_checkpoint_prune(session, args_int(&cli->args, "keep", KEEP), flags, &deleted, err))
        return err->code;
    return say_deleted(cli, tide_session_id(session), deleted);
}

static enum tide_code prune_remote(struct cli *cli, struct tide_err *err)
{
    struct command_result r = {0};
    struct session_why why;

    if (remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "POST", "sessions", why.row.info.id, "prune");
    json_out_kint(remote_body(cli->remote), STR("keep"), args_int(&cli->args, "keep", KEEP));
    remote_body_flag(cli->remote, "clean_only", args_on(&cli->args, "clean-only"));
    return remote_read(cli->remote, REMOTE_SOON, &shape_pruned, &r, err) ? err->code
                                                                         : say_deleted(cli, why.row.info.id, r.n);
}

const struct command cmd_sessions_prune = {
    .group = "sessions",
    .name = "prune",
    .run = run_prune,
    .remote = prune_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = prune_options,
    .help = "delete all checkpoints except the newest; the log stays complete",
};
