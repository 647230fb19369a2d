/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's own VFS, but for two things. A read that the disk fails (EIO) is an I/O error: SQLite's says
 * SQLITE_IOERR_CORRUPTFS, and its engine turns that into SQLITE_CORRUPT, so that a failed cable looks the same as a
 * damaged file any more. And what a transaction writes to the write-ahead log is gathered (env/wal_writes.h), as is
 * what is moved from there into the database (env/wal_moves.h).
 *
 * Each file that is opened gets a copy of its table of methods with some of ours; what is behind it is SQLite's. Behind
 * SQLite's struct of a file there is room for what is gathered.
 */
#include <pthread.h>

#include "env/wal_moves.h"
#include "store/sqlite_db.h"

#define VFS_NAME "tidemark"
#define TABLES_MAX 16 /* SQLite has one for each way to lock: two are used here, each for logs as well */

struct table {
    sqlite3_io_methods ours; /* first: what a file points at is this struct as well */
    const sqlite3_io_methods *theirs;
    bool log;
};

static struct {
    pthread_once_t once;
    pthread_mutex_t mu;
    sqlite3_vfs vfs;
    const sqlite3_vfs *under;
    size_t own_bytes; /* of its struct of a file */
    struct table tables[TABLES_MAX];
    size_t n;
} shim = {.once = PTHREAD_ONCE_INIT, .mu = PTHREAD_MUTEX_INITIALIZER};

static const sqlite3_io_methods *theirs(const sqlite3_file *file)
{
    return ((const struct table *)(const void *)file->pMethods)->theirs;
}

static int read_file(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    int rc = theirs(file)->xRead(file, out, n, at);

    return rc == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : rc;
}

/* Behind SQLite's struct of a file. */
struct extra {
    struct wal_writes writes; /* of a log */
    struct wal_moves moves;
};

static struct extra *extra_of(sqlite3_file *file)
{
    return (struct extra *)(void *)((char *)file + shim.own_bytes);
}

static struct wal_writes *writes_of(sqlite3_file *file)
{
    return &extra_of(file)->writes;
}

static struct wal_moves *moves_of(sqlite3_file *file)
{
    return &extra_of(file)->moves;
}

/* ---- of a write-ahead log ---- */

static int write_out(sqlite3_file *file)
{
    return wal_write_out(writes_of(file), file, theirs(file)->xWrite);
}

static int close_log(sqlite3_file *file)
{
    wal_writes_done(writes_of(file));
    wal_moves_done(moves_of(file));
    return theirs(file)->xClose(file);
}

static int read_log(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    int rc = write_out(file);

    return rc ? rc : wal_moves_read(moves_of(file), file, read_file, out, n, at);
}

static int write_log(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    return wal_write(writes_of(file), file, theirs(file)->xWrite, bytes, n, at);
}

static int truncate_log(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = write_out(file);

    return rc ? rc : theirs(file)->xTruncate(file, size);
}

static int sync_log(sqlite3_file *file, int flags)
{
    int rc = write_out(file);

    return rc ? rc : theirs(file)->xSync(file, flags);
}

static int measure_log(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    int rc = write_out(file);

    return rc ? rc : theirs(file)->xFileSize(file, ret_size);
}

static int control_log(sqlite3_file *file, int op, void *arg)
{
    sqlite3_int64 size = 0;
    int rc;

    if (op != WAL_MOVES)
        return theirs(file)->xFileControl(file, op, arg);
    rc = measure_log(file, &size);
    wal_moves_switch(moves_of(file), arg, size);
    return rc;
}

/* ---- of a database ---- */

static int put_pages(sqlite3_file *file)
{
    return wal_moves_out(moves_of(file), file, theirs(file)->xWrite);
}

static int close_database(sqlite3_file *file)
{
    wal_moves_done(moves_of(file));
    return theirs(file)->xClose(file);
}

static int read_database(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    int rc = put_pages(file);

    return rc ? rc : read_file(file, out, n, at);
}

static int write_database(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    return wal_moves_write(moves_of(file), file, theirs(file)->xWrite, bytes, n, at);
}

static int truncate_database(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = put_pages(file);

    return rc ? rc : theirs(file)->xTruncate(file, size);
}

static int sync_database(sqlite3_file *file, int flags)
{
    int rc = put_pages(file);

    return rc ? rc : theirs(file)->xSync(file, flags);
}

static int measure_database(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    int rc = put_pages(file);

    return rc ? rc : theirs(file)->xFileSize(file, ret_size);
}

static int control_database(sqlite3_file *file, int op, void *arg)
{
    if (op != WAL_MOVES)
        return theirs(file)->xFileControl(file, op, arg);
    wal_moves_switch(moves_of(file), arg, 0);
    return SQLITE_OK;
}

/* ---- opening ---- */

static struct table table_of(const sqlite3_io_methods *methods, bool log)
{
    struct table t = {*methods, methods, log};

    t.ours.xClose = log ? close_log : close_database;
    t.ours.xRead = log ? read_log : read_database;
    t.ours.xWrite = log ? write_log : write_database;
    t.ours.xTruncate = log ? truncate_log : truncate_database;
    t.ours.xSync = log ? sync_log : sync_database;
    t.ours.xFileSize = log ? measure_log : measure_database;
    t.ours.xFileControl = log ? control_log : control_database;
    return t;
}

static const sqlite3_io_methods *methods_for(const sqlite3_io_methods *methods, bool log)
{
    const sqlite3_io_methods *ours = methods;
    size_t i = 0;

    pthread_mutex_lock(&shim.mu);
    while (i < shim.n && (shim.tables[i].theirs != methods || shim.tables[i].log != log))
        i++;
    if (i == shim.n && i < TABLES_MAX)
        shim.tables[shim.n++] = table_of(methods, log);
    if (i < TABLES_MAX)
        ours = &shim.tables[i].ours;
    pthread_mutex_unlock(&shim.mu);
    return ours;
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    bool log = flags & SQLITE_OPEN_WAL;
    int rc = shim.under->xOpen(vfs, path, file, flags, ret_flags);

    *extra_of(file) = (struct extra){0};
    if (file->pMethods)
        file->pMethods = methods_for(file->pMethods, log);
    return rc;
}

static void set_up(void)
{
    shim.under = sqlite3_vfs_find(NULL);
    if (!shim.under)
        return;
    shim.vfs = *shim.under;
    shim.vfs.pNext = NULL;
    shim.vfs.zName = VFS_NAME;
    shim.vfs.xOpen = open_file;
    shim.own_bytes = ((size_t)shim.under->szOsFile + 7) & ~(size_t)7;
    shim.vfs.szOsFile = (int)(shim.own_bytes + sizeof(struct extra));
    if (sqlite3_vfs_register(&shim.vfs, 0))
        shim.under = NULL;
}

const char *vfs_name(const struct env *env)
{
    if (env->sqlite_vfs)
        return env->sqlite_vfs;
    pthread_once(&shim.once, set_up);
    return shim.under ? VFS_NAME : NULL;
}
