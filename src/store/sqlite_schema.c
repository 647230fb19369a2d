/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables, in numbered migrations. An older file is brought up in one transaction; a newer one is refused. Version 1
 * holds the truth and its caches, version 2 the views for people, version 3 those who wait among the live, version 4 the marks of
 * checkpoints in `blocks`, version 5 how long leases are and proofs of origin (sqlite_upgrade.c), and the word of its closing
 * (sqlite_acknowledged.c), version 6 the views of now and the index by which they find
 * descriptions, version 7 states that do not repeat the values of the memory, and keyed checks of big values. Each step may run again on a file that has it.
 */
#include "store/sqlite_db.h"

#define VERSION_KNOWS 5 /* since then a store says where it was closed, and whose its sessions are */

#define DESCRIBES "kind IN ('session.created','session.updated')"
#define IS_MESSAGE "e.kind IN ('message.user','message.assistant','message.tool')"
#define DESCRIPTION_INDEX "CREATE INDEX IF NOT EXISTS description_index ON events(sid, seq) WHERE " DESCRIBES ";"

/* Columns that came later stand where ALTER TABLE puts them: sqlite_shape.c compares the text. */
const char schema_tables[] =
    /* The log of all sessions in order of arrival. prev: the event before it in its session, 0 for the first. */
    "CREATE TABLE IF NOT EXISTS events(pos INTEGER PRIMARY KEY, sid INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " prev INTEGER NOT NULL, epoch INTEGER NOT NULL, ts INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,"
    " refs BLOB, digest BLOB NOT NULL, tag TEXT, proof BLOB);" /* tag: a checkpoint's id, to find it by */
    "CREATE INDEX IF NOT EXISTS tag_index ON events(tag) WHERE tag IS NOT NULL;"
    /* Rare kinds that the views look up. */
    DESCRIPTION_INDEX
    "CREATE INDEX IF NOT EXISTS rollback_index ON events(sid, seq) WHERE kind = 'session.rolled_back';"
    /* One row per session; where it stands when it is not live. */
    "CREATE TABLE IF NOT EXISTS sessions(sid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, created INTEGER NOT NULL,"
    " parent INTEGER, parent_seq INTEGER, base BLOB, hidden INTEGER NOT NULL, live INTEGER NOT NULL,"
    " row_check INTEGER NOT NULL, epoch INTEGER NOT NULL, last_seq INTEGER NOT NULL, last_pos INTEGER NOT NULL,"
    " digest BLOB NOT NULL, updated INTEGER NOT NULL, summary TEXT, summary_seq INTEGER, summary_check INTEGER);"
    /* Who is listed, a second time: a row that a damaged page has lost is missed. */
    "CREATE INDEX IF NOT EXISTS listed_index ON sessions(hidden);"
    "CREATE INDEX IF NOT EXISTS fork_index ON sessions(parent) WHERE parent IS NOT NULL;"
    /* Sessions with a lease or an open run: few rows, close together, the only ones that change with every append. */
    "CREATE TABLE IF NOT EXISTS live(sid INTEGER PRIMARY KEY, boot INTEGER NOT NULL, epoch INTEGER NOT NULL,"
    " last_seq INTEGER NOT NULL, last_pos INTEGER NOT NULL, digest BLOB NOT NULL, updated INTEGER NOT NULL,"
    " row_check INTEGER NOT NULL, wake INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS boots(boot INTEGER PRIMARY KEY AUTOINCREMENT, boot_id TEXT NOT NULL, kernel_boot TEXT"
    " NOT NULL, pid_ns INTEGER NOT NULL, pid INTEGER NOT NULL, start_time INTEGER NOT NULL, expires INTEGER NOT NULL,"
    " lease INTEGER NOT NULL DEFAULT 0, beat INTEGER NOT NULL DEFAULT 0);"
    /* Caches: positions of every 256 events of a session; states. */
    "CREATE TABLE IF NOT EXISTS blocks(sid INTEGER NOT NULL, seq INTEGER NOT NULL, positions BLOB NOT NULL,"
    " marks BLOB, PRIMARY KEY(sid, seq)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS snapshots(id INTEGER PRIMARY KEY, sid INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " at BLOB NOT NULL, row_check BLOB NOT NULL, state BLOB NOT NULL);"
    "CREATE UNIQUE INDEX IF NOT EXISTS snapshot_index ON snapshots(sid, seq);"
    /* Big values by content. */
    "CREATE TABLE IF NOT EXISTS blobs(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, refs INTEGER NOT NULL,"
    " value BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;";

