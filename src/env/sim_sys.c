/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of a simulated machine. Each one that reaches the disk asks sim_op_begin() first, before it looks at
 * its handle again: the answer may be that the process was killed, and with it the handle lost its file.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "env/sim_machine.h"

static int errno_of(enum sim_verdict v)
{
    switch (v) {
    case SIM_GO:
        return 0;
    case SIM_FAIL:
        return EIO;
    case SIM_NO_SPACE:
    case SIM_HALF:
        return ENOSPC;
    default:
        return ESRCH;
    }
}

/* ---- Handles ------------------------------------------------------------------------------------------------ */

static struct sim_handle *new_handle(struct sim_proc *p, const char *path, struct sim_file *f)
{
    struct sim_handle *h = mem_zero(sizeof *h);

    h->proc = p;
    h->path = path ? mem_dup(str_from(path)) : NULL;
    h->file = sim_file_ref(f);
    h->next = p->sim->handles;
    p->sim->handles = h;
    return h;
}

int sim_sys_open(struct sim_proc *p, const char *path, unsigned env_flags, struct sim_handle **ret_handle)
{
    struct sim_file *f = sim_disk_find(&p->sim->disk, path);

    if (p->dead)
        return ESRCH;
    if (f && env_flags & ENV_EXCLUSIVE)
        return EEXIST;
    if (!f && sim_disk_has_dir(&p->sim->disk, path))
        return EISDIR;
    if (!f && (!(env_flags & ENV_CREATE) || !sim_disk_has_parent(&p->sim->disk, path)))
        return ENOENT;
    if (!f) {
        int errnum = errno_of(sim_op_begin(p, SIM_OP_CREATE, true));
        if (errnum)
            return errnum;
        f = sim_disk_create(&p->sim->disk, path, p->sim->wall_ns);
    }
    *ret_handle = new_handle(p, path, f);
    return 0;
}

int sim_sys_open_temp(struct sim_proc *p, struct sim_handle **ret_handle)
{
    int errnum = errno_of(sim_op_begin(p, SIM_OP_CREATE, false));

    if (errnum)
        return errnum;
    struct sim_file *f = sim_disk_new_file(&p->sim->disk, p->sim->wall_ns);
    *ret_handle = new_handle(p, NULL, f);
    sim_file_unref(f);
    return 0;
}

void sim_sys_abandon(struct sim_handle *h)
{
    sim_shm_abandon(h); /* before the file goes, which it is a part of */
    sim_file_unref(h->file);
    h->file = NULL;
    h->locked = false;
    h->db_lock = 0;
}

void sim_sys_close(struct sim_handle *h)
{
    struct sim_handle **link = &h->proc->sim->handles;

    sim_shm_unmap(h);
    sim_sys_abandon(h);
    while (*link != h)
        link = &(*link)->next;
    *link = h->next;
    free(h->path);
    free(h->scratch);
    free(h);
}

/* ---- Contents ----------------------------------------------------------------------------------------------- */

int sim_sys_read(struct sim_handle *h, void *out, size_t n, int64_t at, size_t *ret_n)
{
    int errnum = errno_of(sim_op_begin(h->proc, SIM_OP_READ, false));

    if (!errnum)
        *ret_n = sim_file_read(h->file, out, n, (size_t)at);
    return errnum;
}

static void put_bytes(struct sim_handle *h, const void *bytes, size_t n, int64_t at)
{
    sim_file_write(h->file, bytes, n, (size_t)at);
    if (n > 0)
        sim_file_touch(h->file, h->proc->sim->wall_ns);
}

#define PAGE 4096

