/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/inspection.h"
#include "engine/shapes.h"

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

static void put_state(struct json_out *o, const void *data)
{
    const struct inspection *i = data;

    json_out_begin(o, '{');
    for (const struct json *m = i->content ? i->content->first : NULL; m; m = m->next) {
        if (json_key_eq(m, STR("memory")) && !i->memory)
            json_out_kint(o, STR("memory_keys"), m->count);
        else if (json_key_eq(m, STR("position")) && i->hidden)
            put_position(o, m);
        else if ((!json_key_eq(m, STR("conversations")) || i->conversations) &&
                 (!json_key_eq(m, STR("outputs")) || !i->hidden))
            json_out_kraw(o, m->key, json_source(m));
    }
    json_out_end(o, '}');
}

static void put_path(struct json_out *o, const void *data)
{
    json_out_raw(o, buf_view(&((const struct inspection *)data)->path));
}

/* As it was stored, and what is left out there when it is zero. */
static void put_metrics(struct json_out *o, const void *data)
{
    const struct json *metrics = ((const struct inspection *)data)->metrics;

    json_out_begin(o, '{');
    for (const struct json *m = metrics ? metrics->first : NULL; m; m = m->next)
        json_out_kraw(o, m->key, json_source(m));
    if (!json_get(metrics, STR("total_retries")))
        json_out_kint(o, STR("total_retries"), 0);
    if (!json_get(metrics, STR("nodes_with_failures")))
        json_out_kraw(o, STR("nodes_with_failures"), STR("[]"));
    json_out_end(o, '}');
}

static bool shows_conversations(const void *data)
{
    return ((const struct inspection *)data)->conversations;
}

static void put_said(struct json_out *o, const void *data)
{
    const struct map *said = &((const struct inspection *)data)->said;

    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(said, NULL); e; e = map_next(said, e))
        json_out_kstr(o, map_key(e), str_from(e->value));
    json_out_end(o, '}');
}

static bool shows_values(const void *data)
{
    return !((const struct inspection *)data)->hidden;
}

static void put_outputs(struct json_out *o, const void *data)
{
    const struct map *outputs = &((const struct inspection *)data)->outputs;

    json_out_begin(o, '{');
    for (struct map_entry *e = map_next(outputs, NULL); e; e = map_next(outputs, e))
        json_out_kraw(o, map_key(e), str_from(e->value));
    json_out_end(o, '}');
}

#define AT(member) SHAPE_AT(struct inspection, member)

const struct shape shape_inspection = {
    .name = "inspection",
    .help = "A checkpoint and the state that it promises.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, AT(session_id), SHAPE_ID, "the session"},
            {"", SHAPE_MEMBERS, AT(checkpoint), 0, "", .of = &shape_checkpoint},
            {"execution_path", SHAPE_LIST, AT(path), 0, "the nodes that began before it, in order", .put = put_path},
            {"nodes_complete", SHAPE_INT, AT(complete), 0, "nodes that were complete before it"},
            {"accumulated_outputs", SHAPE_MAP, AT(outputs), SHAPE_NULLABLE,
             "what nodes had given, by key; null: values are not shown", .items = SHAPE_ANY, .has = shows_values,
             .put = put_outputs},
            {"conversation_states", SHAPE_MAP, AT(said), SHAPE_NULLABLE,
             "the last message of each node, by its id (seq:N where it has none); null: conversations are not shown",
             .items = SHAPE_TEXT, .has = shows_conversations, .put = put_said},
            {"metrics_snapshot", SHAPE_MAP, AT(metrics), 0,
             "figures as of the checkpoint; always total_retries and nodes_with_failures", .items = SHAPE_ANY,
             .put = put_metrics},
            {"state", SHAPE_MAP, AT(content), 0,
             "the state of the content: messages, position, outputs; memory_keys, the number of its keys, in place of a "
             "memory that is not shown",
             .items = SHAPE_ANY, .put = put_state},
            {"not_shown", SHAPE_TEXT, AT(not_shown), SHAPE_OPTIONAL, "why values are not shown"},
            {.name = NULL},
        },
};
