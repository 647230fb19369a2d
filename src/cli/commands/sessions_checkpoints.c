/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions checkpoints, checkpoint, inspect, prune: the marks of a session. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/terminal/table.h"
#include "engine/shapes.h"

#define TYPES "turn node_start node_complete edge_transition loop_iteration safe_point user_checkpoint"

/* ---- checkpoints ---- */

static const struct opt list_options[] = {
    {.name = "type", .type = VALUE_WORD, .words = TYPES, .value = "TYPE", .help = "only of this type"},
    {.name = "clean", .help = "only those with no failure or retry before them"},
    {.name = "all", .help = "also those that a rollback has cut off"},
    {.name = "limit", .type = VALUE_INT, .value = "N", .min = 1, .help = "only the newest N"},
    {.name = "ids", .help = "print only the ids, one per line; with --json: {\"ids\":[...]}"},
    {.name = NULL},
};

static const struct table_column columns[] = {
    {.head = "CHECKPOINT"},
    {.head = "SEQ", .right = true},
    {.head = "TYPE"},
    {.head = "NODE"},
    {.head = "STATE"},
    {.head = "AGE"},
    {.head = "DESCRIPTION", .gives = true},
};

struct listing {
    struct cli *cli;
    tide_session *session;
    const struct tide_checkpoint_filter *filter;
    struct json_out *json;
    struct table table;
    int64_t n;
    char latest[TIDE_ID_SIZE];
    enum tide_code code; /* of what is listed as JSON */
    struct tide_err *err;
};

static int count(void *arg, const struct tide_checkpoint *c)
{
    (void)c;
    ++*(int64_t *)arg;
    return 0;
}

static int add_json(void *arg, const struct tide_checkpoint *c)
{
    struct listing *l = arg;

    shape_put(l->json, &shape_checkpoint, c);
    return 0;
}

static int add_id(void *arg, const struct tide_checkpoint *c)
{
    struct listing *l = arg;

    if (l->cli->out.json)
        json_out_str(l->json, str_from(c->id));
    else
        outf(&l->cli->out, "%s\n", c->id);
    return 0;
}

static int add_row(void *arg, const struct tide_checkpoint *c)
{
    struct listing *l = arg;
    char seq[24], ago[AGO_SIZE];
    const char *state = c->rolled_back        ? "rolled back"
                        : !c->can_resume_from ? "unsettled"
                        : c->is_clean         ? "clean"
                                              : "unclean";

    snprintf(seq, sizeof(seq), "%" PRId64, c->seq);
    table_cell(&l->table, c->id, COLOR_NONE);
    table_cell(&l->table, seq, COLOR_NONE);
    table_cell(&l->table, c->type_word, COLOR_NONE);
    table_cell(&l->table, c->node, COLOR_NONE);
    table_cell(&l->table, state, c->rolled_back || !c->can_resume_from ? COLOR_YELLOW : COLOR_GREEN);
    table_cell(&l->table, time_ago(ago, c->ts_ms), COLOR_DIM);
    table_cell(&l->table, c->description, COLOR_NONE);
    l->n++;
    return 0;
}

static void write_rows(struct json_out *o, void *arg)
{
    struct listing *l = arg;

    l->json = o;
    l->code = tide_checkpoint_list(l->session, l->filter, add_json, l, l->err);
}

static void write_ids(struct json_out *o, void *arg)
{
    struct listing *l = arg;

    l->json = o;
    l->code = tide_checkpoint_list(l->session, l->filter, add_id, l, l->err);
}

static enum tide_code list_json(struct listing *l, struct tide_err *err)
{
    struct checkpoints_listed doc = {.session_id = tide_session_id(l->session), .checkpoints = {write_rows, l}};
    const struct tide_checkpoint *latest = NULL;

    if (tide_checkpoint_load_latest(l->session, &latest, err) && err->code != TIDE_NOT_FOUND)
        return err->code;
    doc.latest_checkpoint_id = latest ? latest->id : NULL;
    if (tide_checkpoint_list(l->session, NULL, count, &doc.total, err))
        return err->code;
    l->err = err;
    out_shape(&l->cli->out, &shape_checkpoints, &doc);
    return l->code;
}

