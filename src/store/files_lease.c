/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what. A lease is the file live/<id>.json; the process that takes it puts another file in its place, so the one before finds
 * that its own, which it keeps open, has no name any more: one look, no reading. A process has one file in boots/ and one
 * heartbeat for all its leases. A file of boots/ that is not there is that of a process that is gone.
 *
 * The file of a lease that was given back gets another name and is used for the next session that is made here: many file systems
 * are slow to free a file and make one. The names of live/ are not on disk when its new text is. So one that names another session than its
 * name does is of a lease that was given back: a power cut brought its name back, or it was read while that happened.
 */
#include <stdio.h>

#include "base/json.h"
#include "store/files_store.h"

#define SMALL_MAX 8192
#define LEASE_BYTES 400 /* of every lease: less than a sector */
#define SPARE_MS 300000 /* that a spare file is kept: nobody sweeps one so young */
#define LOOKS 100       /* at one that cannot be read, a millisecond apart */

/* ---- leases ---- */

static void lease_name(char out[TIDE_ID_SIZE + 8], const char *id)
{
    snprintf(out, TIDE_ID_SIZE + 8, "%s.json", id);
}

/*
 * One that is given back is written in its place: who reads it without the lock of the log may get some of the old and some of
 * the new, of ext4 for one. It is whole when it is looked at again; what stays is damage.
 */
static enum tide_code lease_look(struct files_store *s, const char *id, const char *path, struct arena *a,
                                 struct json **ret, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    AUTO(buf_done) struct buf text = BUF_INIT(SMALL_MAX);

    for (int i = 0; i < LOOKS; i++) {
        enum tide_code code;

        if (i > 0)
            ops->sleep_ms(s->base.env, 1);
        buf_clear(&text);
        code = files_get(s, path, SMALL_MAX, &text, err);
        if (code ||
            (!json_parse(a, arena_dup(a, buf_view(&text)), NULL, ret, NULL, NULL) && (*ret)->type == JSON_OBJECT))
            return code;
    }
    return tide_fail(err, TIDE_CORRUPT, "'%s' is damaged: it says who holds session '%s'", path, id);
}

enum tide_code lease_read(struct files_store *s, const char *id, struct files_lease *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char path[FILES_PATH], name[TIDE_ID_SIZE + 8];
    struct json *v = NULL;
    struct tide_err why;
    struct str named;
    enum tide_code code;

    *ret = (struct files_lease){0};
    lease_name(name, id);
    files_path(s, path, "live", name, "");
    code = lease_look(s, id, path, &a, &v, &why);
    if (code) /* that there is none is no error: *err is cleared for the caller */
        return code == TIDE_NOT_FOUND ? TIDE_OK : tide_err_copy(err, &why);
    named = json_get_text(&a, v, STR("session_id"));
    if (named.len && !str_eq(named, str_from(id)))
        return TIDE_OK;
    ret->there = true;
    ret->live = json_get_bool(v, STR("live"), true);
    ret->hidden = json_get_bool(v, STR("hidden"), false);
    ret->made = json_get_bool(v, STR("made"), false);
    ret->epoch = json_get_int(v, STR("epoch"), 0);
    ret->wake_ms = json_get_int(v, STR("wake_ms"), 0);
    snprintf(ret->boot, sizeof ret->boot, "%.*s", STR_ARG(json_get_text(&a, v, STR("boot_id"))));
    snprintf(ret->kernel, sizeof ret->kernel, "%.*s", STR_ARG(json_get_text(&a, v, STR("kernel"))));
    return TIDE_OK;
}

/*
 * The lease is there, and neither the log nor its mark is. The process that makes a session writes the mark before the lease, the process that deletes
 * one takes it away behind the lease: so somebody else took them. But a power cut may keep the lease of one that was being made, and
 * not its mark.
 */
bool lease_misses_log(struct files_store *s, const char *id)
{
    struct files_lease lease, again;
    char name[FILES_PATH];

    if (lease_read(s, id, &lease, NULL) || !lease.there || lease.hidden ||
        !(lease.made || (lease.kernel[0] && strcmp(lease.kernel, s->holders.self.kernel_boot) == 0)))
        return false;
    log_name(name, id, false);
    if (!files_is(s, "sessions", id, ".mark", ENV_ABSENT) || !files_is(s, "sessions", name, "", ENV_ABSENT))
        return false;
    return !lease_read(s, id, &again, NULL) && again.there; /* else it was being deleted */
}

