/* SPDX-License-Identifier: Apache-2.0 */
/* All SQL that runs after a store is open: constant text, bound parameters, prepared when first used. */
#include "store/sqlite_db.h"

#define HEAD_SELECT                                                                                                    \
    "SELECT s.sid, s.id, s.created, s.parent, s.parent_seq, s.base, s.hidden, s.row_check,"                            \
    " max(s.epoch, coalesce(l.epoch, 0)), coalesce(l.last_seq, s.last_seq), coalesce(l.last_pos, s.last_pos),"         \
    " coalesce(l.digest, s.digest), coalesce(l.updated, s.updated), coalesce(l.boot, 0), p.id,"                        \
    " CASE WHEN s.summary_seq = coalesce(l.last_seq, s.last_seq) THEN s.summary END,"                                  \
    " s.epoch, s.last_seq, s.last_pos, s.digest, s.updated, s.live, l.sid IS NOT NULL, l.row_check, s.summary_check,"  \
    " coalesce(l.wake, 0), (SELECT e.proof FROM events e WHERE e.pos = coalesce(l.last_pos, s.last_pos))"
#define HEAD_COLUMNS                                                                                                   \
    HEAD_SELECT " FROM sessions s LEFT JOIN live l ON l.sid = s.sid LEFT JOIN sessions p ON p.sid = s.parent "
#define EVENT_COLUMNS "SELECT pos, sid, seq, prev, epoch, ts, kind, body, refs, digest, proof FROM events "
#define LIVE_PUT "INSERT OR REPLACE INTO live(sid, boot, epoch, last_seq, last_pos, digest, updated, row_check, wake)"

