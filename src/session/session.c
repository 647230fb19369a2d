/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's handle: opening, appending, flushing. The state is folded as events are queued, before they are durable, so
 * that decisions see them; when one fails, the state is thrown away and loaded from the store again. A snapshot travels in
 * the same transaction as the event it ends with, so it can never be ahead of the log.
 */
#include "session/session_handle.h"

#include <inttypes.h>

#include "base/id.h"
#include "base/invariant.h"
#include "session/notify.h"
#include "session/session_file.h"
#include "session/settle.h"
#include "session/status.h"

#define SNAPSHOT_MIN_BYTES (32 * 1024) /* of log between two snapshots, … */
#define SNAPSHOT_LAST_BYTES (4 * 1024) /* … and before the one that the next process to open it begins with */

void session_make_id(struct store *store, const char *prefix, char out[TIDE_ID_SIZE])
{
    unsigned char random[ID_RANDOM_BYTES];

    store->env->ops->random(store->env, random, sizeof random);
    id_make(out, prefix, env_now_ms(store->env), random);
}

/* After everything queued is finished: is the state what the store has, do we hold the lease? */
static void settle_append(struct tide_session *s, enum tide_code code)
{
    INVARIANT(!group_owes(&s->owner));
    s->acquiring = s->owner.epoch != 0;
    if (code == TIDE_FENCED)
        s->fenced = true;
    if (code == TIDE_UNKNOWN)
        s->unsettled = true;
    if (code || s->owner.next_seq != s->state->seq + 1)
        s->stale = true;
}

static enum tide_code sync_once(void *session, struct tide_err *err)
{
    struct tide_session *s = session;
    enum tide_code code = TIDE_OK;

    if (group_owes(&s->owner)) {
        code = group_flush(s->store->group, &s->owner, err);
        settle_append(s, code);
        s->lost |= code != TIDE_OK; /* returned to the present caller, which may not be the run that queued it */
        if (code && !(s->patience.on && session_is_trouble(code))) /* else its run gets it when it flushes */
            return code;
    }
    if (s->unsettled || s->store->unsettled) /* only a settled store knows what became of an append */
        code = store_settle(s->store, err);
    if (code && s->unsettled)
        return code; /* who did not append is served what there is */
    s->unsettled = false;
    code = store_head(s->store, str_from(s->head.id), &s->head, err);
    if (code)
        return code;
    if (s->state && !s->stale && s->state->seq <= s->head.last_seq) {
        code = state_catch_up(s->store, &s->head, &s->state, &s->cost, err);
    } else {
        struct state *anew = NULL;

        code = state_load(s->store, &s->head, s->head.last_seq, &anew, &s->cost, err);
        if (!code) {
            state_free(s->state);
            s->state = anew;
        }
    }
    if (!code && s->flags & TIDE_SESSION_APPEND && !s->owner.epoch) /* who holds it has done so */
        code = history_prove(s->store, &s->head, s->head.last_seq, err);
    s->stale = code != TIDE_OK; /* half caught up is not to be trusted, and there must be a state to hold */
    if (!code)
        s->owner.next_seq = s->state->seq + 1;
    return code;
}

enum tide_code session_sync(struct tide_session *s, struct tide_err *err)
{
    return s->patience.told ? session_hold(s, sync_once, s, err) : sync_once(s, err);
}

enum tide_code session_state(struct tide_session *s, int64_t seq, struct state **ret_own,
                             const struct state **ret_state, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    *ret_own = NULL;
    if (group_owes(&s->owner) || s->stale ||
        (seq > s->head.last_seq && seq < s->state->seq)) /* own appends moved past the head */
        code = session_sync(s, err);
    if (code)
        return code;
    if (seq < 0 || seq > s->state->seq)
        return tide_fail_session(err, TIDE_INVALID, s->head.id, "has no seq %" PRId64 ": it ends at %" PRId64, seq,
                                 s->state->seq);
    if (seq != 0 && seq != s->state->seq) {
        code = state_load(s->store, &s->head, seq, ret_own, NULL, err);
        *ret_state = *ret_own;
        return code;
    }
    *ret_state = s->state;
    return TIDE_OK;
}

