/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session from a store into another. Its events are read in pieces (the store proves each) and appended as they are:
 * seq, time, epoch, kind and body; the destination computes its digests itself. A new session is hidden until its last
 * piece; one that is there already as a beginning of ours is continued.
 *
 * How it is proved: beside the reading goes the chain of digests that the destination must arrive at (the source's own
 * when the keys are the same, else computed here under the destination's key). When a session is stored it is read back:
 * reading proves each event against the one before, so that an equal last digest and an equal count mean that every event
 * is equal. Comparing each digest would find nothing more.
 *
 * What was killed on the way leaves a hidden session, which the store sweeps, or a shorter one, which is continued.
 */
#include <inttypes.h>

#include "session/copy.h"
#include "session/load.h"

#define SMALL_BYTES (COPY_PIECE_BYTES / 8) /* sessions below that share pieces */
#define TELL_EVENTS 4096                   /* read between two looks at whether to stop */

/* ---- what both stores have ------------------------------------------------------------------------------------------- */

static int take_digest(void *arg, const struct event *ev)
{
    memcpy(arg, ev->digest, DIGEST_SIZE);
    return 0;
}

static enum tide_code digest_at(struct store *store, const struct head *h, int64_t seq, unsigned char ret[DIGEST_SIZE],
                                struct tide_err *err)
{
    if (seq == h->last_seq && !h->unverified) { /* else it has none: they are computed by reading */
        memcpy(ret, h->digest, DIGEST_SIZE);
        return TIDE_OK;
    }
    memset(ret, 0, DIGEST_SIZE);
    return store_read(store, h, seq, seq, take_digest, ret, err);
}

static int follow_event(void *arg, const struct event *ev)
{
    struct copy_job *j = arg;

    copy_digest_next(j->c, j->src.id, ev, j->want);
    return ++j->read % TELL_EVENTS == 0 && copy_tell(j->c);
}

/* What the destination must have at `seq` if it has the same, into j->want. */
static enum tide_code want_at(struct copy_job *j, int64_t seq, struct tide_err *err)
{
    enum tide_code code;

    j->at_src = true;
    if (j->c->same_key) {
        code = digest_at(j->c->src, &j->src, seq, j->want, err);
    } else {
        memcpy(j->want, j->dst.first_before, DIGEST_SIZE);
        code = seq < j->src.first_seq ? TIDE_OK : store_read(j->c->src, &j->src, 0, seq, follow_event, j, err);
    }
    j->at_src = code != TIDE_OK;
    return !code && j->c->cancelled ? tide_fail(err, TIDE_CANCELLED, "stopped") : code;
}

static enum tide_code is_equal_at(struct copy_job *j, int64_t seq, bool *ret_equal, struct tide_err *err)
{
    unsigned char there[DIGEST_SIZE];
    enum tide_code code = want_at(j, seq, err);

    code = code ? code : digest_at(j->c->dst, &j->dst, seq, there, err);
    if (!code)
        *ret_equal = memcmp(there, j->want, DIGEST_SIZE) == 0;
    return code;
}

/* Digests are chained: once they differ they differ to the end. */
static enum tide_code tell_difference(struct copy_job *j, int64_t both, struct tide_err *err)
{
    int64_t low = j->src.first_seq, high = both;
    enum tide_code code = TIDE_OK;

    while (!code && j->c->same_key && low < high) {
        int64_t middle = low + (high - low) / 2;
        bool equal = false;

        code = is_equal_at(j, middle, &equal, err);
        low = equal ? middle + 1 : low;
        high = equal ? high : middle;
    }
    if (code)
        return code;
    if (!j->c->same_key)
        return tide_fail(err, TIDE_EXISTS,
                         "it is already there with other events: delete it there, or copy it into another store");
    return tide_fail(
        err, TIDE_EXISTS,
        "it is already there and differs from seq %" PRId64 " on: delete it there, or copy it into another store", low);
}

/* The session is there: the same, a beginning of ours (then it is continued), further on than ours, or another. */
static enum tide_code compare_logs(struct copy_job *j, struct tide_err *err)
{
    int64_t both = j->src.last_seq < j->dst.last_seq ? j->src.last_seq : j->dst.last_seq;
    bool equal = false;
    enum tide_code code;

    if (j->src.first_seq != j->dst.first_seq || strcmp(j->src.parent_id, j->dst.parent_id) != 0)
        return tide_fail(err, TIDE_EXISTS,
                         "another session with this id is there: delete it there, or copy into another store");
    code = is_equal_at(j, both, &equal, err);
    if (!code && !equal)
        code = tell_difference(j, both, err);
    if (code)
        return code;
    j->from = both + 1;
    if (j->from <= j->src.last_seq && history_prove(j->c->dst, &j->dst, both, err))
        return err->code;
    if (j->dst.last_seq > j->src.last_seq)
        copy_notice(j->c, j->src.id, "has continued there, to seq %" PRId64 " from %" PRId64 ": nothing to copy",
                    j->dst.last_seq, j->src.last_seq);
    return TIDE_OK;
}

/* A fork stands on its parent's event at the fork point: it must be there, and be the same. */
static enum tide_code find_base(struct copy_job *j, struct tide_err *err)
{
    const struct copy_plan *plan = map_get(&j->c->plans, str_from(j->src.parent_id));
    unsigned char at[DIGEST_SIZE] = {0};
    struct head parent;
    bool same;

    if (!j->src.parent_id[0])
        return TIDE_OK; /* j->want is zeros */
    if (store_head(j->c->dst, str_from(j->src.parent_id), &parent, err))
        return tide_wrap(err, "it is a fork, and its parent is not there");
    if (j->src.parent_seq > parent.last_seq || j->src.parent_seq < parent.first_seq)
        return tide_fail(err, TIDE_CONFLICT, "it is a fork at seq %" PRId64 " of '%s', which has no such event there",
                         j->src.parent_seq, j->src.parent_id);
    if (history_prove(j->c->dst, &parent, j->src.parent_seq, err) ||
        digest_at(j->c->dst, &parent, j->src.parent_seq, at, err))
        return err->code;
    same = j->c->same_key ? memcmp(at, j->src.first_before, DIGEST_SIZE) == 0 : plan && plan->turn == COPY_DONE;
    memcpy(j->want, at, DIGEST_SIZE);
    return same ? TIDE_OK
                : tide_fail(err, TIDE_CONFLICT, "it is a fork at seq %" PRId64 " of '%s', which is another one there",
                            j->src.parent_seq, j->src.parent_id);
}

/* ---- reading back ---------------------------------------------------------------------------------------------------- */

struct proof {
    struct copier *c;
    unsigned char digest[DIGEST_SIZE];
    int64_t n;
};

static int prove_event(void *arg, const struct event *ev)
{
    struct proof *p = arg;

    memcpy(p->digest, ev->digest, DIGEST_SIZE);
    if (++p->n % TELL_EVENTS == 0)
        copy_tell(p->c); /* a wish to stop is heard when the session is proved: a later copy passes over it */
    return 0;
}

static enum tide_code read_back(struct copier *c, const char *id, int64_t from, int64_t to,
                                const unsigned char want[DIGEST_SIZE], struct tide_err *err)
{
    struct proof p = {.c = c};
    struct head h;
    enum tide_code code = store_head(c->dst, str_from(id), &h, err);

    code = code ? code : store_read(c->dst, &h, from, to, prove_event, &p, err);
    if (code)
        return tide_wrap(err, "read back");
    if (p.n != to - from + 1 || memcmp(p.digest, want, DIGEST_SIZE) != 0)
        return tide_fail(err, TIDE_CORRUPT,
                         "what was stored is not what was read: its digest at seq %" PRId64 " differs", to);
    return TIDE_OK;
}

/* ---- how a turn ends ------------------------------------------------------------------------------------------------- */

/* Failures of the destination after which nothing more can be stored there. */
static bool is_final(enum tide_code code)
{
    static const enum tide_code codes[] = {TIDE_FULL,   TIDE_IO,   TIDE_UNKNOWN,   TIDE_READ_ONLY,
                                           TIDE_DENIED, TIDE_BUSY, TIDE_CANCELLED, TIDE_FAILED};
    bool found = false;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        found |= codes[i] == code;
    return found;
}

static enum tide_code end_badly(struct copier *c, struct copy_plan *plan, bool at_src, bool is_new,
                                struct tide_err *err)
{
    if (err->code == TIDE_CANCELLED || (!at_src && is_final(err->code)))
        return tide_wrap(err, "session '%s'", plan->id);
    /* Another process copies it at this moment, or holds it there: it may be over at the end. */
    if (!at_src && !c->last_chance &&
        (err->code == TIDE_HELD || err->code == TIDE_FENCED || err->code == TIDE_CONFLICT ||
         (is_new && err->code == TIDE_EXISTS))) {
        plan->turn = COPY_LATER;
        return TIDE_OK;
    }
    plan->turn = COPY_REFUSED;
    copy_problem(c, plan->id, err);
    c->at.sessions++;
    return TIDE_OK;
}

static enum tide_code end_well(struct copier *c, struct copy_plan *plan, uint64_t events, uint64_t bytes,
                               uint64_t *count, struct tide_err *err)
{
    plan->turn = COPY_DONE;
    ++*count;
    c->out.events += events;
    c->out.bytes += bytes;
    c->at.sessions++;
    return copy_tell(c) ? tide_fail(err, TIDE_CANCELLED, "stopped") : TIDE_OK;
}

/* ---- small sessions share a commit ----------------------------------------------------------------------------------- */

enum tide_code copy_flush(struct copier *c, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; i < c->queued; i++)
        group_submit(c->dst->group, c->queue[i].batch, GROUP_AWAITED);
    for (size_t i = 0; i < c->queued; i++)
        group_wait(c->dst->group, c->queue[i].batch);
    for (size_t i = 0; i < c->queued; i++) {
        struct copy_queued *q = &c->queue[i];

        if (!code) {
            code = q->batch->code ? tide_err_copy(err, &q->batch->err)
                                  : read_back(c, q->plan->id, q->first_seq, q->last_seq, q->want, err);
            code = code ? end_badly(c, q->plan, false, true, err)
                        : end_well(c, q->plan, q->batch->n, q->bytes, &c->out.copied, err);
        }
        batch_free(q->batch);
    }
    c->queued = c->queued_bytes = 0;
    return code;
}

