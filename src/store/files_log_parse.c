/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lines of a log say. What was written at once is a unit: its lines say how many stand before them in it and how many
 * follow. A unit that is not whole, with nothing of a later unit behind it, is what a cut left of a write that was not
 * acknowledged: it is torn, as a whole. One that has a later unit behind it was whole once: that is damage, and
 * refused.
 *
 * Lines are looked at quickly on the way; the digests of the last unit are computed, those of others when they are read.
 */
#include <inttypes.h>

#include "store/files_store.h"

/* ---- lines ---- */

void walk_done(struct line_walk *w)
{
    buf_done(&w->bytes);
}

/* More of the file behind what is there. False: there is none. */
static bool walk_more(struct line_walk *w, struct tide_err *err)
{
    size_t used = (size_t)(w->next - w->base), left = w->bytes.len - used, got = 0;
    size_t want = left > w->piece ? 2 * left : w->piece; /* few are read often, many seldom: pieces grow */
    int64_t at = w->base + (int64_t)w->bytes.len;
    char *room;

    if (at >= w->limit)
        return false;
    if (used)
        memmove(w->bytes.ptr, w->bytes.ptr + used, w->bytes.len - used);
    w->bytes.len -= used;
    w->base = w->next;
    w->piece = 2 * w->piece < PIECE_BYTES ? 2 * w->piece : PIECE_BYTES;
    want = (int64_t)want > w->limit - at ? (size_t)(w->limit - at) : want;
    room = buf_reserve(&w->bytes, want);
    if (room && w->text.len) {
        memcpy(room, w->text.ptr + at, want);
        got = want;
    } else if (!room || w->s->base.env->ops->pread(w->file, room, want, at, &got, err)) {
        return false;
    }
    w->bytes.len += got;
    return got > 0;
}

/* A last line without its newline: other programs leave them. */
static bool walk_rest(struct line_walk *w, struct str *ret)
{
    size_t used = (size_t)(w->next - w->base);

    *ret = (struct str){w->bytes.ptr ? w->bytes.ptr + used : "", w->bytes.len - used};
    w->at = w->next;
    w->next += (int64_t)ret->len;
    w->unended = true;
    return ret->len > 0;
}

bool walk_next(struct line_walk *w, struct str *ret, struct tide_err *err)
{
    size_t looked = 0;

    err->code = TIDE_OK;
    if (!w->bytes.max) {
        w->bytes = (struct buf)BUF_INIT(SIZE_MAX / 4);
        w->piece = PIECE_BYTES / 32;
        w->base = w->next;
    }
    for (;;) {
        size_t used = (size_t)(w->next - w->base), left = w->bytes.len - used;
        const char *from = w->bytes.ptr ? w->bytes.ptr + used : "";
        const char *end = left > looked ? memchr(from + looked, '\n', left - looked) : NULL;

        if (end) {
            *ret = (struct str){from, (size_t)(end - from)};
            w->at = w->next;
            w->next += (int64_t)ret->len + 1;
            if (ret->len)
                return true;
            looked = 0; /* an empty line says nothing */
            continue;
        }
        looked = left;
        if (!walk_more(w, err))
            return !err->code && walk_rest(w, ret);
    }
}

/* A line as far as the chain needs it; the body is not looked at. */
static bool look_at(struct arena *a, struct str line, int64_t *ret_seq, struct str *ret_kind, struct line_fields *m)
{
    struct event ev;

    *ret_kind = line_kind(line);
    if (ret_kind->len && line_peek(line, ret_seq, m))
        return true;
    arena_reset(a);
    if (line_read(a, line, &ev, m) != LINE_EVENT)
        return false;
    *ret_seq = ev.seq;
    *ret_kind = ev.kind;
    return true;
}

/* ---- the index ---- */

static struct files_block *block_for(struct files_log *l, int64_t number)
{
    if (!l->n_blocks)
        l->first_block = number;
    if (number < l->first_block || number > l->first_block + (int64_t)l->n_blocks)
        return NULL;
    if (number == l->first_block + (int64_t)l->n_blocks) {
        MEM_ROOM(l->blocks, l->n_blocks, l->cap_blocks);
        l->blocks[l->n_blocks++] = (struct files_block){.offset = -1};
    }
    return &l->blocks[number - l->first_block];
}

