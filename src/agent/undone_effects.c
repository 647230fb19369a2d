/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rollback cut off and is not to happen again (session/past_effects.h). A call that must happen once, with the same
 * tool and the same arguments, gets the result that was recorded, each recorded one once; one whose end nobody saw gets
 * the honest result instead.
 */
#include "agent/agent.h"

struct undone {
    struct past_effect past;
    struct str tool, digest;
    struct str result; /* empty: its end is not known */
    bool failed, has_result;
};

/* Effects of another's conversation are that one's to answer. */
static bool is_ours(struct past_reader *r, const struct json *body)
{
    const struct tide_agent *a = r->arg;

    return str_eq(json_get_text(&r->scratch, body, STR("node")), str_from(a->conversation.whose.node));
}

static bool begins_effect(struct past_reader *r, struct str call_id, const struct json *body, void *effect)
{
    struct undone *u = effect;

    (void)call_id;
    u->tool = arena_dup(&r->past->arena, json_get_text(&r->scratch, body, STR("tool")));
    u->digest = arena_dup(&r->past->arena, json_get_text(&r->scratch, body, STR("args_digest")));
    return json_get(body, STR("effect")) && is_ours(r, body);
}

/* One that is part of the conversation is owed nothing of. */
static void read_result(struct past_reader *r, const struct event *ev, const struct json *body)
{
    struct str id = json_get_text(&r->scratch, body, STR("tool_call_id")),
               reused = json_get_text(&r->scratch, body, STR("reused"));
    struct undone *u = map_get(&r->past->effects, id), *again = map_get(&r->past->effects, reused);

    if (!is_ours(r, body))
        return;
    if (again)
        again->past.seq = ev->seq; /* it answered here */
    if (session_in_content(((struct tide_agent *)r->arg)->s, ev->seq)) {
        map_remove(&r->past->effects, id);
        map_remove(&r->past->effects, reused);
    } else if (u) {
        u->result = arena_dup(&r->past->arena, json_get_text(&r->scratch, body, STR("content")));
        u->failed = json_get_bool(body, STR("is_error"), false);
        u->has_result = true;
    }
}

enum tide_code undone_load(struct tide_agent *a, struct tide_err *err)
{
    static const struct past_row rows[] = {{"message.tool", read_result}, {NULL, NULL}};
    struct past_reader r = {&a->past, sizeof(struct undone), begins_effect, rows, a, ARENA_INIT};
    enum tide_code code;

    past_effects_done(&a->past);
    if (!a->s->state->ledger.rollbacks)
        return TIDE_OK;
    code = session_read(a->s, &a->s->head, a->s->head.first_seq, 0, past_effects_event, &r, err);
    arena_done(&r.scratch);
    return code;
}

bool undone_take(struct tide_agent *a, const struct model_call *call, const char *digest, struct undone_result *ret)
{
    for (struct map_entry *e = map_next(&a->past.effects, NULL); e; e = map_next(&a->past.effects, e)) {
        const struct undone *u = e->value;

        if (!u->past.reuse ||
            !(str_eq(map_key(e), call->id) || (str_eq(u->tool, call->name) && str_eq(u->digest, str_from(digest)))))
            continue;
        *ret = (struct undone_result){arena_dup(&a->scratch, map_key(e)), u->result, u->failed, u->has_result};
        map_remove(&a->past.effects, ret->call_id);
        return true;
    }
    return false;
}
