/* SPDX-License-Identifier: Apache-2.0 */
/* Heads, events and checkpoints. Events come in pieces, each read with the store's lock and handed out without it. */
#include <inttypes.h>
#include <stdio.h>

#include "store/files_store.h"

/* ---- where a session stands ---- */

static enum tide_code add_holder(struct files_store *s, struct files_log *l, struct head *ret, struct tide_err *err)
{
    struct files_lease lease = l->lease;
    enum tide_code code = lease_is_ours(s, l) ? TIDE_OK : lease_read(s, l->id, &lease, err);

    if (code)
        return code;
    ret->epoch = lease.epoch > ret->epoch ? lease.epoch : ret->epoch;
    ret->held = lease.boot[0] != 0;
    if (!ret->held)
        return TIDE_OK;
    code = boot_alive(s, lease.boot, &ret->holder_alive, ret->holder, err);
    if (strcmp(lease.boot, s->base.boot_id) == 0 && orphan_is(&s->orphans, l->id, lease.epoch))
        ret->holder_alive = false; /* ours, and no handle of ours knows of it */
    return code;
}

/* With s->mu. *ret_log may be NULL. */
static enum tide_code find_log(struct files_store *s, struct str id, struct files_log **ret_log, struct tide_err *err)
{
    struct files_log *l = log_of(s, id);
    enum tide_code code = log_refresh(s, l, false, err);

    *ret_log = l;
    if (code && !(code == TIDE_CORRUPT && l->h.last_seq >= l->h.first_seq && l->exists)) /* what is whole can be read */
        return code;
    return l->exists && !l->hidden ? TIDE_OK : fail_no_session(id, s->dir, l->exists, err);
}

enum tide_code files_head(struct store *store, struct str id, struct head *ret, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct files_log *l;
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    code = find_log(s, id, &l, err);
    if (!code) {
        *ret = l->h;
        ret->unverified = l->unverified;
        code = add_holder(s, l, ret, err);
    }
    if (!code && l->damage.code) {
        ret->last_seq = l->h.last_seq + 1; /* the damaged one: reading up to it says what is wrong */
        ret->damaged = true;
    }
    pthread_mutex_unlock(&s->mu);
    return code;
}

/* ---- events ---- */

struct piece {
    struct event events[BLOCK_EVENTS];
    size_t n;
    struct arena arena;
};

/* Whether the line is what its digest says, standing on `before`. */
static bool is_proved(struct files_store *s, const char *id, struct event *ev, const struct line_fields *m,
                      const unsigned char before[DIGEST_SIZE])
{
    unsigned char digest[DIGEST_SIZE];

    ev->epoch = m->epoch;
    if (!m->verified) { /* somebody else's: as if we had written it */
        event_digest(ev->digest, &s->base.key, before, str_from(id), ev);
        return true;
    }
    event_digest(digest, &s->base.key, before, str_from(id), ev);
    memcpy(ev->digest, digest, DIGEST_SIZE);
    return memcmp(digest, m->digest, DIGEST_SIZE) == 0;
}

static enum tide_code damaged(const struct files_log *l, int64_t seq, struct tide_err *err)
{
    const struct head *h = &l->h;

    if (l->damage.code && seq > h->last_seq)
        return tide_err_copy(err, &l->damage);
    return refuse_damaged(h, seq, err);
}

/* Lines without digests from the first on: each stands on the one before, as if we had written them. */
static enum tide_code chain_to(struct files_store *s, struct files_log *l, int64_t seq,
                               unsigned char before[DIGEST_SIZE], struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_walk w = {.s = s, .file = l->file, .text = {l->text, l->text_len}, .limit = l->end};
    struct line_fields m;
    struct event ev = {.seq = 0};
    struct str line;
    enum tide_code code = TIDE_OK;

    memcpy(before, l->h.first_before, DIGEST_SIZE);
    while (!code && ev.seq < seq - 1) {
        arena_reset(&a);
        if (!walk_next(&w, &line, err) || line_read(&a, line, &ev, &m) != LINE_EVENT)
            code = err->code ? err->code : damaged(l, ev.seq + 1, err);
        else if (!is_proved(s, l->id, &ev, &m, before))
            code = damaged(l, ev.seq, err);
        memcpy(before, ev.digest, DIGEST_SIZE);
    }
    walk_done(&w);
    return code;
}