void log_note_line(struct files_log *l, int64_t seq, int64_t offset, struct str kind)
{
    struct files_block *b = block_for(l, (seq - 1) / BLOCK_EVENTS);
    unsigned bit = (unsigned)((seq - 1) % BLOCK_EVENTS);

    if (!b)
        return;
    if (b->offset < 0)
        b->offset = offset;
    if (str_eq(kind, STR("checkpoint")))
        b->marks[bit / 8] |= (unsigned char)(1u << bit % 8);
    else if (str_eq(kind, STR("checkpoint.deleted")))
        b->marks[32 + bit / 8] |= (unsigned char)(1u << bit % 8);
}

/* From this one on. */
static void log_unnote(struct files_log *l, int64_t seq)
{
    int64_t number = (seq - 1) / BLOCK_EVENTS;
    unsigned from = (unsigned)((seq - 1) % BLOCK_EVENTS);
    struct files_block *b;

    if (number < l->first_block || number >= l->first_block + (int64_t)l->n_blocks)
        return;
    l->n_blocks = (size_t)(number - l->first_block) + (from > 0);
    if (!from)
        return;
    b = &l->blocks[number - l->first_block];
    for (unsigned bit = from; bit < BLOCK_EVENTS; bit++) {
        b->marks[bit / 8] &= (unsigned char)~(1u << bit % 8);
        b->marks[32 + bit / 8] &= (unsigned char)~(1u << bit % 8);
    }
}

/* ---- one unit ---- */

struct unit {
    int64_t from, to;    /* offsets */
    int64_t first, last; /* seqs */
    int64_t last_line;
    unsigned char digest[DIGEST_SIZE];
    struct origin_proof proof;
    int64_t epoch;
    bool foreign;
};

struct reading {
    struct files_store *s;
    struct files_log *l;
    struct line_walk w;
    struct arena arena;
};

/* The unit that begins at w->next; false: it is not whole. */
static bool read_unit(struct reading *r, int64_t seq, struct unit *u, struct tide_err *err)
{
    struct line_fields m;
    struct str line, kind;
    int64_t got, left = 0;

    *u = (struct unit){.from = r->w.next, .first = seq};
    do {
        if (!walk_next(&r->w, &line, err))
            return false;
        if (!look_at(&r->arena, line, &got, &kind, &m) || got != seq || m.at != seq - u->first ||
            (seq > u->first && m.more != left))
            return false;
        if (m.verified ? r->w.unended : r->l->line_epoch != 0)
            return false; /* ours end; behind lines of ours there are no others */
        left = m.more - 1;
        log_note_line(r->l, seq, r->w.at, kind);
        u->foreign |= !m.verified;
        u->last_line = r->w.at;
        u->epoch = m.epoch;
        memcpy(u->digest, m.digest, DIGEST_SIZE);
        u->proof = m.proof;
        u->last = seq++;
    } while (left >= 0);
    u->to = r->w.next;
    return true;
}

/* Whether each of its lines is what its digest says. */
static bool prove_unit(struct reading *r, const struct unit *u, const unsigned char before[DIGEST_SIZE],
                       struct tide_err *err)
{
    struct line_walk w = {.s = r->s, .file = r->l->file, .next = u->from, .limit = u->to};
    unsigned char chain[DIGEST_SIZE], digest[DIGEST_SIZE];
    bool right = true;
    struct line_fields m;
    struct event ev = {0};
    struct str line;

    memcpy(chain, before, DIGEST_SIZE);
    while (right && w.next < u->to) {
        arena_reset(&r->arena);
        right = walk_next(&w, &line, err) && line_read(&r->arena, line, &ev, &m) == LINE_EVENT;
        if (right)
            r->l->h.updated_ms = ev.ts_ms;
        if (!right || !m.verified)
            break;
        ev.epoch = m.epoch;
        event_digest(digest, &r->s->base.key, chain, str_from(r->l->id), &ev);
        right = memcmp(digest, m.digest, DIGEST_SIZE) == 0;
        memcpy(chain, digest, DIGEST_SIZE);
    }
    walk_done(&w);
    return right;
}

