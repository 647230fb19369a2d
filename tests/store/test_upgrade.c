/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that an older program made, opened by this one: everything is there, proved, and recovery finds whose run is open.
 * That an upgrade can be cut off anywhere is the simulator's to show.
 */
#include "kit.h"

#include "store/sqlite_db.h"
#include "version2.h"

struct fixture {
    char dir[256], path[300];
    tide_store *store;
};

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);
    sqlite3 *db = NULL;
    char *why = NULL;

    dir_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s/s.db", f->dir);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, version2, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("version 2: %s", why);
    sqlite3_close(db);
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

static struct store *opened(struct fixture *f)
{
    OK(tide_store_open(f->path, NULL, &f->store, &err));
    return store_of(f->store);
}

struct handed {
    char text[200];
};

static int hand(void *arg, const struct store_entry *e, int64_t wake_ms)
{
    struct handed *out = arg;
    size_t n = strlen(out->text);

    snprintf(out->text + n, sizeof out->text - n, "%s@%lld%s ", e->head->id, (long long)wake_ms,
             e->head->held ? " held" : "");
    return 0;
}

static void version_2_is_upgraded_with_nothing_lost(void **state)
{
    static const struct {
        const char *id;
        int events;
    } want[] = {{"plain", 2}, {"done", 3}, {"open", 3}, {"waits", 3}, {"cut", 3}, {"held", 2}, {"freed", 5}};
    struct fixture *f = *state;

    opened(f);
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        tide_session *s = NULL;

        OK(tide_session_open(f->store, want[i].id, TIDE_SESSION_READ, &s, &err));
        assert_int_equal(tide_session_last_seq(s), want[i].events);
        OK(tide_session_verify(s, NULL, NULL, NULL, &err));
        tide_session_close(s);
        OK(tide_session_open(f->store, want[i].id, TIDE_SESSION_APPEND, &s, &err));
        assert_int_equal(put(s, "memory.set", "{\"values\":{}}"), want[i].events + 1);
        tide_session_close(s);
    }
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
    assert_int_equal(sql_int(f->path, "PRAGMA user_version"), SQLITE_SCHEMA_VERSION);
}

static void runs_that_version_2_left_open_are_found(void **state)
{
    struct fixture *f = *state;
    struct store *s = opened(f);
    struct handed out = {""};
    int64_t next = -1;

    OK(store_live(s, 0, hand, &out, &next, &err));
    assert_string_equal(out.text, "open@0 waits@0 cut@0 held@0 held ");
    assert_int_equal(next, 0);
    assert_int_equal(sql_int(f->path, "SELECT group_concat(session_id) = 'held' FROM sessions_v WHERE is_held"), 1);
}

static void caches_of_version_2_are_not_read(void **state)
{
    struct fixture *f = *state;

    assert_true(sql_int(f->path, "SELECT count(*) FROM sessions WHERE summary IS NOT NULL") > 0);
    sql_run(f->path, NULL, "INSERT INTO snapshots(sid, seq, at, row_check, state) VALUES(3, 3, x'00', x'00', x'00')");
    opened(f);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM snapshots"), 0);
    assert_int_equal(
        sql_int(f->path,
                "SELECT count(*) FROM sessions WHERE coalesce(summary, summary_seq, summary_check) IS NOT NULL"),
        0);
}

static void what_was_damaged_before_the_upgrade_is_damaged_after_it(void **state)
{
    struct fixture *f = *state;
    struct handed out = {""};
    struct store *s;
    struct head h;
    int64_t next;

    sql_run(f->path, NULL,
            "UPDATE live SET updated = updated + 1;"
            "UPDATE sessions SET updated = updated + 1 WHERE id = 'waits'");
    s = opened(f);
    GIVES(TIDE_CORRUPT, store_head(s, STR("waits"), &h, &err));
    ABOUT_SESSION(TIDE_CORRUPT, "held", store_head(s, STR("held"), &h, &err));
    ABOUT_SESSION(TIDE_CORRUPT, "held", store_live(s, 0, hand, &out, &next, &err));
    assert_string_equal(out.text, "open@0 cut@0 "); /* in nobody else's way */
    OK(store_head(s, STR("open"), &h, &err));
}

