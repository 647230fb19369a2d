/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run appends, and what happens when the store cannot take it. By default the run is held at that point and continues
 * by itself when the store is back. A run with `continue` keeps pure work in a bounded buffer meanwhile, each
 * event flagged; the buffer goes to the store first, in order, as soon as it can. If another took the lease by then, it is
 * written to a file of its own and named: nothing of it is passed off as stored.
 */
#include "session/run.h"

#include <inttypes.h>

#include "base/invariant.h"
#include "base/log.h"
#include "session/redact.h"

struct tide_run *run_new(struct tide_session *s, const struct tide_run_options *opt)
{
    struct tide_run *r = mem_zero(sizeof *r);

    r->s = s;
    r->flags = opt->flags;
    session_be_patient(s, opt->trouble, opt->trouble_arg);
    for (const char *const *name = opt->retry; name && *name; name++)
        map_set_text(&r->retry, str_from(*name), str_from(*name));
    for (const char *const *name = opt->happened; name && *name; name++)
        map_set_text(&r->happened, str_from(*name), str_from(*name));
    return r;
}

static void attempt_free(void *p)
{
    struct attempt *a = p;

    free(a->key);
    free(a);
}

void run_free(struct tide_run *r)
{
    chain_done(&r->done);
    free(r->changed_step);
    map_done(&r->uses, free);
    map_done(&r->active, attempt_free);
    map_done(&r->retry, free);
    map_done(&r->happened, free);
    map_done(&r->overlay, free);
    degraded_done(r);
    run_queue_done(r);
    session_be_quick(r->s);
    free(r);
}

const char *tide_run_id(const tide_run *r)
{
    return r->id;
}

enum tide_code run_usable(struct tide_run *r, struct tide_err *err)
{
    if (r->s->fenced) {
        tide_fail_session(err, TIDE_FENCED, r->s->head.id,
                          ": the lease of this run was taken over, or the session was deleted");
        return tide_hint(err, TIDE_ACTION_WHY, r->s->head.id);
    }
    if (r->over)
        return tide_fail(err, TIDE_INVALID, "run '%s' is over", r->id);
    if (!r->starting && !r->s->owner.pending &&
        !r->s->owner.epoch) /* an append must not take a lease that its caller gave away */
        return tide_fail_session(err, TIDE_FENCED, r->s->head.id, ": the lease of run '%s' was released", r->id);
    return TIDE_OK;
}

/* ---- names and keys ---------------------------------------------------------------------------------------------- */

enum tide_code run_name_check(const struct tide_run *r, const char *what, const char *name, struct tide_err *err)
{
    struct str s = str_from(name);

    if (s.len == 0 || s.len > 128 || !str_is_utf8(s, NULL))
        return tide_fail(err, TIDE_INVALID, "the name of a %s has 1 to 128 bytes of UTF-8", what);
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
            return tide_fail(err, TIDE_INVALID, "the name of a %s has no control characters", what);
    }
    return redact_refuse_name(r->s->store, what, name, err);
}

static int64_t *use_count(struct tide_run *r, const char *what, const char *within, const char *name)
{
    const char *parts[] = {what, " ", within ? within : "", " ", name};
    char text[256];
    struct str key = {text, 0};
    int64_t *n;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t len = strlen(parts[i]);

        INVARIANT(len <= sizeof text - key.len); /* names were checked */
        memcpy(text + key.len, parts[i], len);
        key.len += len;
    }
    n = map_get(&r->uses, key);
    if (n)
        return n;
    map_set_int(&r->uses, key, 0);
    return map_get(&r->uses, key);
}

char *run_key(struct tide_run *r, const char *what, const char *within, const char *name)
{
    struct buf key = BUF_INIT(512);

    buf_reserve(&key, 128);
    buf_add_str(&key, str_from(r->chain_id));
    if (within) {
        buf_add_char(&key, '/');
        buf_add_str(&key, str_from(within));
    }
    buf_add_char(&key, '/');
    buf_add_str(&key, str_from(name));
    buf_add_char(&key, '/');
    buf_add_int(&key, ++*use_count(r, what, within, name));
    return buf_take(&key);
}

