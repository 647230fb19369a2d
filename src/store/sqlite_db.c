/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing, connections, errors, and the one lock. Every write transaction and every checkpoint of every
 * process runs under the lock of the side file; checkpoints are RESTART or TRUNCATE only, never PASSIVE, and never come by
 * themselves: SQLite 3.40 can lose committed rows when a passive checkpoint meets a writer.
 */
#include "store/sqlite_db.h"

#include <errno.h>

#include "base/invariant.h"
#include "base/id.h"
#include "env/wal_moves.h"
#include "store/group.h"
#include "store/origin.h"
#include "store/sqlite.h"

#define BUSY_MS 5000
#define CHECKPOINT_WAIT_MS 100
#define ASK_MS 5
#define REWRITE_BYTES (64 * 1024)

/* PROTOCOL: a writer is stopped in the middle of a commit. TOOBIG: nothing that we write is. */
static const struct {
    int sqlite;
    enum tide_code code;
} codes[] = {
    {SQLITE_FULL, TIDE_FULL},          {SQLITE_NOTADB, TIDE_NOT_A_STORE}, {SQLITE_CORRUPT, TIDE_CORRUPT},
    {SQLITE_READONLY, TIDE_READ_ONLY}, {SQLITE_BUSY, TIDE_BUSY},          {SQLITE_LOCKED, TIDE_BUSY},
    {SQLITE_PERM, TIDE_DENIED},        {SQLITE_CANTOPEN, TIDE_IO},        {SQLITE_IOERR, TIDE_IO},
    {SQLITE_TOOBIG, TIDE_CORRUPT},     {SQLITE_ERROR, TIDE_CORRUPT},      {SQLITE_CONSTRAINT, TIDE_CORRUPT},
    {SQLITE_MISMATCH, TIDE_CORRUPT},   {SQLITE_PROTOCOL, TIDE_BUSY},
};

static enum tide_code code_of(int rc, int errnum)
{
    if ((rc & 0xff) != SQLITE_CORRUPT && (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG))
        return TIDE_FULL;
    if ((rc & 0xff) == SQLITE_CANTOPEN && (errnum == EACCES || errnum == EPERM || errnum == EROFS))
        return errnum == EROFS ? TIDE_READ_ONLY : TIDE_DENIED;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].sqlite == (rc & 0xff))
            return codes[i].code;
    }
    return TIDE_FAILED;
}

enum tide_code db_fail(struct sqlite_store *s, struct conn *c, int rc, struct tide_err *err, const char *what)
{
    int errnum = c->db ? sqlite3_system_errno(c->db) : 0;
    enum tide_code code;

    rc = rc ? rc : c->db ? sqlite3_extended_errcode(c->db) : SQLITE_CANTOPEN;
    code = code_of(rc, errnum);
    if (code == TIDE_FULL && errnum != EFBIG)
        tide_fail(err, code, "%s: no space left on the disk of '%s'", what, s->path);
    else if (code == TIDE_CORRUPT)
        tide_fail(err, code, "%s: '%s' is damaged (%s)%s", what, s->path, sqlite3_errstr(rc),
                  s->base.group ? "" : ": restore it from a copy or from exports");
    else
        tide_fail(err, code, "%s: '%s': %s%s%s", what, s->path, sqlite3_errstr(rc), errnum ? ": " : "",
                  errnum ? strerror(errnum) : "");
    if (code == TIDE_CORRUPT && s->base.group)
        tide_hint(err, TIDE_ACTION_CHECK_STORE, "");
    return tide_about(err, TIDE_SUBJECT_FILE, s->path);
}

enum tide_code db_path(struct sqlite_store *s, const char *suffix, char out[1100], struct tide_err *err)
{
    int n = snprintf(out, 1100, "%s%s", s->path, suffix);

    return n < 1100 ? TIDE_OK : tide_fail(err, TIDE_INVALID, "the path is too long");
}

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct sqlite_store *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

static int set_up(struct sqlite_store *s, struct conn *c, bool writes)
{
    static const char pragmas[] =
        "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
        "PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF;"
        "PRAGMA cache_size=-8000";
    static const char reading[] = "PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF;"
                                  "PRAGMA query_only=ON; PRAGMA cache_size=-8000; PRAGMA wal_autocheckpoint=0";
    int rc;

    sqlite3_extended_result_codes(c->db, 1);
    sqlite3_busy_timeout(c->db, BUSY_MS);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    rc = sqlite3_exec(c->db, writes ? pragmas : reading, NULL, NULL, NULL);
    if (c == &s->w)
        sqlite3_wal_hook(c->db, on_wal, s);
    return rc || c != &s->w ? rc : pending_register(s);
}

