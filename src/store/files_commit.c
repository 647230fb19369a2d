/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group of batches. Those that append are gathered by session: each session's log is locked, read to its end, and gets all
 * of its lines in one write, which is its unit; then all of these logs are synced side by side, and only then is anyone told.
 * A lease that is taken is on disk before the first line under it; one that is given back goes after the last, or recovery
 * looks once too often. Sessions are made and deleted one at a time (files_make.c), in their place among the others.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "store/files_store.h"

#define LOCK_MS 30000

/* What one session gets of this group. */
struct part {
    struct files_log *l;
    struct head h;            /* as it will be */
    struct files_lease lease; /* … and the lease */
    struct files_lease before;
    bool took, changed; /* it is new here; it is another than on disk */
    bool first;         /* it was written before the lines */
    bool reveal, locked;
    int64_t epoch_written; /* of the last event */
    size_t n, cap;
    struct batch **batches; /* accepted */
    size_t n_lines;
    struct buf lines;
    int64_t *offsets; /* of each line, in the log */
    bool has_state;
    struct str summary, card, tokens;
    enum tide_code code;
    struct tide_err err;
};

struct parts {
    struct files_store *s;
    struct part *at;
    size_t n, cap;
    int64_t now_ms;
};

void batch_refuse(struct batch *b, enum tide_code code, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    b->code = tide_fail(&b->err, code, "%s", text);
    if (b->owner && !b->owner->failed.code)
        b->owner->failed = b->err;
}

/* It was accepted, and came to nothing. A lease that may be ours without anyone knowing is remembered as such. */
void batch_fail(struct files_store *s, struct batch *b, const struct tide_err *err)
{
    b->code = err->code;
    b->err = *err;
    if (b->flags & (BATCH_INPUT | BATCH_DELETE))
        return;
    if ((b->flags & BATCH_RELEASE && !b->owner) || (b->flags & BATCH_ACQUIRE && err->code == TIDE_UNKNOWN))
        orphan_note(s, b->session, b->epoch ? b->epoch : b->owner ? b->owner->epoch : 0);
    if (!b->owner)
        return;
    if (b->flags & BATCH_ACQUIRE)
        b->owner->epoch = 0; /* not taken after all */
    else if (b->flags & BATCH_RELEASE && b->epoch)
        b->owner->epoch = b->epoch; /* not given back after all */
}

/* ---- a session's log, locked ---- */

/* Locked, and still the file of that name. */
static enum tide_code lock_log(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    enum tide_code code = TIDE_OK;

    for (int i = 0; i < 8; i++) {
        struct env_file *file;

        code = log_refresh(s, l, false, err);
        if (code || !l->exists)
            return code;
        l->busy = true;
        file = l->file;
        pthread_mutex_unlock(&s->mu);
        code = ops->lock(file, LOCK_MS, err);
        pthread_mutex_lock(&s->mu);
        code = code ? code : log_refresh(s, l, true, err);
        if (code || (l->file == file && !l->unverified))
            break;
        if (l->file == file && (code = foreign_upgrade(s, l, err)) != TIDE_OK)
            break;
        if (l->file == file)
            log_forget(s, l); /* its lock goes with it */
        l->busy = false;      /* it was deleted meanwhile, or another took its place */
    }
    if (!code && l->torn)
        code = log_mend(s, l, err);
    if (code && l->file)
        ops->unlock(l->file);
    if (code)
        l->busy = false;
    return code;
}

static enum tide_code find_lease(struct part *p, struct files_store *s, struct tide_err *err)
{
    if (lease_is_ours(s, p->l)) {
        p->lease = p->l->lease;
        return TIDE_OK;
    }
    if (p->l->lease_file)
        s->base.env->ops->close(TAKE(p->l->lease_file)); /* somebody took it */
    return lease_read(s, p->l->id, &p->lease, err);
}

static struct part *part_for(struct parts *all, const char *id)
{
    struct files_store *s = all->s;
    struct part *p;

    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->at[i].l->id, id) == 0)
            return &all->at[i];
    if (all->n == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 16;
        all->at = mem_grow(all->at, all->cap * sizeof *all->at);
    }
    p = &all->at[all->n++];
    *p = (struct part){.l = log_of(s, str_from(id)), .lines = BUF_INIT(SIZE_MAX / 4)};
    p->code = lock_log(s, p->l, &p->err);
    p->l->busy = true; /* it stays where it is until this group is over */
    p->locked = !p->code && p->l->exists;
    if (p->locked)
        p->code = find_lease(p, s, &p->err);
    p->before = p->lease;
    p->h = p->l->h;
    return p;
}

/* ---- may it? ---- */

