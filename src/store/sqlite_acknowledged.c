/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two small files beside the store, and what the store says of its own closing.
 *
 * "-mark": the lock that all writers share, and one line with the last position that was acknowledged, written after each
 * commit. It is synced once, before the first commit with it, so that it is there after a power cut; later it can be behind
 * the log, never ahead of it. So when the log ends before the mark, acknowledged events are gone (a write-ahead log that was
 * deleted or damaged: SQLite alone would not report it), and opening fails with it. While a commit is under way it says
 * "suspect": when that commit's sync fails, or its process dies in it, the page cache may show what the disk does not
 * have, and the process that opens the store next does not trust it. It must be said before: a disk that fails the sync
 * may fail this write as well.
 *
 *   bytes 0..  "position 00000000000000000042 ok      5f3c…16 hex digits of its digest\n"
 *
 * `closed` in the table `meta`: the last position, stored by who closes the store and moved into the file with the log. The
 * first commit after that makes it -1, and is moved into the file before it is acknowledged; a commit that knows it
 * moved removes it. So a file that says `closed` at its last position is all there is, also without the files beside
 * it: the copy that people make. Any other file may have known of more by its mark, when that is missing.
 *
 * "-reserve": disk blocks kept in hand; given back on a full disk, so that opening and reading still work.
 */
#include <inttypes.h>

#include "base/digest.h"
#include "store/batch_rules.h"
#include "store/sqlite_db.h"

#define MARK_HEAD 39 /* "position " + 20 digits + ' ' + 8 + ' ' */
#define MARK_LEN (MARK_HEAD + 17)
#define LOOKS 50 /* at one that is damaged, a millisecond apart */

static void mark_line(char out[MARK_LEN + 1], int64_t pos, bool suspect)
{
    char *digit = out + 29;

    memcpy(out, "position 00000000000000000000 ok       ", MARK_HEAD); /* twice a commit: snprintf() is slow */
    for (uint64_t rest = (uint64_t)pos; rest; rest /= 10)
        *--digit = (char)('0' + rest % 10);
    if (suspect)
        memcpy(out + 30, "suspect", 7);
    digest_name(out + MARK_HEAD, (struct str){out, MARK_HEAD});
    out[MARK_LEN - 1] = '\n';
    out[MARK_LEN] = 0;
}

static enum tide_code mark_write(struct sqlite_store *s, int64_t pos, bool suspect, struct tide_err *err)
{
    char line[MARK_LEN + 1];

    mark_line(line, pos, suspect);
    return s->base.env->ops->pwrite(s->mark, line, MARK_LEN, 0, err);
}

enum tide_code mark_open(struct sqlite_store *s, bool create, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    unsigned flags = s->base.read_only ? ENV_READ : create ? ENV_WRITE | ENV_CREATE : ENV_WRITE;
    struct env_stat st;
    char side[1100];
    enum tide_code code = db_path(s, "-mark", side, err);

    if (code || s->mark)
        return code;
    code = ops->open(s->base.env, side, flags, &s->mark, err);
    if (code == TIDE_FULL && reserve_release(s))
        code = ops->open(s->base.env, side, flags, &s->mark, err);
    if (code)
        return code == TIDE_NOT_FOUND && !create ? TIDE_OK : code;
    code = ops->fstat(s->mark, &st, err);
    s->mark_fresh = s->mark_empty = !code && st.size == 0;
    return code;
}

struct mark {
    /* None: no file, or one whose first words were cut off before they were synced. */
    enum { MARK_NONE, MARK_DAMAGED, MARK_WHOLE } is;
    int64_t pos;
    bool suspect;
};

static enum tide_code read_once(struct sqlite_store *s, struct mark *ret, struct tide_err *err)
{
    static const char nothing[MARK_LEN];
    char line[MARK_LEN + 1], again[MARK_LEN + 1];
    enum tide_code code;
    size_t n = 0;

    *ret = (struct mark){.is = MARK_NONE};
    code = s->base.env->ops->pread(s->mark, line, MARK_LEN, 0, &n, err);
    if (code || n < MARK_LEN || memcmp(line, nothing, MARK_LEN) == 0)
        return code;
    ret->is = MARK_DAMAGED;
    if (!str_starts((struct str){line, MARK_LEN}, STR("position ")) ||
        !str_to_int64((struct str){line + 9, 20}, &ret->pos))
        return TIDE_OK;
    ret->suspect = memcmp(line + 30, "suspect ", 8) == 0;
    mark_line(again, ret->pos, ret->suspect);
    if (memcmp(line, again, MARK_LEN) == 0)
        ret->is = MARK_WHOLE;
    return TIDE_OK;
}

/*
 * Who opens a store reads it without the lock of those who write it, and may get some of the old line and some of the new, for as
 * long as the process that writes it is kept from continuing. What stays is damage.
 */
static enum tide_code mark_read(struct sqlite_store *s, struct mark *ret, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    *ret = (struct mark){.is = MARK_NONE};
    for (int i = 0; s->mark && !code && i < LOOKS && (!i || ret->is == MARK_DAMAGED); i++) {
        if (i > 0)
            s->base.env->ops->sleep_ms(s->base.env, 1);
        code = read_once(s, ret, err);
    }
    return code;
}

