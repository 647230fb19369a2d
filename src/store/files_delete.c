/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions go as wholes: first what people read, so that no snapshot is left without its log, then the log, and with it the
 * session, then the rest. Under the lock of the directory, which making takes as well (files_create.c): no fork begins on a
 * session that is just being deleted, and one that others stand on stays.
 */
#include <stdio.h>

#include "store/files_store.h"

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
static enum tide_code erase_session_files(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    static const char *const session_files[] = {".json", ".tokens.json"};
    enum tide_code code = TIDE_OK;
    char path[FILES_PATH];

    for (size_t i = 0; i < 2 && !code; i++) {
        files_path(s, path, "sessions", l->id, session_files[i]);
        code = s->base.env->ops->unlink(s->base.env, path, err);
    }
    return code ? code : files_sync_dir(s, "sessions", err);
}

/* Then the log: from then on there is no such session. */
enum tide_code files_erase(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char path[FILES_PATH], dir[FILES_PATH];
    struct leftovers d = {s, l->id};
    enum tide_code code = erase_session_files(s, l, err);

    code = code ? code : mark_clear(s, l, err); /* without its log it would say that one is missing */
    log_path(s, path, l->id, l->hidden);
    code = code ? code : ops->unlink(s->base.env, path, err);
    if (code)
        return code;
    if (files_sync_dir(s, "sessions", err)) {
        err->code = TIDE_UNKNOWN;
        return tide_wrap(err, "the disk failed while session '%s' was being deleted; it is unknown whether it is gone",
                         l->id);
    }
    files_path(s, path, "sessions", l->id,
               ".mark"); /* not before the log or the lease: that would be one which lost it */
    if (!lease_remove(s, l, NULL))
        (void)!ops->unlink(s->base.env, path, NULL);
    files_path(s, dir, "sessions", "", "");
    (void)!ops->list(s->base.env, dir, drop_torn, &d, NULL);
    cache_drop(s, l->id);
    log_forget(s, l);
    return TIDE_OK;
}

/* ---- the lock of the directory ---- */

bool files_lock(struct files_store *s, struct tide_err *err)
{
    enum tide_code code;

    pthread_mutex_unlock(&s->mu);
    code = store_lock(&s->base, s->lock, &s->refused_ms, err);
    pthread_mutex_lock(&s->mu);
    return !code;
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
        return code; /* it is not known whose fork it is */
    if (strcmp(l->h.parent_id, k->of) == 0 && k->n++ < 4)
        snprintf(k->names + len, sizeof k->names - len, "%s%s", k->n > 1 ? ", " : "", k->n > 3 ? "…" : id);
    return TIDE_OK;
}

static void refuse_kids(struct files_store *s, struct batch *b)
{
    struct kids k = {.s = s, .of = b->session};
    enum tide_code code = files_each_log(s, look_for_kid, &k, &k.err);

    if (code)
        batch_refuse_as(b, &k.err);
    else if (k.n)
        batch_refuse(b, TIDE_HAS_FORKS, "session '%s' has forks: delete %s first", b->session, k.names);
}

static void refuse_held(struct files_store *s, struct files_log *l, struct batch *b)
{
    struct files_lease lease;
    struct tide_err err;
    char who[160];
    bool alive = false;
    enum tide_code code = lease_read(s, l->id, &lease, &err);
    struct holding h = {lease.boot[0], strcmp(lease.boot, s->base.boot_id) == 0, lease.epoch};

    if (!code && !(h.ours && b->flags & BATCH_HIDDEN) && batch_check_free(b, &h, &s->orphans))
        code = boot_alive(s, lease.boot, &alive, who, &err);
    if (code)
        batch_refuse_as(b, &err);
    else if (alive)
        batch_refuse_held(b, who);
}

/*
 * Who appends holds the lock of the log until the lease and the session files are written. Without it a lease that is just being taken
 * would not be seen, and session files that are just being written would come behind the log's end: of a session that is gone.
 */
static enum tide_code lock_log(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    struct env_file *file = l->file;
    int64_t opened = l->opened, refused_ms = l->refused_ms;
    enum tide_code code;

    l->busy = true; /* it stays where it is while others are looked at */
    if (!file)
        return TIDE_OK;
    pthread_mutex_unlock(&s->mu);
    code = store_lock(&s->base, file, &refused_ms, err);
    pthread_mutex_lock(&s->mu);
    l->refused_ms = refused_ms;
    code = code ? code : log_refresh(s, l, true, err);
    if (code && code != TIDE_CORRUPT)
        return code;
    return l->opened == opened ? TIDE_OK
                               : tide_fail(err, TIDE_BUSY, "the log of session '%s' was replaced: try again", l->id);
}

void files_delete(struct files_store *s, struct batch *b)
{
    bool hidden = (b->flags & BATCH_HIDDEN) != 0;
    struct files_log *l;
    struct tide_err err;
    enum tide_code code;

    if (!files_lock(s, &err)) {
        batch_refuse_as(b, &err);
        return;
    }
    l = log_of(s, str_from(b->session));
    code = log_refresh(s, l, false, &err);
    if (code && code != TIDE_CORRUPT)
        batch_refuse_as(b, &err);
    else if (l->exists ? l->hidden != hidden : !code || hidden) /* of one whose log is gone the rest can go, too */
        batch_refuse(b, TIDE_NOT_FOUND, "no session '%s'", b->session);
    else if (lock_log(s, l, &err))
        batch_refuse_as(b, &err);
    else
        refuse_held(s, l, b);
    if (b->expect_seq)
        batch_check_seq(b, l->h.last_seq);
    if (!b->code)
        refuse_kids(s, b);
    if (!b->code && files_erase(s, l, &err))
        batch_refuse_as(b, &err);
    if (l->file)
        s->base.env->ops->unlock(l->file);
    l->busy = false;
    s->base.env->ops->unlock(s->lock);
}