const char schema_views[] =
    "DROP VIEW IF EXISTS sessions_v; DROP VIEW IF EXISTS messages; DROP VIEW IF EXISTS token_usage;"
    "DROP VIEW IF EXISTS errors; DROP VIEW IF EXISTS checkpoints; DROP VIEW IF EXISTS runs;"
    "DROP VIEW IF EXISTS message_rows; DROP VIEW IF EXISTS descriptions; DROP VIEW IF EXISTS spans;"
    "DROP VIEW IF EXISTS heads;"
    "CREATE VIEW heads AS SELECT s.sid, s.id AS session_id, s.created, s.parent, s.parent_seq,"
    " coalesce(s.parent_seq, 0) + 1 AS first_seq, coalesce(l.last_seq, s.last_seq) AS last_seq,"
    " coalesce(l.updated, s.updated) AS updated, l.boot FROM sessions s LEFT JOIN live l USING (sid) WHERE NOT s.hidden;"
    /*
     * The parts of logs that the content of each session is made of, newest first: from its end back to the newest rollback,
     * then from where that one went back to; from the first event of a fork to the parent's log.
     */
    "CREATE VIEW spans AS WITH RECURSIVE part(sid, log_sid, hi) AS (SELECT sid, sid, last_seq FROM heads"
    "  UNION ALL SELECT p.sid, iif(b.pos IS NULL, h.parent, p.log_sid), iif(b.pos IS NULL, min(p.hi, h.parent_seq),"
    "    iif(b.body ->> '$.to_seq' BETWEEN 0 AND b.seq - 1, b.body ->> '$.to_seq', b.seq - 1))"
    "  FROM part p JOIN heads h ON h.sid = p.log_sid LEFT JOIN events b ON b.sid = p.log_sid AND"
    "    b.kind = 'session.rolled_back' AND b.seq = (SELECT max(r.seq) FROM events r WHERE r.sid = p.log_sid AND"
    "      r.kind = 'session.rolled_back' AND r.seq <= p.hi)"
    "  WHERE b.pos IS NOT NULL OR h.parent IS NOT NULL)"
    " SELECT p.sid, p.log_sid, coalesce((SELECT max(r.seq) FROM events r WHERE r.sid = p.log_sid AND"
    "   r.kind = 'session.rolled_back' AND r.seq <= p.hi), h.first_seq - 1) + 1 AS lo, p.hi"
    " FROM part p JOIN heads h ON h.sid = p.log_sid;"
    /* What a session says of itself: the latest value of each member, of a fork those of its parent, too. */
    "CREATE VIEW descriptions AS WITH RECURSIVE line(sid, log_sid, hi) AS (SELECT sid, sid, last_seq FROM heads"
    "  UNION ALL SELECT l.sid, h.parent, h.parent_seq FROM line l JOIN heads h ON h.sid = l.log_sid"
    "  WHERE h.parent IS NOT NULL), member(sid, key, value, seq) AS (SELECT l.sid, j.key, j.value, max(e.seq)"
    "  FROM line l JOIN events e ON e.sid = l.log_sid AND e.seq <= l.hi AND e." DESCRIBES ", json_each(e.body) j"
    "  GROUP BY l.sid, j.key)"
    " SELECT sid, max(value) FILTER (WHERE key = 'agent') AS agent, coalesce(max(value) FILTER (WHERE key = 'agent_id'),"
    "   max(value) FILTER (WHERE key = 'agent')) AS agent_id, max(value) FILTER (WHERE key = 'task_id') AS task_id,"
    "  max(value) FILTER (WHERE key = 'title') AS title, max(value) FILTER (WHERE key = 'working_dir') AS working_dir,"
    "  max(value) FILTER (WHERE key = 'provider') AS provider FROM member GROUP BY sid;"
    "CREATE VIEW sessions_v AS SELECT h.session_id, d.agent, d.agent_id, d.task_id, d.title, d.working_dir,"
    " d.provider ->> '$.type' AS provider, d.provider ->> '$.model' AS model, h.created / 1000 AS created_at,"
    " h.updated / 1000 AS updated_at, h.last_seq, p.id AS parent_id, h.parent_seq, coalesce(h.boot, 0) != 0 AS is_held"
    " FROM heads h LEFT JOIN descriptions d USING (sid) LEFT JOIN sessions p ON p.sid = h.parent;"
    /* Which messages a session has. One that a fork shares with its parent has an id of its own, before those of the fork. */
    "CREATE VIEW message_rows AS SELECT e.sid, e.pos AS id, e.pos, e.seq, NOT EXISTS (SELECT 1 FROM spans s"
    "   WHERE s.sid = e.sid AND s.log_sid = e.sid AND e.seq BETWEEN s.lo AND s.hi) AS deleted, 0 AS inherited"
    " FROM events e WHERE " IS_MESSAGE
    " UNION ALL SELECT s.sid, e.pos - (s.sid << 40), e.pos, e.seq, 0, 1 FROM events e CROSS JOIN spans s"
    "  ON s.log_sid = e.sid AND e.seq BETWEEN s.lo AND s.hi WHERE s.sid != e.sid AND " IS_MESSAGE ";"
    "CREATE VIEW messages AS SELECT m.id, h.session_id, d.agent_id, e.body ->> '$.turn' AS turn,"
    " substr(e.kind, 9) AS role, CASE WHEN e.refs IS NOT NULL AND e.body ->> '$.content.big_value' IS NOT NULL THEN"
    "   (SELECT json_extract('[' || CAST(b.value AS TEXT) || ']', '$[0]') FROM blobs b"
    "    WHERE lower(hex(b.digest)) = e.body ->> '$.content.big_value')"
    "   ELSE e.body ->> '$.content' END AS content, e.body ->> '$.tool_call_id' AS tool_call_id,"
    " e.body ->> '$.tool_name' AS tool_name, e.body -> '$.tool_calls' AS tool_args, m.seq, e.ts / 1000 AS created_at,"
    " m.deleted, m.inherited FROM message_rows m JOIN events e ON e.pos = m.pos JOIN heads h ON h.sid = m.sid"
    " LEFT JOIN descriptions d ON d.sid = m.sid;"
    "CREATE VIEW token_usage AS SELECT e.pos AS id, h.session_id, d.agent_id, e.body ->> '$.turn' AS turn,"
    " e.body ->> '$.input_tokens' AS input_tokens, e.body ->> '$.output_tokens' AS output_tokens,"
    " e.body ->> '$.cached_tokens' AS cached_tokens, e.body ->> '$.cost' AS cost, e.seq, e.ts / 1000 AS created_at"
    " FROM events e JOIN heads h USING (sid) LEFT JOIN descriptions d USING (sid) WHERE e.kind = 'llm.usage';"
    "CREATE VIEW errors AS SELECT e.pos AS id, h.session_id, d.agent_id, e.body ->> '$.turn' AS turn,"
    " coalesce(e.body ->> '$.context', e.body ->> '$.tool', e.body ->> '$.node', e.kind) AS context,"
    " coalesce(e.body ->> '$.message', e.body ->> '$.error.message', e.body ->> '$.error', e.body ->> '$.reason')"
    "   AS message, coalesce(e.body ->> '$.attempt', 0) AS attempt, e.seq, e.ts / 1000 AS created_at"
    " FROM events e JOIN heads h USING (sid) LEFT JOIN descriptions d USING (sid)"
    " WHERE e.kind IN ('llm.error','tool.failed','node.failed','run.failed')"
    "   AND e.body ->> '$.recorded' IS NULL;" /* the end of a run by an error that has a row of its own */
    /*
     * Every checkpoint has a tag, which has an index; those that were deleted are gathered once. The last message before each is
     * found in one pass over messages and checkpoints in order: of one that still counts among what still counts.
     */
    "CREATE VIEW checkpoints AS WITH gone(sid, id) AS MATERIALIZED (SELECT d.sid, j.value FROM events d,"
    " json_each(d.body, '$.checkpoint_ids') j WHERE d.kind = 'checkpoint.deleted'),"
    " mark(sid, pos, seq, cut) AS MATERIALIZED (SELECT e.sid, e.pos, e.seq, NOT EXISTS (SELECT 1 FROM spans s"
    "  WHERE s.sid = e.sid AND s.log_sid = e.sid AND e.seq BETWEEN s.lo AND s.hi) FROM events e"
    "  WHERE e.tag IS NOT NULL AND e.kind = 'checkpoint'),"
    " row(sid, part, seq, message, pos, cut) AS (SELECT sid, 0, seq, id, NULL, 0 FROM message_rows WHERE NOT deleted"
    "  UNION ALL SELECT sid, 1, seq, id, NULL, 0 FROM message_rows UNION ALL SELECT sid, cut, seq, NULL, pos, cut FROM mark),"
    " last(sid, pos, cut, message) AS (SELECT sid, pos, cut, max(message) OVER (PARTITION BY sid, part ORDER BY seq) FROM row)"
    " SELECT e.pos AS id, h.session_id, d.agent_id, e.body ->> '$.checkpoint_id' AS checkpoint_id,"
    " e.body ->> '$.type' AS type, e.body ->> '$.turn' AS turn, e.body ->> '$.node' AS node,"
    " e.body ->> '$.next_node' AS next_node, e.body ->> '$.is_clean' AS is_clean,"
    " e.body ->> '$.can_resume_from' AS can_resume_from, e.body ->> '$.description' AS description,"
    " coalesce(k.message, 0) AS last_msg_id, e.seq, e.ts / 1000 AS created_at,"
    " k.cut OR EXISTS (SELECT 1 FROM gone g WHERE g.sid = e.sid AND g.id = e.tag) AS deleted"
    " FROM last k JOIN events e ON e.pos = k.pos JOIN heads h ON h.sid = k.sid LEFT JOIN descriptions d ON d.sid = k.sid"
    " WHERE k.pos IS NOT NULL;"
    "CREATE VIEW runs AS SELECT e.pos AS id, h.session_id, e.body ->> '$.run_id' AS run_id,"
    " e.body ->> '$.boot_id' AS boot_id, e.ts / 1000 AS started_at, t.ts / 1000 AS ended_at, substr(t.kind, 5) AS outcome,"
    " t.body ->> '$.reason' AS reason, t.body ->> '$.error.message' AS error, e.seq FROM events e JOIN heads h USING (sid)"
    " LEFT JOIN events t ON t.sid = e.sid AND t.seq > e.seq AND t.body ->> '$.run_id' = e.body ->> '$.run_id'"
    "   AND t.kind IN ('run.completed','run.failed','run.cancelled','run.interrupted')"
    " WHERE e.kind = 'run.started';";

