/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an SQLite store come and go one by one: what is then right, and what is refused by name and left as it is. */
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kit.h"

#include "base/digest.h"
#include "store/store.h"

struct fixture {
    char dir[256], path[300];
};

static int set_up(void **state)
{
    struct fixture *f = fixture_new(sizeof *f);

    snprintf(f->path, sizeof f->path, "%s/s.db", f->dir);
    *state = f;
    return 0;
}

static enum tide_code open_with(struct fixture *f, unsigned flags, tide_store **ret, struct tide_err *err)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = flags};

    return tide_store_open(f->path, &opt, ret, err);
}

static void append_some(tide_store *s, int n)
{
    tide_session *session = NULL;

    OK(tide_session_open(s, "one", TIDE_SESSION_APPEND, &session, &err));
    for (int i = 0; i < n; i++)
        put(session, "message.user", SAID);
    tide_session_close(session);
}

static void make_closed(struct fixture *f)
{
    tide_session *session = NULL;
    tide_store *s = NULL;

    OK(open_with(f, TIDE_OPEN_CREATE, &s, &err));
    OK(tide_session_create(s, "one", "{}", &session, &err));
    tide_session_close(session);
    append_some(s, 5);
    tide_store_close(s);
}

/* Another process appends to the closed store, so many events, and is killed. */
static void append_and_die(struct fixture *f, int n)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        tide_store *s = NULL;

        OK(open_with(f, 0, &s, &err));
        append_some(s, n);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static const char *beside(const struct fixture *f, const char *suffix)
{
    static char path[320];

    snprintf(path, sizeof path, "%s%s", f->path, suffix);
    return path;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The names of all files there are, and the bytes of each; of the log's index the name alone: it is memory. */
static void look_at_files(const struct fixture *f, unsigned char out[DIGEST_SIZE])
{
    struct dirent **names;
    struct digest_state d;
    int n = scandir(f->dir, &names, NULL, by_name);

    assert_true(n > 0);
    digest_begin(&d, NULL);
    for (int i = 0; i < n; i++) {
        char path[600], piece[65536];
        ssize_t got = 0;
        int fd;

        snprintf(path, sizeof path, "%s/%s", f->dir, names[i]->d_name);
        digest_add_str(&d, str_from(names[i]->d_name));
        fd = strstr(path, "-shm") ? -1 : open(path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && (got = read(fd, piece, sizeof piece)) > 0)
            digest_add_str(&d, (struct str){piece, (size_t)got});
        if (fd >= 0)
            close(fd);
        free(names[i]);
    }
    free(names);
    digest_end(&d, out);
}

enum damage {
    REMOVE_MARK = 1,
    REMOVE_LOG = 2,
    REMOVE_SMALL = 4, /* what else is beside it */
    SPOIL_MARK = 8,
    EMPTY_MARK = 16,
    MOVE_FILE = 32,
    EMPTY_FILE = 64,
    ZERO_MARK = 128,
    FORGE_MARK = 256, /* a position that nobody signed */
};

static void do_damage(const struct fixture *f, unsigned damage)
{
    static const char zeros[56];
    int fd;

    if (damage & REMOVE_MARK)
        assert_int_equal(unlink(beside(f, "-mark")), 0);
    if (damage & REMOVE_LOG)
        assert_int_equal(unlink(beside(f, "-wal")), 0);
    if (damage & REMOVE_SMALL) {
        unlink(beside(f, "-shm"));
        unlink(beside(f, "-reserve"));
    }
    if (damage & SPOIL_MARK)
        write_file(beside(f, "-mark"), "garbage that is as long as the line that should be there");
    if (damage & FORGE_MARK)
        write_file(beside(f, "-mark"), "position 00000000000000000001 ok       0000000000000000\n");
    if (damage & EMPTY_MARK)
        assert_int_equal(truncate(beside(f, "-mark"), 0), 0);
    if (damage & ZERO_MARK) {
        fd = open(beside(f, "-mark"), O_WRONLY | O_CLOEXEC);
        assert_int_equal(write(fd, zeros, sizeof zeros), sizeof zeros);
        close(fd);
    }
    if (damage & MOVE_FILE)
        assert_int_equal(rename(f->path, beside(f, ".away")), 0);
    if (damage & EMPTY_FILE)
        assert_int_equal(truncate(f->path, 0), 0);
}

static const struct row {
    int died_after; /* so many more events; 0: closed */
    unsigned damage;
    const char *refused; /* with these words; NULL: all is there */
} rows[] = {
    {0, 0, NULL},
    {0, REMOVE_MARK, NULL},
    {0, EMPTY_MARK, NULL},
    {0, REMOVE_MARK | REMOVE_LOG | REMOVE_SMALL, NULL}, /* the one file that was copied */
    {0, SPOIL_MARK, "-mark' is damaged"},
    {0, FORGE_MARK, "-mark' is damaged"},
    {0, MOVE_FILE, "is missing, but"},
    {0, EMPTY_FILE, "is empty, but"},
    {1, 0, NULL},
    {1, REMOVE_MARK, "-mark' is missing"},
    {1, EMPTY_MARK, "-mark' is missing"},
    {1, ZERO_MARK, "-mark' is missing"},
    {1, SPOIL_MARK, "-mark' is damaged"},
    {1, FORGE_MARK, "-mark' is damaged"},
    {1, REMOVE_MARK | REMOVE_LOG | REMOVE_SMALL, "-mark' is missing"},
    {1, REMOVE_LOG, NULL}, /* the first one is in the file */
    {1, MOVE_FILE, "is missing, but"},
    {1, MOVE_FILE | REMOVE_MARK, "is missing, but"},
    {1, EMPTY_FILE, "is empty, but"},
    {9, 0, NULL},
    {9, REMOVE_LOG, "was acknowledged"},
    {9, REMOVE_MARK, "-mark' is missing"},
    {9, SPOIL_MARK | REMOVE_LOG, "-mark' is damaged"},
    {9, REMOVE_MARK | REMOVE_LOG | REMOVE_SMALL, "-mark' is missing"},
    {9, EMPTY_MARK | REMOVE_LOG, "-mark' is missing"},
    {9, MOVE_FILE, "is missing, but"},
    {9, EMPTY_FILE | REMOVE_MARK, "is empty, but"},
};

static int64_t events(tide_store *s)
{
    tide_session *session = NULL;
    int64_t n;

    OK(tide_session_open(s, "one", 0, &session, &err));
    n = tide_session_last_seq(session);
    tide_session_close(session);
    return n;
}

static void expect_refused(struct fixture *f, const char *words)
{
    static const unsigned ways[] = {TIDE_OPEN_READ_ONLY, 0, TIDE_OPEN_CREATE};
    unsigned char before[DIGEST_SIZE], after[DIGEST_SIZE];
    tide_store *s = NULL;

    look_at_files(f, before);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        SAYS(TIDE_CORRUPT, words, open_with(f, ways[i], &s, &err));
        look_at_files(f, after);
        assert_memory_equal(before, after, DIGEST_SIZE);
    }
}

