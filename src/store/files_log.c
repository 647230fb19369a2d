/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One log, read to its end. What was written at once is a unit: its lines say how many stand before them in it and how many
 * follow. A unit that is not whole, with nothing of a later unit behind it, is what a cut left of a write that nobody was told
 * of: it is cut off as a whole and kept aside. One that has a later unit behind it was whole once: that is damage, and refused.
 *
 * Lines are looked at quickly on the way; the digests of the last unit are computed, those of others when they are read.
 */
#include <inttypes.h>
#include <stdio.h>

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
            return true;
        }
        looked = left;
        if (!walk_more(w, err))
            return false;
    }
}

/* A line as far as the chain needs it; the body is not looked at. */
static bool look_at(struct arena *a, struct str line, int64_t *ret_seq, struct str *ret_kind, struct line_mark *m)
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
        if (l->n_blocks == l->cap_blocks) {
            l->cap_blocks = l->cap_blocks ? 2 * l->cap_blocks : 16;
            l->blocks = mem_grow(l->blocks, l->cap_blocks * sizeof *l->blocks);
        }
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

void log_unnote(struct files_log *l, int64_t seq)
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
    struct line_mark m;
    struct str line, kind;
    int64_t got, left = 0;

    *u = (struct unit){.from = r->w.next, .first = seq};
    do {
        if (!walk_next(&r->w, &line, err))
            return false;
        if (!look_at(&r->arena, line, &got, &kind, &m) || got != seq || m.at != seq - u->first ||
            (seq > u->first && m.more != left))
            return false;
        if (!m.verified && r->l->line_epoch)
            return false; /* behind lines of ours there are no others */
        left = m.more - 1;
        log_note_line(r->l, seq, r->w.at, kind);
        u->foreign |= !m.verified;
        u->last_line = r->w.at;
        u->epoch = m.epoch;
        memcpy(u->digest, m.digest, DIGEST_SIZE);
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
    struct line_mark m;
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
    struct line_mark m;
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
    struct line_mark m = {0};
    struct str line;

    arena_reset(&r->arena);
    if (!walk_next(&w, &line, err) || line_read(&r->arena, line, &ev, &m) != LINE_EVENT) {
        ev.seq = 1;
        m = (struct line_mark){0};
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
    l->h.last_seq = l->h.last_pos = u->last;
    l->h.epoch = u->epoch > l->h.epoch ? u->epoch : l->h.epoch;
    l->line_epoch = u->epoch;
    memcpy(l->h.digest, u->digest, DIGEST_SIZE);
    l->end = u->to;
    l->last_unit = u->from;
    l->last_line = u->last_line;
    l->unverified |= u->foreign;
}

static enum tide_code damaged(struct files_log *l, int64_t seq, struct tide_err *err)
{
    tide_fail(&l->damage, TIDE_CORRUPT,
              "session '%s': event %" PRId64 " is damaged: `tidemark log show %s --to %" PRId64
              "` shows what is whole before it",
              l->id, seq, l->id, seq - 1);
    return tide_err_copy(err, &l->damage);
}

/* Its lines look like lines, and are not what was written. */
static void drop_unit(struct files_log *l, const struct unit *u, const unsigned char before[DIGEST_SIZE])
{
    l->h.last_seq = l->h.last_pos = u->first - 1;
    memcpy(l->h.digest, before, DIGEST_SIZE);
    l->end = u->from;
    log_unnote(l, u->first);
}

/* From l->end to `size`, which is on disk. */
static enum tide_code read_on(struct files_store *s, struct files_log *l, int64_t size, struct tide_err *err)
{
    struct reading r = {.s = s, .l = l, .arena = ARENA_INIT};
    unsigned char before[DIGEST_SIZE];
    struct unit u, last = {0};
    enum tide_code code = TIDE_OK;

    r.w = (struct line_walk){.s = s, .file = l->file, .next = l->end, .limit = size};
    err->code = TIDE_OK;
    if (!l->end && size)
        take_first(&r, err);
    memcpy(before, l->h.digest, DIGEST_SIZE);
    while (l->end < size && read_unit(&r, l->h.last_seq + 1, &u, err)) {
        memcpy(before, l->h.digest, DIGEST_SIZE);
        last = u;
        take_unit(l, &u);
    }
    log_unnote(l, l->h.last_seq + 1);
    if (!err->code && l->end < size && has_later(&r, &u, err))
        code = damaged(l, l->h.last_seq + 1, err);
    else if (!err->code && last.to && !prove_unit(&r, &last, before, err) && !err->code)
        drop_unit(l, &last, before);
    if (!code && !err->code && l->end < l->clean_end)
        code = damaged(l, l->h.last_seq + 1, err);
    l->torn = l->end < size;
    if (!code && err->code)
        code = err->code;
    walk_done(&r.w);
    arena_done(&r.arena);
    return code;
}

/* ---- the file ---- */

void log_name(char out[FILES_PATH], const char *id, bool hidden)
{
    snprintf(out, FILES_PATH, "%s%s.messages.jsonl", hidden ? ".import-" : "", id);
}

static void close_file(struct files_store *s, struct files_log *l)
{
    if (l->file)
        s->base.env->ops->close(TAKE(l->file));
    if (l->lease_file)
        s->base.env->ops->close(TAKE(l->lease_file));
}

void log_forget(struct files_store *s, struct files_log *l)
{
    char id[TIDE_ID_SIZE];

    close_file(s, l);
    free(l->blocks);
    free(l->text);
    memcpy(id, l->id, sizeof id);
    *l = (struct files_log){.used = l->used, .busy = l->busy};
    memcpy(l->id, id, sizeof id);
    memcpy(l->h.id, id, sizeof id);
}

/* The one that was not needed for the longest time makes room. */
static void make_room(struct files_store *s)
{
    struct map_entry *oldest = NULL;

    if (s->logs.live < LOGS_MAX)
        return;
    for (struct map_entry *e = map_next(&s->logs, NULL); e; e = map_next(&s->logs, e)) {
        const struct files_log *l = e->value, *o = oldest ? oldest->value : NULL;

        if (!l->busy && !l->lease_file && !l->suspect && (!o || l->used < o->used))
            oldest = e;
    }
    if (oldest) {
        struct files_log *l = oldest->value;

        log_forget(s, l);
        map_remove(&s->logs, map_key(oldest));
        free(l);
    }
}

struct files_log *log_of(struct files_store *s, struct str id)
{
    struct files_log *l = map_get(&s->logs, id);

    if (!l) {
        make_room(s);
        l = mem_zero(sizeof *l);
        memcpy(l->id, id.ptr, id.len);
        memcpy(l->h.id, id.ptr, id.len);
        map_put(&s->logs, id, l);
    }
    l->used = ++s->clock;
    return l;
}

static enum tide_code open_file(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    unsigned flags = s->base.read_only ? ENV_READ : ENV_WRITE;
    char name[FILES_PATH], path[FILES_PATH];
    struct env_stat st;
    enum tide_code code = TIDE_NOT_FOUND;

    for (int hidden = 1; hidden >= 0 && code == TIDE_NOT_FOUND; hidden--) {
        log_name(name, l->id, hidden);
        files_path(s, path, "sessions", name, "");
        code = ops->open(s->base.env, path, flags, &l->file, err);
        l->hidden = hidden;
    }
    if (code == TIDE_NOT_FOUND && !foreign_begin(s, l, err) && !l->text)
        code = ops->open(s->base.env, path, flags, &l->file, err);
    if (code == TIDE_NOT_FOUND)
        return TIDE_OK; /* it does not exist */
    code = code ? code : ops->fstat(l->file, &st, err);
    if (!code && st.kind != ENV_FILE)
        code = tide_fail(err, TIDE_DENIED, "the log of session '%s' is not a file", l->id);
    if (code) {
        close_file(s, l);
        return code;
    }
    l->exists = true;
    l->dev = st.dev;
    l->ino = st.ino;
    l->h.first_seq = 1; /* as long as nothing is in it */
    l->h.sid = (int64_t)st.ino;
    s->names_due |= !cache_load_head(s, l); /* what is kept of it was kept by one who was sure of its name */
    return TIDE_OK;
}

/* Another process may have given it its name. */
static bool is_revealed(struct files_store *s, const struct files_log *l)
{
    char name[FILES_PATH], path[FILES_PATH];
    struct env_stat st;

    log_name(name, l->id, false);
    files_path(s, path, "sessions", name, "");
    return !s->base.env->ops->stat(s->base.env, path, &st, NULL) && st.kind == ENV_FILE && st.dev == l->dev &&
           st.ino == l->ino;
}

/*
 * After a failed sync the system may take for written what is not: it is written once more. So is a length that was taken back:
 * what was cut off could come back with a power cut. With the lock of the file.
 */
static enum tide_code write_again(struct files_store *s, struct files_log *l, int64_t from, int64_t size,
                                  struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    AUTO(buf_done) struct buf bytes = BUF_INIT(SIZE_MAX / 4);
    char *room = size > from ? buf_reserve(&bytes, (size_t)(size - from)) : NULL;
    enum tide_code code = room ? ops->pread(l->file, room, (size_t)(size - from), from, &bytes.len, err) : TIDE_OK;

    if (code || bytes.len)
        return code ? code : ops->pwrite(l->file, bytes.ptr, bytes.len, from, err);
    if (!l->suspect)
        return TIDE_OK;
    code = ops->pwrite(l->file, "\n", 1, from, err);
    return code ? code : ops->truncate(l->file, from, err);
}

/* The mark of a unit that was taken back has done its work when it is on disk. With the lock of the file. */
static void sweep_mark(struct files_store *s, struct files_log *l, int64_t size)
{
    char found[sizeof TAKEN_BACK] = "";
    struct tide_err err;
    size_t got = 0;

    if (size - l->end == sizeof TAKEN_BACK - 1 &&
        !s->base.env->ops->pread(l->file, found, sizeof TAKEN_BACK - 1, l->end, &got, NULL) &&
        strcmp(found, TAKEN_BACK) == 0)
        (void)!log_mend(s, l, &err); /* else whoever writes next does it */
}

/*
 * What is found on first sight may be left from one who is gone, and whose sync failed. That can only be the last unit, or what
 * stands behind it: whoever came after that one has synced. If nobody is at it, it is written again.
 */
static enum tide_code read_first(struct files_store *s, struct files_log *l, int64_t size, bool locked,
                                 struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    bool lock = !locked && !s->base.read_only && !ops->lock(l->file, 0, NULL), ours = lock || locked;
    int64_t known = l->end;
    enum tide_code code = read_on(s, l, size, err), synced = TIDE_OK;

    if (!code && ours)
        synced = write_again(s, l, l->last_unit > known ? l->last_unit : known, size, err);
    if (!code && !synced)
        synced = ops->sync(l->file, err);
    if (synced) { /* nothing of it may be believed, and its lock goes with it */
        log_forget(s, l);
        return synced;
    }
    l->looked = code ? -1 : size;
    if (!code && ours && l->torn)
        sweep_mark(s, l, size);
    if (lock)
        ops->unlock(l->file);
    return code;
}

/*
 * What another process wrote is on disk before anybody acts on it: whoever finds it syncs it, without its lock, so that a
 * writer that was stopped keeps nobody from reading. A unit that is just being written is not whole yet, and not counted.
 */
static enum tide_code read_new(struct files_store *s, struct files_log *l, int64_t size, bool locked,
                               struct tide_err *err)
{
    bool again = l->suspect;
    enum tide_code code;

    if (!again && !l->looked && size > l->end)
        return read_first(s, l, size, locked, err);
    code = again ? write_again(s, l, l->end, size, err) : TIDE_OK;
    if (!code && (again || (size > l->end && size != l->looked)))
        code = s->base.env->ops->sync(l->file, err);
    l->suspect &= code != TIDE_OK;
    if (!code)
        code = read_on(s, l, size, err);
    l->looked = code ? -1 : size;
    if (!code && again && l->torn)
        sweep_mark(s, l, size);
    return code;
}

enum tide_code names_settle(struct files_store *s, struct tide_err *err)
{
    char dir[FILES_PATH];
    enum tide_code code = TIDE_OK;

    files_path(s, dir, "sessions", "", "");
    if (s->names_due && !s->many)
        code = s->base.env->ops->sync_dir(s->base.env, dir, err);
    s->names_due &= s->many || code != TIDE_OK;
    return code;
}

/* Ours, as long as we hold the lease: nobody may have taken anything away. */
static enum tide_code shortened(struct files_log *l, int64_t size, struct tide_err *err)
{
    tide_fail(&l->damage, TIDE_CORRUPT, "the log of session '%s' has become shorter: somebody changed it", l->id);
    l->looked = size;
    return tide_err_copy(err, &l->damage);
}

static enum tide_code refresh(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_stat st;
    enum tide_code code = TIDE_OK;

    if (l->file && (code = ops->fstat(l->file, &st, err)) != TIDE_OK)
        return code;
    if (l->file && (!st.links || (st.size < l->end && !l->lease_file && !locked)))
        log_forget(s, l); /* deleted, or another took its place; or a write was taken back */
    if (l->file && l->hidden)
        l->hidden = !is_revealed(s, l);
    if (!l->file) {
        code = open_file(s, l, err);
        if (code || !l->exists || l->text)
            return code;
        code = ops->fstat(l->file, &st, err);
    }
    code = code ? code : names_settle(s, err);
    if (code)
        return code;
    if (l->damage.code && st.size == l->looked)
        return tide_err_copy(err, &l->damage);
    if (st.size < l->end)
        return shortened(l, st.size, err);
    if (st.size == l->looked && !l->torn && !l->suspect)
        return TIDE_OK;
    return read_new(s, l, st.size, locked, err);
}

enum tide_code log_refresh(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *file = l->file;
    enum tide_code code;

    if (l->text)
        return TIDE_OK;
    if (l->busy && !locked)
        return TIDE_OK; /* what is known was told; the rest comes with its commit */
    if (locked || !l->suspect || !file)
        return refresh(s, l, locked, err);
    if (ops->lock(file, 0, err))
        return TIDE_OK; /* somebody is at it: what is known was told */
    code = refresh(s, l, true, err);
    if (l->file == file)
        ops->unlock(file);
    return code;
}

void log_free(void *log)
{
    struct files_log *l = log;

    free(l->blocks);
    free(l->text);
    free(l);
}

/* ---- torn tails ---- */

static enum tide_code keep_aside(struct files_store *s, struct files_log *l, int64_t size, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    AUTO(buf_done) struct buf bytes = BUF_INIT((size_t)1 << 30);
    char path[FILES_PATH], name[TIDE_ID_SIZE + 40];
    struct env_stat st = {.kind = ENV_FILE};
    char *room = buf_reserve(&bytes, (size_t)(size - l->end));
    enum tide_code code = room ? TIDE_OK : tide_fail(err, TIDE_TOO_BIG, "the torn tail of '%s' is too big", l->id);

    code = code ? code : ops->pread(l->file, room, (size_t)(size - l->end), l->end, &bytes.len, err);
    if (!code && str_eq(buf_view(&bytes), STR(TAKEN_BACK)))
        return TIDE_OK;
    for (int n = 1; !code && st.kind != ENV_ABSENT; n++) {
        snprintf(name, sizeof name, "%s.torn-%d", l->id, n);
        files_path(s, path, "sessions", name, "");
        code = ops->stat(s->base.env, path, &st, err);
    }
    code = code ? code : files_put(s, "sessions", name, buf_view(&bytes), true, err);
    if (!code)
        files_notice(s,
                     "session %s: what a cut left of its last write (%" PRId64 " bytes) was cut off and kept as "
                     "sessions/%s: nobody had been told of it",
                     l->id, size - l->end, name);
    return code;
}

enum tide_code log_mend(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_stat st;
    enum tide_code code = ops->fstat(l->file, &st, err);

    if (!code && st.size > l->end)
        code = keep_aside(s, l, st.size, err);
    code = code ? code : ops->truncate(l->file, l->end, err);
    code = code ? code : ops->sync(l->file, err);
    if (code)
        return tide_wrap(err, "mend the log of session '%s'", l->id);
    l->torn = false;
    l->looked = l->end;
    l->allocated = 0;
    return TIDE_OK;
}
