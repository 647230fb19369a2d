/* SPDX-License-Identifier: Apache-2.0 */
/* What people who use it for the first time stumble over: each was wrong once. */
#include "kit.h"
#include "store_tamper.h"

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

/* One event with a value of 200 KB and several of 20 KB, and then others for most of the small ones. */
static void put_values(tide_session *s, char fill)
{
    AUTO(buf_done) struct buf body = BUF_INIT(1 << 20);

    buf_add_str(&body, STR("{\"values\":{\"large\":\""));
    memset(buf_reserve(&body, 200000), fill, 200000);
    body.len += 200000;
    for (int k = 0; k < 8; k++) {
        buf_addf(&body, "\",\"k%d\":\"", k);
        memset(buf_reserve(&body, 20000), fill + k, 20000);
        body.len += 20000;
    }
    buf_add_str(&body, STR("\"}}"));
    put(s, "memory.set", "%s", buf_cstr(&body));
}

static char *state_of(struct fixture *f, const char *id, int64_t seq)
{
    struct tide_text text = {NULL, 0};
    tide_session *s = NULL;

    OK(tide_session_open(f->store, id, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_get_state(s, seq, &text, &err));
    tide_session_close(s);
    return text.ptr;
}

static void open_again(struct fixture *f)
{
    tide_store_close(f->store);
    OK(tide_store_open(f->path, NULL, &f->store, &err));
}

/* Every state that was asked for before is the same from a store that was opened again, and from one without snapshots. */
static void snapshots_name_large_values_and_give_them_back(void **state)
{
    static const struct {
        const char *id;
        int64_t seq;
    } asked[] = {{"s", 2}, {"s", 3}, {"s", 0}, {"fork", 0}, {"back", 0}};
    enum { ASKED = sizeof asked / sizeof asked[0] };
    struct fixture *f = *state;
    tide_session *s = create(f, "s"), *fork = NULL, *back = NULL;
    char *before[ASKED], id[TIDE_ID_SIZE];

    for (char fill = 'a'; fill < 'f'; fill++)
        put_values(s, fill); /* 2 to 6 */
    put(s, "memory.set", "{\"values\":{\"large\":1}}");
    put(s, "memory.deleted", "{\"keys\":[\"k0\",\"k1\",\"k2\"]}");
    tide_session_close(s);
    OK(tide_session_fork(f->store, "s", 4, "fork", NULL, id, &err));
    OK(tide_session_open(f->store, "fork", TIDE_SESSION_APPEND, &fork, &err));
    put(fork, "memory.set", "{\"values\":{\"k7\":2}}");
    tide_session_close(fork);
    back = create(f, "back");
    put_values(back, 'p');
    put_values(back, 'q');
    OK(tide_session_rollback(back, 2, 0, NULL, &err));
    put(back, "memory.set", "{\"values\":{\"own\":3}}");
    tide_session_close(back);
    for (int i = 0; i < ASKED; i++)
        before[i] = state_of(f, asked[i].id, asked[i].seq);
    assert_non_null(strstr(before[0], "\"large\":\"aaaa"));
    assert_non_null(strstr(before[3], "\"large\":\"cccc"));
    assert_non_null(strstr(before[4], "\"large\":\"pppp"));
    for (int round = 0; round < 2; round++) {
        open_again(f);
        for (int i = 0; i < ASKED; i++) {
            AUTO(mem_freep) char *now = state_of(f, asked[i].id, asked[i].seq);

            assert_string_equal(now, before[i]);
        }
        tide_store_close(TAKE(f->store));
        drop_caches_of(f->path, env_real());
    }
    for (int i = 0; i < ASKED; i++)
        free(before[i]);
}

static void snapshots_do_not_repeat_large_values(void **state)
{
    struct fixture *f = *state;
    tide_session *s;

    SQLITE_ONLY("it looks at the table");
    s = create(f, "s");
    for (char fill = 'a'; fill < 'k'; fill++)
        put_values(s, fill);
    tide_session_close(s);
    open_again(f);
    assert_true(sql_int(store_path(f->path), "SELECT count(*) FROM snapshots") > 5);
    assert_true(sql_int(store_path(f->path), "SELECT max(length(state)) FROM snapshots") < 8000);
}

/* What is left of an event of which most was overwritten is written out: it is not worth reading the event. */
static void a_snapshot_names_no_event_for_little(void **state)
{
    struct fixture *f = *state;
    AUTO(mem_freep) char *text = mem_zero(20001);
    tide_session *s;

    SQLITE_ONLY("it looks at the table");
    memset(text, 't', 20000);
    s = create(f, "s");
    put_values(s, 'a');
    put(s, "memory.set", "{\"values\":{\"large\":1,\"k0\":1,\"k1\":1,\"k2\":1}}");
    for (int i = 0; i < 10; i++) /* a log that outweighs what is left of it */
        put(s, "message.user", "{\"content\":\"%.*s\"}", 20000, text);
    tide_session_close(s);
    open_again(f);
    assert_int_equal(sql_int(store_path(f->path), "SELECT state ->> '$.content.memory.k7' IS NOT NULL FROM snapshots"
                                                  " ORDER BY seq DESC LIMIT 1"),
                     1);
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
        CASE(snapshots_name_large_values_and_give_them_back),
        CASE(snapshots_do_not_repeat_large_values),
        CASE(a_snapshot_names_no_event_for_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
