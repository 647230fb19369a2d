/* SPDX-License-Identifier: Apache-2.0 */
/* Looking after a store as a whole: erasing sessions, figures about it, checking its file, throwing caches away. */
#include <inttypes.h>

#include "base/json.h"
#include "store/sqlite_db.h"

static int erase_rows(struct sqlite_store *s, int64_t sid)
{
    static const enum stmt_id each[] = {ST_BLOCKS_DELETE, ST_SNAP_DELETE, ST_LIVE_DELETE, ST_SESSION_DELETE};
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof each / sizeof each[0] && !rc; i++) {
        sqlite3_bind_int64(db_stmt(&s->w, each[i]), 1, sid);
        rc = db_run(&s->w, each[i]);
    }
    return rc;
}

int position_floor(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_META_PUT);

    sqlite3_bind_text(st, 1, "position_floor", -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, s->last_pos);
    return db_run(&s->w, ST_META_PUT);
}

int session_erase(struct sqlite_store *s, struct whead *w)
{
    int rc = position_floor(s);

    for (int64_t pos = w->last_pos, prev; pos && !rc; pos = prev) {
        sqlite3_stmt *st = db_stmt(&s->w, ST_EVENT);
        struct str refs;

        sqlite3_bind_int64(st, 1, pos);
        rc = db_step(&s->w, st);
        if (rc != SQLITE_ROW || sqlite3_column_int64(st, 1) != w->sid) {
            sqlite3_reset(st);
            return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_CORRUPT : rc;
        }
        prev = sqlite3_column_int64(st, 3);
        refs = db_text(st, 8);
        rc = big_release(s, refs);
        sqlite3_reset(st);
        sqlite3_bind_int64(db_stmt(&s->w, ST_EVENT_DELETE), 1, pos);
        rc = rc ? rc : db_run(&s->w, ST_EVENT_DELETE);
    }
    return rc ? rc : erase_rows(s, w->sid);
}

static int64_t file_bytes(struct sqlite_store *s, const char *suffix)
{
    int64_t bytes = 0;

    return side_bytes(s, suffix, &bytes, NULL) || bytes == SIDE_ABSENT ? 0 : bytes;
}

enum tide_code sqlite_info(struct store *store, struct buf *out, struct tide_err *err)
{
    static const struct {
        const char *name, *sql;
    } figures[] = {
        {"schema_version", "PRAGMA user_version"},
        {"sessions", "SELECT count(*) FROM sessions WHERE NOT hidden"},
        {"events",
         "SELECT coalesce(sum(coalesce(l.last_seq, s.last_seq) - coalesce(s.parent_seq, 0)), 0) FROM sessions s"
         " LEFT JOIN live l USING (sid) WHERE NOT s.hidden"},
        {"live_sessions", "SELECT count(*) FROM live"},
        {"held_sessions", "SELECT count(*) FROM live WHERE boot != 0"},
        {"last_position", "SELECT max(coalesce((SELECT max(pos) FROM events), 0),"
                          " coalesce((SELECT value FROM meta WHERE key = 'position_floor'), 0))"},
        {"big_values", "SELECT count(*) FROM blobs"},
        {"snapshots", "SELECT count(*) FROM snapshots"},
        {"free_pages", "PRAGMA freelist_count"},
    };
    struct sqlite_store *s = sqlite_of(store);
    struct json_out o = json_out_to(out);
    struct conn *c = NULL;
    enum tide_code code = db_reader(s, &c, err);
    int rc = SQLITE_OK;

    if (code)
        return code;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("url"), str_from(store->url));
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        int64_t n = -1; /* not known */
        int one = db_query_int(c, figures[i].sql, &n);

        rc = (one & 0xff) == SQLITE_IOERR ? one : rc;
        json_out_kint(&o, str_from(figures[i].name), n);
    }
    if (rc)
        code = db_fail(s, c, rc, err, "read the figures");
    db_reader_rest(s, c);
    if (code)
        return code;
    json_out_kint(&o, STR("file_bytes"), file_bytes(s, ""));
    json_out_kint(&o, STR("wal_bytes"), file_bytes(s, "-wal"));
    json_out_kint(&o, STR("reserve_bytes"), file_bytes(s, "-reserve"));
    json_out_kstr(&o, STR("sync"), STR("WAL, synchronous=FULL (fdatasync before every acknowledgement)"));
    json_out_kbool(&o, STR("keyed"), store->key.len > 0);
    json_out_kstr(&o, STR("sqlite"), str_from(sqlite3_libversion()));
    json_out_end(&o, '}');
    return TIDE_OK;
}

/* SQLite's check of the file reports a failed read like damage: "unable to get the page. error code=266". */
static bool tells_of_read(const char *row)
{
    static const char words[] = "error code";
    const char *at = strstr(row, words);

    return at && (strtol(at + sizeof words, NULL, 10) & 0xff) == SQLITE_IOERR;
}

