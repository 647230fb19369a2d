/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory: making it, recognising it, opening and closing. A directory with sessions/ in it that somebody else made is a
 * store as well; store.json is put into it when it is first opened for writing.
 */
#include <sodium.h>
#include <stdio.h>

#include "base/id.h"
#include "base/json.h"
#include "store/files_store.h"
#include "store/origin.h"

#define META_MAX 65536
#define SWEEP_MS 600000

static const struct store_ops ops;

/* ---- store.json ---- */

static void key_check(const struct files_store *s, char out[2 * DIGEST_SIZE + 1])
{
    unsigned char digest[DIGEST_SIZE];
    struct digest_state d;

    digest_begin(&d, &s->base.key);
    digest_add_str(&d, STR("tidemark key check"));
    digest_end(&d, digest);
    hex_encode(out, digest, DIGEST_SIZE);
}

/* What git leaves alone, and that it changes no line ends. Unless the person has one. */
static enum tide_code write_for_git(struct files_store *s, struct tide_err *err)
{
    static const struct {
        const char *name, *text;
    } files[] = {{".gitignore", "live/\nboots/\ncache/\nlock\nchanges\n*.tmp-*\n"}, {".gitattributes", "* -text\n"}};
    enum tide_code code = TIDE_OK;
    char path[FILES_PATH];
    struct env_stat st;

    for (size_t i = 0; i < sizeof files / sizeof files[0] && !code; i++) {
        files_path(s, path, "", files[i].name, "");
        code = s->base.env->ops->stat(s->base.env, path, &st, err);
        if (!code && st.kind == ENV_ABSENT)
            code = files_put(s, "", files[i].name, str_from(files[i].text), false, err);
    }
    return code;
}

static enum tide_code write_meta(struct files_store *s, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(META_MAX);
    struct json_out o = json_out_to(&text);
    char check[2 * DIGEST_SIZE + 1];
    enum tide_code code;

    key_check(s, check);
    json_out_begin(&o, '{');
    json_out_kint(&o, STR("tidemark_store"), 1);
    json_out_kstr(&o, STR("layout"), STR("files"));
    json_out_kint(&o, STR("version"), FILES_VERSION);
    if (s->base.key.len)
        json_out_kstr(&o, STR("key_check"), str_from(check));
    json_out_end(&o, '}');
    buf_add_char(&text, '\n');
    code = files_put(s, "", "store.json", buf_view(&text), true, err);
    return code ? code : write_for_git(s, err);
}

static enum tide_code check_meta(struct files_store *s, struct str text, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char check[2 * DIGEST_SIZE + 1];
    struct json *v = NULL;
    struct str stored;
    int64_t version;

    if (json_parse(&a, text, NULL, &v, NULL, NULL) || json_get_int(v, STR("tidemark_store"), 0) != 1) {
        tide_fail(err, TIDE_CORRUPT,
                  "'%s/store.json' is damaged, or not Tidemark's: restore it; or remove it and give the key of the "
                  "store, if it has one: the next command that writes creates it again",
                  s->dir);
        return tide_about(err, TIDE_SUBJECT_FILE, "store.json");
    }
    version = json_get_int(v, STR("version"), 0);
    if (version > FILES_VERSION)
        return tide_fail(err, TIDE_TOO_NEW, "'%s' was written by a newer Tidemark (version %lld, this one knows %d)",
                         s->dir, (long long)version, FILES_VERSION);
    s->outdated = version < FILES_VERSION;
    s->older = version < 2;
    s->base.origins = s->older ? ORIGIN_OLDER : ORIGIN_KNOWN;
    stored = json_get_text(&a, v, STR("key_check"));
    key_check(s, check);
    if (stored.len && !s->base.key.len)
        return tide_fail(err, TIDE_WRONG_KEY, "the store is keyed and no key was given");
    if (stored.len && !str_eq(stored, str_from(check)))
        return tide_fail(err, TIDE_WRONG_KEY, "the key is not the one this store was made with");
    if (!stored.len && s->base.key.len)
        return tide_fail(err, TIDE_WRONG_KEY, "a key was given, but this store was made without one");
    return TIDE_OK;
}