static int make_views(struct sqlite_store *s)
{
    return sqlite3_exec(s->w.db, schema_views, NULL, NULL, NULL);
}

/* Views keep nothing: only the latest are made. */
static const struct {
    const char *sql;
    int (*then)(struct sqlite_store *s);
} migrations[SQLITE_SCHEMA_VERSION] = {{schema_tables, NULL},
                                       {"", NULL},
                                       {"", upgrade_live},
                                       {"", upgrade_marks},
                                       {"", upgrade_origin},
                                       {"DROP INDEX IF EXISTS created_index;" DESCRIPTION_INDEX, NULL},
                                       {"DELETE FROM snapshots", make_views}};

/* One number; *rc keeps the first failure. */
static int64_t pragma_int(struct sqlite_store *s, const char *sql, int *rc)
{
    sqlite3_stmt *st = NULL;
    int64_t v = 0;

    if (!*rc)
        *rc = sqlite3_prepare_v2(s->w.db, sql, -1, &st, NULL);
    if (!*rc)
        *rc = sqlite3_step(st) == SQLITE_ROW ? SQLITE_OK : sqlite3_extended_errcode(s->w.db);
    if (!*rc)
        v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return v;
}

static int apply_upgrades(struct sqlite_store *s, int64_t from)
{
    char text[64];
    int rc = from ? upgrade_columns(s) : SQLITE_OK; /* the steps read heads with the statements of now */

    for (int64_t v = from; v < SQLITE_SCHEMA_VERSION && rc == SQLITE_OK; v++) {
        rc = sqlite3_exec(s->w.db, migrations[v].sql, NULL, NULL, NULL);
        if (!rc && migrations[v].then)
            rc = migrations[v].then(s);
    }
    if (from && from < VERSION_KNOWS)
        s->base.origins = s->adopt ? ORIGIN_ADOPTED : ORIGIN_OLDER;
    snprintf(text, sizeof text, "PRAGMA application_id=%d; PRAGMA user_version=%d", SQLITE_APP_ID,
             SQLITE_SCHEMA_VERSION);
    return rc == SQLITE_OK ? sqlite3_exec(s->w.db, text, NULL, NULL, NULL) : rc;
}