void lease_text(const struct files_log *l, const struct files_lease *lease, struct buf *out)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("session_id"), str_from(l->id));
    json_out_kstr(&o, STR("boot_id"), str_from(lease->boot));
    json_out_kint(&o, STR("epoch"), lease->epoch);
    json_out_kint(&o, STR("wake_ms"), lease->wake_ms);
    json_out_kbool(&o, STR("live"), lease->live);
    if (lease->hidden)
        json_out_kbool(&o, STR("hidden"), true);
    if (lease->made)
        json_out_kbool(&o, STR("made"), true);
    else if (lease->kernel[0])
        json_out_kstr(&o, STR("kernel"), str_from(lease->kernel));
    json_out_end(&o, '}');
    while (out->len < LEASE_BYTES - 1)
        buf_add_char(out, ' ');
    buf_add_char(out, '\n');
}

struct in_place {
    struct env_file *file;
    struct str text;
    bool synced;
};

static enum tide_code put_in_place(struct files_store *s, void *arg, bool again, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct in_place *p = arg;
    enum tide_code code = ops->pwrite(p->file, p->text.ptr, p->text.len, 0, err);

    (void)again;
    p->synced = !code;
    return code ? code : ops->sync(p->file, err);
}

/*
 * Given back in its own place: that takes no space, and a sector is written whole or not at all. When the sync fails it is
 * given back all the same: a power cut may bring back a lease of ours then, and we are gone with it.
 */
static enum tide_code write_in_place(struct files_store *s, struct files_log *l, const struct files_lease *lease,
                                     struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SMALL_MAX);
    struct in_place p = {.file = l->lease_file};
    enum tide_code code;

    lease_text(l, lease, &text);
    p.text = buf_view(&text);
    code = word_guard(s, put_in_place, &p, err);
    s->base.env->ops->close(TAKE(l->lease_file));
    l->lease = (struct files_lease){0};
    return p.synced ? TIDE_OK : code;
}

enum tide_code lease_write(struct files_store *s, struct files_log *l, const struct files_lease *lease,
                           struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    AUTO(buf_done) struct buf text = BUF_INIT(SMALL_MAX);
    char path[FILES_PATH], name[TIDE_ID_SIZE + 8];
    enum tide_code code;

    if (!lease->boot[0] && lease_is_ours(s, l) && !write_in_place(s, l, lease, err))
        return TIDE_OK;
    lease_text(l, lease, &text);
    lease_name(name, l->id);
    code = files_put(s, "live", name, buf_view(&text), true, err);
    if (code)
        return code;
    if (l->lease_file)
        ops->close(TAKE(l->lease_file));
    l->lease = *lease;
    l->lease.there = true;
    if (strcmp(lease->boot, s->base.boot_id) != 0)
        return TIDE_OK;
    files_path(s, path, "live", name, "");
    return ops->open(s->base.env, path, ENV_WRITE, &l->lease_file, err);
}

static void lease_path(const struct files_store *s, char out[FILES_PATH], const char *id)
{
    files_path(s, out, "live", id, ".json");
}

static int64_t mono_ms(const struct files_store *s)
{
    return s->base.env->ops->mono_ns(s->base.env) / 1000000;
}

/* False: it is not ours, or there are enough. */
static bool keep_spare(struct files_store *s, struct files_log *l)
{
    AUTO(mem_freep) struct spare_lease *spare = NULL;
    char path[FILES_PATH];

    if (s->n_spares == SPARES_MAX || !lease_is_ours(s, l))
        return false;
    spare = mem_alloc(sizeof *spare);
    lease_path(s, path, l->id);
    files_fresh(s, path, spare->path);
    if (s->base.env->ops->rename(s->base.env, path, spare->path, NULL))
        return false;
    spare->file = TAKE(l->lease_file);
    spare->since_ms = mono_ms(s);
    s->base.env->ops->renamed(spare->file, spare->path);
    s->spares[s->n_spares++] = TAKE(spare);
    return true;
}

