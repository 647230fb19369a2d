/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes at one store of files, at the worst moment: one of them is stopped inside a call of its disk, and the other does
 * something there. That one waits for no lock, because the first cannot go on meanwhile.
 */
#include "kit.h"

#include <limits.h>

#include "session/session.h"
#include "store/group.h"

#define LOG ".messages.jsonl"

static struct env_ops first_ops, other_ops;
static struct env first_env, other_env;
static struct store *other;
static char dir[256];

static struct {
    const char *at; /* end of a path; NULL: nothing is to happen any more */
    int after;      /* so many calls that are let through */
    enum tide_code (*act)(void);
    enum tide_code code; /* what came of it */
} plan;

static void happen(const char *path)
{
    size_t len = strlen(path), end = plan.at ? strlen(plan.at) : 0;

    if (!plan.at || len < end || strcmp(path + len - end, plan.at) != 0 || plan.after-- > 0)
        return;
    plan.at = NULL;
    plan.code = plan.act();
}

static enum tide_code open_hooked(struct env *env, const char *path, unsigned flags, struct env_file **ret,
                                  struct tide_err *why)
{
    happen(path);
    return env_real()->ops->open(env, path, flags, ret, why);
}

static enum tide_code unlink_hooked(struct env *env, const char *path, struct tide_err *why)
{
    happen(path);
    return env_real()->ops->unlink(env, path, why);
}

static enum tide_code rename_hooked(struct env *env, const char *from, const char *to, struct tide_err *why)
{
    happen(from);
    return env_real()->ops->rename(env, from, to, why);
}

static enum tide_code stat_hooked(struct env *env, const char *path, struct env_stat *ret, struct tide_err *why)
{
    happen(path);
    return env_real()->ops->stat(env, path, ret, why);
}

static enum tide_code list_hooked(struct env *env, const char *path, env_list_fn *fn, void *arg, struct tide_err *why)
{
    happen(path);
    return env_real()->ops->list(env, path, fn, arg, why);
}

static enum tide_code mkdirs_hooked(struct env *env, const char *path, struct tide_err *why)
{
    happen(path);
    return env_real()->ops->mkdirs(env, path, why);
}

static enum tide_code lock_at_once(struct env_file *f, int timeout_ms, struct tide_err *why)
{
    (void)timeout_ms;
    return env_real()->ops->lock(f, 0, why);
}

/* ---- a log that another file takes the place of, and who writes to it without its lock ---- */

static int replaced;          /* times that it still is */
static struct env_file *held; /* whose lock is held */
static bool written_unlocked;

static void replace_log(void)
{
    char command[1200];

    snprintf(command, sizeof command, "cp %s/sessions/s" LOG " %s/new && mv %s/new %s/sessions/s" LOG, dir, dir, dir,
             dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
}

static enum tide_code lock_replaced(struct env_file *f, int timeout_ms, struct tide_err *why)
{
    enum tide_code code;

    if (timeout_ms && replaced > 0 && replaced--)
        replace_log();
    code = env_real()->ops->lock(f, timeout_ms, why);
    held = code ? held : f;
    return code;
}

static void unlock_noted(struct env_file *f)
{
    held = f == held ? NULL : held;
    env_real()->ops->unlock(f);
}

static void close_noted(struct env_file *f)
{
    held = f == held ? NULL : held;
    env_real()->ops->close(f);
}

static enum tide_code allocate_noted(struct env_file *f, int64_t size, struct tide_err *why)
{
    written_unlocked |=
        f != held && size > 512; /* space is reserved right before a log is written; a mark is smaller */
    return env_real()->ops->allocate(f, size, why);
}

/* ---- the two ---- */

static struct store *open_with(struct env *env)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE, .lease_ms = 30000};
    struct store *s = NULL;
    char url[300];

    snprintf(url, sizeof url, "files:%s", dir);
    OK(store_open(url, &opt, env, &s, &err));
    return s;
}

static struct store *begin(void)
{
    dir_make(dir);
    first_env = other_env = *env_real();
    first_ops = other_ops = *env_real()->ops;
    other_ops.lock = lock_at_once;
    first_ops.open = open_hooked;
    first_ops.unlink = unlink_hooked;
    first_env.ops = &first_ops;
    other_env.ops = &other_ops;
    plan.at = NULL;
    other = open_with(&other_env);
    return open_with(&first_env);
}

static void end(struct store *s)
{
    store_close(s);
    store_close(other);
    dir_remove(dir);
}

static enum tide_code write_to(struct store *s, unsigned flags)
{
    const struct event ev = {.kind = STR("test.event"), .body = STR("{}")};
    struct batch *b = batch_new(STR("s"), flags, &ev, flags & BATCH_DELETE ? 0 : 1, STR(""), STR(""));
    struct tide_err why;

