/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints are found by the marks in `blocks`: whatever the length of a session, whoever wrote it and whatever is missing
 * of the marks, what is listed and counted is what reading the whole log finds.
 */
#include "laws.h"

#include "store/sqlite_db.h"

/* Some at both ends of blocks, two side by side, blocks with none. */
static const char *kind_at(int64_t seq)
{
    if (seq > 768 && seq <= 1024)
        return "test.event";
    return seq % 50 == 20                                     ? "checkpoint.deleted"
           : seq % 7 == 3 || seq % 256 == 0 || seq % 256 == 1 ? "checkpoint"
                                                              : "checkpoints";
}

static int64_t grow(struct store *s, struct batch *b)
{
    struct batch_result r;

    b->expect_seq = STORE_ANY_SEQ;
    OK(store_write(s, b, &r, &err));
    return r.last_seq;
}

/* n more events for a session that has `last`; in batches of at most `step`. */
static int64_t add(struct store *s, const char *id, int64_t last, int64_t n, int64_t step)
{
    struct event events[256];

    for (int64_t end = last + n; last < end;) {
        int64_t k = end - last < step ? end - last : step;

        for (int64_t i = 0; i < k; i++)
            events[i] = (struct event){.kind = str_from(kind_at(last + 1 + i)), .body = STR("{}")};
        last = grow(s, batch_new(str_from(id), BATCH_ACQUIRE | BATCH_RELEASE, events, (size_t)k, STR(""), STR("")));
    }
    return last;
}

static int64_t make(struct store *s, const char *id, int64_t n)
{
    grow(s, batch_new(str_from(id), BATCH_CREATE, NULL, 0, STR(""), STR("")));
    return add(s, id, 0, n, 100);
}

static int64_t fork_of(struct store *s, const char *parent, int64_t seq, const char *id, int64_t n)
{
    struct event first = {.kind = str_from(kind_at(seq + 1)), .body = STR("{}")};
    struct batch *b = batch_new(str_from(id), BATCH_CREATE, &first, 1, STR(""), STR(""));

    snprintf(b->parent, sizeof b->parent, "%s", parent);
    b->parent_seq = seq;
    return add(s, id, grow(s, b), n - 1, 100);
}

struct listed {
    int64_t seqs[2000];
    size_t n;
};

static int list_one(void *arg, const struct event *ev)
{
    struct listed *l = arg;

    l->seqs[l->n++] = ev->seq;
    return 0;
}

/* What is listed up to `to` and counted is what the kinds say. */
static void agrees_up_to(struct store *s, const struct head *h, int64_t to, bool deleted, const char *when)
{
    const char *kind = deleted ? "checkpoint.deleted" : "checkpoint";
    struct listed got = {.n = 0};
    int64_t total = -1, want = 0;
    size_t n = 0;

    OK(store_checkpoints(s, h, deleted, to, list_one, &got, &total, &err));
    for (int64_t seq = h->last_seq; seq >= h->first_seq; seq--) {
        if (strcmp(kind_at(seq), kind) != 0)
            continue;
        want++;
        if (seq <= to && (n >= got.n || got.seqs[n++] != seq))
            fail_msg("%s: %s, %s up to %d of %d..%d: %d is not there", when, h->id, kind, (int)to, (int)h->first_seq,
                     (int)h->last_seq, (int)seq);
    }
    assert_int_equal(got.n, n);
    assert_int_equal(total, want);
}

static void agrees(struct store *s, const char *id, const char *when)
{
    struct head h = head_of(s, id);
    const int64_t ends[] = {0, 1, h.first_seq, h.first_seq + 1, 255, 256, 257, 400, 513, h.last_seq - 1, h.last_seq};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        agrees_up_to(s, &h, ends[i], false, when);
        agrees_up_to(s, &h, ends[i], true, when);
    }
}

static const char *path_of(struct fixture *f)
{
    return store_path(f->url);
}

