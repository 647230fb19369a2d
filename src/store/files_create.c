/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions come as wholes: a new one is written under another name, synced, and given its own, many of them in one go. All of
 * that under the lock of the directory, so that no fork begins on a session that is just being deleted (files_delete.c). An
 * import has a name of its own (".import-…") until it is revealed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "store/files_store.h"
#include "store/origin.h"

#define MAKE_MAX 64 /* made at once: their syncs go out side by side, and the directory has one for all */

/* ---- forks ---- */

struct digest_at {
    int64_t seq;
    unsigned char digest[DIGEST_SIZE];
    bool found;
};

static int take_digest(void *arg, const struct event *ev)
{
    struct digest_at *d = arg;

    memcpy(d->digest, ev->digest, DIGEST_SIZE);
    d->found = true;
    return 1;
}

/* The event that a fork stands on. */
static void find_parent(struct files_store *s, struct batch *b, struct head *h)
{
    struct digest_at d = {.seq = b->parent_seq};
    struct files_log *p = log_of(s, str_from(b->parent));
    struct tide_err err;
    struct head parent;
    enum tide_code code = log_refresh(s, p, false, &err);

    parent = p->h;
    if (!code && (!p->exists || p->hidden))
        batch_refuse(b, TIDE_NOT_FOUND, "no session '%s' to fork from", b->parent);
    else if (!code && (b->parent_seq < parent.first_seq || b->parent_seq > parent.last_seq))
        batch_refuse(b, TIDE_INVALID, "cannot fork '%s' at seq %" PRId64 ": its own events are %" PRId64 " to %" PRId64,
                     b->parent, b->parent_seq, parent.first_seq, parent.last_seq);
    if (code || b->code) {
        if (code)
            batch_refuse_as(b, &err);
        return;
    }
    pthread_mutex_unlock(&s->mu);
    code = files_read(&s->base, &parent, b->parent_seq, b->parent_seq, take_digest, &d, &err);
    pthread_mutex_lock(&s->mu);
    if (code || !d.found) {
        if (code)
            batch_refuse_as(b, &err);
        else
            batch_refuse(b, TIDE_CORRUPT, "the event to fork at cannot be read");
        return;
    }
    h->parent_seq = b->parent_seq;
    snprintf(h->parent_id, sizeof h->parent_id, "%s", b->parent);
    memcpy(h->first_before, d.digest, DIGEST_SIZE);
    memcpy(h->digest, d.digest, DIGEST_SIZE);
}

/* ---- making ---- */

static enum tide_code sweep_locked(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    struct files_lease lease;
    char who[160];
    bool alive = false, ours;
    enum tide_code code = lease_read(s, l->id, &lease, err);

    ours = strcmp(lease.boot, s->base.boot_id) == 0;
    if (!code && lease.boot[0] && !ours)
        code = boot_alive(s, lease.boot, &alive, who, err);
    if (code || ((alive || ours) && !orphan_is(&s->orphans, l->id, lease.epoch)))
        return code;
    return files_erase(s, l, err);
}

/*
 * A half-done import whose process died is in nobody's way. One that was only stopped may be right before its rename: it holds the
 * lock of the log then, and would give the name to what comes in the place of its own.
 */
static enum tide_code sweep_import(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    struct env_file *file = l->file;
    int64_t opened = l->opened;
    enum tide_code code = TIDE_OK;

    if (!file || s->base.env->ops->lock(file, 0, NULL))
        return TIDE_OK; /* somebody is at it */
    code = log_refresh(s, l, true, err);
    if (l->opened == opened && l->hidden && (!code || code == TIDE_CORRUPT))
        code = sweep_locked(s, l, err);
    if (l->opened == opened)
        s->base.env->ops->unlock(file);
    return code;
}

/* Every import that begins sweeps those that were cut off. */
static enum tide_code sweep_others(void *arg, const char *id, bool hidden)
{
    struct files_store *s = arg;
    struct files_log *l = hidden ? log_of(s, str_from(id)) : NULL;
    struct tide_err err;

    if (l && !l->busy && !log_refresh(s, l, false, &err) && l->exists && l->hidden)
        (void)!sweep_import(s, l, &err);
    return TIDE_OK;
}