/* Whether something behind a unit that is not whole belongs to a later one. */
static bool has_later(struct reading *r, const struct unit *u, struct tide_err *err)
{
    struct line_walk w = {.s = r->s, .file = r->l->file, .next = u->from, .limit = r->w.limit};
    struct line_fields m;
    struct str line, kind;
    bool later = false;
    int64_t seq;

    while (!later && walk_next(&w, &line, err))
        later = look_at(&r->arena, line, &seq, &kind, &m) && seq - m.at > u->first;
    walk_done(&w);
    return later;
}

/* The first line says where the session begins: of a fork it is not 1, and it stands on its parent's event. */
static void take_first(struct reading *r, struct tide_err *err)
{
    struct line_walk w = {.s = r->s, .file = r->l->file, .limit = r->w.limit};
    struct head *h = &r->l->h;
    struct event ev = {.seq = 1};
    struct line_fields m = {0};
    struct str line;

    arena_reset(&r->arena);
    if (!walk_next(&w, &line, err) || line_read(&r->arena, line, &ev, &m) != LINE_EVENT) {
        ev.seq = 1;
        m = (struct line_fields){0};
    }
    h->first_seq = ev.seq;
    h->last_seq = ev.seq - 1;
    h->created_ms = h->updated_ms = ev.ts_ms;
    memcpy(h->parent_id, m.parent, sizeof h->parent_id);
    h->parent_seq = m.parent_seq;
    memcpy(h->first_before, m.before, DIGEST_SIZE);
    memcpy(h->digest, m.before, DIGEST_SIZE);
    walk_done(&w);
}

static void take_unit(struct files_log *l, const struct unit *u)
{
    l->h.last_seq = u->last;
    l->h.epoch = u->epoch > l->h.epoch ? u->epoch : l->h.epoch;
    l->line_epoch = u->epoch;
    memcpy(l->h.digest, u->digest, DIGEST_SIZE);
    l->h.proof = u->proof;
    l->end = u->to;
    l->last_unit = u->from;
    l->last_line = u->last_line;
    l->unverified |= u->foreign;
    l->mark_wrong |= !mark_fits(l, u->first, u->last, u->digest);
    if (u->last <= l->acked)
        l->acked_end = u->to;
}

static enum tide_code damaged(struct files_log *l, int64_t seq, struct tide_err *err)
{
    refuse_damaged(&l->h, seq, &l->damage);
    return tide_err_copy(err, &l->damage);
}

/*
 * What another program wrote and we cannot read is not a remainder of our own write: it stays as it is, and is
 * reported. Only its last line may still be growing.
 */
static enum tide_code unreadable(struct reading *r, struct tide_err *err)
{
    struct files_log *l = r->l;
    struct line_walk w = {.s = r->s, .file = l->file, .next = l->end, .limit = r->w.limit};
    struct str line;

    if (walk_next(&w, &line, err) && (!w.unended || !l->end))
        tide_fail_session(&l->damage, TIDE_CORRUPT, l->id,
                          ": line %" PRId64 " of its log, which another program wrote, is not an event: %s; repair "
                          "the line, or remove the file",
                          l->h.last_seq - l->h.first_seq + 2, line_why_not(line, l->h.last_seq + 1));
    walk_done(&w);
    return l->damage.code ? tide_err_copy(err, &l->damage) : err->code;
}

/* Its lines look like lines, and are not what was written. */
static void drop_unit(struct files_log *l, const struct unit *u, const struct head *before)
{
    l->h.last_seq = u->first - 1;
    memcpy(l->h.digest, before->digest, DIGEST_SIZE);
    l->h.proof = before->proof;
    l->end = u->from;
    log_unnote(l, u->first);
}

