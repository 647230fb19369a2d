/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group of batches. Those that append are gathered by session (files_plan.c); each session's log gets all of its lines in one
 * write, which is its unit; then all of these logs are synced side by side, and only then are they acknowledged. A
 * lease that is taken is on disk before the first line under it; one that is given back goes after the last, or
 * recovery looks once too often. Sessions are made and deleted in their place among the others (files_create.c).
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/invariant.h"
#include "store/files_plan.h"

#define LINE_MORE 400 /* what a line has besides its body, about */

static void fail_part(struct files_store *s, struct part *p, const struct tide_err *err)
{
    p->code = err->code;
    p->err = *err;
    for (size_t i = 0; i < p->n; i++)
        batch_fail(p->batches[i], err, &s->orphans, &s->base);
}

static void write_lines(struct part *p)
{
    struct line_fields m = {.more = (int64_t)p->n_lines - 1, .verified = true};
    size_t n = 0, bytes = 0;

    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->batches[i]->n; k++)
            bytes += p->batches[i]->events[k].body.len + LINE_MORE;
    (void)buf_reserve(&p->lines, bytes);
    p->offsets = mem_alloc(p->n_lines * sizeof *p->offsets);
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->batches[i]->n; k++, m.at++, m.more--) {
            p->offsets[n++] = p->l->end + (int64_t)p->lines.len;
            line_write(&p->lines, &p->batches[i]->events[k], &m);
        }
    INVARIANT(n == p->n_lines && !p->lines.failed);
}

/* As much again as is there: most sessions are short, and it has to be given back. */
static int64_t reserved_end(int64_t end)
{
    int64_t more = end < RESERVED_MAX ? end : RESERVED_MAX;

    return end < RESERVED_UNIT ? RESERVED_UNIT : (end + more) / RESERVED_UNIT * RESERVED_UNIT;
}

/* A little more than is needed, for a process that continues to write; when there is no room for that, what is needed. */
static enum tide_code reserve_space(struct files_store *s, struct files_log *l, int64_t end, bool goes_on,
                                    struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    enum tide_code code;

    if (end <= l->allocated)
        return TIDE_OK;
    if (!goes_on)
        return ops->allocate(l->file, end, err);
    code = ops->allocate(l->file, reserved_end(end), NULL);
    if (!code)
        l->allocated = reserved_end(end);
    return code == TIDE_FULL ? ops->allocate(l->file, end, err)
           : code            ? tide_fail(err, code, "reserve space")
                             : TIDE_OK;
}

/*
 * One that is taken fences the one before, even when it is given back at once; and what recovery has to look at, now or
 * sooner than before, it must find there, whatever happens to the disk next.
 */
static bool goes_first(const struct part *p)
{
    if (p->took)
        return p->lease.boot[0] || p->lease.live || p->before.there;
    return p->changed && !p->before.boot[0];
}

static enum tide_code lease_first(struct files_store *s, struct part *p, struct tide_err *err)
{
    struct files_lease first = p->lease;
    enum tide_code code = first.boot[0] ? boot_ready(s, err) : TIDE_OK;

    if (code)
        return code;
    if (!first.boot[0]) {
        first.live = true; /* to be looked at, until the lines are there */
        first.wake_ms = 0;
    }
    p->first = true;
    return lease_write(s, p->l, &first, err);
}

/* The lease was not taken after all: what stood there before comes back; recovery looks at it if the lines may come back, too. */
static void untake_lease(struct files_store *s, struct part *p, bool unknown)
{
    struct files_lease now;
    struct tide_err err;

    if (!p->first)
        return;
    if (lease_read(s, p->l->id, &now, &err) == TIDE_OK &&
        (strcmp(now.boot, p->lease.boot) != 0 || now.epoch != p->lease.epoch))
        return;         /* it never came to that */
    if (p->before_lost) /* else it would be ours once more, and the one that is noted is another */
        p->before.boot[0] = 0;
    if (unknown || p->before_lost) {
        p->before.there = p->before.live = true;
        p->before.wake_ms = 0;
    }
    if (p->before.there ? lease_write(s, p->l, &p->before, &err) : lease_remove(s, p->l, &err))
        orphan_note(&s->orphans, p->l->id, p->lease.epoch, 0); /* it stays */
}