/* One that is being made: its file has another name until it is on disk. */
struct making {
    struct batch *b;
    struct files_log *l;
    struct head h;
    struct files_lease lease;
    struct env_file *file, *mark, *lease_file;
    struct buf lines, lease_text;
    int64_t end, last_line;
    bool leased, named; /* the file of its lease has its own name; that of its log */
    enum tide_code code;
    struct tide_err err;
    char fresh[FILES_PATH], lease_fresh[FILES_PATH];
};

static void write_first(struct files_store *s, struct making *m, struct buf *out)
{
    struct batch *b = m->b;
    struct head *h = &m->h;
    struct line_fields mark = {.more = (int64_t)b->n - 1, .verified = true, .parent_seq = h->parent_seq};
    int64_t now = env_now_ms(s->base.env);

    memcpy(mark.parent, h->parent_id, sizeof mark.parent);
    memcpy(mark.before, h->first_before, DIGEST_SIZE);
    b->first_seq = h->last_seq + 1;
    for (size_t i = 0; i < b->n; i++, mark.at++, mark.more--) {
        struct event *ev = &b->events[i];

        ev->seq = ev->pos = ++h->last_seq;
        if (!(b->flags & BATCH_KEEP)) {
            ev->ts_ms = ev->ts_ms ? ev->ts_ms : now;
            ev->epoch = h->epoch;
        }
        event_digest(ev->digest, &s->base.key, h->digest, str_from(b->session), ev);
        if (b->flags & BATCH_VOUCH && origin_wants(b, i))
            origin_prove(&ev->proof, &s->base.origin, str_from(b->session), ev);
        h->proof = ev->proof;
        memcpy(h->digest, ev->digest, DIGEST_SIZE);
        m->last_line = (int64_t)out->len;
        line_write(out, ev, &mark);
        log_note_line(m->l, ev->seq, m->last_line, ev->kind);
        mark.parent[0] = 0;
    }
    m->end = (int64_t)out->len;
    b->last_seq = h->last_seq;
}

static bool is_hidden(const struct batch *b)
{
    return (b->flags & (BATCH_HIDDEN | BATCH_REVEAL)) == BATCH_HIDDEN;
}

static void set_lease(struct files_store *s, struct batch *b, const struct head *h, struct files_lease *ret)
{
    bool release = b->flags & BATCH_RELEASE;

    *ret = (struct files_lease){.live = !release || b->flags & BATCH_LIVE,
                                .hidden = is_hidden(b),
                                .epoch = h->epoch,
                                .wake_ms = release && b->caches_seq == b->last_seq ? b->wake_ms : 0};
    if (!release && b->flags & BATCH_ACQUIRE)
        snprintf(ret->boot, sizeof ret->boot, "%s", s->base.boot_id);
    snprintf(ret->kernel, sizeof ret->kernel, "%s", s->holders.self.kernel_boot);
    ret->there = ret->boot[0] || (release && b->flags & BATCH_LIVE) || ret->hidden;
}

/*
 * No cut may leave a log without its mark: the mark is renamed from the very name that the log is renamed from later. Of two changes
 * to one name the later does not survive without the earlier.
 */
static enum tide_code begin_mark(struct files_store *s, struct making *m, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char path[FILES_PATH];
    enum tide_code code = ops->open(s->base.env, m->fresh, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &m->mark, err);

    files_path(s, path, "sessions", m->b->session, ".mark");
    code = code ? code : ops->rename(s->base.env, m->fresh, path, err);
    if (!code)
        ops->renamed(m->mark, path);
    return code;
}

/* Files for the lease, if any, and the log; what stands in them comes when no sync but theirs is to come. The mark before the lease:
 * a lease without it is one whose session is gone (lease_misses_log()). */
static enum tide_code begin_log(struct files_store *s, struct making *m, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char path[FILES_PATH];
    enum tide_code code;

    m->h.first_seq = m->h.parent_seq + 1;
    m->h.last_seq = m->h.parent_seq;
    m->h.epoch = m->b->flags & BATCH_ACQUIRE ? 1 : 0;
    log_forget(s, m->l);
    write_first(s, m, &m->lines);
    set_lease(s, m->b, &m->h, &m->lease);
    log_path(s, path, m->b->session, is_hidden(m->b));
    files_fresh(s, path, m->fresh);
    code = begin_mark(s, m, err);
    if (!code && m->lease.boot[0])
        code = boot_ready(s, err);
    if (!code && m->lease.there)
        code = lease_begin(s, m->l, m->lease_fresh, &m->lease_file, err);
    lease_text(m->l, &m->lease, &m->lease_text);
    return code ? code : ops->open(s->base.env, m->fresh, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &m->file, err);
}

