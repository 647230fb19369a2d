/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store cannot do now is waited for, as long as a run of the session is begun or continues: a full disk, a failed read
 * or sync, a writer that was stopped. One place for every kind of run, and for reads as well as appends. Nobody waits twice:
 * what is tried inside of a try fails at once, and the outer one tries again.
 */
#include "base/log.h"
#include "base/invariant.h"
#include "session/session_handle.h"

#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 2000

bool session_is_trouble(enum tide_code code)
{
    return code == TIDE_FULL || code == TIDE_IO || code == TIDE_UNKNOWN || code == TIDE_BUSY || code == TIDE_READ_ONLY;
}

void session_be_patient(struct tide_session *s, tide_trouble_fn *told, void *arg)
{
    s->patience = (struct patience){.on = true, .told = told, .arg = arg};
}

void session_be_quick(struct tide_session *s)
{
    s->patience = (struct patience){.on = false};
}

bool session_hurry(struct tide_session *s)
{
    bool before = s->patience.hurry;

    s->patience.hurry = true;
    return before;
}

enum tide_code trouble_hold(const struct store_pause *t, session_try_fn *fn, void *arg, struct tide_err *err)
{
    int64_t waited = 0, pause = PAUSE_MIN_MS;
    struct tide_err why = {0};
    enum tide_code code;

    while (t->passes(code = fn(arg, &why))) {
        if (!waited)
            log_write(TIDE_LOG_WARN, "paused until the store can be written", log_text("store", t->store),
                      log_text("session", t->session), log_text("code", tide_code_name(code)),
                      log_text("why", why.msg));
        if (t->told && t->told(t->arg, &why, waited))
            break;
        t->env->ops->sleep_ms(t->env, (int)pause);
        waited += pause;
        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
    if (code)
        return tide_err_copy(err, &why);
    if (waited)
        log_write(TIDE_LOG_WARN, "the store can be written again", log_text("store", t->store),
                  log_text("session", t->session));
    if (waited && t->told)
        (void)t->told(t->arg, NULL, waited);
    return TIDE_OK;
}

/* A session that was opened for reading only stays so. */
static bool may_hold(const struct tide_session *s)
{
    return s->patience.on && !s->patience.hurry && !s->store->read_only && s->flags & TIDE_SESSION_APPEND;
}

enum tide_code session_hold(struct tide_session *s, session_try_fn *fn, void *arg, struct tide_err *err)
{
    struct patience *p = &s->patience;
    const struct store_pause t = {s->store->env, s->store->url, s->head.id, session_is_trouble, p->told, p->arg};
    enum tide_code code;

    if (!may_hold(s))
        return fn(arg, err);
    p->hurry = true;
    code = trouble_hold(&t, fn, arg, err);
    p->hurry = false;
    return code;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

struct reading {
    struct tide_session *s;
    const struct head *head;
    int64_t from, to;
    store_event_fn *fn;
    void *arg;
};

static int hand_on(void *arg, const struct event *ev)
{
    struct reading *r = arg;

    INVARIANT(ev->seq >= r->from); /* in order, and nothing twice, also over several tries */
    r->from = ev->seq + 1;         /* a further try continues behind it */
    return r->fn(r->arg, ev);
}

static enum tide_code try_read(void *arg, struct tide_err *err)
{
    struct reading *r = arg;

    return store_read(r->s->store, r->head, r->from, r->to, hand_on, r, err);
}

enum tide_code session_read(struct tide_session *s, const struct head *head, int64_t from, int64_t to,
                            store_event_fn *fn, void *arg, struct tide_err *err)
{
    struct reading r = {s, head, from, to, fn, arg};

    return s->patience.told ? session_hold(s, try_read, &r, err) : try_read(&r, err);
}

/* ---- opening and appending, held ---- */

struct opening {
    struct tide_session *s;
    const char *id; /* or a prefix of it */
};

static enum tide_code try_open(void *arg, struct tide_err *err)
{
    struct opening *o = arg;
    enum tide_code code = session_resolve(o->s->store, str_from(o->id), o->s->head.id, err);

    return code ? code : session_sync(o->s, err);
}

enum tide_code session_open_held(tide_store *store, const char *id, tide_trouble_fn *told, void *arg,
                                 tide_session **ret_session, struct tide_err *err)
{
    struct opening o = {session_new(store_of(store), TIDE_SESSION_APPEND), id};
    enum tide_code code;

    session_be_patient(o.s, told, arg);
    code = session_hold(o.s, try_open, &o, err);
    session_be_quick(o.s);
    if (code)
        session_free(o.s);
    else
        *ret_session = o.s;
    return code;
}

struct putting {
    struct tide_session *s;
    const struct tide_new_event *event;
    struct event like; /* as it is stored */
    int64_t before;
    bool unknown, found; /* an earlier try may have stored it; it has */
};

static int is_put(void *arg, const struct event *ev)
{
    struct putting *p = arg;

    p->found = str_eq(ev->kind, p->like.kind) && str_eq(ev->body, p->like.body);
    return p->found;
}

static enum tide_code try_put(void *arg, struct tide_err *err)
{
    struct putting *p = arg;
    enum tide_code code = p->unknown ? session_sync(p->s, err) : TIDE_OK;

    if (!code && p->unknown && p->s->head.last_seq > p->before)
        code = session_read(p->s, &p->s->head, p->before + 1, 0, is_put, p, err);
    if (code || p->found)
        return code;
    code = tide_session_append(p->s, TIDE_APPEND_ANY, p->event, 1, NULL, err);
    p->unknown = code == TIDE_UNKNOWN;
    return code;
}

enum tide_code session_append_held(struct tide_session *s, const struct tide_new_event *event, tide_trouble_fn *told,
                                   void *arg, struct tide_err *err)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct putting p = {.s = s, .event = event, .before = tide_session_last_seq(s)};
    enum tide_code code = event_check(s->store, &arena, event, false, &p.like, NULL, err);

    if (code)
        return code;
    session_be_patient(s, told, arg);
    code = session_hold(s, try_put, &p, err);
    session_be_quick(s);
    return code;
}