static bool wal_is_empty(struct sqlite_store *s)
{
    int64_t bytes = 0;

    return !side_bytes(s, "-wal", &bytes, NULL) && bytes <= 0;
}

/* In a directory that cannot be written there is no shared memory for a log; without a log none is needed. */
static int connect_immutable(struct sqlite_store *s, struct conn *c)
{
    struct buf uri = BUF_INIT(4096);
    int rc;

    db_disconnect(c);
    buf_add_str(&uri, STR("file:"));
    for (const char *p = s->path; *p; p++) {
        if (*p == '?' || *p == '#' || *p == '%')
            buf_addf(&uri, "%%%02x", (unsigned char)*p);
        else
            buf_add_char(&uri, *p);
    }
    buf_add_str(&uri, STR("?immutable=1"));
    rc = sqlite3_open_v2(buf_cstr(&uri), &c->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                         vfs_name(s->base.env));
    buf_done(&uri);
    return rc ? rc : set_up(s, c, false);
}

enum tide_code db_connect(struct sqlite_store *s, struct conn *c, struct tide_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX; /* path_make() alone creates */
    int rc = sqlite3_open_v2(s->path, &c->db, flags, vfs_name(s->base.env));
    enum tide_code code;

    rc = rc ? rc : set_up(s, c, c == &s->w && !s->base.read_only);
    if (!rc && s->base.read_only) /* opening reads nothing: the first statement finds out what stands in the way */
        rc = sqlite3_exec(c->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    if (s->base.read_only && ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) && wal_is_empty(s))
        rc = connect_immutable(s, c);
    if (!rc)
        return TIDE_OK;
    code = db_fail(s, c, rc, err, "open");
    db_disconnect(c);
    return code;
}

void db_disconnect(struct conn *c)
{
    for (int i = 0; i < ST_COUNT; i++)
        sqlite3_finalize(c->stmts[i]);
    sqlite3_close(c->db);
    memset(c, 0, sizeof *c);
}

enum tide_code db_lock(struct sqlite_store *s, struct tide_err *err)
{
    return queue_lock(s, NULL, &(bool){false}, err);
}

