/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of sessions: listing and finding by prefix. */
#include "store/sqlite_db.h"

#define LIST_PIECE 256

int64_t session_check(const struct head *h)
{
    unsigned char out[DIGEST_SIZE];
    struct digest_state d;
    int64_t check;

    digest_begin(&d, NULL);
    digest_add_int(&d, (uint64_t)h->sid);
    digest_add_str(&d, str_from(h->id));
    digest_add_int(&d, (uint64_t)h->created_ms);
    digest_add_int(&d, (uint64_t)h->parent_sid);
    digest_add_int(&d, (uint64_t)h->parent_seq);
    digest_add(&d, h->first_before, DIGEST_SIZE);
    digest_end(&d, out);
    memcpy(&check, out, sizeof check);
    return check;
}

struct listed {
    struct head head;
    struct str summary;
};

static enum tide_code list_piece(struct sqlite_store *s, struct arena *a, int64_t before, int64_t parent,
                                 struct listed *rows, size_t *ret_n, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(&s->r, ST_LIST);
    enum tide_code code = TIDE_OK;
    int64_t boot;
    bool hidden;
    size_t n = 0;
    int rc = SQLITE_DONE;

    sqlite3_bind_int64(st, 1, before);
    sqlite3_bind_int64(st, 2, parent);
    sqlite3_bind_int64(st, 3, LIST_PIECE);
    while (!code && n < LIST_PIECE && (rc = db_step(&s->r, st)) == SQLITE_ROW) {
        code = head_from_row(s, &s->r, st, &rows[n].head, &boot, &hidden, err);
        rows[n].summary = arena_dup(a, db_text(st, 15));
        n++;
    }
    if (st)
        sqlite3_reset(st);
    if (!code && rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = db_fail(s, &s->r, rc, err, "list sessions");
    *ret_n = n;
    return code;
}

enum tide_code sqlite_list(struct store *store, const struct head *forks_of, store_entry_fn *fn, void *arg,
                           struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    AUTO(mem_freep) struct listed *rows = mem_array(LIST_PIECE, sizeof *rows);
    struct arena a = ARENA_INIT;
    int64_t before = INT64_MAX;
    enum tide_code code;
    bool stop = false;
    size_t n;

    do {
        code = db_reader(s, err);
        if (code)
            break;
        n = 0;
        arena_reset(&a);
        code = list_piece(s, &a, before, forks_of ? forks_of->sid : 0, rows, &n, err);
        db_reader_done(s);
        for (size_t i = 0; !code && !stop && i < n; i++) {
            struct store_entry entry = {&rows[i].head, rows[i].summary};

            before = rows[i].head.sid;
            stop = fn(arg, &entry) != 0;
        }
    } while (!code && !stop && n == LIST_PIECE);
    arena_done(&a);
    return code;
}

enum tide_code sqlite_resolve(struct store *store, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                              size_t *ret_n, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    enum tide_code code = db_reader(s, err);
    sqlite3_stmt *st;
    size_t n = 0;
    int rc;

    if (code)
        return code;
    st = db_stmt(&s->r, ST_RESOLVE);
    sqlite3_bind_text(st, 1, prefix.ptr, (int)prefix.len, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, (int64_t)max);
    while ((rc = db_step(&s->r, st)) == SQLITE_ROW && n < max) {
        struct str id = db_text(st, 0);

        if (str_is_id(id))
            snprintf(ret_ids[n++], TIDE_ID_SIZE, "%.*s", STR_ARG(id));
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = db_fail(s, &s->r, rc, err, "look for a session");
    if (st)
        sqlite3_reset(st);
    db_reader_done(s);
    *ret_n = n;
    return code;
}