/* Keyed digests: the store remembers a check of its key, so that a wrong or missing one is named. */
static enum tide_code check_key(struct sqlite_store *s, bool fresh, struct tide_err *err)
{
    unsigned char want[DIGEST_SIZE];
    struct digest_state d;
    sqlite3_stmt *st;
    bool stored, same;
    int rc;

    digest_begin(&d, &s->base.key);
    digest_add_str(&d, STR("tidemark key check"));
    digest_end(&d, want);
    if (fresh && s->base.key.len) {
        st = db_stmt(&s->w, ST_META_PUT);
        sqlite3_bind_text(st, 1, "key_check", -1, SQLITE_STATIC);
        sqlite3_bind_blob(st, 2, want, DIGEST_SIZE, SQLITE_STATIC);
        return db_run(&s->w, ST_META_PUT) ? db_fail(s, &s->w, 0, err, "store the key check") : TIDE_OK;
    }
    st = db_stmt(&s->w, ST_META_GET);
    sqlite3_bind_text(st, 1, "key_check", -1, SQLITE_STATIC);
    rc = db_step(&s->w, st);
    stored = rc == SQLITE_ROW;
    same = stored && str_eq(db_text(st, 0), (struct str){(char *)want, DIGEST_SIZE});
    sqlite3_reset(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return db_fail(s, &s->w, rc, err, "read the key check");
    if (stored && !s->base.key.len)
        return tide_fail(err, TIDE_WRONG_KEY, "the store is keyed and no key was given");
    if (stored != (s->base.key.len > 0) || (stored && !same))
        return tide_fail(err, TIDE_WRONG_KEY,
                         stored ? "the key is not the one this store was made with"
                                : "a key was given, but this store was made without one");
    return TIDE_OK;
}

static enum tide_code inspect_schema(struct sqlite_store *s, bool create, bool *ret_empty, int64_t *ret_version,
                                     struct tide_err *err)
{
    int rc = SQLITE_OK;
    int64_t app = pragma_int(s, "PRAGMA application_id", &rc), version = pragma_int(s, "PRAGMA user_version", &rc);
    bool empty = app == 0 && version == 0 && pragma_int(s, "SELECT count(*) FROM sqlite_schema", &rc) == 0;

