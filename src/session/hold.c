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

/* One that was opened for reading only stays so. */
static bool may_pass(const struct tide_session *s, enum tide_code code)
{
    return session_is_trouble(code) && !s->store->read_only && s->flags & TIDE_SESSION_APPEND;
}

enum tide_code session_hold(struct tide_session *s, session_try_fn *fn, void *arg, struct tide_err *err)
{
    struct env *env = s->store->env;
    struct patience *p = &s->patience;
    int64_t waited = 0, pause = PAUSE_MIN_MS;
    struct tide_err why = {0};
    enum tide_code code;

    if (!p->on || p->hurry)
        return fn(arg, err);
    p->hurry = true;
    while (may_pass(s, code = fn(arg, &why))) {
        if (!waited)
            log_write(TIDE_LOG_WARN, "paused until the store can be written", log_text("store", s->store->url),
                      log_text("session", s->head.id), log_text("code", tide_code_name(code)),
                      log_text("why", why.msg));
        if (p->told && p->told(p->arg, &why, waited))
            break;
        env->ops->sleep_ms(env, (int)pause);
        waited += pause;
        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
    p->hurry = false;
    if (code)
        return tide_err_copy(err, &why);
    if (waited)
        log_write(TIDE_LOG_WARN, "the store can be written again", log_text("store", s->store->url),
                  log_text("session", s->head.id));
    if (waited && p->told)
        (void)p->told(p->arg, NULL, waited);
    return TIDE_OK;
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