int sim_sys_write(struct sim_handle *h, const void *bytes, size_t n, int64_t at)
{
    bool reserved = h->file && (size_t)at + n <= sim_file_reserved(h->file);
    bool grows = h->file && !reserved && (size_t)at + n > sim_file_len(h->file);
    enum sim_verdict v = sim_op_begin(h->proc, reserved ? SIM_OP_FILL : SIM_OP_WRITE, grows);

    if (v == SIM_GO || v == SIM_TORN)
        put_bytes(h, bytes, n, at);
    else if (v == SIM_HALF)
        /* The disk is full in the middle of it. Inside of what a file has, a page is copied whole or not at all. */
        put_bytes(h, bytes, !grows && at / PAGE == (at + (int64_t)n - 1) / PAGE ? 0 : n / 2, at);
    if (v == SIM_TORN)
        sim_power_cut(h->proc->sim);
    return errno_of(v);
}

int sim_sys_truncate(struct sim_handle *h, int64_t size)
{
    bool grows = h->file && (size_t)size > sim_file_len(h->file);
    int errnum = errno_of(sim_op_begin(h->proc, SIM_OP_TRUNCATE, grows));

    if (errnum)
        return errnum;
    sim_file_truncate(h->file, (size_t)size);
    sim_file_touch(h->file, h->proc->sim->wall_ns);
    return 0;
}

void sim_sys_describe(const struct sim *sim, const struct sim_file *f, struct env_stat *ret)
{
    *ret = (struct env_stat){
        .kind = ENV_FILE,
        .size = (int64_t)sim_file_len(f),
        .mode = 0600,
        .dev = 1,
        .ino = sim_file_number(f),
        .mtime_ns = sim_file_mtime_ns(f),
        .links = sim_disk_links(&sim->disk, f),
    };
}

int sim_sys_fstat(struct sim_handle *h, struct env_stat *ret)
{
    int errnum = errno_of(sim_op_begin(h->proc, SIM_OP_FSTAT, false));

    if (!errnum)
        sim_sys_describe(h->proc->sim, h->file, ret);
    return errnum;
}

/* The disk has no size of its own: it is full when a fault (SIM_ENOSPC) makes it so. */
int sim_sys_allocate(struct sim_handle *h, int64_t size)
{
    bool grows =
        h->file && size > 0 && (size_t)size > sim_file_len(h->file) && (size_t)size > sim_file_reserved(h->file);
    int errnum = errno_of(sim_op_begin(h->proc, SIM_OP_ALLOCATE, grows));

    if (!errnum && size > 0)
        sim_file_reserve(h->file, (size_t)size);
    return errnum;
}

int sim_sys_sync(struct sim_handle *h)
{
    struct sim *sim = h->proc->sim;
    int errnum = errno_of(sim_op_begin(h->proc, SIM_OP_SYNC, false));

    if (errnum == EIO) {
        sim_file_sync_failed(h->file, &sim->rng);
        sim_disk_sync_failed(&sim->disk, h->file, &sim->rng);
    }
    if (errnum)
        return errnum;
    if (!(sim->lies & SIM_LIE_NO_SYNC))
        sim_file_sync(h->file);
    if (h->entry_sync_due)
        errnum = sim_sys_sync_journals(h->proc, h->path);
    if (!errnum)
        h->entry_sync_due = false;
    return errnum;
}

/* ---- Names -------------------------------------------------------------------------------------------------- */

int sim_sys_unlink(struct sim_proc *p, const char *path)
{
    if (!p->dead && !sim_disk_find(&p->sim->disk, path))
        return ENOENT;
    int errnum = errno_of(sim_op_begin(p, SIM_OP_UNLINK, false));
    if (!errnum)
        sim_disk_unlink(&p->sim->disk, path);
    return errnum;
}

/* Why there can be no such rename, whatever room there is; 0: there can. */
static int rename_refusal(const struct sim_disk *disk, const char *from, const char *to)
{
    if (!sim_disk_find(disk, from))
        return sim_disk_has_dir(disk, from) ? EISDIR : ENOENT;
    if (sim_disk_has_dir(disk, to))
        return EISDIR;
    return sim_disk_has_parent(disk, to) ? 0 : ENOENT;
}

