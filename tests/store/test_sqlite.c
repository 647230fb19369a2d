/* SPDX-License-Identifier: Apache-2.0 */
/* What is particular to the SQLite store: its file, its versions, its key, its side files, what people do to them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kit.h"

#include "store/group.h"
#include "store/sqlite_db.h"

#define KEY "0123456789abcdef0123456789abcdef"

struct fixture {
    char dir[256], path[300], wal[310];
};

static int set_up(void **state)
{
    struct fixture *f = fixture_new(sizeof *f);

    snprintf(f->path, sizeof f->path, "%s/new/s.db", f->dir);
    snprintf(f->wal, sizeof f->wal, "%s-wal", f->path);
    *state = f;
    return 0;
}

static enum tide_code open_with(struct fixture *f, unsigned flags, const char *key, tide_store **ret,
                                struct tide_err *err)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = flags, .key = key, .key_len = key ? strlen(key) : 0};

    return tide_store_open(f->path, &opt, ret, err);
}

static tide_store *open_store(struct fixture *f, const char *key)
{
    tide_store *s = NULL;

    OK(open_with(f, TIDE_OPEN_CREATE, key, &s, &err));
    return s;
}

/* ---- A store with something of everything ---------------------------------------------------------------------- */

static void fill(tide_store *store)
{
    tide_session *s = NULL;
    char id[TIDE_ID_SIZE], *big = mem_zero(200001);

    OK(tide_session_create(store, "one", "{\"title\":\"one\",\"agent\":\"a\"}", &s, &err));
    for (int i = 0; i < 150; i++) {
        put(s, "message.user", "{\"turn\":%d,\"content\":\"%0*d\"}", i + 1, 900, i);
        if (i % 10 == 0)
            OK(tide_checkpoint_save(
                s,
                &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_TURN},
                id, &err));
        if (i == 100)
            OK(tide_session_rollback(s, 40, 0, NULL, &err));
    }
    memset(big, 'b', 200000);
    put(s, "memory.set", "{\"values\":{\"big\":\"%s\",\"small\":1}}", big);
    put(s, "llm.usage", "{\"input_tokens\":5,\"cost\":0.25}");
    for (int i = 0; i < 500; i++) /* past several blocks of positions */
        put(s, "odd.kind", "{\"i\":%d}", i);
    tide_session_close(s);
    OK(tide_session_fork(store, "one", 77, "two", "{\"title\":\"two\"}", id, &err));
    OK(tide_session_open(store, "two", TIDE_SESSION_APPEND, &s, &err));
    for (int i = 0; i < 70; i++)
        put(s, "memory.set", "{\"values\":{\"k%d\":%d}}", i % 7, i);
    tide_session_close(s);
    free(big);
}

static int add_event(void *arg, const struct tide_event *ev)
{
    buf_addf(arg, "%d %d %s %s\n", (int)ev->seq, (int)ev->pos, ev->kind, ev->body);
    return 0;
}

static int add_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    buf_addf(arg, "%s %d %d %d\n", c->id, (int)c->seq, c->is_clean, c->rolled_back);
    return 0;
}

static int add_info(void *arg, const struct tide_session_info *info)
{
    buf_addf(arg, "%s %lld %s %s %d %s %s %s\n", info->id, (long long)info->updated_ms, info->title,
             tide_status_name(info->status), (int)info->last_seq,
             info->resume_from_checkpoint_id ? info->resume_from_checkpoint_id : "-",
             info->parent_id ? info->parent_id : "-", info->why);
    return 0;
}

/* Everything the store answers, as one text. */
static char *answers(tide_store *store)
{
    static const char *const ids[] = {"one", "two"};
    struct buf out = BUF_INIT(SIZE_MAX / 4);

    OK(tide_session_list(store, NULL, add_info, &out, &err));
    for (int i = 0; i < 2; i++) {
        struct tide_checkpoint_filter all = {.size = sizeof all, .rolled_back = 1};
        tide_session *s = NULL;

        OK(tide_session_open(store, ids[i], TIDE_SESSION_READ, &s, &err));
        OK(tide_session_read(s, TIDE_READ_INHERITED, 0, 0, add_event, &out, &err));
        OK(tide_session_read_messages(s, 0, add_event, &out, &err));
        OK(tide_checkpoint_list(s, &all, add_checkpoint, &out, &err));
        for (int64_t seq = 0; seq < tide_session_last_seq(s); seq += 13) {
            char *text = state_text(s, seq);

            buf_add_str(&out, str_from(text));
            free(text);
        }
        tide_session_close(s);
    }
    OK(tide_store_read(store, 0, 0, add_event, &out, &err));
    return buf_take(&out);
}

static void without_any_cache_all_answers_are_the_same(void **state)
{
    struct fixture *f = *state;
    tide_store *store = open_store(f, NULL);
    char *before, *after;

    fill(store);
    before = answers(store);
    assert_true(sql_int(f->path, "SELECT count(*) FROM snapshots") > 0);
    assert_true(sql_int(f->path, "SELECT count(*) FROM blocks") > 0);
    sql_run(f->path, NULL, DROP_CACHES);
    after = answers(store); /* an open store */
    assert_string_equal(before, after);
    free(after);
    tide_store_close(store);
    store = open_store(f, NULL); /* and one that is opened anew */
    after = answers(store);
    assert_string_equal(before, after);
    free(after);
    OK(tide_store_check(store, TIDE_CHECK_REBUILD, NULL, NULL, NULL, &err));
    after = answers(store);
    assert_string_equal(before, after);
    free(after);
    free(before);
    tide_store_close(store);
}