struct tide_session *session_new(struct store *store, unsigned flags)
{
    struct tide_session *s = mem_zero(sizeof *s);

    s->store = store;
    s->flags = flags;
    return s;
}

void session_free(struct tide_session *s)
{
    INVARIANT(!s->owner.pending); /* the writer would report to it what became of them */
    redact_release(s->store, &s->hidden);
    state_free(s->state);
    arena_done(&s->parse);
    arena_done(&s->info_texts);
    arena_done(&s->checkpoint_texts);
    arena_done(&s->event_texts);
    free(s->info);
    free(s->checkpoint);
    free(s->event);
    free(s);
}

/* Folds what is about to be queued. The content of a rollback has to be loaded: the caller does it afterwards. */
static void fold_ahead(struct tide_session *s, struct checked *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct event *ev = &c->events[i];

        ev->seq = s->state->seq + 1;
        state_apply_parsed(s->state, ev, c->parsed[i].kind, c->parsed[i].body, &s->parse);
        s->cost.tail_bytes += ev->body.len + EVENT_OVERHEAD;
        if (c->parsed[i].kind && c->parsed[i].kind->flags & KIND_ROLLBACK)
            s->stale = true; /* content must be loaded at to_seq */
    }
}

/* Read back, it is the same state. */
static bool is_whole(const struct state *state, struct str encoded)
{
    AUTO(buf_done) struct buf again = BUF_INIT(SIZE_MAX / 4);
    AUTO(state_freep) struct state *read = NULL;

    if (state_decode(encoded, &read, NULL))
        return false;
    state_encode(&again, read, STATE_SNAPSHOT);
    return read->seq == state->seq && str_eq(buf_view(&again), encoded);
}

/* A snapshot is worth it when the log since the last one outweighs it: together they never more than double the log. */
static void snapshot_maybe(struct tide_session *s, bool closing, struct buf *out)
{
    size_t last = s->cost.snapshot_bytes, least = closing ? SNAPSHOT_LAST_BYTES : SNAPSHOT_MIN_BYTES;

    if (s->stale || s->cost.tail_bytes < least || s->cost.tail_bytes < last)
        return;
    state_encode(out, s->state, STATE_SNAPSHOT);
    INVARIANT_COSTLY(is_whole(s->state, buf_view(out)));
    if (out->len > s->cost.tail_bytes) { /* it has grown: not yet */
        s->cost.snapshot_bytes = out->len;
        buf_clear(out);
        return;
    }
    s->cost = (struct load_cost){s->state->seq, out->len, 0};
}

/* Gives the lease back; one whose run is open or was interrupted stays where recovery looks. */
static void release_flags(const struct tide_session *s, struct batch *b)
{
    b->flags |= BATCH_RELEASE;
    if (!s->state || !settle_is_live(s->state))
        return;
    b->flags |= BATCH_LIVE;
    b->wake_ms = settle_wake_ms(s->state);
}

/* Who releases the session leaves its session file behind, and who changes what is on it. */
static bool wants_session_file(const struct tide_session *s, unsigned flags, const struct checked *c)
{
    bool wants = flags & TIDE_APPEND_RELEASE;

    if (!store_can(s->store, STORE_SESSION_FILES) || s->stale)
        return false;
    for (size_t i = 0; i < c->n && !wants; i++)
        wants = session_file_changes(&c->events[i]);
    return wants;
}

struct batch *session_make_batch(struct tide_session *s, unsigned flags, struct checked *c)
{
    struct buf snapshot = BUF_INIT(SIZE_MAX / 4), summary = BUF_INIT(SIZE_MAX / 4);
    int64_t expect = s->owner.pending ? s->state->seq : s->owner.next_seq - 1, at = s->state->seq;
    struct batch *b;

