/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark set, get and checkpoint, inside `tidemark exec`: the session's memory, and marks in its log. */
#include "cli/cli.h"
#include "cli/signals.h"
#include "engine/run_inside.h"
#include "engine/shapes.h"

#define VALUE_MAX ((size_t)16 << 20)

/* ---- set ---- */

/* KEY=TEXT or KEY:=JSON, cut into the key and the value as JSON. */
static enum tide_code split_word(const char *word, struct str *ret_key, struct buf *ret_json, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *equals = strchr(word, '=');
    bool is_json = equals && equals > word && equals[-1] == ':';
    struct json *value = NULL;

    if (!equals || equals - is_json == word)
        return args_refuse(err, "key", "set: '%.60s' is not KEY=TEXT or KEY:=JSON", word);
    *ret_key = (struct str){word, (size_t)(equals - is_json - word)};
    if (!is_json)
        json_quote(ret_json, str_from(equals + 1));
    else if (json_parse(&a, str_from(equals + 1), NULL, &value, NULL, err))
        return tide_wrap(err, "set: %.*s", (int)(ret_key->len < 60 ? ret_key->len : 60), word);
    else
        json_write(ret_json, value);
    return ret_json->failed ? tide_fail(err, TIDE_TOO_BIG, "set: the value is larger than 16 MiB") : TIDE_OK;
}

static enum tide_code run_set(struct cli *cli, struct tide_err *err)
{
    AUTO(buf_done) struct buf value = BUF_INIT(VALUE_MAX);
    struct str key;

    signals_end_us();
    return split_word(args_operand(&cli->args, 0), &key, &value, err) ? err->code
                                                                      : inside_set(key, buf_view(&value), err);
}

const struct command cmd_set = {
    .name = "set",
    .run = run_set,
    .operands = {{"KEY=TEXT|KEY:=JSON", VALUE_TEXT, 0}},
    .help = "inside exec: set a value in the session's memory",
};

/* ---- get ---- */

static enum tide_code run_get(struct cli *cli, struct tide_err *err)
{
    AUTO(buf_done) struct buf value = BUF_INIT(VALUE_MAX);

    signals_end_us();
    if (inside_get(args_operand(&cli->args, 0), &value, err))
        return err->code;
    out_json_value(&cli->out, buf_view(&value));
    return TIDE_OK;
}

const struct command cmd_get = {
    .name = "get",
    .run = run_get,
    .operands = {{"KEY", VALUE_TEXT, 0}},
    .help = "inside exec: print a value from the session's memory; exit status 3 if it is not set",
};

/* ---- checkpoint ---- */

static enum tide_code run_checkpoint(struct cli *cli, struct tide_err *err)
{
    const char *type = args_text(&cli->args, "type");
    char id[TIDE_ID_SIZE];

    signals_end_us();
    if (inside_checkpoint(type ? type : "safe_point", args_operand(&cli->args, 0), id, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_marked, &(struct command_result){.checkpoint_id = id});
    else
        outf(&cli->out, "%s\n", id);
    return TIDE_OK;
}

const struct command cmd_checkpoint = {
    .name = "checkpoint",
    .run = run_checkpoint,
    .operands = {{"TEXT", VALUE_TEXT, OPERAND_OPTIONAL}},
    .options = (const struct opt[]){{.name = "type",
                                     .type = VALUE_WORD,
                                     .words = "turn node_start node_complete edge_transition loop_iteration safe_point "
                                              "user_checkpoint",
                                     .value = "TYPE",
                                     .help = "the type of the checkpoint (default: safe_point)"},
                                    {.name = NULL}},
    .help = "inside exec: make a checkpoint of the current state and print its id",
};
