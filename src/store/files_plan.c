/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first half of a commit: each session's log is locked and read to its end, and each batch is refused or gets its seqs, its
 * digests and its lease in the part of its session. Nothing is written here: what is refused leaves no trace.
 */
#include "store/files_plan.h"

#include "base/invariant.h"
#include "store/origin.h"

#define TRIES 8

/* ---- in which order ---- */

/* One that is made, whatever those say that stay before it: they speak neither of it nor of what it is forked from. */
static bool may_go_first(const struct map *named, const struct batch *b)
{
    return b->flags & BATCH_CREATE && !(b->flags & BATCH_HIDDEN) && !map_get(named, str_from(b->session)) &&
           !(b->parent[0] && map_get(named, str_from(b->parent)));
}

/* Of those between two deletions. */
static void order_stretch(struct batch **list, size_t n)
{
    struct batch **rest = mem_array(n, sizeof *rest);
    struct map named = {0};
    size_t first = 0, left = 0;

    for (size_t i = 0; i < n; i++)
        if (may_go_first(&named, list[i])) {
            list[first++] = list[i];
        } else {
            map_put(&named, str_from(list[i]->session), list[i]);
            rest[left++] = list[i];
        }
    if (left)
        memcpy(list + first, rest, left * sizeof *rest);
    map_done(&named, NULL);
    free(rest);
}

struct batch **plan_order(struct batch *list, size_t *ret_n)
{
    struct batch **all;
    size_t n = 0, made = 0, begin = 0;

    for (struct batch *b = list; b; b = b->next) {
        n++;
        made += (b->flags & BATCH_CREATE) != 0;
    }
    all = mem_array(n + 1, sizeof(struct batch *));
    *ret_n = n;
    n = 0;
    for (struct batch *b = list; b; b = b->next)
        all[n++] = b;
    for (size_t i = 0; made && made < n && i <= n; i++)
        if (i == n || all[i]->flags & BATCH_DELETE) {
            order_stretch(all + begin, i - begin);
            begin = i + 1;
        }
    return all;
}

/* ---- a session's log, locked ---- */

/* Locked, and still the file of that name. */
static enum tide_code lock_log(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    enum tide_code code = TIDE_OK;

    for (int i = 0;; i++) {
        struct env_file *file;
        int64_t opened, refused_ms;

        if (i == TRIES) /* without its lock nothing is written */
            return tide_fail(err, TIDE_BUSY, "the log of session '%s' is replaced repeatedly: try again", l->id);
        code = l->file && l->lease_file ? TIDE_OK
                                        : log_refresh(s, l, false, err); /* one of ours is read once it is locked */
        if (!code && l->text) {
            code = foreign_write(s, l, err);
            if (!code)
                continue; /* now it has a file */
        }
        if (code || !l->exists)
            return code;
        l->busy = true;
        file = l->file;
        opened = l->opened;
        refused_ms = l->refused_ms;
        pthread_mutex_unlock(&s->mu);
        code = store_lock(&s->base, file, &refused_ms, err);
        pthread_mutex_lock(&s->mu);
        l->refused_ms = refused_ms;
        code = code ? code : log_refresh(s, l, true, err);
        if (code || (l->opened == opened && !l->unverified))
            break;
        if (l->opened == opened && (code = foreign_upgrade(s, l, err)) != TIDE_OK)
            break;
        if (l->opened == opened)
            log_forget(s, l); /* its lock goes with it */
        l->busy = false;      /* it was deleted meanwhile, or another took its place */
    }
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
    struct files_log *l = log_of(s, str_from(id));
    struct part *p;

    if (l->part) {
        INVARIANT(l->part <= all->n && all->at[l->part - 1].l == l);
        return &all->at[l->part - 1];
    }
    MEM_ROOM(all->at, all->n, all->cap);
    p = &all->at[all->n++];
    *p = (struct part){.l = l, .lines = BUF_INIT(SIZE_MAX / 4)};
    l->part = all->n;
    p->code = lock_log(s, p->l, &p->err);
    p->l->busy = true; /* it stays where it is until this group is over */
    p->locked = !p->code && p->l->exists;
    if (p->locked)
        p->code = find_lease(p, s, &p->err);
    p->lease.made = p->locked; /* whatever is written of it from now on */
    p->before = p->lease;
    p->before_lost = strcmp(p->before.boot, s->base.boot_id) == 0 && orphan_is(&s->orphans, id, p->before.epoch);
    p->h = p->l->h;
    p->vouched = p->l->vouched;
    return p;
}

/* ---- may it? ---- */