static bool take_spare(struct files_store *s, char fresh[FILES_PATH], struct env_file **ret_file)
{
    const struct env_ops *ops = s->base.env->ops;
    bool taken = false;

    while (s->n_spares && !taken) {
        AUTO(mem_freep) struct spare_lease *spare = s->spares[--s->n_spares];
        struct env_stat st;

        taken = mono_ms(s) < spare->since_ms + SPARE_MS && !ops->fstat(spare->file, &st, NULL) && st.links == 1;
        snprintf(fresh, FILES_PATH, "%s", spare->path);
        if (taken) {
            *ret_file = spare->file;
        } else {
            ops->close(spare->file);
            (void)!ops->unlink(s->base.env, fresh, NULL);
        }
    }
    return taken;
}

void lease_drop_spares(struct files_store *s)
{
    for (; s->n_spares; s->n_spares--) {
        struct spare_lease *spare = s->spares[s->n_spares - 1];

        s->base.env->ops->close(spare->file);
        (void)!s->base.env->ops->unlink(s->base.env, spare->path, NULL);
        free(spare);
    }
}

enum tide_code lease_begin(struct files_store *s, const struct files_log *l, char fresh[FILES_PATH],
                           struct env_file **ret_file, struct tide_err *err)
{
    char path[FILES_PATH];

    if (take_spare(s, fresh, ret_file))
        return TIDE_OK;
    lease_path(s, path, l->id);
    files_fresh(s, path, fresh);
    return s->base.env->ops->open(s->base.env, fresh, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, ret_file, err);
}

enum tide_code lease_give_name(struct files_store *s, const struct files_log *l, struct env_file *file,
                               const char *fresh, struct tide_err *err)
{
    char path[FILES_PATH];
    enum tide_code code;

    lease_path(s, path, l->id);
    code = s->base.env->ops->rename(s->base.env, fresh, path, err);
    if (!code)
        s->base.env->ops->renamed(file, path);
    return code;
}

void lease_take_over(struct files_store *s, struct files_log *l, const struct files_lease *lease, struct env_file *file)
{
    l->lease = *lease;
    if (strcmp(lease->boot, s->base.boot_id) == 0)
        l->lease_file = file;
    else
        s->base.env->ops->close(file);
}

/*
 * A power cut may bring it back: then it names a process that went with that cut, and recovery looks at its session once more. Where
 * its process may survive the cut, on a file system of another machine, it must be gone for good: others would find it held.
 */
enum tide_code lease_drop(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    char path[FILES_PATH];

    if (!s->holders.local)
        return lease_remove(s, l, err);
    if (keep_spare(s, l)) {
        l->lease = (struct files_lease){0};
        return TIDE_OK;
    }
    if (l->lease_file)
        s->base.env->ops->close(TAKE(l->lease_file));
    l->lease = (struct files_lease){0};
    lease_path(s, path, l->id);
    return s->base.env->ops->unlink(s->base.env, path, err);
}

enum tide_code lease_remove(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    char path[FILES_PATH];
    enum tide_code code;

    if (l->lease_file)
        ops->close(TAKE(l->lease_file));
    l->lease = (struct files_lease){0};
    lease_path(s, path, l->id);
    code = ops->unlink(s->base.env, path, err);
    return code ? code : files_sync_dir(s, "live", err); /* or it would come back by a power cut */
}

bool lease_is_ours(struct files_store *s, struct files_log *l)
{
    struct env_stat st;

    return l->lease_file && !s->base.env->ops->fstat(l->lease_file, &st, NULL) && st.links > 0;
}

/* ---- processes ---- */

static enum tide_code boot_put(struct files_store *s, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SMALL_MAX);
    struct json_out o = json_out_to(&text);
    struct holder us;
    enum tide_code code;
    char name[64];

    holder_beats(&s->holders, &s->base, s->base.boot_id, &us);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("boot_id"), str_from(s->base.boot_id));
    json_out_kstr(&o, STR("kernel_boot"), str_from(us.proc.kernel_boot));
    json_out_kint(&o, STR("pid_ns"), (int64_t)us.proc.pid_ns);
    json_out_kint(&o, STR("pid"), us.proc.pid);
    json_out_kint(&o, STR("start_time"), (int64_t)us.proc.start_time);
    json_out_kint(&o, STR("expires_ms"), us.expires_ms);
    json_out_kint(&o, STR("lease_ms"), us.lease_ms);
    json_out_kint(&o, STR("beat_ms"), us.beat_ms);
    json_out_end(&o, '}');
    buf_add_char(&text, '\n');
    snprintf(name, sizeof name, "%s.json", s->base.boot_id);
    code = files_put(s, "boots", name, buf_view(&text), !s->registered, err);
    if (!code)
        s->beat_due_ms = us.beat_ms + s->base.lease_ms / 3;
    return code;
}