static void wrong_caches_do_no_harm(void **state)
{
    static const char *const damage[] = {
        "UPDATE blocks SET positions = x'0102'",
        "UPDATE blocks SET positions = (SELECT positions FROM blocks ORDER BY seq LIMIT 1)",
        "UPDATE blocks SET positions = zeroblob(64)",
        "UPDATE snapshots SET state = replace(state, 'small', 'SMALL')",
        "UPDATE snapshots SET seq = seq - 1",
        "UPDATE snapshots SET seq = 1000000 + seq",
        "UPDATE snapshots SET state = '{}'",
        "UPDATE snapshots SET at = zeroblob(32)",
        "UPDATE blocks SET marks = zeroblob(64)",
        "UPDATE blocks SET marks = (SELECT marks FROM blocks ORDER BY seq DESC LIMIT 1)",
        "UPDATE blocks SET marks = randomblob(64)",
        "UPDATE blocks SET marks = NULL",
        "DELETE FROM blocks WHERE seq % 128 = 0",
    };
    struct fixture *f = *state;
    tide_store *store = open_store(f, NULL);
    char *before, *after;

    fill(store);
    before = answers(store);
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        sql_run(f->path, NULL, damage[i]);
        after = answers(store);
        if (strcmp(before, after) != 0)
            fail_msg("after %s the answers differ", damage[i]);
        free(after);
    }
    free(before);
    tide_store_close(store);
}

/* ---- Versions and strangers ------------------------------------------------------------------------------------ */

