/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of states: a cache that is used only when it is whole and of this very log. */
#include "store/origin.h"
#include "store/sqlite_db.h"

void snapshot_digest(unsigned char out[DIGEST_SIZE], const struct store *store, struct str session, int64_t seq,
                     const unsigned char at[DIGEST_SIZE], struct str data)
{
    struct digest_state d;

    digest_begin(&d, &store->key);
    digest_add_str(&d, STR("snapshot 2")); /* the first ones repeated every value of the memory */
    origin_mix(&d, store);
    digest_add_str(&d, session);
    digest_add_int(&d, (uint64_t)seq);
    digest_add(&d, at, DIGEST_SIZE);
    digest_add_str(&d, data);
    digest_end(&d, out);
}

/* Whole, and of this very log: the event it was taken at has the digest it remembers. */
static bool snapshot_fits(struct sqlite_store *s, struct conn *c, const struct whead *w, sqlite3_stmt *st)
{
    const struct head *h = &w->h;
    unsigned char at[DIGEST_SIZE], check[DIGEST_SIZE], want[DIGEST_SIZE], now[DIGEST_SIZE];
    int64_t seq = sqlite3_column_int64(st, 0);

    if (seq < h->first_seq || seq > h->last_seq || !db_digest(at, st, 1) || !db_digest(check, st, 2))
        return false;
    snapshot_digest(want, &s->base, str_from(h->id), seq, at, db_text(st, 3));
    if (memcmp(want, check, DIGEST_SIZE) != 0)
        return false;
    if (seq == h->last_seq)
        return memcmp(at, h->digest, DIGEST_SIZE) == 0;
    return event_locate(c, w, seq, &(int64_t){0}, now) == SQLITE_OK && memcmp(at, now, DIGEST_SIZE) == 0;
}

enum tide_code sqlite_snapshot(struct store *store, const struct head *h, int64_t to, struct buf *ret_data,
                               int64_t *ret_seq, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    struct conn *c = NULL;
    enum tide_code code = db_reader(s, &c, err);
    struct whead w;
    sqlite3_stmt *st;

    if (code)
        return code;
    *ret_seq = 0;
    buf_clear(ret_data);
    code = head_again(s, c, h, &w, err);
    st = db_stmt(c, ST_SNAP_GET);
    sqlite3_bind_int64(st, 1, w.sid);
    sqlite3_bind_int64(st, 2, to);
    while (!code && !*ret_seq && db_step(c, st) == SQLITE_ROW) { /* a damaged cache is no error: the log answers */
        if (snapshot_fits(s, c, &w, st)) {
            buf_add_str(ret_data, db_text(st, 3));
            *ret_seq = ret_data->failed ? 0 : sqlite3_column_int64(st, 0);
        }
    }
    sqlite3_reset(st);
    db_reader_done(s, c);
    return code;
}
