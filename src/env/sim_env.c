/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct env for one simulated process. A handle is the env_file. Nothing else runs while a call does, so a lock that
 * is held cannot be given back meanwhile: waiting for it moves the clock and ends with TIDE_BUSY, even for ever.
 */
#include <errno.h>

#include "base/mem.h"
#include "env/sim_machine.h"

static struct sim_proc *proc_of(struct env *e)
{
    return (struct sim_proc *)e;
}

static struct sim_handle *handle_of(struct env_file *f)
{
    return (struct sim_handle *)f;
}

static enum tide_code result(int errnum, const char *what, const char *path, struct tide_err *err)
{
    if (errnum == 0)
        return TIDE_OK;
    if (errnum == ESRCH)
        return tide_fail(err, TIDE_IO, "%s '%s': this process was killed", what, path);
    return tide_fail_file(err, errnum, what, path);
}

/* ---- Clock and randomness ----------------------------------------------------------------------------------- */

static int64_t sim_now_ms(struct env *e)
{
    return proc_of(e)->sim->wall_ns / 1000000;
}

static int64_t sim_mono_ns(struct env *e)
{
    return proc_of(e)->sim->mono_ns + proc_of(e)->mono_more_ns;
}

static void sim_env_random(struct env *e, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)out)[i] = (unsigned char)sim_next(&proc_of(e)->sim->rng);
}

/* Others may act here, as if they had been faster. */
static void let_others_go_first(struct sim_proc *p)
{
    if (p->sim->pause && !p->dead)
        p->sim->pause(p->sim->pause_arg, p);
}

static void sim_sleep_ms(struct env *e, int ms)
{
    sim_advance(proc_of(e)->sim, ms);
    let_others_go_first(proc_of(e));
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static enum tide_code sim_open(struct env *e, const char *path, unsigned flags, struct env_file **ret_file,
                               struct tide_err *err)
{
    struct sim_handle *h;
    enum tide_code code = result(sim_sys_open(proc_of(e), path, flags, &h), "open", path, err);

    if (!code)
        *ret_file = (struct env_file *)h;
    return code;
}

static void sim_close(struct env_file *f)
{
    if (f)
        sim_sys_close(handle_of(f));
}

static enum tide_code sim_pread(struct env_file *f, void *out, size_t n, int64_t at, size_t *ret_n,
                                struct tide_err *err)
{
    return result(sim_sys_read(handle_of(f), out, n, at, ret_n), "read", handle_of(f)->path, err);
}

static enum tide_code sim_pwrite(struct env_file *f, const void *bytes, size_t n, int64_t at, struct tide_err *err)
{
    return result(sim_sys_write(handle_of(f), bytes, n, at), "write", handle_of(f)->path, err);
}

static enum tide_code sim_put_word(struct env_file *f, const char word[8], int64_t at, struct tide_err *err)
{
    return sim_pwrite(f, word, 8, at, err);
}

static enum tide_code sim_truncate(struct env_file *f, int64_t size, struct tide_err *err)
{
    return result(sim_sys_truncate(handle_of(f), size), "truncate", handle_of(f)->path, err);
}

static enum tide_code sim_sync(struct env_file *f, struct tide_err *err)
{
    return result(sim_sys_sync(handle_of(f)), "sync", handle_of(f)->path, err);
}

static enum tide_code sim_fstat(struct env_file *f, struct env_stat *ret, struct tide_err *err)
{
    return result(sim_sys_fstat(handle_of(f), ret), "stat", handle_of(f)->path, err);
}

static void sim_renamed(struct env_file *f, const char *path)
{
    struct sim_handle *h = handle_of(f);

    free(h->path);
    h->path = mem_dup(str_from(path));
}

static enum tide_code sim_allocate(struct env_file *f, int64_t size, struct tide_err *err)
{
    return result(sim_sys_allocate(handle_of(f), size), "reserve space for", handle_of(f)->path, err);
}

static void *sim_share(struct env_file *f, size_t bytes, struct tide_err *err)
{
    struct sim_handle *h = handle_of(f);

    (void)err;
    if (h->file)
        return sim_file_shared(h->file, bytes);
    h->scratch = h->scratch ? h->scratch : mem_zero(bytes); /* what a dead process stores there nobody sees */
    return h->scratch;
}

/* Nobody changes it unless others act. */
static void sim_wait_word(struct env *e, const uint32_t *word, uint32_t value, int timeout_ms)
{
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value)
        sim_sleep_ms(e, timeout_ms);
}

static void sim_wake_word(struct env *e, const uint32_t *word)
{
    (void)e, (void)word;
}

static bool locked_by_another(const struct sim_handle *h)
{
    for (const struct sim_handle *o = h->proc->sim->handles; o; o = o->next)
        if (o != h && o->file == h->file && o->locked)
            return true;
    return false;
}

