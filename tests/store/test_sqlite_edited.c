/* SPDX-License-Identifier: Apache-2.0 */
/* What people do to a store with SQL: each column of each table, and what is made or dropped. All of it is named, or does no harm. */
#include <sys/wait.h>

#include "kit.h"
#include "store/event.h"

#define COLUMNS_MAX 100

struct fixture {
    char dir[256], path[300], kept[300], text[400]; /* text: of the first problem */
};

static int set_up(void **state)
{
    struct fixture *f = fixture_new(sizeof *f);

    snprintf(f->path, sizeof f->path, "%s/s.db", f->dir);
    snprintf(f->kept, sizeof f->kept, "%s/kept.db", f->dir);
    *state = f;
    return 0;
}

static void copy(const char *from, const char *to)
{
    char command[1000];

    snprintf(command, sizeof command, "rm -f '%s'* && cp '%s' '%s'", to, from, to);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
}

/* ---- A store with something in every table ----------------------------------------------------------------------- */

static tide_session *make(tide_store *store, const char *id, const char *big)
{
    tide_session *s = NULL;

    OK(tide_session_create(store, id, "{\"title\":\"a title\"}", &s, &err));
    put(s, "memory.set", "{\"values\":{\"big\":\"%s\",\"small\":1}}", big);
    return s;
}

static void fill(tide_store *store)
{
    char id[TIDE_ID_SIZE], *big = mem_zero(70001);
    tide_session *s;

    memset(big, 'b', 70000);
    s = make(store, "alpha-one", big);
    for (int i = 0; i < 300; i++) /* past a block of positions, and past a snapshot */
        put(s, "message.user", "{\"turn\":%d,\"content\":\"%0*d\"}", i + 1, 200, i);
    OK(tide_checkpoint_save(
        s, &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_TURN}, id,
        &err));
    put(s, "run.started", "{\"run_id\":\"run_1\"}");
    put(s, "run.interrupted", "{\"run_id\":\"run_1\"}"); /* it stays among the live */
    tide_session_close(s);
    tide_session_close(make(store, "alpha-two", big)); /* the same value */
    OK(tide_session_fork(store, "alpha-one", 200, "beta", "{\"title\":\"a fork\"}", id, &err));
    s = make(store, "held", "small");
    free(big);
}

/* Its process ends without giving back what it holds; another closes the store, so that it is one file. */
static void make_store(struct fixture *f)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        OK(tide_store_open(f->path, &opt, &store, &err));
        fill(store);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    OK(tide_store_open(f->path, NULL, &store, &err));
    OK(tide_store_compact(store, &err));
    tide_store_close(store);
    copy(f->path, f->kept);
}

/* ---- What it answers ----------------------------------------------------------------------------------------------- */

static const char *const ids[] = {"alpha-one", "alpha-two", "beta", "held"};

#define N_IDS (sizeof ids / sizeof ids[0])

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
    buf_addf(arg, "%s %lld %s %d %s\n", info->id, (long long)info->updated_ms, info->title, (int)info->last_seq,
             info->parent_id ? info->parent_id : "-");
    return 0;
}

static enum tide_code ask_one(tide_store *store, const char *id, struct buf *out, struct tide_err *err)
{
    struct tide_checkpoint_filter all = {.size = sizeof all, .rolled_back = 1};
    struct tide_text text = {NULL, 0};
    tide_session *s = NULL;
    enum tide_code code = tide_session_open(store, id, TIDE_SESSION_READ, &s, err);

    code = code ? code : tide_session_read(s, TIDE_READ_INHERITED, 0, 0, add_event, out, err);
    code = code ? code : tide_session_read_messages(s, 0, add_event, out, err);
    code = code ? code : tide_checkpoint_list(s, &all, add_checkpoint, out, err);
    code = code ? code : tide_session_get_state(s, 0, &text, err);
    if (!code) { /* who holds it is no part of the truth */
        const char *end = strstr(text.ptr, ",\"status\"");

        buf_add(out, text.ptr, end ? (size_t)(end - text.ptr) : text.len);
    }
    tide_text_done(&text);
    tide_session_close(s);
    return code;
}

/* Everything the store answers, as one text; NULL: it was refused, by name. */
static char *ask(tide_store *store, struct tide_err *err)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    char found[TIDE_ID_SIZE];
    enum tide_code code = tide_session_list(store, NULL, add_info, &out, err);

    for (size_t i = 0; i < N_IDS && !code; i++)
        code = ask_one(store, ids[i], &out, err);
    code = code ? code : tide_store_read(store, 0, 0, add_event, &out, err);
    if (!code) {
        code = tide_session_resolve(store, "alpha", found, err); /* of two */
        buf_addf(&out, "alpha: %s\n", tide_code_name(code));
        code = tide_session_resolve(store, "bet", found, err);
        buf_addf(&out, "bet: %s\n", code ? "" : found);
    }
    if (code == TIDE_OK)
        return buf_take(&out);
    assert_true(err->msg[0]);
    buf_done(&out);
    return NULL;
}