static void version_2_is_not_read_without_an_upgrade(void **state)
{
    struct fixture *f = *state;
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_READ_ONLY};

    HINTS(TIDE_READ_ONLY, TIDE_ACTION_INIT_STORE, tide_store_open(f->path, &opt, &f->store, &err));
    assert_int_equal(sql_int(f->path, "PRAGMA user_version"), 2);
}

static void a_wrong_key_upgrades_nothing(void **state)
{
    struct fixture *f = *state;
    const struct tide_store_options opt = {.size = sizeof opt, .key = "0123456789abcdef", .key_len = 16};

    GIVES(TIDE_WRONG_KEY, tide_store_open(f->path, &opt, &f->store, &err));
    assert_int_equal(sql_int(f->path, "PRAGMA user_version"), 2);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM pragma_table_info('live') WHERE name = 'wake'"), 0);
    version_2_is_upgraded_with_nothing_lost(state);
}

/* ---- Version 3: two indexes said which events are checkpoints ---------------------------------------------------- */

static void append_marks(tide_session *s, int n)
{
    char id[TIDE_ID_SIZE];
    const char *list[] = {id};

    for (int i = 0; i < n; i++) {
        OK(tide_checkpoint_save(
            s, &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_TURN},
            id, &err));
        if (i % 3 == 1)
            OK(tide_checkpoint_delete(s, list, 1, &err));
        put(s, "memory.set", "{\"values\":{\"k\":%d}}", i);
    }
}

/* Blocks with many marks, with few and with none; one that a fork begins in the middle of; after the last block some or none. */
static void make_version_3(struct fixture *f)
{
    tide_session *s = NULL;

    opened(f);
    OK(tide_session_open(f->store, "plain", TIDE_SESSION_APPEND, &s, &err));
    append_marks(s, 150);
    for (int i = 0; i < 700; i++)
        put(s, "memory.set", "{\"values\":{\"k\":%d}}", i);
    append_marks(s, 100);
    tide_session_close(s);
    OK(tide_session_fork(f->store, "plain", 300, "fork", NULL, (char[TIDE_ID_SIZE]){""}, &err));
    OK(tide_session_open(f->store, "fork", TIDE_SESSION_APPEND, &s, &err));
    append_marks(s, 50);
    for (int i = 0; i < 200; i++)
        put(s, "memory.set", "{\"values\":{\"k\":%d}}", i);
    tide_session_close(s);
    sql_run(
        f->path, NULL,
        "INSERT INTO meta SELECT 'was ' || sid || ' ' || seq, marks FROM blocks; ALTER TABLE blocks DROP COLUMN marks;"
        "CREATE INDEX checkpoint_index ON events(sid, seq) WHERE kind = 'checkpoint';"
        "CREATE INDEX checkpoint_deleted_index ON events(sid, seq) WHERE kind = 'checkpoint.deleted';"
        "PRAGMA user_version=3");
    tide_store_close(TAKE(f->store));
}

static int64_t indexes(struct fixture *f)
{
    return sql_int(f->path, "SELECT count(*) FROM sqlite_schema WHERE name IN ('checkpoint_index',"
                            " 'checkpoint_deleted_index')");
}