static void a_newer_version_is_refused_with_its_number(void **state)
{
    struct fixture *f = *state;
    tide_store *s = NULL;

    tide_store_close(open_store(f, NULL));
    sql_run(f->path, NULL, "PRAGMA user_version=77");
    ABOUT(TIDE_TOO_NEW, TIDE_SUBJECT_FILE, f->path, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
    ABOUT(TIDE_TOO_NEW, TIDE_SUBJECT_FILE, f->path, open_with(f, TIDE_OPEN_READ_ONLY, NULL, &s, &err));
    sql_run(f->path, NULL, "PRAGMA user_version=-2000000000"); /* no version of anyone's */
    GIVES(TIDE_CORRUPT, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
    sql_run(f->path, NULL, "PRAGMA user_version=0");
    GIVES(TIDE_CORRUPT, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
}

static void an_older_version_is_upgraded_with_nothing_lost(void **state)
{
    struct fixture *f = *state;
    tide_store *store = open_store(f, NULL);
    char *before, *after;

    fill(store);
    before = answers(store);
    tide_store_close(store);
    for (int version = 1; version < SQLITE_SCHEMA_VERSION; version++) {
        char sql[400];

        snprintf(sql, sizeof sql, "%s; PRAGMA user_version=%d",
                 "DROP VIEW IF EXISTS messages; DROP VIEW IF EXISTS sessions_v; DROP VIEW IF EXISTS heads", version);
        sql_run(f->path, NULL, sql);
        GIVES(TIDE_READ_ONLY, open_with(f, TIDE_OPEN_READ_ONLY, NULL, &store, &err));
        store = open_store(f, NULL);
        after = answers(store);
        assert_string_equal(before, after);
        free(after);
        tide_store_close(store);
        assert_int_equal(sql_int(f->path, "PRAGMA user_version"), SQLITE_SCHEMA_VERSION);
        assert_true(sql_int(f->path, "SELECT count(*) FROM messages") > 0);
    }
    free(before);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void strangers_are_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    tide_store *s = NULL;
    char link[310];

    GIVES(TIDE_NOT_FOUND, open_with(f, 0, NULL, &s, &err));
    GIVES(TIDE_NOT_FOUND, open_with(f, TIDE_OPEN_READ_ONLY, NULL, &s, &err));
    tide_store_close(open_store(f, NULL));
    snprintf(link, sizeof link, "%s", f->path);
    snprintf(f->path, sizeof f->path, "%s/link.db", f->dir);
    assert_int_equal(symlink(link, f->path), 0);
    ABOUT(TIDE_NOT_A_STORE, TIDE_SUBJECT_FILE, f->path, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
    snprintf(f->path, sizeof f->path, "%s/text.db", f->dir);
    write_file(f->path, "a text that is longer than the first sixteen bytes");
    GIVES(TIDE_NOT_A_STORE, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
    write_file(f->path, "short");
    GIVES(TIDE_NOT_A_STORE, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
    snprintf(f->path, sizeof f->path, "%s", f->dir);
    ABOUT(TIDE_NOT_A_STORE, TIDE_SUBJECT_FILE, f->path, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
    snprintf(f->path, sizeof f->path, "%s/fifo.db", f->dir);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    GIVES(TIDE_NOT_A_STORE, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
}

static void another_programs_database_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db = NULL;
    tide_store *s = NULL;

    snprintf(f->path, sizeof f->path, "%s/other.db", f->dir);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES(1)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ABOUT(TIDE_NOT_A_STORE, TIDE_SUBJECT_FILE, f->path, open_with(f, TIDE_OPEN_CREATE, NULL, &s, &err));
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM sqlite_schema"), 1);
    assert_int_equal(sql_int(f->path, "SELECT x FROM t"), 1);
}

static unsigned mode_of(const char *dir, const char *name)
{
    struct stat st;
    char path[400];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &st) == 0 ? st.st_mode & 0777 : 0;
}

static void files_are_0600_and_directories_0700(void **state)
{
    struct fixture *f = *state;
    tide_store *s;
    mode_t old = umask(0);

    s = open_store(f, NULL);
    fill(s);
    umask(old);
    assert_int_equal(mode_of(f->dir, "new"), 0700);
    assert_int_equal(mode_of(f->dir, "new/s.db"), 0600);
    assert_int_equal(mode_of(f->dir, "new/s.db-wal"), 0600);
    assert_int_equal(mode_of(f->dir, "new/s.db-shm"), 0600);
    assert_int_equal(mode_of(f->dir, "new/s.db-mark"), 0600);
    assert_int_equal(mode_of(f->dir, "new/s.db-reserve"), 0600);
    tide_store_close(s);
}

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

static void a_wrong_or_missing_key_is_named(void **state)
{
    struct fixture *f = *state;
    tide_store *s = open_store(f, KEY);

    fill(s);
    tide_store_close(s);
    ABOUT(TIDE_WRONG_KEY, TIDE_SUBJECT_FILE, f->path, open_with(f, 0, NULL, &s, &err));
    ABOUT(TIDE_WRONG_KEY, TIDE_SUBJECT_FILE, f->path, open_with(f, 0, "another key of enough bytes", &s, &err));
    GIVES(TIDE_INVALID, open_with(f, 0, "short", &s, &err));
    tide_store_close(open_store(f, KEY));
    snprintf(f->path, sizeof f->path, "%s/plain.db", f->dir);
    tide_store_close(open_store(f, NULL));
    ABOUT(TIDE_WRONG_KEY, TIDE_SUBJECT_FILE, f->path, open_with(f, 0, KEY, &s, &err));
}

static const char *const tampering[] = {
    "UPDATE events SET body = replace(body, '\"turn\":3,', '\"turn\":4,') WHERE seq = 5",
    "UPDATE events SET body = '{}' WHERE seq = 1",
    "UPDATE events SET kind = 'message.tool' WHERE seq = 20 AND kind = 'message.user'",
    "UPDATE events SET ts = ts + 1 WHERE seq = 9",
    "UPDATE events SET epoch = epoch + 1 WHERE seq = 9",
    "UPDATE events SET seq = 1000 WHERE seq = 9",
    "UPDATE events SET digest = zeroblob(32) WHERE seq = 9",
    "UPDATE events SET digest = (SELECT digest FROM events WHERE seq = 8) WHERE seq = 9",
    "UPDATE events SET refs = zeroblob(56) WHERE seq = 9",
    "UPDATE events SET prev = prev - 1 WHERE seq = 9",
    "UPDATE events SET sid = 3 - sid WHERE seq = 80",
    "UPDATE events SET body = (SELECT b.body FROM events b WHERE b.seq = 23 - events.seq AND b.sid = events.sid)"
    " WHERE seq IN (11, 12)",
    "UPDATE events SET pos = pos + 100000 WHERE seq = 30",
    "DELETE FROM events WHERE seq = 9",
    "DELETE FROM events WHERE pos = (SELECT max(pos) FROM events)",
    "DELETE FROM events",
    "UPDATE sessions SET id = 'six' WHERE id = 'one'",
    "UPDATE sessions SET created = created + 1 WHERE id = 'one'",
    "UPDATE sessions SET parent = NULL WHERE id = 'two'",
    "UPDATE sessions SET parent_seq = 76 WHERE id = 'two'",
    "UPDATE sessions SET base = zeroblob(32) WHERE id = 'two'",
    "UPDATE sessions SET hidden = 1 WHERE id = 'two'",
    "UPDATE sessions SET row_check = row_check + 1 WHERE id = 'one'",
    "UPDATE sessions SET epoch = epoch + 1 WHERE id = 'one'",
    "UPDATE sessions SET last_seq = last_seq - 1 WHERE id = 'one'",
    "UPDATE sessions SET last_pos = last_pos - 1 WHERE id = 'one'",
    "UPDATE sessions SET digest = zeroblob(32) WHERE id = 'one'",
    "UPDATE sessions SET updated = updated + 1 WHERE id = 'one'",
    "UPDATE sessions SET summary = replace(summary, 'one', 'six') WHERE id = 'one'",
    "UPDATE sessions SET last_seq = last_seq - 1, summary_seq = summary_seq - 1, last_pos = (SELECT prev FROM events WHERE"
    " pos = last_pos), digest = (SELECT p.digest FROM events e JOIN events p ON p.pos = e.prev WHERE e.pos = last_pos)"
    " WHERE id = 'one'",
    "DELETE FROM meta WHERE key = 'key_check'",
    "UPDATE meta SET value = zeroblob(32) WHERE key = 'key_check'",
    "UPDATE blobs SET value = replace(value, 'b', 'c')",
    "UPDATE blobs SET digest = zeroblob(32)",
    "DELETE FROM blobs",
};

static int look(void *arg, const struct tide_event *ev)
{
    (void)arg;
    (void)ev;
    return 0;
}

/* Everything `answers` asks, until something is refused. */
static enum tide_code ask_everything(tide_store *store)
{
    static const char *const ids[] = {"one", "two"};
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    enum tide_code code = tide_session_list(store, NULL, add_info, &out, NULL);

    for (int i = 0; i < 2 && !code; i++) {
        struct tide_text text = {NULL, 0};
        tide_session *s = NULL;

        code = tide_session_open(store, ids[i], TIDE_SESSION_READ, &s, NULL);
        code = code ? code : tide_session_read(s, TIDE_READ_INHERITED, 0, 0, look, NULL, NULL);
        code = code ? code : tide_session_verify(s, NULL, NULL, NULL, NULL);
        code = code ? code : tide_session_get_state(s, 0, &text, NULL);
        tide_text_done(&text);
        tide_session_close(s);
    }
    code = code ? code : tide_store_read(store, 0, 0, look, NULL, NULL);
    buf_done(&out);
    return code;
}

static void copy_store(const struct fixture *f, const char *to)
{
    char command[900];

    snprintf(command, sizeof command, "rm -rf '%s/new' && cp -r '%s' '%s/new'", f->dir, to, f->dir);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
}

static void tampering_with_any_column_of_a_keyed_store_is_named(void **state)
{
    struct fixture *f = *state;
    tide_store *s = open_store(f, KEY);
    char kept[300], command[900], *want;
    int failures = 0;

    fill(s);
    want = answers(s);
    tide_store_close(s);
    snprintf(kept, sizeof kept, "%s/kept", f->dir);
    snprintf(command, sizeof command, "cp -r '%s/new' '%s'", f->dir, kept);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
    for (size_t i = 0; i < sizeof tampering / sizeof tampering[0]; i++) {
        enum tide_code code;

        copy_store(f, kept);
        sql_run(f->path, NULL, tampering[i]);
        s = NULL;
        code = open_with(f, 0, KEY, &s, NULL);
        if (!code)
            code = ask_everything(s);
        if (!code) { /* or it was only a cache, and all answers are right */
            char *got = answers(s);

            code = strcmp(got, want) == 0 ? TIDE_CORRUPT : TIDE_OK;
            free(got);
        }
        tide_store_close(s);
        if (code != TIDE_CORRUPT && code != TIDE_WRONG_KEY) {
            print_error("%s: %s\n", tampering[i], tide_code_name(code));
            failures++;
        }
    }
    free(want);
    assert_int_equal(failures, 0);
}

static void a_session_taken_out_of_the_directory_is_found_by_check(void **state)
{
    struct fixture *f = *state;
    tide_store *s = open_store(f, NULL);

    fill(s);
    tide_store_close(s);
    sql_run(f->path, NULL, "DELETE FROM sessions WHERE id = 'two'");
    s = open_store(f, NULL);
    GIVES(TIDE_CORRUPT, tide_store_check(s, 0, NULL, NULL, NULL, &err));
    GIVES(TIDE_CORRUPT, tide_store_read(s, 0, 0, look, NULL, &err));
    tide_store_close(s);
}

/* ---- The mark --------------------------------------------------------------------------------------------------- */

static void append_some(tide_store *s, int n)
{
    tide_session *session = NULL;

    OK(tide_session_open(s, "one", TIDE_SESSION_APPEND, &session, &err));
    for (int i = 0; i < n; i++)
        put(session, "message.user", SAID);
    tide_session_close(session);
}

/* A store that is closed has an empty log: only a process that died leaves one with something in it. */
static void in_a_process_that_dies(struct fixture *f, void (*act)(tide_store *))
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        tide_store *s = open_store(f, NULL);

        fill(s);
        OK(tide_store_compact(s, &err));
        act(s);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void append_five(tide_store *s)
{
    append_some(s, 5);
}

static void delete_two(tide_store *s)
{
    OK(tide_session_delete(s, "two", &err));
}

static void a_store_that_lost_its_log_says_so(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    tide_store *s;
    tide_session *session = NULL;
    int64_t last, lost;

    in_a_process_that_dies(f, append_five);
    lost = sql_int(f->path, "SELECT max(pos) FROM events");
    assert_int_equal(stat(f->wal, &st), 0);
    assert_true(st.st_size > 0);
    assert_int_equal(truncate(f->wal, st.st_size / 2), 0);
    HINTS(TIDE_CORRUPT, TIDE_ACTION_CHECK_STORE, open_with(f, 0, NULL, &s, &err));
    HINTS(TIDE_CORRUPT, TIDE_ACTION_CHECK_STORE, open_with(f, TIDE_OPEN_READ_ONLY, NULL, &s, &err));
    assert_int_equal(unlink(f->wal), 0);
    HINTS(TIDE_CORRUPT, TIDE_ACTION_CHECK_STORE, open_with(f, 0, NULL, &s, &err));
    OK(open_with(f, TIDE_OPEN_ACCEPT_LOSS, NULL, &s, &err));
    OK(tide_session_open(s, "one", TIDE_SESSION_APPEND, &session, &err));
    last = tide_session_last_seq(session);
    put(session, "message.user", SAID);
    assert_int_equal(tide_session_last_seq(session), last + 1);
    tide_session_close(session);
    tide_store_close(s);
    assert_true(sql_int(f->path, "SELECT max(pos) FROM events") >
                lost);                   /* positions that were read are not used again */
    OK(open_with(f, 0, NULL, &s, &err)); /* once accepted, it is over */
    OK(tide_store_check(s, 0, NULL, NULL, NULL, &err));
    tide_store_close(s);
}

static void a_deleted_session_does_not_come_back_with_a_lost_log(void **state)
{
    struct fixture *f = *state;
    tide_store *s;

    in_a_process_that_dies(f, delete_two);
    assert_int_equal(unlink(f->wal), 0);
    GIVES(TIDE_CORRUPT, open_with(f, 0, NULL, &s, &err));
}

/* ---- Damage in one place ------------------------------------------------------------------------------------------ */

static struct batch *queue_input(struct store *s, const char *id)
{
    const struct event ev = {.kind = STR("queue.added"), .body = STR("{\"queue_id\":\"q\"}")};
    struct batch *b = batch_new(str_from(id), BATCH_INPUT, &ev, 1, STR(""), STR(""));

    b->expect_seq = STORE_ANY_SEQ;
    group_submit(s->group, b, GROUP_AWAITED);
    return b;
}

static void a_damaged_session_is_in_nobody_elses_way(void **state)
{
    struct fixture *f = *state;
    tide_store *s = open_store(f, NULL);
    struct batch *bad, *good;

    fill(s);
    sql_run(f->path, NULL, "UPDATE sessions SET created = created + 1 WHERE id = 'two'");
    bad = queue_input(store_of(s), "two");
    good = queue_input(store_of(s), "one");
    group_wait(store_of(s)->group, bad);
    group_wait(store_of(s)->group, good);
    expect_code(TIDE_CORRUPT, bad->code, &bad->err, "damaged", __FILE__, __LINE__);
    expect_code(TIDE_OK, good->code, &good->err, "sound", __FILE__, __LINE__);
    batch_free(bad);
    batch_free(good);
    tide_store_close(s);
}

static int note_id(void *arg, const struct store_entry *e, int64_t wake_ms)
{
    buf_addf(arg, "%s@%lld ", e->head->id, (long long)wake_ms);
    return 0;
}

static void leave_live(struct store *s, const char *id)
{
    const struct event ev = {.kind = STR("session.created"), .body = STR("{}")};
    struct batch *b =
        batch_new(str_from(id), BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE | BATCH_LIVE, &ev, 1, STR(""), STR(""));

    b->expect_seq = STORE_ANY_SEQ;
    OK(store_write(s, b, NULL, &err));
}

static void a_damaged_live_row_is_named_after_the_others_were_handed_out(void **state)
{
    static const char *const damage[] = {"wake = 5", "boot = 1", "last_seq = 0", "digest = zeroblob(32)"};
    struct fixture *f = *state;
    tide_store *t = open_store(f, NULL);
    struct store *s = store_of(t);
    struct buf out = BUF_INIT(1000);
    int64_t next;

    leave_live(s, "a");
    leave_live(s, "b");
    leave_live(s, "c");
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        char sql[300];

        snprintf(sql, sizeof sql,
                 "CREATE TABLE keep AS SELECT * FROM live; UPDATE live SET %s WHERE sid = (SELECT sid FROM sessions"
                 " WHERE id = 'b')",
                 damage[i]);
        sql_run(f->path, NULL, sql);
        buf_clear(&out);
        ABOUT_SESSION(TIDE_CORRUPT, "b", store_live(s, 10, note_id, &out, &next, &err));
        assert_string_equal(buf_cstr(&out), "a@0 c@0 ");
        sql_run(f->path, NULL, "DELETE FROM live; INSERT INTO live SELECT * FROM keep; DROP TABLE keep");
    }
    sql_run(f->path, NULL, "DELETE FROM sessions WHERE id = 'b'"); /* a row without its session */
    GIVES(TIDE_CORRUPT, store_live(s, 10, note_id, &out, &next, &err));
    GIVES(TIDE_CORRUPT, tide_store_check(t, 0, NULL, NULL, NULL, &err));
    buf_done(&out);
    tide_store_close(t);
}

/* ---- A writer that is stopped ------------------------------------------------------------------------------------ */

static int do_not_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

/* Between its two copies of the header in the -shm file it keeps everybody out; SQLite gives up after ten seconds. */
static void a_writer_stopped_in_mid_commit_makes_the_others_wait(void **state)
{
    struct fixture *f = *state;
    sqlite3_vfs hasty = *sqlite3_vfs_find(NULL);
    struct env env = *env_real();
    struct store *s = NULL;
    struct head head;
    sqlite3 *writer = NULL;
    char shm[310], copy[48], half[48];
    int fd;

    tide_store_close(open_store(f, NULL));
    hasty.zName = env.sqlite_vfs = "hasty";
    hasty.xSleep = do_not_sleep;
    assert_int_equal(sqlite3_vfs_register(&hasty, 0), SQLITE_OK);
    OK(store_open(f->path, NULL, &env, &s, &err));
    assert_int_equal(sqlite3_open(f->path, &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    snprintf(shm, sizeof shm, "%s-shm", f->path);
    fd = open(shm, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, copy, sizeof copy, sizeof copy), sizeof copy);
    memcpy(half, copy, sizeof half);
    half[8]++; /* the counter of changes */
    assert_int_equal(pwrite(fd, half, sizeof half, sizeof half), sizeof half);
    GIVES(TIDE_BUSY, store_head(s, STR("none"), &head, &err));
    assert_int_equal(pwrite(fd, copy, sizeof copy, sizeof copy), sizeof copy);
    GIVES(TIDE_NOT_FOUND, store_head(s, STR("none"), &head, &err));
    sqlite3_close(writer);
    store_close(s);
    close(fd); /* not before: that would give up the locks of this process */
    sqlite3_vfs_unregister(&hasty);
}

/* ---- For people -------------------------------------------------------------------------------------------------- */

static void the_views_show_what_people_look_for(void **state)
{
    struct fixture *f = *state;
    tide_store *s = open_store(f, NULL);

    fill(s);
    tide_store_close(s);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM sessions_v"), 2);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM messages WHERE session_id = 'one'"), 150);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM messages WHERE session_id = 'one' AND NOT deleted"),
                     35 + 49);
    assert_int_equal(sql_int(f->path, "SELECT input_tokens FROM token_usage"), 5);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM checkpoints"), 15);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM errors"), 0);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM runs"), 0);
    assert_int_equal(sql_int(f->path, "SELECT turn FROM messages WHERE seq = 4 AND session_id = 'one'"), 2);
}

/* What messages a session has, by the views, and by what people would count by hand. */
static void the_views_follow_forks_rollbacks_and_updates(void **state)
{
    static const struct {
        const char *sql;
        int want;
    } rows[] = {
        /* `two` was forked before the rollback: it has all of the first 77 events' messages. */
        {"SELECT count(*) FROM messages WHERE session_id = 'two' AND inherited AND NOT deleted", 69},
        {"SELECT min(seq) = 2 AND max(seq) = 77 FROM messages WHERE session_id = 'two'", 1},
        {"SELECT count(*) FROM messages WHERE session_id = 'three' AND inherited AND NOT deleted", 35 + 49},
        {"SELECT count(*) FROM messages WHERE session_id = 'three' AND NOT inherited", 1},
        /* Going back to before the fork. */
        {"SELECT count(*) FROM messages WHERE session_id = 'back' AND NOT deleted", 9},
        {"SELECT max(seq) FROM messages WHERE session_id = 'back' AND NOT deleted", 11},
        {"SELECT count(*) = count(DISTINCT id) FROM messages", 1},
        {"SELECT count(*) FROM (SELECT id - lag(id) OVER (PARTITION BY session_id ORDER BY seq) AS step FROM messages)"
         " WHERE step <= 0",
         0},
        /* The last message of each checkpoint that still counts: the newest before it that still counts. */
        {"SELECT count(*) FROM checkpoints c WHERE NOT deleted AND last_msg_id IS NOT (SELECT id FROM messages m WHERE"
         " m.session_id = c.session_id AND NOT m.deleted AND m.seq < c.seq ORDER BY m.seq DESC LIMIT 1)",
         0},
        {"SELECT count(*) FROM checkpoints WHERE last_msg_id = 0", 0},
        {"SELECT m.inherited AND m.seq = 77 FROM checkpoints c JOIN messages m ON m.id = c.last_msg_id WHERE"
         " c.session_id = 'two'",
         1},
        {"SELECT count(*) FROM checkpoints WHERE session_id = 'one' AND deleted", 7},
        {"SELECT count(*) FROM sessions_v WHERE session_id = 'one' AND title = 'new' AND model = 'm2' AND agent = 'a'",
         1},
        {"SELECT count(*) FROM sessions_v WHERE session_id = 'two' AND title = 'two' AND model IS NULL AND agent_id = 'a'",
         1},
        {"SELECT count(DISTINCT agent_id) = 1 AND max(agent_id) = 'a7' FROM messages WHERE session_id = 'three'", 1},
        {"SELECT agent_id = 'a' FROM token_usage", 1},
        {"SELECT count(*) FROM checkpoints WHERE agent_id IS NOT 'a'", 0},
    };
    const struct tide_new_checkpoint turn = {.size = sizeof turn, .type = TIDE_CHECKPOINT_TURN};
    struct fixture *f = *state;
    tide_store *store = open_store(f, NULL);
    tide_session *s = NULL;
    char id[TIDE_ID_SIZE];

    fill(store);
    OK(tide_session_open(store, "one", TIDE_SESSION_APPEND, &s, &err));
    put(s, "session.updated", "{\"title\":\"new\",\"provider\":{\"type\":\"p\",\"model\":\"m2\"}}");
    tide_session_close(s);
    OK(tide_session_fork(store, "one", 0, "three", "{\"agent_id\":\"a7\"}", id, &err));
    OK(tide_session_open(store, "three", TIDE_SESSION_APPEND, &s, &err));
    put(s, "message.user", "{\"content\":\"own\"}");
    tide_session_close(s);
    OK(tide_session_fork(store, "one", 40, "back", NULL, id, &err));
    OK(tide_session_open(store, "back", TIDE_SESSION_APPEND, &s, &err));
    OK(tide_session_rollback(s, 11, 0, NULL, &err));
    tide_session_close(s);
    OK(tide_session_open(store, "two", TIDE_SESSION_APPEND, &s, &err));
    OK(tide_checkpoint_save(s, &turn, id, &err));
    tide_session_close(s);
    tide_store_close(store);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (sql_int(f->path, rows[i].sql) != rows[i].want)
            fail_msg("%s: %d", rows[i].sql, (int)sql_int(f->path, rows[i].sql));
}

static void *read_beside(void *arg)
{
    struct sqlite_store *s = arg;
    struct conn *c = NULL;

    OK(db_reader(s, &c, &err));
    db_reader_done(s, c);
    return NULL;
}

static void who_reads_holds_up_nobody(void **state)
{
    struct fixture *f = *state;
    tide_store *store = open_store(f, NULL);
    struct sqlite_store *s = sqlite_of(store_of(store));
    struct conn *held[READERS];
    struct head h;
    pthread_t waits;

    fill(store);
    alarm(60); /* else it would wait for ever */
    for (int i = 0; i < READERS - 1; i++)
        OK(db_reader(s, &held[i], &err));
    OK(store_head(&s->base, STR("one"), &h, &err));
    OK(db_reader(s, &held[READERS - 1], &err));
    assert_int_equal(pthread_create(&waits, NULL, read_beside, s), 0); /* one too many, until one is given back */
    for (int i = 0; i < READERS; i++)
        db_reader_done(s, held[i]);
    pthread_join(waits, NULL);
    alarm(0);
    tide_store_close(store);
}

static tide_store *open_as(struct fixture *f, const char *user)
{
    struct tide_store_options opt = {
        .size = sizeof opt, .flags = TIDE_OPEN_CREATE, .origin_key = user, .origin_key_len = strlen(user)};
    tide_store *store = NULL;

    OK(tide_store_open(f->path, &opt, &store, &err));
    return store;
}

#define LARGE 150000

static void append_large(tide_store *store, const char *id, char fill)
{
    tide_session *s = NULL;
    AUTO(mem_freep) char *text = mem_zero(LARGE + 1);

    memset(text, fill, LARGE);
    OK(tide_session_create(store, id, NULL, &s, &err));
    put(s, "message.tool", "{\"tool_call_id\":\"c\",\"content\":\"%s\"}", text);
    tide_session_close(s);
}

static int is_filled_with(void *arg, const struct tide_event *ev)
{
    AUTO(mem_freep) char *want = mem_zero(LARGE + 1);

    memset(want, *(const char *)arg, LARGE);
    assert_true(ev->body_len > LARGE);
    assert_memory_equal(strstr(ev->body, "\"content\":\"") + 11, want, LARGE);
    return 0;
}

static enum tide_code read_large(struct fixture *f, const char *user, const char *id, char fill)
{
    tide_store *store = open_as(f, user);
    tide_session *s = NULL;
    enum tide_code code = tide_session_open(store, id, TIDE_SESSION_READ, &s, NULL);

    code = code ? code : tide_session_read(s, 0, 2, 2, is_filled_with, &fill, NULL);
    tide_session_close(s);
    tide_store_close(store);
    return code;
}

/* By its seal or, where that is not right or another user's, by its digest: what is read is what was written. */
static void a_big_value_is_right_or_refused_with_its_seal_and_without(void **state)
{
    static const char ours[] = "0123456789abcdef0123456789abcdef", theirs[] = "fedcba9876543210fedcba9876543210";
    static const struct {
        const char *sql;
        bool refused;
    } edits[] = {
        {"UPDATE events SET refs = substr(refs, 1, length(refs) - 16) || zeroblob(16) WHERE refs IS NOT NULL", false},
        {"UPDATE events SET refs = substr(refs, 1, length(refs) - 16) WHERE refs IS NOT NULL", false},
        {"UPDATE events SET refs = substr(refs, 1, length(refs) - 1) WHERE refs IS NOT NULL", true},
        {"UPDATE blobs SET value = replace(value, 'xxxxx', 'yyyyy')", true},
        {"UPDATE blobs SET value = CAST(value AS TEXT) || 'x'", true},
        {"UPDATE blobs SET value = 7", true},
        {"UPDATE events SET body = replace(body, '\"c\"', '\"d\"') WHERE refs IS NOT NULL", true},
    };
    struct fixture *f = *state;
    tide_store *store = open_as(f, ours);
    char kept[300], command[700];

    append_large(store, "s", 'x');
    tide_store_close(store);
    assert_int_equal(sql_int(f->path, "SELECT length(refs) FROM events WHERE refs IS NOT NULL"), 24 + 32 + 16);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM blobs WHERE substr(digest, 17) = zeroblob(16)"), 1);
    OK(read_large(f, ours, "s", 'x'));
    OK(read_large(f, theirs, "s", 'x'));
    snprintf(kept, sizeof kept, "%s", f->path);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        snprintf(f->path, sizeof f->path, "%s/edited-%zu.db", f->dir, i);
        snprintf(command, sizeof command, "cp '%s' '%s'", kept, f->path);
        assert_int_equal(system(command), 0); /* NOLINT: our own names */
        sql_run(f->path, NULL, edits[i].sql);
        assert_int_equal(read_large(f, ours, "s", 'x'), edits[i].refused ? TIDE_CORRUPT : TIDE_OK);
        assert_int_equal(read_large(f, theirs, "s", 'x'), edits[i].refused ? TIDE_CORRUPT : TIDE_OK);
        snprintf(f->path, sizeof f->path, "%s", kept);
    }
}