bool mark_missing(struct sqlite_store *s)
{
    struct mark m;

    return mark_read(s, &m, NULL) == TIDE_OK && m.is == MARK_NONE;
}

static enum tide_code fail_mark(struct sqlite_store *s, const struct mark *m, struct tide_err *err)
{
    tide_fail(err, TIDE_CORRUPT,
              "'%s-mark' is %s: acknowledged events may be missing; restore it (and '%s-wal', if that is missing too)",
              s->path, m->is == MARK_NONE ? "missing, and the store was not closed" : "damaged", s->path);
    return hint_accept_loss(err);
}

/* Where the log ends, and where the store says that it was closed (-1: it does not). */
static enum tide_code read_end(struct sqlite_store *s, int64_t *ret_closed, struct tide_err *err)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_MAX_POS);
    int rc = db_step(&s->w, st);

    if (rc == SQLITE_ROW) {
        s->last_pos = sqlite3_column_int64(st, 0);
        *ret_closed = sqlite3_column_type(st, 1) == SQLITE_INTEGER ? sqlite3_column_int64(st, 1) : -1;
        s->opening = *ret_closed == -1 && sqlite3_column_type(st, 1) == SQLITE_INTEGER;
    }
    sqlite3_reset(st);
    return rc == SQLITE_ROW ? TIDE_OK : db_fail(s, &s->w, rc, err, "read the last position");
}

/* The store is not closed any more; inside the transaction. */
static int say_open(struct sqlite_store *s)
{
    int rc = SQLITE_OK;

    s->open_next = OPEN_KNOWN;
    if (s->open == OPEN_KNOWN)
        return rc;
    rc = db_run(&s->w, s->open == OPEN_IN_FILE ? ST_META_OPEN : ST_META_OPENED);
    if (!rc && s->open == OPEN_UNKNOWN && sqlite3_changes(s->w.db) > 0)
        s->open_next = OPEN_UNKNOWN;
    return rc;
}

/* The first words in it outlast a power cut, or their absence would be taken for a loss. */
static enum tide_code sync_first(struct sqlite_store *s, struct tide_err *err)
{
    enum tide_code code = s->base.env->ops->sync(s->mark, err);

    code = code ? code : db_sync_dir(s, err);
    if (code && s->mark_empty) /* its earlier content stays: it may be the only record of a loss */
        (void)!s->base.env->ops->truncate(s->mark, 0, NULL);
    s->mark_fresh = code != TIDE_OK;
    s->mark_empty &= code != TIDE_OK;
    return code;
}

enum tide_code mark_begin(struct sqlite_store *s, int64_t pos, struct tide_err *err)
{
    int rc = say_open(s);
    enum tide_code code = rc ? db_fail(s, &s->w, rc, err, "say that the store is open") : TIDE_OK;

    code = code ? code : mark_write(s, pos, true, err);
    code = code || !s->mark_fresh ? code : sync_first(s, err);
    return code ? tide_wrap(err, "nothing was stored") : TIDE_OK;
}

enum tide_code mark_begin_still(struct sqlite_store *s, bool made, int64_t *ret_pos, struct tide_err *err)
{
    struct mark m;
    int64_t closed;
    enum tide_code code = mark_read(s, &m, err);

    if (!code && m.is == MARK_DAMAGED && !made && !s->accept_loss)
        return fail_mark(s, &m, err);
    if (!code && m.is != MARK_WHOLE) {
        code = read_end(s, &closed, err);
        m.pos = s->last_pos;
    }
    s->mark_empty |= m.is == MARK_NONE;
    s->mark_fresh |=
        m.is != MARK_WHOLE || m.suspect; /* the process that died in its commit may not have come to the sync */
    *ret_pos = m.pos;
    s->open = OPEN_UNKNOWN; /* others may have closed it since */
    return code ? code : mark_begin(s, m.pos, err);
}

void mark_end(struct sqlite_store *s, int64_t pos)
{
    s->open = s->open_next;
    /* A reader that was stopped may be in the way: then the next commit tries again. */
    if (s->open == OPEN_UNKNOWN && db_checkpoint(s))
        s->open = OPEN_IN_FILE;
    s->moved = true;
    if (!s->broken)
        mark_back(s, pos);
}

/* A commit that changes nothing for anybody: positions up to the last one are not used again. */
static enum tide_code commit_floor(struct sqlite_store *s, const char *what, struct tide_err *err)
{
    int rc = db_run(&s->w, ST_BEGIN_WRITE);
    enum tide_code code;

    rc = rc ? rc : position_floor(s);
    code = rc ? db_fail(s, &s->w, rc, err, what) : mark_begin(s, s->last_pos, err);
    if (!code && (rc = db_run(&s->w, ST_COMMIT)) != SQLITE_OK)
        code = db_fail(s, &s->w, rc, err, what);
    if (code)
        db_run(&s->w, ST_ROLLBACK);
    else
        mark_end(s, s->last_pos);
    return code;
}

