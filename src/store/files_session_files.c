/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people read of a session beside its log: sessions/<id>.json and <id>.tokens.json. Both are computed from the log, and not
 * synced. While this process holds the session they are written within LATER_MS after a change that they show: of a run that
 * starts and ends meanwhile they are written once, with its end. They are there before the lease is given back: under the lock
 * of the log, so that nobody deletes the session meanwhile. A process that is killed leaves them behind the log; the process that writes to the
 * session next writes them.
 */
#include <stdio.h>

#include "store/files_store.h"
#include "store/group.h"

#define LATER_MS 200

static int64_t mono_ms(const struct files_store *s)
{
    return s->base.env->ops->mono_ns(s->base.env) / 1000000;
}

static void put_changed(struct files_store *s, const char *id, const char *suffix, struct str bytes)
{
    AUTO(buf_done) struct buf there = BUF_INIT(bytes.len + 1);
    char path[FILES_PATH], name[TIDE_ID_SIZE + 16];

    if (!bytes.len)
        return;
    snprintf(name, sizeof name, "%s%s", id, suffix);
    files_path(s, path, "sessions", name, "");
    if (!files_get(s, path, bytes.len, &there, NULL) && str_eq(buf_view(&there), bytes))
        return;
    (void)!files_put(s, "sessions", name, bytes, false, NULL);
}

static void keep_files(struct files_log *l, struct str session_file, struct str tokens)
{
    struct files_shown *kept = mem_alloc(sizeof *kept + session_file.len + tokens.len);

    *kept = (struct files_shown){.session_file = session_file.len, .tokens = tokens.len};
    memcpy(kept->text, session_file.ptr, session_file.len);
    if (tokens.len)
        memcpy(kept->text + session_file.len, tokens.ptr, tokens.len);
    free(l->shown);
    l->shown = kept;
}

static void write_kept(struct files_store *s, struct files_log *l)
{
    AUTO(mem_freep) struct files_shown *kept = TAKE(l->shown);

    put_changed(s, l->id, ".json", (struct str){kept->text, kept->session_file});
    put_changed(s, l->id, ".tokens.json", (struct str){kept->text + kept->session_file, kept->tokens});
}

bool session_files_put(struct files_store *s, struct files_log *l, struct str session_file, struct str tokens,
                       bool rests)
{
    bool waits = l->shown != NULL;

    if (session_file.len)
        keep_files(l, session_file, tokens);
    if (!l->shown)
        return false;
    if (rests || !l->lease_file) {
        write_kept(s, l);
        return true;
    }
    if (!waits && !s->shown_due_ms) {
        s->shown_due_ms = mono_ms(s) + LATER_MS;
        group_maintain_by(s->base.group, s->shown_due_ms * 1000000);
    }
    return false;
}

bool session_files_due(struct files_store *s)
{
    return s->shown_due_ms && mono_ms(s) >= s->shown_due_ms;
}

/* False: another is at the log, and they have to wait once more. */
static bool settle_one(struct files_store *s, struct files_log *l)
{
    const struct env_ops *ops = s->base.env->ops;

    if (l->busy || !l->file || ops->lock(l->file, 0, NULL))
        return false;
    if (lease_is_ours(s, l)) { /* else the process that took it writes them */
        write_kept(s, l);
        cache_save_head(s, l, STR("")); /* one older than the session file would hide what is gone behind it */
    }
    ops->unlock(l->file);
    free(TAKE(l->shown));
    return true;
}

void session_files_settle(struct files_store *s)
{
    bool left = false;

    pthread_mutex_lock(&s->mu);
    for (struct map_entry *e = map_next(&s->logs, NULL); e; e = map_next(&s->logs, e)) {
        struct files_log *l = e->value;

        if (l->shown)
            left |= !settle_one(s, l);
    }
    s->shown_due_ms = left ? mono_ms(s) + LATER_MS : 0;
    if (left && s->base.group) /* else the store is being closed */
        group_maintain_by(s->base.group, s->shown_due_ms * 1000000);
    pthread_mutex_unlock(&s->mu);
}
