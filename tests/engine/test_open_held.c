/* SPDX-License-Identifier: Apache-2.0 */
/* A run that begins while its store cannot be made or opened waits for it; everybody else gets the error. */
#include <signal.h>
#include <sys/resource.h>

#include "engine/user_store.h"
#include "kit.h"

struct place {
    char dir[256], url[400];
    int limit; /* RLIMIT_FSIZE: no file may grow, which is a full disk; RLIMIT_NOFILE: none can be opened */
    int troubles, passed,
        patience; /* calls of `told`; after so many troubles the disk has room, or a person stops it */
    bool stop;
    enum tide_code code; /* of the last trouble */
};

static void set_limit(const struct place *p, bool low)
{
    static rlim_t before[RLIM_NLIMITS];
    struct rlimit r;

    assert_int_equal(getrlimit(p->limit, &r), 0);
    if (low)
        before[p->limit] = r.rlim_cur;
    else if (before[p->limit])
        r.rlim_cur = before[p->limit];
    r.rlim_cur = low ? 0 : r.rlim_cur;
    assert_int_equal(setrlimit(p->limit, &r), 0);
}

static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct place *p = arg;

    (void)waited_ms;
    if (!why) {
        p->passed++;
        return 0;
    }
    p->code = why->code;
    if (++p->troubles == p->patience && !p->stop)
        set_limit(p, false);
    return p->stop && p->troubles == p->patience;
}

static bool is_stopped(void *arg)
{
    const struct place *p = arg;

    return p->stop;
}

static enum tide_code open_as(struct place *p, unsigned flags, bool for_run, tide_store **ret, struct tide_err *err)
{
    const struct held held = {on_trouble, is_stopped, p};
    const struct tide_store_options opt = {.size = sizeof opt, .flags = flags};

    return user_store_open(p->url, &opt, NULL, NULL, NULL, for_run ? &held : NULL, ret, err);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    signal(SIGXFSZ, SIG_IGN);
    store_url_in(p->url, sizeof p->url, dir_make(p->dir), "s");
    p->limit = RLIMIT_FSIZE;
    p->patience = 2;
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    set_limit(p, false);
    dir_remove(p->dir);
    free(p);
    return 0;
}

static void a_run_waits_until_its_store_can_be_made(void **state)
{
    struct place *p = *state;
    tide_store *store = NULL;
    tide_session *session = NULL;

    set_limit(p, true);
    OK(open_as(p, TIDE_OPEN_CREATE, true, &store, &err));
    assert_int_equal(p->troubles, 2);
    assert_int_equal(p->code, TIDE_FULL);
    assert_int_equal(p->passed, 1);
    OK(tide_session_create(store, "a", NULL, &session, &err));
    tide_session_close(session);
    tide_store_close(store);
}

static void a_run_waits_until_its_store_can_be_opened(void **state)
{
    struct place *p = *state;
    tide_store *store = NULL;

    OK(open_as(p, TIDE_OPEN_CREATE, false, &store, &err));
    tide_store_close(store);
    p->limit = RLIMIT_NOFILE;
    set_limit(p, true);
    OK(open_as(p, 0, true, &store, &err));
    assert_int_equal(p->troubles, 2);
    assert_int_equal(p->code, TIDE_BUSY);
    assert_int_equal(p->passed, 1);
    tide_store_close(store);
}

static void whoever_stops_it_meanwhile_stops_it(void **state)
{
    struct place *p = *state;
    tide_store *store = NULL;

    p->stop = true;
    set_limit(p, true);
    GIVES(TIDE_CANCELLED, open_as(p, TIDE_OPEN_CREATE, true, &store, &err));
    assert_int_equal(p->troubles, 2);
    assert_int_equal(p->passed, 0);
}

static void everybody_else_gets_the_error(void **state)
{
    struct place *p = *state;
    tide_store *store = NULL;

    set_limit(p, true);
    GIVES(TIDE_FULL, open_as(p, TIDE_OPEN_CREATE, false, &store, &err));
}

static void what_does_not_pass_is_not_waited_for(void **state)
{
    struct place *p = *state;
    tide_store *store = NULL;

    GIVES(TIDE_NOT_FOUND, open_as(p, 0, true, &store, &err));
    assert_int_equal(p->troubles, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
        TEST(a_run_waits_until_its_store_can_be_made), TEST(a_run_waits_until_its_store_can_be_opened),
        TEST(whoever_stops_it_meanwhile_stops_it),     TEST(everybody_else_gets_the_error),
        TEST(what_does_not_pass_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
