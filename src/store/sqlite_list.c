/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of sessions: listing and finding by prefix. */
#include <endian.h>

#include "base/invariant.h"
#include "store/sqlite_db.h"

#define LIST_PIECE 256

/* Everything a check covers, one after the other. */
struct covered {
    unsigned char bytes[2 * DIGEST_SIZE + 2 * TIDE_ID_SIZE + 10 * 8];
    size_t n;
};

static void cover_int(struct covered *c, int64_t v)
{
    uint64_t le = htole64((uint64_t)v);

    INVARIANT(c->n + 8 <= sizeof c->bytes);
    memcpy(c->bytes + c->n, &le, 8);
    c->n += 8;
}

static void cover_bytes(struct covered *c, const void *bytes, size_t n)
{
    INVARIANT(c->n + n <= sizeof c->bytes);
    memcpy(c->bytes + c->n, bytes, n);
    c->n += n;
}

static void cover_place(struct covered *c, const struct whead *w)
{
    cover_int(c, w->sid);
    cover_int(c, w->h.epoch);
    cover_int(c, w->h.last_seq);
    cover_int(c, w->last_pos);
    cover_int(c, w->h.updated_ms);
    cover_bytes(c, w->h.digest, DIGEST_SIZE);
}

int64_t session_check(const struct sqlite_store *s, const struct whead *w, bool live)
{
    const struct head *h = &w->h;
    struct covered c = {.n = 0};

    cover_place(&c, w);
    cover_int(&c, h->created_ms);
    cover_int(&c, w->parent_sid);
    cover_int(&c, h->parent_seq);
    cover_int(&c, w->hidden | live << 1);
    cover_bytes(&c, h->first_before, DIGEST_SIZE);
    cover_bytes(&c, h->parent_id, strlen(h->parent_id) + 1);
    cover_bytes(&c, h->id, strlen(h->id));
    return digest_short(s->row_key, c.bytes, c.n);
}

int64_t live_check(const struct sqlite_store *s, const struct whead *w)
{
    struct covered c = {.n = 0};

    cover_place(&c, w);
    cover_int(&c, w->boot);
    cover_int(&c, w->wake);
    return digest_short(s->row_key, c.bytes, c.n);
}

int64_t live_check_2(const struct sqlite_store *s, const struct whead *w)
{
    struct covered c = {.n = 0};

    cover_place(&c, w);
    cover_int(&c, w->boot);
    return digest_short(s->row_key, c.bytes, c.n);
}

int64_t summary_check(const struct sqlite_store *s, const struct whead *w, struct str summary)
{
    unsigned char digest[DIGEST_SIZE];
    struct covered c = {.n = 0};

    digest_of(digest, summary);
    cover_int(&c, w->sid);
    cover_int(&c, w->h.last_seq);
    cover_bytes(&c, digest, DIGEST_SIZE);
    cover_bytes(&c, w->h.id, strlen(w->h.id));
    return digest_short(s->row_key, c.bytes, c.n);
}

struct str head_summary(const struct sqlite_store *s, struct arena *a, sqlite3_stmt *st, const struct whead *w)
{
    struct str summary = arena_dup(a, db_text(st, HEAD_SUMMARY));

    if (summary.len && summary_check(s, w, summary) != sqlite3_column_int64(st, HEAD_SUMMARY_CHECK))
        summary.len = 0; /* a damaged cache: the log answers */
    return summary;
}

/* A row with this flag that we did not hide would not be found missing anywhere. There are hardly any. */
static enum tide_code prove_hidden(struct sqlite_store *s, struct conn *c, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_HIDDEN_HEADS);
    enum tide_code code = TIDE_OK;
    struct whead w;
    int rc;

    while ((rc = db_step(c, st)) == SQLITE_ROW && !code)
        code = head_prove(s, st, &w, err);
    sqlite3_reset(st);
    if (!code && rc != SQLITE_DONE)
        code = db_fail(s, c, rc, err, "look for hidden sessions");
    return code;
}

struct listed {
    struct whead w;
    struct str summary;
};

/* A second opinion from the index: a damaged page can lose rows without SQLite noticing. */
static enum tide_code count_piece(struct sqlite_store *s, struct conn *c, int64_t before, int64_t from, size_t n,
                                  struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_LIST_COUNT);
    enum tide_code code = TIDE_OK;
    int rc;

    sqlite3_bind_int64(st, 1, before);
    sqlite3_bind_int64(st, 2, from);
    rc = db_step(c, st);
    if (rc != SQLITE_ROW)
        code = db_fail(s, c, rc, err, "count sessions");
    else if (sqlite3_column_int64(st, 0) != (int64_t)n)
        code = db_fail(s, c, SQLITE_CORRUPT, err, "list sessions: some are missing");
    sqlite3_reset(st);
    return code;
}

