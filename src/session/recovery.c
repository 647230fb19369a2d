/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: writes down what has happened to sessions while nobody was there to do it. It reads only the live ones. Each is
 * loaded, judged by settle.h, and appended to under a lease taken and given back in that same append, guarded by the seq it
 * was judged at: if another process was faster, the append is refused and there is nothing left to do. Many sessions share
 * a commit.
 */
#include <inttypes.h>

#include "base/log.h"
#include "base/invariant.h"
#include "session/notify.h"
#include "session/session_file.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/status.h"
#include "store/origin.h"

#define PIECE 256 /* sessions judged before a commit */
#define MANY 64

/* A live session as the store handed it out. */
struct found {
    char id[TIDE_ID_SIZE];
    int64_t wake_ms;
};

/* One that was judged. */
struct judged {
    struct batch *batch; /* NULL: nothing to write */
    enum settled settled;
    struct tide_recovered what;
    struct status status;
    char id[TIDE_ID_SIZE], reason[64];
    bool tell;
    bool notify; /* something of it is to be sent now */
};

struct recovering {
    struct store *store;
    unsigned flags;
    tide_recovered_fn *fn;
    void *arg;
    int64_t now_ms;
    struct found *found;
    size_t found_n, found_cap;
    struct judged piece[PIECE];
    size_t n;
    struct tide_recovery out;
    bool stop, notify;
    struct tide_err damaged; /* the first session that could not be read */
};

static int take_live(void *arg, const struct store_entry *entry, int64_t wake_ms)
{
    struct recovering *m = arg;

    MEM_ROOM(m->found, m->found_n, m->found_cap);
    m->found[m->found_n].wake_ms = wake_ms;
    memcpy(m->found[m->found_n++].id, entry->head->id, sizeof entry->head->id);
    return 0;
}

/* ---- judging --------------------------------------------------------------------------------------------------------- */

enum tide_code recovery_batch(struct store *store, const struct head *h, struct state *s, const struct draft *d,
                              struct batch **ret, struct tide_err *err)
{
    struct event events[DRAFT_EVENTS];
    struct arena a = ARENA_INIT, scratch = ARENA_INIT;
    struct buf summary = BUF_INIT(SIZE_MAX / 4);
    enum tide_code code = TIDE_OK;
    struct batch *b;

    INVARIANT(d->n <= DRAFT_EVENTS);
    for (size_t i = 0; i < d->n && !code; i++) {
        code = event_check(store, &a, &d->events[i], true, &events[i], NULL, err);
        if (!code) {
            events[i].seq = s->seq + 1;
            state_apply(s, &events[i], &scratch);
        }
    }
    if (!code) {
        state_encode(&summary, s, STATE_SUMMARY);
        b = batch_new(str_from(h->id), BATCH_ACQUIRE | BATCH_RELEASE | (settle_is_live(s) ? BATCH_LIVE : 0u), events,
                      d->n, STR(""), buf_view(&summary));
        b->expect_seq = h->last_seq;
        b->caches_seq = h->last_seq + (int64_t)d->n;
        b->wake_ms = settle_wake_ms(s);
        session_file_attach(b, store, s, h);
        *ret = b;
    }
    buf_done(&summary);
    arena_done(&a);
    arena_done(&scratch);
    return code;
}

static const enum tide_recovered_action actions[] = {[SETTLED_INTERRUPTED] = TIDE_RECOVERED_INTERRUPTED,
                                                     [SETTLED_TIMED_OUT] = TIDE_RECOVERED_TIMED_OUT,
                                                     [SETTLED_TOKEN_EXPIRED] = TIDE_RECOVERED_TOKEN_EXPIRED,
                                                     [SETTLED_ANSWERED] = TIDE_RECOVERED_ANSWERED};

/* A sleep that is over, or a message that a run could take. */
static bool is_due(const struct state *s, int64_t now_ms)
{
    const struct run *r = &s->ledger.run;

    if (settle_delivers(s))
        return true;
    return r->end == RUN_OPEN && r->waiting && r->due_ms && r->due_ms <= now_ms;
}