static void name_holder(struct files_store *s, struct part *p, struct batch *b)
{
    struct tide_err err;
    char who[160];
    bool alive;

    if (strcmp(p->lease.boot, s->base.boot_id) == 0) {
        if (!orphan_is(s, b->session, p->lease.epoch))
            batch_refuse(b, TIDE_HELD, "session '%s' is open for appending in this process already", b->session);
        return;
    }
    if (boot_alive(s, p->lease.boot, &alive, who, &err))
        batch_refuse(b, err.code, "%s", err.msg);
    else if (alive)
        batch_refuse(b, TIDE_HELD, "session '%s' is held by %s: wait for it to end, or stop it", b->session, who);
}

static void check_lease(struct files_store *s, struct part *p, struct batch *b)
{
    if (b->owner)
        b->epoch = b->owner->epoch;
    if (b->flags & BATCH_INPUT)
        return;
    if (b->flags & BATCH_ACQUIRE) {
        if (p->lease.boot[0] && !(b->flags & BATCH_FORCE))
            name_holder(s, p, b);
    } else if (strcmp(p->lease.boot, s->base.boot_id) != 0 || p->lease.epoch != b->epoch) {
        batch_refuse(b, TIDE_FENCED,
                     "session '%s': the lease of epoch %" PRId64 " was taken over (epoch %" PRId64 " now)", b->session,
                     b->epoch, p->lease.epoch > p->h.epoch ? p->lease.epoch : p->h.epoch);
    }
}

static void check_batch(struct files_store *s, struct part *p, struct batch *b)
{
    if (b->owner && b->owner->failed.code) {
        b->err = b->owner->failed;
        b->code = b->err.code;
    } else if (p->code) {
        b->epoch = b->owner ? b->owner->epoch : b->epoch;
        batch_fail(s, b, &p->err);
    } else if (!p->l->exists || (p->l->hidden && (b->flags & (BATCH_ACQUIRE | BATCH_INPUT)))) {
        batch_refuse(b, TIDE_NOT_FOUND, "no session '%s'", b->session);
    } else {
        check_lease(s, p, b);
    }
    if (!b->code && b->expect_seq != STORE_ANY_SEQ && b->expect_seq != p->h.last_seq)
        batch_refuse(b, TIDE_CONFLICT,
                     "session '%s' is at seq %" PRId64 ", not at %" PRId64 ": read on and decide again", b->session,
                     p->h.last_seq, b->expect_seq);
}

/* ---- into the part ---- */

static void take_lease(struct files_store *s, struct part *p, struct batch *b)
{
    if (b->flags & BATCH_ACQUIRE) {
        p->lease.epoch = (p->lease.epoch > p->h.epoch ? p->lease.epoch : p->h.epoch) + 1;
        p->lease.there = p->lease.live = p->took = p->changed = true;
        p->lease.wake_ms = 0;
        snprintf(p->lease.boot, sizeof p->lease.boot, "%s", s->base.boot_id);
        p->h.epoch = p->lease.epoch;
    }
    b->epoch = p->lease.boot[0] ? p->lease.epoch : p->h.epoch;
    if (b->owner && !(b->flags & BATCH_INPUT))
        b->owner->epoch = b->flags & BATCH_RELEASE ? 0 : b->epoch;
}

static void leave_lease(struct part *p, struct batch *b)
{
    bool here = b->caches_seq == b->last_seq;

    if (b->flags & BATCH_RELEASE) {
        p->lease.boot[0] = 0;
        p->lease.live = (b->flags & BATCH_LIVE) != 0;
        p->lease.wake_ms = p->lease.live && here ? b->wake_ms : 0; /* something came between: look at once */
        p->changed = true;
    } else if (b->flags & BATCH_INPUT && p->lease.there && p->lease.wake_ms) {
        p->lease.wake_ms = 0;
        p->changed = true;
    }
}

static void take_events(struct parts *all, struct part *p, struct batch *b)
{
    b->first_seq = p->h.last_seq + 1;
    for (size_t i = 0; i < b->n; i++) {
        struct event *ev = &b->events[i];

        ev->seq = ev->pos = ++p->h.last_seq;
        if (!ev->ts_ms)
            ev->ts_ms = all->now_ms;
        if (!(b->flags & BATCH_KEEP))
            ev->epoch = p->lease.epoch > p->h.epoch ? p->lease.epoch : p->h.epoch;
        event_digest(ev->digest, &all->s->base.key, p->h.digest, str_from(p->h.id), ev);
        memcpy(p->h.digest, ev->digest, DIGEST_SIZE);
        p->h.updated_ms = ev->ts_ms;
        p->h.epoch = ev->epoch > p->h.epoch ? ev->epoch : p->h.epoch;
        p->epoch_written = ev->epoch;
    }
    b->last_seq = p->h.last_pos = p->h.last_seq;
    p->n_lines += b->n;
}