static void expect_all(struct fixture *f, int64_t want)
{
    static const unsigned ways[] = {TIDE_OPEN_READ_ONLY, 0, TIDE_OPEN_CREATE};
    tide_store *s = NULL;

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        OK(open_with(f, ways[i], &s, &err));
        assert_int_equal(events(s), want);
        tide_store_close(s);
    }
}

/* Whatever it was, afterwards it is a store like any other. */
static void expect_usable(struct fixture *f)
{
    tide_store *s = NULL;

    OK(open_with(f, 0, &s, &err));
    append_some(s, 1);
    OK(tide_store_check(s, 0, NULL, NULL, NULL, &err));
    tide_store_close(s);
    do_damage(f, REMOVE_MARK | REMOVE_LOG);
    OK(open_with(f, TIDE_OPEN_READ_ONLY, &s, &err));
    tide_store_close(s);
}

static void files_that_are_missing_or_damaged_are_refused_unless_nothing_can_be_lost(void **state)
{
    struct fixture *f = *state;
    tide_store *s = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];

        print_message("# died after %d, damage %#x\n", r->died_after, r->damage);
        make_closed(f);
        if (r->died_after)
            append_and_die(f, r->died_after);
        do_damage(f, r->damage);
        if (r->refused)
            expect_refused(f, r->refused);
        else
            expect_all(f, 6 + r->died_after);
        if (r->refused && !(r->damage & (MOVE_FILE | EMPTY_FILE)))
            OK(open_with(f, TIDE_OPEN_ACCEPT_LOSS, &s, &err));
        tide_store_close(s);
        s = NULL;
        if (r->damage & MOVE_FILE && !(r->damage & REMOVE_MARK)) {
            assert_int_equal(rename(beside(f, ".away"), f->path), 0);
            expect_all(f, 6 + r->died_after);
        }
        if (!(r->damage & (EMPTY_FILE | MOVE_FILE)))
            expect_usable(f);
        dir_remove(f->dir);
        assert_int_equal(mkdir(f->dir, 0700), 0);
    }
}

/* A file that goes while it is used is not made anew: the log beside it would be thrown away. */
static void a_file_that_goes_while_it_is_in_use_is_named_and_may_come_back(void **state)
{
    struct fixture *f = *state;
    tide_store *s = NULL;
    tide_session *session = NULL;

    make_closed(f);
    append_and_die(f, 3);
    OK(open_with(f, 0, &s, &err));
    do_damage(f, MOVE_FILE);
    SAYS(TIDE_IO, "moved away", tide_session_open(s, "one", 0, &session, &err));
    assert_int_not_equal(access(f->path, F_OK), 0);
    assert_int_equal(rename(beside(f, ".away"), f->path), 0);
    assert_int_equal(events(s), 9);
    tide_store_close(s);
}