/* What is reported about it: the status once the events are written. */
static void describe_judged(struct recovering *m, struct judged *j, const struct head *h, const struct state *s)
{
    const struct run *r = &s->ledger.run;

    status_derive(&j->status, s, false, m->now_ms);
    if (!origin_is_ours(m->store, h))
        status_untrusted(&j->status);
    j->what = (struct tide_recovered){
        .session_id = j->id,
        .action = j->settled             ? actions[j->settled]
                  : is_due(s, m->now_ms) ? TIDE_RECOVERED_DUE
                                         : TIDE_RECOVERED_RESUMABLE,
        .status = j->status.status,
        .why = j->status.why,
        .resumes = (int)s->ledger.chain_resumes,
        .has_program = ledger_has_program(&s->ledger) || settle_delivers(s), /* or a chat that begins with a message */
        .trusted = !j->status.untrusted,
        .by_person = r->by_person || s->ledger.cancel_seq > r->active_seq,
        .seq = r->end == RUN_OPEN ? r->since_seq : r->ended_seq,
    };
    j->tell = j->settled || is_due(s, m->now_ms) ||
              (m->flags & TIDE_RECOVER_ALL && r->end == RUN_INTERRUPTED && j->status.is_resumable);
}

static int apply_rest(void *state, const struct event *ev)
{
    struct arena scratch = ARENA_INIT;

    state_apply(state, ev, &scratch);
    arena_done(&scratch);
    return 0;
}

static enum tide_code judge_session(struct recovering *m, const struct head *h, int64_t wake_ms, struct judged *j,
                                    struct tide_err *err)
{
    AUTO(state_freep) struct state *s = NULL;
    struct draft d = DRAFT_INIT;
    enum tide_code code = state_load(m->store, h, h->last_seq, &s, NULL, err);

    /* Of another program's session, in a dry run: as it would be taken over. */
    code = code ? code : store_foreign_rest(m->store, h, apply_rest, s, err);
    if (code)
        return code;
    memcpy(j->id, h->id, sizeof j->id);
    j->settled = settle_lapsed(&d, s, m->now_ms);
    INVARIANT(!j->settled == !d.n); /* what happened is said by events, and nothing else is */
    /* Also the lease of a dead process with no run behind it, or a time to look that is not right: mended, so that it is
     * not seen again. */
    if (j->settled || h->held || !settle_is_live(s) || wake_ms != settle_wake_ms(s)) {
        code = history_prove(m->store, h, h->last_seq, err);
        code = code ? code : recovery_batch(m->store, h, s, &d, &j->batch, err);
    }
    draft_done(&d);
    if (!code)
        describe_judged(m, j, h, s);
    j->notify = !code && notify_is_due(s, m->now_ms) && !j->status.untrusted;
    /* The reason is a text of the state or a constant: keep a copy that outlives the state. */
    if (!code && j->status.reason) {
        snprintf(j->reason, sizeof j->reason, "%s", j->status.reason);
        j->what.reason = j->reason;
    }
    return code;
}

/* ---- writing, reporting
 * ----------------------------------------------------------------------------------------------- */

/* TIDE_OK also when another process was faster: then there is nothing to report. */
static enum tide_code take_outcome(struct recovering *m, struct judged *j, struct tide_err *err)
{
    int64_t *counts[] = {NULL, &m->out.interrupted, &m->out.timed_out, &m->out.tokens_expired, &m->out.timed_out};
    enum tide_code code = j->batch ? j->batch->code : TIDE_OK;

    if (code == TIDE_CONFLICT || code == TIDE_HELD || code == TIDE_NOT_FOUND || code == TIDE_FENCED)
        return TIDE_OK;
    if (code)
        return tide_err_copy(err, &j->batch->err);
    m->notify |= j->notify;
    if (j->settled)
        ++*counts[j->settled];
    else if (j->what.action == TIDE_RECOVERED_DUE)
        m->out.due++;
    if (j->settled && !(m->flags & TIDE_RECOVER_DRY_RUN))
        log_write(TIDE_LOG_INFO, "recovered", log_text("store", m->store->url), log_text("session", j->id),
                  log_text("action", tide_recovered_action_name(j->what.action)),
                  log_text("status", tide_status_name(j->what.status)), log_text("reason", j->what.reason));
    if (j->tell && m->fn && !m->stop)
        m->stop = m->fn(m->arg, &j->what) != 0;
    return TIDE_OK;
}