/* All of the log, its lease, and a mark that says nothing yet: without its log it is nobody's. */
static enum tide_code put_lines(struct files_store *s, struct making *m, struct tide_err *err)
{
    const struct head nothing = {.last_seq = 0};
    const struct env_ops *ops = s->base.env->ops;
    enum tide_code code = ops->pwrite(m->file, m->lines.ptr, m->lines.len, 0, err);

    if (!code && m->lease_file)
        code = ops->pwrite(m->lease_file, m->lease_text.ptr, m->lease_text.len, 0, err);
    return code ? code : mark_put(s, m->mark, m->b->session, &nothing, err);
}

/* It is not made after all. */
static void unmake_files(struct files_store *s, struct making *m)
{
    const struct env_ops *ops = s->base.env->ops;
    char path[FILES_PATH];
    bool kept = false;

    (void)files_not_fresh(m->code, &m->err);
    log_path(s, path, m->b->session, is_hidden(m->b));
    if (m->file)
        ops->close(TAKE(m->file));
    (void)!ops->unlink(s->base.env, m->named ? path : m->fresh, NULL);
    if (m->lease_file) {
        ops->close(TAKE(m->lease_file));
        if (!m->leased)
            (void)!ops->unlink(s->base.env, m->lease_fresh, NULL);
    }
    if (m->lease.there) {
        kept = lease_remove(s, m->l, NULL) != TIDE_OK;
        orphan_note(&s->orphans, m->l->id, m->lease.epoch, 0);
    }
    files_path(s, path, "sessions", m->b->session, ".mark");
    if (m->mark) {
        ops->close(TAKE(m->mark));
        if (!kept)
            (void)!ops->unlink(s->base.env, path, NULL);
    }
    if (m->named) { /* it had its name, and it is not known whether that is on disk */
        m->err.code = TIDE_UNKNOWN;
        tide_wrap(&m->err, "the disk failed while the session was being made; it is unknown whether it is stored");
    } else {
        m->err.code = m->code;
    }
    log_forget(s, m->l);
    batch_fail(m->b, &m->err, &s->orphans, &s->base);
}

/* What was written is what is known of it: nobody needs to read it again. */
static bool take_over(struct files_store *s, struct making *m)
{
    const struct batch *b = m->b;
    struct files_log *l = m->l;
    struct env_stat st;

    if (s->base.env->ops->fstat(m->file, &st, NULL))
        return false;
    memcpy(m->h.id, l->id, sizeof m->h.id);
    if (b->n) {
        m->h.created_ms = b->events[0].ts_ms;
        m->h.updated_ms = b->events[b->n - 1].ts_ms;
        m->h.epoch = l->line_epoch = b->events[b->n - 1].epoch;
    }
    l->file = TAKE(m->file);
    l->mark_file = TAKE(m->mark);
    l->mark = (struct files_mark){.state = MARK_OK, .here = true};
    l->opened = ++s->clock;
    l->dev = st.dev;
    l->ino = st.ino;
    l->exists = true;
    l->hidden = is_hidden(b);
    l->h = m->h;
    l->proved_seq = l->h.last_seq;
    l->mtime_ns = st.mtime_ns;
    l->last_line = m->last_line;
    l->end = l->looked = m->end;
    l->judged = true;
    if (!s->base.env->ops->lock(l->file, 0, NULL)) { /* else another has seen it, and marks it */
        mark_write(s, l, b->flags & BATCH_RELEASE);
        s->base.env->ops->unlock(l->file);
    }
    return true;
}