    if (rc)
        return db_fail(s, &s->w, rc, err, "read the store's version");
    if (!empty && app != SQLITE_APP_ID)
        return tide_fail(err, TIDE_NOT_A_STORE, "an SQLite file, but not a Tidemark store");
    if (version > SQLITE_SCHEMA_VERSION)
        return tide_fail(err, TIDE_TOO_NEW, "the store has version %lld, this program knows up to %d",
                         (long long)version, SQLITE_SCHEMA_VERSION);
    if (version < 0 || (version == 0 && !empty))
        return tide_fail(err, TIDE_CORRUPT, "the store's version is damaged (%lld)", (long long)version);
    if (empty && !create) {
        tide_fail(err, TIDE_NOT_A_STORE, "the file is an empty database: perhaps its creation was interrupted");
        return tide_hint(err, TIDE_ACTION_INIT_STORE, "");
    }
    if (version < SQLITE_SCHEMA_VERSION && s->base.read_only) {
        tide_fail(err, TIDE_READ_ONLY, "the store has the older version %lld", (long long)version);
        return tide_hint_with(err, TIDE_ACTION_INIT_STORE, "", "\"upgrade\":true");
    }
    *ret_empty = empty;
    *ret_version = version;
    return TIDE_OK;
}

static enum tide_code upgrade_schema(struct sqlite_store *s, bool create, bool *ret_made, struct tide_err *err)
{
    bool empty = false;
    int64_t version = 0;
    enum tide_code code = inspect_schema(s, create, &empty, &version, err);
    int rc;

