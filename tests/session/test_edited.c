/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of files that somebody edits while a process has the store open, and what only looks like that: others who append, a
 * session that is deleted and made again. Damage is refused before anything is written behind it; nothing intact ever is.
 */
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include "kit.h"

#define EVENTS 6

struct fixture {
    char dir[256], url[300], log[400];
    tide_store *store, *other;
};

static int set_up(void **state)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    snprintf(f->url, sizeof f->url, "files:%s/s", f->dir);
    snprintf(f->log, sizeof f->log, "%s/s/sessions/one.messages.jsonl", f->dir);
    OK(tide_store_open(f->url, &opt, &f->store, &err));
    OK(tide_store_open(f->url, &opt, &f->other, &err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->store);
    tide_store_close(f->other);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static enum tide_code append(tide_session *s, struct tide_err *why)
{
    const struct tide_new_event ev = {"note.made", "{\"text\":\"letters\"}", 0};

    return tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, why);
}

static void make(struct fixture *f, int events)
{
    tide_session *s;

    OK(tide_session_create(f->store, "one", NULL, &s, &err));
    for (int i = 1; i < events; i++)
        OK(append(s, &err));
    tide_session_close(s);
}

static char *read_log(const struct fixture *f, size_t *ret_len)
{
    FILE *file = fopen(f->log, "r");
    char *text = mem_zero(1 << 20);

    assert_non_null(file);
    *ret_len = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

/* A change at the same moment as the last write cannot be told from it: files have the time of the last tick. */
static void wait_for_tick(const struct fixture *f)
{
    struct stat log, now;
    char path[320];

    snprintf(path, sizeof path, "%s/tick", f->dir);
    assert_int_equal(stat(f->log, &log), 0);
    for (time_t end = time(NULL) + 10;;) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        fclose(file);
        assert_int_equal(stat(path, &now), 0);
        if (now.st_mtim.tv_sec != log.st_mtim.tv_sec || now.st_mtim.tv_nsec != log.st_mtim.tv_nsec)
            return;
        assert_true(time(NULL) < end);
    }
}

/* Event 3 has another text, in place. */
static void edit(const struct fixture *f, const char *from, const char *to)
{
    size_t len, tail;
    char *text = read_log(f, &len), *at = strstr(strstr(text, "\n{\"seq\":3,"), from);
    FILE *file;

    assert_non_null(at);
    tail = len - (size_t)(at - text) - strlen(from);
    wait_for_tick(f);
    file = fopen(f->log, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at - text, SEEK_SET), 0);
    assert_int_equal(fwrite(to, 1, strlen(to), file), strlen(to));
    assert_int_equal(fwrite(at + strlen(from), 1, tail, file), tail);
    fclose(file);
    assert_int_equal(truncate(f->log, (off_t)(len + strlen(to) - strlen(from))), 0);
    free(text);
}

static void put_log(const struct fixture *f, const char *text, size_t len)
{
    FILE *file;

    wait_for_tick(f);
    file = fopen(f->log, "r+");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    fclose(file);
    assert_int_equal(truncate(f->log, (off_t)len), 0);
}

/* A log in the place of another is refused while anything says how far that one was acknowledged. */
static void forget_end(const struct fixture *f)
{
    static const char *const names[] = {"sessions/one.mark", "sessions/one.json", "cache/one.head"};
    char path[300];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/s/%s", f->dir, names[i]);
        unlink(path);
    }
}

static void open_and_append(tide_store *store)
{
    tide_session *s;

    OK(tide_session_open(store, "one", TIDE_SESSION_APPEND, &s, &err));
    OK(append(s, &err));
    tide_session_close(s);
}

/* Two logs that went on differently, of the same length: times and digests always have the same. */
static void another_log_in_its_place_is_read_anew(void **state)
{
    struct fixture *f = *state;
    char *one, *other;
    size_t len, start;
    tide_session *s;

    make(f, EVENTS);
    one = read_log(f, &len);
    start = (size_t)(strstr(one, "\n{\"seq\":6,") + 1 - one);
    put_log(f, one, start);
    HINTS(TIDE_CORRUPT, TIDE_ACTION_CHECK_STORE, tide_session_open(f->other, "one", TIDE_SESSION_APPEND, &s, &err));
    forget_end(f);
    open_and_append(f->other);
    other = read_log(f, &start);
    assert_int_equal(start, len);
    put_log(f, one, len);
    forget_end(f);
    OK(tide_session_open(f->store, "one", TIDE_SESSION_APPEND, &s, &err));
    put_log(f, other, len);
    forget_end(f);
    OK(append(s, &err));
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    tide_session_close(s);
    free(one);
    free(other);
}

