/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an event is: from `blocks`, and where that cache is missing or wrong by walking the chain of `prev` back from the
 * head, or from the nearest whole block behind it. The same rows say which events are checkpoints: an index of them would
 * have a page to write for each session that makes some.
 */
#include "base/invariant.h"
#include "store/sqlite_db.h"

/* sid, seq, prev and digest of the event at pos; SQLITE_CORRUPT when there is none. */
int event_link(struct conn *c, int64_t pos, int64_t *sid, int64_t *seq, int64_t *prev, unsigned char *digest)
{
    sqlite3_stmt *st = db_stmt(c, ST_EVENT_LINK);
    int rc;

    sqlite3_bind_int64(st, 1, pos);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW) {
        *sid = sqlite3_column_int64(st, 0);
        *seq = sqlite3_column_int64(st, 1);
        *prev = sqlite3_column_int64(st, 2);
        rc = !digest || db_digest(digest, st, 3) ? SQLITE_OK : SQLITE_CORRUPT;
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT;
    }
    sqlite3_reset(st);
    return rc;
}

static size_t unpack_positions(struct str packed, int64_t *out)
{
    const unsigned char *p = (const unsigned char *)packed.ptr, *end = p + packed.len;
    int64_t pos = 0;
    size_t n = 0;

    while (p < end && n < BLOCK_EVENTS) {
        uint64_t d = 0;

        for (unsigned shift = 0; p < end && shift < 63; shift += 7) {
            d |= (uint64_t)(*p & 0x7f) << shift;
            if (!(*p++ & 0x80))
                break;
        }
        pos += (int64_t)d;
        out[n++] = pos;
    }
    return p == end ? n : 0;
}

/* The block that ends at or after `to`, when it is there and whole. */
bool block_positions(struct conn *c, const struct whead *w, int64_t from, int64_t to, int64_t *ret_pos)
{
    int64_t end = (to + BLOCK_EVENTS - 1) / BLOCK_EVENTS * BLOCK_EVENTS, first = end - BLOCK_EVENTS + 1;
    int64_t all[BLOCK_EVENTS], sid, seq, prev;
    sqlite3_stmt *st;
    size_t n = 0;

    first = first < w->h.first_seq ? w->h.first_seq : first;
    if (end > w->h.last_seq || from < first)
        return false;
    st = db_stmt(c, ST_BLOCK);
    sqlite3_bind_int64(st, 1, w->sid);
    sqlite3_bind_int64(st, 2, end);
    if (db_step(c, st) == SQLITE_ROW)
        n = unpack_positions(db_text(st, 0), all);
    sqlite3_reset(st);
    if ((int64_t)n != end - first + 1 || event_link(c, all[n - 1], &sid, &seq, &prev, NULL) || sid != w->sid ||
        seq != end)
        return false;
    memcpy(ret_pos, all + (from - first), (size_t)(to - from + 1) * sizeof *ret_pos);
    return true;
}

static unsigned place(int64_t seq, bool deleted)
{
    return (unsigned)((seq - 1) % BLOCK_EVENTS) + (deleted ? BLOCK_EVENTS : 0);
}

void checkpoint_bits_note(unsigned char marks[CHECKPOINT_BITS_SIZE], int64_t seq, struct str kind)
{
    bool deleted = str_eq(kind, STR("checkpoint.deleted"));
    unsigned i = place(seq, deleted);

    if (deleted || str_eq(kind, STR("checkpoint")))
        marks[i / 8] |= (unsigned char)(0x80 >> i % 8); /* the first bit is the highest: hex() shows them in order */
}

bool checkpoint_bits_has(const unsigned char marks[CHECKPOINT_BITS_SIZE], int64_t seq, bool deleted)
{
    unsigned i = place(seq, deleted);

    return (marks[i / 8] & 0x80 >> i % 8) != 0;
}

bool block_checkpoint_bits(struct conn *c, const struct whead *w, int64_t seq,
                           unsigned char ret_marks[CHECKPOINT_BITS_SIZE])
{
    int64_t end = (seq + BLOCK_EVENTS - 1) / BLOCK_EVENTS * BLOCK_EVENTS;
    sqlite3_stmt *st = end > w->h.last_seq ? NULL : db_stmt(c, ST_BLOCK);
    struct str marks = STR("");

    if (!st)
        return false;
    sqlite3_bind_int64(st, 1, w->sid);
    sqlite3_bind_int64(st, 2, end);
    if (db_step(c, st) == SQLITE_ROW)
        marks = db_text(st, 1);
    if (marks.len == CHECKPOINT_BITS_SIZE)
        memcpy(ret_marks, marks.ptr, CHECKPOINT_BITS_SIZE);
    sqlite3_reset(st);
    return marks.len == CHECKPOINT_BITS_SIZE;
}

