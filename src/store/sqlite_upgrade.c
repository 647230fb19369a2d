/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQL alone cannot change. Version 3: who waits is among the live. Up to version 2 `live` held leases only. Its rows
 * get a time to wake; sessions without a lease whose last run had not ended come in, so that recovery finds them;
 * snapshots and summaries, which the new fold would read wrongly, go. Checks are made anew only for rows whose old check
 * is right: a damaged row stays damaged.
 *
 * Version 5: how long the leases of a process are, so that others can see by elapsed time that it is silent.
 *
 * Version 4: which events are checkpoints is in `blocks`. Up to version 3 two indexes said so; they fill the rows and go.
 */
#include "store/origin.h"
#include "store/sqlite_db.h"

/* Adds a column unless the query finds it. */
static int add_column(struct sqlite_store *s, const char *find, const char *add)
{
    int64_t there = 0;
    int rc = db_query_int(&s->w, find, &there);

    return rc || there ? rc : sqlite3_exec(s->w.db, add, NULL, NULL, NULL);
}

/* They are gathered first: what is done changes the tables it reads. */
int for_each_sid(struct sqlite_store *s, const char *sql, int (*fn)(struct sqlite_store *s, int64_t sid))
{
    AUTO(mem_freep) int64_t *sids = NULL;
    size_t n = 0, cap = 0;
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->w.db, sql, -1, &st, NULL);

    while (!rc && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        MEM_ROOM(sids, n, cap);
        sids[n++] = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    for (size_t i = 0; i < n && !rc; i++)
        rc = fn(s, sids[i]);
    return rc;
}

static int recheck_session(struct sqlite_store *s, int64_t sid)
{
    static const char sql[] =
        "SELECT boot, epoch, last_seq, last_pos, digest, updated, row_check FROM live WHERE sid = ?1";
    struct whead w = {.sid = sid};
    sqlite3_stmt *st = NULL;
    bool right = false;
    int rc = sqlite3_prepare_v2(s->w.db, sql, -1, &st, NULL);

    if (!rc)
        sqlite3_bind_int64(st, 1, sid);
    rc = rc ? rc : sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        w.boot = sqlite3_column_int64(st, 0);
        w.h.epoch = sqlite3_column_int64(st, 1);
        w.h.last_seq = sqlite3_column_int64(st, 2);
        w.last_pos = sqlite3_column_int64(st, 3);
        w.h.updated_ms = sqlite3_column_int64(st, 5);
        right = db_digest(w.h.digest, st, 4) && live_check_2(s, &w) == sqlite3_column_int64(st, 6);
    }
    sqlite3_finalize(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    if (!right)
        return SQLITE_OK;
    st = db_stmt(&s->w, ST_LIVE_RECHECK);
    sqlite3_bind_int64(st, 1, sid);
    sqlite3_bind_int64(st, 2, live_check(s, &w));
    return db_run(&s->w, ST_LIVE_RECHECK);
}

static int stay_foreign(struct sqlite_store *s, int64_t sid)
{
    struct whead w = {.exists = true, .dirty = true, .stay = true};
    int rc;

    if (!head_for_writer(s, sid, &w, &rc) || w.in_live)
        return rc;
    rc = whead_write(s, &w);
    return rc ? rc : pending_flush(s); /* before w is gone */
}

/* A session of the user's own that is older than proofs of origin gets one where it stands. A damaged one gets none. */
static int adopt_session(struct sqlite_store *s, int64_t sid)
{
    struct event last = {0};
    struct whead w = {.exists = true};
    sqlite3_stmt *st;
    int rc;

    if (!head_for_writer(s, sid, &w, &rc))
        return rc;
    last.seq = w.h.last_seq;
    memcpy(last.digest, w.h.digest, DIGEST_SIZE);
    origin_prove(&last.proof, &s->base.origin, str_from(w.h.id), &last);
    if (!last.proof.set)
        return SQLITE_OK;
    st = db_stmt(&s->w, ST_EVENT_PROVE);
    sqlite3_bind_int64(st, 1, w.last_pos);
    sqlite3_bind_blob(st, 2, last.proof.mac, sizeof last.proof.mac, SQLITE_STATIC);
    return db_run(&s->w, ST_EVENT_PROVE);
}

int upgrade_origin(struct sqlite_store *s)
{
    int rc = add_column(s, "SELECT count(*) FROM pragma_table_info('boots') WHERE name = 'lease'",
                        "ALTER TABLE boots ADD COLUMN lease INTEGER NOT NULL DEFAULT 0");

    rc = rc ? rc
            : add_column(s, "SELECT count(*) FROM pragma_table_info('boots') WHERE name = 'beat'",
                         "ALTER TABLE boots ADD COLUMN beat INTEGER NOT NULL DEFAULT 0");
    return rc || !s->adopt ? rc : for_each_sid(s, "SELECT sid FROM sessions WHERE NOT hidden", adopt_session);
}

