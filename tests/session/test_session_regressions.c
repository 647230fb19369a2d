/* SPDX-License-Identifier: Apache-2.0 */
/* What people who use it for the first time stumble over: each was wrong once. */
#include "kit.h"

struct fixture {
    char dir[256], path[300];
    tide_store *store;
};

static int set_up(void **state)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->path, sizeof f->path, f->dir, "s");
    OK(tide_store_open(f->path, &opt, &f->store, &err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->store);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static tide_session *create(struct fixture *f, const char *id)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, id, NULL, &s, &err));
    return s;
}

static void mark(tide_session *s, char id[TIDE_ID_SIZE])
{
    const struct tide_new_checkpoint c = {.size = sizeof c, .type = TIDE_CHECKPOINT_TURN};

    OK(tide_checkpoint_save(s, &c, id, &err));
}

static int take_seq(void *arg, const struct tide_checkpoint *c)
{
    *(int64_t *)arg = c->seq;
    return 0;
}

static int count(void *arg, const struct tide_checkpoint *c)
{
    (void)c;
    ++*(int *)arg;
    return 0;
}

static void deleting_takes_the_whole_id(void **state)
{
    struct fixture *f = *state;

    tide_session_close(create(f, "job"));
    tide_session_close(create(f, "job-2"));
    GIVES(TIDE_NOT_FOUND, tide_session_delete(f->store, "jo", &err));
    OK(tide_session_delete(f->store, "job", &err));
    GIVES(TIDE_NOT_FOUND, tide_session_delete(f->store, "job", &err));
    OK(tide_session_delete(f->store, "job-2", &err));
}

static void a_fork_finds_the_checkpoints_of_its_past(void **state)
{
    struct fixture *f = *state;
    char before[TIDE_ID_SIZE], after[TIDE_ID_SIZE], fork[TIDE_ID_SIZE], again[TIDE_ID_SIZE];
    tide_session *s = create(f, "root"), *child = NULL;
    int64_t seq = 0;

    put(s, "message.user", SAID);
    mark(s, before); /* 3 */
    put(s, "message.user", SAID);
    mark(s, after); /* 5 */
    OK(tide_session_fork(f->store, "root", 4, "child", NULL, fork, &err));
    OK(tide_session_fork(f->store, "child", 0, "grandchild", NULL, again, &err));
    OK(tide_session_open(f->store, "grandchild", TIDE_SESSION_READ, &child, &err));
    OK(checkpoint_shown(child, before, take_seq, &seq, &err));
    assert_int_equal(seq, 3);
    GIVES(TIDE_NOT_FOUND, checkpoint_shown(child, after, take_seq, &seq, &err));
    tide_session_close(child);
    tide_session_close(s);
}

static void pruning_leaves_what_a_rollback_cut_off(void **state)
{
    struct fixture *f = *state;
    const struct tide_checkpoint_filter all = {.size = sizeof all, .rolled_back = 1};
    tide_session *s = create(f, "s");
    char id[TIDE_ID_SIZE], last[TIDE_ID_SIZE];
    int64_t deleted = -1, seq = 0;
    int n = 0;

    for (int i = 0; i < 3; i++)
        mark(s, id); /* 2, 3, 4 */
    mark(s, last);   /* 5 */
    OK(tide_session_rollback(s, 3, 0, NULL, &err));
    OK(tide_checkpoint_prune(s, 1, 0, &deleted, &err));
    assert_int_equal(deleted, 1);
    OK(tide_checkpoint_list(s, &all, count, &n, &err));
    assert_int_equal(n, 3);
    OK(checkpoint_shown(s, last, take_seq, &seq, &err));
    OK(tide_session_rollback(s, seq, 0, NULL, &err));
    tide_session_close(s);
}

