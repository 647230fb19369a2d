/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions inspect: a checkpoint and the state that it promises. */
#include <inttypes.h>
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/session_view.h"

static const struct opt options[] = {
    {.name = "memory", .help = "show the memory as well"},
    {.name = NULL},
};

struct inspection {
    struct cli *cli;
    tide_session *session;
    struct arena arena;
    struct tide_err err; /* of what went wrong inside the callback */
};

/* What the state says of content: counts in JSON and text, the whole memory only when asked for. */
static void content_json(const struct inspection *i, const struct json *content, const struct tide_checkpoint *c)
{
    struct json_out o = out_json(&i->cli->out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(tide_session_id(i->session)));
    checkpoint_members(&o, c);
    json_out_key(&o, STR("state"));
    json_out_begin(&o, '{');
    for (const struct json *m = content ? content->first : NULL; m; m = m->next) {
        bool memory = json_key_eq(m, STR("memory"));

        if (!memory || args_on(&i->cli->args, "memory"))
            json_out_kraw(&o, m->key, json_source(m));
        else
            json_out_kint(&o, STR("memory_keys"), m->count);
    }
    json_out_end(&o, '}');
    json_out_end(&o, '}');
    out_json_end(&i->cli->out);
}

static void print_memory(struct inspection *i, const struct json *memory)
{
    struct out *out = &i->cli->out;

    for (const struct json *m = memory ? memory->first : NULL; m; m = m->next) {
        AUTO(buf_done) struct buf value = BUF_INIT((size_t)1 << 30);

        json_write(&value, m);
        outf(out, "  ");
        out_colored(out, COLOR_BOLD, arena_dup(&i->arena, json_key_text(&i->arena, m)).ptr);
        outf(out, " = ");
        out_value(out, buf_cstr(&value));
        outf(out, "\n");
    }
}

static void content_text(struct inspection *i, const struct json *content, const struct tide_checkpoint *c)
{
    struct out *out = &i->cli->out;
    const struct json *memory = json_get(content, STR("memory")), *outputs = json_get(content, STR("outputs"));
    char time[TIME_TEXT_SIZE], ago[AGO_SIZE];

    time_format(time, c->ts_ms);
    out_field(out, "checkpoint", c->id);
    out_field(out, "session", tide_session_id(i->session));
    out_field(out, "type", c->type);
    out_field(out, "seq", arena_printf(&i->arena, "%" PRId64, c->seq));
    out_field(out, "created", arena_printf(&i->arena, "%s (%s)", time, time_ago(ago, c->ts_ms)));
    out_field(out, "node", c->node);
    out_field(out, "next node", c->next_node);
    out_field(out, "description", c->description);
    out_field(out, "clean", c->is_clean ? "yes" : "no: something failed or was tried again before it");
    out_field(out, "resumable",
              c->rolled_back       ? "no: a rollback has cut it off"
              : c->can_resume_from ? "yes"
                                   : "no: an effect or branch was unsettled");
    out_field(out, "turn", arena_printf(&i->arena, "%" PRId64, c->turn));
    out_field(out, "messages", arena_printf(&i->arena, "%" PRId64, json_get_int(content, STR("messages"), 0)));
    out_field(out, "outputs",
              arena_printf(&i->arena, "of %u node%s", outputs ? outputs->count : 0,
                           outputs && outputs->count == 1 ? "" : "s"));
    out_field(out, "memory",
              arena_printf(&i->arena, "%u key%s", memory ? memory->count : 0, memory && memory->count == 1 ? "" : "s"));
    if (args_on(&i->cli->args, "memory"))
        print_memory(i, memory);
}

static enum tide_code inspect(struct inspection *i, const struct tide_checkpoint *c, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct json *state = NULL;

    if (tide_state(i->session, c->seq, &text, err) ||
        json_parse(&i->arena, (struct str){text.ptr, text.len}, &limits, &state, NULL, err))
        return err->code;
    if (i->cli->out.json)
        content_json(i, json_get(state, STR("content")), c);
    else
        content_text(i, json_get(state, STR("content")), c);
    return TIDE_OK;
}

static int on_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    struct inspection *i = arg;

    return inspect(i, c, &i->err) != TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct inspection i = {.cli = cli, .arena = ARENA_INIT};
    enum tide_code code = cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err);

    i.session = session;
    if (!code)
        code = tide_checkpoint_load(session, args_operand(&cli->args, 1), on_checkpoint, &i, err);
    if (!code && i.err.code)
        code = tide_err_copy(err, &i.err);
    arena_done(&i.arena);
    return code;
}

const struct command cmd_sessions_inspect = {
    .group = "sessions",
    .name = "inspect",
    .run = run,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}, {"CHECKPOINT", VALUE_CHECKPOINT, 0}},
    .options = options,
    .help = "show a checkpoint and the state it marks",
};
