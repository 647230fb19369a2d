/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent knows: conversation, memory, outputs, position. Folds the spans of the session; a rollback cuts them, a fork inherits them. */
#include "session/fold.h"
#include "session/value_places.h"

static void outputs_free(void *p)
{
    map_done(p, free);
    free(p);
}

void content_done(struct content *c)
{
    free(c->node);
    free(c->next_node);
    map_done(&c->memory, free);
    map_done(&c->outputs, outputs_free);
    map_done(&c->visits, free);
    map_done(&c->conversations, free);
    position_done(&c->position);
    map_done(&c->places, free);
    free(c->spans);
}

void content_turn(struct content *c, const struct fact *f)
{
    int64_t turn = json_get_int(f->body, STR("turn"), 0);

    if (turn > c->turn)
        c->turn = turn;
}

void content_message(struct content *c, const struct fact *f)
{
    struct str node = text_of(f, "node");
    struct message_range *range = map_get(&c->conversations, node);
    int64_t visit = json_get_int(f->body, STR("visit"), 0);

    content_turn(c, f);
    c->messages++;
    if (!range) {
        range = mem_zero(sizeof *range);
        map_put(&c->conversations, node, range);
    }
    if (!range->messages || range->visit != visit)
        *range = (struct message_range){visit, 0, f->ev->seq, 0};
    range->messages++;
    range->last_seq = f->ev->seq;
}

void content_failure(struct content *c, const struct fact *f)
{
    content_turn(c, f);
    c->failures++;
}

static void set_members(struct map *m, const struct fact *f)
{
    const struct json *values = json_get(f->body, STR("values"));

    if (!values || values->type != JSON_OBJECT)
        return;
    for (const struct json *v = values->first; v; v = v->next)
        map_set_text(m, json_key_text(f->arena, v), json_source(v));
}

/* Who set a key while others ran beside it: one of those that sets it too is in conflict with it. */
static void note_writers(struct content *c, const struct fact *f, struct str frame)
{
    const struct json *values = json_get(f->body, STR("values"));
    struct str branch = text_of(f, "branch");

    if (!branch.len && !c->position.writers.live)
        return;
    for (const struct json *v = values ? values->first : NULL; v; v = v->next) {
        struct str key = json_key_text(f->arena, v);
        const char *name = arena_printf(f->arena, "%.*s\x1f%.*s", STR_ARG(frame), STR_ARG(key));

        if (branch.len)
            map_set_text(&c->position.writers, str_from(name), branch);
        else
            map_drop(&c->position.writers, str_from(name));
    }
}

static void note_places(struct content *c, const struct fact *f, struct str frame)
{
    const struct json *values = json_get(f->body, STR("values"));

    for (const struct json *v = values && values->type == JSON_OBJECT ? values->first : NULL; v; v = v->next)
        place_note(c, f, frame, json_key_text(f->arena, v), json_source(v).len);
}

void content_memory_set(struct content *c, const struct fact *f)
{
    struct str frame = text_of(f, "frame"), beneath = text_of(f, "beneath");

    set_members(position_scope(c, frame, true), f);
    note_places(c, f, frame);
    position_set_beneath(&c->position, frame, beneath);
    note_writers(c, f, frame);
}

void content_memory_deleted(struct content *c, const struct fact *f)
{
    const struct json *keys = json_get(f->body, STR("keys"));
    struct str frame = text_of(f, "frame");

    if (!keys || keys->type != JSON_ARRAY)
        return;
    position_part(c, frame); /* else what is deleted would be read in the frame below */
    for (const struct json *k = keys->first; k; k = k->next) {
        if (k->type != JSON_STRING)
            continue;
        map_drop(position_scope(c, frame, true), json_text(f->arena, k));
        place_drop(c, frame, json_text(f->arena, k));
    }
}

void content_output_set(struct content *c, const struct fact *f)
{
    struct str node = text_of(f, "node");
    struct map *outputs = map_get(&c->outputs, node);

    if (!outputs) {
        outputs = mem_zero(sizeof *outputs);
        map_put(&c->outputs, node, outputs);
    }
    set_members(outputs, f);
}

static void set_id(char out[TIDE_ID_SIZE], struct str id)
{
    size_t n = id.len < TIDE_ID_SIZE ? id.len : TIDE_ID_SIZE - 1;

    memcpy(out, id.ptr, n);
    out[n] = 0;
}

void content_checkpoint(struct content *c, const struct fact *f)
{
    struct str id = text_of(f, "checkpoint_id");

    content_turn(c, f);
    set_id(c->checkpoint, id);
    c->checkpoint_seq = f->ev->seq;
    if (json_get_bool(f->body, STR("can_resume_from"), true)) {
        set_id(c->resume_checkpoint, id);
        c->resume_checkpoint_seq = f->ev->seq;
    }
}

/* Which one is the latest now is not known here: readers look it up when the seq is -1. */
void content_checkpoint_deleted(struct content *c, const struct fact *f)
{
    const struct json *ids = json_get(f->body, STR("checkpoint_ids"));

    for (const struct json *id = ids ? ids->first : NULL; id; id = id->next) {
        struct str text = id->type == JSON_STRING ? json_text(f->arena, id) : STR("");

        if (text.len && str_eq(text, str_from(c->checkpoint))) {
            c->checkpoint[0] = 0;
            c->checkpoint_seq = -1;
        }
        if (text.len && str_eq(text, str_from(c->resume_checkpoint))) {
            c->resume_checkpoint[0] = 0;
            c->resume_checkpoint_seq = -1;
        }
    }
}

void info_apply(struct info *info, const struct fact *f)
{
    for (const struct json *m = f->body->first; m; m = m->next) {
        if (!json_key_eq(m, STR("parent")))
            map_set_text(&info->fields, json_key_text(f->arena, m), json_source(m));
    }
}
