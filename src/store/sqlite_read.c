/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading. Each piece is read in a short transaction of its own and handed out after it ended. Every event
 * is proved before it is handed out: right session, right seq, right digest over its predecessor's.
 */
#include <inttypes.h>
#include <stddef.h>

#include "store/sqlite_db.h"
#include "store/batch_rules.h"

#define GAPS_MAX 64               /* of positions, remembered until they are checked */
#define EVENT_BYTES_MAX (1 << 30) /* whatever limit it was written under: SQLite holds no more in a row */

/* One event as its row has it. */
struct row {
    struct event ev;
    int64_t sid, prev;
    struct str stored, refs; /* of a body with big values, as they are stored … */
    bool named;              /* … and each of them is what its name says */
};

/* Takes the row out of a statement on EVENT_COLUMNS; text goes into the arena. */
static int take_row(struct sqlite_store *s, struct conn *c, struct arena *a, sqlite3_stmt *st, struct row *ret)
{
    struct str refs = db_text(st, 8), body;

    ret->named = false;
    ret->ev.pos = sqlite3_column_int64(st, 0);
    ret->sid = sqlite3_column_int64(st, 1);
    ret->ev.seq = sqlite3_column_int64(st, 2);
    ret->prev = sqlite3_column_int64(st, 3);
    ret->ev.epoch = sqlite3_column_int64(st, 4);
    ret->ev.ts_ms = sqlite3_column_int64(st, 5);
    ret->ev.kind = arena_dup(a, db_text(st, 6));
    if (!db_digest(ret->ev.digest, st, 9))
        return SQLITE_CORRUPT;
    db_proof(&ret->ev.proof, st, 10);
    body = arena_dup(a, db_text(st, 7));
    if (!refs.len) {
        ret->ev.body = body;
        return SQLITE_OK;
    }
    ret->stored = body;
    ret->refs = arena_dup(a, refs);
    return big_load(s, c, a, body, ret->refs, EVENT_BYTES_MAX, &ret->ev.body, &ret->named);
}

static int read_row(struct sqlite_store *s, struct conn *c, struct arena *a, int64_t pos, struct row *ret)
{
    sqlite3_stmt *st = db_stmt(c, ST_EVENT);
    int rc;

    sqlite3_bind_int64(st, 1, pos);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW)
        rc = take_row(s, c, a, st, ret);
    else if (rc == SQLITE_DONE)
        rc = SQLITE_CORRUPT;
    sqlite3_reset(st);
    return rc;
}

/* Proves a row against the digest before it. */
static bool is_proved(struct sqlite_store *s, const struct whead *w, const struct row *row, int64_t seq,
                      const unsigned char before[DIGEST_SIZE])
{
    unsigned char want[DIGEST_SIZE];

    if (row->sid != w->sid || row->ev.seq != seq)
        return false;
    if (row->named && big_is_sealed(s, str_from(w->h.id), &row->ev, before, row->stored, row->refs))
        return true;
    event_digest(want, &s->base.key, before, str_from(w->h.id), &row->ev);
    return memcmp(want, row->ev.digest, DIGEST_SIZE) == 0;
}

/* The digest that the row's own stands on. */
static int digest_before(struct conn *c, const struct whead *w, const struct row *row, unsigned char out[DIGEST_SIZE])
{
    int64_t sid, seq, prev;
    int rc;

    if (row->ev.seq == w->h.first_seq) {
        memcpy(out, w->h.first_before, DIGEST_SIZE);
        return row->prev == 0 ? SQLITE_OK : SQLITE_CORRUPT;
    }
    rc = event_link(c, row->prev, &sid, &seq, &prev, out);
    return rc ? rc : sid == w->sid && seq == row->ev.seq - 1 ? SQLITE_OK : SQLITE_CORRUPT;
}

int event_read(struct sqlite_store *s, struct conn *c, const struct whead *w, int64_t pos, int64_t seq, struct arena *a,
               struct event *ret)
{
    unsigned char before[DIGEST_SIZE];
    struct row row;
    int rc = read_row(s, c, a, pos, &row);

    rc = rc ? rc : digest_before(c, w, &row, before);
    if (!rc && !is_proved(s, w, &row, seq, before))
        rc = SQLITE_CORRUPT;
    if (!rc)
        *ret = row.ev;
    return rc;
}