/* What stands behind the last whole line goes; and a log that came without a mark gets one, before anything is acknowledged. */
static enum tide_code mend_end(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    enum tide_code code = l->torn ? log_mend(s, l, err) : TIDE_OK;

    if (code || l->mark.state == MARK_OK)
        return code ? code : mark_reserve(s, l, err);
    code = mark_make(s, l, err);
    if (!code && l->line_epoch) /* not just made from another program's */
        store_notice(
            &s->base,
            "session %s had no mark of what was acknowledged: its log is accepted as it is, up to event %" PRId64,
            l->id, l->h.last_seq);
    return code;
}

static void refuse_part(struct files_store *s, struct part *p, enum tide_code code, struct tide_err *err)
{
    err->code = code;
    untake_lease(s, p, false);
    fail_part(s, p, err);
}

/* Everything that must be there before the lines. */
static void prepare_part(struct files_store *s, struct part *p)
{
    struct tide_err err;
    enum tide_code code = TIDE_OK;

    if (p->n_lines)
        code = mend_end(s, p->l, &err);
    if (!code && p->n_lines) {
        write_lines(p);
        code = reserve_space(s, p->l, p->l->end + (int64_t)p->lines.len, p->lease.boot[0],
                             &err); /* or a lease is taken in vain */
    }
    if (!code && goes_first(p))
        code = lease_first(s, p, &err);
    if (code)
        refuse_part(s, p, code, &err);
}

/* Its lines are to be written, or are, and nothing has failed yet. */
static bool is_due(const struct part *p)
{
    return !p->code && p->n && p->lines.len;
}

/* The sync failed: what was written must not be found by anyone who takes it for durable. */
static void take_back(struct files_store *s, struct part *p, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;

    p->l->suspect = true;
    s->base.unsettled = true;
    if (!ops->truncate(p->l->file, p->l->end, NULL))
        (void)!ops->pwrite(p->l->file, TAKEN_BACK, sizeof TAKEN_BACK - 1, p->l->end,
                           NULL); /* seen by all, and rewritten */
    p->l->looked = -1;
    p->l->allocated = 0;
    untake_lease(s, p, true);
    err->code = TIDE_UNKNOWN;
    tide_wrap(err, "the disk failed while the events were being stored; it is unknown whether they are stored");
    fail_part(s, p, err);
}

/* Given back: it stays while recovery has to look at it, or while nothing else says how far epochs have come. */
static enum tide_code settle_lease(struct files_store *s, struct part *p, struct tide_err *err)
{
    if (!p->changed || p->lease.boot[0])
        return TIDE_OK; /* as it is on disk */
    if (!p->lease.live && p->lease.epoch <= p->l->line_epoch &&
        ((!p->before.there && !p->first) || !lease_drop(s, p->l, err)))
        return TIDE_OK;
    if (p->first && p->lease.live && !p->lease.wake_ms && !p->lease.hidden)
        return TIDE_OK;
    p->lease.hidden = p->l->hidden && !p->reveal;
    return lease_write(s, p->l, &p->lease, err);
}

static void note_lines(struct part *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->batches[i]->n; k++, n++)
            log_note_line(p->l, p->batches[i]->events[k].seq, p->offsets[n], p->batches[i]->events[k].kind);
    if (!n)
        return;
    p->l->last_line = p->offsets[n - 1];
    p->l->line_epoch = p->epoch_written;
}