/* Every row the query gives is something that is wrong, one after the other with a NUL behind each. */
static enum tide_code find_problems(struct sqlite_store *s, struct conn *c, const char *sql, struct buf *ret,
                                    struct tide_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(c->db, sql, -1, &st, NULL);

    buf_clear(ret);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        const char *row;

        rc = sqlite3_step(st);
        row = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
        if (row && strcmp(row, "ok") != 0)
            buf_add(ret, row, strlen(row) + 1);
        if (row && tells_of_read(row))
            rc = SQLITE_IOERR_READ;
    }
    sqlite3_finalize(st);
    if (rc != SQLITE_DONE && (rc & 0xff) != SQLITE_CORRUPT)
        return db_fail(s, c, rc, err, "check");
    if (rc != SQLITE_DONE)
        buf_add(ret, sqlite3_errstr(rc), strlen(sqlite3_errstr(rc)) + 1);
    return TIDE_OK;
}

/* Every record of a session, also of one that is hidden: each proves itself. */
static int find_damaged_heads(struct sqlite_store *s, struct conn *c, struct buf *ret)
{
    sqlite3_stmt *st = db_stmt(c, ST_HEAD_SCAN);
    int rc;

    sqlite3_bind_int64(st, 1, INT64_MIN);
    while ((rc = db_step(c, st)) == SQLITE_ROW) {
        struct tide_err err;
        struct whead w;

        if (head_prove(s, st, &w, &err))
            buf_add(ret, err.msg, strlen(err.msg) + 1);
    }
    sqlite3_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Where SQL alone does not find it. */
static enum tide_code find_more(struct sqlite_store *s, struct conn *c,
                                int (*find)(struct sqlite_store *, struct conn *, struct buf *), struct buf *ret,
                                struct tide_err *err)
{
    int rc;

    buf_clear(ret);
    rc = find(s, c, ret);
    return !rc || ((rc & 0xff) == SQLITE_CORRUPT && ret->len) ? TIDE_OK : db_fail(s, c, rc, err, "check");
}

struct law {
    const char *where, *sql;                                         /* each row is a problem */
    int (*find)(struct sqlite_store *, struct conn *, struct buf *); /* instead of SQL */
    bool can_rebuild;                                                /* it is of what a check can make anew */
};

static enum tide_code keep_law(struct sqlite_store *s, struct store_check *check, const struct law *law,
                               struct tide_err *err)
{
    AUTO(buf_done) struct buf rows = BUF_INIT(SIZE_MAX / 4);
    struct conn *c = NULL;
    enum tide_code code;
    int tries = 0;

    do {
        code = db_reader(s, &c, err);
        if (code)
            continue;
        code = law->find ? find_more(s, c, law->find, &rows, err) : find_problems(s, c, law->sql, &rows, err);
        db_reader_done(s, c);
    } while (store_retry(s->base.env, code, &tries));
    for (size_t at = 0; !code && at < rows.len; at += strlen(rows.ptr + at) + 1)
        store_check_name(check, law->where, TIDE_CORRUPT, rows.ptr + at);
    check->can_rebuild |= !code && rows.len && law->can_rebuild;
    return code;
}

/* The bit of event e in the marks of block b; `at`: the first of its bitmap. */
#define MARK(at)                                                                                                       \
    "(instr('0123456789ABCDEF', substr(hex(b.marks), " at " / 4 + (e.seq - 1) % 256 / 4 + 1, 1)) - 1"                  \
    " >> (3 - (e.seq - 1) % 4) & 1)"

enum tide_code sqlite_check(struct store *store, struct store_check *check, struct tide_err *err)
{
    static const struct law laws[] = {
        {"the file", .find = shape_problems, .can_rebuild = true},
        {"sessions", .find = find_damaged_heads},
        {"big values", .find = big_miscounted, .can_rebuild = true},
        {"the file", .sql = "PRAGMA integrity_check(20)"},
        {"events",
         .sql = "SELECT 'event at position ' || e.pos || ' belongs to no session' FROM events e LEFT JOIN sessions s"
                " USING (sid) WHERE s.sid IS NULL LIMIT 20"},
        {"events", .sql =
                       "SELECT 'session ' || h.id || ' should have ' || h.n ||"
                       " iif(h.n = 1, ' event', ' events') || ' and has ' || count(e.pos) FROM"
                       " (SELECT s.sid, s.id, coalesce(l.last_seq, s.last_seq) - coalesce(s.parent_seq, 0) AS n"
                       " FROM sessions s LEFT JOIN live l USING (sid)) h LEFT JOIN events e USING (sid) GROUP BY h.sid"
                       " HAVING count(e.pos) != h.n LIMIT 20"},
        {"live", .sql = "SELECT 'a live session that is not there (' || l.sid || ')' FROM live l LEFT JOIN sessions s"
                        " USING (sid) WHERE s.sid IS NULL LIMIT 20"},
        {"meta",
         .sql = "SELECT 'its row ' || quote(key) || ' is damaged' FROM meta WHERE key IN ('closed', 'position_floor')"
                " AND (typeof(value) != 'integer' OR value >= 1 << 62)"},
        {"blocks",
         .sql = "SELECT 'session ' || s.id || ': the marks of its checkpoints up to seq ' || b.seq || ' are wrong'"
                " FROM events e CROSS JOIN blocks b ON b.sid = e.sid"
                " AND b.seq = (e.seq + 255) / 256 * 256 JOIN sessions s ON s.sid = b.sid"
                " WHERE length(CAST(b.marks AS BLOB)) = 64 AND (" MARK(
                    "0") " != (e.kind = 'checkpoint')"
                         " OR " MARK("256") " != (e.kind = 'checkpoint.deleted')) GROUP BY b.sid, b.seq LIMIT 20",
         .can_rebuild = true},
        {"forks",
         .sql =
             "SELECT 'session ' || s.id || ' is a fork of one that is not there' FROM sessions s LEFT JOIN sessions p"
             " ON p.sid = s.parent WHERE s.parent IS NOT NULL AND p.sid IS NULL LIMIT 20"},
    };
    struct sqlite_store *s = sqlite_of(store);
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; !code && i < sizeof laws / sizeof laws[0]; i++)
        code = keep_law(s, check, &laws[i], err);
    return code;
}

