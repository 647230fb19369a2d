/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many rows by one statement. What a transaction adds is gathered in memory and shown to SQLite as two virtual tables, so
 * that INSERT … SELECT moves all of it with one cursor that stays at the end of its table, without
 * binding and stepping row by row.
 */
#include "store/sqlite_db.h"

struct table {
    sqlite3_vtab base;
    struct sqlite_store *s;
    bool heads; /* pending_heads; else pending_events */
};

struct cursor {
    sqlite3_vtab_cursor base;
    const struct table *table;
    struct pending *pending;
    size_t at;
};

static int connect_table(sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **ret, char **err)
{
    struct table *t = mem_zero(sizeof *t);

    (void)argc, (void)err;
    t->s = arg;
    t->heads = strcmp(argv[0], "pending_heads") == 0; /* the name of its module */
    *ret = &t->base;
    return sqlite3_declare_vtab(
        db, t->heads ? "CREATE TABLE x(sid, boot, epoch, last_seq, last_pos, digest, updated, row_check, wake)"
                     : "CREATE TABLE x(pos, sid, seq, prev, epoch, ts, kind, body, refs, digest, tag, proof)");
}

static int disconnect_table(sqlite3_vtab *t)
{
    free(t);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *t, sqlite3_index_info *info)
{
    (void)t;
    info->estimatedCost = 1;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *t, sqlite3_vtab_cursor **ret)
{
    struct cursor *c = mem_zero(sizeof *c);

    c->table = (const struct table *)t;
    c->pending = &c->table->s->pending;
    *ret = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *c)
{
    free(c);
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *c, int n, const char *text, int argc, sqlite3_value **argv)
{
    (void)n, (void)text, (void)argc, (void)argv;
    ((struct cursor *)c)->at = 0;
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *c)
{
    ((struct cursor *)c)->at++;
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct cursor *)c)->at;
    return SQLITE_OK;
}

static int is_end(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;

    return c->at >= (c->table->heads ? c->pending->head_count : c->pending->event_count);
}

static void text(sqlite3_context *out, struct str s)
{
    sqlite3_result_text(out, s.ptr, (int)s.len, SQLITE_STATIC);
}

static int events_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    const struct cursor *c = (const struct cursor *)base;
    const struct pending_event *row = &c->pending->events[c->at];
    const struct event *ev = row->ev;
    const int64_t numbers[] = {ev->pos, row->sid, ev->seq, row->prev, ev->epoch, ev->ts_ms};

    if (column < 6)
        sqlite3_result_int64(out, numbers[column]);
    else if (column == 6)
        text(out, ev->kind);
    else if (column == 7)
        text(out, row->body);
    else if (column == 8 && row->refs.len)
        sqlite3_result_blob(out, row->refs.ptr, (int)row->refs.len, SQLITE_STATIC);
    else if (column == 9)
        sqlite3_result_blob(out, ev->digest, DIGEST_SIZE, SQLITE_STATIC);
    else if (column == 10 && row->tag.len)
        text(out, row->tag);
    else if (column == 11 && ev->proof.set)
        sqlite3_result_blob(out, ev->proof.mac, sizeof ev->proof.mac, SQLITE_STATIC);
    return SQLITE_OK;
}

static int heads_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    const struct cursor *c = (const struct cursor *)base;
    const struct whead *w = c->pending->heads[c->at];
    const int64_t numbers[] = {w->sid, w->boot, w->h.epoch, w->h.last_seq, w->last_pos, 0, w->h.updated_ms, 0, w->wake};

    if (column == 5)
        sqlite3_result_blob(out, w->h.digest, DIGEST_SIZE, SQLITE_STATIC);
    else if (column == 7)
        sqlite3_result_int64(out, live_check(c->table->s, w));
    else
        sqlite3_result_int64(out, numbers[column]);
    return SQLITE_OK;
}

/* Two, because a column is asked for with every row: which table it is of is known then. */
#define MODULE(column)                                                                                                 \
    {                                                                                                                  \
        .xConnect = connect_table, .xBestIndex = best_index, .xDisconnect = disconnect_table, .xOpen = open_cursor,    \
        .xClose = close_cursor, .xFilter = filter, .xNext = next, .xEof = is_end, .xColumn = (column),                 \
        .xRowid = rowid,                                                                                               \
    }
static const sqlite3_module events_module = MODULE(events_column), heads_module = MODULE(heads_column);

int pending_register(struct sqlite_store *s)
{
    int rc = sqlite3_create_module_v2(s->w.db, "pending_events", &events_module, s, NULL);

    return rc ? rc : sqlite3_create_module_v2(s->w.db, "pending_heads", &heads_module, s, NULL);
}

/* Room for one more at list[n]. */
static void *room(void *list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = *cap ? *cap * 2 : 64;
    return mem_grow(list, *cap * size);
}

void pending_event_add(struct sqlite_store *s, const struct pending_event *row)
{
    struct pending *p = &s->pending;

    p->events = room(p->events, p->event_count, &p->event_cap, sizeof *p->events);
    p->events[p->event_count++] = *row;
}

void pending_head_add(struct sqlite_store *s, struct whead *w)
{
    struct pending *p = &s->pending;

    p->heads = room(p->heads, p->head_count, &p->head_cap, sizeof *p->heads);
    p->heads[p->head_count++] = w;
}

/* A head alone, as that of one who appends one by one: a virtual table would cost more than the row. */
static int head_put(struct sqlite_store *s, const struct whead *w)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_LIVE_PUT);

    sqlite3_bind_int64(st, 1, w->sid);
    sqlite3_bind_int64(st, 2, w->boot);
    sqlite3_bind_int64(st, 3, w->h.epoch);
    sqlite3_bind_int64(st, 4, w->h.last_seq);
    sqlite3_bind_int64(st, 5, w->last_pos);
    sqlite3_bind_blob(st, 6, w->h.digest, DIGEST_SIZE, SQLITE_STATIC);
    sqlite3_bind_int64(st, 7, w->h.updated_ms);
    sqlite3_bind_int64(st, 8, live_check(s, w));
    sqlite3_bind_int64(st, 9, w->wake);
    return db_run(&s->w, ST_LIVE_PUT);
}

int pending_flush(struct sqlite_store *s)
{
    struct pending *p = &s->pending;
    int rc = p->event_count ? db_run(&s->w, ST_EVENTS_FLUSH) : SQLITE_OK;

    p->event_count = 0;
    if (!rc && p->head_count)
        rc = p->head_count == 1 ? head_put(s, p->heads[0]) : db_run(&s->w, ST_LIVE_FLUSH);
    p->head_count = 0;
    return rc;
}

void pending_clear(struct sqlite_store *s)
{
    s->pending.event_count = s->pending.head_count = 0;
}
