/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recovery has to look at: the rows of `live` whose holder has died or that have none. Read in pieces, each in a
 * transaction of its own, so that the callback may write. Whether a process lives is asked once for each, however many
 * leases it left. A damaged row keeps nobody from the others: it is skipped, and named at the end.
 */
#include "store/sqlite_db.h"

#define LIVE_PIECE 256

struct live_row {
    struct whead w;
    struct str summary; /* in the arena of the scan */
};

struct looked_up {
    bool alive;
    char who[160];
};

struct live_scan {
    struct sqlite_store *s;
    struct conn *c;      /* inside a transaction */
    int64_t until, next; /* next: INT64_MAX when none is known */
    int64_t after;       /* the last row that was looked at */
    bool more;
    struct map holders; /* bytes of the boot -> struct looked_up */
    struct tide_err damage;
    struct live_row *rows;
    size_t n;
    struct arena arena; /* of the piece that was read last */
};

static const struct looked_up *holder_of(struct live_scan *l, int64_t boot, int *ret_rc)
{
    struct str key = {(const char *)&boot, sizeof boot};
    struct looked_up *h = map_get(&l->holders, key);

    if (!h) {
        h = mem_zero(sizeof *h);
        map_put(&l->holders, key, h);
        *ret_rc = lease_holder(l->s, l->c, boot, &h->alive, h->who);
    }
    return h;
}

/* Keeps the row when it is to be looked at. */
static int take_row(struct live_scan *l, sqlite3_stmt *st)
{
    struct live_row *kept = &l->rows[l->n];
    struct whead *row = &kept->w;
    size_t before = l->n;
    const struct looked_up *holder;
    struct tide_err err;
    int rc = SQLITE_OK;

    if (head_prove(l->s, st, row, &err)) {
        l->damage = l->damage.code ? l->damage : err;
        return SQLITE_OK;
    }
    if (row->hidden)
        return SQLITE_OK;
    if (row->boot) {
        holder = holder_of(l, row->boot, &rc);
        memcpy(row->h.holder, holder->who, sizeof row->h.holder);
        l->n += !holder->alive || (row->boot == l->s->boot && orphan_is(&l->s->orphans, row->h.id, row->h.epoch));
    } else if (row->wake <= l->until) {
        l->n++;
    } else if (row->wake < l->next) {
        l->next = row->wake;
    }
    if (l->n > before)
        kept->summary = head_summary(l->s, &l->arena, st, row);
    return rc;
}

static enum tide_code read_piece(struct live_scan *l, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(l->c, ST_LIVE);
    int rc = SQLITE_OK, seen = 0;

    sqlite3_bind_int64(st, 1, l->after);
    sqlite3_bind_int64(st, 2, LIVE_PIECE);
    l->n = 0;
    arena_reset(&l->arena);
    while (rc == SQLITE_OK && (rc = db_step(l->c, st)) == SQLITE_ROW) {
        l->after = sqlite3_column_int64(st, HEAD_LIVE_SID);
        rc = take_row(l, st);
        seen++;
    }
    sqlite3_reset(st);
    l->more = seen == LIVE_PIECE;
    return rc == SQLITE_DONE ? TIDE_OK : db_fail(l->s, l->c, rc, err, "read the live sessions");
}

static enum tide_code scan_live(struct live_scan *l, store_live_fn *fn, void *arg, struct tide_err *err)
{
    enum tide_code code;
    bool stop = false;

    do {
        code = db_reader(l->s, &l->c, err);
        if (code)
            return code;
        code = read_piece(l, err);
        db_reader_done(l->s, l->c);
        for (size_t i = 0; !code && !stop && i < l->n; i++)
            stop = fn(arg, &(struct store_entry){.head = &l->rows[i].w.h, .summary = l->rows[i].summary},
                      l->rows[i].w.wake) != 0;
    } while (!code && !stop && l->more);
    return code || stop || !l->damage.code ? code : tide_err_copy(err, &l->damage);
}

enum tide_code sqlite_live(struct store *store, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                           struct tide_err *err)
{
    AUTO(mem_freep) struct live_row *rows = mem_array(LIVE_PIECE, sizeof *rows);
    struct live_scan l = {
        .s = sqlite_of(store), .until = until_ms, .next = INT64_MAX, .after = INT64_MIN, .rows = rows};
    enum tide_code code = scan_live(&l, fn, arg, err);

    map_done(&l.holders, free);
    arena_done(&l.arena);
    *ret_next_ms = l.next == INT64_MAX ? 0 : l.next;
    return code;
}