static void keep_first(void *arg, const char *where, const char *what)
{
    struct fixture *f = arg;

    if (!f->text[0])
        snprintf(f->text, sizeof f->text, "%s: %s", where, what);
}

/* One of two goes: what they share stays. NULL as above. */
static char *ask_after_deleting(tide_store *store, struct tide_err *err)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    enum tide_code code = tide_session_delete(store, "alpha-two", err);

    code = code ? code : ask_one(store, "alpha-one", &out, err);
    if (!code)
        return buf_take(&out);
    buf_done(&out);
    return NULL;
}

enum verdict { SILENT_WRONG, NAMED, RIGHT };

/* What comes of the file as it stands. */
static enum verdict judge(struct fixture *f, const char *want, const char *want_after)
{
    struct tide_err err = {0};
    tide_store *store = NULL;
    enum tide_code code = tide_store_open(f->path, NULL, &store, &err);
    bool right;
    char *got;

    f->text[0] = 0;
    if (!code)
        code = tide_store_check(store, 0, NULL, keep_first, f, &err);
    if (code) {
        tide_store_close(store);
        return code == TIDE_CORRUPT || code == TIDE_WRONG_KEY ? NAMED : SILENT_WRONG;
    }
    got = ask(store, &err);
    right = got && strcmp(got, want) == 0;
    free(got);
    got = right ? ask_after_deleting(store, &err) : NULL;
    right &= got && strcmp(got, want_after) == 0;
    free(got);
    tide_store_close(store);
    return right ? RIGHT : SILENT_WRONG;
}

static void learn(struct fixture *f, char **ret_want, char **ret_after)
{
    struct tide_err why = {0};
    tide_store *store = NULL;

    make_store(f);
    OK(tide_store_open(f->path, NULL, &store, &err));
    OK(tide_store_check(store, 0, NULL, NULL, NULL, &err));
    *ret_want = ask(store, &why);
    if (!*ret_want)
        print_error("%s\n", why.msg);
    assert_non_null(*ret_want);
    *ret_after = ask_after_deleting(store, &why);
    assert_non_null(*ret_after);
    tide_store_close(store);
    copy(f->kept, f->path);
    assert_int_equal(judge(f, *ret_want, *ret_after), RIGHT);
}

/* ---- Every column --------------------------------------------------------------------------------------------------- */

struct column {
    char table[40], name[40];
};

