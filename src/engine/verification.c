/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/verification.h"

#include "session/session.h"

struct verifying {
    struct verification *ret;
    size_t cap;
    int64_t total; /* events; 0 when not known */
    tide_progress_fn *progress;
    void *arg;
};

static void sessionp(tide_session **session)
{
    tide_session_close(*session);
}

static void add_id(struct verifying *v, const char *id)
{
    struct verification *r = v->ret;

    MEM_ROOM(r->sessions, r->n, v->cap);
    r->sessions[r->n++] = (struct verified_session){.session_id = arena_dup(&r->arena, str_from(id)).ptr};
}

static int on_session(void *arg, const struct tide_session_info *info)
{
    struct verifying *v = arg;

    add_id(v, info->id);
    v->total += info->last_seq - info->first_seq + 1;
    return 0;
}

static int on_progress(void *arg, uint64_t done, uint64_t total)
{
    struct verifying *v = arg;

    return v->progress ? v->progress(v->arg, (uint64_t)v->ret->events + done, v->total ? (uint64_t)v->total : total)
                       : 0;
}

static bool is_damage(enum tide_code code)
{
    return code == TIDE_CORRUPT || code == TIDE_WRONG_KEY;
}

static enum tide_code verify_one(struct verifying *v, tide_store *store, bool own, struct verified_session *s,
                                 struct tide_err *err)
{
    AUTO(sessionp) tide_session *session = NULL;
    uint64_t events = 0;
    enum tide_code code = tide_session_open(store, s->session_id, TIDE_SESSION_READ, &session, err);

    if (!code)
        code = own ? session_verify_own(session, on_progress, v, &events, err)
                   : tide_session_verify(session, on_progress, v, &events, err);
    if (code && !is_damage(code))
        return code;
    s->ok = !code;
    s->events = (int64_t)events;
    s->unverified = session && session->head.unverified;
    if (session)
        s->session_id = arena_dup(&v->ret->arena, str_from(tide_session_id(session))).ptr;
    if (code)
        s->error = arena_dup(&v->ret->arena, str_from(err->msg)).ptr;
    if (code && v->ret->bad++ == 0)
        v->ret->first = *err;
    v->ret->events += s->events;
    return TIDE_OK;
}

enum tide_code verification_run(tide_store *store, const char *const *ids, tide_progress_fn *progress, void *arg,
                                struct verification *ret, struct tide_err *err)
{
    struct verifying v = {.ret = ret, .progress = progress, .arg = arg};
    struct tide_err unlisted = {0};
    enum tide_code code = TIDE_OK;

    *ret = (struct verification){.arena = ARENA_INIT};
    for (size_t i = 0; ids && ids[i]; i++)
        add_id(&v, ids[i]);
    if (!ids)
        code = tide_session_list(store, NULL, on_session, &v, &unlisted);
    if (code && !is_damage(code))
        return tide_err_copy(err, &unlisted);
    ret->ok = !code;
    for (size_t i = 0; i < ret->n; i++)
        if (verify_one(&v, store, !ids, &ret->sessions[i], err))
            return err->code;
    if (code && !ret->bad)
        ret->first = unlisted;
    ret->ok = ret->ok && !ret->bad;
    return TIDE_OK;
}

void verification_done(struct verification *v)
{
    free(v->sessions);
    arena_done(&v->arena);
}