static void save_states(struct files_store *s, struct part *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; n += p->batches[i++]->n) {
        const struct batch *b = p->batches[i];
        struct event last = {.seq = p->h.last_seq};

        memcpy(last.digest, p->h.digest, DIGEST_SIZE);
        if (!b->snapshot.len || b->caches_seq != b->last_seq)
            continue;
        if (b->n)
            cache_save_state(s, p->l, &b->events[b->n - 1], p->offsets[n + b->n - 1], b->snapshot);
        else if (b->last_seq == p->h.last_seq)
            cache_save_state(s, p->l, &last, p->l->last_line, b->snapshot);
    }
}

/* More than the file system's unit that the log ends in. */
static bool has_reserve(const struct files_log *l)
{
    return l->allocated > (l->end + RESERVED_UNIT - 1) / RESERVED_UNIT * RESERVED_UNIT;
}

/* It is on disk. */
static void finish_part(struct files_store *s, struct part *p)
{
    struct tide_err err;
    bool given_back = !p->lease.boot[0] && (p->changed || p->n_lines), shown = false;
    bool left = p->took && p->before.boot[0]; /* by one who is gone, with what was reserved */

    INVARIANT(p->locked && p->l->busy);
    note_lines(p);
    if (p->l->proved_seq >= p->l->h.last_seq)
        p->l->proved_seq = p->h.last_seq;
    if (given_back && !log_is_ours(s, p->l)) /* else the next look at it sees that */
        p->l->proved_seq = 0;
    p->l->h = p->h;
    p->l->vouched = p->vouched;
    p->l->end += (int64_t)p->lines.len;
    p->l->looked = p->l->end;
    for (size_t i = 0; i < p->n; i++)
        if (!(p->batches[i]->flags & BATCH_INPUT))
            orphan_drop(&s->orphans, p->l->id);
    INVARIANT(p->l->h.last_seq >= p->l->mark.seq); /* never less than was acknowledged */
    mark_write(s, p->l, given_back);               /* all of it is on disk, and not acknowledged yet */
    if (!p->l->hidden || p->reveal)
        shown = session_files_put(s, p->l, p->session_file, p->tokens, given_back);
    if (settle_lease(s, p, &err)) /* it stays ours on disk, and nobody knows of it */
        orphan_note(&s->orphans, p->l->id, p->lease.epoch, 0);
    if (p->reveal && !p->code && files_reveal(s, p->l, &err))
        fail_part(s, p, &err);
    if (given_back && !p->l->torn && (has_reserve(p->l) || left) &&
        !s->base.env->ops->truncate(p->l->file, p->l->end, NULL)) {
        p->l->allocated = 0;
        log_wrote(s, p->l);
    }
    save_states(s, p);
    if (given_back)
        p->l->clean_end = p->l->end;
    if (given_back || p->has_state || shown) /* one older than the session file would hide what is gone behind it */
        cache_save_head(s, p->l, p->summary);
}

/* Of one session, side by side with those of others. */
struct put {
    struct files_store *s;
    struct part *p;
    enum tide_code wrote, synced;
    struct tide_err err;
};

static void put_lines(void *list, size_t i)
{
    struct put *put = (struct put *)list + i;
    const struct env_ops *ops = put->s->base.env->ops;
    struct part *p = put->p;

    put->synced = TIDE_OK;
    put->wrote = ops->pwrite(p->l->file, p->lines.ptr, p->lines.len, p->l->end, &put->err);
    if (put->wrote)
        return;
    log_wrote(put->s, p->l); /* who changes it from here on is seen when it is on disk */
    put->synced = ops->sync(p->l->file, &put->err);
}