static size_t columns_of(const char *path, struct column *ret)
{
    static const char sql[] = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
                              " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_stat%' ORDER BY 1, c.cid";
    sqlite3_stmt *st = NULL;
    sqlite3 *db = NULL;
    size_t n = 0;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    for (; sqlite3_step(st) == SQLITE_ROW; n++) {
        assert_true(n < COLUMNS_MAX);
        snprintf(ret[n].table, sizeof ret[n].table, "%s", sqlite3_column_text(st, 0));
        snprintf(ret[n].name, sizeof ret[n].name, "%s", sqlite3_column_text(st, 1));
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

/* False: no row was changed, or a rule of the table forbids it. */
static bool change(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    bool changed;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    changed = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) > 0;
    sqlite3_close(db);
    return changed;
}

/* $: the column. */
static const char *const values[] = {
    "NULL",
    "0",
    "1",
    "$ + 1",
    "'x'",
    "zeroblob(32)",
    "9223372036854775807",
    "(SELECT o.$ FROM % o WHERE o.$ IS NOT %.$ LIMIT 1)",
};

static void spell(char *out, size_t size, const char *value, const struct column *c)
{
    size_t n = 0;

    for (; *value; value++)
        n += (size_t)snprintf(out + n, size - n, "%.*s",
                              *value == '$'   ? (int)strlen(c->name)
                              : *value == '%' ? (int)strlen(c->table)
                                              : 1,
                              *value == '$'   ? c->name
                              : *value == '%' ? c->table
                                              : value);
}

static void each_column_of_each_table_is_named_when_it_is_changed_or_does_no_harm(void **state)
{
    /* The first row of its table, the last, all of them. */
    static const char *const which[] = {"min", "max", NULL};
    struct fixture *f = *state;
    struct column columns[COLUMNS_MAX];
    char *want, *after;
    int changed = 0, named = 0, failed = 0;
    size_t n;

    learn(f, &want, &after);
    n = columns_of(f->path, columns);
    assert_true(n > 60);
    for (size_t i = 0; i < n; i++) {
        const struct column *c = &columns[i];

        for (size_t k = 0; k < 3 * sizeof values / sizeof values[0]; k++) {
            char value[200], where[200] = "1", sql[900], key[] = "rowid";
            enum verdict is;

            if (SLOW_BUILD && (i + k) % 5)
                continue;
            spell(value, sizeof value, values[k / 3], c);
            if (strcmp(c->table, "meta") == 0)
                snprintf(key, sizeof key, "key");
            if (strcmp(c->table, "blocks") == 0)
                snprintf(key, sizeof key, "seq");
            if (which[k % 3])
                snprintf(where, sizeof where, "%s = (SELECT %s(%s) FROM %s)", key, which[k % 3], key, c->table);
            snprintf(sql, sizeof sql, "UPDATE %s SET %s = %s WHERE %s AND %s IS NOT %s", c->table, c->name, value,
                     where, c->name, value);
            copy(f->kept, f->path);
            if (!change(f->path, sql))
                continue;
            changed++;
            is = judge(f, want, after);
            named += is == NAMED;
            if (is == SILENT_WRONG) {
                print_error("nobody notices: %s\n", sql);
                failed++;
            }
        }
    }
    print_message("# %d changes of %d columns, %d of them named\n", changed, (int)n, named);
    assert_true(SLOW_BUILD || (changed > 500 && named > 200)); /* else nothing was tried */
    free(want);
    free(after);
    assert_int_equal(failed, 0);
}

/* ---- Rows and the schema -------------------------------------------------------------------------------------------- */

enum when { AT_OPENING, BY_CHECK, HARMLESS };

static const struct edit {
    const char *sql;
    enum when when;
    const char *words;
    bool mended; /* by store check --rebuild */
} edits[] = {
    {"CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events WHERE seq = 5; END", AT_OPENING, "trigger 't'",
     false},
    {"CREATE TRIGGER events AFTER INSERT ON sessions BEGIN SELECT 1; END", AT_OPENING, "trigger 'events'", false},
    {"CREATE TRIGGER t INSTEAD OF DELETE ON heads BEGIN SELECT 1; END", AT_OPENING, "trigger 't'", false},
    {"CREATE VIEW mine AS SELECT 1", AT_OPENING, "view 'mine'", false},
    {"CREATE TABLE mine(x)", AT_OPENING, "table 'mine'", false},
    {"CREATE INDEX mine ON events(kind)", AT_OPENING, "index 'mine'", false},
    {"CREATE UNIQUE INDEX mine ON events(sid, ts, kind, seq)", AT_OPENING, "index 'mine'", false},
    {"ALTER TABLE events ADD COLUMN mine", AT_OPENING, "table 'events' is not as Tidemark made it", false},
    {"ALTER TABLE boots RENAME COLUMN pid TO p", AT_OPENING, "table 'boots' is not as Tidemark made it", false},
    {"ALTER TABLE blobs RENAME TO b", AT_OPENING, "(and 1 more)", false},
    {"DROP TABLE events", AT_OPENING, "table 'events' is missing: restore", false},
    {"DROP TABLE snapshots", AT_OPENING, "table 'snapshots' is missing", false},
    {"DROP TABLE meta", AT_OPENING, "table 'meta' is missing", false},
    {"DROP INDEX tag_index; CREATE UNIQUE INDEX tag_index ON events(tag) WHERE tag IS NOT NULL", AT_OPENING,
     "index 'tag_index' is not as Tidemark made it", false},
    {"DROP INDEX listed_index; CREATE TABLE listed_index(x)", AT_OPENING, "table 'listed_index' is not as", false},
    {"DROP INDEX tag_index", BY_CHECK, "index 'tag_index' is missing", true},
    {"DROP INDEX description_index", BY_CHECK, "index 'description_index' is missing", true},
    {"DROP INDEX rollback_index", BY_CHECK, "index 'rollback_index' is missing", true},
    {"DROP INDEX listed_index", BY_CHECK, "index 'listed_index' is missing", true},
    {"DROP INDEX fork_index", BY_CHECK, "index 'fork_index' is missing", true},
    {"DROP INDEX snapshot_index", BY_CHECK, "index 'snapshot_index' is missing", true},
    {"DROP VIEW heads", BY_CHECK, "view 'heads' is missing", true},
    {"DROP VIEW heads; CREATE VIEW heads AS SELECT * FROM sessions", BY_CHECK, "view 'heads' is not as", true},
    {"UPDATE sessions SET hidden = 1 WHERE id = 'alpha-two'", BY_CHECK, "the record of session 'alpha-two'", false},
    {"UPDATE sessions SET hidden = 2 WHERE id = 'alpha-two'", BY_CHECK, "the record of session 'alpha-two'", false},
    {"DELETE FROM sessions WHERE id = 'alpha-two'", BY_CHECK, "belongs to no session", false},
    {"DELETE FROM live", BY_CHECK, "alpha-one", false},
    {"INSERT INTO live SELECT 99, boot, epoch, last_seq, last_pos, digest, updated, row_check, wake FROM live LIMIT 1",
     BY_CHECK, "a live session that is not there", false},
    {"DELETE FROM events WHERE pos = 7", BY_CHECK, "should have", false},
    {"INSERT INTO events SELECT -pos, sid, seq, prev, epoch, ts, kind, body, refs, digest, tag, proof FROM events"
     " WHERE pos = 7",
     BY_CHECK, "should have", false},
    {"UPDATE blobs SET refs = 1", BY_CHECK, "its count is 1, its uses are 2", true},
    {"DELETE FROM blobs", BY_CHECK, "is damaged", false},
    {"DELETE FROM blocks; DELETE FROM snapshots; DELETE FROM boots", HARMLESS, "", false},
    {"ANALYZE", HARMLESS, "", false},
    {"VACUUM", HARMLESS, "", false},
};

static void expect_words(const char *text, const char *words, const char *sql)
{
    if (!strstr(text, words)) {
        print_error("%s: '%s' is not in '%s'\n", sql, words, text);
        fail();
    }
}

static void judge_edit(struct fixture *f, const struct edit *e)
{
    static const unsigned ways[] = {TIDE_OPEN_READ_ONLY, 0, TIDE_OPEN_ACCEPT_LOSS};
    struct tide_err why = {0};
    tide_store *store = NULL;

    for (size_t i = 0; i < 3 && e->when == AT_OPENING; i++) {
        const struct tide_store_options opt = {.size = sizeof opt, .flags = ways[i]};

        expect_code(TIDE_CORRUPT, tide_store_open(f->path, &opt, &store, &why), &why, e->sql, __FILE__, __LINE__);
        expect_words(why.msg, e->words, e->sql);
    }
    if (e->when == AT_OPENING)
        return;
    OK(tide_store_open(f->path, NULL, &store, &err));
    f->text[0] = 0;
    expect_code(e->when == BY_CHECK ? TIDE_CORRUPT : TIDE_OK, tide_store_check(store, 0, NULL, keep_first, f, &why),
                &why, e->sql, __FILE__, __LINE__);
    expect_words(f->text, e->words, e->sql);
    if (e->mended)
        OK(tide_store_check(store, TIDE_CHECK_REBUILD, NULL, NULL, NULL, &err));
    tide_store_close(store);
}

static void what_is_made_dropped_and_changed_is_named(void **state)
{
    struct fixture *f = *state;
    char *want, *after;

    learn(f, &want, &after);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const struct edit *e = &edits[i];

        copy(f->kept, f->path);
        sql_run(f->path, NULL, e->sql);
        judge_edit(f, e);
        if (e->mended || e->when == HARMLESS)
            assert_int_equal(judge(f, want, after), RIGHT);
    }
    free(want);
    free(after);
}