static enum tide_code enqueue_batch(struct copy_job *j, struct batch *take, struct tide_err *err)
{
    struct copier *c = j->c;
    struct copy_queued *q = &c->queue[c->queued++];

    *q = (struct copy_queued){take, j->plan, j->from, j->src.last_seq, {0}, j->bytes};
    memcpy(q->want, j->want, DIGEST_SIZE);
    j->plan->turn = COPY_QUEUED;
    c->queued_bytes += j->bytes;
    c->at.bytes += j->bytes;
    return c->queued == COPY_QUEUE || c->queued_bytes >= COPY_PIECE_BYTES ? copy_flush(c, err) : TIDE_OK;
}

/* ---- one turn -------------------------------------------------------------------------------------------------------- */

static enum tide_code carry_events(struct copy_job *j, struct tide_err *err)
{
    struct batch *last = NULL;
    enum tide_code code = copy_read(j, err);

    code = code ? code : copy_await(j, err);
    code = code ? code : copy_make_last(j, &last, err);
    if (code)
        return code;
    if (j->is_new && !j->epoch && j->bytes < SMALL_BYTES) /* whole already: no piece of it was stored */
        return enqueue_batch(j, last, err);
    copy_send(j, last);
    code = copy_await(j, err);
    if (code && code != TIDE_CANCELLED)
        return code;
    j->epoch = 0; /* given back with it */
    code = read_back(j->c, j->src.id, j->from, j->src.last_seq, j->want, err);
    return code ? code
                : end_well(j->c, j->plan, (uint64_t)(j->src.last_seq - j->from + 1), j->bytes,
                           j->is_new ? &j->c->out.copied : &j->c->out.continued, err);
}