static void what_was_proved_once_is_not_proved_for_ever(void **state)
{
    struct fixture *f = *state;
    tide_session *s, *holder;

    make(f, EVENTS);
    OK(tide_session_open(f->store, "one", TIDE_SESSION_APPEND, &s, &err));
    tide_session_close(s);
    OK(tide_session_open(f->other, "one", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &holder, &err));
    OK(append(holder, &err));
    edit(f, "letters", "Letters");
    OK(append(holder, &err)); /* it was proved when that one began */
    tide_session_close(holder);
    ABOUT_EVENT(TIDE_CORRUPT, 3, tide_session_open(f->store, "one", TIDE_SESSION_APPEND, &s, &err));
    ABOUT_EVENT(TIDE_CORRUPT, 3, tide_session_open(f->other, "one", TIDE_SESSION_APPEND, &s, &err));
}

static void a_line_that_became_longer_tears_nothing_off(void **state)
{
    const struct tide_new_event input = {"queue.added", "{\"queue_id\":\"q1\"}", 0};
    struct fixture *f = *state;
    size_t before_len, after_len;
    char *before, *after;

    make(f, EVENTS);
    edit(f, "letters", "more letters");
    before = read_log(f, &before_len);
    ABOUT_EVENT(TIDE_CORRUPT, 3, tide_session_input(f->store, "one", -1, &input, 1, NULL, &err));
    after = read_log(f, &after_len);
    assert_int_equal(before_len, after_len);
    assert_memory_equal(before, after, after_len);
    free(before);
    free(after);
    edit(f, "more letters", "letters");
    OK(tide_session_input(f->store, "one", -1, &input, 1, NULL, &err));
}

static void a_handle_proves_before_it_takes_the_lease(void **state)
{
    struct fixture *f = *state;
    tide_session *s;

    make(f, EVENTS);
    OK(tide_session_open(f->store, "one", TIDE_SESSION_APPEND, &s, &err));
    edit(f, "letters", "Letters");
    ABOUT_EVENT(TIDE_CORRUPT, 3, append(s, &err));
    edit(f, "Letters", "letters");
    OK(append(s, &err));
    tide_session_close(s);
}

static void one_that_is_made_again_has_not_become_shorter(void **state)
{
    struct fixture *f = *state;
    enum tide_cancelled how;
    struct tide_run *run;
    tide_session *s, *again;

    OK(tide_session_create(f->store, "one", NULL, &s, &err));
    OK(tide_run_start(s, NULL, &run, &err));
    for (int i = 0; i < EVENTS; i++)
        OK(append(s, &err));
    OK(tide_session_cancel(f->other, "one", "test", "no more", 1, &how, &err));
    OK(tide_session_delete(f->other, "one", &err));
    OK(tide_session_create(f->other, "one", NULL, &again, &err));
    tide_session_close(again);
    tide_run_close(run);
    tide_session_close(s);
    OK(tide_session_open(f->store, "one", TIDE_SESSION_APPEND, &s, &err));
    OK(append(s, &err));
    tide_session_close(s);
}

static void *send_inputs(void *fixture)
{
    struct fixture *f = fixture;

    for (int i = 0; i < 200; i++) {
        const struct tide_new_event input = {"queue.added", "{\"queue_id\":\"q1\"}", 0};
        struct tide_err why;

        if (tide_session_input(f->other, "one", -1, &input, 1, NULL, &why))
            return "an input was refused";
    }
    return NULL;
}

static void whoever_opens_beside_others_who_send_is_not_refused(void **state)
{
    struct fixture *f = *state;
    void *wrong = NULL;
    tide_session *s;
    pthread_t t;

    make(f, 1000);
    assert_int_equal(pthread_create(&t, NULL, send_inputs, f), 0);
    for (int i = 0; i < 40; i++) {
        OK(tide_session_open(f->store, "one", TIDE_SESSION_APPEND, &s, &err));
        tide_session_close(s);
    }
    pthread_join(t, &wrong);
    assert_null(wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_log_in_its_place_is_read_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_proved_once_is_not_proved_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_that_became_longer_tears_nothing_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_handle_proves_before_it_takes_the_lease, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_made_again_has_not_become_shorter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whoever_opens_beside_others_who_send_is_not_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
