/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite VFS on a simulated machine: one per process, so that a connection finds its machine, its locks and its death
 * by the name it was opened with. It follows SQLite's own unix VFS where a store can notice: an empty file does not
 * exist for xAccess, a new journal's first sync makes its directory entry durable (and the database's never does), a
 * failed step to EXCLUSIVE leaves PENDING. Nobody else runs during a call: a lock in conflict is SQLITE_BUSY. Writes to a
 * write-ahead log, and to the database when it is moved there, are gathered as on a real machine.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "env/sim_machine.h"
#include "env/wal_moves.h"

enum { PATH_MAX_BYTES = 1024, SECTOR_BYTES = 4096 };
#define JULIAN_UNIX_EPOCH_MS INT64_C(210866760000000)

struct vfs_file {
    sqlite3_file base;
    struct sim_handle *h;
    bool log;
    struct wal_writes writes; /* of a log */
    struct wal_moves moves;
};

static struct sim_handle *handle_of(sqlite3_file *file)
{
    return ((struct vfs_file *)file)->h;
}

static struct sim_proc *proc_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int result(int errnum, int ioerr)
{
    switch (errnum) {
    case 0:
        return SQLITE_OK;
    case ENOSPC:
        return SQLITE_FULL;
    case ESRCH:
        return SQLITE_IOERR;
    default:
        return ioerr;
    }
}

/* ---- Contents ----------------------------------------------------------------------------------------------- */

static int write_now(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    return result(sim_sys_write(handle_of(file), bytes, (size_t)n, at), SQLITE_IOERR_WRITE);
}

static int write_out(sqlite3_file *file)
{
    struct vfs_file *f = (struct vfs_file *)file;

    return f->log ? wal_write_out(&f->writes, file, write_now) : wal_moves_out(&f->moves, file, write_now);
}

static int file_close(sqlite3_file *file)
{
    wal_writes_done(&((struct vfs_file *)file)->writes);
    wal_moves_done(&((struct vfs_file *)file)->moves);
    sim_sys_close(handle_of(file));
    return SQLITE_OK;
}

static int read_now(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    size_t got = 0;
    int errnum;

    errnum = sim_sys_read(handle_of(file), out, (size_t)n, at, &got);
    if (errnum)
        return result(errnum, SQLITE_IOERR_READ);
    if (got == (size_t)n)
        return SQLITE_OK;
    memset((char *)out + got, 0, (size_t)n - got);
    return SQLITE_IOERR_SHORT_READ;
}

static int file_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    struct vfs_file *f = (struct vfs_file *)file;
    int rc = write_out(file);

    if (rc)
        return rc;
    return f->log ? wal_moves_read(&f->moves, file, read_now, out, n, at) : read_now(file, out, n, at);
}

static int file_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    struct vfs_file *f = (struct vfs_file *)file;

    return f->log ? wal_write(&f->writes, file, write_now, bytes, n, at)
                  : wal_moves_write(&f->moves, file, write_now, bytes, n, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = write_out(file);

    return rc ? rc : result(sim_sys_truncate(handle_of(file), size), SQLITE_IOERR_TRUNCATE);
}

static int file_sync(sqlite3_file *file, int flags)
{
    int rc = write_out(file);

    (void)flags;
    return rc ? rc : result(sim_sys_sync(handle_of(file)), SQLITE_IOERR_FSYNC);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    const struct sim_handle *h = handle_of(file);
    int rc = write_out(file);

    if (rc || h->proc->dead)
        return rc ? rc : SQLITE_IOERR;
    *ret_size = (sqlite3_int64)sim_file_len(h->file);
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    struct sim_handle *h = handle_of(file);
    struct vfs_file *f = (struct vfs_file *)file;
    sqlite3_int64 size = 0;
    int *value = arg;

    if (op == WAL_MOVES) {
        int rc = f->log ? file_size(file, &size) : SQLITE_OK;

        wal_moves_switch(&f->moves, value, size);
        return rc;
    }
    if (op != SQLITE_FCNTL_PERSIST_WAL)
        return SQLITE_NOTFOUND;
    if (*value >= 0)
        h->keep_wal = *value;
    *value = h->keep_wal;
    return SQLITE_OK;
}

static int file_sector_size(sqlite3_file *file)
{
    (void)file;
    return SECTOR_BYTES;
}

