/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite writes a frame of its log in two pieces, and moves the log page by page. Writes of the writing connection that follow each
 * other in a file are gathered here and go to the system as one.
 *
 * What is gathered reaches the file before anything else is done with its bytes: before a read, a sync, a change of its length, and before
 * a lock is given up, in the file or in the shared memory of its log. So nobody else can see or write a place for which
 * something is still gathered, and a sync covers all that was written. What is left when a file is closed belongs to a transaction
 * that was not committed.
 *
 * It does so in calls whose result counts. Not in xFileControl: SQLite calls that between the last page that it moves and the sync,
 * and ignores what it says.
 *
 * A file's table of methods is replaced by one that has its buffer behind it; what is underneath is called as before.
 */
#include "store/sqlite_db.h"

#define GATHER_MAX (124 * 1024) /* SQLite's own VFS takes less than 128 KiB at a time */

struct gatherer {
    sqlite3_io_methods ours; /* first: what the file points at is this struct as well */
    const sqlite3_io_methods *theirs;
    sqlite3_file *file;
    struct gatherer
        *other; /* of the database its log's, whose locks are those of the database; of the log the database's */
    char *bytes;
    size_t n;
    sqlite3_int64 at;
};

static struct gatherer *gatherer_of(sqlite3_file *file)
{
    return (struct gatherer *)(void *)(uintptr_t)file->pMethods;
}

/* What is underneath finds its own table where it looks for it: a VFS may keep more behind it, as ours does. */
#define UNDER(g, call)                                                                                                 \
    ({                                                                                                                 \
        int rc_;                                                                                                       \
        (g)->file->pMethods = (g)->theirs;                                                                             \
        rc_ = (g)->theirs->call;                                                                                       \
        (g)->file->pMethods = &(g)->ours;                                                                              \
        rc_;                                                                                                           \
    })

static int put_out(struct gatherer *g)
{
    size_t n = g->n;

    g->n = 0; /* also when it fails: the transaction does, and nothing of it may be written later */
    return n ? UNDER(g, xWrite(g->file, g->bytes, (int)n, g->at)) : SQLITE_OK;
}

static int gather_close(sqlite3_file *file)
{
    struct gatherer *g = gatherer_of(file);

    if (g->other)
        g->other->other = NULL;
    file->pMethods = g->theirs;
    free(g->bytes);
    free(g);
    return file->pMethods->xClose(file);
}

static int gather_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    struct gatherer *g = gatherer_of(file);
    int rc = put_out(g);

    return rc ? rc : UNDER(g, xRead(file, out, n, at));
}

static int gather_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    struct gatherer *g = gatherer_of(file);
    int rc = SQLITE_OK;

    if (at != g->at + (sqlite3_int64)g->n || g->n + (size_t)n > GATHER_MAX)
        rc = put_out(g);
    if (rc)
        return rc;
    if (n > GATHER_MAX)
        return UNDER(g, xWrite(file, bytes, n, at));
    if (!g->n)
        g->at = at;
    if (!g->bytes)
        g->bytes = mem_alloc(GATHER_MAX);
    memcpy(g->bytes + g->n, bytes, (size_t)n);
    g->n += (size_t)n;
    return SQLITE_OK;
}

static int gather_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct gatherer *g = gatherer_of(file);
    int rc = put_out(g);

    return rc ? rc : UNDER(g, xTruncate(file, size));
}

static int gather_sync(sqlite3_file *file, int flags)
{
    struct gatherer *g = gatherer_of(file);
    int rc = put_out(g);

    return rc ? rc : UNDER(g, xSync(file, flags));
}

static int gather_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    struct gatherer *g = gatherer_of(file);
    int rc = put_out(g);

    return rc ? rc : UNDER(g, xFileSize(file, ret_size));
}

static int gather_fetch(sqlite3_file *file, sqlite3_int64 at, int n, void **ret)
{
    struct gatherer *g = gatherer_of(file);
    int rc = put_out(g);

    return rc ? rc : UNDER(g, xFetch(file, at, n, ret));
}

/* Before others may write here. What cannot be written now was not committed: a commit has had its sync. */
static void put_out_all(struct gatherer *g)
{
    (void)put_out(g);
    if (g->other)
        (void)put_out(g->other);
}

static int gather_unlock(sqlite3_file *file, int level)
{
    struct gatherer *g = gatherer_of(file);

    put_out_all(g);
    return UNDER(g, xUnlock(file, level));
}

static int gather_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    struct gatherer *g = gatherer_of(file);

    if (flags & SQLITE_SHM_UNLOCK)
        put_out_all(g);
    return UNDER(g, xShmLock(file, offset, n, flags));
}

static struct gatherer *gather_for(sqlite3_file *file)
{
    struct gatherer *g = mem_zero(sizeof *g);

    g->theirs = file->pMethods;
    g->ours = *g->theirs; /* those that are not below go to the file as they are */
    g->ours.xClose = gather_close;
    g->ours.xRead = gather_read;
    g->ours.xWrite = gather_write;
    g->ours.xTruncate = gather_truncate;
    g->ours.xSync = gather_sync;
    g->ours.xFileSize = gather_size;
    g->ours.xUnlock = gather_unlock;
    if (g->ours.iVersion >= 2)
        g->ours.xShmLock = gather_shm_lock;
    if (g->ours.iVersion >= 3)
        g->ours.xFetch = gather_fetch;
    g->file = file;
    file->pMethods = &g->ours;
    return g;
}

void gather_writes(sqlite3 *db)
{
    sqlite3_file *file = NULL, *log = NULL;
    struct gatherer *of_file, *of_log;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) ||
        sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) || !file || !file->pMethods || !log ||
        !log->pMethods)
        return; /* its log is not open: it writes as it does by itself */
    of_file = gather_for(file);
    of_log = gather_for(log);
    of_file->other = of_log;
    of_log->other = of_file;
}
