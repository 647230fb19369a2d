/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes at one store of files, at the worst moment: one of them is stopped inside a call of its disk, and the other does
 * something there. That one waits for no lock, because the first cannot go on meanwhile.
 */
#include "kit.h"

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
    written_unlocked |= f != held; /* space is reserved right before a log is written */
    return env_real()->ops->allocate(f, size, why);
}

/* ---- the two ---- */

static struct store *open_with(struct env *env)
{
    const struct tide_store_options opt = {.flags = TIDE_OPEN_CREATE, .lease_ms = 30000};
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
        batch_set_cards(b, STR("{\"recovery\":{}}"), STR("{\"tokens\":[]}"));
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

static void of_one_that_is_deleted_no_card_comes_back(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_that_two_find_becomes_one_log),
        cmocka_unit_test(one_that_is_being_taken_is_not_deleted),
        cmocka_unit_test(of_one_that_is_deleted_no_card_comes_back),
        cmocka_unit_test(a_log_is_written_only_under_its_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