static void checkpoints_written_by_hand_are_checked(void **state)
{
    static const char *const bad[] = {"{\"checkpoint_id\":\"a b/\",\"type\":\"turn\"}",
                                      "{\"checkpoint_id\":\"a\",\"type\":\"bogus\"}"};
    struct fixture *f = *state;
    tide_session *s = create(f, "s");

    for (size_t i = 0; i < 2; i++) {
        const struct tide_new_event ev = {"checkpoint", bad[i], 0};

        GIVES(TIDE_INVALID, tide_session_append(s, 0, &ev, 1, NULL, &err));
    }
    put(s, "checkpoint", "{\"checkpoint_id\":\"mine\",\"type\":\"turn\"}");
    tide_session_close(s);
}

static void names_that_mean_something_to_sqlite_are_paths(void **state)
{
    static const char *const names[] = {":memory:", "sqlite:file:x?mode=memory"};
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct fixture *f = *state;
    char *old;

    SQLITE_ONLY("names of SQLite");
    old = getcwd(NULL, 0);
    assert_int_equal(chdir(f->dir), 0);
    for (size_t i = 0; i < 2; i++) {
        tide_store *store = NULL;
        tide_session *s = NULL;

        OK(tide_store_open(names[i], &opt, &store, &err));
        OK(tide_session_create(store, "s", NULL, &s, &err));
        tide_session_close(s);
        tide_store_close(store);
        OK(tide_store_open(names[i], NULL, &store, &err));
        OK(tide_session_open(store, "s", TIDE_SESSION_READ, &s, &err));
        tide_session_close(s);
        tide_store_close(store);
    }
    assert_int_equal(chdir(old), 0);
    free(old);
}

static void a_closed_store_is_one_file(void **state)
{
    struct fixture *f = *state;
    char wal[320];

    SQLITE_ONLY("a file store is a directory");
    tide_session_close(create(f, "s"));
    tide_store_close(f->store);
    snprintf(wal, sizeof wal, "%s-wal", store_path(f->path));
    unlink(wal); /* as somebody does who copies only the file */
    OK(tide_store_open(f->path, NULL, &f->store, &err));
    OK(tide_session_resolve(f->store, "s", (char[TIDE_ID_SIZE]){0}, &err));
}

static void the_view_of_messages_shows_big_ones_whole(void **state)
{
    struct fixture *f = *state;
    size_t n = 100000;
    tide_session *s;
    char *body;
    int len;

    SQLITE_ONLY("views are SQL");
    s = create(f, "s");
    body = mem_alloc(n + 64);
    len = snprintf(body, 64, "{\"tool_call_id\":\"c1\",\"content\":\"");
    memset(body + len, 'x', n);
    memcpy(body + len + n, "\"}", 3);
    put(s, "message.tool", "%s", body);
    put(s, "message.tool", "{\"tool_call_id\":\"c1\",\"content\":{\"big_value\":\"mine\"}}");
    free(body);
    tide_session_close(s);
    assert_int_equal(sql_int(store_path(f->path), "SELECT length(content) FROM messages WHERE id = 2"), n);
    assert_int_equal(
        sql_int(store_path(f->path), "SELECT content = '{\"big_value\":\"mine\"}' FROM messages WHERE id = 3"), 1);
}

static int take_holder(void *arg, const struct tide_session_info *info)
{
    *(bool *)arg = info->holder != NULL;
    return 0;
}

static void a_session_that_is_held_says_by_whom(void **state)
{
    struct fixture *f = *state;
    tide_session *s = create(f, "s"), *reader = NULL;
    bool held = false;

    OK(tide_session_open(f->store, "s", TIDE_SESSION_READ, &reader, &err));
    OK(session_shown(reader, take_holder, &held, &err));
    assert_true(held);
    tide_session_close(s);
    OK(tide_session_refresh(reader, &err));
    OK(session_shown(reader, take_holder, &held, &err));
    assert_false(held);
    tide_session_close(reader);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(deleting_takes_the_whole_id),
        CASE(a_fork_finds_the_checkpoints_of_its_past),
        CASE(pruning_leaves_what_a_rollback_cut_off),
        CASE(checkpoints_written_by_hand_are_checked),
        CASE(names_that_mean_something_to_sqlite_are_paths),
        CASE(a_closed_store_is_one_file),
        CASE(the_view_of_messages_shows_big_ones_whole),
        CASE(a_session_that_is_held_says_by_whom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