static void check_lease(struct files_store *s, struct part *p, struct batch *b)
{
    bool ours = strcmp(p->lease.boot, s->base.boot_id) == 0, alive;
    struct holding h = {p->lease.boot[0], ours, ours || p->lease.epoch > p->h.epoch ? p->lease.epoch : p->h.epoch};
    struct tide_err err;
    char who[160];

    if (!batch_check_lease(b, &h, &s->orphans))
        return;
    if (boot_alive(s, p->lease.boot, &alive, who, &err))
        batch_refuse_as(b, &err);
    else if (alive)
        batch_refuse_held(b, who);
}

static void check_batch(struct files_store *s, struct part *p, struct batch *b)
{
    if (batch_is_behind(b))
        return;
    if (p->code) {
        b->epoch = b->owner ? b->owner->epoch : b->epoch;
        batch_fail(b, &p->err, &s->orphans, &s->base);
    } else if (!p->l->exists || (p->l->hidden && (b->flags & (BATCH_ACQUIRE | BATCH_INPUT)))) {
        batch_refuse(b, TIDE_NOT_FOUND, "no session '%s'", b->session);
    } else {
        check_lease(s, p, b);
    }
    batch_check_seq(b, p->h.last_seq);
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
    } else if (b->flags & BATCH_INPUT && b->n && p->lease.there && p->lease.wake_ms) {
        p->lease.wake_ms = 0;
        p->changed = true;
    }
}

static bool goes_on_ours(const struct parts *all, const struct part *p)
{
    return (p->vouched && p->vouched == p->h.last_seq) || origin_is_ours(&all->s->base, &p->h);
}

static void take_events(struct parts *all, struct part *p, struct batch *b)
{
    bool ours = b->flags & BATCH_VOUCH || (!(b->flags & BATCH_KEEP) && goes_on_ours(all, p));

    b->first_seq = p->h.last_seq + 1;
    for (size_t i = 0; i < b->n; i++) {
        struct event *ev = &b->events[i];

        ev->seq = ev->pos = ++p->h.last_seq;
        if (!(b->flags & BATCH_KEEP)) {
            ev->ts_ms = ev->ts_ms ? ev->ts_ms : all->now_ms;
            ev->epoch = p->lease.epoch > p->h.epoch ? p->lease.epoch : p->h.epoch;
        }
        event_digest(ev->digest, &all->s->base.key, p->h.digest, str_from(p->h.id), ev);
        if (ours && origin_wants(b, i))
            origin_prove(&ev->proof, &all->s->base.origin, str_from(p->h.id), ev);
        p->h.proof = ev->proof;
        memcpy(p->h.digest, ev->digest, DIGEST_SIZE);
        p->h.updated_ms = ev->ts_ms;
        p->h.epoch = ev->epoch > p->h.epoch ? ev->epoch : p->h.epoch;
        p->epoch_written = ev->epoch;
    }
    b->last_seq = p->h.last_seq;
    if (b->n)
        p->vouched = ours && p->h.proof.set ? p->h.last_seq : 0;
    INVARIANT(!b->n || p->h.epoch >= b->events[b->n - 1].epoch); /* epochs only grow */
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
    if (b->session_file.len) {
        p->session_file = b->session_file;
        p->tokens = b->tokens;
    }
}

static void take_batch(struct parts *all, struct part *p, struct batch *b)
{
    MEM_ROOM(p->batches, p->n, p->cap);
    p->batches[p->n++] = b;
    take_lease(all->s, p, b);
    take_events(all, p, b);
    leave_lease(p, b);
    take_caches(p, b);
    p->reveal |= (b->flags & BATCH_REVEAL) != 0;
}

/* ---- all of them ---- */

/* Two processes that lock several logs do it in the same order. */
static int by_id(const void *a, const void *b)
{
    return strcmp((*(struct batch *const *)a)->session, (*(struct batch *const *)b)->session);
}

void parts_lock(struct parts *all, struct batch *const *list, size_t n)
{
    struct batch **sorted = mem_array(n, sizeof(struct batch *));

    memcpy(sorted, list, n * sizeof(struct batch *));
    qsort(sorted, n, sizeof(struct batch *), by_id);
    for (size_t i = 0; i < n; i++)
        (void)part_for(all, sorted[i]->session);
    free(sorted);
}

void parts_offer(struct parts *all, struct batch *b)
{
    struct part *p = part_for(all, b->session);

    check_batch(all->s, p, b);
    if (!b->code)
        take_batch(all, p, b);
}

void parts_unlock(struct parts *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct part *p = &all->at[i];

        INVARIANT(p->l->part == i + 1 && p->l->busy);
        if (p->locked && p->l->file)
            all->s->base.env->ops->unlock(p->l->file);
        p->l->busy = false;
        p->l->part = 0;
        buf_done(&p->lines);
        free(p->batches);
        free(p->offsets);
    }
    all->n = 0;
}
