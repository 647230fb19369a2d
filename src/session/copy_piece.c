/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of one session on their way, in pieces of some MiB: one append and one sync each. While a piece is stored by a
 * thread of its own, the next is read; a piece is made only when the one before is on disk, because it stands on it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>

#include "base/thread.h"
#include "session/session_file.h"
#include "session/copy.h"
#include "session/settle.h"
#include "store/origin.h"

#define SNAPSHOT_MIN_BYTES (32 * 1024) /* of log: below that it is read as fast */

/* The digest of the event after `before` as the destination computes it. */
void copy_digest_next(const struct copier *c, const char *id, const struct event *ev, unsigned char at[DIGEST_SIZE])
{
    unsigned char before[DIGEST_SIZE];

    if (c->same_key) {
        memcpy(at, ev->digest, DIGEST_SIZE);
        return;
    }
    memcpy(before, at, DIGEST_SIZE);
    event_digest(at, &c->dst->key, before, str_from(id), ev);
}

/*
 * Where recovery looks at it. A run of a living process continues there and not here by itself: it is looked at when
 * somebody asks for it.
 */
static void stay_live(const struct copy_job *j, const struct state *s, struct batch *b)
{
    bool busy = j->src.held && j->src.holder_alive && !s->ledger.run.waiting;

    if (!settle_is_live(s))
        return;
    b->flags |= BATCH_LIVE;
    b->wake_ms = busy ? INT64_MAX : settle_wake_ms(s);
    if (s->ledger.run.waiting && s->ledger.run.due_ms)
        copy_notice(j->c, j->src.id, "sleeps, and wakes in both stores: delete it in one of them");
}

/*
 * A beginning that people see is given back with every piece, and nobody looks at it by the clock: whatever ends the copy, a
 * recovery there finds no run to settle in what is only half of it, and the next copy continues.
 */
static void leave_half(const struct copy_piece *p, struct batch *b)
{
    b->flags |= BATCH_RELEASE | BATCH_LIVE;
    b->wake_ms = INT64_MAX;
    b->caches_seq = p->events[p->n - 1].seq;
}

static struct batch *make_piece(struct copy_job *j, bool is_last, struct str snapshot, struct str summary)
{
    const struct copy_piece *p = &j->c->piece;
    struct batch *b = batch_new(str_from(j->src.id), BATCH_KEEP, p->events, p->n, snapshot, summary);

    b->expect_seq = p->n ? p->events[0].seq - 1 : STORE_ANY_SEQ;
    b->epoch = j->epoch;
    b->caches_seq = j->src.last_seq;
    if (is_last && origin_is_ours(j->c->src, &j->src)) /* under another key of digests its own proofs do not hold */
        b->flags |= BATCH_VOUCH;
    if (j->epoch)
        return b;
    b->flags |= BATCH_ACQUIRE;
    if (j->is_new) {
        b->flags |= BATCH_CREATE | (is_last ? 0u : BATCH_HIDDEN); /* one piece is whole at once: nothing to hide */
        b->expect_seq = STORE_ANY_SEQ;
        memcpy(b->parent, j->src.parent_id, sizeof b->parent);
        b->parent_seq = j->src.parent_seq;
    } else if (!is_last) {
        leave_half(p, b);
    }
    return b;
}

/* The last piece brings the caches along: opening and listing are as fast there as here. */
enum tide_code copy_make_last(struct copy_job *j, struct batch **ret, struct tide_err *err)
{
    AUTO(state_freep) struct state *s = NULL;
    AUTO(buf_done) struct buf snapshot = BUF_INIT(SIZE_MAX / 4);
    AUTO(buf_done) struct buf summary = BUF_INIT(SIZE_MAX / 4);
    enum tide_code code = state_load(j->c->src, &j->src, j->src.last_seq, &s, NULL, err);