void run_unuse(struct tide_run *r, const char *what, const char *within, const char *name)
{
    int64_t *n = use_count(r, what, within, name);

    INVARIANT(*n > 0);
    --*n;
}

/* ---- appending --------------------------------------------------------------------------------------------------- */

struct wanted {
    struct event like;  /* as it is stored */
    int64_t seq, epoch; /* 0: not found */
};

static int is_wanted(void *arg, const struct event *ev)
{
    struct wanted *w = arg;

    if (str_eq(ev->kind, w->like.kind) && str_eq(ev->body, w->like.body)) {
        w->seq = ev->seq;
        w->epoch = ev->epoch;
    }
    return w->seq != 0;
}

/* The lease of a run whose last event is stored: still ours, or given back with that. */
static enum tide_code give_back(struct tide_session *s, struct tide_err *err)
{
    if (s->head.held && s->head.epoch == s->owner.epoch)
        return session_append(s, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, NULL, 0, NULL, err);
    session_forget_lease(s);
    return TIDE_OK;
}

/*
 * After an append of unknown outcome: is it there? Only we may append what a run does, so one like it is ours. Of a start the
 * event that names the run is looked for; the lease that was taken with it is ours as well.
 */
static enum tide_code find_landed(struct tide_run *r, const struct trying *t, bool *ret_found, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct wanted w = {.seq = 0};
    struct tide_session *s = r->s;
    enum tide_code code;

    INVARIANT(t->ours < t->n);
    code = session_sync(s, err);
    code = code ? code : event_check(s->store, &a, &t->events[t->ours], true, &w.like, NULL, err);
    if (!code && s->head.last_seq > t->before)
        code = session_read(s, &s->head, t->before + 1, 0, is_wanted, &w, err);
    *ret_found = w.seq != 0;
    if (code || !w.seq)
        return code;
    r->appended_seq = w.seq + (int64_t)(t->n - t->ours) - 1;
    if (t->flags & TIDE_APPEND_RELEASE)
        return give_back(s, err);
    return r->starting && !s->owner.epoch ? session_regain_lease(s, w.epoch, err) : TIDE_OK;
}

static enum tide_code append_now(struct tide_run *r, struct trying *t, struct tide_err *err)
{
    bool found = false;
    enum tide_code code = t->unknown ? find_landed(r, t, &found, err) : TIDE_OK;

    if (code || found)
        return code;
    if (t->unknown && !(t->flags & TIDE_APPEND_ANY) && r->s->head.last_seq != t->before) {
        t->unknown = false; /* it is not there, and others have come since: the caller that decided must decide again */
        return tide_fail_session(err, TIDE_CONFLICT, r->s->head.id, "has changed meanwhile");
    }
    code = session_append(r->s, t->flags, t->events, t->n, &r->appended_seq, err);
    t->unknown = code == TIDE_UNKNOWN;
    return code;
}

enum tide_code run_try(struct tide_run *r, struct trying *t, struct tide_err *err)
{
    bool before = session_hurry(r->s);
    enum tide_code code = append_now(r, t, err);

    r->s->patience.hurry = before;
    return code;
}

struct held {
    struct tide_run *r;
    struct trying *t;
};

static enum tide_code try_append(void *arg, struct tide_err *err)
{
    struct held *h = arg;

    return append_now(h->r, h->t, err);
}

enum tide_code run_try_held(struct tide_run *r, struct trying *t, struct tide_err *err)
{
    struct held h = {r, t};
    enum tide_code code = session_hold(r->s, try_append, &h, err);

    r->unsure |= session_is_trouble(code) && t->unknown;
    return code;
}

enum tide_code run_append(struct tide_run *r, unsigned flags, struct draft *d, bool pure, struct tide_err *err)
{
    struct trying t = {.flags = flags, .events = d->events, .n = d->n};
    enum tide_code code;

