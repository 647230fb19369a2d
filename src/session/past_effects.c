/* SPDX-License-Identifier: Apache-2.0 */
#include "session/past_effects.h"

static void read_started(struct past_reader *r, const struct event *ev, const struct json *body)
{
    struct str call = json_get_text(&r->scratch, body, STR("call_id")),
               effect = json_get_text(&r->scratch, body, STR("effect"));
    struct past_effect *e;

    if (effect.len && !str_eq(effect, STR("once")))
        return;
    e = arena_zero(&r->past->arena, r->size);
    e->from = e->seq = ev->seq;
    if (r->begins(r, call, body, e))
        map_put(&r->past->effects, call, e);
}

/* It never began: nothing of it is past. */
static void read_withdrawn(struct past_reader *r, const struct event *ev, const struct json *body)
{
    (void)ev;
    map_remove(&r->past->effects, json_get_text(&r->scratch, body, STR("call_id")));
}

static void read_ended(struct past_reader *r, const struct event *ev, const struct json *body)
{
    struct past_effect *e = map_get(&r->past->effects, json_get_text(&r->scratch, body, STR("call_id")));

    if (!e)
        return;
    if (!json_get_bool(body, STR("begun"), true)) {
        read_withdrawn(r, ev, body);
        return;
    }
    e->seq = ev->seq;
    e->state = str_eq(ev->kind, STR("tool.completed")) ? PAST_DONE
               : str_eq(ev->kind, STR("tool.failed"))  ? PAST_FAILED
                                                       : PAST_CUT;
}

/* One that says nothing of effects cuts none but those that failed. */
static void read_rollback(struct past_reader *r, const struct event *ev, const struct json *body)
{
    struct str effects = json_get_text(&r->scratch, body, STR("effects"));
    int64_t to = json_get_int(body, STR("to_seq"), 0);

    (void)ev;
    if (str_eq(effects, STR("redo")))
        past_effects_forget(r->past, to);
    for (struct map_entry *e = map_next(&r->past->effects, NULL); e && str_eq(effects, STR("reuse"));
         e = map_next(&r->past->effects, e))
        ((struct past_effect *)e->value)->reuse |= ((struct past_effect *)e->value)->seq > to;
}

int past_effects_event(void *reader, const struct event *ev)
{
    static const struct past_row own[] = {{"tool.started", read_started},
                                          {"tool.completed", read_ended},
                                          {"tool.failed", read_ended},
                                          {"tool.unknown", read_ended},
                                          {"tool.withdrawn", read_withdrawn},
                                          {"session.rolled_back", read_rollback},
                                          {NULL, NULL}};
    struct past_reader *r = reader;
    const struct past_row *lists[] = {own, r->rows};
    struct json *body;

    for (size_t i = 0; i < 2; i++)
        for (const struct past_row *row = lists[i]; row->kind; row++) {
            if (!str_eq(ev->kind, str_from(row->kind)))
                continue;
            arena_reset(&r->scratch);
            if (!json_parse(&r->scratch, ev->body, NULL, &body, NULL, NULL))
                row->read(r, ev, body);
            return 0;
        }
    return 0;
}

void past_effects_forget(struct past_effects *p, int64_t after)
{
    for (struct map_entry *e = map_next(&p->effects, NULL); e; e = map_next(&p->effects, e))
        if (((const struct past_effect *)e->value)->seq > after) /* also when it only answered there */
            map_remove(&p->effects, map_key(e));
}

void past_effects_done(struct past_effects *p)
{
    map_done(&p->effects, NULL);
    arena_done(&p->arena);
    *p = (struct past_effects)PAST_EFFECTS_INIT;
}
