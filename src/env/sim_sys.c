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
    if (!f && !(env_flags & ENV_CREATE))
        return ENOENT;
    if (!f) {
        int errnum = errno_of(sim_op_begin(p, SIM_OP_CREATE, false));
        if (errnum)
            return errnum;
        f = sim_disk_create(&p->sim->disk, path);
    }
    *ret_handle = new_handle(p, path, f);
    return 0;
}

int sim_sys_open_temp(struct sim_proc *p, struct sim_handle **ret_handle)
{
    int errnum = errno_of(sim_op_begin(p, SIM_OP_CREATE, false));

    if (errnum)
        return errnum;
    struct sim_file *f = sim_file_new();
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
    free(h);
}

/* ---- Contents ----------------------------------------------------------------------------------------------- */

int sim_sys_read(struct sim_handle *h, void *out, size_t n, int64_t at, size_t *ret_n)
{
    if (h->proc->dead)
        return ESRCH;
    *ret_n = sim_file_read(h->file, out, n, (size_t)at);
    return 0;
}

int sim_sys_write(struct sim_handle *h, const void *bytes, size_t n, int64_t at)
{
    bool grows = h->file && (size_t)at + n > sim_file_len(h->file);
    enum sim_verdict v = sim_op_begin(h->proc, SIM_OP_WRITE, grows);

    if (v == SIM_GO || v == SIM_TORN)
        sim_file_write(h->file, bytes, n, (size_t)at);
    else if (v == SIM_HALF)
        sim_file_write(h->file, bytes, n / 2, (size_t)at);
    if (v == SIM_TORN)
        sim_power_cut(h->proc->sim);
    return errno_of(v);
}

int sim_sys_truncate(struct sim_handle *h, int64_t size)
{
    bool grows = h->file && (size_t)size > sim_file_len(h->file);
    int errnum = errno_of(sim_op_begin(h->proc, SIM_OP_TRUNCATE, grows));

    if (!errnum)
        sim_file_truncate(h->file, (size_t)size);
    return errnum;
}

int sim_sys_sync(struct sim_handle *h)
{
    struct sim *sim = h->proc->sim;
    int errnum = errno_of(sim_op_begin(h->proc, SIM_OP_SYNC, false));

    if (errnum == EIO)
        sim_file_sync_failed(h->file, &sim->rng);
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

int sim_sys_mkdirs(struct sim_proc *p, const char *path)
{
    if (p->dead)
        return ESRCH;
    if (sim_disk_find(&p->sim->disk, path))
        return ENOTDIR;
    if (sim_disk_has_dir(&p->sim->disk, path))
        return 0;
    int errnum = errno_of(sim_op_begin(p, SIM_OP_CREATE, false));
    if (!errnum)
        sim_disk_mkdir(&p->sim->disk, path);
    return errnum;
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
