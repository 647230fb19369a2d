/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions inspect: a checkpoint and the state that it promises. Which nodes ran before it is read from the log: it
 * would make every checkpoint longer than the one before if it were stored in them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/session_view.h"
#include "graph/exec.h"

#define HIDDEN "values are not shown: include_full_memory is false (the log and exports hold them)"

static const struct opt options[] = {
    {.name = "memory", .help = "show the memory as well, unless include_full_memory is false"},
    {.name = NULL},
};

struct inspection {
    struct cli *cli;
    tide_session *session;
    struct arena arena;
    bool memory, conversations; /* shown */
    bool hidden;                /* include_full_memory is false: the memory is not shown, whoever asks */
    struct buf path;            /* JSON array of the nodes that began before it */
    struct map begun;           /* "node#visit" of these */
    int64_t complete;           /* nodes that were complete before it */
    const struct json *metrics; /* of the event; NULL: none */
    struct tide_err err;        /* of what went wrong inside the callback */
};

/* ---- what the log says ---- */

static int take_path(void *arg, const struct tide_event *ev)
{
    struct inspection *i = arg;
    struct json_out o = {.buf = &i->path, .depth = 1, .first = i->begun.live == 0};
    struct json *body;
    struct str node;
    const char *visit;

    i->complete += strcmp(ev->kind, "node.completed") == 0;
    if (strcmp(ev->kind, "node.started") != 0 ||
        json_parse(&i->arena, arena_dup(&i->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, NULL))
        return 0;
    node = json_get_text(&i->arena, body, STR("node"));
    visit = arena_printf(&i->arena, "%.*s#%" PRId64, STR_ARG(node), json_get_int(body, STR("visit"), 0));
    if (!map_get(&i->begun, str_from(visit))) { /* tried again is not another step */
        json_out_str(&o, node);
        map_put(&i->begun, str_from(visit), i);
    }
    return 0;
}

/* Along the spans of the content: what a rollback cut off is no part of it. */
static enum tide_code read_path(struct inspection *i, const struct json *content, struct tide_err *err)
{
    const struct json *spans = json_get(content, STR("spans"));
    enum tide_code code = TIDE_OK;

    buf_add_char(&i->path, '[');
    for (const struct json *s = spans ? spans->first : NULL; s && !code; s = s->next) {
        code = tide_read(i->session, TIDE_READ_INHERITED, json_get_int(s, STR("from"), 0),
                         json_get_int(s, STR("to"), 0), take_path, i, err);
    }
    buf_add_char(&i->path, ']');
    return code;
}

static int take_metrics(void *arg, const struct tide_event *ev)
{
    struct inspection *i = arg;
    struct json *body;

    if (!json_parse(&i->arena, arena_dup(&i->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, NULL))
        i->metrics = json_get(body, STR("metrics"));
    return 1;
}

/* Written down as true, by the run or else by the graph: it is shown without being asked for. */
static bool says_full(const struct json *graph, const struct json *told)
{
    const struct json *own = json_get(graph, STR("checkpoints"));
    const struct json *full = told ? json_get(told, STR("include_full_memory")) : NULL;

    full = full || !own ? full : json_get(own, STR("include_full_memory"));
    return full && full->type == JSON_TRUE;
}

/* The graph, and over it what its run was told, may say what is shown of it without being asked, and what is not. */
static void ask_graph(struct inspection *i, const struct json *content)
{
    const struct json *told = json_get(json_get(content, STR("position")), STR("checkpoints"));
    struct spec_checkpoints c;
    struct tide_err ignored;
    tide_graph *graph = NULL;

    i->memory = args_on(&i->cli->args, "memory");
    i->conversations = true;
    if (tide_graph_stored(i->session, &graph, &ignored))
        return;
    c = graph->spec->graph->checkpoints;
    if (told)
        (void)!spec_change_checkpoints(graph->spec, json_source(told), &c, &ignored);
    i->hidden = !c.include_full_memory;
    i->memory = !i->hidden && (i->memory || says_full(graph->spec->graph->json, told));
    i->conversations = c.include_conversations;
    tide_graph_free(graph);
}

/* ---- showing it ---- */

/* Without what is remembered inside nodes. */
static void put_position(struct json_out *o, const struct json *position)
{
    json_out_key(o, STR("position"));
    json_out_begin(o, '{');
    for (const struct json *m = position->first; m; m = m->next)
        if (!json_key_eq(m, STR("scopes")))
            json_out_kraw(o, m->key, json_source(m));
    json_out_end(o, '}');
}

static void put_member(const struct inspection *i, struct json_out *o, const struct json *m)
{
    if (json_key_eq(m, STR("memory")) && !i->memory)
        json_out_kint(o, STR("memory_keys"), m->count);
    else if (json_key_eq(m, STR("position")) && i->hidden)
        put_position(o, m);
    else if ((!json_key_eq(m, STR("conversations")) || i->conversations) &&
             (!json_key_eq(m, STR("outputs")) || !i->hidden))
        json_out_kraw(o, m->key, json_source(m));
}

/* What the state says of content: counts in JSON and text, the whole memory only when asked for. */
static void content_json(const struct inspection *i, const struct json *content, const struct tide_checkpoint *c)
{
    struct json_out o = out_json(&i->cli->out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(tide_session_id(i->session)));
    checkpoint_members(&o, c);
    json_out_kraw(&o, STR("execution_path"), buf_view(&i->path));
    json_out_kint(&o, STR("nodes_complete"), i->complete);
    json_out_kraw(&o, STR("metrics"), i->metrics ? json_source(i->metrics) : STR("null"));
    json_out_key(&o, STR("state"));
    json_out_begin(&o, '{');
    for (const struct json *m = content ? content->first : NULL; m; m = m->next)
        put_member(i, &o, m);
    json_out_end(&o, '}');
    if (i->hidden)
        json_out_kstr(&o, STR("not_shown"), STR(HIDDEN));
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

static void print_path(struct inspection *i)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)1 << 30);
    struct json *path = NULL;

    if (!i->begun.live || json_parse(&i->arena, buf_view(&i->path), NULL, &path, NULL, NULL))
        return;
    for (const struct json *n = path->first; n; n = n->next)
        buf_addf(&text, "%s%.*s", n == path->first ? "" : " → ", STR_ARG(json_text(&i->arena, n)));
    out_field(&i->cli->out, "path", buf_cstr(&text));
}