    INVARIANT(s->flags & TIDE_SESSION_APPEND && !s->fenced);
    fold_ahead(s, c);
    snapshot_maybe(s, flags & TIDE_APPEND_RELEASE, &snapshot);
    if (flags & TIDE_APPEND_RELEASE && !s->stale)
        state_encode(&summary, s->state, STATE_SUMMARY);
    b = batch_new(str_from(s->head.id), 0, c->events, c->n, buf_view(&snapshot), buf_view(&summary));
    buf_done(&snapshot);
    buf_done(&summary);
    b->expect_seq = (flags & (TIDE_APPEND_ANY | TIDE_APPEND_DATA)) == TIDE_APPEND_ANY ? STORE_ANY_SEQ : expect;
    b->caches_seq = at + (int64_t)c->n;
    INVARIANT(s->state->seq == b->caches_seq); /* a snapshot is of the event that it travels with */
    if (wants_session_file(s, flags, c))
        session_file_attach(b, s->store, s->state, &s->head);
    b->owner = &s->owner;
    b->session_handle = s;
    if (!s->acquiring)
        b->flags |= BATCH_ACQUIRE;
    if (flags & SESSION_APPEND_FORCE)
        b->flags |= BATCH_ACQUIRE | BATCH_FORCE;
    if (flags & TIDE_APPEND_RELEASE)
        release_flags(s, b);
    s->acquiring = !(flags & TIDE_APPEND_RELEASE);
    return b;
}

/* A commit that changes nothing, by which the store learns that this handle knows of its lease after all. */
static enum tide_code confirm_lease(struct tide_session *s, struct tide_err *err)
{
    struct batch *b = batch_new(str_from(s->head.id), 0, NULL, 0, STR(""), STR(""));
    enum tide_code code;

    b->expect_seq = STORE_ANY_SEQ;
    b->epoch = s->owner.epoch;
    code = store_write(s->store, b, NULL, err);
    s->doubted = code != TIDE_OK;
    s->doubted_seq = s->doubted ? s->doubted_seq : 0;
    return code;
}

static enum tide_code be_fenced(struct tide_session *s, struct tide_err *err)
{
    s->fenced = true;
    return tide_fail_session(err, TIDE_FENCED, s->head.id, ": the lease was taken over");
}

/* The store has given it back; TIDE_CONFLICT: somebody sent an input meanwhile. */
static enum tide_code take_anew(struct tide_session *s, struct tide_err *err)
{
    AUTO(batch_freep) struct batch *b = batch_new(str_from(s->head.id), BATCH_ACQUIRE, NULL, 0, STR(""), STR(""));
    struct head h;
    enum tide_code code = store_head(s->store, str_from(s->head.id), &h, err);

    if (code)
        return code;
    if (h.epoch > s->owner.epoch)
        return be_fenced(s, err);
    b->expect_seq = s->doubted_seq ? s->doubted_seq : h.last_seq;
    group_submit(s->store->group, b, GROUP_AWAITED);
    group_wait(s->store->group, b);
    if (b->code == TIDE_HELD || (b->code == TIDE_CONFLICT && s->doubted_seq))
        return be_fenced(s, err);
    if (!b->code || b->code == TIDE_UNKNOWN) { /* another's that got the same epoch leaves its events behind */
        s->owner.epoch = b->epoch;
        s->doubted = b->code != TIDE_OK;
        s->doubted_seq = s->doubted ? b->expect_seq : 0;
    }
    return b->code ? tide_err_copy(err, &b->err) : TIDE_OK;
}

/* It was not confirmed: still ours, or taken anew if nobody else has taken it since. */
static enum tide_code keep_lease(struct tide_session *s, struct tide_err *err)
{
    enum tide_code code;

    INVARIANT(s->owner.epoch); /* only what was taken is doubted */
    code = confirm_lease(s, err);

    if (code != TIDE_FENCED)
        return code;
    do
        code = take_anew(s, err);
    while (code == TIDE_CONFLICT);
    return code;
}

/* Loads what the store has without taking it for known: what others appended the caller has not seen. */
static enum tide_code reload_state(struct tide_session *s, struct tide_err *err)
{
    int64_t next = s->owner.next_seq;
    enum tide_code code = session_sync(s, err);

    s->owner.next_seq = next;
    return code;
}

enum tide_code session_take_over(struct store *store, const char *id, struct tide_err *err)
{
    struct batch *b = batch_new(str_from(id), BATCH_INPUT, NULL, 0, STR(""), STR(""));