/*
 * Whether the first line is what was written under this id, which the digests hold. A session gets its name when all that it
 * begins with is on disk: no cut leaves a first line that is not.
 */
static bool fits_name(struct reading *r, struct tide_err *err)
{
    struct line_walk w = {.s = r->s, .file = r->l->file, .limit = r->w.limit};
    unsigned char digest[DIGEST_SIZE];
    struct line_fields m;
    struct event ev;
    struct str line;
    bool fits = true;

    arena_reset(&r->arena);
    if (walk_next(&w, &line, err) && line_read(&r->arena, line, &ev, &m) == LINE_EVENT && m.verified) {
        ev.epoch = m.epoch;
        event_digest(digest, &r->s->base.key, m.before, str_from(r->l->id), &ev);
        fits = memcmp(digest, m.digest, DIGEST_SIZE) == 0;
    }
    walk_done(&w);
    return fits;
}

/* Nothing of it is this session's, and nothing of it may be cut off. */
static enum tide_code misnamed(struct files_log *l, struct tide_err *err)
{
    l->h.last_seq = l->h.first_seq - 1;
    l->end = 0;
    log_unnote(l, l->h.first_seq);
    tide_fail_session(&l->damage, TIDE_CORRUPT, l->id,
                      ": its log does not match its name: it belongs to another session or store, or its first event "
                      "was changed: give the file its own name, or put the right one there");
    return tide_err_copy(err, &l->damage);
}

/* What could not be read to its end is not known: nothing of it was proved. */
static void unread(struct files_log *l, const struct files_log *before)
{
    l->h = before->h;
    l->end = before->end;
    l->last_unit = before->last_unit;
    l->last_line = before->last_line;
    l->line_epoch = before->line_epoch;
    l->unverified = before->unverified;
    log_unnote(l, l->h.last_seq + 1);
}

/* What is missing or not right there: of what was acknowledged it is damage, else what a cut left. */
static bool was_acked(const struct files_log *l)
{
    return l->h.last_seq < l->acked;
}

static enum tide_code lost_end(struct files_log *l, struct tide_err *err)
{
    l->torn = true;
    return mark_lost(l, err);
}

enum tide_code log_read_on(struct files_store *s, struct files_log *l, int64_t size, int64_t limit,
                           struct tide_err *err)
{
    struct reading r = {.s = s, .l = l, .arena = ARENA_INIT};
    const struct files_log known = *l;
    struct head before;
    struct unit u, last = {0};
    enum tide_code code = TIDE_OK;
    bool ended; /* before the limit, by something that is no whole unit */

    r.w = (struct line_walk){.s = s, .file = l->file, .next = l->end, .limit = size};
    err->code = TIDE_OK;
    if (!l->end && size)
        take_first(&r, err);
    before = l->h;
    while (!err->code && l->end < size && l->h.last_seq < limit && read_unit(&r, l->h.last_seq + 1, &u, err)) {
        before = l->h;
        last = u;
        take_unit(l, &u);
    }
    log_unnote(l, l->h.last_seq + 1);
    ended = l->end < size && l->h.last_seq < limit;
    if (!err->code && ended && !l->hidden && (l->unverified || !l->end))
        code = unreadable(&r, err);
    else if (!err->code && ended && has_later(&r, &u, err))
        code = damaged(l, l->h.last_seq + 1, err);
    else if (!err->code && ended && was_acked(l))
        code = lost_end(l, err);
    else if (!err->code && last.to && !prove_unit(&r, &last, before.digest, err) && !err->code) {
        bool fits = fits_name(&r, err);

        drop_unit(l, &last, &before);
        if (!fits)
            code = misnamed(l, err);
        else if (was_acked(l))
            code = lost_end(l, err);
    }
    if (!code && !err->code && l->mark_wrong && !s->accept_loss)
        code = damaged(l, l->mark.seq, err);
    if (!code && err->code) {
        code = err->code;
        unread(l, &known);
    }
    l->torn = l->end < size && l->h.last_seq < limit;
    walk_done(&r.w);
    arena_done(&r.arena);
    return code;
}