static enum tide_code flush_judged(struct recovering *m, struct tide_err *err)
{
    bool dry = m->flags & TIDE_RECOVER_DRY_RUN;
    enum tide_code code = TIDE_OK, one;
    struct tide_err later;

    for (size_t i = 0; i < m->n; i++) {
        if (m->piece[i].batch && !dry)
            group_submit(m->store->group, m->piece[i].batch, GROUP_AWAITED);
    }
    for (size_t i = 0; i < m->n; i++) {
        if (m->piece[i].batch && !dry)
            group_wait(m->store->group, m->piece[i].batch);
    }
    for (size_t i = 0; i < m->n; i++) {
        one = take_outcome(m, &m->piece[i], code ? &later : err);
        code = code ? code : one;
        batch_free(m->piece[i].batch);
    }
    memset(m->piece, 0, m->n * sizeof m->piece[0]);
    m->n = 0;
    return code;
}

static enum tide_code look_at(struct recovering *m, const struct found *f, struct tide_err *err)
{
    struct head h;
    enum tide_code code = store_head(m->store, str_from(f->id), &h, err);

    if (!code && h.unverified && !(m->flags & TIDE_RECOVER_DRY_RUN)) {
        code = session_take_over(m->store, f->id, err);
        code = code ? code : store_head(m->store, str_from(f->id), &h, err);
    }
    if (code == TIDE_NOT_FOUND)
        return TIDE_OK; /* deleted meanwhile */
    if (!code && h.held && h.holder_alive)
        return TIDE_OK; /* taken meanwhile */
    INVARIANT(m->n < PIECE);
    m->out.looked_at++;
    code = code ? code : judge_session(m, &h, f->wake_ms, &m->piece[m->n], err);
    if (code == TIDE_NOT_FOUND)
        return TIDE_OK;         /* as before: between two looks at it */
    if (code == TIDE_CORRUPT) { /* in nobody else's way, and said at the end */
        log_write(TIDE_LOG_ERROR, "a session cannot be recovered", log_text("store", m->store->url),
                  log_text("session", f->id), log_text("why", err->msg));
        if (!m->damaged.code)
            m->damaged = *err;
        return TIDE_OK;
    }
    if (code)
        return code;
    m->n++;
    return m->n == PIECE ? flush_judged(m, err) : TIDE_OK;
}

static enum tide_code recover_live(struct recovering *m, struct tide_err *err)
{
    int64_t until = m->flags & TIDE_RECOVER_ALL ? INT64_MAX : m->now_ms;
    struct tide_err later;
    enum tide_code code = store_live(m->store, until, take_live, m, &m->out.next_ms, err), last;

    if (code == TIDE_CORRUPT) {
        m->damaged = *err;
        code = TIDE_OK;
    }
    for (size_t i = 0; i < m->found_n && !code && !m->stop; i++)
        code = look_at(m, &m->found[i], err);
    last = flush_judged(m, code ? &later : err);
    if (m->notify && !(m->flags & TIDE_RECOVER_DRY_RUN))
        notify_tell(m->store);
    code = code ? code : last;
    if (!code && m->damaged.code)
        code = tide_err_copy(err, &m->damaged);
    return code;
}

enum tide_code tide_store_recover(tide_store *store, unsigned flags, tide_recovered_fn *fn, void *arg,
                                  struct tide_recovery *ret_recovery, struct tide_err *err)
{
    struct recovering *m = mem_zero(sizeof *m);
    enum tide_code code;
    bool wrote_many;

    ERR_LOCAL(err);
    m->store = store_of(store);
    m->flags = flags;
    m->fn = fn;
    m->arg = arg;
    m->now_ms = env_now_ms(m->store->env);
    if (m->store->read_only && !(flags & TIDE_RECOVER_DRY_RUN))
        code = tide_fail(err, TIDE_READ_ONLY, "the store was opened for reading only");
    else
        code = recover_live(m, err);
    if (ret_recovery)
        *ret_recovery = m->out;
    wrote_many = m->out.interrupted + m->out.timed_out >= MANY;
    free(m->found);
    free(m);
    if (wrote_many) /* a server that continues does not keep the memory that this took */
        mem_give_back();
    return code ? tide_wrap(err, "recover") : TIDE_OK;
}