static void print_metrics(struct inspection *i)
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
        out_field(&i->cli->out, "metrics", buf_cstr(&text));
}

static void print_conversations(struct inspection *i, const struct json *content)
{
    const struct json *all = json_get(content, STR("conversations"));

    for (const struct json *c = all && i->conversations ? all->first : NULL; c; c = c->next) {
        struct str node = json_key_text(&i->arena, c);

        if (node.len)
            out_field(&i->cli->out, "conversation",
                      arena_printf(&i->arena, "%.*s: %" PRId64 " messages", STR_ARG(node),
                                   json_get_int(c, STR("messages"), 0)));
    }
}

static void content_text(struct inspection *i, const struct json *content, const struct tide_checkpoint *c)
{
    struct out *out = &i->cli->out;
    const struct json *memory = json_get(content, STR("memory"));
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
    print_path(i);
    if (i->begun.live)
        out_field(out, "complete",
                  arena_printf(&i->arena, "%" PRId64 " node%s", i->complete, i->complete == 1 ? "" : "s"));
    print_metrics(i);
    out_field(out, "turn", arena_printf(&i->arena, "%" PRId64, c->turn));
    out_field(out, "messages", arena_printf(&i->arena, "%" PRId64, json_get_int(content, STR("messages"), 0)));
    print_conversations(i, content);
    out_field(out, "memory",
              arena_printf(&i->arena, "%u key%s%s", memory ? memory->count : 0, memory && memory->count == 1 ? "" : "s",
                           i->hidden && args_on(&i->cli->args, "memory") ? "; " HIDDEN : ""));
    if (i->memory)
        print_memory(i, memory);
}

static enum tide_code inspect(struct inspection *i, const struct tide_checkpoint *c, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct json *state = NULL;

    if (tide_state(i->session, c->seq, &text, err) ||
        json_parse(&i->arena, (struct str){text.ptr, text.len}, &limits, &state, NULL, err) ||
        read_path(i, json_get(state, STR("content")), err) ||
        tide_read(i->session, TIDE_READ_INHERITED, c->seq, c->seq, take_metrics, i, err))
        return err->code;
    ask_graph(i, json_get(state, STR("content")));
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
    struct inspection i = {.cli = cli, .arena = ARENA_INIT, .path = BUF_INIT((size_t)1 << 30)};
    enum tide_code code = cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err);

    i.session = session;
    if (!code)
        code = tide_checkpoint_load(session, args_operand(&cli->args, 1), on_checkpoint, &i, err);
    if (!code && i.err.code)
        code = tide_err_copy(err, &i.err);
    map_done(&i.begun, NULL);
    buf_done(&i.path);
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