    b->expect_seq = STORE_ANY_SEQ;
    b->caches_seq = flags & BATCH_CREATE ? 1 : 2;
    if (!(flags & BATCH_DELETE))
        batch_set_session_files(b, STR("{\"recovery\":{}}"), STR("{\"tokens\":[]}"));
    return store_write(s, b, NULL, &why);
}

static enum tide_code other_appends(void)
{
    return write_to(other, BATCH_ACQUIRE);
}

static enum tide_code other_deletes(void)
{
    return write_to(other, BATCH_DELETE);
}

/* ---- */

static void a_snapshot_that_two_find_becomes_one_log(void **state)
{
    struct store *s = begin();
    struct head h;
    char path[300];
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/sessions/s.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"id\":\"s\",\"title\":\"theirs\"}", f);
    assert_int_equal(fclose(f), 0);
    plan.act = other_appends;
    plan.after = 1; /* it has been read, and is opened once more to be kept */
    plan.at = "/sessions/s.json";
    (void)!write_to(s, BATCH_INPUT);
    assert_null(plan.at);
    assert_int_equal(plan.code, TIDE_OK);
    OK(store_head(other, STR("s"), &h, &err));
    assert_int_equal(h.last_seq, 3); /* theirs, the other's, ours */
    end(s);
}

static void one_that_is_being_taken_is_not_deleted(void **state)
{
    struct store *s = begin();
    enum tide_code code;

    (void)state;
    OK(write_to(s, BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE));
    plan.act = other_appends;
    plan.after = 0;
    plan.at = "/sessions/s.json"; /* the first that goes: whether anybody has it was looked at before */
    code = write_to(s, BATCH_DELETE);
    assert_null(plan.at);
    assert_true(code != TIDE_OK || plan.code != TIDE_OK);
    end(s);
}

static void of_one_that_is_deleted_no_session_file_comes_back(void **state)
{
    struct store *s = begin();
    struct head h;

    (void)state;
    OK(write_to(s, BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE));
    plan.act = other_deletes;
    plan.after = 0;
    plan.at = "/sessions/s.json"; /* is looked at before another is put in its place */
    OK(write_to(s, BATCH_INPUT));
    assert_null(plan.at);
    GIVES(plan.code ? TIDE_OK : TIDE_NOT_FOUND, store_head(other, STR("s"), &h, &err));
    end(s);
}

static void a_log_is_written_only_under_its_lock(void **state)
{
    struct store *s = begin();

    (void)state;
    OK(write_to(other, BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE));
    OK(write_to(s, BATCH_INPUT)); /* from now on it takes no lock but that of the log */
    first_ops.lock = lock_replaced;
    first_ops.unlock = unlock_noted;
    first_ops.close = close_noted;
    first_ops.allocate = allocate_noted;
    written_unlocked = false;
    for (replaced = 1; replaced < 12; replaced++) {
        int times = replaced;

        (void)!write_to(s, BATCH_INPUT); /* it may give up */
        assert_false(written_unlocked);
        replaced = times;
    }
    replaced = 0;
    OK(write_to(s, BATCH_INPUT));
    end(s);
}

/* ---- an import whose process is taken for dead, and is not ---- */

static enum env_life dead_to_all(struct env *env, const struct env_proc *who)
{
    (void)env, (void)who;
    return ENV_DEAD;
}

static enum tide_code other_imports(void)
{
    return write_to(other, BATCH_CREATE | BATCH_HIDDEN | BATCH_ACQUIRE);
}

static void an_import_gives_its_name_to_no_other(void **state)
{
    const struct event ev = {.kind = STR("test.event"), .body = STR("{}")};
    struct store *s = begin();
    struct batch *b;
    struct head h;
    struct tide_err why;
    enum tide_code code;

    (void)state;
    first_ops.rename = rename_hooked;
    other_ops.life = dead_to_all;
    OK(write_to(s, BATCH_CREATE | BATCH_HIDDEN | BATCH_ACQUIRE));
    plan.act = other_imports;
    plan.after = 0;
    plan.at = "/sessions/.import-s" LOG;
    b = batch_new(STR("s"), BATCH_REVEAL | BATCH_RELEASE, &ev, 1, STR(""), STR(""));
    b->expect_seq = 1;
    b->epoch = 1;
    code = store_write(s, b, NULL, &why);
    assert_null(plan.at);
    if (!store_head(other, STR("s"), &h, &why))
        assert_int_equal(h.last_seq, 2); /* whole, and not what the other has begun */
    assert_true(code != TIDE_OK || plan.code != TIDE_OK);
    end(s);
}

/* ---- a lease that is read while it is given back ---- */

