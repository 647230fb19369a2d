/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a session stands: its row of `sessions`, overruled by `live` while it has a row there. Rows prove themselves by a
 * check; before a session is said not to be there, index and records are looked through for damage.
 */
#include <inttypes.h>

#include "store/batch_rules.h"
#include "store/sqlite_db.h"

bool db_digest(unsigned char out[DIGEST_SIZE], sqlite3_stmt *st, int column)
{
    struct str d = db_text(st, column);

    if (d.len != DIGEST_SIZE)
        return false;
    memcpy(out, d.ptr, DIGEST_SIZE);
    return true;
}

void db_proof(struct origin_proof *out, sqlite3_stmt *st, int column)
{
    struct str mac = db_text(st, column);

    out->set = mac.len == sizeof out->mac;
    if (out->set)
        memcpy(out->mac, mac.ptr, sizeof out->mac);
}

/* Where it stands by its own row, or, while it is live, by its row in `live`; each row proves itself. */
static bool head_place(struct sqlite_store *s, sqlite3_stmt *st, struct head *h)
{
    bool live = sqlite3_column_int64(st, 21) != 0;

    h->epoch = sqlite3_column_int64(st, 16);
    h->last_seq = sqlite3_column_int64(st, 17);
    h->last_pos = sqlite3_column_int64(st, 18);
    h->updated_ms = sqlite3_column_int64(st, 20);
    if (!db_digest(h->digest, st, 19) || live != (sqlite3_column_int64(st, HEAD_IN_LIVE) != 0) ||
        session_check(s, h, sqlite3_column_int64(st, 6) != 0, live) != sqlite3_column_int64(st, 7))
        return false;
    if (!live)
        return true;
    h->epoch = sqlite3_column_int64(st, 8);
    h->last_seq = sqlite3_column_int64(st, 9);
    h->last_pos = sqlite3_column_int64(st, 10);
    h->updated_ms = sqlite3_column_int64(st, 12);
    return db_digest(h->digest, st, 11) &&
           live_check(s, h, sqlite3_column_int64(st, HEAD_BOOT), sqlite3_column_int64(st, HEAD_WAKE)) ==
               sqlite3_column_int64(st, 23);
}

static enum tide_code head_columns(struct sqlite_store *s, sqlite3_stmt *st, struct head *h, struct tide_err *err)
{
    struct str id = db_text(st, 1), parent = db_text(st, 14);

    if (!str_is_id(id) || (parent.len && !str_is_id(parent)))
        return tide_fail(err, TIDE_CORRUPT, "a session's record in '%s' is damaged (row %" PRId64 ")", s->path,
                         (int64_t)sqlite3_column_int64(st, 0));
    memcpy(h->id, id.ptr, id.len);
    memcpy(h->parent_id, parent.ptr, parent.len);
    h->sid = sqlite3_column_int64(st, 0);
    h->created_ms = sqlite3_column_int64(st, 2);
    h->parent_sid = sqlite3_column_int64(st, 3);
    h->parent_seq = sqlite3_column_int64(st, 4);
    if (h->parent_sid)
        db_digest(h->first_before, st, 5);
    h->first_seq = h->parent_seq + 1;
    if (!head_place(s, st, h) || h->last_seq < h->first_seq - 1)
        return tide_fail(err, TIDE_CORRUPT, "the record of session '%s' in '%s' is damaged", h->id, s->path);
    return TIDE_OK;
}

enum tide_code head_prove(struct sqlite_store *s, sqlite3_stmt *st, struct head *ret, int64_t *ret_boot,
                          bool *ret_hidden, struct tide_err *err)
{
    enum tide_code code;

    memset(ret, 0, sizeof *ret);
    code = head_columns(s, st, ret, err);
    if (code)
        return code;
    db_proof(&ret->proof, st, HEAD_PROOF);
    *ret_boot = sqlite3_column_int64(st, HEAD_BOOT);
    *ret_hidden = sqlite3_column_int64(st, 6) != 0;
    ret->held = *ret_boot != 0;
    return TIDE_OK;
}

