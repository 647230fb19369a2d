/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands at the path of a store. Looked at before anything is made or opened: SQLite changes what it opens, and beside a
 * database that is missing or empty it throws the write-ahead log away, with all that was acknowledged and is only there.
 */
#include "store/batch_rules.h"
#include "store/sqlite_db.h"

enum tide_code side_bytes(struct sqlite_store *s, const char *suffix, int64_t *ret_bytes, struct tide_err *err)
{
    struct env_stat st = {0};
    char path[1100];
    enum tide_code code = db_path(s, suffix, path, err);

    code = code ? code : s->base.env->ops->stat(s->base.env, path, &st, err);
    if (!code)
        *ret_bytes = st.kind == ENV_ABSENT ? SIDE_ABSENT : st.kind == ENV_FILE ? st.size : 0;
    return code;
}

/* A store whose making was cut off: SQLite takes the journal and makes it an empty file again. */
bool path_has_journal(struct sqlite_store *s)
{
    int64_t bytes = 0;

    return !side_bytes(s, "-journal", &bytes, NULL) && bytes > 0;
}

/*
 * Somebody else's database must not be touched, not even opened: SQLite would change it. Ours carries its id in the header,
 * or, when it was never finished, has a side file.
 */
static enum tide_code check_header(struct sqlite_store *s, const unsigned char *header, size_t n, struct tide_err *err)
{
    int64_t mark = 0;
    enum tide_code code;

    if (path_has_journal(s))
        return TIDE_OK;
    if (n < 100 || memcmp(header, "SQLite format 3", 16) != 0)
        return tide_fail(err, TIDE_NOT_A_STORE, "'%s' is not a Tidemark store", s->path);
    if (header[68] == 'T' && header[69] == 'I' && header[70] == 'D' && header[71] == 'E')
        return TIDE_OK;
    code = side_bytes(s, "-mark", &mark, err);
    if (!code && mark == SIDE_ABSENT)
        code = tide_fail(err, TIDE_NOT_A_STORE, "'%s' is an SQLite file, but not a Tidemark store", s->path);
    return code;
}

/*
 * The database is missing or empty. Beside it there may be what a store leaves that is made, and cut off in that: no log, and
 * a side file with nothing in it. Anything more is the rest of a store whose database was moved, removed or emptied.
 */
static enum tide_code check_alone(struct sqlite_store *s, bool missing, struct tide_err *err)
{
    static const char *const rest[] = {"-wal", "-mark"};
    int64_t bytes = 0;

    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        enum tide_code code = side_bytes(s, rest[i], &bytes, err);

        if (code)
            return code;
        if (bytes > 0) {
            tide_fail(err, TIDE_CORRUPT,
                      "'%s' is %s, but '%s%s' of it is there, so nothing was changed: restore the file; if it is "
                      "lost, move '%s-wal' and '%s-mark' away",
                      s->path, missing ? "missing" : "empty", s->path, rest[i], s->path, s->path);
            return tide_about(err, TIDE_SUBJECT_FILE, s->path);
        }
    }
    return TIDE_OK;
}

static enum tide_code look_inside(struct sqlite_store *s, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *f = NULL;
    unsigned char header[100];
    size_t n = 0;
    enum tide_code code = ops->open(s->base.env, s->path, ENV_READ, &f, err);

    if (code)
        return code;
    code = ops->pread(f, header, sizeof header, 0, &n, err);
    ops->close(f);
    return code ? code : check_header(s, header, n, err);
}

static bool is_nothing(const struct env_stat *st)
{
    return st->kind == ENV_ABSENT || (st->kind == ENV_FILE && st->size == 0);
}

enum tide_code path_look(struct sqlite_store *s, bool create, bool *ret_new, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct tide_err rest = {0};
    struct env_stat st;
    enum tide_code code = ops->stat(s->base.env, s->path, &st, err);

    if (!code && is_nothing(&st) && check_alone(s, st.kind == ENV_ABSENT, &rest)) {
        code = ops->stat(s->base.env, s->path, &st, err); /* it may be another process that makes the store now */
        if (!code && is_nothing(&st))
            return tide_err_copy(err, &rest);
    }
    if (code)
        return code;
    *ret_new = is_nothing(&st);
    if (st.kind == ENV_ABSENT && !create)
        return fail_no_store(s->path, err);
    if (st.kind != ENV_ABSENT && st.kind != ENV_FILE)
        return tide_fail(err, TIDE_NOT_A_STORE, "'%s' is a %s, not a store", s->path,
                         st.kind == ENV_DIR    ? "directory"
                         : st.kind == ENV_LINK ? "symbolic link"
                                               : "special file");
    return *ret_new ? TIDE_OK : look_inside(s, err);
}

enum tide_code path_still_there(struct sqlite_store *s, struct tide_err *err)
{
    struct env_stat st;
    enum tide_code code = s->base.env->ops->stat(s->base.env, s->path, &st, err);

    if (!code && is_nothing(&st))
        code = tide_fail(err, TIDE_IO, "'%s' was %s while it was in use: restore it", s->path,
                         st.kind == ENV_ABSENT ? "moved away" : "emptied");
    return code;
}

static enum tide_code make_dir(struct sqlite_store *s, struct tide_err *err)
{
    char dir[1024];
    char *slash;

    snprintf(dir, sizeof dir, "%s", s->path);
    slash = strrchr(dir, '/');
    if (!slash || slash == dir)
        return TIDE_OK;
    *slash = 0;
    return s->base.env->ops->mkdirs(s->base.env, dir, err);
}

/*
 * The entry of a new file is durable only when its directory is synced; SQLite does that for its log, not for the file.
 * Must come before the tables are stored: the process that finds them there relies on it. It does, with the first words of the mark.
 */
enum tide_code db_sync_dir(struct sqlite_store *s, struct tide_err *err)
{
    char dir[1024];
    char *slash;

    snprintf(dir, sizeof dir, "%s", s->path);
    slash = strrchr(dir, '/');
    if (!slash)
        return s->base.env->ops->sync_dir(s->base.env, ".", err);
    slash[slash == dir] = 0;
    return s->base.env->ops->sync_dir(s->base.env, dir, err);
}

/* Ours alone (0600): SQLite would ask the umask, and gives its own files the mode of this one. */
enum tide_code path_make(struct sqlite_store *s, struct tide_err *err)
{
    struct env_file *f = NULL;
    enum tide_code code = make_dir(s, err);

    code = code ? code : s->base.env->ops->open(s->base.env, s->path, ENV_WRITE | ENV_CREATE, &f, err);
    if (!code)
        s->base.env->ops->close(f);
    return code;
}
