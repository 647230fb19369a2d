/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies behind the event and still counts would be cut off. Effects that had begun before it and were open there may have ended behind
 * it: the state as of there names them.
 */
#include "engine/rollback_preview.h"

#include "base/json.h"
#include "session/session.h"

#define ONCE_MAX 100 /* that are named */

struct reading {
    struct rollback_preview *p;
    const struct content *content;
    struct map open; /* call id -> name (malloc): must happen once, and has begun */
    struct arena scratch;
};

static void note_once(struct reading *r, struct str call)
{
    AUTO(mem_freep) char *name = map_remove(&r->open, call);

    if (name && r->p->n_once < ONCE_MAX)
        r->p->once[r->p->n_once++] = arena_dup(&r->p->arena, str_from(name)).ptr;
}

static void on_tool(struct reading *r, const struct tide_event *ev)
{
    const char *what = ev->kind + strlen("tool.");
    struct json *body = NULL;
    struct str call, effect, tool;

    arena_reset(&r->scratch);
    if (json_parse(&r->scratch, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, NULL))
        return;
    call = json_get_text(&r->scratch, body, STR("call_id"));
    effect = json_get_text(&r->scratch, body, STR("effect"));
    tool = json_get_text(&r->scratch, body, STR("tool"));
    if (strcmp(what, "started") == 0) {
        if (!effect.len || str_eq(effect, STR("once")))
            free(map_put(&r->open, call, mem_dup(tool.len ? tool : call)));
        return;
    }
    r->p->tools += strcmp(what, "withdrawn") != 0;
    if (strcmp(what, "completed") == 0 || strcmp(what, "unknown") == 0)
        note_once(r, call);
    else
        free(map_remove(&r->open, call));
}

static int on_event(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;

    if (!content_has(r->content, ev->seq))
        return 0;
    r->p->messages += strncmp(ev->kind, "message.", 8) == 0;
    r->p->nodes += strcmp(ev->kind, "node.completed") == 0;
    r->p->checkpoints += strcmp(ev->kind, "checkpoint") == 0;
    if (strncmp(ev->kind, "tool.", 5) == 0)
        on_tool(r, ev);
    return 0;
}

static enum tide_code read_behind(tide_session *session, int64_t to_seq, struct rollback_preview *p,
                                  struct tide_err *err)
{
    AUTO(state_freep) struct state *own = NULL;
    struct reading r = {.p = p, .content = &session->state->content};
    const struct state *then;
    enum tide_code code = session_state(session, to_seq, &own, &then, err);

    if (code)
        return code;
    for (struct map_entry *e = map_next(&then->ledger.effects, NULL); e; e = map_next(&then->ledger.effects, e)) {
        const struct effect *effect = e->value;

        if (str_eq(str_from(effect->effect), STR("once")))
            map_put(&r.open, map_key(e), mem_dup(str_from(effect->tool ? effect->tool : e->key)));
    }
    code = tide_session_read(session, TIDE_READ_INHERITED, to_seq + 1, 0, on_event, &r, err);
    for (struct map_entry *e = map_next(&r.open, NULL); e; e = map_next(&r.open, e)) /* nobody knows of these */
        if (p->n_once < ONCE_MAX)
            p->once[p->n_once++] = arena_dup(&p->arena, str_from(e->value)).ptr;
    map_done(&r.open, free);
    arena_done(&r.scratch);
    return code;
}

enum tide_code rollback_preview_read(tide_session *session, int64_t to_seq, unsigned flags, struct rollback_preview *p,
                                     struct tide_err *err)
{
    const struct tide_session_info *info;

    *p = (struct rollback_preview){.arena = ARENA_INIT};
    p->once = arena_zero(&p->arena, (ONCE_MAX + 1) * sizeof *p->once);
    if (tide_session_refresh(session, err) || tide_session_get_info(session, &info, err))
        return err->code;
    if (info->holder) {
        tide_fail_session(err, TIDE_HELD, info->id, "is held by %.100s", info->holder);
        return tide_hint(err, TIDE_ACTION_CANCEL, info->id);
    }
    if (tide_session_check_trust(session, err) || rollback_check(session, to_seq, flags, NULL, err))
        return err->code;
    return to_seq < tide_session_last_seq(session) ? read_behind(session, to_seq, p, err) : TIDE_OK;
}

void rollback_preview_done(struct rollback_preview *p)
{
    arena_done(&p->arena);
}

#define AT(member) SHAPE_AT(struct rollback_preview, member)

const struct shape shape_rollback_preview = {
    .members =
        (const struct shape_member[]){
            {"messages", SHAPE_INT, AT(messages), 0, "messages that would not count any more"},
            {"tools", SHAPE_INT, AT(tools), 0, "calls of tools and steps that have ended"},
            {"nodes", SHAPE_INT, AT(nodes), 0, "nodes that are complete"},
            {"checkpoints", SHAPE_INT, AT(checkpoints), 0, "checkpoints"},
            {"once_effects", SHAPE_LIST, AT(once), 0,
             "effects that must happen once, and have happened or may have; at most 100"},
            {.name = NULL},
        },
};
