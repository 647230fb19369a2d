/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths, and files that are small enough to be written anew: into one with a name of its own, synced, renamed, and the
 * directory synced. A cut leaves the old one or the new one; what it leaves beside them is swept when the store is opened.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "store/files_store.h"

#define FRESH ".tmp-"
#define FRESH_DIGITS 16

void files_path(const struct files_store *s, char out[FILES_PATH], const char *folder, const char *name,
                const char *suffix)
{
    snprintf(out, FILES_PATH, "%.900s%s%.100s%s%.150s%.40s", s->dir, *folder ? "/" : "", folder, *name ? "/" : "", name,
             suffix);
}

enum tide_code files_sync_dir(struct files_store *s, const char *folder, struct tide_err *err)
{
    char dir[FILES_PATH];

    files_path(s, dir, folder, "", "");
    return s->base.env->ops->sync_dir(s->base.env, dir, err);
}

bool files_is(struct files_store *s, const char *folder, const char *name, const char *suffix, enum env_kind kind)
{
    char path[FILES_PATH];
    struct env_stat st;

    files_path(s, path, folder, name, suffix);
    return !s->base.env->ops->stat(s->base.env, path, &st, NULL) && st.kind == kind;
}

enum tide_code files_get(struct files_store *s, const char *path, size_t max, struct buf *out, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *file = NULL;
    struct env_stat st;
    size_t got = 0;
    char *room;
    enum tide_code code = ops->open(s->base.env, path, ENV_READ, &file, err);

    if (code)
        return code;
    code = ops->fstat(file, &st, err);
    if (!code && (st.kind != ENV_FILE || st.size < 0 || (uint64_t)st.size > max))
        code = tide_fail(err, TIDE_CORRUPT, "'%s' is not what a store keeps there", path);
    room = code ? NULL : buf_reserve(out, (size_t)st.size);
    if (!code && !room)
        code = tide_fail(err, TIDE_TOO_BIG, "'%s' is too big", path);
    code = code ? code : ops->pread(file, room, (size_t)st.size, 0, &got, err);
    out->len += code ? 0 : got;
    ops->close(file);
    return code;
}

static enum tide_code write_new(struct files_store *s, const char *path, struct str bytes, bool durable,
                                struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *file = NULL;
    enum tide_code code = ops->open(s->base.env, path, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &file, err);

    if (code)
        return code;
    code = ops->pwrite(file, bytes.ptr, bytes.len, 0, err);
    if (!code && durable)
        code = ops->sync(file, err);
    ops->close(file);
    return code;
}

void files_fresh(struct files_store *s, const char *path, char out[FILES_PATH])
{
    uint64_t n;

    s->base.env->ops->random(s->base.env, &n, sizeof n);
    snprintf(out, FILES_PATH, "%.*s" FRESH "%0*" PRIx64, FILES_PATH - 32, path, FRESH_DIGITS, n);
}

enum tide_code files_not_fresh(enum tide_code code, struct tide_err *err)
{
    char *texts[] = {err ? err->msg : NULL, err ? err->detail.name : NULL};

    for (size_t i = 0; code && err && i < 2; i++) {
        char *at = strstr(texts[i], FRESH);

        if (at && strlen(at) >= sizeof FRESH - 1 + FRESH_DIGITS) {
            const char *rest = at + sizeof FRESH - 1 + FRESH_DIGITS;

            memmove(at, rest, strlen(rest) + 1);
        }
    }
    return code;
}

/* A file that is written whole. */
struct putting {
    const char *folder, *name;
    struct str bytes;
    bool durable;
};

static enum tide_code put_once(struct files_store *s, void *arg, bool again, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    const struct putting *p = arg;
    char path[FILES_PATH], fresh[FILES_PATH];
    enum tide_code code;

    (void)again;
    files_path(s, path, p->folder, p->name, "");
    files_fresh(s, path, fresh);
    code = write_new(s, fresh, p->bytes, p->durable, err);
    code = code ? code : ops->rename(s->base.env, fresh, path, err);
    if (files_not_fresh(code, err))
        (void)!ops->unlink(s->base.env, fresh, NULL);
    return !code && p->durable ? files_sync_dir(s, p->folder, err) : code;
}

enum tide_code files_put(struct files_store *s, const char *folder, const char *name, struct str bytes, bool durable,
                         struct tide_err *err)
{
    struct putting p = {folder, name, bytes, durable};

    return durable ? word_guard(s, put_once, &p, err) : put_once(s, &p, false, err);
}

/* Any other number than before will do; it need not survive anything. */
void files_changed(struct files_store *s)
{
    word_changed(s, ++s->change); /* from a random one on: two processes hardly ever write the same */
}
