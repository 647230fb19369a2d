/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions come and go as wholes: a new one is written under another name, synced, and given its own; one that is deleted
 * loses its name first, then the rest of it goes. All of that under the lock of the directory, so that no fork begins on a
 * session that is just being deleted. An import has a name of its own (".import-…") until it is revealed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "store/files_store.h"

#define LOCK_MS 30000

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
            batch_refuse(b, code, "%s", err.msg);
        return;
    }
    pthread_mutex_unlock(&s->mu);
    code = files_read(&s->base, &parent, b->parent_seq, b->parent_seq, take_digest, &d, &err);
    pthread_mutex_lock(&s->mu);
    if (code || !d.found) {
        batch_refuse(b, code ? code : TIDE_CORRUPT, "%s", code ? err.msg : "the event to fork at cannot be read");
        return;
    }
    h->parent_seq = b->parent_seq;
    snprintf(h->parent_id, sizeof h->parent_id, "%s", b->parent);
    memcpy(h->first_before, d.digest, DIGEST_SIZE);
    memcpy(h->digest, d.digest, DIGEST_SIZE);
}

/* ---- its files ---- */

struct leftovers {
    struct files_store *s;
    const char *id;
};

static enum tide_code drop_torn(void *arg, const char *name, enum env_kind kind)
{
    struct leftovers *d = arg;
    size_t len = strlen(d->id);
    char path[FILES_PATH];

    if (kind != ENV_FILE || strncmp(name, d->id, len) != 0 || strncmp(name + len, ".torn-", 6) != 0)
        return TIDE_OK;
    files_path(d->s, path, "sessions", name, "");
    (void)!d->s->base.env->ops->unlink(d->s->base.env, path, NULL);
    return TIDE_OK;
}

/* A snapshot without a log would be a session of somebody else's: it goes first. */
static enum tide_code erase_cards(struct files_store *s, struct files_log *l, const char *dir, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    static const char *const cards[] = {".json", ".tokens.json"};
    enum tide_code code = TIDE_OK;
    char path[FILES_PATH];

    for (size_t i = 0; i < 2 && !code; i++) {
        files_path(s, path, "sessions", l->id, cards[i]);
        code = ops->unlink(s->base.env, path, err);
    }
    return code ? code : ops->sync_dir(s->base.env, dir, err);
}

/* Then the log: from then on there is no such session. */
static enum tide_code erase(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char name[FILES_PATH], path[FILES_PATH], dir[FILES_PATH];
    struct leftovers d = {s, l->id};
    enum tide_code code;

    files_path(s, dir, "sessions", "", "");
    code = erase_cards(s, l, dir, err);
    log_name(name, l->id, l->hidden);
    files_path(s, path, "sessions", name, "");
    code = code ? code : ops->unlink(s->base.env, path, err);
    if (code)
        return code;
    if (ops->sync_dir(s->base.env, dir, err)) {
        err->code = TIDE_UNKNOWN;
        return tide_wrap(err, "the disk failed while session '%s' was being deleted; whether it is gone is not known",
                         l->id);
    }
    (void)!ops->list(s->base.env, dir, drop_torn, &d, NULL);
    (void)!lease_remove(s, l, NULL);
    cache_drop(s, l->id);
    log_forget(s, l);
    return TIDE_OK;
}

/* ---- making ---- */

