/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a session: one, however often it is tried while the store cannot take it. Every try has the same first event, by which one
 * that an earlier try made is known to be ours.
 */
#include "session/session_handle.h"

#include <stdio.h>

#include "base/invariant.h"
#include "session/redact.h"

struct creating {
    struct tide_session *s;
    struct arena arena; /* of the event: the handle's own is for appends */
    struct event ev;    /* the same at every try: by it a session is known to be ours */
    struct parsed parsed;
    bool unknown; /* an earlier try may have made it */
    bool ours;
};

static int is_ours(void *arg, const struct event *ev)
{
    struct creating *c = arg;

    c->ours = str_eq(ev->kind, c->ev.kind) && str_eq(ev->body, c->ev.body) && ev->ts_ms == c->ev.ts_ms;
    return 1;
}

/*
 * An earlier try may have made it: TIDE_NOT_FOUND when it did not. The lease that came with it was never known to this handle,
 * and the store may give it back at any time: it is taken anew.
 */
static enum tide_code find_created(struct creating *c, struct tide_err *err)
{
    struct tide_session *s = c->s;
    enum tide_code code;

    session_forget_lease(s);
    s->unsettled = s->stale = true;
    code = session_sync(s, err);
    c->ours = false;
    if (!code && s->head.first_seq == 1)
        code = session_read(s, &s->head, 1, 1, is_ours, c, err);
    if (code)
        return code;
    return c->ours ? session_claim_lease(s, err)
                   : tide_fail(err, TIDE_EXISTS, "a session '%s' exists already", s->head.id);
}

static enum tide_code create_once(struct creating *c, struct tide_err *err)
{
    struct tide_session *s = c->s;
    struct batch_result result = {0, 0, 0};
    struct batch *b;
    enum tide_code code;

    INVARIANT(!s->owner.pending);
    session_forget_lease(s);
    state_free(s->state);
    s->state = state_new(str_from(s->head.id));
    s->stale = false;
    s->cost = (struct load_cost){0};
    s->head.created_ms = c->ev.ts_ms; /* until the head is read: its session file says when */
    b = session_make_batch(s, 0, &(struct checked){&c->ev, &c->parsed, 1});
    b->flags |= BATCH_CREATE | BATCH_VOUCH;
    b->expect_seq = STORE_ANY_SEQ;
    b->owner = NULL;
    code = store_write(s->store, b, &result, err);
    c->unknown = code == TIDE_UNKNOWN;
    s->owner = (struct group_owner){.next_seq = 2, .epoch = result.epoch};
    s->head.first_seq = 1;
    return code;
}

static enum tide_code try_create(void *arg, struct tide_err *err)
{
    struct creating *c = arg;
    enum tide_code code = c->unknown ? find_created(c, err) : TIDE_NOT_FOUND;

    if (code == TIDE_NOT_FOUND)
        code = create_once(c, err);
    return code ? tide_wrap(err, "create session") : TIDE_OK;
}

static enum tide_code check_created(struct creating *c, const char *id, const char *fields, struct tide_err *err)
{
    struct tide_new_event created = {"session.created", fields ? fields : "{}", 0};
    struct tide_session *s = c->s;

    if (id && id[0])
        snprintf(s->head.id, sizeof s->head.id, "%s", id);
    else
        session_make_id(s->store, "sess", s->head.id);
    if ((id && id[0] && !str_is_id(str_from(id)) &&
         tide_fail(err, TIDE_INVALID, "not a session id: 1 to 64 letters, digits, '_' or '-', not '-' first")) ||
        event_check(s->store, &c->arena, &created, true, &c->ev, &c->parsed, err) ||
        (id && redact_refuse_name(s->store, "session", id, err)))
        return tide_wrap(err, "create session");
    return TIDE_OK;
}

static enum tide_code create_session(struct tide_session *s, const char *id, const char *fields,
                                     tide_session **ret_session, struct tide_err *err)
{
    struct creating c = {.s = s, .arena = ARENA_INIT};
    enum tide_code code = check_created(&c, id, fields, err);

    code = code ? code : session_hold(s, try_create, &c, err);
    if (c.unknown && session_is_trouble(code)) /* given up: the last try shows nothing about an earlier one */
        code = err->code = TIDE_UNKNOWN;
    arena_done(&c.arena);
    session_be_quick(s);
    if (code)
        session_free(s);
    else
        *ret_session = s;
    return code;
}

enum tide_code tide_session_create(tide_store *store, const char *id, const char *fields, tide_session **ret_session,
                                   struct tide_err *err)
{
    ERR_LOCAL(err);
    return create_session(session_new(store_of(store), TIDE_SESSION_APPEND), id, fields, ret_session, err);
}

enum tide_code session_create_held(tide_store *store, const char *id, const char *fields, tide_trouble_fn *told,
                                   void *arg, tide_session **ret_session, struct tide_err *err)
{
    struct tide_session *s = session_new(store_of(store), TIDE_SESSION_APPEND);

    session_be_patient(s, told, arg);
    return create_session(s, id, fields, ret_session, err);
}