/*
 * A mark that says suspect may never have been synced: what says ok was. The same goes for the word that the store is open. Where
 * other processes have the store open, a commit that failed is in the log, behind what they take for its end, and a power cut would
 * bring it back; so another one takes its place.
 */
enum tide_code mark_settle(struct sqlite_store *s, struct tide_err *err)
{
    enum tide_code code = sync_first(s, err);

    if (!code && s->opening && !db_checkpoint(s) && s->broken)
        code = db_fail(s, &s->w, 0, err, "say that the store is open");
    return code ? code : commit_floor(s, "end the log behind what is stored", err);
}

void mark_back(struct sqlite_store *s, int64_t pos)
{
    (void)!mark_write(s, pos, false, NULL); /* an old mark is a right mark */
}

void mark_close(struct sqlite_store *s)
{
    sqlite3_stmt *put;
    struct tide_err err;
    enum tide_code code;
    int64_t closed;
    int rc = sqlite3_exec(s->w.db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL); /* the move syncs the log first */

    rc = rc ? rc : db_run(&s->w, ST_BEGIN_WRITE);
    rc = rc ? rc : read_end(s, &closed, &err) || mark_begin(s, s->last_pos, &err) ? SQLITE_IOERR : SQLITE_OK;
    if (!rc && (put = db_stmt(&s->w, ST_META_PUT))) {
        sqlite3_bind_text(put, 1, "closed", -1, SQLITE_STATIC);
        sqlite3_bind_int64(put, 2, s->last_pos);
    }
    rc = rc ? rc : db_run(&s->w, ST_META_PUT);
    rc = rc ? rc : db_run(&s->w, ST_COMMIT);
    if (rc)
        db_run(&s->w, ST_ROLLBACK);
    code = db_compact(s, &err);
    if (code == TIDE_BUSY) /* a reader is in the way, perhaps one that was stopped: then nothing has synced the log */
        code = db_renew_log(s, &err);
    if (!code && !rc)
        mark_back(s, s->last_pos);
}

/* Continues without the lost events. Their positions are not used again: who has read them reads on behind them. */
static enum tide_code accept_loss(struct sqlite_store *s, const struct mark *m, struct tide_err *err)
{
    if (m->is == MARK_WHOLE)
        s->last_pos = m->pos;
    else
        s->mark_fresh = s->mark_empty = true;
    return commit_floor(s, "continue without the lost events", err);
}

/* TIDE_CORRUPT: more was acknowledged than is there, or may have been. */
static enum tide_code mark_judge(struct sqlite_store *s, bool older, struct mark *ret, struct tide_err *err)
{
    int64_t closed = -1;
    enum tide_code code = mark_read(s, ret, err);

    code = code ? code : read_end(s, &closed, err);
    if (code || (ret->is == MARK_WHOLE && s->last_pos >= ret->pos) ||
        (ret->is == MARK_NONE && (older || closed == s->last_pos)))
        return code;
    if (ret->is != MARK_WHOLE)
        return fail_mark(s, ret, err);
    tide_fail(err, TIDE_CORRUPT,
              "'%s' ends at position %" PRId64 ", but %" PRId64 " was acknowledged: its write-ahead log was damaged "
              "or deleted; restore '%s-wal'",
              s->path, s->last_pos, ret->pos, s->path);
    return hint_accept_loss(err);
}

enum tide_code mark_allows(struct sqlite_store *s, bool older, struct tide_err *err)
{
    struct mark m;

    return s->accept_loss && !s->base.read_only ? TIDE_OK : mark_judge(s, older, &m, err);
}

enum tide_code mark_check(struct sqlite_store *s, bool *ret_suspect, struct tide_err *err)
{
    struct mark m = {0};
    enum tide_code code = mark_judge(s, false, &m, err);

    *ret_suspect = m.suspect;
    return code == TIDE_CORRUPT && s->accept_loss && !s->base.read_only ? accept_loss(s, &m, err) : code;
}

void reserve_make(struct sqlite_store *s)
{
    static const char zeros[RESERVE_BYTES];
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *f = NULL;
    int64_t bytes = 0;
    char path[1100];

    if (db_path(s, "-reserve", path, NULL) || side_bytes(s, "-reserve", &bytes, NULL) || bytes != SIDE_ABSENT)
        return;
    if (ops->open(s->base.env, path, ENV_WRITE | ENV_CREATE, &f, NULL))
        return;
    if (ops->pwrite(f, zeros, sizeof zeros, 0, NULL))
        (void)!ops->unlink(s->base.env, path, NULL); /* no room now: the next opening tries again */
    ops->close(f);
}

bool reserve_release(struct sqlite_store *s)
{
    int64_t bytes = 0;
    char path[1100];

    return !db_path(s, "-reserve", path, NULL) && !side_bytes(s, "-reserve", &bytes, NULL) && bytes != SIDE_ABSENT &&
           !s->base.env->ops->unlink(s->base.env, path, NULL);
}