/* Two that come one after the other: the second closes the store while the first goes on with it. */
static void who_goes_on_after_another_has_closed_takes_that_back(void **state)
{
    struct fixture *f = *state;
    tide_store *s = NULL, *other = NULL;

    make_closed(f);
    if (fork() == 0) {
        OK(open_with(f, 0, &s, &err));
        append_some(s, 1);
        OK(open_with(f, 0, &other, &err));
        append_some(other, 1);
        tide_store_close(other);
        append_some(s, 1);
        _exit(0);
    }
    assert_true(wait(&(int){0}) > 0);
    do_damage(f, REMOVE_MARK | REMOVE_LOG | REMOVE_SMALL);
    expect_refused(f, "-mark' is missing");
}

static void note(void *arg, const char *line)
{
    buf_addf(arg, "%s|", line);
}

static void an_older_store_without_its_mark_is_taken_as_it_is_and_that_is_said_once(void **state)
{
    struct fixture *f = *state;
    struct buf heard = BUF_INIT(4096);
    tide_store *s = NULL;
    const char *said;

    make_closed(f);
    append_and_die(f, 2);
    sql_run(f->path, NULL, "DELETE FROM meta WHERE key = 'closed'; PRAGMA user_version=4");
    do_damage(f, REMOVE_MARK);
    for (int i = 0; i < 2; i++) {
        OK(open_with(f, 0, &s, &err));
        assert_int_equal(events(s), 8);
        tide_store_read_notices(s, note, &heard);
        tide_store_close(s);
    }
    said = strstr(buf_cstr(&heard), "-mark was missing");
    assert_non_null(said);
    assert_null(strstr(said + 1, "-mark"));
    buf_done(&heard);
    expect_usable(f);
}

/* What the mark says, if there is a store: "ok" or "suspect". */
static void expect_mark(const struct fixture *f, const char *want)
{
    char path[320], line[64] = "";
    FILE *file;

    snprintf(path, sizeof path, "%s-mark", f->path);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    if (!strstr(line, want))
        fail_msg("not %s: %s", want, line);
}

/* Then the log stays beside the file, on disk: the next who opens the store has nothing to mend, and a refusal changes nothing. */
static void who_closes_while_another_reads_leaves_nothing_to_mend(void **state)
{
    struct fixture *f = *state;
    sqlite3 *reader = NULL;
    tide_store *s = NULL;

    make_closed(f);
    OK(open_with(f, 0, &s, &err));
    append_some(s, 1);
    assert_int_equal(sqlite3_open(f->path, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM events", NULL, NULL, NULL), SQLITE_OK);
    append_some(s, 1);
    tide_store_close(s);
    expect_mark(f, " ok ");
    sqlite3_close(reader);
    expect_all(f, 8);
    expect_usable(f);
}

/* ---- a mark that is read while it is written */

static struct env_ops torn_ops;
static struct env torn_env;
static int torn; /* looks for which it is half of the old line and half of the new */

static enum tide_code pread_torn(struct env_file *f, void *out, size_t n, int64_t at, size_t *ret_n,
                                 struct tide_err *why)
{
    enum tide_code code = env_real()->ops->pread(f, out, n, at, ret_n, why);

    if (!code && *ret_n > 50 && memcmp(out, "position ", 9) == 0 && torn > 0 && torn--)
        memcpy((char *)out + 20, "123456789", 9);
    return code;
}

static void a_mark_that_is_just_written_is_no_damage(void **state)
{
    static const unsigned flags[] = {0, TIDE_OPEN_READ_ONLY};
    struct fixture *f = *state;

    make_closed(f);
    torn_env = *env_real();
    torn_ops = *env_real()->ops;
    torn_ops.pread = pread_torn;
    torn_env.ops = &torn_ops;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const struct tide_store_options opt = {.size = sizeof opt, .flags = flags[i]};
        struct store *s = NULL;

        torn = 20;
        OK(store_open(f->path, &opt, &torn_env, &s, &err));
        assert_int_equal(torn, 0);
        store_close(s);
        torn = 100000;
        GIVES(TIDE_CORRUPT, store_open(f->path, &opt, &torn_env, &s, &err));
        torn = 0;
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(files_that_are_missing_or_damaged_are_refused_unless_nothing_can_be_lost),
        CASE(a_file_that_goes_while_it_is_in_use_is_named_and_may_come_back),
        CASE(who_goes_on_after_another_has_closed_takes_that_back),
        CASE(who_closes_while_another_reads_leaves_nothing_to_mend),
        CASE(a_mark_that_is_just_written_is_no_damage),
        CASE(an_older_store_without_its_mark_is_taken_as_it_is_and_that_is_said_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