/* The last first: the way back from each is short then. Damage is the check's to name. */
static int make_blocks(struct sqlite_store *s, int64_t sid)
{
    struct whead w = {.exists = true};
    int rc;
    bool right = head_for_writer(s, sid, &w, &rc);

    for (int64_t end = w.h.last_seq / BLOCK_EVENTS * BLOCK_EVENTS; right && !rc && end >= w.h.first_seq;
         end -= BLOCK_EVENTS)
        rc = block_make(&s->w, &w, end);
    return (rc & 0xff) == SQLITE_CORRUPT ? SQLITE_OK : rc;
}

enum tide_code sqlite_rebuild(struct store *store, struct tide_err *err)
{
    static const char drop[] = "DELETE FROM blocks; DELETE FROM snapshots; UPDATE sessions SET summary = NULL,"
                               " summary_seq = NULL; REINDEX;";
    struct sqlite_store *s = sqlite_of(store);
    enum tide_code code = db_ready(s, err);
    int64_t pos = 0;
    int rc;

    code = code ? code : db_lock(s, err);
    if (code)
        return code;
    rc = db_run(&s->w, ST_BEGIN_WRITE);
    rc = rc ? rc : shape_rebuild(s);
    rc = rc ? rc : sqlite3_exec(s->w.db, drop, NULL, NULL, NULL);
    rc = rc ? rc : big_recount(&s->w);
    rc = rc ? rc : for_each_sid(s, "SELECT sid FROM sessions", make_blocks);
    if (rc)
        code = db_fail(s, &s->w, rc, err, "drop the caches");
    code = code ? code : mark_begin_still(s, false, &pos, err);
    if (!code && (rc = db_run(&s->w, ST_COMMIT)) != SQLITE_OK) {
        code = db_fail(s, &s->w, rc, err, "drop the caches");
        s->broken = true;
    }
    if (code) {
        db_run(&s->w, ST_ROLLBACK);
    } else {
        mark_end(s, pos);
    }
    heads_forget(s);
    queue_unlock(s);
    return code;
}

enum tide_code sqlite_compact(struct store *store, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    enum tide_code code = db_ready(s, err);

    code = code ? code : db_lock(s, err);
    if (code)
        return code;
    code = db_compact(s, err);
    s->moved = true;
    queue_unlock(s);
    return code;
}

/* Of a connection that stays: SQLite's number says whether others have committed since that connection looked. */
enum tide_code sqlite_change(struct store *store, int64_t *ret_version, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    enum tide_code code = TIDE_OK;
    sqlite3_stmt *st;
    int rc;

    pthread_mutex_lock(&s->look_mu);
    if (!s->look.db && (code = path_still_there(s, err)) == TIDE_OK && (code = db_connect(s, &s->look, err)) == TIDE_OK)
        s->looks++;
    st = code ? NULL : db_stmt(&s->look, ST_DATA_VERSION);
    rc = code ? SQLITE_OK : db_step(&s->look, st);
    if (rc == SQLITE_ROW)
        *ret_version = (s->looks << 32) + sqlite3_column_int64(st, 0);
    else if (!code)
        code = db_fail(s, &s->look, rc, err, "look for changes");
    sqlite3_reset(st);
    pthread_mutex_unlock(&s->look_mu);
    return code;
}