struct reading {
    struct sqlite_store *s;
    struct conn *c; /* inside a transaction */
    struct whead w;
    struct arena arena;
    size_t n;
    int64_t next;                      /* seq to read next */
    unsigned char before[DIGEST_SIZE]; /* digest of next - 1, once known */
    bool chained;
    size_t run;                    /* rows that the statement under way still gives */
    int64_t *walked;               /* all positions from first_seq on, when blocks are missing */
    struct row rows[BLOCK_EVENTS]; /* last: it is not cleared */
};

enum tide_code event_damaged(struct sqlite_store *s, struct conn *c, const struct head *h, int rc, int64_t seq,
                             struct tide_err *err)
{
    if ((rc & 0xff) != SQLITE_CORRUPT)
        return db_fail(s, c, rc, err, "read events");
    return refuse_damaged(h, seq, err);
}

/* Without blocks every piece would walk from the head again: walk once and remember. */
static int positions(struct reading *r, int64_t from, int64_t to, int64_t *ret_pos)
{
    struct conn *c = r->c;
    int64_t pos = r->w.last_pos, sid, seq, prev;
    int rc;

    if (!r->walked && (r->w.h.last_seq - from < 4 * BLOCK_EVENTS || block_positions(c, &r->w, from, to, ret_pos)))
        return event_positions(c, &r->w, from, to, ret_pos);
    if (!r->walked) {
        r->walked = mem_array((size_t)(r->w.h.last_seq - r->w.h.first_seq + 1), sizeof *r->walked);
        for (int64_t at = r->w.h.last_seq; at >= from; at--, pos = prev) {
            rc = event_link(c, pos, &sid, &seq, &prev, NULL);
            if (rc)
                return rc;
            if (sid != r->w.sid || seq != at)
                return SQLITE_CORRUPT;
            r->walked[at - r->w.h.first_seq] = pos;
        }
    }
    memcpy(ret_pos, r->walked + (from - r->w.h.first_seq), (size_t)(to - from + 1) * sizeof *ret_pos);
    return SQLITE_OK;
}

#define RUN_MIN 4 /* rows side by side that are worth a statement of their own */

/*
 * The row at pos[0]. Rows of a session that was written alone lie side by side: they are stepped through instead of being
 * looked for one by one.
 */
static int next_row(struct reading *r, const int64_t *pos, size_t left, struct row *ret)
{
    sqlite3_stmt *st = db_stmt(r->c, ST_EVENTS_AFTER);
    size_t n = 1;
    int rc;

    if (!r->run) {
        while (n < left && pos[n] == pos[0] + (int64_t)n)
            n++;
        if (n < RUN_MIN)
            return read_row(r->s, r->c, &r->arena, pos[0], ret);
        sqlite3_bind_int64(st, 1, pos[0] - 1);
        sqlite3_bind_int64(st, 2, (int64_t)n);
        r->run = n;
    }
    rc = db_step(r->c, st);
    if (rc == SQLITE_ROW)
        rc = take_row(r->s, r->c, &r->arena, st, ret);
    else if (rc == SQLITE_DONE)
        rc = SQLITE_CORRUPT;
    if (!rc && ret->ev.pos != pos[0])
        rc = SQLITE_CORRUPT;
    r->run = rc ? 0 : r->run - 1;
    if (!r->run && st)
        sqlite3_reset(st);
    return rc;
}

/* Reads up to one block's events, or PIECE_BYTES of them, inside a transaction. */
static enum tide_code fill_rows(struct reading *r, int64_t to, struct tide_err *err)
{
    int64_t pos[BLOCK_EVENTS], end = (r->next + BLOCK_EVENTS - 1) / BLOCK_EVENTS * BLOCK_EVENTS;
    int rc;

    end = end < to ? end : to;
    rc = positions(r, r->next, end, pos);
    for (size_t i = 0; !rc && r->next <= end && r->arena.used < PIECE_BYTES; i++) {
        struct row *row = &r->rows[r->n];

        rc = next_row(r, pos + i, (size_t)(end - r->next + 1), row);
        if (!rc && !r->chained)
            rc = digest_before(r->c, &r->w, row, r->before);
        if (!rc && !is_proved(r->s, &r->w, row, r->next, r->before))
            rc = SQLITE_CORRUPT;
        if (!rc && r->next == r->w.h.last_seq && memcmp(row->ev.digest, r->w.h.digest, DIGEST_SIZE) != 0)
            rc = SQLITE_CORRUPT;
        if (rc)
            break;
        r->chained = true;
        memcpy(r->before, row->ev.digest, DIGEST_SIZE);
        r->n++;
        r->next++;
    }
    if (r->run) /* it was cut short */
        sqlite3_reset(db_stmt(r->c, ST_EVENTS_AFTER));
    r->run = 0;
    return rc && !r->n ? event_damaged(r->s, r->c, &r->w.h, rc, r->next, err)
                       : TIDE_OK; /* whole ones before it go out first */
}