static enum tide_code list_piece(struct sqlite_store *s, struct conn *c, struct arena *a, int64_t before,
                                 int64_t parent, struct listed *rows, size_t *ret_n, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, parent ? ST_LIST_FORKS : ST_LIST);
    enum tide_code code = TIDE_OK;
    size_t n = 0;
    int rc = SQLITE_DONE;

    sqlite3_bind_int64(st, 1, before);
    sqlite3_bind_int64(st, 2, LIST_PIECE);
    if (parent)
        sqlite3_bind_int64(st, 3, parent);
    while (!code && n < LIST_PIECE && (rc = db_step(c, st)) == SQLITE_ROW) {
        struct listed *row = &rows[n];

        code = head_from_row(s, c, st, &row->w, err);
        if (!code && (row->w.hidden || row->w.sid >= (n ? rows[n - 1].w.sid : before)))
            code = db_fail(s, c, SQLITE_CORRUPT, err, "list sessions");
        row->summary = head_summary(s, a, st, &row->w);
        n++;
    }
    sqlite3_reset(st);
    if (!code && rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = db_fail(s, c, rc, err, "list sessions");
    if (!code && !parent)
        code = count_piece(s, c, before, n == LIST_PIECE ? rows[n - 1].w.sid : INT64_MIN, n, err);
    *ret_n = n;
    return code;
}

/* A row of another number would only begin elsewhere. */
static int64_t begin_with(struct conn *c, struct str id)
{
    sqlite3_stmt *st = db_stmt(c, ST_HEAD);
    int64_t before = INT64_MAX;

    if (!id.len)
        return before;
    sqlite3_bind_text(st, 1, id.ptr, (int)id.len, SQLITE_STATIC);
    if (db_step(c, st) == SQLITE_ROW)
        before = sqlite3_column_int64(st, 0) + 1;
    sqlite3_reset(st);
    return before;
}

enum tide_code sqlite_list(struct store *store, const struct head *forks_of, struct str from, store_entry_fn *fn,
                           void *arg, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    AUTO(mem_freep) struct listed *rows = mem_array(LIST_PIECE, sizeof *rows);
    struct conn *c = NULL;
    struct arena a = ARENA_INIT;
    int64_t before = INT64_MAX;
    struct whead parent = {.sid = 0};
    enum tide_code code;
    bool stop = false;
    size_t n;

    do {
        code = db_reader(s, &c, err);
        if (code)
            break;
        n = 0;
        arena_reset(&a);
        code = before == INT64_MAX ? prove_hidden(s, c, err) : TIDE_OK;
        before = before == INT64_MAX ? begin_with(c, from) : before;
        if (!code && forks_of && !parent.sid)
            code = head_again(s, c, forks_of, &parent, err);
        code = code ? code : list_piece(s, c, &a, before, parent.sid, rows, &n, err);
        db_reader_done(s, c);
        for (size_t i = 0; !code && !stop && i < n; i++) {
            struct store_entry entry = {.head = &rows[i].w.h, .summary = rows[i].summary};

            before = rows[i].w.sid;
            stop = fn(arg, &entry) != 0;
        }
    } while (!code && !stop && n == LIST_PIECE);
    arena_done(&a);
    return code;
}

/* By part of an id: the index of ids must be whole, or another session might be taken for the only one. */
static enum tide_code check_ids(struct sqlite_store *s, struct conn *c, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_IDS_COUNT);
    enum tide_code code = TIDE_OK;
    int rc = db_step(c, st);

    if (rc != SQLITE_ROW)
        code = db_fail(s, c, rc, err, "look for a session");
    else if (sqlite3_column_int64(st, 0) != sqlite3_column_int64(st, 1))
        code = db_fail(s, c, SQLITE_CORRUPT, err, "look for a session: some are missing");
    sqlite3_reset(st);
    return code;
}

enum tide_code sqlite_resolve(struct store *store, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                              size_t *ret_n, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    struct conn *c = NULL;
    enum tide_code code = db_reader(s, &c, err);
    sqlite3_stmt *st;
    size_t n = 0;
    int rc;

    if (code)
        return code;
    st = db_stmt(c, ST_RESOLVE);
    sqlite3_bind_text(st, 1, prefix.ptr, (int)prefix.len, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, (int64_t)max);
    while ((rc = db_step(c, st)) == SQLITE_ROW && n < max) {
        struct str id = db_text(st, 0);

        if (str_is_id(id))
            snprintf(ret_ids[n++], TIDE_ID_SIZE, "%.*s", STR_ARG(id));
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = db_fail(s, c, rc, err, "look for a session");
    sqlite3_reset(st);
    if (!code && !(n && str_eq(str_from(ret_ids[0]), prefix)))
        code = check_ids(s, c, err) || prove_hidden(s, c, err) ? err->code : TIDE_OK;
    db_reader_done(s, c);
    *ret_n = n;
    return code;
}