/* So many full blocks, and each has its marks. */
static void blocks_are_marked(struct fixture *f, int64_t n)
{
    if (!store_kind()->one_file)
        return;
    assert_int_equal(sql_int(path_of(f), "SELECT sum(length(marks) = 64) FROM blocks"), n);
    assert_int_equal(sql_int(path_of(f), "SELECT count(*) FROM blocks"), n);
}

static void sessions_of_any_length(void **state)
{
    static const int lengths[] = {0, 1, 255, 256, 257, 600, 1300};
    struct fixture *f = *state;
    char id[20];

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        snprintf(id, sizeof id, "s%d", lengths[i]);
        make(f->store, id, lengths[i]);
        agrees(f->store, id, "written");
        agrees(second(f), id, "elsewhere");
    }
    blocks_are_marked(f, 9);
}

static void forks_that_begin_inside_a_block(void **state)
{
    static const int at[] = {1, 77, 255, 256, 257, 300};
    struct fixture *f = *state;
    char id[20];

    make(f->store, "parent", 600);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        snprintf(id, sizeof id, "at%d", at[i]);
        fork_of(f->store, "parent", at[i], id, 10);
        agrees(f->store, id, "young");
        add(f->store, id, at[i] + 10, 590, 100);
        agrees(second(f), id, "grown");
        fork_of(f->store, id, at[i] + 300, "again", 400);
        agrees(f->store, "again", "a fork of a fork");
        grow(f->store, batch_new(STR("again"), BATCH_DELETE, NULL, 0, STR(""), STR("")));
    }
}

static void two_who_write_in_turn(void **state)
{
    struct fixture *f = *state;
    int64_t last[3];

    for (int64_t i = 0; i < 3; i++) { /* one, seven and 100 events at a time */
        const char *id = i == 0 ? "a" : i == 1 ? "b" : "c";
        int64_t step = i == 0 ? 1 : i == 1 ? 7 : 100;

        last[i] = make(f->store, id, 1);
        for (int turn = 0; last[i] < 600; turn++)
            last[i] = add(turn % 2 ? f->store : second(f), id, last[i], step, step);
        agrees(f->store, id, "in turn");
    }
    blocks_are_marked(f, 6);
}

static void what_is_not_known_is_looked_up(void **state)
{
    static const char *const damage[] = {
        "UPDATE blocks SET marks = NULL WHERE seq = 512",
        "UPDATE blocks SET marks = x'00' WHERE seq = 256",
        "UPDATE blocks SET marks = zeroblob(65) WHERE seq = 1024",
        "DELETE FROM blocks WHERE seq = 512",
        "UPDATE blocks SET positions = x'0102'",
        "UPDATE blocks SET marks = NULL",
        "DELETE FROM blocks",
    };
    struct fixture *f = *state;

    SQLITE_ONLY("marks in SQLite's blocks");
    make(f->store, "a", 1300);
    fork_of(f->store, "a", 300, "b", 900);
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        sql_run(path_of(f), NULL, damage[i]);
        agrees(f->store, "a", damage[i]);
        agrees(f->store, "b", damage[i]);
    }
    add(f->store, "a", 1300, 300, 100); /* goes on as ever */
    agrees(f->store, "a", "after it");
    OK(store_rebuild(f->store, &err));
    blocks_are_marked(f, 9);
    agrees(f->store, "a", "rebuilt");
    agrees(f->store, "b", "rebuilt");
}