/* ---- the directory ---- */

/* Anything but hidden files (.git) and what a store has that was being made when the power went, or is just being made. */
static enum tide_code note_foreign(void *arg, const char *name, enum env_kind kind)
{
    static const char *const ours[] = {"sessions", "live", "boots", "cache", "lock", "changes", "store.json"};
    bool mine = name[0] == '.' || strstr(name, ".tmp-");

    (void)kind;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        mine |= strcmp(name, ours[i]) == 0;
    *(bool *)arg |= !mine;
    return TIDE_OK;
}

/* A store is not made among somebody's files. */
static enum tide_code refuse_foreign(struct files_store *s, struct tide_err *err)
{
    bool foreign = false;
    enum tide_code code = s->base.env->ops->list(s->base.env, s->dir, note_foreign, &foreign, err);

    if (code || !foreign)
        return code;
    return tide_fail(err, TIDE_NOT_A_STORE, "'%s' contains other files and is not a store", s->dir);
}

static const char *const folders[] = {"sessions", "live", "boots", "cache"};

#define N_FOLDERS (sizeof folders / sizeof folders[0])

/*
 * Whatever stands in the place of one is not followed, not written to and not taken for an empty one. All of them are made before
 * store.json, so where some are there, and the one with the logs is not, it was taken away; a clone of a store without sessions
 * has none of them.
 */
static enum tide_code check_folders(struct files_store *s, bool found, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    char path[FILES_PATH];
    struct env_stat st;
    bool gone = false;

    for (size_t i = 0; i < N_FOLDERS && !code; i++) {
        files_path(s, path, folders[i], "", "");
        code = s->base.env->ops->stat(s->base.env, path, &st, err);
        if (code)
            return code;
        if (st.kind != ENV_DIR && st.kind != ENV_ABSENT)
            return tide_fail(err, TIDE_DENIED, "'%s' is %s: put the directory itself there", path,
                             st.kind == ENV_LINK ? "a symbolic link, which is not followed" : "not a directory");
        if (i == 0)
            gone = found && st.kind == ENV_ABSENT;
        else if (gone && st.kind == ENV_DIR && files_is(s, folders[0], "", "", ENV_ABSENT)) {
            tide_fail(err, TIDE_CORRUPT,
                      "'%s/sessions' is gone, and all logs were in it: restore it; or create the directory, empty, "
                      "to start again",
                      s->dir);
            code = tide_about(err, TIDE_SUBJECT_FILE, "sessions");
        }
    }
    return code;
}

static enum tide_code find_store(struct files_store *s, bool create, bool *ret_found, struct tide_err *err)
{
    const struct env_ops *env = s->base.env->ops;
    AUTO(buf_done) struct buf meta = BUF_INIT(META_MAX);
    struct env_stat st, sessions;
    char path[FILES_PATH];
    enum tide_code code = env->stat(s->base.env, s->dir, &st, err);

    *ret_found = false;
    if (code)
        return code;
    if (st.kind == ENV_ABSENT)
        return create ? TIDE_OK : fail_no_store(s->dir, err);
    if (st.kind != ENV_DIR)
        return tide_fail(err, TIDE_NOT_A_STORE, "'%s' is %s: a file store is a directory", s->dir,
                         st.kind == ENV_LINK ? "a symbolic link, which is not followed" : "not a directory");
    files_path(s, path, "", "store.json", "");
    code = files_get(s, path, META_MAX, &meta, err);
    if (!code) {
        *ret_found = true;
        return check_meta(s, buf_view(&meta), err);
    }
    if (code != TIDE_NOT_FOUND)
        return code;
    files_path(s, path, "sessions", "", "");
    code = env->stat(s->base.env, path, &sessions, err);
    if (!code && sessions.kind != ENV_DIR)
        code = create ? refuse_foreign(s, err) : fail_no_store(s->dir, err);
    return code;
}