/* Of a line that is not written as we do: by another program, or with a blank more. */
static bool read_seq(struct arena *a, struct str line, int64_t *ret_seq, struct line_fields *m)
{
    struct event ev;

    if (line_read(a, line, &ev, m) != LINE_EVENT)
        return false;
    *ret_seq = ev.seq;
    return true;
}

/* Lines from the block of `seq` on; *before is the digest of the event before seq, *ret_mark what its line says. */
static enum tide_code begin_at(struct files_store *s, struct files_log *l, int64_t seq, struct line_walk *w,
                               unsigned char before[DIGEST_SIZE], struct line_fields *ret_mark, struct tide_err *err)
{
    struct arena a = ARENA_INIT;
    int64_t from = seq > l->h.first_seq ? seq - 1 : seq, at = 0;
    struct files_block b;
    struct line_fields m = {0};
    struct str line;
    enum tide_code code = log_block(s, l, (from - 1) / BLOCK_EVENTS, &b, err);

    if (code)
        return code;
    *w = (struct line_walk){.s = s, .file = l->file, .text = {l->text, l->text_len}, .next = b.offset, .limit = l->end};
    memcpy(before, l->h.first_before, DIGEST_SIZE);
    while (!code && from < seq && at < from) {
        arena_reset(&a);
        if (!walk_next(w, &line, err))
            code = err->code ? err->code : damaged(l, at + 1, err);
        else if (!line_peek(line, &at, &m) && !read_seq(&a, line, &at, &m))
            code = damaged(l, at + 1, err);
        if (!code)
            memcpy(before, m.digest, DIGEST_SIZE);
    }
    arena_done(&a);
    *ret_mark = m;
    if (code || !l->unverified || seq <= l->h.first_seq)
        return code;
    if (l->chain_seq != seq - 1)
        return chain_to(s, l, seq, before, err);
    memcpy(before, l->chain, DIGEST_SIZE);
    return TIDE_OK;
}

/* Whether a line continues with the write that the one before it is of, or begins one where that has ended. */
static bool goes_on(const struct line_fields *before, const struct line_fields *m)
{
    if (!m->verified)
        return true;
    return before->more ? m->at == before->at + 1 && m->more == before->more - 1 : m->at == 0;
}

static enum tide_code fill_cache(struct files_store *s, struct files_log *l, int64_t from, int64_t to, struct piece *p,
                                 struct tide_err *err)
{
    bool on = from == l->h.first_seq || from <= l->proved_seq + 1;
    unsigned char before[DIGEST_SIZE];
    struct line_walk w = {.s = s};
    struct line_fields m, last;
    struct str line;
    enum tide_code code = begin_at(s, l, from, &w, before, &last, err);

    p->n = 0;
    arena_reset(&p->arena);
    while (!code && p->n < BLOCK_EVENTS && from <= to && p->arena.used < PIECE_BYTES) {
        struct event *ev = &p->events[p->n];

        if (!walk_next(&w, &line, err))
            code = err->code ? err->code : damaged(l, from, err);
        else if (line_read(&p->arena, line, ev, &m) != LINE_EVENT || ev->seq != from ||
                 !is_proved(s, l->id, ev, &m, before) || !goes_on(&last, &m))
            code = damaged(l, from, err);
        if (code)
            break;
        last = m;
        memcpy(before, ev->digest, DIGEST_SIZE);
        ev->kind = arena_dup(&p->arena, ev->kind); /* its body is there already */
        ev->pos = ev->seq;
        p->n++;
        from++;
    }
    walk_done(&w);
    if (on && from > l->proved_seq)
        l->proved_seq = from - 1;
    if (l->unverified && p->n) {
        l->chain_seq = p->events[p->n - 1].seq;
        memcpy(l->chain, before, DIGEST_SIZE);
    }
    return code && p->n ? TIDE_OK : code; /* what is whole before it is handed out first */
}

/* The log of a head that was read before: of the same session still, though perhaps another file, whose lines got digests. */
static enum tide_code same_log(struct files_store *s, const struct head *h, struct files_log **ret,
                               struct tide_err *err)
{
    enum tide_code code = find_log(s, str_from(h->id), ret, err);

    if (code == TIDE_NOT_FOUND ||
        (!code && ((*ret)->h.created_ms != h->created_ms || (*ret)->h.first_seq != h->first_seq ||
                   ((*ret)->h.last_seq < h->last_seq && !h->damaged))))
        return tide_fail_session(err, TIDE_NOT_FOUND, h->id, "was deleted while it was read");
    return code;
}