/* The row of one event after the last full block is gone: those after it are handed out, then it is named. */
static void what_stands_after_a_broken_link_is_found(void **state)
{
    struct fixture *f = *state;
    struct listed got = {.n = 0};
    struct head h;

    SQLITE_ONLY("a row that is gone");
    make(f->store, "a", 400);
    h = head_of(f->store, "a");
    sql_run(path_of(f), NULL, "DELETE FROM events WHERE seq = 330");
    ABOUT_EVENT(TIDE_CORRUPT, 330, store_checkpoints(f->store, &h, false, h.last_seq, list_one, &got, NULL, &err));
    assert_true(got.n > 5);
    for (int64_t seq = 400, i = 0; seq > 331; seq--) {
        if (strcmp(kind_at(seq), "checkpoint") == 0)
            assert_int_equal(got.seqs[i++], seq);
    }
    got.n = 0; /* and the blocks before it are whole */
    OK(store_checkpoints(f->store, &h, false, 256, list_one, &got, NULL, &err));
    assert_int_equal(got.seqs[0], 256);
    ABOUT_EVENT(TIDE_CORRUPT, 330, store_checkpoints(f->store, &h, false, 0, NULL, NULL, &(int64_t){0}, &err));
}

static void a_session_that_is_gone_is_not_called_damaged(void **state)
{
    struct fixture *f = *state;
    struct listed got = {.n = 0};
    struct head h;

    make(f->store, "a", 300);
    h = head_of(f->store, "a");
    grow(f->store, batch_new(STR("a"), BATCH_DELETE, NULL, 0, STR(""), STR("")));
    ABOUT_SESSION(TIDE_NOT_FOUND, "a",
                  store_checkpoints(f->store, &h, false, h.last_seq, list_one, &got, &(int64_t){0}, &err));
}

static void note_problem(void *arg, const char *where, const char *what)
{
    buf_addf(arg, "%s: %s\n", where, what);
}

static uint64_t problems(struct store *s, struct buf *names)
{
    struct store_check check = {.problem = note_problem, .arg = names};

    buf_clear(names);
    OK(store_check(s, &check, &err));
    return check.problems;
}

/* A bit of "b", the fork: of seq 512, a checkpoint, of 511, which is none; of 520, which deletes some, of 768, which does not. */
static void a_wrong_mark_is_named_and_made_anew(void **state)
{
    static const struct {
        const char *sql, *named;
        bool deleted;
        int off;
    } damage[] = {
        {"substr(marks, 1, 31) || x'20' || substr(marks, 33) WHERE sid = 2 AND seq = 512", "up to seq 512", false, -1},
        {"substr(marks, 1, 31) || x'23' || substr(marks, 33) WHERE sid = 2 AND seq = 512", "up to seq 512", false, 1},
        {"substr(marks, 1, 32) || x'00' || substr(marks, 34) WHERE sid = 2 AND seq = 768", "up to seq 768", true, -1},
        {"substr(marks, 1, 63) || x'01' WHERE sid = 2 AND seq = 768", "up to seq 768", true, 1},
    };
    struct fixture *f = *state;
    struct buf names = BUF_INIT(10000);

    SQLITE_ONLY("marks in SQLite's blocks");
    make(f->store, "a", 600);
    fork_of(f->store, "a", 300, "b", 900);
    assert_int_equal(problems(f->store, &names), 0);
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        struct listed right = {.n = 0}, got = {.n = 0};
        struct head h = head_of(f->store, "b");
        int64_t total = 0;
        char sql[200];

        OK(store_checkpoints(f->store, &h, damage[i].deleted, h.last_seq, list_one, &right, NULL, &err));
        snprintf(sql, sizeof sql, "UPDATE blocks SET marks = %s", damage[i].sql);
        sql_run(path_of(f), NULL, sql);
        OK(store_checkpoints(f->store, &h, damage[i].deleted, h.last_seq, list_one, &got, &total, &err));
        assert_int_equal(total, (int64_t)right.n + damage[i].off); /* callers compare it with the ledger */
        assert_int_equal(got.n, right.n - (damage[i].off < 0));    /* what is none is not handed out */
        if (problems(f->store, &names) != 1 || !strstr(buf_cstr(&names), damage[i].named) ||
            !strstr(buf_cstr(&names), "session b"))
            fail_msg("%s: %s", sql, buf_cstr(&names));
        OK(store_rebuild(f->store, &err));
        assert_int_equal(problems(f->store, &names), 0);
        agrees(f->store, "b", sql);
    }
    buf_done(&names);
}

