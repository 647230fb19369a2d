/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a session stands: its row of `sessions`, overruled by `live` while it has a row there. Rows prove themselves by a
 * check; before a session is said not to be there, index and records are looked through for damage.
 */
#include <inttypes.h>

#include "store/batch_rules.h"
#include "store/sqlite_db.h"

#define SOUND_NS 1000000000 /* for so long a look through all of it holds */

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
static bool head_place(struct sqlite_store *s, sqlite3_stmt *st, struct whead *w)
{
    bool live = sqlite3_column_int64(st, 21) != 0;

    w->h.epoch = sqlite3_column_int64(st, 16);
    w->h.last_seq = sqlite3_column_int64(st, 17);
    w->last_pos = sqlite3_column_int64(st, 18);
    w->h.updated_ms = sqlite3_column_int64(st, 20);
    if (!db_digest(w->h.digest, st, 19) || live != w->in_live ||
        session_check(s, w, live) != sqlite3_column_int64(st, 7))
        return false;
    if (!live)
        return true;
    w->h.epoch = sqlite3_column_int64(st, 8);
    w->h.last_seq = sqlite3_column_int64(st, 9);
    w->last_pos = sqlite3_column_int64(st, 10);
    w->h.updated_ms = sqlite3_column_int64(st, 12);
    return db_digest(w->h.digest, st, 11) && live_check(s, w) == sqlite3_column_int64(st, 23);
}

enum tide_code head_prove(struct sqlite_store *s, sqlite3_stmt *st, struct whead *ret, struct tide_err *err)
{
    struct str id = db_text(st, 1), parent = db_text(st, 14);
    struct head *h = &ret->h;

    memset(h, 0, sizeof *h);
    if (!str_is_id(id) || (parent.len && !str_is_id(parent)))
        return tide_fail(err, TIDE_CORRUPT, "a session's record in '%s' is damaged (row %" PRId64 ")", s->path,
                         (int64_t)sqlite3_column_int64(st, 0));
    memcpy(h->id, id.ptr, id.len);
    memcpy(h->parent_id, parent.ptr, parent.len);
    ret->sid = sqlite3_column_int64(st, 0);
    ret->parent_sid = sqlite3_column_int64(st, 3);
    ret->hidden = sqlite3_column_int64(st, 6) != 0;
    ret->in_live = sqlite3_column_int64(st, HEAD_IN_LIVE) != 0;
    ret->boot = sqlite3_column_int64(st, HEAD_BOOT);
    ret->wake = sqlite3_column_int64(st, HEAD_WAKE);
    h->created_ms = sqlite3_column_int64(st, 2);
    h->parent_seq = sqlite3_column_int64(st, 4);
    if (ret->parent_sid)
        db_digest(h->first_before, st, 5);
    h->first_seq = h->parent_seq + 1;
    if (!head_place(s, st, ret) || h->last_seq < h->first_seq - 1) {
        tide_fail(err, TIDE_CORRUPT, "the record of session '%s' in '%s' is damaged", h->id, s->path);
        return tide_about_session(err, h->id);
    }
    db_proof(&h->proof, st, HEAD_PROOF);
    h->held = ret->boot != 0;
    return TIDE_OK;
}

enum tide_code head_from_row(struct sqlite_store *s, struct conn *c, sqlite3_stmt *st, struct whead *ret,
                             struct tide_err *err)
{
    enum tide_code code = head_prove(s, st, ret, err);
    struct head *h = &ret->h;
    int rc;

    if (code || !h->held || c == &s->w) /* the writer looks the holder up when it matters */
        return code;
    rc = lease_holder(s, c, ret->boot, &h->holder_alive, h->holder);
    if (ret->boot == s->boot && orphan_is(&s->orphans, h->id, h->epoch))
        h->holder_alive = false; /* ours, and no handle of ours knows of it */
    return rc ? db_fail(s, c, rc, err, "read who holds the session") : TIDE_OK;
}

/* All of it was intact a moment ago: a caller that asks for missing sessions must not cause a full read each time. */
static bool was_sound(struct sqlite_store *s, int64_t now_ns)
{
    bool was;

    pthread_mutex_lock(&s->rmu);
    was = s->sound_ns && now_ns - s->sound_ns < SOUND_NS;
    pthread_mutex_unlock(&s->rmu);
    return was;
}

static void note_sound(struct sqlite_store *s, int64_t began_ns)
{
    pthread_mutex_lock(&s->rmu);
    s->sound_ns = began_ns;
    pthread_mutex_unlock(&s->rmu);
}

/*
 * Not found by the index: make sure that neither the index nor a record is damaged before saying that there is no such
 * session.
 */
static enum tide_code scan_for(struct sqlite_store *s, struct conn *c, struct str id, struct whead *ret,
                               struct tide_err *err)
{
    const int64_t now_ns = s->base.env->ops->mono_ns(s->base.env);
    enum tide_code code = TIDE_NOT_FOUND;
    sqlite3_stmt *st;
    int rc;

