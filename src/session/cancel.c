/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancelling always succeeds: the process behind the run is asked first; one that does not answer in time loses its lease,
 * and the run is ended here. Where nobody is behind it, it is ended at once.
 */
#include "session/run.h"
#include "session/token.h"

#define CANCEL_WAIT_MS 2000
#define CANCEL_LOOK_MS 20

struct cancelling {
    struct tide_session *s;
    const struct cause *request;
    const char *reason;
    int64_t until_ns; /* 0: not asked yet */
    int wait_ms;
    enum tide_cancelled how;
    bool held; /* the store decides, not the clock of its lease: it may be another handle of this process */
    bool forced, done;
};

static void draft_cancel_request(struct draft *d, const struct cancelling *c)
{
    draft_open(d, "cancel.requested");
    cause_put(&d->out, c->request);
    draft_text(d, "reason", c->reason);
    draft_close(d);
}

/* Asks the process behind it. */
static enum tide_code ask_holder(struct cancelling *c, struct tide_err *err)
{
    struct store *store = c->s->store;
    struct draft d = DRAFT_INIT;
    enum tide_code code;

    draft_cancel_request(&d, c);
    code = tide_session_input((tide_store *)(void *)store, c->s->head.id, -1, d.events, d.n, NULL, err);
    draft_done(&d);
    c->until_ns = store->env->ops->mono_ns(store->env) + (int64_t)c->wait_ms * 1000000;
    return code;
}

/* Ends the run here. */
static enum tide_code end_it(struct cancelling *c, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    const struct run *r = &c->s->state->ledger.run;
    enum tide_code code;

    if (!c->until_ns)
        draft_cancel_request(&d, c);
    token_moved(&d, "token.revoked", r, "cancelled", NULL);
    draft_open(&d, "run.cancelled");
    draft_text(&d, "run_id", r->run_id);
    draft_text(&d, "reason", c->forced ? "forced" : "requested");
    draft_close(&d);
    code = session_append(c->s, TIDE_APPEND_RELEASE, d.events, d.n, NULL, err);
    draft_done(&d);
    if (!code) {
        c->how = c->forced ? TIDE_CANCEL_FORCED : TIDE_CANCEL_DONE;
        c->done = true;
    }
    c->held = code == TIDE_HELD;
    return code == TIDE_HELD || code == TIDE_CONFLICT ? TIDE_OK : code; /* somebody came between: look again */
}

static enum tide_code cancel_look(struct cancelling *c, struct tide_err *err)
{
    struct env *env = c->s->store->env;
    enum tide_code code = session_sync(c->s, err);
    enum run_end end;

    if (code)
        return code;
    end = c->s->state->ledger.run.end;
    if (end != RUN_OPEN && end != RUN_INTERRUPTED) {
        c->how = c->until_ns ? TIDE_CANCEL_ANSWERED : TIDE_CANCEL_NOTHING;
        c->done = true;
        return TIDE_OK;
    }
    if (c->forced || (!session_held_alive(c->s) && !c->held))
        return end_it(c, err);
    if (!c->until_ns)
        return ask_holder(c, err);
    if (env->ops->mono_ns(env) >= c->until_ns) {
        /* The lease first, no matter who is appending: then nobody comes between any more. */
        code = session_append(c->s, SESSION_APPEND_FORCE | TIDE_APPEND_ANY, NULL, 0, NULL, err);
        c->forced = code == TIDE_OK;
        return code;
    }
    env->ops->sleep_ms(env, CANCEL_LOOK_MS);
    return TIDE_OK;
}

enum tide_code session_cancel(tide_store *store, const char *id, const struct cause *q, const char *reason, int wait_ms,
                              enum tide_cancelled *ret_how, struct tide_err *err)
{
    struct cancelling c = {.request = q, .reason = reason, .wait_ms = wait_ms > 0 ? wait_ms : CANCEL_WAIT_MS};
    enum tide_code code;

    ERR_LOCAL(err);
    code = tide_session_open(store, id, TIDE_SESSION_APPEND, &c.s, err);
    if (code)
        return code;
    while (!code && !c.done) {
        code = cancel_look(&c, err);
        if (code == TIDE_FENCED) { /* another cancels it as well, by force */
            c.forced = false;
            tide_session_close(TAKE(c.s));
            code = tide_session_open(store, id, TIDE_SESSION_APPEND, &c.s, err);
        }
    }
    if (!code && ret_how)
        *ret_how = c.how;
    tide_session_close(c.s);
    return code;
}

enum tide_code tide_session_cancel(tide_store *store, const char *id, const char *by, const char *reason, int wait_ms,
                                   enum tide_cancelled *ret_how, struct tide_err *err)
{
    struct cause q = {.by = ""};

    ERR_LOCAL(err);
    by = by && *by ? by : "local";
    if (strlen(by) >= sizeof q.by)
        return tide_fail(err, TIDE_INVALID, "cancel: who asks has at most %zu bytes", sizeof q.by - 1);
    memcpy(q.by, by, strlen(by) + 1);
    return session_cancel(store, id, &q, reason, wait_ms, ret_how, err);
}
