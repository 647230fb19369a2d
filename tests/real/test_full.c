/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that is really full: a small tmpfs in a mount namespace of the test's own. Appends fail with TIDE_FULL, nothing
 * acknowledged is lost, a new process can still open and read, and when there is room again all goes on without repair.
 */
#include "disk.h"
#include "proc.h"

static char dir[256], path[300], fill_path[300];

static int count(void *arg, const struct tide_event *ev)
{
    (void)ev;
    ++*(int64_t *)arg;
    return 0;
}

static int count_info(void *arg, const struct tide_session_info *info)
{
    (void)info;
    ++*(int64_t *)arg;
    return 0;
}

/* Another process: opens, lists, reads all, checks. */
static void look(struct self *me)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = *(unsigned *)me->arg};
    tide_store *store = NULL;
    tide_session *s = NULL;
    int64_t sessions = 0, events = 0;

    CHILD_MUST(tide_store_open(path, &opt, &store, &err));
    CHILD_MUST(tide_session_list(store, NULL, count_info, &sessions, &err));
    CHILD_MUST(tide_session_open(store, "full", TIDE_SESSION_READ, &s, &err));
    CHILD_MUST(tide_session_read(s, 0, 0, 0, count, &events, &err));
    CHILD_MUST(tide_session_verify(s, NULL, NULL, NULL, &err));
    CHILD_MUST(tide_store_check(store, 0, NULL, NULL, NULL, &err));
    tell(me->out, &events, sizeof events);
    tide_session_close(s);
    tide_store_close(store);
}

static int64_t seen_by_another(unsigned flags)
{
    struct child c = child_start(look, &flags, 0);
    int64_t events = -1;

    hear(c.out, &events, sizeof events, 60000);
    assert_int_equal(child_wait(&c), 0);
    return events;
}

static void a_full_disk_loses_nothing_and_mends_by_itself(void **unused)
{
    char body[3100];
    struct tide_new_event ev = {"message.user", body, 0};
    tide_store *store = NULL;
    tide_session *s = NULL;
    int64_t acked = 1;
    enum tide_code code;

    (void)unused;
    if (!disk_make(dir)) {
        print_message("neither root nor user namespaces: skipped\n");
        skip();
    }
    snprintf(body, sizeof body, "{\"content\":\"%03000d\"}", 1);
    OK(tide_store_open(
        path, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE},
        &store, &err));
    OK(tide_session_create(store, "full", NULL, &s, &err));
    for (int round = 0; round < 5; round++) {
        int refused = 0;

        for (int i = 0; i < 20; i++, acked++)
            OK(tide_session_append(s, 0, &ev, 1, NULL, &err));
        disk_fill(fill_path);
        while (refused < 3) { /* room in the files that are there may last for a few */
            code = tide_session_append(s, 0, &ev, 1, NULL, NULL);
            if (code)
                expect_code(TIDE_FULL, code, NULL, "append", __FILE__, __LINE__);
            refused += code != TIDE_OK;
            acked += code == TIDE_OK;
            assert_true(acked < 2000);
        }
        assert_int_equal(seen_by_another(TIDE_OPEN_READ_ONLY), acked);
        assert_int_equal(seen_by_another(0), acked);
        assert_int_equal(unlink(fill_path), 0);
        if (round % 2) { /* a process that was closed and begins anew on the full disk, too */
            tide_session_close(s);
            tide_store_close(store);
            disk_fill(fill_path);
            assert_int_equal(seen_by_another(TIDE_OPEN_READ_ONLY), acked);
            assert_int_equal(unlink(fill_path), 0);
            OK(tide_store_open(path, NULL, &store, &err));
            OK(tide_session_open(store, "full", TIDE_SESSION_APPEND, &s, &err));
        }
        OK(tide_session_append(s, 0, &ev, 1, NULL, &err)); /* there is room: it goes on, by the same handle */
        acked++;
        OK(tide_store_compact(store, &err));
    }
    tide_session_close(s);
    tide_store_close(store);
    assert_int_equal(seen_by_another(0), acked);
    umount(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_loses_nothing_and_mends_by_itself),
    };
    int failed;

    signal(SIGPIPE, SIG_IGN);
    snprintf(dir, sizeof dir, "/tmp/tidemark-full.XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    store_url_in(path, sizeof path, dir, "s");
    snprintf(fill_path, sizeof fill_path, "%s/fill", dir);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