static enum tide_code make_dirs(struct files_store *s, struct tide_err *err)
{
    char path[FILES_PATH];
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; i < N_FOLDERS && !code; i++) {
        files_path(s, path, folders[i], "", "");
        code = s->base.env->ops->mkdirs(s->base.env, path, err);
    }
    return code;
}

static enum tide_code open_helpers(struct files_store *s, struct tide_err *err)
{
    const struct env_ops *env = s->base.env->ops;
    unsigned flags = s->base.read_only ? ENV_READ : ENV_WRITE | ENV_CREATE;
    char path[FILES_PATH];
    enum tide_code code;

    files_path(s, path, "", "lock", "");
    code = env->open(s->base.env, path, flags, &s->lock, err);
    files_path(s, path, "", "changes", "");
    code = code ? code : env->open(s->base.env, path, flags, &s->changes, err);
    return code == TIDE_NOT_FOUND && s->base.read_only ? TIDE_OK : code;
}

/* Files that a cut left half-written: those that nobody can be at any more. */
static enum tide_code sweep_one(void *arg, const char *name, enum env_kind kind)
{
    struct files_store *s = arg;
    char path[FILES_PATH];
    struct env_stat st;

    if (kind != ENV_FILE || !strstr(name, ".tmp-"))
        return TIDE_OK;
    files_path(s, path, s->sweeping, name, "");
    if (!s->base.env->ops->stat(s->base.env, path, &st, NULL) && st.kind == ENV_FILE &&
        st.mtime_ns / 1000000 < env_now_ms(s->base.env) - SWEEP_MS)
        (void)!s->base.env->ops->unlink(s->base.env, path, NULL);
    return TIDE_OK;
}

static void sweep_temporary(struct files_store *s)
{
    static const char *const swept[] = {"", "sessions", "live", "boots"};
    char path[FILES_PATH];

    for (size_t i = 0; i < sizeof swept / sizeof swept[0]; i++) {
        s->sweeping = swept[i];
        files_path(s, path, swept[i], "", "");
        (void)!s->base.env->ops->list(s->base.env, path, sweep_one, s, NULL);
    }
}

/* Two that make it at once give it one key: who comes second finds what the first has made. */
static enum tide_code make_meta(struct files_store *s, struct tide_err *err)
{
    const struct env_ops *env = s->base.env->ops;
    bool found;
    enum tide_code code = env->lock(s->lock, STORE_LOCK_MS, err);

    if (code)
        return code;
    code = find_store(s, true, &found, err);
    if (!code && (!found || s->outdated))
        code = write_meta(s, err);
    s->older &= code != TIDE_OK;
    s->outdated &= code != TIDE_OK;
    env->unlock(s->lock);
    return code;
}

/*
 * Of an older version, or a clone, which has none of the folders that say who is at work: its logs have no marks, or not all of
 * them. It is one until they do: the folder that decides it is created last.
 */
static enum tide_code adopt_store(struct files_store *s, struct tide_err *err)
{
    const struct env_ops *env = s->base.env->ops;
    enum tide_code code = env->lock(s->lock, STORE_LOCK_MS, err);

    if (!code && !files_is(s, "sessions", "", "", ENV_ABSENT))
        code = marks_adopt(s, err);
    env->unlock(s->lock);
    s->adopting &= code != TIDE_OK;
    return code ? code : make_dirs(s, err);
}

static enum tide_code open_all(struct files_store *s, bool create, struct tide_err *err)
{
    bool found;
    enum tide_code code = find_store(s, create, &found, err);