    INVARIANT(!r->over && d->n > 0);
    if (run_queue_takes(r) && flags == TIDE_APPEND_ANY)
        return run_append_behind(r, d, pure, err);
    code = run_flush(r, err); /* what was queued comes first */
    INVARIANT(code || !r->queue.n);
    redact_draft(r->s->store, d); /* what is looked for afterwards, or kept aside, is what is stored */
    if (code)
        return code;
    if (pure && degraded_may_take(r, d))
        return degraded_append(r, &t, d, err);
    code = run_settle(r, err);
    t.before = tide_session_last_seq(r->s);
    return code ? code : run_try_held(r, &t, err);
}

/* ---- looking, ending --------------------------------------------------------------------------------------------- */

static enum tide_code look_for_signs(struct tide_run *r, unsigned *ret_signs, struct tide_err *err)
{
    struct store *store = r->s->store;
    int64_t version = 0;
    enum tide_code code = store_change(store, &version, err);

    if (!code && version != r->seen_version) {
        code = session_sync(r->s, err);
        if (!code)
            r->seen_version = version;
        if (code == TIDE_NOT_FOUND || (!code && (r->s->fenced || r->s->head.epoch != r->s->owner.epoch))) {
            r->s->fenced = true;
            return run_usable(r, err);
        }
    }
    *ret_signs = 0;
    if (r->s->state) {
        const struct ledger *l = &r->s->state->ledger;

        *ret_signs |= l->cancel_seq > l->run.active_seq ? TIDE_SIGN_CANCEL : 0u;
        *ret_signs |= l->queue.live ? TIDE_SIGN_MESSAGE : 0u;
    }
    return code; /* who could not look must not act as if it had */
}

enum tide_code tide_run_look(tide_run *r, unsigned *ret_signs, struct tide_err *err)
{
    enum tide_code code;
    bool before;

    ERR_LOCAL(err);
    code = run_usable(r, err);
    code = code ? code : run_flush(r, err);
    if (code)
        return code;
    before = session_hurry(r->s); /* it is called again soon: nobody is held by a look */
    code = look_for_signs(r, ret_signs, err);
    r->s->patience.hurry = before;
    return code;
}

static const struct ending {
    enum tide_outcome outcome;
    const char *kind;
    enum run_end end;
} endings[] = {
    {TIDE_OUTCOME_COMPLETED, "run.completed", RUN_COMPLETED},
    {TIDE_OUTCOME_FAILED, "run.failed", RUN_FAILED},
    {TIDE_OUTCOME_CANCELLED, "run.cancelled", RUN_CANCELLED},
    {TIDE_OUTCOME_INTERRUPTED, "run.interrupted", RUN_INTERRUPTED},
};

static enum tide_code draft_end(struct tide_run *r, const struct ending *e, const struct tide_run_result *result,
                                struct draft *d, struct tide_err *err)
{
    struct json_out *o = draft_open(d, e->kind);
    bool cut = e->outcome == TIDE_OUTCOME_INTERRUPTED;
    enum tide_code code;

    draft_text(d, "run_id", r->id);
    draft_text(d, "reason", result->reason);
    draft_error(d, result->error_code, result->error_message);
    if (cut || e->outcome == TIDE_OUTCOME_FAILED)
        json_out_kbool(o, STR("resumable"), !result->not_resumable);
    if (e->outcome == TIDE_OUTCOME_FAILED)
        draft_text(d, "changed_step", r->changed_step);
    code = draft_members(d, result->fields, NULL, err);
    draft_close(d);
    if (cut) {
        draft_open(d, "status.derived");
        draft_text(d, "status", tide_status_name(TIDE_STATUS_INTERRUPTED_STARTUP));
        draft_text(d, "reason", result->reason);
        draft_close(d);
    }
    return code;
}

static enum tide_code try_sync(void *session, struct tide_err *err)
{
    return session_sync(session, err);
}

/* How this run has ended in the log; NULL: it has not. */
static const struct ending *ended_as(const struct tide_run *r)
{
    const struct run *run = &r->s->state->ledger.run;

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (endings[i].end == run->end && run->run_id && strcmp(run->run_id, r->id) == 0)
            return &endings[i];
    }
    return NULL;
}