static void take_caches(struct part *p, const struct batch *b)
{
    if (b->n || b->flags & BATCH_RELEASE)
        p->summary = (struct str){NULL, 0};
    if (b->caches_seq != b->last_seq)
        return;
    p->has_state |= b->snapshot.len > 0;
    if (b->summary.len)
        p->summary = b->summary;
    if (b->card.len) {
        p->card = b->card;
        p->tokens = b->tokens;
    }
}

static void take_batch(struct parts *all, struct part *p, struct batch *b)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 4;
        p->batches = mem_grow(p->batches, p->cap * sizeof *p->batches);
    }
    p->batches[p->n++] = b;
    take_lease(all->s, p, b);
    take_events(all, p, b);
    leave_lease(p, b);
    take_caches(p, b);
    p->reveal |= (b->flags & BATCH_REVEAL) != 0;
}

/* ---- to disk ---- */

static void fail_part(struct files_store *s, struct part *p, const struct tide_err *err)
{
    p->code = err->code;
    p->err = *err;
    for (size_t i = 0; i < p->n; i++)
        batch_fail(s, p->batches[i], err);
}

static void write_lines(struct part *p)
{
    struct line_mark m = {.more = (int64_t)p->n_lines - 1, .verified = true};
    size_t n = 0;

    p->offsets = mem_array(p->n_lines + 1, sizeof *p->offsets);
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->batches[i]->n; k++, m.at++, m.more--) {
            p->offsets[n++] = p->l->end + (int64_t)p->lines.len;
            line_write(&p->lines, &p->batches[i]->events[k], &m);
        }
}

