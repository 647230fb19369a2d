/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read ahead stays true as long as this is on: who moves a log has the lock of all writing. A page is followed in the log by the
 * head of the next frame, 24 bytes, which nobody reads then.
 */
#include "env/wal_moves.h"

#include <string.h>

#include "base/mem.h"

#define HEAD_BYTES 24
#define PIECE (64 * 1024)

void wal_moves_switch(struct wal_moves *m, int *arg, sqlite3_int64 bytes_of_file)
{
    m->on = *arg;
    *arg = m->len;
    m->len = 0;
    m->next = -1;
    m->bytes_of_file = bytes_of_file;
}

void wal_moves_done(struct wal_moves *m)
{
    free(TAKE(m->bytes));
    m->len = 0;
    m->on = false;
}

static char *room(struct wal_moves *m)
{
    if (!m->bytes)
        m->bytes = mem_alloc(PIECE);
    return m->bytes;
}

int wal_moves_out(struct wal_moves *m, sqlite3_file *file, wal_write_fn *fn)
{
    int len = m->len;

    m->len = 0; /* what cannot be written is given up: the move has failed, and the log has it still */
    return len ? fn(file, m->bytes, len, m->at) : SQLITE_OK;
}

int wal_moves_write(struct wal_moves *m, sqlite3_file *file, wal_write_fn *fn, const void *bytes, int n,
                    sqlite3_int64 at)
{
    bool joins = at == m->at + m->len && n <= PIECE - m->len;
    int rc = joins && m->on ? SQLITE_OK : wal_moves_out(m, file, fn);

    if (rc || !m->on || n > PIECE)
        return rc ? rc : fn(file, bytes, n, at);
    if (!m->len)
        m->at = at;
    memcpy(room(m) + m->len, bytes, (size_t)n);
    m->len += n;
    return m->len == PIECE ? wal_moves_out(m, file, fn) : SQLITE_OK;
}

static bool holds(const struct wal_moves *m, int n, sqlite3_int64 at)
{
    return at >= m->at && at + n <= m->at + m->len;
}

int wal_moves_read(struct wal_moves *m, sqlite3_file *file, wal_read_fn *fn, void *out, int n, sqlite3_int64 at)
{
    sqlite3_int64 left = m->bytes_of_file - at;
    bool follows = m->on && at == m->next && n <= PIECE && left >= n;

    m->next = at + n + HEAD_BYTES;
    if (follows && !holds(m, n, at)) {
        m->len = 0;
        m->at = at;
        if (!fn(file, room(m), left < PIECE ? (int)left : PIECE, at)) /* else that one page may do */
            m->len = left < PIECE ? (int)left : PIECE;
    }
    if (!follows || !holds(m, n, at))
        return fn(file, out, n, at);
    memcpy(out, m->bytes + (at - m->at), (size_t)n);
    return SQLITE_OK;
}