/* A name that is new takes room in its directory; one that is there is made to mean another file. */
int sim_sys_rename(struct sim_proc *p, const char *from, const char *to)
{
    struct sim_disk *disk = &p->sim->disk;
    bool grows = !rename_refusal(disk, from, to) && !sim_disk_find(disk, to);
    int errnum = errno_of(sim_op_begin(p, SIM_OP_RENAME, grows));

    if (!errnum)
        errnum = rename_refusal(disk, from, to);
    if (!errnum)
        sim_disk_rename(disk, from, to);
    return errnum;
}

int sim_sys_list(struct sim_proc *p, const char *path, env_list_fn *fn, void *arg, enum tide_code *ret_code)
{
    struct sim_disk *disk = &p->sim->disk;
    struct sim_listing l;
    int errnum = errno_of(sim_op_begin(p, SIM_OP_LIST, false));

    if (errnum)
        return errnum;
    if (sim_disk_find(disk, path))
        return ENOTDIR;
    if (!sim_disk_has_dir(disk, path))
        return ENOENT;
    *ret_code = TIDE_OK;
    sim_disk_list_begin(disk, path, &p->sim->rng, &l);
    while (!*ret_code && !p->dead && sim_disk_list_next(disk, &l)) /* fn may have been the end of it */
        *ret_code = fn(arg, l.name, l.is_dir ? ENV_DIR : ENV_FILE);
    sim_disk_list_end(disk, &l);
    return p->dead && !*ret_code ? ESRCH : 0;
}

int sim_sys_sync_dir(struct sim_proc *p, const char *path)
{
    int errnum = errno_of(sim_op_begin(p, SIM_OP_SYNC_DIR, false));

    if (!errnum && !sim_disk_has_dir(&p->sim->disk, path))
        return ENOENT;
    if (!errnum && !(p->sim->lies & SIM_LIE_NO_DIR_SYNC))
        sim_disk_sync_dir(&p->sim->disk, path);
    return errnum;
}

int sim_sys_sync_journals(struct sim_proc *p, const char *path)
{
    int errnum = errno_of(sim_op_begin(p, SIM_OP_SYNC_DIR, false));

    if (!errnum && !(p->sim->lies & SIM_LIE_NO_DIR_SYNC))
        sim_disk_sync_journals(&p->sim->disk, path);
    return errnum;
}

/* ---- Directories -------------------------------------------------------------------------------------------- */

static int make_dir(struct sim_proc *p, const char *path)
{
    struct sim_disk *disk = &p->sim->disk;

    if (sim_disk_find(disk, path))
        return ENOTDIR;
    if (sim_disk_has_dir(disk, path))
        return 0;
    int errnum = errno_of(sim_op_begin(p, SIM_OP_CREATE, true));
    if (!errnum)
        sim_disk_mkdir(disk, path);
    return errnum;
}

/* As env_real.c does it: the process that finds a directory whose maker was killed before the sync does the sync. */
static int make_synced_dir(struct sim_proc *p, const char *path)
{
    AUTO(mem_freep) char *parent = mem_dup(sim_parent_view(path));
    int errnum = make_dir(p, path);

    if (errnum || sim_disk_is_settled(&p->sim->disk, path))
        return errnum;
    errnum = sim_sys_sync_dir(p, parent);
    if (!errnum)
        sim_disk_settle(&p->sim->disk, path);
    return errnum;
}

int sim_sys_mkdirs(struct sim_proc *p, const char *path)
{
    AUTO(mem_freep) char *part = mem_dup(str_from(path));
    int errnum = p->dead ? ESRCH : 0;

    for (char *last = part; *last && !errnum; last++) {
        char next = last[1];
        if (*last == '/' || (next && next != '/'))
            continue;
        last[1] = '\0';
        errnum = make_synced_dir(p, part);
        last[1] = next;
    }
    return errnum;
}