/*
 * An end that was given up with its outcome not known may be there: the same one again finds it and writes nothing, another
 * one is too late.
 */
static enum tide_code end_again(struct tide_run *r, const struct ending *e, struct tide_err *err)
{
    enum tide_code code = run_flush(r, err); /* it returns what failed of the queue; a sync would lose that */
    const struct ending *was;

    code = code ? code : session_hold(r->s, try_sync, r->s, err);
    was = code ? NULL : ended_as(r);
    if (!was || (was != e && r->s->head.epoch != r->s->owner.epoch))
        return code; /* of one that another ended, the append finds that its lease is lost */
    r->over = true;
    (void)!give_back(r->s, NULL); /* if it fails now, it goes with the session */
    return was == e ? TIDE_OK
                    : tide_fail(err, TIDE_CONFLICT, "it has ended already, as %s", tide_outcome_name(was->outcome));
}

static void log_end(const struct tide_run *r, const struct ending *e, const struct tide_run_result *result)
{
    const struct ledger *l = &r->s->state->ledger;
    enum tide_log_level level = e->end == RUN_FAILED ? TIDE_LOG_ERROR : TIDE_LOG_INFO;

    log_write(level, "run ended", RUN_FIELDS(r), log_text("outcome", tide_outcome_name(e->outcome)),
              log_text("reason", result->reason), log_text("code", result->error_code),
              log_text("why", result->error_message),
              log_number(l->input_tokens ? "input_tokens" : NULL, l->input_tokens),
              log_number(l->output_tokens ? "output_tokens" : NULL, l->output_tokens));
}

enum tide_code run_end_with(struct tide_run *r, struct draft *d, const struct tide_run_result *result,
                            struct tide_err *err)
{
    const struct ending *e = NULL;
    enum tide_code code = run_usable(r, err);

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (endings[i].outcome == result->outcome)
            e = &endings[i];
    }
    if (!code && !e)
        code = tide_fail(err, TIDE_INVALID, "a run ends completed, failed, cancelled or interrupted");
    if (!code && r->unsure)
        code = end_again(r, e, err);
    if (!code && !r->over) {
        code = draft_end(r, e, result, d, err);
        code = code ? code : run_append(r, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, d, false, err);
        if (!code) {
            r->over = true;
            log_end(r, e, result);
        }
    }
    INVARIANT(code || r->over);
    return code ? tide_wrap(err, "end run '%s'", r->id) : TIDE_OK;
}

enum tide_code tide_run_end(tide_run *r, const struct tide_run_result *result, struct tide_err *err)
{
    struct draft d = DRAFT_INIT;
    struct tide_run_result own;
    enum tide_code code;

    ERR_LOCAL(err);
    code = SIZED_READ(&own, tide_run_result, result, err);
    code = code ? code : run_end_with(r, &d, &own, err);
    draft_done(&d);
    return code;
}

/* Its end, or its wait, was given up with its outcome not known, and is stored after all. What is still not known is
 * left alone. */
static bool has_stopped(struct tide_run *r)
{
    struct tide_err err;
    const struct run *run;

    if (!r->unsure)
        return false;
    if (session_sync(r->s, &err))
        return true;
    run = &r->s->state->ledger.run;
    return run->end != RUN_OPEN || run->waiting;
}

void tide_run_close(tide_run *r)
{
    static const struct tide_run_result shutdown = {
        .size = sizeof shutdown, .outcome = TIDE_OUTCOME_INTERRUPTED, .reason = "shutdown"};

    if (!r)
        return;
    session_be_quick(r->s);
    if (!r->over && !r->s->fenced && !has_stopped(r)) {
        struct draft d = DRAFT_INIT;

        /* One try: closing does not wait for a store in trouble; recovery will write it down then. */
        if (!draft_end(r, &endings[3], &shutdown, &d, NULL) && !degraded_flush(r, false, &(struct tide_err){0}))
            (void)!session_append(r->s, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, d.events, d.n, NULL, NULL);
        draft_done(&d);
    }
    run_free(r);
}