/* A value that has the name of another one, or of one that was damaged, is stored by its digest. */
static void a_big_value_is_the_same_only_byte_for_byte(void **state)
{
    static const char user[] = "0123456789abcdef0123456789abcdef";
    struct fixture *f = *state;
    tide_store *store = open_as(f, user);

    append_large(store, "one", 'x');
    append_large(store, "two", 'x');
    tide_store_close(store);
    assert_int_equal(sql_int(f->path, "SELECT refs FROM blobs"), 2);
    sql_run(f->path, NULL, "UPDATE blobs SET value = replace(value, 'x', 'y')");
    store = open_as(f, user);
    append_large(store, "three", 'x');
    append_large(store, "four", 'x');
    tide_store_close(store);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM blobs"), 2);
    OK(read_large(f, user, "three", 'x'));
    OK(read_large(f, user, "four", 'x'));
    GIVES(TIDE_CORRUPT, read_large(f, user, "one", 'x'));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_remove)

/* ---- moving the log ---- */

#define MOVED_BYTES (200 << 10)

static tide_session *append_distinct(tide_session *s, int from, int n)
{
    AUTO(mem_freep) char *text = mem_zero(MOVED_BYTES + 1);

    for (int i = from; i < from + n; i++) {
        memset(text, 'a' + i % 26, MOVED_BYTES);
        put(s, "message.tool", "{\"tool_call_id\":\"c\",\"content\":\"%d %s\"}", i, text);
    }
    return s;
}