static enum tide_code next_piece(struct reading *r, const struct head *h, int64_t to, struct tide_err *err)
{
    enum tide_code code = db_reader(r->s, &r->c, err);

    if (code)
        return code;
    arena_reset(&r->arena);
    r->n = 0;
    if (!r->w.sid)
        code = head_again(r->s, r->c, h, &r->w, err);
    code = code ? code : fill_rows(r, to, err);
    db_reader_done(r->s, r->c);
    return code;
}

enum tide_code event_or_deleted(struct sqlite_store *s, const struct whead *w, enum tide_code code,
                                struct tide_err *err)
{
    struct whead now;
    struct tide_err why;
    struct conn *c = NULL;
    enum tide_code found;

    if (code != TIDE_CORRUPT || db_reader(s, &c, &why))
        return code;
    found = head_anew(s, c, &w->h, &now, &why);
    if (found == TIDE_NOT_FOUND || (!found && now.sid != w->sid))
        code = tide_fail_session(err, TIDE_NOT_FOUND, w->h.id, "was deleted while it was read");
    db_reader_done(s, c);
    return code;
}

enum tide_code sqlite_read(struct store *store, const struct head *h, int64_t from, int64_t to, store_event_fn *fn,
                           void *arg, struct tide_err *err)
{
    struct reading *r = mem_alloc(sizeof *r);
    enum tide_code code = TIDE_OK;
    bool stop = false;

    memset(r, 0, offsetof(struct reading, rows));
    r->s = sqlite_of(store);
    r->next = from;
    while (!code && !stop && r->next <= to) {
        code = next_piece(r, h, to, err);
        for (size_t i = 0; !code && !stop && i < r->n; i++)
            stop = fn(arg, &r->rows[i].ev) != 0;
    }
    code = event_or_deleted(r->s, &r->w, code, err);
    arena_done(&r->arena);
    free(r->walked);
    free(r);
    return code;
}

/* One event of any session at a time: its session may change with each. */
static enum tide_code next_of_all(struct sqlite_store *s, struct conn *c, struct arena *a, int64_t after,
                                  struct whead *w, struct row *row, bool *ret_end, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_EVENTS_AFTER);
    unsigned char before[DIGEST_SIZE];
    enum tide_code code = TIDE_OK;
    int rc;

    sqlite3_bind_int64(st, 1, after);
    sqlite3_bind_int64(st, 2, 1);
    rc = db_step(c, st);
    *ret_end = rc == SQLITE_DONE;
    rc = rc == SQLITE_ROW ? take_row(s, c, a, st, row) : rc == SQLITE_DONE ? SQLITE_OK : rc;
    sqlite3_reset(st);
    if (rc)
        return db_fail(s, c, rc, err, "read events");
    if (*ret_end)
        return TIDE_OK;
    if (row->ev.pos <= after) /* pages in disorder: the search would go round for ever */
        return db_fail(s, c, SQLITE_CORRUPT, err, "read events");
    if (row->sid != w->sid)
        code = head_by_sid(s, c, row->sid, w, err);
    if (code)
        return code;
    rc = digest_before(c, w, row, before);
    return rc || !is_proved(s, w, row, row->ev.seq, before)
               ? event_damaged(s, c, &w->h, rc ? rc : SQLITE_CORRUPT, row->ev.seq, err)
               : TIDE_OK;
}

/*
 * Positions are missing where sessions were deleted, or where a damaged page has lost its rows. Of a session that continues
 * after the gap the next event misses the one before it; here those are looked for whose last event lies in it.
 */
struct gaps {
    int64_t from[GAPS_MAX], to[GAPS_MAX];
    size_t n;
};

static void gap_add(struct gaps *g, int64_t from, int64_t to)
{
    size_t i =
        g->n < GAPS_MAX ? g->n++ : GAPS_MAX - 1; /* many: the last one grows over the rest, which is checked too */

    g->from[i] = g->n == GAPS_MAX && g->to[i] ? g->from[i] : from;
    g->to[i] = to;
}