    b->expect_seq = STORE_ANY_SEQ;
    return store_write(store, b, NULL, err);
}

static int is_description(void *arg, const struct event *ev)
{
    *(bool *)arg = str_eq(ev->kind, STR("session.updated"));
    return 1;
}

/* The caller knows what the snapshot has of the session; an open run must be reported to it. */
static enum tide_code take_over(struct tide_session *s, struct tide_err *err)
{
    int64_t next = s->owner.next_seq;
    bool told = true;
    enum tide_code code = session_take_over(s->store, s->head.id, err);

    code = code ? code : session_sync(s, err);
    if (!code && s->state->seq >= next)
        code = store_read(s->store, &s->head, next, next, is_description, &told, err);
    if (!code && (!told || s->state->seq > next))
        s->owner.next_seq = next;
    return code;
}

static enum tide_code may_append(struct tide_session *s, struct tide_err *err)
{
    if (!(s->flags & TIDE_SESSION_APPEND))
        return tide_fail_session(err, TIDE_READ_ONLY, s->head.id, "was opened for reading only");
    if (s->store->read_only)
        return tide_fail(err, TIDE_READ_ONLY, "the store was opened for reading only");
    if (s->fenced)
        return tide_fail_session(err, TIDE_FENCED, s->head.id, ": the lease was taken over; open the session again");
    if (s->doubted && !group_owes(&s->owner) && keep_lease(s, err))
        return err->code;
    if (s->stale && !s->owner.pending)
        return reload_state(s, err);
    if (s->acquiring || group_owes(&s->owner) || s->owner.epoch) /* the last is the writer's while it owes */
        return TIDE_OK;
    if (s->head.unverified && take_over(s, err))
        return err->code;
    return history_prove_now(s->store, s->head.id, err); /* others may have been at the log since it was loaded */
}

/* That an event is data alone: one that says what a run did or may do would be believed when the session is resumed. */
static enum tide_code check_data(const struct tide_session *s, const struct kind *kind, struct tide_err *err)
{
    bool runs = session_kind(s->state) != TIDE_KIND_LOG || s->state->ledger.run.end != RUN_NONE;

    if (!kind || (kind->flags & KIND_TELLS && !runs))
        return TIDE_OK;
    if (kind->flags & KIND_TELLS)
        tide_fail(err, TIDE_DENIED, "%s is written by what runs in this session: append a kind of your own",
                  kind->name);
    else
        tide_fail(err, TIDE_DENIED, "%s is written by Tidemark alone: append a kind of your own", kind->name);
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "kind");
}

enum who { BY_TIDEMARK, BY_CALLER };

/* Checks all events before the first is queued; what it gives is in the handle's arena until the next call. */
static enum tide_code check_all(struct tide_session *s, unsigned flags, const struct tide_new_event *in, size_t n,
                                enum who who, struct checked *ret, struct tide_err *err)
{
    enum tide_code code = may_append(s, err);

    arena_reset(&s->parse);
    ret->n = n;
    ret->events = arena_alloc(&s->parse, (n + 1) * sizeof *ret->events);
    ret->parsed = arena_alloc(&s->parse, (n + 1) * sizeof *ret->parsed);
    for (size_t i = 0; i < n && !code; i++) {
        struct tide_new_event ev = in[i];

        if (cause_is_set(&s->cause))
            ev = cause_sign(&s->parse, &s->cause, &in[i], i == cause_act(in, n));
        code = event_check(s->store, &s->parse, &ev, who == BY_TIDEMARK, &ret->events[i], &ret->parsed[i], err);
        if (!code && flags & TIDE_APPEND_DATA)
            code = check_data(s, ret->parsed[i].kind, err);
    }
    return code;
}

void session_forget_lease(struct tide_session *s)
{
    s->owner.epoch = 0;
    s->acquiring = s->doubted = false;
    s->doubted_seq = 0;
}

