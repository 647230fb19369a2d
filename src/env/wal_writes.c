/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a frame has at byte 4 the size of the database when the frame is the last of a commit, else 0 (SQLite's file
 * format). Only what continues the write before it is gathered: SQLite writes heads alone when it renews checksums, and no
 * page follows those.
 */
#include "env/wal_writes.h"

#include <string.h>

#include "base/mem.h"

#define HEAD_BYTES 24
#define GATHERED_MAX (64 * 1024)

int wal_write_out(struct wal_writes *w, sqlite3_file *file, wal_write_fn *fn)
{
    int len = w->len;

    w->len = 0; /* what cannot be written is given up: its transaction has failed */
    return len ? fn(file, w->bytes, len, w->end - len) : SQLITE_OK;
}

static bool ends_commit(const char *head)
{
    return memcmp(head + 4, (const char[4]){0}, 4) != 0;
}

int wal_write(struct wal_writes *w, sqlite3_file *file, wal_write_fn *fn, const void *bytes, int n, sqlite3_int64 at)
{
    bool joins = at == w->end;
    int rc = !joins || n > GATHERED_MAX - w->len ? wal_write_out(w, file, fn) : SQLITE_OK;

    if (n == HEAD_BYTES)
        w->last = ends_commit(bytes);
    w->end = at + n;
    if (rc || !joins || n > GATHERED_MAX)
        return rc ? rc : fn(file, bytes, n, at);
    if (!w->bytes)
        w->bytes = mem_alloc(GATHERED_MAX);
    memcpy(w->bytes + w->len, bytes, (size_t)n);
    w->len += n;
    return w->last && n != HEAD_BYTES ? wal_write_out(w, file, fn) : SQLITE_OK;
}

void wal_writes_done(struct wal_writes *w)
{
    free(TAKE(w->bytes));
    w->len = 0;
}