static bool in_gap(const struct gaps *g, int64_t pos)
{
    for (size_t i = 0; i < g->n; i++) {
        if (pos >= g->from[i] && pos <= g->to[i])
            return true;
    }
    return false;
}

static enum tide_code gaps_check(struct sqlite_store *s, const struct gaps *g, struct tide_err *err)
{
    sqlite3_stmt *st;
    struct conn *c = NULL;
    enum tide_code code = g->n ? db_reader(s, &c, err) : TIDE_OK;
    int rc;

    if (code || !g->n)
        return code;
    st = db_stmt(c, ST_LAST_POSITIONS);
    while ((rc = db_step(c, st)) == SQLITE_ROW && !code) {
        int64_t pos = sqlite3_column_int64(st, 0);

        if (in_gap(g, pos)) /* not written since: positions rise with every commit */
            code = tide_fail(err, TIDE_CORRUPT, "'%s' is damaged: the event at position %" PRId64 " is missing",
                             s->path, pos);
    }
    if (!code && rc != SQLITE_DONE)
        code = db_fail(s, c, rc, err, "read events");
    sqlite3_reset(st);
    db_reader_done(s, c);
    return code;
}

/* After a gap: no digest covers a position, so the chain is asked whether this is where the event stands. */
static enum tide_code place_check(struct sqlite_store *s, struct conn *c, struct whead *w, const struct row *row,
                                  struct tide_err *err)
{
    unsigned char digest[DIGEST_SIZE];
    int64_t pos = 0;
    enum tide_code code = row->ev.seq > w->h.last_seq ? head_by_sid(s, c, row->sid, w, err) : TIDE_OK;
    int rc = code || row->ev.seq > w->h.last_seq ? SQLITE_CORRUPT : event_locate(c, w, row->ev.seq, &pos, digest);

    if (!code && (rc || pos != row->ev.pos))
        code = db_fail(s, c, rc ? rc : SQLITE_CORRUPT, err, "read events: one is out of its place");
    return code;
}

/* Nothing after this position: the end of the table must say the same as the search. */
static enum tide_code end_check(struct sqlite_store *s, struct conn *c, int64_t after, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(c, ST_LAST_EVENT);
    int rc = db_step(c, st);
    enum tide_code code = TIDE_OK;

    if (rc != SQLITE_ROW)
        code = db_fail(s, c, rc, err, "read events");
    else if (sqlite3_column_int64(st, 0) > after)
        code = db_fail(s, c, SQLITE_CORRUPT, err, "read events");
    sqlite3_reset(st);
    return code;
}

enum tide_code sqlite_read_all(struct store *store, int64_t after, uint64_t max, struct head *ret_session,
                               store_event_fn *fn, void *arg, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    struct conn *c = NULL;
    struct arena a = ARENA_INIT;
    struct gaps gaps = {.n = 0};
    enum tide_code code = TIDE_OK;
    bool end = false, stop = false;
    struct whead w = {.sid = 0};
    struct row row;

    for (uint64_t n = 0; !code && !stop && !end && (max == 0 || n < max); n += !w.hidden) {
        arena_reset(&a);
        code = db_reader(s, &c, err);
        if (code)
            break;
        code = next_of_all(s, c, &a, after, &w, &row, &end, err);
        if (!code && end)
            code = end_check(s, c, after, err);
        if (!code && !end && row.ev.pos > after + 1) {
            gap_add(&gaps, after + 1, row.ev.pos - 1);
            code = place_check(s, c, &w, &row, err);
        }
        if (!code && !end && row.prev && in_gap(&gaps, row.prev))
            code = db_fail(s, c, SQLITE_CORRUPT, err, "read events: some are missing");
        db_reader_done(s, c);
        if (!code && !end) {
            after = row.ev.pos;
            *ret_session = w.h;
            stop = !w.hidden && fn(arg, &row.ev) != 0;
        }
    }
    arena_done(&a);
    return code ? code : gaps_check(s, &gaps, err);
}

enum tide_code sqlite_last_position(struct store *store, int64_t *ret, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    struct conn *c = NULL;
    enum tide_code code = db_reader(s, &c, err);
    sqlite3_stmt *st;
    int rc;

    if (code)
        return code;
    st = db_stmt(c, ST_MAX_POS);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    else
        code = db_fail(s, c, rc, err, "read the last position");
    sqlite3_reset(st);
    db_reader_done(s, c);
    return code;
}