/* A half-done import whose process died is in nobody's way. */
static enum tide_code sweep_import(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    struct files_lease lease;
    char who[160];
    bool alive = false, ours;
    enum tide_code code = lease_read(s, l->id, &lease, err);

    ours = strcmp(lease.boot, s->base.boot_id) == 0;
    if (!code && lease.boot[0] && !ours)
        code = boot_alive(s, lease.boot, &alive, who, err);
    if (code || ((alive || ours) && !orphan_is(s, l->id, lease.epoch)))
        return code;
    return erase(s, l, err);
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

static void write_first(struct files_store *s, struct batch *b, struct head *h, struct buf *out)
{
    struct line_mark m = {.more = (int64_t)b->n - 1, .verified = true, .parent_seq = h->parent_seq};
    int64_t now = env_now_ms(s->base.env);

    memcpy(m.parent, h->parent_id, sizeof m.parent);
    memcpy(m.before, h->first_before, DIGEST_SIZE);
    b->first_seq = h->last_seq + 1;
    for (size_t i = 0; i < b->n; i++, m.at++, m.more--) {
        struct event *ev = &b->events[i];

        ev->seq = ev->pos = ++h->last_seq;
        ev->ts_ms = ev->ts_ms ? ev->ts_ms : now;
        if (!(b->flags & BATCH_KEEP))
            ev->epoch = h->epoch;
        event_digest(ev->digest, &s->base.key, h->digest, str_from(b->session), ev);
        memcpy(h->digest, ev->digest, DIGEST_SIZE);
        line_write(out, ev, &m);
        m.parent[0] = 0;
    }
    b->last_seq = h->last_seq;
}

static bool is_hidden(const struct batch *b)
{
    return (b->flags & (BATCH_HIDDEN | BATCH_REVEAL)) == BATCH_HIDDEN;
}

/* Under another name until it is whole and on disk. */
static enum tide_code write_log(struct files_store *s, struct batch *b, struct str lines, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char name[FILES_PATH], path[FILES_PATH];
    struct env_stat st;
    enum tide_code code;

    log_name(name, b->session, is_hidden(b));
    files_path(s, path, "sessions", name, "");
    code = files_put(s, "sessions", name, lines, true, err);
    if (!code || ops->stat(s->base.env, path, &st, NULL) || st.kind == ENV_ABSENT)
        return code;
    (void)!ops->unlink(s->base.env, path, NULL); /* it has its name, and whether that is on disk cannot be told */
    err->code = TIDE_UNKNOWN;
    return tide_wrap(err, "the disk failed while the session was being made; whether it is there is not known");
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
    ret->there = ret->boot[0] || (release && b->flags & BATCH_LIVE) || ret->hidden;
}

static enum tide_code create(struct files_store *s, struct files_log *l, struct batch *b, struct head *h,
                             struct tide_err *err)
{
    AUTO(buf_done) struct buf lines = BUF_INIT(SIZE_MAX / 4);
    struct files_lease lease;
    enum tide_code code = TIDE_OK;

    h->first_seq = h->parent_seq + 1;
    h->last_seq = h->parent_seq;
    h->epoch = b->flags & BATCH_ACQUIRE ? 1 : 0;
    write_first(s, b, h, &lines);
    set_lease(s, b, h, &lease);
    if (lease.boot[0])
        code = boot_ready(s, err);
    if (!code && lease.there)
        code = lease_write(s, l, &lease, err);
    code = code ? code : write_log(s, b, buf_view(&lines), err);
    if (code && lease.there) {
        (void)!lease_remove(s, l, NULL);
        orphan_note(s, l->id, lease.epoch);
    }
    return code;
}

static void told(struct files_store *s, struct files_log *l, struct batch *b, const struct head *h)
{
    struct files_lease lease = l->lease;
    struct env_file *file = TAKE(l->lease_file);
    struct tide_err err;
    char name[TIDE_ID_SIZE + 16];

    b->epoch = h->epoch;
    if (b->owner)
        b->owner->epoch = b->flags & BATCH_ACQUIRE && !(b->flags & BATCH_RELEASE) ? b->epoch : 0;
    orphan_drop(s, l->id);
    log_forget(s, l);
    l->lease_file = file;
    l->lease = lease;
    if (log_refresh(s, l, false, &err))
        return; /* it is there: whoever looks next is told what is wrong */
    if (b->flags & BATCH_RELEASE)
        l->clean_end = l->end;
    if (b->n && b->snapshot.len && b->caches_seq == b->last_seq)
        cache_save_state(s, l, &b->events[b->n - 1], l->last_line, b->snapshot);
    if (b->flags & BATCH_RELEASE)
        cache_save_head(s, l, b->caches_seq == b->last_seq ? b->summary : STR(""));
    if (!b->card.len || b->caches_seq != b->last_seq || l->hidden)
        return;
    snprintf(name, sizeof name, "%s.json", l->id);
    (void)!files_put(s, "sessions", name, b->card, false, NULL);
}

static void make_locked(struct files_store *s, struct batch *b)
{
    struct tide_err err = {TIDE_OK, ""};
    struct files_log *l;
    struct head h = {.sid = 0};
    enum tide_code code = TIDE_OK;

    if (b->flags & BATCH_HIDDEN)
        code = files_each_id(s, sweep_others, s, &err);
    l = log_of(s, str_from(b->session));
    code = code ? code : log_refresh(s, l, false, &err);
    if (code == TIDE_CORRUPT && l->exists)
        code = TIDE_OK;
    if (!code && l->exists && l->hidden)
        code = sweep_import(s, l, &err);
    if (!code && l->exists && !b->code)
        batch_refuse(b, TIDE_EXISTS, "a session '%s' exists already%s", b->session,
                     l->hidden                 ? " (it is being imported)"
                     : b->flags & BATCH_HIDDEN ? ": delete it first, or import into another store"
                                               : ": choose another id");
    if (!code && !b->code && b->parent[0] && !b->n)
        batch_refuse(b, TIDE_INVALID, "a fork begins with an event: its first line names what it stands on");
    if (!code && !b->code && b->parent[0])
        find_parent(s, b, &h);
    if (code)
        batch_refuse(b, code, "%s", err.msg);
    if (b->code)
        return;
    l = log_of(s, str_from(b->session)); /* looking at others may have closed it */
    code = create(s, l, b, &h, &err);
    if (code) {
        err.code = code;
        batch_fail(s, b, &err);
    } else {
        told(s, l, b, &h);
    }
}

static bool lock_all(struct files_store *s, struct batch *b)
{
    struct tide_err err;
    enum tide_code code;

    pthread_mutex_unlock(&s->mu);
    code = s->base.env->ops->lock(s->lock, LOCK_MS, &err);
    pthread_mutex_lock(&s->mu);
    if (code)
        batch_refuse(b, code, "%s", err.msg);
    return !code;
}

void files_create(struct files_store *s, struct batch *b)
{
    if (!lock_all(s, b))
        return;
    make_locked(s, b);
    s->base.env->ops->unlock(s->lock);
}

/* ---- deleting ---- */

struct kids {
    struct files_store *s;
    const char *of;
    char names[200];
    int n;
    struct tide_err err;
};

static enum tide_code look_for_kid(void *arg, const char *id, bool hidden)
{
    struct kids *k = arg;
    struct files_log *l = log_of(k->s, str_from(id));
    size_t len = strlen(k->names);
    enum tide_code code;

    (void)hidden;
    if (strcmp(id, k->of) == 0)
        return TIDE_OK;
    code = log_refresh(k->s, l, false, &k->err);
    if (code && code != TIDE_CORRUPT)
        return code; /* whose fork it is cannot be told */
    if (strcmp(l->h.parent_id, k->of) == 0 && k->n++ < 4)
        snprintf(k->names + len, sizeof k->names - len, "%s%s", k->n > 1 ? ", " : "", k->n > 3 ? "…" : id);
    return TIDE_OK;
}

static void refuse_kids(struct files_store *s, struct batch *b)
{
    struct kids k = {.s = s, .of = b->session};
    enum tide_code code = files_each_id(s, look_for_kid, &k, &k.err);

    if (code)
        batch_refuse(b, code, "%s", k.err.msg);
    else if (k.n)
        batch_refuse(b, TIDE_HAS_FORKS, "session '%s' has forks that stand on it: delete %s first", b->session,
                     k.names);
}

static void refuse_held(struct files_store *s, struct files_log *l, struct batch *b)
{
    struct files_lease lease;
    struct tide_err err;
    char who[160];
    bool alive = false, ours;
    enum tide_code code = lease_read(s, l->id, &lease, &err);

    ours = strcmp(lease.boot, s->base.boot_id) == 0;
    if (!code && lease.boot[0] && !ours)
        code = boot_alive(s, lease.boot, &alive, who, &err);
    if (code)
        batch_refuse(b, code, "%s", err.msg);
    else if (ours && !(b->flags & BATCH_HIDDEN) && !orphan_is(s, l->id, lease.epoch))
        batch_refuse(b, TIDE_HELD, "session '%s' is open for appending in this process already", b->session);
    else if (alive)
        batch_refuse(b, TIDE_HELD, "session '%s' is held by %s: wait for it to end, or stop it", b->session, who);
}

void files_delete(struct files_store *s, struct batch *b)
{
    bool hidden = (b->flags & BATCH_HIDDEN) != 0;
    struct files_log *l;
    struct tide_err err;
    enum tide_code code;

    if (!lock_all(s, b))
        return;
    l = log_of(s, str_from(b->session));
    code = log_refresh(s, l, false, &err);
    if (code && code != TIDE_CORRUPT)
        batch_refuse(b, code, "%s", err.msg);
    else if (!l->exists || l->hidden != hidden)
        batch_refuse(b, TIDE_NOT_FOUND, "no session '%s'", b->session);
    else
        refuse_held(s, l, b);
    if (!b->code)
        refuse_kids(s, b);
    l = log_of(s, str_from(b->session));
    if (!b->code && (code = erase(s, l, &err)) != TIDE_OK)
        batch_refuse(b, code, "%s", err.msg);
    s->base.env->ops->unlock(s->lock);
}

/* ---- an import that is whole ---- */

enum tide_code files_reveal(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char from[FILES_PATH], to[FILES_PATH], name[FILES_PATH], dir[FILES_PATH];
    enum tide_code code;

    if (!l->hidden)
        return TIDE_OK;
    log_name(name, l->id, true);
    files_path(s, from, "sessions", name, "");
    log_name(name, l->id, false);
    files_path(s, to, "sessions", name, "");
    files_path(s, dir, "sessions", "", "");
    code = ops->rename(s->base.env, from, to, err);
    code = code ? code : ops->sync_dir(s->base.env, dir, err);
    if (!code)
        l->hidden = false;
    return code;
}