    code = code ? code : check_folders(s, found, err);
    s->adopting = s->older || files_is(s, "live", "", "", ENV_ABSENT);
    if (!code && !s->base.read_only)
        code = s->adopting ? s->base.env->ops->mkdirs(s->base.env, s->dir, err) : make_dirs(s, err);
    code = code ? code : open_helpers(s, err);
    if (!code && s->adopting && !s->base.read_only)
        code = adopt_store(s, err);
    if (!code && (!found || s->outdated) && !s->base.read_only)
        code = make_meta(s, err);
    return code;
}

/* ---- opening and closing ---- */

static void close_log(void *log)
{
    log_free(log);
}

static void files_close(struct store *store)
{
    struct files_store *s = files_of(store);
    const struct env_ops *env = store->env->ops;
    bool holds = false;

    session_files_settle(s);
    lease_drop_spares(s);
    pool_free(s->pool);
    word_leave(s);
    for (struct map_entry *e = map_next(&s->logs, NULL); e; e = map_next(&s->logs, e)) {
        struct files_log *l = e->value;

        holds |= l->lease_file != NULL;
        log_forget(s, l);
    }
    map_done(&s->logs, close_log);
    orphans_done(&s->orphans);
    holders_done(&s->holders);
    if (!holds)
        boot_done(s);
    if (s->lock)
        env->close(s->lock);
    if (s->changes)
        env->close(s->changes);
    pthread_mutex_destroy(&s->mu);
    pthread_mutex_destroy(&s->slot_mu);
    store_done(store);
    free(s);
}

static const struct store_ops ops = {
    .scheme = "files",
    .can = STORE_SESSION_FILES | STORE_PROVES | STORE_DIRECTORY | STORE_FOREIGN,
    .close = files_close,
    .commit = files_commit,
    .is_due = files_is_due,
    .maintain = files_maintain,
    .head = files_head,
    .read = files_read,
    .prove = files_prove,
    .foreign_rest = files_foreign_rest,
    .checkpoints = files_checkpoints,
    .checkpoint_seq = files_checkpoint_seq,
    .snapshot = files_snapshot,
    .list = files_list,
    .live = files_live,
    .resolve = files_resolve,
    .info = files_info,
    .check = files_check,
    .rebuild = files_rebuild,
    .settle = files_settle,
    .change = files_change,
};

static struct files_store *files_new(const char *path, const struct tide_store_options *opt, struct env *env)
{
    struct files_store *s = mem_zero(sizeof *s);
    size_t len;

    store_init(&s->base, &ops, path, opt, env);
    snprintf(s->dir, sizeof s->dir, "%s", path);
    for (len = strlen(s->dir); len > 1 && s->dir[len - 1] == '/'; len--)
        s->dir[len - 1] = 0;
    pthread_mutex_init(&s->mu, NULL);
    pthread_mutex_init(&s->slot_mu, NULL);
    s->slot = -1;
    s->accept_loss = opt->flags & TIDE_OPEN_ACCEPT_LOSS && !s->base.read_only;
    orphans_init(&s->orphans);
    s->pool = pool_new(env);
    holders_init(&s->holders, env);
    env->ops->random(env, &s->change, sizeof s->change);
    snprintf(s->base.watch.self, sizeof s->base.watch.self, "%s", s->dir);
    files_path(s, s->base.watch.side, "", "changes", "");
    return s;
}

enum tide_code files_open(const char *path, const struct tide_store_options *opt, struct env *env,
                          struct store **ret_store, struct tide_err *err)
{
    struct files_store *s = files_new(path, opt, env);
    enum tide_code code = open_all(s, (opt->flags & TIDE_OPEN_CREATE) && !s->base.read_only, err);

    if (code) {
        files_close(&s->base);
        return tide_wrap(err, "open store");
    }
    s->holders.local = env->ops->is_local(env, s->dir);
    if (!s->base.read_only)
        sweep_temporary(s);
    *ret_store = &s->base;
    return TIDE_OK;
}