static const char *const sql[ST_COUNT] = {
    [ST_BEGIN] = "BEGIN",
    [ST_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [ST_COMMIT] = "COMMIT",
    [ST_ROLLBACK] = "ROLLBACK",
    [ST_DATA_VERSION] = "PRAGMA data_version",
    [ST_SCHEMA] = "SELECT type, name, sql FROM sqlite_schema",
    [ST_MAX_POS] = "SELECT max(coalesce((SELECT max(pos) FROM events), 0),"
                   " coalesce((SELECT value FROM meta WHERE key = 'position_floor'), 0)),"
                   " (SELECT value FROM meta WHERE key = 'closed')",
    [ST_HEAD] = HEAD_COLUMNS "WHERE s.id = ?1",
    [ST_HEAD_SCAN] = HEAD_COLUMNS "WHERE +s.sid > ?1 ORDER BY +s.sid",
    [ST_HEAD_BY_SID] = HEAD_COLUMNS "WHERE s.sid = ?1",
    [ST_EVENT] = EVENT_COLUMNS "WHERE pos = ?1",
    [ST_EVENT_LINK] = "SELECT sid, seq, prev, digest FROM events WHERE pos = ?1",
    [ST_EVENT_KIND] = "SELECT kind FROM events WHERE pos = ?1",
    [ST_EVENTS_FLUSH] =
        "INSERT OR FAIL INTO events(pos, sid, seq, prev, epoch, ts, kind, body, refs, digest, tag, proof)"
        " SELECT * FROM pending_events",
    [ST_EVENT_DELETE] = "DELETE FROM events WHERE pos = ?1",
    [ST_EVENT_PROVE] = "UPDATE events SET proof = ?2 WHERE pos = ?1",
    [ST_EVENTS_AFTER] = EVENT_COLUMNS "WHERE pos > ?1 ORDER BY pos LIMIT ?2",
    [ST_LAST_EVENT] = "SELECT coalesce(max(pos), 0) FROM events",
    [ST_LAST_POSITIONS] = "SELECT coalesce(l.last_pos, s.last_pos) FROM sessions s LEFT JOIN live l USING (sid)",
    [ST_BLOCK] = "SELECT positions, marks FROM blocks WHERE sid = ?1 AND seq = ?2",
    [ST_BLOCK_INSERT] = "INSERT OR REPLACE INTO blocks(sid, seq, positions, marks) VALUES(?1, ?2, ?3, ?4)",
    [ST_BLOCKS_DELETE] = "DELETE FROM blocks WHERE sid = ?1",
    [ST_CHECKPOINT_SEQ] = "SELECT seq FROM events WHERE tag = ?2 AND +sid = ?1",
    [ST_SESSION_INSERT] =
        "INSERT INTO sessions(sid, id, created, parent, parent_seq, base, hidden, live, row_check, epoch,"
        " last_seq, last_pos, digest, updated) VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?7, 0, ?8,"
        " ?2)",
    [ST_SESSION_UPDATE] = "UPDATE sessions SET epoch = ?2, last_seq = ?3, last_pos = ?4, digest = ?5, updated = ?6,"
                          " row_check = ?7, live = ?8 WHERE sid = ?1",
    [ST_SESSION_SUMMARY] = "UPDATE sessions SET summary = ?2, summary_seq = ?3, summary_check = ?4 WHERE sid = ?1",
    [ST_SESSION_REVEAL] = "UPDATE sessions SET hidden = 0 WHERE sid = ?1",
    [ST_SESSION_DELETE] = "DELETE FROM sessions WHERE sid = ?1",
    [ST_HIDDEN] = "SELECT id FROM sessions WHERE hidden = 1 LIMIT ?1",
    [ST_HIDDEN_HEADS] = HEAD_COLUMNS "WHERE s.hidden = 1",
    [ST_FORKS] = "SELECT id FROM sessions WHERE parent = ?1 ORDER BY sid LIMIT 4",
    [ST_LIST] = HEAD_COLUMNS "WHERE s.hidden != 1 AND s.sid < ?1 ORDER BY s.sid DESC LIMIT ?2",
    [ST_LIST_FORKS] = HEAD_COLUMNS "WHERE s.hidden != 1 AND s.sid < ?1 AND s.parent = ?3 ORDER BY s.sid DESC LIMIT ?2",
    [ST_LIST_COUNT] =
        "SELECT count(*) FROM sessions INDEXED BY listed_index WHERE hidden = 0 AND sid < ?1 AND sid >= ?2",
    [ST_IDS_COUNT] = "SELECT (SELECT count(*) FROM sessions INDEXED BY listed_index WHERE hidden IN (0, 1)),"
                     " (SELECT count(*) FROM sessions INDEXED BY sqlite_autoindex_sessions_1 WHERE id >= '')",
    [ST_RESOLVE] = "SELECT id FROM sessions WHERE id >= ?1 AND id < ?1 || x'f4' AND hidden != 1 ORDER BY id LIMIT ?2",
    [ST_LIVE] = HEAD_SELECT ", l.sid FROM live l LEFT JOIN sessions s ON s.sid = l.sid LEFT JOIN sessions p"
                            " ON p.sid = s.parent WHERE l.sid > ?1 ORDER BY l.sid LIMIT ?2",
    [ST_LIVE_FLUSH] = LIVE_PUT " SELECT * FROM pending_heads",
    [ST_LIVE_PUT] = LIVE_PUT " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [ST_LIVE_DELETE] = "DELETE FROM live WHERE sid = ?1",
    [ST_LIVE_RECHECK] = "UPDATE live SET row_check = ?2 WHERE sid = ?1",
    [ST_BOOT_INSERT] = "INSERT INTO boots(boot_id, kernel_boot, pid_ns, pid, start_time, expires, lease, beat)"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [ST_BOOT_FIND] = "SELECT boot FROM boots WHERE boot_id = ?1",
    [ST_BOOT_BEAT] = "UPDATE boots SET expires = ?2, lease = ?3, beat = ?4 WHERE boot = ?1",
    [ST_BOOT_GET] =
        "SELECT boot_id, kernel_boot, pid_ns, pid, start_time, expires, lease, beat FROM boots WHERE boot = ?1",
    [ST_BOOT_SWEEP] = "DELETE FROM boots WHERE expires < ?1 AND boot NOT IN (SELECT boot FROM live)",
    [ST_SNAP_INSERT] = "INSERT OR REPLACE INTO snapshots(sid, seq, at, row_check, state) VALUES(?1, ?2, ?3, ?4, ?5)",
    [ST_SNAP_GET] =
        "SELECT seq, at, row_check, state FROM snapshots WHERE sid = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 8",
    [ST_SNAP_DELETE] = "DELETE FROM snapshots WHERE sid = ?1",
    [ST_BLOB_FIND] = "SELECT id, value = ?2 FROM blobs WHERE digest = ?1",
    [ST_BLOB_ADD] = "INSERT INTO blobs(digest, refs, value) VALUES(?1, 1, ?2)",
    [ST_BLOB_REF] = "UPDATE blobs SET refs = refs + 1 WHERE id = ?1",
    [ST_BLOB_UNREF] = "UPDATE blobs SET refs = refs - 1 WHERE digest = ?1",
    [ST_BLOB_SWEEP] = "DELETE FROM blobs WHERE digest = ?1 AND refs <= 0",
    [ST_BLOB_GET] = "SELECT id FROM blobs WHERE digest = ?1",
    [ST_META_GET] = "SELECT value FROM meta WHERE key = ?1",
    [ST_META_PUT] = "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)",
    [ST_META_OPENED] = "UPDATE meta SET value = -1 WHERE key = 'closed'",
    [ST_META_OPEN] = "DELETE FROM meta WHERE key = 'closed'",
};

sqlite3_stmt *db_stmt(struct conn *c, enum stmt_id id)
{
    sqlite3_stmt *st = c->stmts[id];

    if (!st) {
        c->prepare_rc = sqlite3_prepare_v3(c->db, sql[id], -1, SQLITE_PREPARE_PERSISTENT, &st, NULL);
        c->stmts[id] = st;
    }
    return st;
}

/*
 * A step that fails, be it a read, takes the whole transaction with it, also when its failure is nothing to who made it (a
 * cache, a row that may be missing). What came behind it would then be written by itself.
 */
int db_step(struct conn *c, sqlite3_stmt *st)
{
    if (c->in_txn && sqlite3_get_autocommit(c->db))
        return SQLITE_IOERR;
    return st ? sqlite3_step(st) : c->prepare_rc;
}

int db_run(struct conn *c, enum stmt_id id)
{
    sqlite3_stmt *st = db_stmt(c, id);
    int rc;

    c->in_txn &= id != ST_ROLLBACK;
    rc = db_step(c, st);
    sqlite3_reset(st);
    if (rc == SQLITE_DONE && (id == ST_BEGIN_WRITE || id == ST_COMMIT))
        c->in_txn = id == ST_BEGIN_WRITE;
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

struct str db_text(sqlite3_stmt *st, int column)
{
    const void *p = sqlite3_column_blob(st, column); /* before bytes: the call that may convert comes first */

    return (struct str){p ? p : "", (size_t)sqlite3_column_bytes(st, column)};
}

int db_query_int(struct conn *c, const char *text, int64_t *ret)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(c->db, text, -1, &st, NULL);

    rc = rc ? rc : sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}