    j->at_src = code != TIDE_OK;
    if (code)
        return code;
    state_encode(&summary, s, STATE_SUMMARY);
    if (j->bytes >= SNAPSHOT_MIN_BYTES)
        state_encode(&snapshot, s, STATE_SNAPSHOT);
    if (snapshot.len > j->bytes)
        buf_clear(&snapshot);
    *ret = make_piece(j, true, buf_view(&snapshot), buf_view(&summary));
    (*ret)->flags |= BATCH_RELEASE | (j->is_new && j->epoch ? BATCH_REVEAL : 0u);
    stay_live(j, s, *ret);
    session_file_attach(*ret, j->c->dst, s, &j->src);
    return TIDE_OK;
}

void copy_clear(struct copy_piece *p)
{
    p->n = p->bytes = 0;
    arena_reset(&p->arena);
}

static void *run_writer(void *arg)
{
    struct copy_flight *f = arg;

    f->code = store_write(f->store, f->batch, &f->result, &f->err);
    return NULL;
}

/* Stores the piece while the next is read; where there are no threads, at once. */
void copy_send(struct copy_job *j, struct batch *take)
{
    struct copy_flight *f = &j->flight;

    *f =
        (struct copy_flight){.store = j->c->dst, .batch = take, .n = take->n, .bytes = j->c->piece.bytes, .sent = true};
    f->apart = j->c->dst->env->threads && thread_start(&f->thread, run_writer, f);
    if (!f->apart)
        run_writer(f);
    copy_clear(&j->c->piece);
}

/* Waits until the piece that was sent is on disk. */
enum tide_code copy_await(struct copy_job *j, struct tide_err *err)
{
    struct copy_flight *f = &j->flight;

    if (!f->sent)
        return TIDE_OK;
    f->sent = false;
    if (f->apart)
        pthread_join(f->thread, NULL);
    if (f->code)
        return tide_err_copy(err, &f->err);
    j->epoch = j->is_new ? f->result.epoch : 0;
    j->c->at.events += f->n;
    j->c->at.bytes += f->bytes;
    return copy_tell(j->c) ? tide_fail(err, TIDE_CANCELLED, "stopped") : TIDE_OK;
}

static int take_event(void *arg, const struct event *ev)
{
    struct copy_job *j = arg;
    struct copy_piece *p = &j->c->piece;
    size_t bytes = ev->kind.len + ev->body.len;

    /* Before, not after: the last piece, which shows the session, is never empty. */
    if (p->n && (p->n == COPY_PIECE_EVENTS || p->bytes + bytes > COPY_PIECE_BYTES)) {
        if (copy_await(j, &j->err)) /* a new one's lease is that of the piece before */
            return 1;
        copy_send(j, make_piece(j, false, STR(""), STR("")));
    }
    copy_digest_next(j->c, j->src.id, ev, j->want);
    p->events[p->n] = *ev;
    p->events[p->n].kind = arena_dup(&p->arena, ev->kind);
    p->events[p->n].body = arena_dup(&p->arena, ev->body);
    p->n++;
    p->bytes += bytes;
    j->bytes += bytes;
    return 0;
}

enum tide_code copy_read(struct copy_job *j, struct tide_err *err)
{
    enum tide_code code = store_read(j->c->src, &j->src, j->from, j->src.last_seq, take_event, j, err);

    j->at_src = code != TIDE_OK;
    if (!code && j->err.code)
        return tide_err_copy(err, &j->err);
    if (!code && (!j->c->piece.n || j->c->piece.events[j->c->piece.n - 1].seq != j->src.last_seq)) {
        j->at_src = true;
        code = tide_fail(err, TIDE_CORRUPT, "it ends before seq %" PRId64, j->src.last_seq);
    }
    return code;
}

/* Half of it is of no use to anyone: it goes. What was there before stays as long as it got. */
void copy_give_up(struct copy_job *j)
{
    struct tide_err err; /* what is reported has happened before */
    struct batch *b;

    (void)!copy_await(j, &err);
    if (!j->epoch)
        return;
    b = batch_new(str_from(j->src.id), BATCH_DELETE | BATCH_HIDDEN, NULL, 0, STR(""), STR(""));
    b->expect_seq = STORE_ANY_SEQ;
    b->epoch = j->epoch;
    (void)!store_write(j->c->dst, b, NULL, &err);
}
