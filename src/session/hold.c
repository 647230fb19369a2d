/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store cannot do now is waited for, as long as a run of the session is begun or goes on: a full disk, a failed read
 * or sync, a writer that was stopped. One place for every kind of run, and for reads as well as appends. Nobody waits twice:
 * what is tried inside of a try fails at once, and the outer one tries again.
 */
#include "base/log.h"
#include "base/invariant.h"
#include "session/session.h"

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
static bool waits(const struct tide_session *s)
{
    return s->patience.on && !s->patience.hurry && !s->store->read_only && s->flags & TIDE_SESSION_APPEND;
}

enum tide_code session_hold(struct tide_session *s, session_try_fn *fn, void *arg, struct tide_err *err)
{
    struct patience *p = &s->patience;
    const struct store_pause t = {s->store->env, s->store->url, s->head.id, session_is_trouble, p->told, p->arg};
    enum tide_code code;

    if (!waits(s))
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
    r->from = ev->seq + 1;         /* a further try goes on behind it */
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