/* Another with the same beginning is not taken for the only one. */
static void a_session_that_sql_has_hidden_is_missed_by_list_and_by_prefix(void **state)
{
    struct fixture *f = *state;
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    char found[TIDE_ID_SIZE], *want, *after;
    tide_store *store = NULL;

    learn(f, &want, &after);
    copy(f->kept, f->path);
    sql_run(f->path, NULL, "UPDATE sessions SET hidden = 1 WHERE id = 'alpha-two'");
    OK(tide_store_open(f->path, NULL, &store, &err));
    ABOUT_SESSION(TIDE_CORRUPT, "alpha-two", tide_session_list(store, NULL, add_info, &out, &err));
    ABOUT_SESSION(TIDE_CORRUPT, "alpha-two", tide_session_resolve(store, "alpha", found, &err));
    ABOUT_SESSION(TIDE_CORRUPT, "alpha-two", tide_session_open(store, "alpha-two", 0, &(tide_session *){NULL}, &err));
    tide_store_close(store);
    buf_done(&out);
    free(want);
    free(after);
}

/* ---- A result in the middle of a log, with a digest that fits it ------------------------------------------------------ */

#define STEPS 600 /* a shorter log is read whole before anything is begun */

static enum tide_code count_up(void *arg, const char *key, struct tide_text *ret, struct tide_err *why)
{
    char text[16];

