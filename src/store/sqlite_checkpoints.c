/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of a session, newest first. Which events are some is said by the marks in `blocks`, block after block from the
 * end on; where they are missing, and after the last full block, the events are looked at one by one.
 */
#include <stddef.h>

#include "store/sqlite_db.h"

#define PIECE_BLOCKS 64 /* looked through before others get their turn */

struct listing {
    struct sqlite_store *s;
    struct conn *c; /* inside a transaction */
    struct whead w;
    bool deleted;
    struct arena arena;
    size_t n;
    int64_t next; /* seq to look at next */

    /* Of the block that `next` is in, the events from `from` on. */
    int64_t from, pos[BLOCK_EVENTS];
    unsigned char marks[CHECKPOINT_BITS_SIZE];
    struct whead reached; /* the session as it was at the last event that was located: the way back begins there */
    struct event events[BLOCK_EVENTS]; /* last: it is not cleared */
};

static int64_t count_marks(const struct listing *r)
{
    int64_t n = 0;

    for (int64_t seq = r->from; seq <= r->next; seq++)
        n += checkpoint_bits_has(r->marks, seq, r->deleted);
    return n;
}

static int locate_block(struct listing *r, bool known)
{
    int rc = event_positions(r->c, &r->reached, r->from, r->next, r->pos);

    return rc || known ? rc : checkpoint_bits_find(r->c, r->from, (size_t)(r->next - r->from + 1), r->pos, r->marks);
}

/* The marks of the block that r->next is in up to there, and unless they are all that is wanted or say nothing, positions. */
static int load_block(struct listing *r, bool only_marks)
{
    int64_t first = (r->next - 1) / BLOCK_EVENTS * BLOCK_EVENTS + 1;
    bool known = block_checkpoint_bits(r->c, &r->w, r->next, r->marks);
    int rc;

    r->from = first < r->w.h.first_seq ? r->w.h.first_seq : first;
    if (known && (only_marks || !count_marks(r)))
        return SQLITE_OK;
    rc = locate_block(r, known);
    if (rc && r->from < r->next) { /* the chain is broken: as far as it goes, one by one */
        r->from = r->next;
        rc = locate_block(r, known);
    }
    if (rc) {
        r->from = r->next + 1; /* there is none */
        return rc;
    }
    r->reached.h.last_seq = r->from;
    r->reached.last_pos = r->pos[0];
    return SQLITE_OK;
}

/* The event at r->next; left out when its mark was wrong. */
static int take_marked(struct listing *r)
{
    struct event *ev = &r->events[r->n];
    int rc = event_read(r->s, r->c, &r->w, r->pos[r->next - r->from], r->next, &r->arena, ev);

    r->n += !rc && str_eq(ev->kind, r->deleted ? STR("checkpoint.deleted") : STR("checkpoint"));
    return rc;
}

/* Reads a piece of them, inside a transaction. */
static enum tide_code checkpoint_piece(struct listing *r, struct tide_err *err)
{
    int64_t end = r->next - PIECE_BLOCKS * BLOCK_EVENTS;
    enum tide_code code = db_reader(r->s, &r->c, err);
    int rc = SQLITE_OK;

    if (code)
        return code;
    end = end < r->w.h.first_seq ? r->w.h.first_seq - 1 : end;
    arena_reset(&r->arena);
    r->n = 0;
    while (r->next > end && r->n < BLOCK_EVENTS && r->arena.used < PIECE_BYTES) {
        rc = r->next < r->from ? load_block(r, false) : SQLITE_OK;
        if (!rc && checkpoint_bits_has(r->marks, r->next, r->deleted))
            rc = take_marked(r);
        if (rc)
            break;
        r->next--;
    }
    if (rc && !r->n) /* whole ones before it go out first */
        code = event_damaged(r->s, r->c, &r->w.h, rc, r->next, err);
    db_reader_done(r->s, r->c);
    return code;
}

/* How many there are in all; a transaction for each PIECE_BLOCKS. */
static enum tide_code count_all(struct listing *r, int64_t *ret_total, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    int64_t total = 0;

    while (!code && r->next >= r->w.h.first_seq) {
        code = db_reader(r->s, &r->c, err);
        if (code)
            return code;
        for (int i = 0; !code && i < PIECE_BLOCKS && r->next >= r->w.h.first_seq; i++) {
            int rc = load_block(r, true);

            if (rc)
                code = event_damaged(r->s, r->c, &r->w.h, rc, r->next, err);
            total += code ? 0 : count_marks(r);
            r->next = r->from - 1;
        }
        db_reader_done(r->s, r->c);
    }
    *ret_total = total;
    return code;
}

enum tide_code sqlite_checkpoint_seq(struct store *store, const struct head *h, struct str id, int64_t *ret_seq,
                                     struct tide_err *err)
{
    struct sqlite_store *s = sqlite_of(store);
    struct conn *c = NULL;
    enum tide_code code = db_reader(s, &c, err);
    struct whead w;
    sqlite3_stmt *st;
    int rc;

    if (code)
        return code;
    code = head_again(s, c, h, &w, err);
    st = db_stmt(c, ST_CHECKPOINT_SEQ);
    sqlite3_bind_int64(st, 1, w.sid);
    sqlite3_bind_text(st, 2, id.ptr, (int)id.len, SQLITE_STATIC);
    rc = code ? SQLITE_DONE : db_step(c, st);
    *ret_seq = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = db_fail(s, c, rc, err, "look for checkpoints");
    sqlite3_reset(st);
    db_reader_done(s, c);
    return code;
}

static void begin_at(struct listing *r, int64_t seq)
{
    r->next = seq < r->w.h.last_seq ? seq : r->w.h.last_seq;
    r->from = INT64_MAX; /* no block yet */
    r->reached = r->w;
}

enum tide_code sqlite_checkpoints(struct store *store, const struct head *h, bool deleted, int64_t to,
                                  store_event_fn *fn, void *arg, int64_t *ret_total, struct tide_err *err)
{
    struct listing *r = mem_alloc(sizeof *r);
    enum tide_code code = TIDE_OK;
    bool stop = fn == NULL;

    memset(r, 0, offsetof(struct listing, events));
    r->s = sqlite_of(store);
    r->deleted = deleted;
    code = db_reader(r->s, &r->c, err);
    if (!code) {
        code = head_again(r->s, r->c, h, &r->w, err);
        db_reader_done(r->s, r->c);
    }
    begin_at(r, h->last_seq);
    if (!code && ret_total)
        code = count_all(r, ret_total, err);
    begin_at(r, to);
    while (!code && !stop && r->next >= h->first_seq) {
        code = checkpoint_piece(r, err);
        for (size_t i = 0; !code && !stop && i < r->n; i++)
            stop = fn(arg, &r->events[i]) != 0;
    }
    code = event_or_deleted(r->s, &r->w, code, err);
    arena_done(&r->arena);
    free(r);
    return code;
}