int upgrade_columns(struct sqlite_store *s)
{
    return add_column(s, "SELECT count(*) FROM pragma_table_info('events') WHERE name = 'proof'",
                      "ALTER TABLE events ADD COLUMN proof BLOB");
}

int upgrade_live(struct sqlite_store *s)
{
    static const char caches[] = "DELETE FROM snapshots; UPDATE sessions SET summary = NULL, summary_seq = NULL,"
                                 " summary_check = NULL WHERE summary IS NOT NULL";
    /* With max() the other columns are those of the row that has it. */
    static const char open_runs[] =
        "SELECT s.sid FROM sessions s JOIN (SELECT sid, max(seq), kind FROM events WHERE kind IN ('run.started',"
        " 'run.waiting', 'run.resumed', 'run.interrupted', 'run.completed', 'run.failed', 'run.cancelled') GROUP BY sid) e"
        " USING (sid) WHERE e.kind NOT IN ('run.completed', 'run.failed', 'run.cancelled') AND NOT s.hidden"
        " AND NOT s.live ORDER BY s.sid";
    int rc = add_column(s, "SELECT count(*) FROM pragma_table_info('live') WHERE name = 'wake'",
                        "ALTER TABLE live ADD COLUMN wake INTEGER NOT NULL DEFAULT 0");

    rc = rc ? rc : for_each_sid(s, "SELECT sid FROM live", recheck_session);
    rc = rc ? rc : for_each_sid(s, open_runs, stay_foreign);
    return rc ? rc : sqlite3_exec(s->w.db, caches, NULL, NULL, NULL);
}

static int put_marks(sqlite3_stmt *put, int64_t sid, int64_t end, const unsigned char marks[CHECKPOINT_BITS_SIZE])
{
    int rc;

    sqlite3_bind_int64(put, 1, sid);
    sqlite3_bind_int64(put, 2, end);
    sqlite3_bind_blob(put, 3, marks, CHECKPOINT_BITS_SIZE, SQLITE_STATIC);
    rc = sqlite3_step(put);
    sqlite3_reset(put);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* `get` gives the checkpoint events in order: a block's come together. Those after the last full block meet no row. */
static int move_marks(sqlite3_stmt *get, sqlite3_stmt *put)
{
    unsigned char marks[CHECKPOINT_BITS_SIZE] = {0};
    int64_t sid = 0, end = 0;
    int rc, failed = SQLITE_OK;

    while ((rc = sqlite3_step(get)) == SQLITE_ROW && !failed) {
        int64_t seq = sqlite3_column_int64(get, 1), to = (seq + BLOCK_EVENTS - 1) / BLOCK_EVENTS * BLOCK_EVENTS;

        if (sid != sqlite3_column_int64(get, 0) || end != to) {
            failed = put_marks(put, sid, end, marks);
            memset(marks, 0, sizeof marks);
        }
        sid = sqlite3_column_int64(get, 0);
        end = to;
        checkpoint_bits_note(marks, seq, db_text(get, 2));
    }
    rc = rc == SQLITE_DONE || rc == SQLITE_ROW ? failed : rc;
    return rc ? rc : put_marks(put, sid, end, marks);
}

int upgrade_marks(struct sqlite_store *s)
{
    static const char of_all[] = "SELECT sid, seq, 'checkpoint' FROM events WHERE kind = 'checkpoint' UNION ALL"
                                 " SELECT sid, seq, 'checkpoint.deleted' FROM events WHERE kind = 'checkpoint.deleted'"
                                 " ORDER BY 1, 2";
    sqlite3_stmt *get = NULL, *put = NULL;
    int rc = add_column(s, "SELECT count(*) FROM pragma_table_info('blocks') WHERE name = 'marks'",
                        "ALTER TABLE blocks ADD COLUMN marks BLOB");

    rc = rc ? rc : sqlite3_exec(s->w.db, "UPDATE blocks SET marks = zeroblob(64)", NULL, NULL, NULL);
    rc = rc ? rc : sqlite3_prepare_v2(s->w.db, of_all, -1, &get, NULL);
    rc = rc ? rc
            : sqlite3_prepare_v2(s->w.db, "UPDATE blocks SET marks = ?3 WHERE sid = ?1 AND seq = ?2", -1, &put, NULL);
    rc = rc ? rc : move_marks(get, put);
    sqlite3_finalize(get);
    sqlite3_finalize(put);
    return rc ? rc
              : sqlite3_exec(s->w.db,
                             "DROP INDEX IF EXISTS checkpoint_index; DROP INDEX IF EXISTS checkpoint_deleted_index",
                             NULL, NULL, NULL);
}
