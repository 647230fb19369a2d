/* SPDX-License-Identifier: Apache-2.0 */
/* One store, many threads: each with sessions of its own, appending one by one and in bursts, reading all the while. */
#include <pthread.h>

#include "kit.h"

enum { THREADS = 8, ROUNDS = SLOW_BUILD ? 40 : 120, BURST = 16 };

struct fixture {
    char dir[256], path[300];
    tide_store *store;
};

struct worker {
    struct fixture *f;
    int number;
    int64_t want;    /* events its session must have */
    int failed_line; /* cmocka's asserts are for the main thread */
    struct tide_err err;
};

#define MUST(w, call)                                                                                                  \
    do {                                                                                                               \
        if ((call) != TIDE_OK && !(w)->failed_line)                                                                    \
            (w)->failed_line = __LINE__;                                                                               \
    } while (0)

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->path, sizeof f->path, f->dir, "t");
    OK(tide_store_open(f->path,
                       &(struct tide_store_options){
                           .size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE, .queue_max = 64},
                       &f->store, &err));
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

static int count(void *arg, const struct tide_event *ev)
{
    (void)ev;
    ++*(int64_t *)arg;
    return 0;
}

static void *append_and_read(void *arg)
{
    struct worker *w = arg;
    struct tide_new_event ev = {"message.user", "{\"content\":\"hello\"}", 0}, burst[BURST];
    tide_session *s = NULL;
    char id[32];

    for (int i = 0; i < BURST; i++)
        burst[i] = ev;
    snprintf(id, sizeof id, "thread%d", w->number);
    MUST(w, tide_session_create(w->f->store, id, NULL, &s, &w->err));
    w->want = 1;
    for (int i = 0; i < ROUNDS && !w->failed_line; i++) {
        int64_t n = 0;

        if (i % 3 == 0) {
            MUST(w, tide_session_append(s, 0, &ev, 1, NULL, &w->err));
            w->want += 1;
        } else if (i % 3 == 1) {
            for (int k = 0; k < 5; k++)
                MUST(w, tide_session_append_async(s, 0, &ev, 1, NULL, &w->err));
            MUST(w, tide_session_append_async(s, 0, burst, BURST, NULL, &w->err));
            if (i % 2)
                MUST(w, tide_session_flush(s, &w->err));
            w->want += 5 + BURST;
        } else {
            MUST(w, tide_session_read(s, 0, 0, 0, count, &n, &w->err));
            if (n != w->want)
                w->failed_line = __LINE__;
        }
    }
    MUST(w, tide_session_flush(s, &w->err));
    tide_session_close(s);
    return NULL;
}

static void run_threads(struct fixture *f, void *(*body)(void *), struct worker workers[THREADS])
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = f, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, body, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].failed_line)
            fail_msg("thread %d failed at line %d: %s", i, workers[i].failed_line, workers[i].err.msg);
    }
}

static void verify_all(struct fixture *f, struct worker workers[THREADS], const char *prefix)
{
    for (int i = 0; i < THREADS; i++) {
        tide_session *s = NULL;
        uint64_t events = 0;
        char id[32];

        snprintf(id, sizeof id, "%s%d", prefix, i);
        OK(tide_session_open(f->store, id, TIDE_SESSION_READ, &s, &err));
        OK(tide_session_verify(s, NULL, NULL, &events, &err));
        assert_int_equal(events, workers[i].want);
        tide_session_close(s);
    }
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
}

static void every_thread_finds_its_own_events(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];

    run_threads(f, append_and_read, workers);
    verify_all(f, workers, "thread");
}

/* ---- Completions ---------------------------------------------------------------------------------------------- */

static void *queue_up(void *arg)
{
    struct worker *w = arg;
    struct tide_new_event ev = {"message.user", SAID, 0};
    tide_session *s = NULL;
    char id[32];

    snprintf(id, sizeof id, "queue%d", w->number);
    MUST(w, tide_session_create(w->f->store, id, NULL, &s, &w->err));
    w->want = 1;
    for (int i = 0; i < ROUNDS * 5; i++, w->want++)
        MUST(w, tide_session_append_async(s, 0, &ev, 1, w, &w->err));
    tide_session_close(s);
    return NULL;
}

struct reaper {
    struct fixture *f;
    int64_t left, failed;
};

static void *reap(void *arg)
{
    struct reaper *r = arg;

    while (r->left > 0) {
        struct tide_completion done[50];
        size_t n = tide_store_reap(r->f->store, done, 50, 10000);

        if (n == 0)
            break; /* nothing for ten seconds: something was lost */
        for (size_t i = 0; i < n; i++)
            r->failed += done[i].code != TIDE_OK;
        r->left -= (int64_t)n;
    }
    return NULL;
}