static enum tide_code boot_get(struct files_store *s, const char *boot, struct holder *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(SMALL_MAX);
    char path[FILES_PATH];
    struct json *v;
    enum tide_code code;

    files_path(s, path, "boots", boot, ".json");
    code = files_get(s, path, SMALL_MAX, &text, err);
    if (code)
        return code;
    if (json_parse(&a, buf_view(&text), NULL, &v, NULL, NULL))
        return TIDE_NOT_FOUND; /* a cut left it empty: whose it was is gone */
    *ret = (struct holder){.proc = {.pid_ns = (uint64_t)json_get_int(v, STR("pid_ns"), 0),
                                    .pid = json_get_int(v, STR("pid"), 0),
                                    .start_time = (uint64_t)json_get_int(v, STR("start_time"), 0)},
                           .expires_ms = json_get_int(v, STR("expires_ms"), 0),
                           .lease_ms = json_get_int(v, STR("lease_ms"), 0),
                           .beat_ms = json_get_int(v, STR("beat_ms"), 0)};
    snprintf(ret->boot_id, sizeof ret->boot_id, "%s", boot);
    snprintf(ret->proc.kernel_boot, sizeof ret->proc.kernel_boot, "%.*s",
             STR_ARG(json_get_text(&a, v, STR("kernel_boot"))));
    return TIDE_OK;
}

enum tide_code boot_alive(struct files_store *s, const char *boot, bool *ret_alive, char ret_who[160],
                          struct tide_err *err)
{
    struct holder who;
    enum tide_code code = boot_get(s, boot, &who, err);

    *ret_alive = false;
    snprintf(ret_who, 160, "a process that is gone");
    if (code)
        return code == TIDE_NOT_FOUND ? TIDE_OK : code;
    *ret_alive = holder_alive(&s->holders, &s->base, &who, ret_who);
    return TIDE_OK;
}

static enum tide_code sweep_boot(void *arg, const char *name, enum env_kind kind)
{
    struct files_store *s = arg;
    char boot[64], path[FILES_PATH], who[160];
    size_t len = strlen(name);
    bool alive;

    if (kind != ENV_FILE || len < 6 || len >= sizeof boot || strcmp(name + len - 5, ".json") != 0)
        return TIDE_OK;
    snprintf(boot, sizeof boot, "%.*s", (int)(len - 5), name);
    if (strcmp(boot, s->base.boot_id) == 0 || boot_alive(s, boot, &alive, who, NULL) || alive)
        return TIDE_OK;
    files_path(s, path, "boots", name, "");
    (void)!s->base.env->ops->unlink(s->base.env, path, NULL);
    return TIDE_OK;
}

/* A process that was stopped for long may find its file swept by another: what it takes now would be nobody's. */
static bool is_swept(struct files_store *s)
{
    char path[FILES_PATH];
    struct env_stat st;

    files_path(s, path, "boots", s->base.boot_id, ".json");
    return s->base.env->ops->stat(s->base.env, path, &st, NULL) || st.kind == ENV_ABSENT;
}

/* Before a lease is taken; with the first one those of processes that are gone go. */
enum tide_code boot_ready(struct files_store *s, struct tide_err *err)
{
    char dir[FILES_PATH];
    enum tide_code code = TIDE_OK;

    if (!s->registered || boot_beat_due(s) || is_swept(s))
        code = boot_put(s, err);
    if (code || s->registered)
        return code;
    s->registered = true;
    group_keep_alive(s->base.group);
    files_path(s, dir, "boots", "", "");
    (void)!s->base.env->ops->list(s->base.env, dir, sweep_boot, s, NULL);
    return TIDE_OK;
}

bool boot_beat_due(struct files_store *s)
{
    return s->registered && s->base.env->ops->mono_ns(s->base.env) / 1000000 >= s->beat_due_ms;
}

void boot_beat(struct files_store *s)
{
    (void)!boot_put(s, NULL); /* the next one may get through */
}

/* Leases that are left name a process that is gone then, as they should. */
void boot_done(struct files_store *s)
{
    char path[FILES_PATH];

    if (!s->registered)
        return;
    files_path(s, path, "boots", s->base.boot_id, ".json");
    (void)!s->base.env->ops->unlink(s->base.env, path, NULL);
}
