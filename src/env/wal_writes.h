/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite writes each frame of a write-ahead log as two writes, 24 bytes and a page. Gathered, a transaction is one write, or
 * one for every 64 KiB. Nothing waits beyond the last page of a commit: when its write returns, all of it is in the file.
 */
#ifndef ENV_WAL_WRITES_H
#define ENV_WAL_WRITES_H

#include <sqlite3.h>
#include <stdbool.h>

struct wal_writes {
    char *bytes;
    int len;           /* of what is gathered: it belongs before `end` */
    sqlite3_int64 end; /* of the last write, in the file */
    bool last;         /* the latest head was that of a commit's last frame */
};

typedef int wal_write_fn(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at);

/* As xWrite; the failure may be of what was gathered before. */
int wal_write(struct wal_writes *w, sqlite3_file *file, wal_write_fn *fn, const void *bytes, int n, sqlite3_int64 at);
/* What is gathered; before anything else is done with the file. */
int wal_write_out(struct wal_writes *w, sqlite3_file *file, wal_write_fn *fn);
void wal_writes_done(struct wal_writes *w); /* what is left is of no commit */

#endif