enum tide_code files_read(struct store *store, const struct head *h, int64_t from, int64_t to, store_event_fn *fn,
                          void *arg, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct piece *p = mem_zero(sizeof *p);
    struct files_log *l;
    enum tide_code code = TIDE_OK;
    bool stop = false;

    while (!code && !stop && from <= to) {
        pthread_mutex_lock(&s->mu);
        code = same_log(s, h, &l, err);
        code = code ? code : fill_cache(s, l, from, to, p, err);
        pthread_mutex_unlock(&s->mu);
        for (size_t i = 0; !code && !stop && i < p->n; i++)
            stop = fn(arg, &p->events[i]) != 0;
        from += (int64_t)p->n;
    }
    arena_done(&p->arena);
    free(p);
    return code;
}

static int nothing(void *arg, const struct event *ev)
{
    (void)arg, (void)ev;
    return 0;
}

/* How far it is proved, and how far it goes; INT64_MAX: nothing is to be done, or, of another program's lines, can be. */
static enum tide_code look_how_far(struct files_store *s, const struct head *h, int64_t *ret_proved, int64_t *ret_last,
                                   struct tide_err *err)
{
    struct files_log *l;
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    code = same_log(s, h, &l, err);
    if (!code) {
        *ret_proved = l->proved_seq < l->h.first_seq ? l->h.first_seq - 1 : l->proved_seq;
        *ret_last = l->h.last_seq;
    }
    if (!code && (l->unverified || (l->kept_ns && l->kept_ns == l->mtime_ns)))
        *ret_proved = *ret_last = INT64_MAX;
    pthread_mutex_unlock(&s->mu);
    return code;
}

/* Next time it need not be read again. */
static void keep_proof(struct files_store *s, const struct head *h)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct tide_err ignored;
    struct files_log *l;

    pthread_mutex_lock(&s->mu);
    if (!same_log(s, h, &l, &ignored) && !l->busy && !l->torn && !l->damage.code && l->proved_seq >= l->h.last_seq) {
        l->clean_end = l->end;
        cache_save_head(s, l, cache_summary(s, l, &a));
    }
    pthread_mutex_unlock(&s->mu);
}

/*
 * Of a fork's parent also what is behind the fork is read: else it would be proved each time. Damage there is not the fork's. While
 * somebody else is at the file it is read all the same, and nothing is kept of it.
 */
enum tide_code files_prove(struct store *store, const struct head *h, int64_t to, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    int64_t proved = 0, last = 0;
    struct tide_err behind;
    enum tide_code code = look_how_far(s, h, &proved, &last, err);

    if (code || proved == INT64_MAX)
        return code;
    if (proved < to)
        code = files_read(store, h, proved + 1, to, nothing, NULL, err);
    proved = proved > to ? proved : to;
    if (!code && (proved >= last || !files_read(store, h, proved + 1, last, nothing, NULL, &behind)))
        keep_proof(s, h);
    return code;
}

/* ---- checkpoints ---- */

static bool is_marked(const struct files_block *b, bool deleted, unsigned bit)
{
    return b->marks[(deleted ? 32 : 0) + bit / 8] >> bit % 8 & 1;
}

/* The newest at or below `to`; 0: none. */
static enum tide_code newest_mark(struct files_store *s, struct files_log *l, bool deleted, int64_t to, int64_t *ret,
                                  struct tide_err *err)
{
    struct files_block b;
    enum tide_code code = TIDE_OK;

    *ret = 0;
    while (!code && !*ret && to >= l->h.first_seq) {
        int64_t number = (to - 1) / BLOCK_EVENTS;

        code = log_block(s, l, number, &b, err);
        for (; !code && !*ret && to > number * BLOCK_EVENTS && to >= l->h.first_seq; to--)
            if (is_marked(&b, deleted, (unsigned)((to - 1) % BLOCK_EVENTS)))
                *ret = to;
    }
    return code;
}

static enum tide_code count_marks(struct files_store *s, struct files_log *l, bool deleted, int64_t *ret,
                                  struct tide_err *err)
{
    struct files_block b;
    enum tide_code code = TIDE_OK;