/* Writes and syncs those whose lines are due. `again`: they were, while a sync of somebody failed: byte for byte, where they stand. */
static void put_all(struct parts *all, bool again)
{
    struct files_store *s = all->s;
    struct put *list = mem_alloc(all->n * sizeof *list);
    bool failed = false;
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (is_due(&all->at[i])) {
            list[n].s = s;
            list[n++].p = &all->at[i];
        }
    pthread_mutex_unlock(&s->mu);
    pool_each(s->pool, n, put_lines, list);
    for (size_t i = 0; i < n; i++)
        failed |= list[i].synced != TIDE_OK;
    word_end(s, failed); /* before s->mu is waited for: the thread that has it may wait for this */
    pthread_mutex_lock(&s->mu);
    for (size_t i = 0; i < n; i++) {
        struct put *put = &list[i];

        if (put->synced || (put->wrote && again)) {
            take_back(s, put->p, &put->err);
        } else if (put->wrote) {
            put->p->l->suspect = s->base.env->ops->truncate(put->p->l->file, put->p->l->end, NULL) != TIDE_OK;
            refuse_part(s, put->p, put->wrote, &put->err);
        }
    }
    free(list);
}

static bool any_due(const struct parts *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (is_due(&all->at[i]))
            return true;
    return false;
}

/* They are acknowledged when they are on disk, and no sync of anybody failed meanwhile. */
static void settle_parts(struct parts *all, struct word_at *at)
{
    struct tide_err err;

    put_all(all, false);
    while (any_due(all) && !word_holds(all->s, at)) {
        if (!word_again(all->s, at, &err)) {
            put_all(all, true);
            continue;
        }
        for (size_t i = 0; i < all->n; i++) {
            struct tide_err why = err;

            if (is_due(&all->at[i]))
                take_back(all->s, &all->at[i], &why);
        }
    }
}

static void flush_parts(struct parts *all)
{
    struct files_store *s = all->s;
    struct tide_err err;
    struct word_at at;
    enum tide_code code;
    bool begun;

    for (size_t i = 0; i < all->n; i++)
        if (!all->at[i].code && all->at[i].n)
            prepare_part(s, &all->at[i]);
    begun = any_due(all);
    code = begun ? word_begin(s, &at, &err) : TIDE_OK;
    word_committing(s, true); /* the first one of a process has its place there only now */
    if (begun && !code)
        settle_parts(all, &at);
    for (size_t i = 0; i < all->n; i++) {
        if (code && is_due(&all->at[i]))
            refuse_part(s, &all->at[i], code, &err);
        if (!all->at[i].code && all->at[i].n)
            finish_part(s, &all->at[i]);
    }
    parts_unlock(all);
}

/* ---- the group ---- */

void files_commit(struct store *store, struct batch *list)
{
    struct files_store *s = files_of(store);
    struct parts all = {.s = s, .now_ms = env_now_ms(store->env)};
    struct batch **order;
    size_t n, end;

    order = plan_order(list, &n);
    pthread_mutex_lock(&s->mu);
    word_committing(s, true);
    for (size_t i = 0; i < n; i = end) {
        end = i + 1;
        if (order[i]->flags & BATCH_CREATE) {
            end = i + files_create(s, order + i, n - i);
        } else if (order[i]->flags & BATCH_DELETE) {
            files_delete(s, order[i]);
        } else {
            while (end < n && !(order[end]->flags & (BATCH_CREATE | BATCH_DELETE)))
                end++;
            parts_lock(&all, order + i, end - i);
            for (size_t k = i; k < end; k++)
                parts_offer(&all, order[k]);
            flush_parts(&all);
        }
    }
    files_changed(s);
    word_committing(s, false);
    pthread_mutex_unlock(&s->mu);
    free(all.at);
    free(order);
}

bool files_is_due(struct store *store)
{
    struct files_store *s = files_of(store);

    return session_files_due(s) || boot_beat_due(s) || orphans_due(&s->orphans, store);
}

void files_maintain(struct store *store)
{
    struct files_store *s = files_of(store);

    if (session_files_due(s))
        session_files_settle(s);
    if (boot_beat_due(s))
        boot_beat(s);
    orphans_give_back(&s->orphans, store);
}
