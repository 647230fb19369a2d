/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions inspect: a checkpoint and the state that it promises. */
#include <inttypes.h>
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "engine/inspection.h"
#include "engine/shapes.h"

static const struct opt options[] = {
    {.name = "memory", .help = "show the memory as well, unless include_full_memory is false"},
    {.name = NULL},
};

static void print_value(struct out *out, const char *key, const char *value)
{
    outf(out, "  ");
    out_colored(out, COLOR_BOLD, key);
    outf(out, " = ");
    out_value(out, value);
    outf(out, "\n");
}

static void print_memory(struct out *out, struct inspection *i, const struct json *memory)
{
    for (const struct json *m = memory ? memory->first : NULL; m; m = m->next) {
        AUTO(buf_done) struct buf value = BUF_INIT((size_t)1 << 30);

        json_write(&value, m);
        print_value(out, arena_dup(&i->arena, json_key_text(&i->arena, m)).ptr, buf_cstr(&value));
    }
}

static void print_outputs(struct out *out, struct inspection *i)
{
    if (!i->outputs.live)
        return;
    out_field(out, "outputs",
              arena_printf(&i->arena, "%zu key%s%s", i->outputs.live, i->outputs.live == 1 ? "" : "s",
                           i->hidden ? "; " INSPECTION_HIDDEN : ""));
    for (struct map_entry *e = i->hidden ? NULL : map_next(&i->outputs, NULL); e; e = map_next(&i->outputs, e))
        print_value(out, e->key, e->value);
}

static void print_path(struct out *out, struct inspection *i)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)1 << 30);
    struct json *path = NULL;

    if (!i->begun.live || json_parse(&i->arena, buf_view(&i->path), NULL, &path, NULL, NULL))
        return;
    for (const struct json *n = path->first; n; n = n->next)
        buf_addf(&text, "%s%.*s", n == path->first ? "" : " → ", STR_ARG(json_text(&i->arena, n)));
    out_field(out, "path", buf_cstr(&text));
}

static void print_metrics(struct out *out, struct inspection *i)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)1 << 20);
    int64_t n;

    for (const struct json *m = i->metrics ? i->metrics->first : NULL; m; m = m->next) {
        struct str key = json_key_text(&i->arena, m);

        if (json_int(m, &n) && n)
            buf_addf(&text, "%s%.*s %" PRId64, text.len ? ", " : "", STR_ARG(key), n);
        else if (m->type == JSON_ARRAY && m->count)
            buf_addf(&text, "%s%.*s %.*s", text.len ? ", " : "", STR_ARG(key), STR_ARG(json_source(m)));
    }
    if (text.len)
        out_field(out, "metrics", buf_cstr(&text));
}

static void print_conversations(struct out *out, struct inspection *i)
{
    const struct json *all = json_get(i->content, STR("conversations"));

    for (const struct json *c = all && i->conversations ? all->first : NULL; c; c = c->next) {
        struct str node = json_key_text(&i->arena, c);

        if (node.len)
            out_field(out, "conversation",
                      arena_printf(&i->arena, "%.*s: %" PRId64 " messages", STR_ARG(node),
                                   json_get_int(c, STR("messages"), 0)));
    }
}

static void print_text(struct out *out, struct inspection *i, bool memory_asked)
{
    const struct tide_checkpoint *c = &i->checkpoint;
    const struct json *memory = json_get(i->content, STR("memory"));
    int64_t keys = memory ? memory->count : json_get_int(i->content, STR("memory_keys"), 0);
    char time[TIME_PEOPLE_SIZE], ago[AGO_SIZE];

    out_field(out, "checkpoint", c->id);
    out_field(out, "session", i->session_id);
    out_field(out, "type", c->type_word);
    out_field(out, "seq", arena_printf(&i->arena, "%" PRId64, c->seq));
    out_field(out, "created", arena_printf(&i->arena, "%s (%s)", time_people(time, c->ts_ms), time_ago(ago, c->ts_ms)));
    out_field(out, "node", c->node);
    out_field(out, "next node", c->next_node);
    out_field(out, "description", c->description);
    out_field(out, "clean", c->is_clean ? "yes" : "no: something failed or was retried before it");
    out_field(out, "resumable",
              c->rolled_back       ? "no: a rollback has undone it"
              : c->can_resume_from ? "yes"
                                   : "no: an effect or branch was unsettled");
    print_path(out, i);
    if (i->begun.live)
        out_field(out, "complete",
                  arena_printf(&i->arena, "%" PRId64 " node%s", i->complete, i->complete == 1 ? "" : "s"));
    print_metrics(out, i);
    out_field(out, "turn", arena_printf(&i->arena, "%" PRId64, c->turn));
    out_field(out, "messages", arena_printf(&i->arena, "%" PRId64, json_get_int(i->content, STR("messages"), 0)));
    print_conversations(out, i);
    print_outputs(out, i);
    out_field(out, "memory",
              arena_printf(&i->arena, "%" PRId64 " key%s%s", keys, keys == 1 ? "" : "s",
                           i->hidden && memory_asked ? "; " INSPECTION_HIDDEN : ""));
    if (i->memory)
        print_memory(out, i, memory);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(inspection_done) struct inspection i = {.arena = ARENA_INIT};
    bool memory = args_on(&cli->args, "memory");

    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err) ||
        inspection_read(session, args_operand(&cli->args, 1), memory, &i, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_inspection, &i);
    else
        print_text(&cli->out, &i, memory);
    return TIDE_OK;
}

/* ---- of a server ---- */

static void take_values(struct inspection *i, const struct json *v)
{
    const struct json *path = json_get(v, STR("execution_path")), *outputs = json_get(v, STR("accumulated_outputs")),
                      *said = json_get(v, STR("conversation_states"));

    for (const struct json *n = path ? path->first : NULL; n; n = n->next)
        map_put(&i->begun, json_text(&i->arena, n), i);
    if (path)
        buf_add_str(&i->path, json_source(path));
    for (const struct json *m = outputs ? outputs->first : NULL; m; m = m->next)
        map_put(&i->outputs, json_key_text(&i->arena, m), (void *)arena_dup(&i->arena, json_source(m)).ptr);
    i->hidden = !outputs || outputs->type == JSON_NULL;
    i->conversations = said && said->type != JSON_NULL;
    i->complete = json_get_int(v, STR("nodes_complete"), 0);
    i->metrics = json_get(v, STR("metrics_snapshot"));
    i->content = json_get(v, STR("state"));
}

/* For people with the memory, which they see the size of. Values that the settings hide are not known here: not even how many. */
static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    AUTO(inspection_done) struct inspection i = {.arena = ARENA_INIT, .path = BUF_INIT((size_t)1 << 30)};
    bool memory = args_on(&cli->args, "memory");
    const struct json *v;

    remote_begin(cli->remote, "GET", "sessions", args_operand(&cli->args, 0), "checkpoints",
                 args_operand(&cli->args, 1));
    remote_param(cli->remote, "memory", memory || !cli->out.json ? "true" : NULL);
    if (cli->out.json)
        return remote_pass(cli, REMOTE_SOON, err);
    if (remote_ask(cli->remote, REMOTE_SOON, &v, err) || remote_take(cli->remote, &shape_inspection, v, &i, err))
        return err->code;
    take_values(&i, v);
    i.memory = memory && !i.hidden;
    print_text(&cli->out, &i, memory);
    return TIDE_OK;
}

const struct command cmd_sessions_inspect = {
    .group = "sessions",
    .name = "inspect",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}, {"CHECKPOINT", VALUE_CHECKPOINT, 0}},
    .options = options,
    .help = "show a checkpoint and the state at its position",
};