static enum tide_code list_table(struct listing *l, struct tide_err *err)
{
    enum tide_code code;

    table_init(&l->table, columns, sizeof(columns) / sizeof(columns[0]));
    code = tide_checkpoint_list(l->session, l->filter, add_row, l, err);
    if (!code && l->n > 0)
        table_print(&l->table, &l->cli->out);
    if (!code && l->n == 0 && isatty(STDERR_FILENO))
        fputs("no checkpoints\n", stderr);
    table_done(&l->table);
    return code;
}

static enum tide_checkpoint_type type_asked(const struct cli *cli, enum tide_checkpoint_type otherwise)
{
    const char *word = args_text(&cli->args, "type");

    return word ? (enum tide_checkpoint_type)tide_checkpoint_type_from(word) : otherwise;
}

static enum tide_code run_list(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const struct tide_checkpoint_filter filter = {
        .size = sizeof filter,
        .type = type_asked(cli, TIDE_CHECKPOINT_OTHER),
        .clean_only = args_on(&cli->args, "clean"),
        .rolled_back = args_on(&cli->args, "all"),
        .limit = args_int(&cli->args, "limit", 0),
    };
    struct listing l = {.cli = cli, .filter = &filter};

    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err))
        return err->code;
    l.session = session;
    if (args_on(&cli->args, "ids") && cli->out.json) {
        l.err = err;
        out_shape(&cli->out, &shape_ids, &(struct ids_listed){{write_ids, &l}});
        return l.code;
    }
    if (args_on(&cli->args, "ids"))
        return tide_checkpoint_list(session, &filter, add_id, &l, err);
    return cli->out.json ? list_json(&l, err) : list_table(&l, err);
}

const struct command cmd_sessions_checkpoints = {
    .group = "sessions",
    .name = "checkpoints",
    .run = run_list,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = list_options,
    .help = "list the checkpoints of a session, oldest first",
};

/* ---- checkpoint ---- */

static const struct opt save_options[] = {
    {.name = "type", .type = VALUE_WORD, .words = TYPES, .value = "TYPE", .help = "default: user_checkpoint"},
    {.name = "description", .type = VALUE_TEXT, .value = "TEXT", .help = "what people see in lists"},
    {.name = "node", .type = VALUE_TEXT, .value = "NODE", .help = "the node it stands at"},
    {.name = "next-node", .type = VALUE_TEXT, .value = "NODE", .help = "the node that comes next"},
    {.name = NULL},
};

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
    if (!cli->out.json) {
        outf(&cli->out, "%s\n", id);
        return TIDE_OK;
    }
    out_shape(&cli->out, &shape_saved,
              &(struct command_result){
                  .session_id = tide_session_id(session), .checkpoint_id = id, .seq = tide_session_last_seq(session)});
    return TIDE_OK;
}

const struct command cmd_sessions_checkpoint = {
    .group = "sessions",
    .name = "checkpoint",
    .run = run_save,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = save_options,
    .help = "mark the state as of now and print the checkpoint's id",
};

/* ---- prune ---- */

static const struct opt prune_options[] = {
    {.name = "keep", .type = VALUE_INT, .value = "N", .required = true, .help = "how many of the newest stay"},
    {.name = "clean-only", .help = "those that are not clean go as well"},
    {.name = NULL},
};

static enum tide_code run_prune(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    unsigned flags = args_on(&cli->args, "clean-only") ? TIDE_PRUNE_KEEP_CLEAN_ONLY : 0;
    int64_t deleted = 0;

    if (cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) ||
        tide_checkpoint_prune(session, args_int(&cli->args, "keep", 0), flags, &deleted, err))
        return err->code;
    if (!cli->out.json) {
        outf(&cli->out, "%" PRId64 " checkpoint%s deleted\n", deleted, deleted == 1 ? "" : "s");
        return TIDE_OK;
    }
    out_shape(&cli->out, &shape_pruned, &(struct command_result){.session_id = tide_session_id(session), .n = deleted});
    return TIDE_OK;
}

const struct command cmd_sessions_prune = {
    .group = "sessions",
    .name = "prune",
    .run = run_prune,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = prune_options,
    .help = "delete all checkpoints but the newest; the log itself stays whole",
};