static int torn; /* times that it still is */

static enum tide_code pread_torn(struct env_file *f, void *out, size_t n, int64_t at, size_t *ret_n,
                                 struct tide_err *why)
{
    enum tide_code code = env_real()->ops->pread(f, out, n, at, ret_n, why);

    if (!code && *ret_n > 60 && at == 0 && memcmp(out, "{\"session_id\":", 14) == 0 && torn > 0 && torn--)
        memset((char *)out + 40, ' ', 20); /* as after the end of the new one, with the old one before it */
    return code;
}

static void a_lease_that_is_just_written_is_no_damage(void **state)
{
    struct store *s = begin();
    struct head h;

    (void)state;
    OK(write_to(other, BATCH_CREATE | BATCH_ACQUIRE));
    first_ops.pread = pread_torn;
    torn = 3;
    OK(store_head(s, STR("s"), &h, &err));
    assert_int_equal(torn, 0);
    assert_true(h.held);
    torn = INT_MAX;
    GIVES(TIDE_CORRUPT, store_head(s, STR("s"), &h, &err));
    end(s);
}

/* ---- a mark that is read while it is written, by one who is kept from going on ---- */

static enum { MARK_WHOLE, MARK_HALF, MARK_DAMAGED } mark_is;
static int half; /* looks for which the one who writes it is kept from going on */

static enum tide_code pread_half(struct env_file *f, void *out, size_t n, int64_t at, size_t *ret_n,
                                 struct tide_err *why)
{
    enum tide_code code = env_real()->ops->pread(f, out, n, at, ret_n, why);

    if (!code && mark_is != MARK_WHOLE && at == 0 && *ret_n > 100 && *ret_n < 300)
        memset((char *)out + 40, ' ', 20);
    return code;
}

static void sleep_through(struct env *env, int ms)
{
    (void)env, (void)ms;
    if (mark_is == MARK_HALF && half-- == 0)
        mark_is = MARK_WHOLE;
}

/* Whoever writes it has the lock. */
static enum tide_code lock_of_writer(struct env_file *f, int timeout_ms, struct tide_err *why)
{
    if (mark_is == MARK_HALF)
        return tide_fail(why, TIDE_BUSY, "held by who writes");
    return env_real()->ops->lock(f, timeout_ms, why);
}

static void a_mark_that_is_just_written_is_no_damage(void **state)
{
    struct store *s = begin();
    struct head h;

    (void)state;
    OK(write_to(other, BATCH_CREATE | BATCH_ACQUIRE));
    first_ops.pread = pread_half;
    first_ops.lock = lock_of_writer;
    first_ops.sleep_ms = sleep_through;
    mark_is = MARK_HALF;
    half = 60;
    OK(store_head(s, STR("s"), &h, &err));
    assert_int_equal(mark_is, MARK_WHOLE);
    assert_int_equal(h.last_seq, 1);
    assert_false(h.damaged);
    end(s);
    s = begin();
    OK(write_to(other, BATCH_CREATE | BATCH_ACQUIRE));
    first_ops.pread = pread_half;
    mark_is = MARK_DAMAGED;
    GIVES(TIDE_CORRUPT, store_head(s, STR("s"), &h, &err));
    mark_is = MARK_WHOLE;
    end(s);
}

/* ---- two that make the store, or open a clone of it, at once ---- */

static unsigned char other_key[32];
static size_t other_key_len;

static enum tide_code other_opens(void)
{
    const struct tide_store_options opt = {.size = sizeof opt,
                                           .flags = TIDE_OPEN_CREATE,
                                           .key = other_key_len ? other_key : NULL,
                                           .key_len = other_key_len};
    struct tide_err why;
    char url[300];

    snprintf(url, sizeof url, "files:%s", dir);
    return store_open(url, &opt, &other_env, &other, &why);
}

static enum tide_code opened_beside(const char *at, int after, struct tide_err *ret_why)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct store *s = NULL;
    enum tide_code code;
    char url[300];

    first_env = other_env = *env_real();
    first_ops = other_ops = *env_real()->ops;
    first_ops.stat = stat_hooked;
    first_ops.list = list_hooked;
    first_ops.mkdirs = mkdirs_hooked;
    first_env.ops = &first_ops;
    other_env.ops = &other_ops;
    other = NULL;
    plan.act = other_opens;
    plan.after = after;
    plan.at = at;
    snprintf(url, sizeof url, "files:%s", dir);
    code = store_open(url, &opt, &first_env, &s, ret_why);
    assert_null(plan.at);
    store_close(s);
    store_close(other);
    return code;
}