enum tide_code session_regain_lease(struct tide_session *s, int64_t epoch, struct tide_err *err)
{
    if (!s->head.held) /* the store has given it back meanwhile, because nobody knew of it */
        return session_append(s, 0, NULL, 0, NULL, err);
    if (s->head.epoch != epoch)
        return be_fenced(s, err);
    s->owner.epoch = epoch;
    s->acquiring = true;
    (void)!confirm_lease(s, NULL); /* if not, the next append does */
    return TIDE_OK;
}

/*
 * The disk failed under the append: look whether this very batch is there after all. What is read before the store was
 * settled (reopened, its log written anew) may yet turn out otherwise.
 */
static enum tide_code settle_unknown(struct tide_session *s, const struct batch *b, struct tide_err *err)
{
    struct tide_err again;
    struct head h;

    if (store_settle(s->store, &again) || store_head(s->store, str_from(s->head.id), &h, &again))
        return err->code;
    s->unsettled = false;
    if (h.last_seq < b->last_seq || h.epoch < b->epoch || (b->n == 0 && b->flags & BATCH_RELEASE && h.held))
        return tide_fail(err, TIDE_IO, "the disk failed and nothing was stored: try again when it works");
    if (h.last_seq != b->last_seq || h.epoch != b->epoch ||
        (b->n && memcmp(h.digest, b->events[b->n - 1].digest, DIGEST_SIZE) != 0))
        return err->code;
    s->owner.next_seq = b->last_seq + 1;
    s->owner.epoch = b->flags & BATCH_RELEASE ? 0 : b->epoch;
    settle_append(s, TIDE_OK);
    if (s->owner.epoch)
        (void)!confirm_lease(s, NULL); /* if not, the next append does */
    return TIDE_OK;
}

static enum tide_code append_checked(struct tide_session *s, unsigned flags, struct checked *c, int64_t *ret_seq,
                                     struct tide_err *err)
{
    AUTO(batch_freep) struct batch *b = NULL;
    enum tide_code code;

    if (group_owes(&s->owner)) { /* what is queued comes first, and its failure is this one's */
        code = group_flush(s->store->group, &s->owner, err);
        settle_append(s, code);
        if (code || (s->stale && (code = reload_state(s, err)) != TIDE_OK))
            return code;
    }
    INVARIANT(!group_owes(&s->owner)); /* one of them at a time may fail, or nobody knew which */
    b = session_make_batch(s, flags, c);
    group_submit(s->store->group, b, GROUP_AWAITED);
    group_wait(s->store->group, b);
    code = group_flush(s->store->group, &s->owner, err);
    settle_append(s, code);
    if (code == TIDE_UNKNOWN)
        code = settle_unknown(s, b, err);
    if (!code && ret_seq)
        *ret_seq = b->last_seq;
    if (!code && b->n)
        s->cause = (struct cause){.by = ""}; /* it is done */
    if (!code && b->n && s->state->ledger.notify_last >= b->last_seq - (int64_t)b->n + 1)
        notify_tell(s->store);
    return code;
}

enum tide_code session_append(struct tide_session *s, unsigned flags, const struct tide_new_event *events, size_t n,
                              int64_t *ret_seq, struct tide_err *err)
{
    struct checked c;
    enum tide_code code;

    ERR_LOCAL(err);
    code = check_all(s, flags, events, n, BY_TIDEMARK, &c, err);
    return code ? code : append_checked(s, flags, &c, ret_seq, err);
}

enum tide_code tide_session_append(tide_session *s, unsigned flags, const struct tide_new_event *events, size_t n,
                                   int64_t *ret_seq, struct tide_err *err)
{
    struct checked c;
    enum tide_code code;

    ERR_LOCAL(err);
    code = check_all(s, flags, events, n, BY_CALLER, &c, err);
    return code ? tide_about_session(err, s->head.id) : append_checked(s, flags, &c, ret_seq, err);
}

static enum tide_code queue_append(struct tide_session *s, unsigned flags, const struct tide_new_event *events,
                                   size_t n, enum group_when when, void *user, struct tide_err *err)
{
    struct checked c;
    struct batch *b;
    enum tide_code code = check_all(s, flags, events, n, BY_CALLER, &c, err);

    if (code)
        return code;
    b = session_make_batch(s, flags, &c);
    b->user = user;
    group_submit(s->store->group, b, when);
    if (n)
        s->cause = (struct cause){.by = ""};
    return TIDE_OK;
}

