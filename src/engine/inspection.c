/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes ran before a checkpoint is read from the log: it would make every checkpoint longer than the one before if it
 * were stored in them.
 */
#include "engine/inspection.h"

#include <inttypes.h>

#include "graph/exec.h"

struct reading {
    tide_session *session;
    struct inspection *to;
};

/* ---- what the log says ---- */

static void take_node(struct inspection *i, const struct json *body)
{
    struct json_out o = {.buf = &i->path, .depth = 1, .first = i->begun.live == 0};
    struct str node = json_get_text(&i->arena, body, STR("node"));
    const char *visit = arena_printf(&i->arena, "%.*s#%" PRId64, STR_ARG(node), json_get_int(body, STR("visit"), 0));

    if (map_get(&i->begun, str_from(visit))) /* tried again is not another step */
        return;
    json_out_str(&o, node);
    map_put(&i->begun, str_from(visit), i);
}

/* What nodes give the graph: into its memory, or an agent into its outputs. Graphs inside nodes keep theirs to themselves. */
static void take_outputs(struct inspection *i, const struct json *body, bool by_agent)
{
    const struct json *values = json_get(body, STR("values"));

    if ((!by_agent && !str_eq(json_get_text(&i->arena, body, STR("by")), STR("node"))) ||
        json_get_text(&i->arena, body, STR("frame")).len || json_get_text(&i->arena, body, STR("decides")).len)
        return;
    for (const struct json *v = values ? values->first : NULL; v; v = v->next)
        map_put(&i->outputs, json_key_text(&i->arena, v), (void *)(uintptr_t)arena_dup(&i->arena, json_source(v)).ptr);
}

static void take_message(struct inspection *i, const struct json *body, int64_t seq)
{
    struct str id = json_get_text(&i->arena, body, STR("message_id"));
    const char *said = id.len ? arena_dup(&i->arena, id).ptr : arena_printf(&i->arena, "seq:%" PRId64, seq);

    map_put(&i->said, json_get_text(&i->arena, body, STR("node")), (void *)(uintptr_t)said);
}

static int take_event(void *arg, const struct tide_event *ev)
{
    struct inspection *i = arg;
    bool begins = strcmp(ev->kind, "node.started") == 0, message = strncmp(ev->kind, "message.", 8) == 0;
    bool output = strcmp(ev->kind, "output.set") == 0, memory = strcmp(ev->kind, "memory.set") == 0;
    struct json *body;

    i->complete += strcmp(ev->kind, "node.completed") == 0;
    if ((!begins && !message && !output && !memory) ||
        json_parse(&i->arena, arena_dup(&i->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, NULL))
        return 0;
    if (begins)
        take_node(i, body);
    else if (message)
        take_message(i, body, ev->seq);
    else
        take_outputs(i, body, output);
    return 0;
}

/* Along the spans of the content: what a rollback cut off is no part of it. */
static enum tide_code read_path(const struct reading *r, struct tide_err *err)
{
    const struct json *spans = json_get(r->to->content, STR("spans"));
    enum tide_code code = TIDE_OK;

    buf_add_char(&r->to->path, '[');
    for (const struct json *s = spans ? spans->first : NULL; s && !code; s = s->next) {
        code = tide_session_read(r->session, TIDE_READ_INHERITED, json_get_int(s, STR("from"), 0),
                                 json_get_int(s, STR("to"), 0), take_event, r->to, err);
    }
    buf_add_char(&r->to->path, ']');
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

/* ---- what may be shown ---- */

/* Written down as true, by the run or else by the graph: it is shown without being asked for. */
static bool says_full(const struct json *graph, const struct json *told)
{
    const struct json *own = json_get(graph, STR("checkpoints"));
    const struct json *full = told ? json_get(told, STR("include_full_memory")) : NULL;

    full = full || !own ? full : json_get(own, STR("include_full_memory"));
    return full && full->type == JSON_TRUE;
}

/* The graph, or instead of it the options of its run, may decide what of it is shown and hidden by default. */
static void ask_graph(const struct reading *r)
{
    struct inspection *i = r->to;
    const struct json *told = json_get(json_get(i->content, STR("position")), STR("checkpoints"));
    struct spec_checkpoints c;
    struct tide_err ignored;
    tide_graph *graph = NULL;

    i->conversations = true;
    if (tide_graph_load(r->session, &graph, &ignored))
        return;
    c = graph->spec->graph->checkpoints;
    if (told)
        (void)!spec_change_checkpoints(graph->spec, json_source(told), &c, &ignored);
    i->hidden = !c.include_full_memory;
    i->not_shown = i->hidden ? INSPECTION_HIDDEN : NULL;
    i->memory = !i->hidden && (i->memory || says_full(graph->spec->graph->json, told));
    i->conversations = c.include_conversations;
    tide_graph_free(graph);
}

/* ---- all of it ---- */

static enum tide_code read_state(struct reading *r, int64_t seq, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct inspection *i = r->to;
    struct json *state = NULL;

    if (tide_session_get_state(r->session, seq, &text, err) ||
        json_parse(&i->arena, arena_dup(&i->arena, (struct str){text.ptr, text.len}), &limits, &state, NULL, err))
        return err->code;
    i->content = json_get(state, STR("content"));
    if (read_path(r, err) || tide_session_read(r->session, TIDE_READ_INHERITED, seq, seq, take_metrics, i, err))
        return err->code;
    ask_graph(r);
    return TIDE_OK;
}

enum tide_code inspection_read(tide_session *session, const char *checkpoint, bool memory, struct inspection *ret,
                               struct tide_err *err)
{
    struct reading r = {.session = session, .to = ret};
    const struct tide_checkpoint *c;

    *ret = (struct inspection){.arena = ARENA_INIT, .memory = memory, .path = BUF_INIT((size_t)1 << 30)};
    ret->session_id = arena_text(&ret->arena, tide_session_id(session));
    if (tide_checkpoint_load(session, checkpoint, &c, err))
        return err->code;
    ret->checkpoint = *c;
    ret->checkpoint.id = arena_text(&ret->arena, c->id);
    ret->checkpoint.type_word = arena_text(&ret->arena, c->type_word);
    ret->checkpoint.node = arena_text(&ret->arena, c->node);
    ret->checkpoint.next_node = arena_text(&ret->arena, c->next_node);
    ret->checkpoint.description = arena_text(&ret->arena, c->description);
    return read_state(&r, c->seq, err);
}

void inspection_done(struct inspection *i)
{
    map_done(&i->begun, NULL);
    map_done(&i->outputs, NULL);
    map_done(&i->said, NULL);
    buf_done(&i->path);
    arena_done(&i->arena);
}