    if (c != &s->w && was_sound(s, now_ns))
        return fail_no_session(id, s->path, false, err);
    st = db_stmt(c, ST_HEAD_SCAN);
    sqlite3_bind_int64(st, 1, -1);
    while ((rc = db_step(c, st)) == SQLITE_ROW) {
        code = head_from_row(s, c, st, ret, err);
        if (code || str_eq(str_from(ret->h.id), id))
            break;
        code = TIDE_NOT_FOUND;
    }
    sqlite3_reset(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return db_fail(s, c, rc, err, "look for a session");
    if (code == TIDE_NOT_FOUND)
        note_sound(s, now_ns);
    return code == TIDE_NOT_FOUND ? fail_no_session(id, s->path, false, err) : code;
}

/* `holder`: who holds it is of interest. */
static enum tide_code find_head(struct sqlite_store *s, struct conn *c, struct str id, bool holder, struct whead *ret,
                                struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_HEAD);
    enum tide_code code;
    int rc;

    sqlite3_bind_text(st, 1, id.ptr, (int)id.len, SQLITE_STATIC);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW) {
        code = holder ? head_from_row(s, c, st, ret, err) : head_prove(s, st, ret, err);
        if (!code && !str_eq(str_from(ret->h.id), id)) /* the index has it, the row does not */
            code = db_fail(s, c, SQLITE_CORRUPT, err, "look for a session");
    } else if (rc == SQLITE_DONE)
        code = scan_for(s, c, id, ret, err);
    else
        code = db_fail(s, c, rc, err, "read a session's record");
    sqlite3_reset(st);
    return code;
}

/* A number of a row is never used again, and an event stays where it is: what was noted holds, unless the session is gone. */
static void note_place(struct sqlite_store *s, const struct whead *w)
{
    struct place *p = NULL;

    pthread_mutex_lock(&s->rmu);
    for (size_t i = 0; i < PLACES && !p; i++)
        if (strcmp(s->places[i].id, w->h.id) == 0) /* another of this id may be gone */
            p = &s->places[i];
    p = p ? p : &s->places[s->next_place++ % PLACES];
    *p = (struct place){.last_seq = w->h.last_seq, .sid = w->sid, .last_pos = w->last_pos};
    memcpy(p->id, w->h.id, sizeof p->id);
    memcpy(p->digest, w->h.digest, DIGEST_SIZE);
    pthread_mutex_unlock(&s->rmu);
}

static bool find_place(struct sqlite_store *s, const struct head *h, struct whead *ret)
{
    bool found = false;

    pthread_mutex_lock(&s->rmu);
    for (size_t i = 0; i < PLACES && !found; i++) {
        const struct place *p = &s->places[i];

        found =
            p->last_seq == h->last_seq && memcmp(p->digest, h->digest, DIGEST_SIZE) == 0 && strcmp(p->id, h->id) == 0;
        if (found) {
            ret->sid = p->sid;
            ret->last_pos = p->last_pos;
        }
    }
    pthread_mutex_unlock(&s->rmu);
    ret->h = *h;
    return found;
}

enum tide_code sqlite_head(struct store *store, struct str id, struct head *ret, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    struct whead w = {.sid = 0};
    struct conn *c = NULL;
    enum tide_code code = db_reader(s, &c, err);

    if (code)
        return code;
    code = find_head(s, c, id, true, &w, err);
    db_reader_done(s, c);
    if (!code && w.hidden)
        code = fail_no_session(id, s->path, true, err);
    if (!code)
        note_place(s, &w);
    *ret = w.h;
    return code;
}

enum tide_code head_again(struct sqlite_store *s, struct conn *c, const struct head *h, struct whead *ret,
                          struct tide_err *err)
{
    return find_place(s, h, ret) ? TIDE_OK : head_anew(s, c, h, ret, err);
}

enum tide_code head_anew(struct sqlite_store *s, struct conn *c, const struct head *h, struct whead *ret,
                         struct tide_err *err)
{
    enum tide_code code = find_head(s, c, str_from(h->id), false, ret, err);
    int rc = SQLITE_OK;

    if (code && code != TIDE_NOT_FOUND)
        return code;
    if (code || ret->h.created_ms != h->created_ms || ret->h.last_seq < h->last_seq)
        return tide_fail_session(err, TIDE_NOT_FOUND, h->id, "was deleted while it was read");
    if (ret->h.last_seq > h->last_seq && h->last_seq >= h->first_seq)
        rc = event_positions(c, ret, h->last_seq, h->last_seq, &ret->last_pos);
    ret->h = *h;
    return rc ? event_damaged(s, c, h, rc, h->last_seq, err) : TIDE_OK;
}

/* Of the row with this number: SQLITE_ROW, or what else there is. */
static int by_sid(struct sqlite_store *s, struct conn *c, int64_t sid, struct whead *ret, enum tide_code *ret_code,
                  struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_HEAD_BY_SID);
    int rc;

    sqlite3_bind_int64(st, 1, sid);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW)
        *ret_code = head_from_row(s, c, st, ret, err);
    sqlite3_reset(st);
    return rc;
}

bool head_for_writer(struct sqlite_store *s, int64_t sid, struct whead *ret, int *ret_rc)
{
    enum tide_code code = TIDE_OK;
    int rc = by_sid(s, &s->w, sid, ret, &code, NULL);

    *ret_rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    return rc == SQLITE_ROW && !code;
}

enum tide_code head_by_sid(struct sqlite_store *s, struct conn *c, int64_t sid, struct whead *ret, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int rc = by_sid(s, c, sid, ret, &code, err);

    return rc == SQLITE_ROW
               ? code
               : db_fail(s, c, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, err, "find the session of an event");
}
