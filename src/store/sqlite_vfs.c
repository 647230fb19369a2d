/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's own VFS, but for one thing: a read that the disk fails (EIO) is an I/O error. SQLite's says SQLITE_IOERR_CORRUPTFS,
 * and its engine turns that into SQLITE_CORRUPT, so that nobody can tell a failed cable from a damaged file any more.
 *
 * Each file that is opened gets a copy of its table of methods with another xRead; what is behind it is SQLite's.
 */
#include <pthread.h>

#include "store/sqlite_db.h"

#define VFS_NAME "tidemark"
#define TABLES_MAX 8 /* SQLite has one for each way to lock: two are used here */

struct table {
    sqlite3_io_methods ours; /* first: what a file points at is this struct as well */
    const sqlite3_io_methods *theirs;
};

static struct {
    pthread_once_t once;
    pthread_mutex_t mu;
    sqlite3_vfs vfs;
    const sqlite3_vfs *under;
    struct table tables[TABLES_MAX];
    size_t n;
} shim = {.once = PTHREAD_ONCE_INIT, .mu = PTHREAD_MUTEX_INITIALIZER};

static int read_file(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    const struct table *t = (const struct table *)(const void *)file->pMethods;
    int rc = t->theirs->xRead(file, out, n, at);

    return rc == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : rc;
}

static const sqlite3_io_methods *table_for(const sqlite3_io_methods *theirs)
{
    const sqlite3_io_methods *ours = theirs;
    size_t i = 0;

    pthread_mutex_lock(&shim.mu);
    while (i < shim.n && shim.tables[i].theirs != theirs)
        i++;
    if (i == shim.n && i < TABLES_MAX) {
        shim.tables[i] = (struct table){*theirs, theirs};
        shim.tables[i].ours.xRead = read_file;
        shim.n++;
    }
    if (i < TABLES_MAX)
        ours = &shim.tables[i].ours;
    pthread_mutex_unlock(&shim.mu);
    return ours;
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    int rc = shim.under->xOpen(vfs, path, file, flags, ret_flags);

    if (file->pMethods)
        file->pMethods = table_for(file->pMethods);
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