/* Where to begin: with nothing, or behind what is there. */
static enum tide_code look_at_target(struct copy_job *j, struct tide_err *err)
{
    const struct copier *c = j->c;
    struct str id = str_from(j->src.id);
    bool absent = c->there_known && !c->last_chance && !map_get(&c->there, id);
    enum tide_code code = absent ? TIDE_NOT_FOUND : store_head(c->dst, id, &j->dst, err);

    if (code == TIDE_NOT_FOUND) {
        j->is_new = true;
        j->from = j->src.first_seq;
        return find_base(j, err);
    }
    return code ? code : compare_logs(j, err);
}

static enum tide_code have_turn(struct copy_job *j, struct tide_err *err)
{
    struct copier *c = j->c;
    enum tide_code code = look_at_target(j, err);

    if (code)
        return code;
    if (!j->is_new && j->from > j->src.last_seq)
        return end_well(c, j->plan, 0, 0, &c->out.same, err);
    copy_clear(&c->piece);
    return carry_events(j, err);
}

/* A fork's parent comes first: on disk, or nothing is to be done about the fork now. */
static enum tide_code await_parent(struct copy_job *j, struct tide_err *err)
{
    const struct copy_plan *parent = map_get(&j->c->plans, str_from(j->src.parent_id));
    enum tide_code code = parent && parent->turn == COPY_QUEUED ? copy_flush(j->c, err) : TIDE_OK;

    if (!code && parent && parent->turn == COPY_LATER)
        j->plan->turn = COPY_LATER;
    return code;
}

enum tide_code copy_session(struct copier *c, struct copy_plan *plan, struct tide_err *err)
{
    struct copy_job j = {.c = c, .plan = plan};
    uint64_t before = c->at.events;
    enum tide_code code = store_head(c->src, str_from(plan->id), &j.src, err);

    plan->turn = COPY_TO_DO;
    if (code == TIDE_NOT_FOUND && !c->opt->ids) { /* all were asked for, whichever there are */
        copy_notice(c, plan->id, "was deleted meanwhile: nothing to copy");
        plan->turn = COPY_DONE;
        c->at.sessions++;
        return TIDE_OK;
    }
    if (code)
        return end_badly(c, plan, true, false, err);
    if (j.src.parent_id[0])
        code = await_parent(&j, err);
    if (code || plan->turn == COPY_LATER)
        return code;
    code = have_turn(&j, err);
    if (code)
        copy_give_up(&j);
    if (code && plan->turn == COPY_TO_DO)
        code = end_badly(c, plan, j.at_src, j.is_new, err);
    c->at.events = before + (plan->turn == COPY_LATER ? 0 : (uint64_t)(j.src.last_seq - j.src.first_seq + 1));
    return code;
}
