/* SPDX-License-Identifier: Apache-2.0 */
/* A store that is refused when it is opened stays as it is: the same names, the same bytes in each. */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kit.h"

#include "base/digest.h"

#define KEY "0123456789abcdef0123456789abcdef"
#define NOBODY 65534

struct fixture {
    char dir[256], url[300];
};

static int set_up(void **state)
{
    struct fixture *f = fixture_new(sizeof *f);

    store_url_in(f->url, sizeof f->url, f->dir, "t");
    *state = f;
    return 0;
}

/* ---- A store ------------------------------------------------------------------------------------------------------ */

static void fill(struct fixture *f, const char *key)
{
    const struct tide_store_options opt = {
        .size = sizeof opt, .flags = TIDE_OPEN_CREATE, .key = key, .key_len = key ? strlen(key) : 0};
    tide_session *s = NULL;
    tide_store *store = NULL;

    OK(tide_store_open(f->url, &opt, &store, &err));
    OK(tide_session_create(store, "one", "{}", &s, &err));
    for (int i = 0; i < 5; i++)
        put(s, "message.user", SAID);
    tide_session_close(s);
    tide_store_close(store);
}

/* Another process appends to it, and is killed. */
static void append_and_die(struct fixture *f)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        tide_session *s = NULL;
        tide_store *store = NULL;

        OK(tide_store_open(f->url, NULL, &store, &err));
        OK(tide_session_open(store, "one", TIDE_SESSION_APPEND, &s, &err));
        for (int i = 0; i < 9; i++)
            put(s, "message.user", SAID);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- Its files ---------------------------------------------------------------------------------------------------- */

static struct buf found; /* a line for each */

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    unsigned char digest[DIGEST_SIZE] = {0};
    char hex[2 * DIGEST_SIZE + 1], piece[65536];
    struct digest_state d;
    ssize_t n;
    int fd = type == FTW_F && !strstr(path, "-shm") ? open(path, O_RDONLY | O_CLOEXEC) : -1; /* that is memory */

    (void)at;
    digest_begin(&d, NULL);
    while (fd >= 0 && (n = read(fd, piece, sizeof piece)) > 0)
        digest_add_str(&d, (struct str){piece, (size_t)n});
    digest_end(&d, digest);
    if (fd >= 0)
        close(fd);
    hex_encode(hex, digest, DIGEST_SIZE);
    buf_addf(&found, "%s %o %d %s\n", path, (unsigned)st->st_mode, type, hex);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *files_of(const struct fixture *f)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    char *lines[200], *rest = NULL;
    size_t n = 0;

    found = (struct buf)BUF_INIT(SIZE_MAX / 4);
    assert_int_equal(nftw(f->dir, add_file, 16, FTW_PHYS), 0);
    for (char *line = strtok_r((char *)buf_cstr(&found), "\n", &rest); line && n < 200;
         line = strtok_r(NULL, "\n", &rest))
        lines[n++] = line;
    qsort(lines, n, sizeof lines[0], by_text);
    for (size_t i = 0; i < n; i++)
        buf_addf(&out, "%s\n", lines[i]);
    buf_done(&found);
    return buf_take(&out);
}

/* ---- Refusals ------------------------------------------------------------------------------------------------------ */

enum how { CLOSED, DIED = 1, KEYED = 2, AS_NOBODY = 4, READING = 8, WRITING = 16 /* alone */ };