static void every_completion_is_handed_out_once(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];
    struct reaper r = {f, (int64_t)THREADS * ROUNDS * 5, 0};
    struct tide_completion more;
    pthread_t reaper;

    assert_int_equal(pthread_create(&reaper, NULL, reap, &r), 0);
    run_threads(f, queue_up, workers);
    pthread_join(reaper, NULL);
    assert_int_equal(r.left, 0);
    assert_int_equal(r.failed, 0);
    assert_int_equal(tide_store_reap(f->store, &more, 1, 0), 0);
    verify_all(f, workers, "queue");
}

/* ---- One session, many threads ---------------------------------------------------------------------------------- */

static void *knock(void *arg)
{
    struct worker *w = arg;
    struct tide_new_event ev = {"queue.added", "{\"queue_id\":\"q\"}", 0};

    for (int i = 0; i < ROUNDS; i++) {
        MUST(w, tide_session_input(w->f->store, "shared", -1, &ev, 1, NULL, &w->err));
        w->want++;
    }
    return NULL;
}

static void inputs_of_all_threads_arrive_beside_the_holders_events(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];
    struct tide_new_event ev = {"message.user", SAID, 0};
    tide_session *s = NULL;
    uint64_t events = 0;
    pthread_t threads[THREADS];

    OK(tide_session_create(f->store, "shared", NULL, &s, &err));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = f, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, knock, &workers[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++)
        OK(tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, &err));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failed_line, 0);
    }
    OK(tide_session_refresh(s, &err));
    OK(tide_session_verify(s, NULL, NULL, &events, &err));
    assert_int_equal(events, 1 + (THREADS + 1) * ROUNDS);
    tide_session_close(s);
}

/* ---- Watchers --------------------------------------------------------------------------------------------------- */

static void *watch_and_leave(void *arg)
{
    struct worker *w = arg;
    tide_watch *watches[4] = {NULL};

    for (int i = 0; i < ROUNDS * 50; i++) {
        tide_watch **at = &watches[i % 4];

        tide_watch_close(*at);
        *at = NULL;
        MUST(w, tide_watch_open(w->f->store, at, &w->err));
    }
    for (int i = 0; i < 4; i++)
        tide_watch_close(watches[i]);
    return NULL;
}

static void watchers_come_and_go_in_every_thread(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];

    run_threads(f, watch_and_leave, workers);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- big values ---------------------------------------------------------------------------------------------- */

enum { BIG_ROUNDS = SLOW_BUILD ? 3 : 6, BIG_BYTES = 300 << 10, BIG_KINDS = 3 };

/* One of a few that all threads append: some are stored already when another thread brings them. */
static char *big_body(int kind)
{
    size_t len = (size_t)BIG_BYTES * (size_t)(kind + 1), head;
    char *body = mem_alloc(len + 64);

    head = (size_t)snprintf(body, 64, "{\"content\":\"%d", kind);
    memset(body + head, 'a' + kind, len);
    memcpy(body + head + len, "\"}", 3);
    return body;
}

struct wanted {
    const char *body;
    bool same;
};

static int compare_body(void *arg, const struct tide_event *ev)
{
    struct wanted *w = arg;

    w->same = ev->body_len == strlen(w->body) && memcmp(ev->body, w->body, ev->body_len) == 0;
    return 0;
}

/* Their digests are computed beside the rest; a reader compares them, as nobody's key seals them here. */
static void *append_big_values(void *arg)
{
    struct worker *w = arg;
    tide_session *s = NULL;
    char id[32];

    snprintf(id, sizeof id, "big%d", w->number);
    MUST(w, tide_session_create(w->f->store, id, NULL, &s, &w->err));
    for (int i = 0; i < BIG_ROUNDS && !w->failed_line; i++) {
        AUTO(mem_freep) char *body = big_body((w->number + i) % BIG_KINDS);
        struct tide_new_event ev = {"message.user", body, 0};
        struct wanted want = {.body = body};
        int64_t seq = 0;

        MUST(w, tide_session_append(s, 0, &ev, 1, &seq, &w->err));
        MUST(w, tide_session_read(s, 0, seq, seq, compare_body, &want, &w->err));
        if (!want.same && !w->failed_line)
            w->failed_line = __LINE__;
    }
    w->want = 1 + BIG_ROUNDS;
    tide_session_close(s);
    return NULL;
}

static void big_values_of_all_threads_are_what_they_were(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];

    run_threads(f, append_big_values, workers);
    verify_all(f, workers, "big");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_thread_finds_its_own_events),
        CASE(every_completion_is_handed_out_once),
        CASE(inputs_of_all_threads_arrive_beside_the_holders_events),
        CASE(watchers_come_and_go_in_every_thread),
        CASE(big_values_of_all_threads_are_what_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