/* What is moved is written in larger pieces: nothing of it may be missing where the log counts as moved that far. */
static void a_move_that_a_reader_cuts_short_leaves_nothing_out(void **state)
{
    struct fixture *f = *state;
    tide_store *store = open_store(f, NULL);
    tide_session *s = NULL;
    sqlite3 *reader = NULL;
    uint64_t events = 0;

    OK(tide_session_create(store, "moved", NULL, &s, &err));
    append_distinct(s, 0, 10);
    assert_int_equal(sqlite3_open(f->path, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM events", NULL, NULL, NULL), SQLITE_OK);
    append_distinct(s, 10, 20);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM blobs"), 30);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
    sqlite3_close(reader);
    append_distinct(s, 30, 30);
    tide_session_close(s);
    assert_int_equal(sql_int(f->path, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
    tide_store_close(store);
    store = open_store(f, NULL);
    OK(tide_session_open(store, "moved", TIDE_SESSION_READ, &s, &err));
    OK(tide_session_verify(s, NULL, NULL, &events, &err));
    assert_int_equal(events, 61);
    tide_session_close(s);
    tide_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(without_any_cache_all_answers_are_the_same),
        CASE(wrong_caches_do_no_harm),
        CASE(a_newer_version_is_refused_with_its_number),
        CASE(an_older_version_is_upgraded_with_nothing_lost),
        CASE(strangers_are_refused_and_left_alone),
        CASE(another_programs_database_is_refused_and_left_alone),
        CASE(files_are_0600_and_directories_0700),
        CASE(a_wrong_or_missing_key_is_named),
        CASE(tampering_with_any_column_of_a_keyed_store_is_named),
        CASE(a_session_taken_out_of_the_directory_is_found_by_check),
        CASE(a_store_that_lost_its_log_says_so),
        CASE(a_deleted_session_does_not_come_back_with_a_lost_log),
        CASE(a_damaged_session_is_in_nobody_elses_way),
        CASE(a_damaged_live_row_is_named_after_the_others_were_handed_out),
        CASE(a_writer_stopped_in_mid_commit_makes_the_others_wait),
        CASE(the_views_show_what_people_look_for),
        CASE(the_views_follow_forks_rollbacks_and_updates),
        CASE(who_reads_holds_up_nobody),
        CASE(a_big_value_is_right_or_refused_with_its_seal_and_without),
        CASE(a_big_value_is_the_same_only_byte_for_byte),
        CASE(a_move_that_a_reader_cuts_short_leaves_nothing_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