static void a_store_that_is_just_made_is_opened(void **state)
{
    struct tide_err why;

    (void)state;
    dir_make(dir);
    assert_int_equal(opened_beside(strrchr(dir, '/'), 1, &why), TIDE_OK); /* it was looked at, and is listed */
    dir_remove(dir);
}

static void a_clone_that_two_open_lacks_nothing(void **state)
{
    char command[1200];
    struct tide_err why;

    (void)state;
    dir_make(dir);
    store_close(open_with(env_real()));
    snprintf(command, sizeof command, "cd %s && rm -r sessions live boots cache lock changes", dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
    assert_int_equal(opened_beside("/live", 0, &why), TIDE_OK);
    dir_remove(dir);
}

static void a_store_has_one_key_whoever_makes_it(void **state)
{
    (void)state;
    dir_make(dir);
    other_key_len = sizeof other_key;
    GIVES(TIDE_WRONG_KEY, opened_beside("/sessions", 0, &err));
    assert_int_equal(plan.code, TIDE_OK);
    OK(other_opens());
    store_close(other);
    other_key_len = 0;
    dir_remove(dir);
}

/* ---- what is read while it is deleted ---- */

static void make_run(const char *id, const char *parent)
{
    const struct event ev = {.kind = STR("run.started"), .body = STR("{\"run_id\":\"r\"}")};
    struct batch *b =
        batch_new(str_from(id), BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE | BATCH_LIVE, &ev, 1, STR(""), STR(""));

    if (parent)
        snprintf(b->parent, sizeof b->parent, "%s", parent);
    b->parent_seq = parent ? 1 : 0;
    OK(store_write(other, b, NULL, &err));
}

static enum tide_code other_deletes_both(void)
{
    struct tide_err why;
    enum tide_code code = store_write(other, batch_new(STR("f"), BATCH_DELETE, NULL, 0, STR(""), STR("")), NULL, &why);

    return code ? code : write_to(other, BATCH_DELETE);
}

static int count_listed(void *arg, const struct tide_session_info *info)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

static int count_state(void *arg, const struct head *head, const struct state *state)
{
    (void)head, (void)state;
    ++*(int *)arg;
    return 0;
}

/* A fork that has no state yet begins with that of its parent. */
static struct store *begin_with_fork(void)
{
    struct store *s = begin();

    first_ops.list = list_hooked;
    make_run("s", NULL);
    make_run("f", "s");
    plan.act = other_deletes_both;
    plan.after = 0;
    plan.at = "/cache/f";
    return s;
}

static void one_that_is_deleted_with_its_parent_is_not_damaged(void **state)
{
    struct store *s = begin_with_fork();
    int n = 0;

    (void)state;
    OK(tide_session_list((tide_store *)(void *)s, NULL, count_listed, &n, &err));
    assert_null(plan.at);
    assert_int_equal(plan.code, TIDE_OK);
    assert_int_equal(n, 0);
    end(s);
}

static void one_that_is_deleted_ends_no_walk_over_all(void **state)
{
    struct store *s = begin_with_fork();
    int n = 0;

    (void)state;
    make_run("t", NULL);
    OK(session_each(s, count_state, &n, &err));
    assert_null(plan.at);
    assert_int_equal(n, 1);
    end(s);
}

static void one_that_is_deleted_keeps_recovery_from_no_other(void **state)
{
    struct tide_recovery found;
    struct store *s = begin();

    (void)state;
    first_ops.list = list_hooked;
    make_run("s", NULL);
    make_run("t", NULL);
    plan.act = other_deletes;
    plan.after = 0;
    plan.at = "/cache/s";
    OK(tide_store_recover((tide_store *)(void *)s, 0, NULL, NULL, &found, &err));
    assert_null(plan.at);
    assert_int_equal(plan.code, TIDE_OK);
    assert_int_equal(found.interrupted, 1);
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_that_two_find_becomes_one_log),
        cmocka_unit_test(one_that_is_being_taken_is_not_deleted),
        cmocka_unit_test(of_one_that_is_deleted_no_session_file_comes_back),
        cmocka_unit_test(a_log_is_written_only_under_its_lock),
        cmocka_unit_test(an_import_gives_its_name_to_no_other),
        cmocka_unit_test(a_lease_that_is_just_written_is_no_damage),
        cmocka_unit_test(a_mark_that_is_just_written_is_no_damage),
        cmocka_unit_test(a_store_that_is_just_made_is_opened),
        cmocka_unit_test(a_clone_that_two_open_lacks_nothing),
        cmocka_unit_test(a_store_has_one_key_whoever_makes_it),
        cmocka_unit_test(one_that_is_deleted_with_its_parent_is_not_damaged),
        cmocka_unit_test(one_that_is_deleted_ends_no_walk_over_all),
        cmocka_unit_test(one_that_is_deleted_keeps_recovery_from_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