enum tide_code db_compact(struct sqlite_store *s, struct tide_err *err)
{
    int rc = sqlite3_wal_checkpoint_v2(s->w.db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    if (rc)
        return db_fail(s, &s->w, rc, err, "move the write-ahead log into the file");
    s->wal_pages = 0;
    return TIDE_OK;
}

/* A move of the log, by pieces (env/wal_moves.h). */
struct moving {
    struct env *env;
    sqlite3_file *files[2]; /* the database and its log */
};

/* How many bytes were held back. */
static int by_pieces(const struct moving *m, bool on)
{
    int left = 0;

    for (size_t i = 0; i < 2; i++) {
        int value = on;

        if (m->files[i] && m->files[i]->pMethods && m->files[i]->pMethods->xFileControl(m->files[i], WAL_MOVES, &value))
            value = 0;
        left += i == 0 ? value : 0;
    }
    return left;
}

/* It begins to move when it has asked all who are in the way; it may then move a part, and say so without a sync. */
static int on_reader(void *arg, int asked)
{
    struct moving *m = arg;

    by_pieces(m, false);
    if (asked >= CHECKPOINT_WAIT_MS / ASK_MS)
        return 0;
    m->env->ops->sleep_ms(m->env, ASK_MS);
    return 1;
}

static int move_log(struct sqlite_store *s, int *ret_in_log, int *ret_moved)
{
    struct moving m = {.env = s->base.env};
    int rc, left;

    if (sqlite3_file_control(s->w.db, "main", SQLITE_FCNTL_FILE_POINTER, &m.files[0]) ||
        sqlite3_file_control(s->w.db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &m.files[1]))
        m.files[0] = m.files[1] = NULL;
    sqlite3_busy_handler(s->w.db, on_reader, &m);
    by_pieces(&m, true);
    rc = sqlite3_wal_checkpoint_v2(s->w.db, "main", SQLITE_CHECKPOINT_RESTART, ret_in_log, ret_moved);
    left = by_pieces(&m, false);
    INVARIANT(!left || (rc && rc != SQLITE_BUSY)); /* of a part that was moved, too */
    sqlite3_busy_timeout(s->w.db, BUSY_MS);
    return rc;
}

/* A reader in the way, perhaps one that was stopped, must not hold up every append: a short wait, then not again before
 * the log has grown by as much once more. */
bool db_checkpoint(struct sqlite_store *s)
{
    int rc, in_log = -1, moved = -1;

    rc = move_log(s, &in_log, &moved);
    s->move_at_pages = rc == SQLITE_OK ? WAL_LIMIT_PAGES : s->wal_pages + WAL_LIMIT_PAGES;
    if (rc == SQLITE_OK)
        s->wal_pages = 0;
    else if (rc != SQLITE_BUSY && (rc & 0xff) != SQLITE_FULL)
        s->broken = true; /* what is acknowledged is safe in the log; this connection is not to be trusted */
    return rc == SQLITE_OK || (rc == SQLITE_BUSY && in_log >= 0 && in_log == moved);
}

static void leave_reader(struct sqlite_store *s, struct conn *c)
{
    INVARIANT(((struct reader *)(void *)c)->busy);
    pthread_mutex_lock(&s->rmu);
    ((struct reader *)(void *)c)->busy = false;
    s->reading--;
    pthread_cond_broadcast(&s->rfree);
    pthread_mutex_unlock(&s->rmu);
}

enum tide_code db_reader(struct sqlite_store *s, struct conn **ret, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    struct reader *r;
    int rc;

    pthread_mutex_lock(&s->rmu);
    while (s->reopening || s->reading == READERS)
        pthread_cond_wait(&s->rfree, &s->rmu);
    for (r = s->readers; r->busy; r++)
        ;
    r->busy = true;
    s->reading++;
    pthread_mutex_unlock(&s->rmu);
    if (!r->c.db && (code = path_still_there(s, err)) == TIDE_OK)
        code = db_connect(s, &r->c, err);
    if (!code && (rc = db_run(&r->c, ST_BEGIN)) != SQLITE_OK)
        code = db_fail(s, &r->c, rc, err, "begin reading");
    if (code)
        leave_reader(s, &r->c);
    else
        *ret = &r->c;
    return code;
}

void db_reader_done(struct sqlite_store *s, struct conn *c)
{
    db_run(c, ST_ROLLBACK);
    leave_reader(s, c);
}

void db_reader_rest(struct sqlite_store *s, struct conn *c)
{
    db_run(c, ST_ROLLBACK);
    (void)sqlite3_db_release_memory(c->db);
    leave_reader(s, c);
    mem_give_back();
}

/* When those who read have ended. */
static void disconnect_readers(struct sqlite_store *s)
{
    pthread_mutex_lock(&s->rmu);
    s->reopening = true;
    while (s->reading)
        pthread_cond_wait(&s->rfree, &s->rmu);
    for (size_t i = 0; i < READERS; i++)
        db_disconnect(&s->readers[i].c);
    s->reopening = false;
    pthread_cond_broadcast(&s->rfree);
    pthread_mutex_unlock(&s->rmu);
}

static enum tide_code open_database(struct sqlite_store *s, bool create, struct tide_err *err)
{
    bool lock = s->mark && !s->base.read_only; /* one that is there has one, unless it was closed and copied */
    enum tide_code code = lock ? db_lock(s, err) : TIDE_OK;

    if (code)
        return code;
    code = db_connect(s, &s->w, err);
    if (lock) /* two that make the same store at once must not meet where SQLite switches to its log */
        queue_unlock(s);
    return code ? code : schema_migrate(s, create, err);
}

/* There is no log, and one would appear; or none of its memory. Nobody has the store open then. */
static bool opening_makes_files(struct sqlite_store *s)
{
    int64_t wal = 0, shm = 0;

    return !side_bytes(s, "-wal", &wal, NULL) && !side_bytes(s, "-shm", &shm, NULL) &&
           (wal == SIDE_ABSENT || (wal == 0 && shm == SIDE_ABSENT));
}

/*
 * What is refused leaves no file that was not there. Without a log all there is stands in the one file, which can be looked at
 * without making any. It counts while it stays so: another process may open the store meanwhile, and write.
 */
static enum tide_code look_aside(struct sqlite_store *s, bool create, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    if (!opening_makes_files(s) || path_has_journal(s))
        return TIDE_OK;
    if (!connect_immutable(s, &s->w))
        code = schema_look(s, create, err);
    db_disconnect(&s->w);
    return code != TIDE_IO && opening_makes_files(s) ? code : TIDE_OK;
}

static enum tide_code open_files(struct sqlite_store *s, bool create, struct tide_err *err)
{
    bool is_new = false;
    enum tide_code code = path_look(s, create, &is_new, err);