static void tell_maker(struct files_store *s, struct making *m)
{
    struct batch *b = m->b;
    struct files_log *l = m->l;
    bool here = b->caches_seq == b->last_seq;

    b->epoch = m->h.epoch;
    if (b->owner)
        b->owner->epoch = b->flags & BATCH_ACQUIRE && !(b->flags & BATCH_RELEASE) ? b->epoch : 0;
    orphan_drop(&s->orphans, l->id);
    if (m->lease_file)
        lease_take_over(s, l, &m->lease, TAKE(m->lease_file));
    if (!take_over(s, m)) {
        s->base.env->ops->close(TAKE(m->file));
        s->base.env->ops->close(TAKE(m->mark));
        return; /* it is there: the process that looks next opens it */
    }
    if (b->flags & BATCH_RELEASE)
        l->clean_end = l->end;
    if (b->n && b->snapshot.len && here)
        cache_save_state(s, l, &b->events[b->n - 1], l->last_line, b->snapshot);
    if (b->flags & BATCH_RELEASE)
        cache_save_head(s, l, here ? b->summary : STR(""));
    if (here && !l->hidden)
        (void)session_files_put(s, l, b->session_file, b->tokens, b->flags & BATCH_RELEASE);
}

static void refuse_existing(struct files_store *s, struct batch *b, struct files_log *l, struct tide_err *err)
{
    enum tide_code code = l->exists && l->hidden ? sweep_import(s, l, err) : TIDE_OK;

    if (code)
        batch_refuse_as(b, err);
    else if (l->exists)
        batch_refuse(b, TIDE_EXISTS, "a session '%s' exists already%s", b->session,
                     l->hidden                 ? " (it is being imported)"
                     : b->flags & BATCH_HIDDEN ? ": delete it first, or import into another store"
                                               : ": choose another id");
    else if (b->parent[0] && !b->n)
        batch_refuse(b, TIDE_INVALID, "a fork begins with an event: its first line names its parent");
}

static void done_making(struct making *m)
{
    buf_done(&m->lines);
    buf_done(&m->lease_text);
    m->l->busy = false;
}

/* Whether it may be made, and its files; the rest is done for all at once. */
static bool begin_making(struct files_store *s, struct batch *b, struct making *m)
{
    struct tide_err err = {0};
    enum tide_code code = TIDE_OK;
    struct files_log *l;

    *m = (struct making){.b = b, .lines = BUF_INIT(SIZE_MAX / 4), .lease_text = BUF_INIT(SIZE_MAX / 4)};
    if (b->flags & BATCH_HIDDEN)
        code = files_each_id(s, sweep_others, s, &err);
    l = log_of(s, str_from(b->session));
    code = code ? code : log_refresh(s, l, false, &err);
    if (code && !(code == TIDE_CORRUPT && l->exists))
        batch_refuse_as(b, &err);
    else
        refuse_existing(s, b, l, &err);
    if (!b->code && b->parent[0])
        find_parent(s, b, &m->h);
    if (b->code)
        return false;
    m->l = log_of(s, str_from(b->session)); /* looking at others may have closed it */
    m->l->busy = true;
    m->code = begin_log(s, m, &m->err);
    if (m->code) {
        unmake_files(s, m);
        done_making(m);
    }
    return !m->code;
}

/* The log of a session that is made, its mark, or its lease. */
struct made_file {
    struct files_store *s;
    struct making *m;
    struct env_file *file;
    enum tide_code code;
    struct tide_err err;
};

static void sync_made(void *list, size_t i)
{
    struct made_file *f = (struct made_file *)list + i;

    f->code = f->s->base.env->ops->sync(f->file, &f->err);
}

/* All files of all, side by side; those that failed before are left out. */
static bool sync_files(struct files_store *s, struct making *list, size_t n)
{
    struct made_file *files = mem_alloc(3 * n * sizeof *files);
    bool failed = false;
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        struct env_file *const three[] = {list[i].file, list[i].mark, list[i].lease_file};

        for (size_t j = 0; j < 3 && !list[i].code; j++)
            if (three[j]) {
                files[k].s = s;
                files[k].m = &list[i];
                files[k++].file = three[j];
            }
    }
    pool_each(s->pool, k, sync_made, files);
    for (size_t i = 0; i < k; i++)
        if (files[i].code) {
            failed = true;
            files[i].m->code = files[i].code;
            files[i].m->err = files[i].err;
        }
    free(files);
    return !failed;
}

/* Leases are there before the logs: the process that finds an open run finds who has it. One sync for all. */
static bool name_leases(struct files_store *s, struct making *list, size_t n)
{
    struct tide_err err;
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        struct making *m = &list[i];

        if (m->lease_file && !m->code && !m->leased) {
            m->code = lease_give_name(s, m->l, m->lease_file, m->lease_fresh, &m->err);
            m->leased = !m->code;
        }
        any |= m->leased;
    }
    if (!any || !files_sync_dir(s, "live", &err))
        return true;
    for (size_t i = 0; i < n; i++)
        if (list[i].leased && !list[i].code) {
            list[i].code = err.code;
            list[i].err = err;
        }
    return false;
}