static int file_device(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* ---- Locks of the database file ----------------------------------------------------------------------------- */

/* The highest lock that any other connection holds on the same file. */
static int others_lock(const struct sim_handle *h)
{
    int highest = SQLITE_LOCK_NONE;

    for (const struct sim_handle *o = h->proc->sim->handles; o; o = o->next)
        if (o != h && o->file == h->file && o->db_lock > highest)
            highest = o->db_lock;
    return highest;
}

static int file_lock(sqlite3_file *file, int level)
{
    struct sim_handle *h = handle_of(file);

    if (h->proc->dead)
        return SQLITE_IOERR;
    if (h->db_lock >= level)
        return SQLITE_OK;
    int others = others_lock(h);
    int limit = level == SQLITE_LOCK_RESERVED ? SQLITE_LOCK_RESERVED : SQLITE_LOCK_PENDING;
    if (others >= limit)
        return SQLITE_BUSY;
    if (level == SQLITE_LOCK_EXCLUSIVE && others > SQLITE_LOCK_NONE) {
        h->db_lock = SQLITE_LOCK_PENDING; /* keeps new readers out until those inside are done */
        return SQLITE_BUSY;
    }
    h->db_lock = level;
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *file, int level)
{
    struct sim_handle *h = handle_of(file);

    if (h->proc->dead)
        return SQLITE_IOERR;
    if (h->db_lock > level)
        h->db_lock = level;
    return SQLITE_OK;
}

static int file_check_reserved(sqlite3_file *file, int *ret_reserved)
{
    const struct sim_handle *h = handle_of(file);

    if (h->proc->dead)
        return SQLITE_IOERR;
    *ret_reserved = h->db_lock >= SQLITE_LOCK_RESERVED || others_lock(h) >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

/* ---- Shared memory ------------------------------------------------------------------------------------------ */

static int file_shm_map(sqlite3_file *file, int region, int bytes, int extend, void volatile **ret_map)
{
    return sim_shm_map(handle_of(file), region, bytes, extend, ret_map);
}

static int file_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return sim_shm_lock(handle_of(file), offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    (void)file;
    __sync_synchronize();
}

static int file_shm_unmap(sqlite3_file *file, int delete_it)
{
    (void)delete_it; /* it goes with its last user anyway */
    sim_shm_unmap(handle_of(file));
    return SQLITE_OK;
}

/* ---- The VFS ------------------------------------------------------------------------------------------------ */

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_device,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *file, int flags, int *ret_flags)
{
    const int journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
    struct vfs_file *f = (struct vfs_file *)file;
    int errnum;

    *f = (struct vfs_file){0};
    if (path)
        errnum = sim_sys_open(proc_of(vfs), path, flags & SQLITE_OPEN_CREATE ? ENV_WRITE | ENV_CREATE : 0, &f->h);
    else
        errnum = sim_sys_open_temp(proc_of(vfs), &f->h);
    if (errnum)
        return result(errnum, SQLITE_CANTOPEN);
    f->base.pMethods = &methods;
    f->log = flags & SQLITE_OPEN_WAL;
    f->h->entry_sync_due = path && flags & SQLITE_OPEN_CREATE && flags & journals;
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    int errnum = sim_sys_unlink(proc_of(vfs), path);

    if (errnum == ENOENT)
        return SQLITE_IOERR_DELETE_NOENT;
    if (!errnum && sync_dir)
        return result(sim_sys_sync_journals(proc_of(vfs), path), SQLITE_IOERR_DIR_FSYNC);
    return result(errnum, SQLITE_IOERR_DELETE);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *ret_yes)
{
    const struct sim_file *f = sim_disk_find(&proc_of(vfs)->sim->disk, path);

    if (proc_of(vfs)->dead)
        return SQLITE_IOERR;
    *ret_yes = f && (flags != SQLITE_ACCESS_EXISTS || sim_file_len(f) > 0);
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    (void)vfs;
    return snprintf(out, (size_t)size, "%s", path) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_randomness(sqlite3_vfs *vfs, int n, char *out)
{
    for (int i = 0; i < n; i++)
        out[i] = (char)sim_next(&proc_of(vfs)->sim->rng);
    return n;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    struct sim *sim = proc_of(vfs)->sim;

    sim->wall_ns += (int64_t)us * 1000;
    sim->mono_ns += (int64_t)us * 1000;
    return us;
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret_ms)
{
    *ret_ms = proc_of(vfs)->sim->wall_ns / 1000000 + JULIAN_UNIX_EPOCH_MS;
    return SQLITE_OK;
}

static int vfs_time_days(sqlite3_vfs *vfs, double *ret_days)
{
    sqlite3_int64 ms;
    int rc = vfs_time_ms(vfs, &ms);

    *ret_days = (double)ms / 86400000.0;
    return rc;
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    (void)size;
    (void)out;
    return 0;
}

void sim_vfs_register(struct sim_proc *p)
{
    sqlite3_vfs *vfs = mem_zero(sizeof *vfs + 64);
    char *name = (char *)(vfs + 1);

    snprintf(name, 64, "tide-sim-%p", (void *)p); /* unique among those that live */
    *vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct vfs_file),
        .mxPathname = PATH_MAX_BYTES,
        .zName = name,
        .pAppData = p,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time_days,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_time_ms,
    };
    if (sqlite3_vfs_register(vfs, 0) != SQLITE_OK)
        abort();
    p->vfs = vfs;
    p->env.sqlite_vfs = name;
}

void sim_vfs_unregister(struct sim_proc *p)
{
    sqlite3_vfs_unregister(p->vfs);
    free(p->vfs);
}

void sim_vfs_seed(uint64_t seed)
{
    unsigned folded = (unsigned)(seed ^ (seed >> 32));

    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, (int)(seed ? folded | 1 : 0), (sqlite3 *)NULL);
}
