/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite moves a write-ahead log into its database page by page: 256 reads and 256 writes for a MiB, and a file that is written in
 * such small pieces takes the kernel two or three times as long, its sync as well. While a log is moved, pages that follow each other are
 * written in pieces of 64 KiB, and what follows in the log is read ahead.
 *
 * Pages that are held back must be in the database before the log counts as moved. So they reach it before it is read, cut,
 * measured or synced, and this is on only where a sync follows before that: in a move of the whole log. A move that a reader
 * cuts short has none; the caller that moves switches this off when a reader is in the way.
 */
#ifndef ENV_WAL_MOVES_H
#define ENV_WAL_MOVES_H

#include <sqlite3.h>
#include <stdbool.h>

#include "env/wal_writes.h"

/* xFileControl of a database and of its log: *(int *)arg switches it on or off; afterwards it says how many bytes were held back
 * still, and are given up. */
#define WAL_MOVES 0x544d4f56

struct wal_moves {
    bool on;
    char *bytes;                 /* of a database: what is held back; of a log: what was read ahead */
    int len;                     /* of them */
    sqlite3_int64 at;            /* where they belong, or were read */
    sqlite3_int64 next;          /* of a log: where the next page is, if it follows */
    sqlite3_int64 bytes_of_file; /* of a log */
};

typedef int wal_read_fn(sqlite3_file *file, void *out, int n, sqlite3_int64 at);

void wal_moves_switch(struct wal_moves *m, int *arg, sqlite3_int64 bytes_of_file);
void wal_moves_done(struct wal_moves *m);
/* Of a database, as xWrite; and what is held back, before anything else is done with the file. */
int wal_moves_write(struct wal_moves *m, sqlite3_file *file, wal_write_fn *fn, const void *bytes, int n,
                    sqlite3_int64 at);
int wal_moves_out(struct wal_moves *m, sqlite3_file *file, wal_write_fn *fn);
/* Of a log, as xRead. */
int wal_moves_read(struct wal_moves *m, sqlite3_file *file, wal_read_fn *fn, void *out, int n, sqlite3_int64 at);

#endif