/* ---- A session of a program ------------------------------------------------------------------------------------- */

static int add_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    buf_addf(arg, "%s %d %d %d\n", c->id, (int)c->seq, c->is_clean, c->rolled_back);
    return 0;
}

static char *listing(tide_store *store, const char *id)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    struct tide_checkpoint_filter all = {.size = sizeof all, .rolled_back = 1};
    tide_session *s = NULL;

    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(tide_checkpoint_list(s, &all, add_checkpoint, &out, &err));
    buf_add_str(&out, STR("and not those that were rolled back\n"));
    OK(tide_checkpoint_list(s, NULL, add_checkpoint, &out, &err));
    tide_session_close(s);
    return buf_take(&out);
}

static void work(tide_session *s, int n, const char *delete_at)
{
    char ids[2][TIDE_ID_SIZE];
    const char *const list[] = {ids[0], ids[1]};

    for (int i = 0; i < n; i++) {
        put(s, "message.user", "{\"turn\":%d,\"content\":\"x\"}", i);
        if (i % 5 == 0)
            OK(tide_checkpoint_save(
                s,
                &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_TURN},
                ids[i / 5 % 2], &err));
        if (i % 50 == 45 && delete_at[i / 50] == 'd')
            OK(tide_checkpoint_delete(s, list, 2, &err));
        if (i % 50 == 45 && delete_at[i / 50] == 'r')
            OK(tide_session_rollback(s, tide_session_last_seq(s) - 30, 0, NULL, &err));
    }
}

static void a_lost_mark_is_missed(void **state)
{
    static const char *const damage[] = {
        "UPDATE blocks SET marks = zeroblob(64) WHERE seq = 512",
        "UPDATE blocks SET marks = zeroblob(32) || substr(marks, 33)",
        "UPDATE blocks SET marks = substr(marks, 1, 32) || zeroblob(32)",
        "UPDATE blocks SET marks = NULL",
        "UPDATE blocks SET marks = (SELECT hex(zeroblob(32)))", /* the text "00…": 64 bytes, many bits */
        "DELETE FROM blocks",
    };
    struct fixture *f = *state;
    tide_store *store = NULL;
    tide_session *s = NULL;

    SQLITE_ONLY("marks in SQLite's blocks");
    OK(tide_store_open(path_of(f), NULL, &store, &err));
    OK(tide_session_create(store, "one", NULL, &s, &err));
    work(s, 550, "-drdrddr-rd");
    tide_session_close(s);
    OK(tide_session_fork(store, "one", 300, "two", NULL, (char[TIDE_ID_SIZE]){""}, &err));
    OK(tide_session_open(store, "two", TIDE_SESSION_APPEND, &s, &err));
    work(s, 550, "-rd--rdrddd");
    tide_session_close(s);
    for (int i = 0; i < 2; i++) {
        const char *id = i ? "two" : "one";
        char *before = listing(store, id), *after;

        assert_true(strlen(before) > 1000);
        for (size_t j = 0; j < sizeof damage / sizeof damage[0]; j++) {
            sql_run(path_of(f), NULL, damage[j]);
            after = listing(store, id);
            if (strcmp(before, after) != 0)
                fail_msg("after %s the answers differ", damage[j]);
            free(after);
            OK(tide_store_check(store, TIDE_CHECK_REBUILD, NULL, NULL, NULL, &err));
        }
        free(before);
    }
    tide_store_close(store);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        LAW(sessions_of_any_length),
        LAW(forks_that_begin_inside_a_block),
        LAW(two_who_write_in_turn),
        LAW(what_is_not_known_is_looked_up),
        LAW(what_stands_after_a_broken_link_is_found),
        LAW(a_session_that_is_gone_is_not_called_damaged),
        LAW(a_wrong_mark_is_named_and_made_anew),
        LAW(a_lost_mark_is_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_for_backend(run);
}
