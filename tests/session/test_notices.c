/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store mends by itself is told once, whoever asks; and a handle on the log alone reads what is whole before damage,
 * whatever the kind of store.
 */
#include <pthread.h>

#include "store_tamper.h"

#include "session/session.h"

#define ASKERS 8

struct told {
    size_t n;
    char last[512];
};

static void hear(void *arg, const char *line)
{
    struct told *t = arg;

    t->n++;
    snprintf(t->last, sizeof t->last, "%s", line);
}

static void append_note(tide_store *store, const char *id)
{
    const struct tide_new_event ev = {"note.made", "{\"i\":1}", 0};
    tide_session *s = NULL;

    OK(tide_session_open(store, id, TIDE_SESSION_APPEND, &s, &err));
    OK(tide_session_append(s, 0, &ev, 1, NULL, &err));
    tide_session_close(s);
}

static tide_store *open_at(const char *url)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;

    OK(tide_store_open(url, &opt, &store, &err));
    return store;
}

/* A store of files with one session, whose log ends in half a line. */
static tide_store *open_torn(const char *dir, char url[300])
{
    tide_store *store;
    tide_session *s = NULL;
    char log[400];
    FILE *f;

    snprintf(url, 300, "files:%.200s/torn", dir);
    store = open_at(url);
    OK(tide_session_create(store, "one", NULL, &s, &err));
    tide_session_close(s);
    tide_store_close(store);
    snprintf(log, sizeof log, "%.200s/torn/sessions/one.messages.jsonl", dir);
    f = fopen(log, "a");
    assert_non_null(f);
    fputs("{\"seq\":2,\"ts\":\"20", f);
    fclose(f);
    return open_at(url);
}

static void a_mended_log_is_told_once(void **state)
{
    struct told told = {0};
    char dir[256], url[300];
    tide_store *store;

    (void)state;
    dir_make(dir);
    store = open_torn(dir, url);
    assert_int_equal(tide_store_read_notices(store, hear, &told), 0);
    append_note(store, "one");
    assert_int_equal(tide_store_read_notices(store, hear, &told), 1);
    assert_int_equal(told.n, 1);
    assert_non_null(strstr(told.last, "session one: "));
    assert_non_null(strstr(told.last, "sessions/one.torn-1"));
    assert_null(strchr(told.last, '\n'));
    append_note(store, "one");
    assert_int_equal(tide_store_read_notices(store, hear, &told), 0);
    tide_store_close(store);
    store = open_at(url);
    append_note(store, "one");
    assert_int_equal(tide_store_read_notices(store, hear, &told), 0);
    tide_store_close(store);
    dir_remove(dir);
}

static void *ask(void *store)
{
    struct told told = {0};

    for (int i = 0; i < 200; i++)
        tide_store_read_notices(store, hear, &told);
    return (void *)(uintptr_t)told.n;
}

static void of_many_that_ask_one_hears_it(void **state)
{
    pthread_t threads[ASKERS];
    char dir[256], url[300];
    tide_store *store;
    uintptr_t heard = 0;
    struct told told = {0};

    (void)state;
    dir_make(dir);
    store = open_torn(dir, url);
    for (size_t i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, store), 0);
    append_note(store, "one");
    for (size_t i = 0; i < ASKERS; i++) {
        void *n = NULL;

        pthread_join(threads[i], &n);
        heard += (uintptr_t)n;
    }
    assert_int_equal(heard + tide_store_read_notices(store, hear, &told), 1);
    tide_store_close(store);
    dir_remove(dir);
}

static int count(void *arg, const struct tide_event *ev)
{
    (void)ev;
    ++*(int *)arg;
    return 0;
}

static void a_handle_on_the_log_alone_reads_and_follows(void **state)
{
    char dir[256], url[300];
    tide_session *s = NULL, *log = NULL;
    tide_store *store;
    int n = 0;

    (void)state;
    dir_make(dir);
    store = open_at(store_url_in(url, sizeof url, dir, "s"));
    OK(tide_session_create(store, "one", NULL, &s, &err));
    tide_session_close(s);
    assert_int_equal(tide_store_read_notices(store, hear, NULL), 0);

    OK(tide_session_open(store, "one", TIDE_SESSION_LOG, &log, &err));
    append_note(store, "one");
    assert_int_equal(tide_session_last_seq(log), 1);
    OK(tide_session_refresh(log, &err));
    assert_int_equal(tide_session_last_seq(log), 2);
    OK(tide_session_read(log, 0, 0, 0, count, &n, &err));
    assert_int_equal(n, 2);
    tide_session_close(log);
    tide_store_close(store);
    dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mended_log_is_told_once),
        cmocka_unit_test(of_many_that_ask_one_hears_it),
        cmocka_unit_test(a_handle_on_the_log_alone_reads_and_follows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