static void marks_are_made_of_the_indexes_of_version_3(void **state)
{
    static const char same[] = "SELECT count(*) = (SELECT count(*) FROM meta WHERE key LIKE 'was %') AND count(*) > 4"
                               " AND sum(b.marks = w.value) = count(*)"
                               " AND sum(b.marks = zeroblob(64)) = 2 AND sum(typeof(b.marks) = 'blob') = count(*)"
                               " FROM blocks b JOIN meta w ON w.key = 'was ' || b.sid || ' ' || b.seq";
    struct fixture *f = *state;

    make_version_3(f);
    assert_int_equal(indexes(f), 2);
    opened(f);
    assert_int_equal(sql_int(f->path, same), 1);
    assert_int_equal(indexes(f), 0);
    assert_int_equal(sql_int(f->path, "PRAGMA user_version"), SQLITE_SCHEMA_VERSION);
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
    tide_store_close(TAKE(f->store));
    sql_run(f->path, NULL, "UPDATE blocks SET marks = NULL; PRAGMA user_version=3"); /* again, without the indexes */
    opened(f);
    assert_int_equal(sql_int(f->path, same), 1);
}

/* ---- Version 5: other views, and an index of the first events alone ------------------------------------------------ */

/* A store as version 5 left it. Its sessions carry proofs, and it says where it was closed. */
static void make_version_5(struct fixture *f)
{
    opened(f);
    tide_store_close(TAKE(f->store));
    sql_run(f->path, NULL,
            "DROP INDEX description_index; CREATE INDEX created_index ON events(sid) WHERE kind = 'session.created';"
            "DROP VIEW message_rows; DROP VIEW descriptions; DROP VIEW messages;"
            "CREATE VIEW messages AS SELECT e.seq AS id FROM events e WHERE e.kind = 'message.user';"
            "PRAGMA user_version=5");
}

static void version_5_gets_the_views_of_now(void **state)
{
    struct fixture *f = *state;

    make_version_5(f);
    opened(f);
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
    assert_int_equal(sql_int(f->path, "PRAGMA user_version"), SQLITE_SCHEMA_VERSION);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM sqlite_schema WHERE name = 'created_index'"), 0);
    assert_int_equal(sql_int(f->path, "SELECT count(agent_id) FROM messages"), 0);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM sessions_v"), 7);
}

static void hear(void *arg, const char *line)
{
    buf_addf(arg, "%s|", line);
}

/* It knows whose its sessions are and where it ended: nothing of that is taken on trust again. */
static void version_5_is_not_taken_for_one_that_knows_nothing(void **state)
{
    const struct tide_store_options adopting = {.size = sizeof adopting,
                                                .flags = TIDE_OPEN_ADOPT,
                                                .origin_key = "0123456789abcdef0123456789abcdef",
                                                .origin_key_len = 32};
    struct fixture *f = *state;
    struct buf heard = BUF_INIT(4096);
    char mark[320];

    make_version_5(f);
    OK(tide_store_open(f->path, &adopting, &f->store, &err));
    tide_store_read_notices(f->store, hear, &heard);
    assert_string_equal(buf_cstr(&heard), "");
    tide_store_close(TAKE(f->store));
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM events WHERE proof IS NOT NULL"), 0);
    make_version_5(f);
    sql_run(f->path, NULL, "DELETE FROM meta WHERE key = 'closed'");
    snprintf(mark, sizeof mark, "%s-mark", f->path);
    assert_int_equal(unlink(mark), 0);
    HINTS(TIDE_CORRUPT, TIDE_ACTION_CHECK_STORE, tide_store_open(f->path, NULL, &f->store, &err));
    assert_int_equal(sql_int(f->path, "PRAGMA user_version"), 5);
    buf_done(&heard);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(version_2_is_upgraded_with_nothing_lost),
        CASE(runs_that_version_2_left_open_are_found),
        CASE(caches_of_version_2_are_not_read),
        CASE(what_was_damaged_before_the_upgrade_is_damaged_after_it),
        CASE(version_2_is_not_read_without_an_upgrade),
        CASE(a_wrong_key_upgrades_nothing),
        CASE(marks_are_made_of_the_indexes_of_version_3),
        CASE(version_5_gets_the_views_of_now),
        CASE(version_5_is_not_taken_for_one_that_knows_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