enum tide_code head_from_row(struct sqlite_store *s, struct conn *c, sqlite3_stmt *st, struct head *ret,
                             int64_t *ret_boot, bool *ret_hidden, struct tide_err *err)
{
    enum tide_code code = head_prove(s, st, ret, ret_boot, ret_hidden, err);
    int rc;

    if (code || !ret->held || c == &s->w) /* the writer looks the holder up when it matters */
        return code;
    rc = lease_holder(s, c, *ret_boot, &ret->holder_alive, ret->holder);
    if (*ret_boot == s->boot && orphan_is(&s->orphans, ret->id, ret->epoch))
        ret->holder_alive = false; /* ours, and no handle of ours knows of it */
    return rc ? db_fail(s, c, rc, err, "read who holds the session") : TIDE_OK;
}

/*
 * Not found by the index: make sure that neither the index nor a record is damaged before saying that there is no such
 * session.
 */
static enum tide_code scan_for(struct sqlite_store *s, struct conn *c, struct str id, struct head *ret,
                               bool *ret_hidden, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_HEAD_SCAN);
    enum tide_code code = TIDE_NOT_FOUND;
    int64_t boot;
    int rc;

    sqlite3_bind_int64(st, 1, -1);
    while ((rc = db_step(c, st)) == SQLITE_ROW) {
        code = head_from_row(s, c, st, ret, &boot, ret_hidden, err);
        if (code || str_eq(str_from(ret->id), id))
            break;
        code = TIDE_NOT_FOUND;
    }
    sqlite3_reset(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return db_fail(s, c, rc, err, "look for a session");
    return code == TIDE_NOT_FOUND ? fail_no_session(id, s->path, false, err) : code;
}

enum tide_code sqlite_head(struct store *store, struct str id, struct head *ret, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    struct conn *c = NULL;
    enum tide_code code = db_reader(s, &c, err);
    bool hidden = false;
    int64_t boot;
    sqlite3_stmt *st;
    int rc;

    if (code)
        return code;
    st = db_stmt(c, ST_HEAD);
    sqlite3_bind_text(st, 1, id.ptr, (int)id.len, SQLITE_STATIC);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW) {
        code = head_from_row(s, c, st, ret, &boot, &hidden, err);
        if (!code && !str_eq(str_from(ret->id), id)) /* the index says so, the row does not */
            code = db_fail(s, c, SQLITE_CORRUPT, err, "look for a session");
    } else if (rc == SQLITE_DONE)
        code = scan_for(s, c, id, ret, &hidden, err);
    else
        code = db_fail(s, c, rc, err, "read a session's record");
    sqlite3_reset(st);
    db_reader_done(s, c);
    if (!code && hidden)
        code = fail_no_session(id, s->path, true, err);
    return code;
}

bool head_for_writer(struct sqlite_store *s, int64_t sid, struct whead *ret, int *ret_rc)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_HEAD_BY_SID);
    bool right;
    int rc;

    sqlite3_bind_int64(st, 1, sid);
    rc = db_step(&s->w, st);
    right = rc == SQLITE_ROW && head_prove(s, st, &ret->h, &ret->boot, &ret->hidden, NULL) == TIDE_OK;
    ret->in_live = right && sqlite3_column_int64(st, HEAD_IN_LIVE) != 0;
    if (st)
        sqlite3_reset(st);
    *ret_rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    return right;
}

enum tide_code head_by_sid(struct sqlite_store *s, struct conn *c, int64_t sid, struct head *ret, bool *ret_hidden,
                           struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_HEAD_BY_SID);
    enum tide_code code;
    int64_t boot;
    int rc;

    sqlite3_bind_int64(st, 1, sid);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW)
        code = head_from_row(s, c, st, ret, &boot, ret_hidden, err);
    else
        code = db_fail(s, c, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, err, "find the session of an event");
    if (st)
        sqlite3_reset(st);
    return code;
}