enum tide_code tide_session_append_async(tide_session *s, unsigned flags, const struct tide_new_event *events, size_t n,
                                         void *user, struct tide_err *err)
{
    ERR_LOCAL(err);
    return queue_append(s, flags, events, n, GROUP_SOON, user, err);
}

enum tide_code session_append_later(struct tide_session *s, unsigned flags, const struct tide_new_event *events,
                                    size_t n, struct tide_err *err)
{
    return queue_append(s, flags, events, n, GROUP_LATER, NULL, err);
}

enum tide_code tide_session_flush(tide_session *s, struct tide_err *err)
{
    enum tide_code code;

    ERR_LOCAL(err);
    code = group_flush(s->store->group, &s->owner, err);
    settle_append(s, code);
    return code;
}

enum tide_code session_claim_lease(struct tide_session *s, struct tide_err *err)
{
    return session_append(s, TIDE_APPEND_ANY, NULL, 0, NULL, err);
}

/* Where the log ends, without a state: damage would keep one from being made, and what is whole before it is to be read. */
static enum tide_code sync_log(struct tide_session *s, struct tide_err *err)
{
    enum tide_code code = store_head(s->store, str_from(s->head.id), &s->head, err);

    if (code)
        return code;
    if (!s->state)
        s->state = state_new(str_from(s->head.id));
    s->stale = true; /* the caller that asks for more than the log has it loaded */
    s->owner.next_seq = s->head.last_seq + 1;
    return TIDE_OK;
}

enum tide_code tide_session_open(tide_store *store, const char *id, unsigned flags, tide_session **ret_session,
                                 struct tide_err *err)
{
    struct tide_session *s = session_new(store_of(store), flags);
    enum tide_code code;

    ERR_LOCAL(err);
    code = flags & TIDE_SESSION_WHOLE ? session_take_id(str_from(id), s->head.id, err)
                                      : session_resolve(s->store, str_from(id), s->head.id, err);
    if (!code)
        code = flags & TIDE_SESSION_LOG ? sync_log(s, err) : session_sync(s, err);
    if (!code && flags & TIDE_SESSION_CLAIM)
        code = session_claim_lease(s, err);
    if (code) {
        if (s->head.id[0])
            tide_about_session(err, s->head.id);
        session_free(s);
        return code;
    }
    *ret_session = s;
    return TIDE_OK;
}

/* Gives the lease back, leaving what lists show of the session. */
static void release_lease(struct tide_session *s)
{
    struct tide_err err;
    struct batch *b;

    if ((!s->stale || !session_sync(s, &err)) &&
        !session_append(s, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, NULL, 0, NULL, &err))
        return;
    if (!s->owner.epoch)
        return;
    b = batch_new(str_from(s->head.id), 0, NULL, 0, STR(""), STR("")); /* without a summary, then */
    release_flags(s, b);
    b->wake_ms = 0;
    b->expect_seq = STORE_ANY_SEQ;
    b->epoch = s->owner.epoch;
    (void)!store_write(s->store, b, NULL, NULL);
}

void tide_session_close(tide_session *s)
{
    if (!s)
        return;
    session_be_quick(s); /* nothing runs any more that would wait for the store */
    (void)!tide_session_flush(s, NULL);
    if (s->owner.epoch && !s->fenced)
        release_lease(s);
    session_free(s);
}

const char *tide_session_id(const tide_session *s)
{
    return s->head.id;
}

int64_t tide_session_last_seq(const tide_session *s)
{
    return !s->owner.pending && (s->stale || s->owner.failed.code) ? s->owner.next_seq - 1 : s->state->seq;
}

int64_t tide_session_first_seq(const tide_session *s)
{
    return s->head.first_seq;
}

enum tide_code tide_session_refresh(tide_session *s, struct tide_err *err)
{
    ERR_LOCAL(err);
    return s->flags & TIDE_SESSION_LOG ? sync_log(s, err) : session_sync(s, err);
}