    *ret = 0;
    for (int64_t n = (l->h.first_seq - 1) / BLOCK_EVENTS; !code && n <= (l->h.last_seq - 1) / BLOCK_EVENTS; n++) {
        if (l->h.last_seq < l->h.first_seq)
            break;
        code = log_block(s, l, n, &b, err);
        for (unsigned bit = 0; !code && bit < BLOCK_EVENTS; bit++)
            *ret += is_marked(&b, deleted, bit);
    }
    return code;
}

static enum tide_code one_mark(struct files_store *s, const struct head *h, bool deleted, int64_t to, struct piece *p,
                               struct tide_err *err)
{
    struct files_log *l;
    int64_t seq = 0;
    enum tide_code code;

    p->n = 0;
    pthread_mutex_lock(&s->mu);
    code = same_log(s, h, &l, err);
    code = code ? code : newest_mark(s, l, deleted, to, &seq, err);
    if (!code && seq)
        code = fill_cache(s, l, seq, seq, p, err);
    pthread_mutex_unlock(&s->mu);
    return code;
}

enum tide_code files_checkpoints(struct store *store, const struct head *h, bool deleted, int64_t to,
                                 store_event_fn *fn, void *arg, int64_t *ret_total, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct piece *p = mem_zero(sizeof *p);
    struct files_log *l;
    enum tide_code code = TIDE_OK;
    bool stop = !fn;

    if (ret_total) {
        pthread_mutex_lock(&s->mu);
        code = same_log(s, h, &l, err);
        code = code ? code : count_marks(s, l, deleted, ret_total, err);
        pthread_mutex_unlock(&s->mu);
    }
    to = to > h->last_seq ? h->last_seq : to;
    while (!code && !stop) {
        code = one_mark(s, h, deleted, to, p, err);
        stop = code || !p->n || fn(arg, &p->events[0]) != 0;
        to = p->n ? p->events[0].seq - 1 : 0;
    }
    arena_done(&p->arena);
    free(p);
    return code;
}

/* By its text alone: a reader of it gets the damage as an error, and a damaged one hides no other. */
static bool is_called(const struct event *ev, struct str id)
{
    static const char key[] = "{\"checkpoint_id\":\"";
    size_t n = sizeof key - 1;

    return str_starts(ev->body, STR("{\"checkpoint_id\":\"")) && ev->body.len > n + id.len &&
           memcmp(ev->body.ptr + n, id.ptr, id.len) == 0 && ev->body.ptr[n + id.len] == '"';
}

static enum tide_code peek_event(struct files_store *s, struct files_log *l, int64_t seq, struct str id,
                                 bool *ret_found, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    unsigned char before[DIGEST_SIZE];
    struct line_walk w = {.s = s};
    struct line_fields m;
    struct event ev;
    struct str line;
    enum tide_code code = begin_at(s, l, seq, &w, before, &m, err);

    if (!code && walk_next(&w, &line, err))
        *ret_found = line_read(&a, line, &ev, &m) == LINE_EVENT && is_called(&ev, id);
    else if (!code)
        code = err->code;
    walk_done(&w);
    return code == TIDE_CORRUPT ? TIDE_OK : code;
}

enum tide_code files_checkpoint_seq(struct store *store, const struct head *h, struct str id, int64_t *ret_seq,
                                    struct tide_err *err)
{
    struct files_store *s = files_of(store);
    int64_t seq = h->last_seq + 1;
    struct files_log *l;
    enum tide_code code;
    bool found = false;

    pthread_mutex_lock(&s->mu);
    code = same_log(s, h, &l, err);
    while (!code && !found && seq > 0) {
        code = newest_mark(s, l, false, seq - 1, &seq, err);
        if (!code && seq)
            code = peek_event(s, l, seq, id, &found, err);
    }
    pthread_mutex_unlock(&s->mu);
    *ret_seq = found ? seq : 0;
    return code;
}

enum tide_code files_snapshot(struct store *store, const struct head *h, int64_t to, struct buf *ret_data,
                              int64_t *ret_seq, struct tide_err *err)
{
    struct files_store *s = files_of(store);
    struct files_log *l;
    enum tide_code code;

    pthread_mutex_lock(&s->mu);
    code = same_log(s, h, &l, err);
    code = code ? code : cache_state(s, l, to, ret_data, ret_seq, err);
    pthread_mutex_unlock(&s->mu);
    return code;
}