static enum tide_code sim_lock(struct env_file *f, int timeout_ms, struct tide_err *err)
{
    struct sim_handle *h = handle_of(f);

    let_others_go_first(h->proc);
    if (h->proc->dead)
        return result(ESRCH, "lock", h->path, err);
    if (locked_by_another(h)) {
        if (timeout_ms > 0)
            sim_advance(h->proc->sim, timeout_ms);
        return tide_fail(err, TIDE_BUSY, "lock '%s': held by another for %d ms", h->path, timeout_ms);
    }
    h->locked = true;
    return TIDE_OK;
}

static void sim_unlock(struct env_file *f)
{
    handle_of(f)->locked = false;
}

/* ---- Names -------------------------------------------------------------------------------------------------- */

static enum tide_code sim_stat(struct env *e, const char *path, struct env_stat *ret, struct tide_err *err)
{
    const struct sim_disk *disk = &proc_of(e)->sim->disk;
    const struct sim_file *file = sim_disk_find(disk, path);

    if (proc_of(e)->dead)
        return result(ESRCH, "stat", path, err);
    if (file)
        sim_sys_describe(proc_of(e)->sim, file, ret);
    else if (sim_disk_has_dir(disk, path))
        *ret = (struct env_stat){.kind = ENV_DIR, .mode = 0700, .links = 1};
    else
        *ret = (struct env_stat){.kind = ENV_ABSENT};
    return TIDE_OK;
}

static enum tide_code sim_mkdirs(struct env *e, const char *path, struct tide_err *err)
{
    return result(sim_sys_mkdirs(proc_of(e), path), "make directory", path, err);
}

static enum tide_code sim_unlink(struct env *e, const char *path, struct tide_err *err)
{
    int errnum = sim_sys_unlink(proc_of(e), path);

    return result(errnum == ENOENT ? 0 : errnum, "remove", path, err);
}

static enum tide_code sim_rename(struct env *e, const char *from, const char *to, struct tide_err *err)
{
    return result(sim_sys_rename(proc_of(e), from, to), "rename", from, err);
}

static enum tide_code sim_list(struct env *e, const char *dir, env_list_fn *fn, void *arg, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int errnum = sim_sys_list(proc_of(e), dir, fn, arg, &code);

    return errnum ? result(errnum, "list directory", dir, err) : code;
}

static enum tide_code sim_sync_dir(struct env *e, const char *path, struct tide_err *err)
{
    return result(sim_sys_sync_dir(proc_of(e), path), "sync directory", path, err);
}

/* ---- Processes ---------------------------------------------------------------------------------------------- */

static void sim_self(struct env *e, struct env_proc *ret)
{
    *ret = proc_of(e)->self;
}

static bool sim_is_local(struct env *e, const char *path)
{
    (void)path;
    return !proc_of(e)->sim->remote;
}

/* As on a real machine: what an earlier boot wrote looks like what another machine wrote. */
static enum env_life sim_life(struct env *e, const struct env_proc *who)
{
    const struct sim *sim = proc_of(e)->sim;

    if (strcmp(who->kernel_boot, proc_of(e)->self.kernel_boot) != 0 || who->pid_ns != proc_of(e)->self.pid_ns)
        return ENV_ELSEWHERE;
    for (size_t i = 0; i < sim->procs_len; i++) {
        const struct sim_proc *p = sim->procs[i];
        if (!p->dead && p->self.pid == who->pid && p->self.start_time == who->start_time)
            return p == proc_of(e) ? ENV_ALIVE : ENV_STOPPED; /* any other process does nothing while this one runs */
    }
    return ENV_DEAD;
}

void sim_env_init(struct sim_proc *p)
{
    static const struct env_ops ops = {
        .now_ms = sim_now_ms,
        .mono_ns = sim_mono_ns,
        .random = sim_env_random,
        .sleep_ms = sim_sleep_ms,
        .open = sim_open,
        .close = sim_close,
        .pread = sim_pread,
        .pwrite = sim_pwrite,
        .truncate = sim_truncate,
        .sync = sim_sync,
        .lock = sim_lock,
        .unlock = sim_unlock,
        .renamed = sim_renamed,
        .fstat = sim_fstat,
        .allocate = sim_allocate,
        .share = sim_share,
        .put_word = sim_put_word,
        .wait_word = sim_wait_word,
        .wake_word = sim_wake_word,
        .stat = sim_stat,
        .mkdirs = sim_mkdirs,
        .unlink = sim_unlink,
        .rename = sim_rename,
        .sync_dir = sim_sync_dir,
        .list = sim_list,
        .self = sim_self,
        .life = sim_life,
        .is_local = sim_is_local,
    };

    p->env = (struct env){&ops, NULL, false};
}