    if (!code && is_new)
        code = path_make(s, err);
    if (!code)
        code = mark_open(s, is_new, err);
    if (!code && !is_new)
        code = look_aside(s, create, err);
    if (code)
        return code;
    code = open_database(s, create, err);
    if (code == TIDE_FULL && !is_new && reserve_release(s)) {
        db_disconnect(&s->w);
        code = open_database(s, create, err);
    }
    return code;
}

/* Writes every byte of the log again, so that the sync takes it for new: the kernel believes that the disk has it. */
static enum tide_code rewrite_log(struct sqlite_store *s, struct env_file *f, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    AUTO(mem_freep) char *piece = mem_alloc(REWRITE_BYTES);
    enum tide_code code = TIDE_OK;
    size_t n = REWRITE_BYTES;

    for (int64_t at = 0; !code && n == REWRITE_BYTES; at += (int64_t)n) {
        code = ops->pread(f, piece, REWRITE_BYTES, at, &n, err);
        if (!code && n)
            code = ops->pwrite(f, piece, n, at, err);
    }
    return code ? code : ops->sync(f, err);
}

enum tide_code db_renew_log(struct sqlite_store *s, struct tide_err *err)
{
    const struct env_ops *ops = s->base.env->ops;
    struct env_file *f = NULL;
    char path[1100];
    enum tide_code code = db_path(s, "-wal", path, err);

    code = code ? code : ops->open(s->base.env, path, ENV_WRITE, &f, err);
    if (code)
        return code == TIDE_NOT_FOUND ? TIDE_OK : code;
    code = rewrite_log(s, f, err);
    ops->close(f);
    return code;
}

/*
 * After a failed sync the page cache may show what the disk does not have, and a later sync does not mend that. So the log
 * is written anew where it stands. Not by moving it into the main file: a power cut in the middle of that would leave half
 * of a transaction there whose other half is in no log.
 */
static enum tide_code settle_store(struct sqlite_store *s, struct tide_err *err)
{
    bool suspect = false;
    enum tide_code code;

    if (s->base.read_only || !(s->mark || s->accept_loss)) {
        /* Without the lock: the mark is read first, and the log can only be ahead of it. */
        code = mark_check(s, &suspect, err);
        if (code != TIDE_CORRUPT || s->mark || mark_open(s, false, NULL) || !s->mark)
            return code;
        return settle_store(s, err); /* another process has made it meanwhile, and written */
    }
    code = db_lock(s, err);
    if (code)
        return code;
    code = mark_check(s, &suspect, err);
    if (!code && (suspect || s->broken)) {
        s->broken = false;
        code = db_renew_log(s, err);
        code = code ? code : mark_settle(s, err);
    }
    queue_unlock(s);
    s->broken = code != TIDE_OK;
    if (!code)
        s->base.unsettled = false;
    return code;
}

static enum tide_code reopen_store(struct sqlite_store *s, struct tide_err *err)
{
    enum tide_code code;

