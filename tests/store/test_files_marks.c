/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a log: what it says of a session that was never given back, whatever is cut off, damaged or of an older version. */
#include <fcntl.h>
#include <sys/wait.h>

#include "base/digest.h"
#include "kit.h"

#define EVENTS 40 /* more than are marked by system calls */
#define LINE 172  /* bytes of a mark's first line: all that version 2 wrote */
#define WORD_AT 176
#define MARK 185

struct fixture {
    char dir[256], url[300], log[400], mark[400];
};

/* Its process dies with the lease. */
static int set_up(void **state)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct fixture *f = fixture_new(sizeof *f);
    int status = 0;
    pid_t pid;

    snprintf(f->url, sizeof f->url, "files:%s/s", f->dir);
    snprintf(f->log, sizeof f->log, "%s/s/sessions/held.messages.jsonl", f->dir);
    snprintf(f->mark, sizeof f->mark, "%s/s/sessions/held.mark", f->dir);
    pid = fork();
    if (pid == 0) {
        tide_store *store = NULL;
        tide_session *s = NULL;

        OK(tide_store_open(f->url, &opt, &store, &err));
        OK(tide_session_create(store, "held", NULL, &s, &err));
        for (int i = 1; i < EVENTS; i++)
            put(s, "note.made", "{\"a\":1}");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    *state = f;
    return 0;
}

static int note_last(void *arg, const struct tide_event *ev)
{
    *(int64_t *)arg = ev->seq;
    return 0;
}

static enum tide_code read_it(const struct fixture *f, int64_t *ret_last)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_READ_ONLY};
    tide_store *store = NULL;
    tide_session *s = NULL;
    enum tide_code code;

    OK(tide_store_open(f->url, &opt, &store, &err));
    code = tide_session_open(store, "held", TIDE_SESSION_READ, &s, NULL);
    code = code ? code : tide_session_read(s, 0, 0, 0, note_last, ret_last, NULL);
    tide_session_close(s);
    tide_store_close(store);
    return code;
}

static size_t get_mark(const struct fixture *f, char out[MARK + 1])
{
    int fd = open(f->mark, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, out, MARK + 1);

    close(fd);
    assert_true(n > 0);
    return (size_t)n;
}

static void set_mark(const struct fixture *f, const char *text, size_t n)
{
    int fd = open(f->mark, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_int_equal(write(fd, text, n), (ssize_t)n);
    close(fd);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static void what_a_dead_process_acknowledged_is_there_or_missed(void **state)
{
    const struct fixture *f = *state;
    char text[MARK + 1], command[1000];
    int64_t last = 0;

    assert_int_equal(get_mark(f, text), MARK);
    assert_memory_not_equal(text + 13, "00000000000000000040", 20); /* the line is an old one: the word says it */
    assert_int_equal(read_it(f, &last), TIDE_OK);
    assert_int_equal(last, EVENTS);
    snprintf(command, sizeof command, "sed -i '$d' '%s'", f->log);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
    assert_int_equal(read_it(f, &last), TIDE_CORRUPT);
}

static void a_damaged_word_is_refused(void **state)
{
    const struct fixture *f = *state;
    char text[MARK + 1];
    int64_t last;

    assert_int_equal(get_mark(f, text), MARK);
    for (size_t at = LINE; at < MARK; at++)
        for (int i = 0; i < 3; i++) {
            char was = text[at];

            text[at] = i == 0 ? (char)(was ^ 1) : i == 1 ? 0 : was == 'Q' ? 'R' : 'Q';
            set_mark(f, text, MARK);
            assert_int_equal(read_it(f, &last), TIDE_CORRUPT);
            text[at] = was;
        }
    set_mark(f, text, MARK);
    assert_int_equal(read_it(f, &last), TIDE_OK);
}

static void a_mark_without_its_word_is_refused(void **state)
{
    const struct fixture *f = *state;
    char text[MARK + 1];
    int64_t last;

    assert_int_equal(get_mark(f, text), MARK);
    for (size_t n = LINE - 1; n < MARK; n++) {
        set_mark(f, text, n);
        assert_int_equal(read_it(f, &last), TIDE_CORRUPT);
    }
}

static void who_gives_it_back_leaves_all_of_it_in_the_line(void **state)
{
    const struct fixture *f = *state;
    tide_store *store = NULL;
    tide_session *s = NULL;
    char text[MARK + 1];

    OK(tide_store_open(f->url, NULL, &store, &err));
    OK(tide_session_open(store, "held", TIDE_SESSION_APPEND, &s, &err));
    put(s, "note.made", "{\"a\":1}");
    tide_session_close(s);
    tide_store_close(store);
    assert_int_equal(get_mark(f, text), MARK);
    assert_memory_equal(text, "acknowledged 00000000000000000041 ", 34);
}

/* What version 2 would have written, in an earlier boot. */
static void make_version_2(const struct fixture *f)
{
    static const struct digest_key no_key;
    char text[LINE + 1], command[1000];
    unsigned char check[DIGEST_SIZE];
    struct digest_state d;
    FILE *last;

    snprintf(command, sizeof command, "tail -n 1 '%s' | sed 's/.*\"digest\":\"\\([0-9a-f]*\\)\".*/\\1/'", f->log);
    last = popen(command, "r"); /* NOLINT: our own names */
    assert_non_null(last);
    snprintf(text, sizeof text, "acknowledged %020d ", EVENTS);
    assert_int_equal(fread(text + 34, 1, 64, last), 64);
    pclose(last);
    snprintf(text + 98, sizeof text - 98, " %-39s ", "a boot before this one");
    digest_begin(&d, &no_key);
    digest_add_str(&d, STR("tidemark files mark"));
    digest_add_str(&d, STR("held"));
    digest_add_str(&d, (struct str){text, 139});
    digest_end(&d, check);
    hex_encode(text + 139, check, 16);
    text[LINE - 1] = '\n';
    set_mark(f, text, LINE);
    snprintf(command, sizeof command, "sed -i 's/\"version\":[0-9]*/\"version\":2/' '%s/s/store.json'", f->dir);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
}

static void marks_of_version_2_hold_and_are_replaced_when_written(void **state)
{
    const struct fixture *f = *state;
    tide_store *store = NULL;
    tide_session *s = NULL;
    char text[MARK + 1], command[1000];
    int64_t last = 0;

    make_version_2(f);
    assert_int_equal(read_it(f, &last), TIDE_OK);
    assert_int_equal(last, EVENTS);
    OK(tide_store_open(f->url, NULL, &store, &err));
    assert_int_equal(get_mark(f, text), LINE);
    OK(tide_session_open(store, "held", TIDE_SESSION_APPEND, &s, &err));
    put(s, "note.made", "{\"a\":1}");
    assert_int_equal(get_mark(f, text), MARK);
    tide_session_close(s);
    tide_store_close(store);
    snprintf(command, sizeof command, "grep -q '\"version\":3' '%s/s/store.json'", f->dir);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
    make_version_2(f);
    snprintf(command, sizeof command, "sed -i '$d;' '%s' && sed -i '$d;' '%s'", f->log, f->log);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
    assert_int_equal(read_it(f, &last), TIDE_CORRUPT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_a_dead_process_acknowledged_is_there_or_missed),
        CASE(a_damaged_word_is_refused),
        CASE(a_mark_without_its_word_is_refused),
        CASE(who_gives_it_back_leaves_all_of_it_in_the_line),
        CASE(marks_of_version_2_hold_and_are_replaced_when_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
