/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark set, get and checkpoint, inside `tidemark exec`: the session's memory, and marks in its log. */
#include "cli/cli.h"
#include "cli/signal_pipe.h"
#include "program/run_client.h"

#define VALUE_MAX ((size_t)16 << 20)

static void linkp(struct run_client *l)
{
    run_client_close(l);
}

/* ---- set ---- */

/* KEY=TEXT or KEY:=JSON, cut into the key and the value as JSON. */
static enum tide_code split(const char *word, struct str *ret_key, struct buf *ret_json, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *equals = strchr(word, '=');
    bool is_json = equals && equals > word && equals[-1] == ':';
    struct json *value = NULL;

    if (!equals || equals - is_json == word)
        return tide_fail(err, TIDE_INVALID, "set: '%.60s' is not KEY=TEXT or KEY:=JSON", word);
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
    AUTO(linkp) struct run_client l;
    struct reply reply;
    struct str key;

    signals_end_us();
    if (run_client_open(&l, "set", err) || split(args_operand(&cli->args, 0), &key, &value, err))
        return err->code;
    run_client_begin(&l, "set");
    json_out_kstr(&l.o, STR("key"), key);
    return run_client_call(&l, buf_view(&value), &reply, err) ? tide_wrap(err, "set") : TIDE_OK;
}

const struct command cmd_set = {
    .name = "set",
    .run = run_set,
    .operands = {{"KEY=TEXT|KEY:=JSON", VALUE_TEXT, 0}},
    .help = "inside exec: put a value into the session's memory",
};

/* ---- get ---- */

static enum tide_code run_get(struct cli *cli, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    struct json *v = NULL;
    struct reply reply;

    signals_end_us();
    if (run_client_open(&l, "get", err))
        return err->code;
    run_client_begin(&l, "get");
    json_out_kstr(&l.o, STR("key"), str_from(args_operand(&cli->args, 0)));
    if (run_client_call(&l, STR(""), &reply, err) || json_parse(&l.arena, reply.blob, NULL, &v, NULL, err))
        return tide_wrap(err, "get");
    buf_add_str(&cli->out.text, v->type == JSON_STRING && !cli->out.json ? json_text(&l.arena, v) : reply.blob);
    buf_add_char(&cli->out.text, '\n');
    return TIDE_OK;
}

const struct command cmd_get = {
    .name = "get",
    .run = run_get,
    .operands = {{"KEY", VALUE_TEXT, 0}},
    .help = "inside exec: print a value of the session's memory; exit status 3 when it is not set",
};

/* ---- checkpoint ---- */

static enum tide_code run_checkpoint(struct cli *cli, struct tide_err *err)
{
    AUTO(linkp) struct run_client l;
    const char *type = args_text(&cli->args, "type"), *text = args_operand(&cli->args, 0);
    struct json_out o = out_json(&cli->out);
    struct reply reply;
    struct str id;

    signals_end_us();
    if (run_client_open(&l, "checkpoint", err))
        return err->code;
    run_client_begin(&l, "checkpoint");
    json_out_kstr(&l.o, STR("type"), str_from(type ? type : "safe_point"));
    if (text)
        json_out_kstr(&l.o, STR("description"), str_from(text));
    if (run_client_call(&l, STR(""), &reply, err))
        return tide_wrap(err, "checkpoint");
    id = json_get_text(&l.arena, reply.json, STR("checkpoint_id"));
    if (!cli->out.json) {
        outf(&cli->out, "%.*s\n", STR_ARG(id));
        return TIDE_OK;
    }
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("checkpoint_id"), id);
    json_out_end(&o, '}');
    out_json_end(&cli->out);
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
                                     .help = "what kind of mark (default: safe_point)"},
                                    {.name = NULL}},
    .help = "inside exec: mark the state as of here and print the checkpoint's id",
};