    heads_forget(s);
    db_disconnect(&s->w);
    disconnect_readers(s);
    pthread_mutex_lock(&s->look_mu);
    db_disconnect(&s->look);
    pthread_mutex_unlock(&s->look_mu);
    code = path_still_there(s, err);
    code = code ? code : db_connect(s, &s->w, err);
    code = code ? code : schema_migrate(s, false, err);
    code = code ? code : settle_store(s, err);
    if (!code && lease_refind(s))
        code = db_fail(s, &s->w, 0, err, "find our own record");
    return code;
}

enum tide_code db_ready(struct sqlite_store *s, struct tide_err *err)
{
    if (s->w.db && !s->broken)
        return TIDE_OK;
    s->broken = true;
    return reopen_store(s, err) ? tide_wrap(err, "reopen after a failure") : TIDE_OK;
}

static void sqlite_close_store(struct store *store)
{
    struct sqlite_store *s = sqlite_of(store);

    /* A closed store is one file, for the person who copies it; also the next opening has no log to read. */
    if (s->w.db && !s->broken && s->moved && queue_try(s)) {
        sqlite3_busy_timeout(s->w.db, 0);
        mark_close(s);
        queue_unlock(s);
    }
    heads_forget(s);
    db_disconnect(&s->w);
    disconnect_readers(s);
    db_disconnect(&s->look);
    free(s->pending.events);
    free(s->pending.heads);
    queue_done(s);
    pool_free(s->pool);
    if (s->mark)
        store->env->ops->close(s->mark);
    pthread_mutex_destroy(&s->rmu);
    pthread_cond_destroy(&s->rfree);
    pthread_mutex_destroy(&s->look_mu);
    orphans_done(&s->orphans);
    holders_done(&s->holders);
    store_done(store);
    sodium_memzero(s->row_key, sizeof s->row_key);
    sodium_memzero(s->value_key, sizeof s->value_key);
    free(s);
}

static enum tide_code sqlite_settle(struct store *store, struct tide_err *err)
{
    return db_ready(sqlite_of(store), err);
}

static const struct store_ops ops = {
    .scheme = "sqlite",
    .can = STORE_POSITIONS | STORE_COMPACTS,
    .close = sqlite_close_store,
    .commit = sqlite_commit,
    .is_due = sqlite_is_due,
    .maintain = sqlite_maintain,
    .head = sqlite_head,
    .read = sqlite_read,
    .checkpoints = sqlite_checkpoints,
    .checkpoint_seq = sqlite_checkpoint_seq,
    .read_all = sqlite_read_all,
    .last_position = sqlite_last_position,
    .snapshot = sqlite_snapshot,
    .list = sqlite_list,
    .live = sqlite_live,
    .resolve = sqlite_resolve,
    .info = sqlite_info,
    .check = sqlite_check,
    .rebuild = sqlite_rebuild,
    .settle = sqlite_settle,
    .compact = sqlite_compact,
    .change = sqlite_change,
};

static void make_keys(struct sqlite_store *s)
{
    unsigned char digest[DIGEST_SIZE];
    struct digest_state d;

    digest_begin(&d, &s->base.key);
    digest_add_str(&d, STR("tidemark row check"));
    digest_end(&d, digest);
    memcpy(s->row_key, digest, sizeof s->row_key);
    digest_begin(&d, &s->base.key);
    digest_add_str(&d, STR("tidemark big values"));
    origin_mix(&d, &s->base);
    digest_end(&d, digest);
    memcpy(s->value_key, digest, sizeof s->value_key);
    sodium_memzero(digest, sizeof digest);
}

static struct sqlite_store *sqlite_new(const char *path, const struct tide_store_options *opt, struct env *env)
{
    struct sqlite_store *s = mem_zero(sizeof *s);

    store_init(&s->base, &ops, path, opt, env);
    s->accept_loss = opt->flags & TIDE_OPEN_ACCEPT_LOSS;
    s->adopt = opt->flags & TIDE_OPEN_ADOPT;
    make_keys(s);
    /* Names that mean something else to SQLite are paths to us. */
    snprintf(s->path, sizeof s->path, "%s%s", path[0] == ':' || strncmp(path, "file:", 5) == 0 ? "./" : "", path);
    pthread_mutex_init(&s->rmu, NULL);
    pthread_cond_init(&s->rfree, NULL);
    pthread_mutex_init(&s->look_mu, NULL);
    snprintf(s->base.watch.self, sizeof s->base.watch.self, "%s", s->path);
    snprintf(s->base.watch.side, sizeof s->base.watch.side, "%s-mark", s->path);
    orphans_init(&s->orphans);
    holders_init(&s->holders, env);
    queue_init(&s->queue);
    s->pool = pool_new(env);
    return s;
}

enum tide_code sqlite_open(const char *path, const struct tide_store_options *opt, struct env *env,
                           struct store **ret_store, struct tide_err *err)
{
    struct sqlite_store *s = sqlite_new(path, opt, env);
    enum tide_code code;

    s->holders.local = env->ops->is_local(env, s->path);
    code = open_files(s, (opt->flags & TIDE_OPEN_CREATE) && !s->base.read_only, err);
    if (!code && (code = settle_store(s, err)) == TIDE_FULL) {
        s->broken = true; /* it can be read; before anything is written it must be settled */
        code = TIDE_OK;
    }
    if (code) {
        s->broken = true; /* nothing to tidy up */
        sqlite_close_store(&s->base);
        return tide_wrap(err, "open store");
    }
    s->holders.local = env->ops->is_local(env, s->path);
    if (!s->base.read_only)
        reserve_make(s);
    *ret_store = &s->base;
    return TIDE_OK;
}
