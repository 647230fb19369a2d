/* SPDX-License-Identifier: Apache-2.0 */
/* What the oracle's nodes do: work, graphs inside, maps, and what those give when they are over. */
#include <inttypes.h>

#include "graph_oracle.h"

/* ---- what nodes do ---- */

static struct str declared(struct oracle *o, const struct spec_node *n, struct str output, bool *ret_missing)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct json_out out = json_out_to(&b);
    const struct json *v = o_parse(o, output);

    *ret_missing = false;
    if (!n->outputs.n)
        return output;
    json_out_begin(&out, '{');
    for (size_t i = 0; i < n->outputs.n; i++) {
        const struct json *m = json_get(v, n->outputs.at[i]);
        bool nullable = false;

        for (size_t k = 0; k < n->nullable_outputs.n; k++)
            nullable |= str_eq(n->nullable_outputs.at[k], n->outputs.at[i]);
        *ret_missing |= !m && !nullable;
        if (m)
            json_out_kraw(&out, n->outputs.at[i], json_source(m));
    }
    json_out_end(&out, '}');
    return arena_dup(&o->arena, buf_view(&b));
}

void o_work(struct oracle *o, struct o_task *t)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct str missing, inputs = o_inputs(o, t, &missing), memory = o_memory(o, t->frame, NULL), output;
    const struct expr_value seen[] = {{"inputs", inputs}, {"memory", memory}};
    int number = behaviour_number(t->name);
    struct tide_err err;
    bool unset;

    if (missing.len) {
        o_failed(o, t, "missing_input", false);
    } else if (t->node->type == SPEC_LUA && expr_eval(t->node->code.expr, seen, 2, NULL, &b, &err)) {
        o_failed(o, t, "lua", true);
    } else if (t->node->type == SPEC_FUNCTION && behaviour_fails(o->plan, o->mended, t->name, t->attempt)) {
        o->broke[number] |= o->plan->behaviours[number].hard;
        o_failed(o, t, "callback", true);
    } else {
        if (t->node->type == SPEC_FUNCTION)
            behaviour_output(t->node, t->name, t->visit, inputs, &b);
        output = declared(o, t->node, arena_dup(&o->arena, buf_view(&b)), &unset);
        if (unset)
            o_failed(o, t, "missing_output", true);
        else
            o_complete(o, t, output);
    }
}

void o_begin_graph(struct oracle *o, struct o_task *t)
{
    struct str missing, inputs = o_inputs(o, t, &missing);
    const struct json *given = o_parse(o, inputs), *own = t->node->graph->memory;
    struct o_frame *f;

    if (missing.len) {
        o_failed(o, t, "missing_input", false);
        return;
    }
    f = o_frame_new(o, t, o_text(o, "%.*s#%" PRId64, STR_ARG(t->name), t->visit));
    f->graph = t->node->graph;
    for (const struct json *m = own ? own->first : NULL; m; m = m->next)
        if (!json_get(given, json_key_text(&o->arena, m)))
            o_put(o, &f->memory, json_key_text(&o->arena, m), json_source(m));
    for (const struct json *m = given->first; m; m = m->next)
        o_put(o, &f->memory, json_key_text(&o->arena, m), json_source(m));
    o_lead_to(o, f, &f->graph->nodes.at[f->graph->entry_index], t->name, STR(""), STR(""));
}

void o_begin_map(struct oracle *o, struct o_task *t)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct str missing, inputs = o_inputs(o, t, &missing);
    struct str memory = o_memory(o, t->frame, missing.len ? NULL : o_parse(o, inputs));
    const struct expr_value seen[] = {{"memory", memory}, {"inputs", inputs}};
    const struct json *list = NULL;
    struct tide_err err;
    struct o_frame *f;

    if (t->node->over_key.len)
        list = json_get(o_parse(o, memory), t->node->over_key);
    else if (!expr_eval(t->node->over.expr, seen, 2, NULL, &b, &err))
        list = o_parse(o, arena_dup(&o->arena, buf_view(&b)));
    if (missing.len || !list || list->type != JSON_ARRAY) {
        o_failed(o, t, "missing_input", false);
        return;
    }
    f = o_frame_new(o, t, o_text(o, "%.*s#%" PRId64, STR_ARG(t->name), t->visit));
    f->items = list;
    f->total = list->count;
    f->results = arena_zero(&o->arena, (size_t)(f->total + 1) * sizeof *f->results);
}

/* ---- what was inside is over ---- */

static struct str map_output(struct oracle *o, const struct o_frame *f)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1 << 22);
    struct json_out out = json_out_to(&b);
    const struct spec_node *n = f->owner->node, *inner = n->node;

    json_out_begin(&out, '{');
    for (size_t k = 0; k < n->outputs.n; k++) {
        json_out_key(&out, n->outputs.at[k]);
        json_out_begin(&out, '[');
        for (int64_t i = 0; i < f->total; i++) {
            const struct json *v = o_parse(o, f->results[i]), *m = NULL;

            if (v->type == JSON_OBJECT && inner->outputs.n)
                m = json_get(v, inner->outputs.n == 1 ? inner->outputs.at[0] : n->outputs.at[k]);
            json_out_raw(&out, m                                                 ? json_source(m)
                               : v->type == JSON_OBJECT && inner->outputs.n == 1 ? STR("null")
                                                                                 : json_source(v));
        }
        json_out_end(&out, ']');
    }
    json_out_end(&out, '}');
    return arena_dup(&o->arena, buf_view(&b));
}

void o_frame_over(struct oracle *o, struct o_frame *f)
{
    bool unset = false;
    struct str output = f->graph ? o_memory(o, f, NULL) : map_output(o, f);

    if (f->graph) {
        const struct spec_node *n = f->owner->node;

        output = declared(o, n, output, &unset);
    }
    if (unset)
        o_failed(o, f->owner, "missing_output", true);
    else
        o_complete(o, f->owner, output);
}