    (void)key;
    (void)why;
    snprintf(text, sizeof text, "%d", ++*(int *)arg);
    *ret = (struct tide_text){strdup(text), strlen(text)};
    return TIDE_OK;
}

static enum tide_code do_step(tide_run *r, int *n, struct tide_err *why)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "count", .effect = TIDE_EFFECT_PURE};

    return tide_run_step(r, &spec, count_up, n, NULL, why);
}

/* Each step is two events; with one more before them, other steps stand where a reader may stop. */
static void make_long(struct fixture *f, bool one_more)
{
    char id[TIDE_ID_SIZE];
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;
    tide_session *s = NULL;
    tide_run *r = NULL;
    int n = 0;

    OK(tide_store_open(f->kept, &opt, &store, &err));
    OK(tide_session_create(store, "long", NULL, &s, &err));
    OK(tide_run_start(s, NULL, &r, &err));
    if (one_more)
        OK(tide_run_checkpoint(r, TIDE_CHECKPOINT_SAFE_POINT, NULL, id, &err));
    while (n < STEPS)
        OK(do_step(r, &n, &err));
    tide_run_close(r);
    tide_session_close(s);
    tide_store_close(store);
}

struct forged {
    int64_t seq;
    unsigned char before[DIGEST_SIZE], digest[DIGEST_SIZE];
    char body[400], from[32];
    bool is_result;
};

static int forge(void *arg, const struct tide_event *ev)
{
    struct forged *g = arg;
    struct event own = {.seq = ev->seq, .ts_ms = ev->ts_ms, .epoch = ev->epoch, .kind = str_from(ev->kind)};
    char *at;

    if (ev->seq < g->seq) {
        memcpy(g->before, ev->digest, sizeof g->before);
        return 0;
    }
    snprintf(g->body, sizeof g->body, "%s", ev->body);
    at = strstr(g->body, "\"result\":");
    g->is_result = at != NULL;
    if (at)
        at[strlen("\"result\":")] ^= 1; /* another digit */
    own.body = str_from(g->body);
    event_digest(g->digest, NULL, g->before, STR("long"), &own);
    return 1;
}

/* Changes the event, if it is a result. */
static bool change_result(struct fixture *f, int64_t seq)
{
    struct forged g = {.seq = seq};
    char statement[700], hex[2 * DIGEST_SIZE + 1];
    tide_store *store = NULL;
    tide_session *s = NULL;

    copy(f->kept, f->path);
    OK(tide_store_open(f->path, NULL, &store, &err));
    OK(tide_session_open(store, "long", 0, &s, &err));
    OK(tide_session_read(s, 0, seq - 1, seq, forge, &g, &err));
    tide_session_close(s);
    tide_store_close(store);
    hex_encode(hex, g.digest, sizeof g.digest);
    snprintf(statement, sizeof statement, "UPDATE events SET body = '%s', digest = x'%s' WHERE seq = %lld", g.body, hex,
             (long long)seq);
    if (g.is_result)
        sql_run(f->path, NULL, statement);
    return g.is_result;
}

/* Whoever edits it can compute its digest, and not the proofs behind it. */
static void a_result_that_was_changed_with_its_digest_answers_no_step(void **state)
{
    struct fixture *f = *state;

    for (int odd = 0; odd < 2; odd++) {
        snprintf(f->kept, sizeof f->kept, "%s/kept%d.db", f->dir, odd);
        make_long(f, odd);
        for (int64_t seq = 3, results = 0; results < 30; seq++) {
            struct tide_err why = {0};
            tide_store *store = NULL;
            tide_session *s = NULL;
            tide_run *r = NULL;
            enum tide_code code;
            int done = STEPS;

            if (!change_result(f, seq))
                continue;
            results++;
            OK(tide_store_open(f->path, NULL, &store, &err));
            OK(tide_session_open(store, "long", TIDE_SESSION_APPEND, &s, &err));
            code = tide_run_resume(s, NULL, NULL, &r, &why);
            for (int64_t i = 0; i < results && !code; i++)
                code = do_step(r, &done, &why);
            assert_int_equal(code, TIDE_CORRUPT);
            assert_int_equal(why.detail.position, seq + 1);
            tide_run_close(r);
            tide_session_close(s);
            tide_store_close(store);
        }
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_column_of_each_table_is_named_when_it_is_changed_or_does_no_harm),
        CASE(what_is_made_dropped_and_changed_is_named),
        CASE(a_session_that_sql_has_hidden_is_missed_by_list_and_by_prefix),
        CASE(a_result_that_was_changed_with_its_digest_answers_no_step),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