/* A little more than is needed; when there is no room for that, what is needed. */
static enum tide_code reserve(struct files_store *s, struct files_log *l, int64_t end, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    enum tide_code code;

    if (end <= l->allocated)
        return TIDE_OK;
    code = ops->allocate(l->file, end + ALLOCATE_STEP, NULL);
    if (!code)
        l->allocated = end + ALLOCATE_STEP;
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
static void untake(struct files_store *s, struct part *p, bool unknown)
{
    struct files_lease now;
    struct tide_err err;

    if (!p->first)
        return;
    if (lease_read(s, p->l->id, &now, &err) == TIDE_OK &&
        (strcmp(now.boot, p->lease.boot) != 0 || now.epoch != p->lease.epoch))
        return; /* it never came to that */
    if (unknown) {
        p->before.there = p->before.live = true;
        p->before.wake_ms = 0;
    }
    if (p->before.there ? lease_write(s, p->l, &p->before, &err) : lease_remove(s, p->l, &err))
        orphan_note(s, p->l->id, p->lease.epoch); /* it stays */
}

/* Everything that must be there before the sync. */
static void prepare(struct files_store *s, struct part *p)
{
    const struct env_ops *ops = s->base.env->ops;
    struct tide_err err = {TIDE_OK, ""};
    enum tide_code code = TIDE_OK;

    if (p->n_lines) {
        write_lines(p);
        code = reserve(s, p->l, p->l->end + (int64_t)p->lines.len, &err); /* or a lease would be taken for nothing */
    }
    if (!code && goes_first(p))
        code = lease_first(s, p, &err);
    if (!code && p->n_lines) {
        code = ops->pwrite(p->l->file, p->lines.ptr, p->lines.len, p->l->end, &err);
        if (code)
            p->l->suspect = ops->truncate(p->l->file, p->l->end, NULL) != TIDE_OK;
    }
    if (!code)
        return;
    err.code = code;
    untake(s, p, false);
    fail_part(s, p, &err);
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
    untake(s, p, true);
    err->code = TIDE_UNKNOWN;
    tide_wrap(err, "the disk failed while the events were being stored; whether they are there is not known");
    fail_part(s, p, err);
}

/* Given back: it stays while recovery has to look at it, or while nothing else says how far epochs have come. */
static enum tide_code settle_lease(struct files_store *s, struct part *p, struct tide_err *err)
{
    if (!p->changed || p->lease.boot[0])
        return TIDE_OK; /* as it is on disk */
    if (!p->lease.live && p->lease.epoch <= p->l->line_epoch &&
        ((!p->before.there && !p->first) || !lease_remove(s, p->l, err)))
        return TIDE_OK;
    if (p->first && p->lease.live && !p->lease.wake_ms && !p->lease.hidden)
        return TIDE_OK;
    p->lease.hidden = p->l->hidden && !p->reveal;
    return lease_write(s, p->l, &p->lease, err);
}

static void put_card(struct files_store *s, struct part *p)
{
    char name[TIDE_ID_SIZE + 16];

    if (!p->card.len || p->l->hidden)
        return;
    snprintf(name, sizeof name, "%s.json", p->l->id);
    (void)!files_put(s, "sessions", name, p->card, false, NULL);
    snprintf(name, sizeof name, "%s.tokens.json", p->l->id);
    if (p->tokens.len)
        (void)!files_put(s, "sessions", name, p->tokens, false, NULL);
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

/* It is on disk. */
static void finish(struct files_store *s, struct part *p)
{
    struct tide_err err = {TIDE_OK, ""};
    bool given_back = p->changed && !p->lease.boot[0];

    note_lines(p);
    p->l->h = p->h;
    p->l->end += (int64_t)p->lines.len;
    p->l->looked = p->l->end;
    for (size_t i = 0; i < p->n; i++)
        if (!(p->batches[i]->flags & BATCH_INPUT))
            orphan_drop(s, p->l->id);
    put_card(s, p);               /* before the lease goes: then nobody can delete it meanwhile */
    if (settle_lease(s, p, &err)) /* it stays ours on disk, and nobody knows of it */
        orphan_note(s, p->l->id, p->lease.epoch);
    if (p->reveal && !p->code && files_reveal(s, p->l, &err))
        fail_part(s, p, &err);
    if (given_back && p->l->allocated && !s->base.env->ops->truncate(p->l->file, p->l->end, NULL))
        p->l->allocated = 0;
    save_states(s, p);
    if (given_back)
        p->l->clean_end = p->l->end;
    if (given_back || p->has_state)
        cache_save_head(s, p->l, p->summary);
}

static void sync_all(struct parts *all)
{
    struct files_store *s = all->s;
    struct env_file **files = mem_array(all->n + 1, sizeof *files);
    enum tide_code *codes = mem_array(all->n + 1, sizeof *codes);
    struct tide_err *errs = mem_array(all->n + 1, sizeof *errs);
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (!all->at[i].code && all->at[i].lines.len)
            files[n++] = all->at[i].l->file;
    pthread_mutex_unlock(&s->mu);
    if (n)
        pool_sync(s->pool, files, n, codes, errs);
    pthread_mutex_lock(&s->mu);
    n = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct part *p = &all->at[i];

        if (p->code || !p->n)
            continue;
        if (p->lines.len && codes[n++])
            take_back(s, p, &errs[n - 1]);
        else
            finish(s, p);
    }
    free(files);
    free(codes);
    free(errs);
}

static void flush(struct parts *all)
{
    struct files_store *s = all->s;

    for (size_t i = 0; i < all->n; i++)
        if (!all->at[i].code && all->at[i].n)
            prepare(s, &all->at[i]);
    sync_all(all);
    for (size_t i = 0; i < all->n; i++) {
        struct part *p = &all->at[i];

        if (p->locked && p->l->file)
            s->base.env->ops->unlock(p->l->file);
        p->l->busy = false;
        buf_done(&p->lines);
        free(p->batches);
        free(p->offsets);
    }
    all->n = 0;
}

/* ---- the group ---- */

/* Two processes that lock several logs do it in the same order. */
static int by_id(const void *a, const void *b)
{
    return strcmp((*(struct batch *const *)a)->session, (*(struct batch *const *)b)->session);
}

static void lock_in_order(struct parts *all, struct batch *from, const struct batch *to)
{
    struct batch **list = NULL;
    size_t n = 0;

    for (struct batch *b = from; b != to; b = b->next)
        n++;
    list = mem_array(n + 1, sizeof(struct batch *));
    n = 0;
    for (struct batch *b = from; b != to; b = b->next)
        list[n++] = b;
    qsort(list, n, sizeof(struct batch *), by_id);
    for (size_t i = 0; i < n; i++)
        (void)part_for(all, list[i]->session);
    free(list);
}

static bool is_structural(const struct batch *b)
{
    return b->flags & (BATCH_CREATE | BATCH_DELETE);
}

void files_commit(struct store *store, struct batch *list)
{
    struct files_store *s = files_of(store);
    struct parts all = {.s = s, .now_ms = env_now_ms(store->env)};

    pthread_mutex_lock(&s->mu);
    for (struct batch *b = list; b;) {
        struct batch *end = b;

        if (b->flags & BATCH_CREATE)
            files_create(s, b);
        else if (b->flags & BATCH_DELETE)
            files_delete(s, b);
        if (is_structural(b)) {
            b = b->next;
            continue;
        }
        while (end && !is_structural(end))
            end = end->next;
        lock_in_order(&all, b, end);
        for (; b != end; b = b->next) {
            struct part *p = part_for(&all, b->session);

            check_batch(s, p, b);
            if (!b->code)
                take_batch(&all, p, b);
        }
        flush(&all);
    }
    pthread_mutex_unlock(&s->mu);
    free(all.at);
    files_changed(s);
}

bool files_is_due(struct store *store)
{
    return boot_beat_due(files_of(store));
}

void files_maintain(struct store *store)
{
    struct files_store *s = files_of(store);

    if (boot_beat_due(s))
        boot_beat(s);
}