int checkpoint_bits_find(struct conn *c, int64_t from, size_t n, const int64_t *pos,
                         unsigned char ret_marks[CHECKPOINT_BITS_SIZE])
{
    sqlite3_stmt *st = db_stmt(c, ST_EVENT_KIND);
    int rc = SQLITE_ROW;

    memset(ret_marks, 0, CHECKPOINT_BITS_SIZE);
    for (size_t i = 0; i < n && rc == SQLITE_ROW; i++) {
        sqlite3_bind_int64(st, 1, pos[i]);
        rc = db_step(c, st);
        if (rc == SQLITE_ROW)
            checkpoint_bits_note(ret_marks, from + (int64_t)i, db_text(st, 0));
        sqlite3_reset(st);
    }
    return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

int block_write(struct conn *c, int64_t sid, int64_t end, const int64_t *pos, size_t n,
                const unsigned char marks[CHECKPOINT_BITS_SIZE])
{
    sqlite3_stmt *st = db_stmt(c, ST_BLOCK_INSERT);
    unsigned char packed[BLOCK_EVENTS * 10];
    size_t len = 0;
    int64_t before = 0;

    INVARIANT(n <= BLOCK_EVENTS && end % BLOCK_EVENTS == 0);
    for (size_t i = 0; i < n; i++) { /* differences as little-endian base 128 */
        uint64_t d = (uint64_t)(pos[i] - before);

        before = pos[i];
        for (; d >= 0x80; d >>= 7)
            packed[len++] = (unsigned char)(d | 0x80);
        packed[len++] = (unsigned char)d;
    }
    sqlite3_bind_int64(st, 1, sid);
    sqlite3_bind_int64(st, 2, end);
    sqlite3_bind_blob(st, 3, packed, (int)len, SQLITE_STATIC);
    sqlite3_bind_blob(st, 4, marks, CHECKPOINT_BITS_SIZE, SQLITE_STATIC);
    return db_run(c, ST_BLOCK_INSERT);
}

/* The nearest whole block after seq is a shorter way back than the head. */
static void nearer_start(struct conn *c, const struct whead *w, int64_t seq, int64_t *at, int64_t *pos)
{
    int64_t end = (seq + BLOCK_EVENTS - 1) / BLOCK_EVENTS * BLOCK_EVENTS, last[1];

    if (end + BLOCK_EVENTS < w->h.last_seq && block_positions(c, w, end + BLOCK_EVENTS, end + BLOCK_EVENTS, last)) {
        *at = end + BLOCK_EVENTS;
        *pos = last[0];
    }
}

int event_positions(struct conn *c, const struct whead *w, int64_t from, int64_t to, int64_t *ret_pos)
{
    int64_t at = w->h.last_seq, pos = w->last_pos, sid, seq, prev;
    int rc;

    INVARIANT(from <= to && to - from < BLOCK_EVENTS);
    if (block_positions(c, w, from, to, ret_pos))
        return SQLITE_OK;
    nearer_start(c, w, to, &at, &pos);
    for (; at >= from; at--, pos = prev) {
        rc = event_link(c, pos, &sid, &seq, &prev, NULL);
        if (rc)
            return rc;
        if (sid != w->sid || seq != at || (prev >= pos))
            return SQLITE_CORRUPT;
        if (at <= to)
            ret_pos[at - from] = pos;
    }
    return SQLITE_OK;
}

int block_make(struct conn *c, const struct whead *w, int64_t end)
{
    int64_t pos[BLOCK_EVENTS], from = end - BLOCK_EVENTS + 1;
    unsigned char marks[CHECKPOINT_BITS_SIZE];
    size_t n;
    int rc;

    from = from < w->h.first_seq ? w->h.first_seq : from;
    n = (size_t)(end - from + 1);
    rc = event_positions(c, w, from, end, pos);
    rc = rc ? rc : checkpoint_bits_find(c, from, n, pos, marks);
    return rc ? rc : block_write(c, w->sid, end, pos, n, marks);
}

int event_locate(struct conn *c, const struct whead *w, int64_t seq, int64_t *ret_pos,
                 unsigned char ret_digest[DIGEST_SIZE])
{
    int64_t sid, got, prev;
    int rc = event_positions(c, w, seq, seq, ret_pos);

    rc = rc ? rc : event_link(c, *ret_pos, &sid, &got, &prev, ret_digest);
    return rc ? rc : sid == w->sid && got == seq ? SQLITE_OK : SQLITE_CORRUPT;
}