/* Nobody else has anything to do with them yet: without s->mu, so that the thread that has it may wait for the syncs. */
static void sync_all(struct files_store *s, struct making *list, size_t n)
{
    bool ok;

    pthread_mutex_unlock(&s->mu);
    ok = sync_files(s, list, n);
    ok = name_leases(s, list, n) && ok;
    word_end(s, !ok);
    pthread_mutex_lock(&s->mu);
}

/* What was written while a sync of anybody failed is written again. */
static void write_all(struct files_store *s, struct making *list, size_t n)
{
    struct tide_err err = {0};
    struct word_at at;
    enum tide_code code = n ? word_begin(s, &at, &err) : TIDE_OK;

    for (bool holds = n == 0; !holds;) {
        for (size_t i = 0; i < n; i++) {
            if (code && !list[i].code)
                list[i].err = err;
            list[i].code = list[i].code ? list[i].code : code ? code : put_lines(s, &list[i], &list[i].err);
        }
        if (!code)
            sync_all(s, list, n);
        holds = code || word_holds(s, &at);
        code = holds ? code : word_again(s, &at, &err);
    }
}

/* All of them get their names, and their directory one sync. */
static void conclude_making(struct files_store *s, struct making *list, size_t n)
{
    const struct env_ops *ops = s->base.env->ops;
    char path[FILES_PATH];
    struct tide_err err;
    enum tide_code code = TIDE_OK;
    bool any = false;

    write_all(s, list, n);
    for (size_t i = 0; i < n; i++) {
        struct making *m = &list[i];

        log_path(s, path, m->b->session, is_hidden(m->b));
        if (!m->code)
            m->code = ops->rename(s->base.env, m->fresh, path, &m->err);
        m->named = !m->code;
        if (m->named)
            ops->renamed(m->file, path);
        any |= m->named;
    }
    if (any)
        code = files_sync_dir(s, "sessions", &err);
    for (size_t i = 0; i < n; i++) {
        struct making *m = &list[i];

        if (m->named && code) {
            m->code = code;
            m->err = err;
        }
        if (m->code)
            unmake_files(s, m);
        else
            tell_maker(s, m);
        done_making(m);
    }
}

/* Made by the same run: what it stands on, or itself. */
static bool needs_one_of(const struct making *list, size_t n, const struct batch *b)
{
    bool found = false;

    for (size_t i = 0; i < n && !found; i++)
        found = strcmp(list[i].b->session, b->session) == 0 || strcmp(list[i].b->session, b->parent) == 0;
    return found;
}

size_t files_create(struct files_store *s, struct batch *const *batches, size_t most)
{
    struct making *list = mem_array(MAKE_MAX, sizeof *list);
    struct tide_err err;
    bool locked = files_lock(s, &err);
    size_t n = 0, done = 0;

    for (; done < most && n < MAKE_MAX; done++) {
        struct batch *b = batches[done];

        if (!(b->flags & BATCH_CREATE) || needs_one_of(list, n, b))
            break;
        if (!locked)
            batch_refuse_as(b, &err);
        else
            n += begin_making(s, b, &list[n]);
    }
    conclude_making(s, list, n);
    if (locked)
        s->base.env->ops->unlock(s->lock);
    free(list);
    return done;
}

/* ---- an import that is whole ---- */

enum tide_code files_reveal(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    char from[FILES_PATH], to[FILES_PATH];
    enum tide_code code;

    if (!l->hidden)
        return TIDE_OK;
    log_path(s, from, l->id, true);
    log_path(s, to, l->id, false);
    code = s->base.env->ops->rename(s->base.env, from, to, err);
    if (code)
        return code;
    l->hidden = false;
    if (!files_sync_dir(s, "sessions", err))
        return TIDE_OK;
    s->names_due = true; /* all see it, and a power cut may take its name back: the next reader settles that */
    err->code = TIDE_UNKNOWN;
    return tide_wrap(err, "the disk failed while the session was given its name; it is unknown whether it is stored");
}
