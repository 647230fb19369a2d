/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rollback cut off and is not to happen again. Whoever rolls back chooses: finished effects happen anew, or they
 * answer from the log. Then a call that must happen once, with the same tool and the same arguments, gets the result that
 * was recorded, each recorded one once; one whose end nobody saw gets the honest result instead.
 */
#include "agent/agent.h"

/* One effect of the part that was cut: by the id of the call that it was. */
struct effect_past {
    struct str tool, digest;
    struct str result; /* empty: its end is not known */
    bool failed, has_result;
};

struct reading {
    struct tide_agent *a;
    struct undone_effects *past;
    struct str node;  /* of the conversation that it is for; another's effects are that one's to answer */
    struct map begun; /* call id -> struct effect_past *, since the last rollback that chose */
    struct arena scratch;
};

void undone_done(struct undone_effects *p)
{
    map_done(&p->effects, NULL);
    arena_done(&p->arena);
    *p = (struct undone_effects){.arena = ARENA_INIT};
}

static void read_started(struct reading *r, const struct json *body, bool counts)
{
    struct arena *a = &r->past->arena;
    struct effect_past *e;

    (void)counts; /* its start may stand before the cut, its end behind it */
    if (!str_eq(json_get_text(&r->scratch, body, STR("effect")), STR("once")))
        return;
    e = arena_zero(a, sizeof(*e));
    e->tool = arena_dup(a, json_get_text(&r->scratch, body, STR("tool")));
    e->digest = arena_dup(a, json_get_text(&r->scratch, body, STR("args_digest")));
    map_put(&r->begun, json_get_text(&r->scratch, body, STR("call_id")), e);
}

static void read_result(struct reading *r, const struct json *body, bool counts)
{
    struct str id = json_get_text(&r->scratch, body, STR("tool_call_id")),
               reused = json_get_text(&r->scratch, body, STR("reused"));
    struct effect_past *e = map_get(&r->begun, id);

    if (counts) { /* it is part of the conversation: nothing is owed of it */
        map_remove(&r->begun, id);
        map_remove(&r->past->effects, reused);
    } else if (e) {
        e->result = arena_dup(&r->past->arena, json_get_text(&r->scratch, body, STR("content")));
        e->failed = json_get_bool(body, STR("is_error"), false);
        e->has_result = true;
    }
}

static void read_rollback(struct reading *r, const struct json *body, bool counts)
{
    struct str effects = json_get_text(&r->scratch, body, STR("effects"));

    (void)counts;
    for (struct map_entry *e = map_next(&r->begun, NULL); e && str_eq(effects, STR("reuse"));
         e = map_next(&r->begun, e))
        map_put(&r->past->effects, map_key(e), e->value);
    if (str_eq(effects, STR("redo")))
        map_done(&r->past->effects, NULL);
    if (effects.len)
        map_done(&r->begun, NULL);
}

static int read_event(void *arg, const struct event *ev)
{
    static const struct {
        const char *kind;
        void (*read)(struct reading *, const struct json *, bool);
    } rows[] = {{"tool.started", read_started}, {"message.tool", read_result}, {"session.rolled_back", read_rollback}};
    struct reading *r = arg;
    struct json *body;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!str_eq(ev->kind, str_from(rows[i].kind)))
            continue;
        arena_reset(&r->scratch);
        if (!json_parse(&r->scratch, ev->body, NULL, &body, NULL, NULL) &&
            (rows[i].read == read_rollback || str_eq(json_get_text(&r->scratch, body, STR("node")), r->node)))
            rows[i].read(r, body, session_in_content(r->a->s, ev->seq));
    }
    return 0;
}

enum tide_code undone_load(struct tide_agent *a, struct tide_err *err)
{
    struct reading r = {.a = a, .past = &a->past, .node = str_from(a->talk.whose.node), .scratch = ARENA_INIT};
    enum tide_code code;

    undone_done(&a->past);
    if (!a->s->state->ledger.rollbacks)
        return TIDE_OK;
    code = session_read(a->s, &a->s->head, a->s->head.first_seq, 0, read_event, &r, err);
    map_done(&r.begun, NULL);
    arena_done(&r.scratch);
    return code;
}

bool undone_take(struct tide_agent *a, const struct model_call *call, const char *digest, struct undone_result *ret)
{
    struct map_entry *found = NULL;
    const struct effect_past *p;

    for (struct map_entry *e = map_next(&a->past.effects, NULL); e && !found; e = map_next(&a->past.effects, e)) {
        p = e->value;
        if (str_eq(map_key(e), call->id) || (str_eq(p->tool, call->name) && str_eq(p->digest, str_from(digest))))
            found = e;
    }
    if (!found)
        return false;
    p = found->value;
    *ret = (struct undone_result){arena_dup(&a->scratch, map_key(found)), p->result, p->failed, p->has_result};
    map_remove(&a->past.effects, ret->call_id);
    return true;
}
