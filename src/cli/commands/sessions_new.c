/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions new: a session, durable before its id is printed. */
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"
#include "engine/shapes.h"

#define FIELDS_MAX ((size_t)16 << 20)

static const struct opt options[] = {
    {.name = "id", .type = VALUE_ID, .value = "ID", .help = "its id (default: a new one that sorts by time)"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "the text shown in lists"},
    {.name = "agent", .type = VALUE_TEXT, .value = "NAME", .help = "name of the agent"},
    {.name = "agent-id", .type = VALUE_TEXT, .value = "ID", .help = "id of the agent"},
    {.name = "task-id", .type = VALUE_TEXT, .value = "ID", .help = "the task it works on"},
    {.name = "working-dir",
     .type = VALUE_DIR,
     .value = "DIR",
     .help = "where it works (default: the current directory)"},
    {.name = "provider", .type = VALUE_TEXT, .value = "TYPE", .help = "provider of the model, such as anthropic"},
    {.name = "model", .type = VALUE_TEXT, .value = "NAME", .help = "the model"},
    {.name = "metadata", .type = VALUE_OBJECT, .value = "JSON", .help = "anything else, as a JSON object"},
    {.name = NULL},
};

static enum tide_code put_working_dir(struct cli *cli, struct json_out *o, struct tide_err *err)
{
    AUTO(mem_freep) char *current = getcwd(NULL, 0);
    const char *given = args_text(&cli->args, "working-dir"), *dir = given ? given : current;

    if (!dir)
        return tide_fail_errno(err, errno, "find the current directory");
    if (!str_is_utf8(str_from(dir), NULL))
        return args_refuse(err, "working-dir", "%s is not valid UTF-8: give --working-dir DIR",
                           given ? "--working-dir" : "the name of the current directory");
    json_out_kstr(o, STR("working_dir"), str_from(dir));
    return TIDE_OK;
}

static void put_provider(struct cli *cli, struct json_out *o)
{
    const char *type = args_text(&cli->args, "provider"), *model = args_text(&cli->args, "model");

    if (!type && !model)
        return;
    json_out_key(o, STR("provider"));
    json_out_begin(o, '{');
    if (type)
        json_out_kstr(o, STR("type"), str_from(type));
    if (model)
        json_out_kstr(o, STR("model"), str_from(model));
    json_out_end(o, '}');
}

/* The fields of session.created, in the order people read them. */
static enum tide_code put_fields(struct cli *cli, struct buf *ret_fields, struct tide_err *err)
{
    static const struct {
        const char *option, *field;
    } texts[] = {{"agent", "agent"}, {"agent-id", "agent_id"}, {"task-id", "task_id"}, {"title", "title"}};
    const char *metadata = args_text(&cli->args, "metadata");
    struct json_out o = json_out_to(ret_fields);
    enum tide_code code;

    json_out_begin(&o, '{');
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = args_text(&cli->args, texts[i].option);

        if (text)
            json_out_kstr(&o, str_from(texts[i].field), str_from(text));
    }
    code = put_working_dir(cli, &o, err);
    put_provider(cli, &o);
    if (metadata)
        json_out_kraw(&o, STR("metadata"), str_from(metadata));
    json_out_end(&o, '}');
    if (!code && ret_fields->failed)
        code = tide_fail(err, TIDE_TOO_BIG, "the fields of the session are larger than 16 MiB");
    return code;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(FIELDS_MAX);
    AUTO(session_closep) tide_session *session = NULL;

    /* Everything that can be wrong is looked at before the store is opened: a bad call makes no store. */
    if (put_fields(cli, &fields, err) || cli_store_open(cli, NEED_CREATE, 0, err) ||
        tide_session_create(cli->store, args_text(&cli->args, "id"), buf_cstr(&fields), &session, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_created, &(struct command_result){.session_id = tide_session_id(session)});
    else
        outf(&cli->out, "%s\n", tide_session_id(session));
    return TIDE_OK;
}

const struct command cmd_sessions_new = {
    .group = "sessions",
    .name = "new",
    .run = run,
    .opens_store = true,
    .options = options,
    .help = "create a session and print its id; create the store if there is none",
};
