/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer remembers of sessions between transactions: where each stands and who holds it. It is right for as long as
 * nobody else has committed (data_version); else all of it is forgotten and read again. Moved heads are written at the end
 * of the transaction, before COMMIT: a live one in the small table, any other in its own row.
 */
#include "base/invariant.h"
#include "store/origin.h"
#include "store/sqlite_db.h"

#define HEADS_MAX 16384 /* remembered at once; past it all are forgotten and read again */

static void whead_free(void *p)
{
    struct whead *w = p;

    free(w->recent);
    free(w);
}

void heads_forget(struct sqlite_store *s)
{
    map_done(&s->heads, whead_free);
    memset(&s->heads, 0, sizeof s->heads);
    s->cache_valid = false;
    s->open = OPEN_UNKNOWN;
}

struct whead *whead_load(struct sqlite_store *s, struct str id, int *ret_rc)
{
    struct whead *w = map_get(&s->heads, id);
    sqlite3_stmt *st;
    int rc;

    if (w)
        return w;
    w = mem_zero(sizeof *w);
    memcpy(w->h.id, id.ptr, id.len);
    map_put(&s->heads, id, w);
    st = db_stmt(&s->w, ST_HEAD);
    sqlite3_bind_text(st, 1, id.ptr, (int)id.len, SQLITE_STATIC);
    rc = db_step(&s->w, st);
    if (rc == SQLITE_ROW) {
        w->exists = true;
        w->damaged = head_prove(s, st, w, NULL) || !str_eq(str_from(w->h.id), id) || w->last_pos > s->last_pos;
        w->proven = origin_is_ours(&s->base, &w->h);
        w->stay = w->in_live && !w->boot;
        rc = SQLITE_OK;
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }
    sqlite3_reset(st);
    *ret_rc = rc;
    return w;
}

/* Erased: another session of the same id begins with nothing of it. */
void whead_clear(struct whead *w)
{
    char id[TIDE_ID_SIZE];

    memcpy(id, w->h.id, sizeof id);
    memset(&w->h, 0, sizeof w->h);
    memcpy(w->h.id, id, sizeof id);
    w->exists = w->hidden = w->dirty = w->in_live = w->summary_set = false;
    w->stay = w->proven = false;
    w->sid = w->parent_sid = w->last_pos = w->boot = w->wake = 0;
    free(TAKE(w->recent));
    w->recent_n = w->recent_cap = 0;
}

static int write_row(struct sqlite_store *s, struct whead *w)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_SESSION_UPDATE);
    int rc;

    sqlite3_bind_int64(st, 1, w->sid);
    sqlite3_bind_int64(st, 2, w->h.epoch);
    sqlite3_bind_int64(st, 3, w->h.last_seq);
    sqlite3_bind_int64(st, 4, w->last_pos);
    sqlite3_bind_blob(st, 5, w->h.digest, DIGEST_SIZE, SQLITE_STATIC);
    sqlite3_bind_int64(st, 6, w->h.updated_ms);
    sqlite3_bind_int64(st, 7, session_check(s, w, whead_live(w)));
    sqlite3_bind_int64(st, 8, whead_live(w));
    rc = db_run(&s->w, ST_SESSION_UPDATE);
    if (!rc && w->in_live && !whead_live(w)) {
        sqlite3_bind_int64(db_stmt(&s->w, ST_LIVE_DELETE), 1, w->sid);
        rc = db_run(&s->w, ST_LIVE_DELETE);
        w->in_live = false;
    }
    return rc;
}

static int write_summary(struct sqlite_store *s, struct whead *w)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_SESSION_SUMMARY);

    sqlite3_bind_int64(st, 1, w->sid);
    sqlite3_bind_text(st, 2, w->summary.ptr, (int)w->summary.len, SQLITE_STATIC);
    sqlite3_bind_int64(st, 3, w->h.last_seq);
    sqlite3_bind_int64(st, 4, summary_check(s, w, w->summary));
    return db_run(&s->w, ST_SESSION_SUMMARY);
}

/* A live session moves in the small table, any other in its own row, where the summary is too: a lease that is kept moves
 * on at once and leaves it alone. */
int whead_write(struct sqlite_store *s, struct whead *w)
{
    bool own_row = w->dirty && (!whead_live(w) || !w->in_live); /* it must say whether there is one in `live` */
    int rc = own_row ? write_row(s, w) : SQLITE_OK;

    INVARIANT(!w->dirty || (w->sid && w->exists && !w->damaged && w->h.last_seq >= w->h.first_seq - 1));
    INVARIANT(!w->boot || !w->stay); /* held, or waiting to be looked at */
    if (!rc && w->dirty && w->summary_set && (own_row || !w->boot))
        rc = write_summary(s, w);
    if (w->dirty && whead_live(w)) {
        pending_head_add(s, w);
        w->in_live = true;
    }
    w->dirty = false;
    return rc;
}

/* After BEGIN: forget what we remember when anyone else has committed. */
int heads_freshen(struct sqlite_store *s)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_DATA_VERSION);
    int rc = db_step(&s->w, st);
    int64_t version = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;

    sqlite3_reset(st);
    if (rc != SQLITE_ROW)
        return rc;
    if (s->cache_valid && version == s->data_version && s->heads.live < HEADS_MAX)
        return SQLITE_OK;
    heads_forget(s);
    s->data_version = version;
    st = db_stmt(&s->w, ST_MAX_POS);
    rc = db_step(&s->w, st);
    if (rc == SQLITE_ROW)
        s->last_pos = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    s->cache_valid = rc == SQLITE_ROW;
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}