static const struct row {
    bool files;
    unsigned how;
    const char *damage; /* in the directory of the store; with "SQL ", by SQLite */
    const char *words;
} rows[] = {
    {false, DIED, "rm t.db-wal", "was acknowledged"},
    {false, DIED, "rm t.db-wal t.db-shm", "was acknowledged"},
    {false, DIED, ": >t.db-wal; rm t.db-shm", "was acknowledged"},
    {false, DIED, "rm t.db-mark", "-mark' is missing"},
    {false, DIED, "rm t.db-mark t.db-wal", "-mark' is missing"},
    {false, DIED, "rm t.db-mark t.db-wal t.db-shm t.db-reserve", "-mark' is missing"},
    {false, DIED, "echo nonsense that is as long as a line of the mark is, and longer >t.db-mark", "-mark' is damaged"},
    {false, CLOSED,
     "echo nonsense that is as long as a line of the mark is, and longer >t.db-mark; rm t.db-wal t.db-shm",
     "-mark' is damaged"},
    {false, CLOSED, "SQL PRAGMA user_version=99", "has version 99"},
    {false, CLOSED, "SQL PRAGMA user_version=99; PRAGMA journal_mode=DELETE; PRAGMA journal_mode=WAL",
     "has version 99"},
    {false, CLOSED, "SQL PRAGMA user_version=-1", "version is damaged"},
    {false, CLOSED, "SQL CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END", "trigger 't'"},
    {false, WRITING, "SQL PRAGMA user_version=4; CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END",
     "trigger 't'"},
    {false, CLOSED, "SQL DROP TABLE blobs", "table 'blobs' is missing"},
    {false, CLOSED | READING, "SQL PRAGMA user_version=4", "the older version 4"},
    {false, KEYED, "true", "is keyed"},
    {false, KEYED, "rm t.db-*", "is keyed"},
    {false, KEYED | WRITING, "rm t.db-*; SQL PRAGMA user_version=4", "is keyed"},
    {false, CLOSED, "mv t.db away", "is missing, but"},
    {false, CLOSED, "rm t.db*; mkdir t.db", "is a directory"},
    {false, CLOSED, "mv t.db away; ln -s away t.db", "is a symbolic link"},
    {false, CLOSED, "rm t.db*; echo some text of somebody >t.db", "is not a Tidemark store"},
    {false, CLOSED | AS_NOBODY, "true", "ermission denied"},
    {true, CLOSED, "echo '{' >t/store.json", "store.json' is damaged"},
    {true, CLOSED, "sed -i 's/\"version\":[0-9]*/\"version\":99/' t/store.json", "version 99"},
    {true, DIED, "rm -r t/sessions", "sessions' is gone"},
    {true, CLOSED, "mv t/sessions away; echo text >t/sessions", "is not a directory"},
    {true, CLOSED, "mv t/live away; ln -s ../away t/live", "is a symbolic link"},
    {true, KEYED, "true", "is keyed"},
    {true, CLOSED, "mv t away; echo text >t", "is not a directory"},
    {true, CLOSED, "mv t away; ln -s away t", "is a symbolic link"},
    {true, CLOSED | AS_NOBODY, "true", "ermission denied"},
};

static void do_damage(const struct fixture *f, const char *damage)
{
    const char *sql = strstr(damage, "SQL ");
    char command[900];

    snprintf(command, sizeof command, "cd '%s' && { %.*s; }", f->dir, sql ? (int)(sql - damage) : (int)strlen(damage),
             damage);
    if (sql && sql > damage) /* its semicolon is there */
        snprintf(command, sizeof command, "cd '%s' && { %.*s }", f->dir, (int)(sql - damage), damage);
    if (sql != damage)
        assert_int_equal(system(command), 0); /* NOLINT: our own names */
    if (sql)
        sql_run(store_path(f->url), NULL, sql + 4);
}

static void expect_refused(const struct fixture *f, const struct row *r, unsigned flags)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = flags};
    tide_store *store = NULL;
    struct tide_err why = {0};
    enum tide_code code = tide_store_open(f->url, &opt, &store, &why);

    if (!code || !strstr(why.msg, r->words))
        fail_msg("%s: '%s' is not in '%s'", r->damage, r->words, code ? why.msg : "OK");
}

/* By another user: root may do everything. */
static void refused_in_child(const struct fixture *f, const struct row *r, unsigned flags)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
            _exit(2);
        expect_refused(f, r, flags);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_store_that_is_refused_stays_as_it_is(void **state)
{
    static const unsigned ways[] = {TIDE_OPEN_READ_ONLY, 0, TIDE_OPEN_CREATE};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        char *before, *after;

        if (r->files != on_files() || (r->how & AS_NOBODY && geteuid() != 0))
            continue;
        fill(f, r->how & KEYED ? KEY : NULL);
        if (r->how & DIED)
            append_and_die(f);
        do_damage(f, r->damage);
        before = files_of(f);
        for (size_t k = r->how & WRITING ? 1 : 0; k < (r->how & READING ? 1 : 3); k++) {
            if (r->how & AS_NOBODY)
                refused_in_child(f, r, ways[k]);
            else
                expect_refused(f, r, ways[k]);
            after = files_of(f);
            if (strcmp(before, after) != 0)
                fail_msg("%s: it was refused, and changed something:\n%s\n%s", r->damage, before, after);
            free(after);
        }
        free(before);
        dir_remove(f->dir);
        assert_int_equal(mkdir(f->dir, 0700), 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(a_store_that_is_refused_stays_as_it_is)};

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
