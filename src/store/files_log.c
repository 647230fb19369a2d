/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One log as a file: opening it, looking whether it has grown, was replaced or taken back, and mending it. What its lines say is
 * read in files_log_parse.c. Bytes that are found are synced before anybody acts on them; a tail that is no whole unit is cut off
 * and kept aside by the process that has the lock.
 */
#include <inttypes.h>
#include <stdio.h>

#include "store/files_store.h"

#define BUSY_LOOKS 5 /* at a log that is written to while it is read for the first time */

void log_name(char out[FILES_PATH], const char *id, bool hidden)
{
    snprintf(out, FILES_PATH, "%s%s.messages.jsonl", hidden ? ".import-" : "", id);
}

void log_path(const struct files_store *s, char out[FILES_PATH], const char *id, bool hidden)
{
    char name[FILES_PATH];

    log_name(name, id, hidden);
    files_path(s, out, "sessions", name, "");
}

static void close_file(struct files_store *s, struct files_log *l)
{
    if (l->file)
        s->base.env->ops->close(TAKE(l->file));
    if (l->mark_file)
        s->base.env->ops->close(TAKE(l->mark_file));
    if (l->lease_file)
        s->base.env->ops->close(TAKE(l->lease_file));
}

void log_forget(struct files_store *s, struct files_log *l)
{
    char id[TIDE_ID_SIZE];

    close_file(s, l);
    free(l->blocks);
    free(l->shown);
    free(l->text);
    memcpy(id, l->id, sizeof id);
    *l = (struct files_log){.used = l->used, .busy = l->busy, .part = l->part, .refused_ms = l->refused_ms};
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

static enum tide_code open_log(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    unsigned flags = s->base.read_only ? ENV_READ : ENV_WRITE;
    char path[FILES_PATH];
    enum tide_code code = TIDE_NOT_FOUND;

    for (int hidden = 1; hidden >= 0 && code == TIDE_NOT_FOUND; hidden--) {
        log_path(s, path, l->id, hidden);
        code = ops->open(s->base.env, path, flags, &l->file, err);
        l->hidden = hidden;
    }
    return code;
}

static enum tide_code open_file(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    struct env_stat st;
    struct tide_err gone;
    enum tide_code code = open_log(s, l, err);

    if (code == TIDE_NOT_FOUND) {
        code = mark_without_log(s, l, &gone);
        code = code ? code : foreign_begin(s, l, &gone);
        if (code != TIDE_CORRUPT)
            return code == TIDE_NOT_FOUND ? TIDE_OK : code ? tide_err_copy(err, &gone) : code; /* it does not exist */
        code = open_log(s, l, err); /* it may have been made meanwhile, its snapshot after it */
        if (code == TIDE_NOT_FOUND)
            return tide_err_copy(err, &gone);
    }
    code = code ? code : s->base.env->ops->fstat(l->file, &st, err);
    if (!code && st.kind != ENV_FILE)
        code = tide_fail(err, TIDE_DENIED, "the log of session '%s' is not a file", l->id);
    if (code) {
        close_file(s, l);
        return code;
    }
    l->exists = true;
    l->opened = ++s->clock;
    l->dev = st.dev;
    l->ino = st.ino;
    l->h.first_seq = 1; /* as long as nothing is in it */
    l->fits = cache_load_head(s, l, &st);
    s->names_due |= !l->fits; /* what is kept of it was kept by one who was sure of its name */
    if (l->fits)
        l->acked = l->h.last_seq; /* it was kept after the log's sync */
    l->acked_end = l->end;
    return TIDE_OK;
}

/* Another process may have given it its name. */
static bool is_revealed(struct files_store *s, const struct files_log *l)
{
    char path[FILES_PATH];
    struct env_stat st;

    log_path(s, path, l->id, false);
    return !s->base.env->ops->stat(s->base.env, path, &st, NULL) && st.kind == ENV_FILE && st.dev == l->dev &&
           st.ino == l->ino;
}

/*
 * After a failed sync the system may take for written what is not: it is written once more. So is a length that was taken back
 * (`cut`): what was cut off could come back with a power cut. With the lock of the file.
 */
static enum tide_code write_again(struct files_store *s, struct files_log *l, int64_t from, int64_t size, bool cut,
                                  struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    AUTO(buf_done) struct buf bytes = BUF_INIT(SIZE_MAX / 4);
    char *room = size > from ? buf_reserve(&bytes, (size_t)(size - from)) : NULL;
    enum tide_code code = room ? ops->pread(l->file, room, (size_t)(size - from), from, &bytes.len, err) : TIDE_OK;

    if (!code && bytes.len)
        code = ops->pwrite(l->file, bytes.ptr, bytes.len, from, err);
    if (code || !cut)
        return code;
    code = ops->pwrite(l->file, "\n", 1, size, err);
    return code ? code : ops->truncate(l->file, size, err);
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
        (void)!log_mend(s, l, &err); /* else the process that writes next does it */
}

/* ---- what stands behind the acknowledged end ---- */

/* A tail of a log that is looked at: what was found there, and what came of it. */
struct tail {
    struct files_store *s;
    struct files_log *l;
    int64_t from, size;
    bool cut;        /* it was taken back: nothing may come back behind it */
    bool lock, ours; /* we took its lock; we have it */
    enum tide_code code, synced;
    struct tide_err err;
};

/* What the mark has is on disk, and all that counts as long as another is at the log. */
static bool is_bounded(const struct files_log *l)
{
    return l->mark.state == MARK_OK && l->mark.here;
}

static enum tide_code write_tail(struct files_store *s, void *arg, bool again, struct tide_err *err)
{
    struct tail *t = arg;
    enum tide_code code = t->ours ? write_again(s, t->l, t->from, t->size, t->cut, err) : TIDE_OK;

    (void)again;
    return code ? code : s->base.env->ops->sync(t->l->file, err);
}

/*
 * What is found may be left from one who is gone, and whose sync failed: who gets the lock writes it again. Who does not, takes
 * what the mark has; or all, if that is of an earlier boot, when nobody had begun to write yet. True: it is to be synced.
 */
static bool tail_begin(struct files_store *s, struct files_log *l, int64_t size, bool locked, struct tail *t)
{
    int64_t known = l->end;

    *t = (struct tail){.s = s, .l = l, .size = size, .cut = l->suspect && size == known};
    t->lock = !locked && !s->base.env->ops->lock(l->file, 0, NULL);
    t->ours = (t->lock || locked) && !s->base.read_only;
    if (t->lock)
        t->code = mark_look(s, l, true, &t->err); /* who had the lock may have continued */
    if (t->code || (!t->lock && !locked && is_bounded(l)))
        return false;
    t->code = log_read_on(s, l, size, INT64_MAX, &t->err);
    t->from = l->mark.state == MARK_OK ? l->acked_end : l->last_unit > known ? l->last_unit : known;
    return !t->code;
}

/* A mark that survives a power cut which takes the log's name back would miss it. */
static bool names_are_sure(struct files_store *s)
{
    bool many = s->many;
    struct tide_err err;
    enum tide_code code;

    s->many = false;
    code = names_settle(s, &err);
    s->many = many;
    return !code;
}

static enum tide_code tail_end(struct files_store *s, struct tail *t)
{
    struct files_log *l = t->l;
    bool found = false;

    if (t->synced) { /* nothing of it may be believed, and its lock goes with it */
        log_forget(s, l);
        return t->synced;
    }
    l->looked = !t->code ? t->size : t->code == TIDE_CORRUPT ? -1 : 0; /* what could not be read is still to be seen */
    if (!t->code && t->ours && l->h.last_seq > l->mark.seq && names_are_sure(s)) {
        mark_write(s, l, true);
        found = true;
    }
    if (!t->code && t->ours && l->torn)
        sweep_mark(s, l, t->size);
    if (t->lock)
        s->base.env->ops->unlock(l->file);
    if (found)
        files_changed(s); /* the caller that looked meanwhile could not see it */
    return t->code;
}

static enum tide_code read_tail(struct files_store *s, struct files_log *l, int64_t size, bool locked,
                                struct tide_err *err)
{
    struct tail t;
    enum tide_code code;

    if (tail_begin(s, l, size, locked, &t))
        t.synced = t.ours ? word_guard(s, write_tail, &t, &t.err) : write_tail(s, &t, false, &t.err);
    code = tail_end(s, &t);
    return code ? tide_err_copy(err, &t.err) : TIDE_OK;
}

/* ---- reading on ---- */

/* Another's mark may have moved on, and with it what counts, while all was read because it was of an earlier boot. */
static enum tide_code look_twice(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    bool bounded = is_bounded(l);
    enum tide_code code = locked || bounded ? TIDE_OK : mark_look(s, l, false, err);

    if (!code && !bounded && is_bounded(l) && l->h.last_seq > l->mark.seq) {
        log_forget(s, l);
        return tide_fail_session(err, TIDE_BUSY, l->id, "was written to while it was read: try again");
    }
    return code;
}

/* With `accept_loss` what was lost is given up, and the log continues from where it ends. */
static enum tide_code give_up(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    int64_t acked = l->mark.state == MARK_OK ? l->mark.seq : 0;
    enum tide_code code;

    if (log_is_empty(l) || l->unverified || (!locked && s->base.env->ops->lock(l->file, 0, NULL)))
        return TIDE_OK;
    code = mark_make(s, l, err);
    if (!locked)
        s->base.env->ops->unlock(l->file);
    l->mark_wrong &= code != TIDE_OK;
    if (!code && acked > l->h.last_seq)
        store_notice(&s->base, "session %s: continues without the events %" PRId64 " to %" PRId64 ", which are lost",
                     l->id, l->h.last_seq + 1, acked);
    else if (!code)
        store_notice(&s->base, "session %s: its log is accepted as it is, up to event %" PRId64, l->id, l->h.last_seq);
    return code;
}

/* As far as the mark goes without a lock and without a sync, then what stands behind it. */
static enum tide_code read_on(struct files_store *s, struct files_log *l, int64_t size, bool locked,
                              struct tide_err *err)
{
    bool first = !l->looked;
    enum tide_code code = TIDE_OK;

    if (is_bounded(l) && !l->suspect && l->h.last_seq < l->mark.seq && size > l->end)
        code = log_read_on(s, l, size, l->mark.seq, err);
    if (!code && (l->suspect || (size > l->end && (first || size != l->looked || !l->torn))))
        code = read_tail(s, l, size, locked, err);
    else if (!code && l->torn)
        code = log_read_on(s, l, size, INT64_MAX, err); /* it may have been mended */
    return code;
}

static enum tide_code read_new(struct files_store *s, struct files_log *l, int64_t size, bool locked,
                               struct tide_err *err)
{
    enum tide_code code = mark_look(s, l, locked, err);

    if (code)
        return code;
    if (l->mark.state == MARK_BAD && !s->accept_loss)
        return mark_judge(s, l, err);
    l->mark_wrong = !mark_fits(l, l->h.last_seq, l->h.last_seq, l->h.digest);
    code = read_on(s, l, size, locked, err);
    if (!l->file)
        return code;
    l->suspect &= code != TIDE_OK;
    code = code ? code : look_twice(s, l, locked, err);
    if (!l->file)
        return code;
    if (!code && s->accept_loss && (l->mark.state != MARK_OK || l->mark.seq > l->h.last_seq || l->mark_wrong))
        code = give_up(s, l, locked, err);
    else if (!code)
        code = mark_judge(s, l, err);
    l->looked = !code ? size : code == TIDE_CORRUPT ? -1 : 0;
    l->judged = !code;
    return code;
}

enum tide_code names_settle(struct files_store *s, struct tide_err *err)
{
    enum tide_code code;

    if (!s->names_due || s->many)
        return TIDE_OK;
    code = files_sync_dir(s, "sessions", err);
    s->names_due = code != TIDE_OK;
    return code;
}

bool log_is_ours(struct files_store *s, const struct files_log *l)
{
    struct env_stat st;

    return !s->base.env->ops->fstat(l->file, &st, NULL) && st.mtime_ns == l->mtime_ns;
}

void log_wrote(struct files_store *s, struct files_log *l)
{
    struct env_stat st;

    if (!s->base.env->ops->fstat(l->file, &st, NULL))
        l->mtime_ns = st.mtime_ns;
}

/* Ours, as long as we hold the lease: nobody may have taken anything away. */
static enum tide_code shortened(struct files_log *l, int64_t size, struct tide_err *err)
{
    tide_fail(&l->damage, TIDE_CORRUPT, "the log of session '%s' has become shorter: another program changed it",
              l->id);
    l->looked = size;
    return tide_err_copy(err, &l->damage);
}

/*
 * The process that appends leaves the last line where it is. One who makes a line before it longer does not, nor one who puts another log
 * there: nothing is torn then, and nothing that is known holds.
 */
static bool is_moved(struct files_store *s, struct files_log *l, const struct env_stat *st)
{
    bool longer = st->size > l->end && st->size != l->looked, same = st->size == l->end && l->mtime_ns && !l->torn;

    return l->end > 0 && (longer || same) && st->mtime_ns != l->mtime_ns && !l->suspect && !l->unverified &&
           !cache_fits_end(s, l);
}

/* Deleted, or another took its place; or a write was taken back; or it was mended; or somebody edits it. */
static bool is_another(struct files_store *s, struct files_log *l, const struct env_stat *st, bool locked)
{
    return !st->links || (st->size < l->end && !l->lease_file && !locked) ||
           (l->damage.code && st->size != l->looked && !locked) || is_moved(s, l, st);
}

static enum tide_code refresh_log(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    int64_t had = 0;
    struct env_stat st;
    enum tide_code code = TIDE_OK;

    if (l->file && (code = ops->fstat(l->file, &st, err)) != TIDE_OK)
        return code;
    if (l->file && is_another(s, l, &st, locked)) {
        had = lease_is_ours(s, l) ? l->h.last_seq : 0;
        log_forget(s, l);
    }
    if (l->file && l->hidden)
        l->hidden = !is_revealed(s, l);
    if (!l->file) {
        locked = false; /* what the caller has the lock of is gone */
        code = open_file(s, l, err);
        if (code || !l->exists || l->text)
            return code;
        code = ops->fstat(l->file, &st, err);
    }
    code = code ? code : names_settle(s, err);
    if (code)
        return code;
    if (l->mtime_ns && st.mtime_ns != l->mtime_ns && !cache_is_clean(s, l, &st))
        l->proved_seq = 0; /* somebody else was at it, and left no word of it */
    l->mtime_ns = st.mtime_ns;
    if (l->damage.code && st.size == l->looked)
        return tide_err_copy(err, &l->damage);
    if (st.size < l->end)
        return shortened(l, st.size, err);
    if (!l->judged || st.size != l->looked || l->end < st.size || l->suspect)
        code = read_new(s, l, st.size, locked, err);
    if (!code && l->h.last_seq < had) /* another took its place, and it was ours */
        return shortened(l, st.size, err);
    return code;
}

static enum tide_code refresh_once(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *file = l->file;
    int64_t opened = l->opened;
    enum tide_code code;

    if (l->busy && !locked)
        return TIDE_OK; /* what is known was returned; the rest comes with its commit */
    if (l->text)
        log_forget(s, l); /* by now it may have a log */
    if (locked || !l->suspect || !file)
        return refresh_log(s, l, locked, err);
    if (ops->lock(file, 0, err))
        return TIDE_OK; /* another process is writing it: what is known was returned */
    code = refresh_log(s, l, true, err);
    if (l->opened == opened)
        ops->unlock(file);
    return code;
}

/* The process that writes to it meanwhile has marked it by then: the next look goes as far as that mark. */
enum tide_code log_refresh(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err)
{
    enum tide_code code = refresh_once(s, l, locked, err);

    for (int i = 0; i < BUSY_LOOKS && code == TIDE_BUSY && !l->file; i++)
        code = refresh_once(s, l, false, err);
    return code;
}

/* Opened, and read unless that was done; false: there is nothing to sync. */
static bool look_first(struct files_store *s, struct files_log *l, struct tail *t)
{
    struct tide_err err;
    struct env_stat st;

    if (l->file || l->text || open_file(s, l, &err) || !l->file)
        return false;
    if (s->base.env->ops->fstat(l->file, &st, &err) || st.size <= l->end) {
        if (!l->fits)
            log_forget(s, l); /* an empty one: the process that looks at it sees it for the first time */
        return false;
    }
    if (mark_look(s, l, false, &err) || l->mark.state == MARK_BAD || is_bounded(l) || s->accept_loss)
        return false; /* there is nothing to sync, or not yet: the process that looks at it does */
    if (tail_begin(s, l, st.size, false, t)) {
        t->code = t->ours ? write_again(s, l, t->from, t->size, false, &t->err) : TIDE_OK;
        return true;
    }
    (void)!tail_end(s, t);
    return false;
}

static void sync_tail(void *tails, size_t i)
{
    struct tail *t = (struct tail *)tails + i;

    t->synced = t->s->base.env->ops->sync(t->l->file, &t->err);
}

void log_look_ahead(struct files_store *s, struct files_log *const *list, size_t n)
{
    struct tail *tails = mem_array(n + 1, sizeof *tails);
    bool writes = !s->base.read_only, failed = false;
    struct tide_err err;
    struct word_at at;
    size_t due = 0;

    if (writes && word_begin(s, &at, &err))
        n = 0; /* each of them is an error for the caller that reads it */
    for (size_t i = 0; i < n; i++)
        due += look_first(s, list[i], &tails[due]);
    pool_each(s->pool, due, sync_tail, tails);
    for (size_t i = 0; i < due; i++)
        failed |= tails[i].synced == TIDE_IO;
    if (n && writes)
        word_end(s, failed);
    if (n && writes && !word_holds(s, &at))
        for (size_t i = 0; i < due; i++)
            if (!tails[i].synced && tails[i].ours)
                tails[i].synced = word_guard(s, write_tail, &tails[i], &tails[i].err);
    for (size_t i = 0; i < due; i++)
        if (!tail_end(s, &tails[i]) && mark_judge(s, tails[i].l, &err))
            tails[i].l->looked = -1;
    free(tails);
}

void log_free(void *log)
{
    struct files_log *l = log;

    free(l->blocks);
    free(l->shown);
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
        store_notice(&s->base,
                     "session %s: its incomplete last write (%" PRId64 " byte%s) was removed and kept as "
                     "sessions/%s: it was never acknowledged",
                     l->id, size - l->end, size - l->end == 1 ? "" : "s", name);
    return code;
}

static enum tide_code cut_off(struct files_store *s, void *arg, bool again, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct files_log *l = arg;
    enum tide_code code =
        again ? ops->pwrite(l->file, "\n", 1, l->end, err) : TIDE_OK; /* its length changes once more */

    code = code ? code : ops->truncate(l->file, l->end, err);
    return code ? code : ops->sync(l->file, err);
}

enum tide_code log_mend(struct files_store *s, struct files_log *l, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_stat st;
    enum tide_code code = ops->fstat(l->file, &st, err);

    if (!code && st.size > l->end)
        code = keep_aside(s, l, st.size, err);
    code = code ? code : word_guard(s, cut_off, l, err);
    log_wrote(s, l);
    if (code)
        return tide_wrap(err, "repair the log of session '%s'", l->id);
    l->torn = false;
    l->looked = l->end;
    l->allocated = 0;
    return TIDE_OK;
}
