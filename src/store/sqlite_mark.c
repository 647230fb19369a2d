/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two small files beside the store.
 *
 * "-mark": the lock that all writers share, and one line with the last position that was acknowledged, written after each
 * commit and never synced: it can be behind the log, never ahead of it. So when the log ends before the mark, acknowledged
 * events are gone (a write-ahead log that was deleted or damaged: SQLite by itself would say nothing), and opening says so.
 * While a commit is under way it says "suspect": when that commit's sync fails, or its process dies in it, the page cache
 * may show what the disk does not have, and whoever opens the store next does not trust it. It must be said before: a disk
 * that fails the sync may fail this write as well.
 *
 *   bytes 0..  "position 00000000000000000042 ok      5f3c…16 hex digits of its digest\n"
 *
 * "-reserve": disk blocks kept in hand; given back on a full disk, so that opening and reading still work.
 */
#include <inttypes.h>

#include "base/digest.h"
#include "store/sqlite_db.h"

#define MARK_HEAD 39 /* "position " + 20 digits + ' ' + 8 + ' ' */
#define MARK_LEN (MARK_HEAD + 17)

static void mark_line(char out[MARK_LEN + 1], int64_t pos, bool suspect)
{
    unsigned char digest[DIGEST_SIZE];

    snprintf(out, MARK_LEN + 1, "position %020" PRId64 " %-8s ", pos, suspect ? "suspect" : "ok");
    digest_of(digest, (struct str){out, MARK_HEAD});
    hex_encode(out + MARK_HEAD, digest, 8);
    out[MARK_LEN - 1] = '\n';
    out[MARK_LEN] = 0;
}

static enum tide_code mark_write(struct sqlite_store *s, int64_t pos, bool suspect, struct tide_err *err)
{
    char line[MARK_LEN + 1];

    mark_line(line, pos, suspect);
    return s->base.env->ops->pwrite(s->mark, line, MARK_LEN, 0, err);
}

enum tide_code mark_begin(struct sqlite_store *s, int64_t pos, struct tide_err *err)
{
    return mark_write(s, pos, true, err) ? tide_wrap(err, "nothing was stored") : TIDE_OK;
}

void mark_end(struct sqlite_store *s, int64_t pos)
{
    (void)!mark_write(s, pos, false, NULL); /* an old mark is a right mark */
}

/* The position in the mark; 0 when there is none or it is torn. */
static int64_t mark_read(struct sqlite_store *s, bool *ret_suspect)
{
    char line[MARK_LEN + 1], again[MARK_LEN + 1];
    int64_t pos = 0;
    size_t n = 0;

    *ret_suspect = false;
    if (!s->mark)
        return 0;
    if (s->base.env->ops->pread(s->mark, line, MARK_LEN, 0, &n, NULL) || n != MARK_LEN ||
        !str_starts((struct str){line, MARK_LEN}, STR("position ")) || !str_to_int64((struct str){line + 9, 20}, &pos))
        return 0;
    *ret_suspect = memcmp(line + 30, "suspect ", 8) == 0;
    mark_line(again, pos, *ret_suspect);
    return memcmp(line, again, MARK_LEN) == 0 ? pos : 0;
}

int64_t mark_position(struct sqlite_store *s)
{
    bool suspect;

    return mark_read(s, &suspect);
}

/* Goes on without the lost events. Their positions are not used again: who has read them reads on behind them. */
static enum tide_code accept_loss(struct sqlite_store *s, int64_t lost_to, struct tide_err *err)
{
    int rc = db_run(&s->w, ST_BEGIN_WRITE);

    s->last_pos = lost_to;
    rc = rc ? rc : position_floor(s);
    rc = rc ? rc : db_run(&s->w, ST_COMMIT);
    if (!rc)
        return TIDE_OK;
    db_run(&s->w, ST_ROLLBACK);
    return db_fail(s, &s->w, rc, err, "go on without the lost events");
}

enum tide_code mark_check(struct sqlite_store *s, bool *ret_suspect, struct tide_err *err)
{
    int64_t want = mark_read(s, ret_suspect);
    sqlite3_stmt *st = db_stmt(&s->w, ST_MAX_POS);
    int rc = db_step(&s->w, st);

    if (rc == SQLITE_ROW)
        s->last_pos = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    if (rc != SQLITE_ROW)
        return db_fail(s, &s->w, rc, err, "read the last position");
    if (s->last_pos >= want)
        return TIDE_OK;
    if (s->accept_loss && !s->base.read_only)
        return accept_loss(s, want, err);
    return tide_fail(
        err, TIDE_CORRUPT,
        "'%s' ends at position %" PRId64 ", but %" PRId64 " was acknowledged: its write-ahead log was damaged "
        "or deleted; put '%s-wal' back, or go on without the lost events by `tidemark store check --accept-loss`",
        s->path, s->last_pos, want, s->path);
}

void reserve_make(struct sqlite_store *s)
{
    static const char zeros[RESERVE_BYTES];
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *f = NULL;
    struct env_stat st;
    char path[1100];

    if (db_path(s, "-reserve", path, NULL) || ops->stat(s->base.env, path, &st, NULL) || st.kind == ENV_FILE)
        return;
    if (ops->open(s->base.env, path, ENV_WRITE | ENV_CREATE, &f, NULL))
        return;
    if (ops->pwrite(f, zeros, sizeof zeros, 0, NULL))
        (void)!ops->unlink(s->base.env, path, NULL); /* no room now: the next opening tries again */
    ops->close(f);
}

bool reserve_release(struct sqlite_store *s)
{
    struct env_stat st;
    char path[1100];

    return db_path(s, "-reserve", path, NULL) == TIDE_OK &&
           s->base.env->ops->stat(s->base.env, path, &st, NULL) == TIDE_OK && st.kind == ENV_FILE &&
           s->base.env->ops->unlink(s->base.env, path, NULL) == TIDE_OK;
}