    if (code)
        return code;
    *ret_made = empty;
    if (!empty && version < VERSION_KNOWS && mark_missing(s))
        store_notice(&s->base,
                     "%s-mark was missing; a store of version %lld does not record whether it was closed, so it is "
                     "accepted as it is",
                     s->path, (long long)version);
    rc = apply_upgrades(s, version);
    code = rc ? db_fail(s, &s->w, rc, err, "upgrade the store's tables") : check_key(s, empty, err);
    return code ? code : shape_check(s, false, err);
}

/* Under the lock of all writers: another process may have been faster. */
static enum tide_code upgrade_locked(struct sqlite_store *s, bool create, struct tide_err *err)
{
    enum tide_code code;
    int64_t pos = 0;
    bool made = false;
    int rc = db_run(&s->w, ST_BEGIN_WRITE);

    if (rc)
        return db_fail(s, &s->w, rc, err, "begin");
    code = upgrade_schema(s, create, &made, err);
    code = code ? code : mark_begin_still(s, made, &pos, err);
    if (!code && (rc = db_run(&s->w, ST_COMMIT)) != SQLITE_OK)
        code = db_fail(s, &s->w, rc, err, "store the tables");
    if (code) {
        db_run(&s->w, ST_ROLLBACK);
        return code;
    }
    mark_end(s, pos);
    (void)!db_compact(s, NULL); /* our id belongs into the file's header; the side file has it until then */
    return TIDE_OK;
}

/* *ret_version is 0 of a store that is yet to be made. */
static enum tide_code look_at_schema(struct sqlite_store *s, bool create, int64_t *ret_version, struct tide_err *err)
{
    bool empty = false;
    enum tide_code code = inspect_schema(s, create, &empty, ret_version, err);

    if (!code && !empty)
        code = shape_check(s, *ret_version < SQLITE_SCHEMA_VERSION, err);
    return code || empty ? code : check_key(s, false, err);
}

enum tide_code schema_look(struct sqlite_store *s, bool create, struct tide_err *err)
{
    int64_t version = 0;
    enum tide_code code = look_at_schema(s, create, &version, err);

    return code || !version ? code : mark_allows(s, version < VERSION_KNOWS, err);
}

enum tide_code schema_migrate(struct sqlite_store *s, bool create, struct tide_err *err)
{
    int64_t version = 0;
    enum tide_code code;
    int rc = db_run(&s->w, ST_BEGIN);

    if (rc)
        return db_fail(s, &s->w, rc, err, "begin");
    code = look_at_schema(s, create, &version, err);
    if (!code && version && version < SQLITE_SCHEMA_VERSION)
        code = mark_allows(s, version < VERSION_KNOWS,
                           err); /* before it is brought up to date: what is refused stays as it is */
    db_run(&s->w, ST_ROLLBACK);
    if (code || version == SQLITE_SCHEMA_VERSION)
        return code;
    code = db_lock(s, err);
    if (code)
        return code;
    code = upgrade_locked(s, create, err);
    queue_unlock(s);
    return code;
}
