/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read that fails is an I/O error, and is tried again; damage is what digests say. Every way to read, with each read of it
 * failing once: the answer is the same as without. With all reads from there on failing: an I/O error by its name, or the whole
 * answer where what is needed was read before. Never damage, never less than there is.
 */
#include <errno.h>

#include "env/sim.h"
#include "kit.h"
#include "sim/sim_store.h"

enum { EVENTS = 300, PLACES_MAX = 4000, STRIDE = SLOW_BUILD ? 5 : 1 };

static struct tide_err last;

/* ---- ways to read; each gives a number that depends on what was read ---- */

static int add(int64_t *sum, int64_t n)
{
    *sum = (int64_t)((uint64_t)*sum * 31 + (uint64_t)n);
    return 0;
}

static int on_event(void *arg, const struct tide_event *ev)
{
    return add(arg, ev->seq + (int64_t)strlen(ev->body));
}

static int on_info(void *arg, const struct tide_session_info *info)
{
    int64_t sum = (int64_t)strlen(info->id) + info->last_seq;

    for (const char *p = tide_status_name(info->status); *p; p++)
        sum = sum * 7 + *p;
    return add(arg, sum);
}

static int on_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    return add(arg, c->seq);
}

static enum tide_code in_session(tide_store *store, enum tide_code (*fn)(tide_session *, int64_t *), int64_t *sum)
{
    tide_session *s = NULL;
    enum tide_code code = tide_session_open(store, "fork", TIDE_SESSION_READ, &s, &last);

    code = code ? code : fn(s, sum);
    tide_session_close(s);
    return code;
}

static enum tide_code read_log(tide_session *s, int64_t *sum)
{
    return tide_session_read(s, TIDE_READ_INHERITED, 1, 0, on_event, sum, &last);
}

static enum tide_code read_state(tide_session *s, int64_t *sum)
{
    struct tide_text text = {NULL, 0};
    enum tide_code code = tide_session_get_state(s, 0, &text, &last);

    *sum = (int64_t)text.len;
    tide_text_done(&text);
    return code;
}

static enum tide_code read_earlier_state(tide_session *s, int64_t *sum)
{
    struct tide_text text = {NULL, 0};
    enum tide_code code = tide_session_get_state(s, EVENTS / 2, &text, &last);

    *sum = (int64_t)text.len;
    tide_text_done(&text);
    return code;
}

static enum tide_code read_checkpoints(tide_session *s, int64_t *sum)
{
    return tide_checkpoint_list(s, NULL, on_checkpoint, sum, &last);
}

static enum tide_code verify(tide_session *s, int64_t *sum)
{
    uint64_t n = 0;
    enum tide_code code = tide_session_verify(s, NULL, NULL, &n, &last);

    *sum = (int64_t)n;
    return code;
}

static enum tide_code show(tide_session *s, int64_t *sum)
{
    return session_shown(s, on_info, sum, &last);
}

static enum tide_code list(tide_store *store, int64_t *sum)
{
    return tide_session_list(store, NULL, on_info, sum, &last);
}

static void on_problem(void *arg, const char *where, const char *what)
{
    (void)arg;
    print_message("# %s: %s\n", where, what);
}

static enum tide_code check(tide_store *store, int64_t *sum)
{
    (void)sum;
    return tide_store_check(store, 0, NULL, on_problem, NULL, &last);
}

static const struct way {
    const char *name;
    enum tide_code (*session)(tide_session *, int64_t *);
    enum tide_code (*store)(tide_store *, int64_t *);
} ways[] = {
    {"the log", read_log, NULL},
    {"the state", read_state, NULL},
    {"an earlier state", read_earlier_state, NULL},
    {"the checkpoints", read_checkpoints, NULL},
    {"a proof of the log", verify, NULL},
    {"the status", show, NULL},
    {"the list of sessions", NULL, list},
    {"a check of the store", NULL, check},
};

/* ---- a disk that fails ---- */

static void fill(tide_store *store)
{
    tide_session *s = NULL;
    char id[TIDE_ID_SIZE];

    OK(tide_session_create(store, "a", NULL, &s, &err));
    for (int i = 0; i < EVENTS; i++) {
        put(s, "message.user", "{\"message_id\":\"m%d\",\"turn\":%d,\"content\":\"%0200d\"}", i, i + 1, i);
        if (i % 50 == 0)
            OK(tide_checkpoint_save(
                s,
                &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_USER},
                id, &err));
    }
    tide_session_close(s);
    OK(tide_session_fork(store, "a", EVENTS / 2, "fork", NULL, id, &err));
    OK(tide_session_open(store, "fork", TIDE_SESSION_APPEND, &s, &err));
    put(s, "message.user", "{\"message_id\":\"f\",\"turn\":%d,\"content\":\"x\"}", EVENTS);
    OK(tide_checkpoint_save(
        s, &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_USER}, id,
        &err));
    tide_session_close(s);
}

static struct sim_image *prepare(void)
{
    struct sim *sim = sim_new(1);
    tide_store *store = sim_store_open(sim_proc_start(sim), 0, NULL);
    struct sim_image *image;

    assert_non_null(store);
    fill(store);
    tide_store_close(store);
    image = sim_image_take(sim);
    sim_free(sim);
    return image;
}

static enum tide_code go(const struct way *w, tide_store *store, int64_t *sum)
{
    *sum = 0;
    last = (struct tide_err){0};
    return w->session ? in_session(store, w->session, sum) : w->store(store, sum);
}

/* The store is opened under the fault as well. *ret_fired: there was such a read. */
static enum tide_code attempt(const struct sim_image *image, const struct way *w, int place, bool for_good,
                              int64_t *sum, bool *ret_fired)
{
    struct sim *sim = sim_new_from(2, image);
    struct sim_proc *p = sim_proc_start(sim);
    tide_store *store;
    enum tide_code code;

    last = (struct tide_err){0};
    if (place)
        sim_fault_at(sim, SIM_READ_FAILS, (uint64_t)place, for_good);
    store = sim_store_open(p, 0, &last);
    code = store ? go(w, store, sum) : last.code;
    *ret_fired = sim_fault_fired(sim);
    sim_fault_at(sim, SIM_NO_FAULT, 1, false);
    tide_store_close(store);
    sim_free(sim);
    return code;
}

static void a_read_that_fails_is_no_damage(void **state)
{
    struct sim_image *image = prepare();

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int64_t want = 0, got = 0;
        int place = 1 - STRIDE;
        bool fired;

        expect_code(TIDE_OK, attempt(image, &ways[i], 0, false, &want, &fired), &last, ways[i].name, __FILE__,
                    __LINE__);
        do {
            enum tide_code code = attempt(image, &ways[i], place += STRIDE, false, &got, &fired);

            if (code || got != want)
                fail_msg("%s, read %d fails once: %s %s", ways[i].name, place, tide_code_name(code), last.msg);
            code = attempt(image, &ways[i], place, true, &got, &fired);
            if (code != TIDE_IO && (code || got != want))
                fail_msg("%s, reads fail from %d on: %s %s", ways[i].name, place, tide_code_name(code), last.msg);
        } while (fired && place < PLACES_MAX);
        print_message("# %s: %d reads\n", ways[i].name, place - 1);
    }
    sim_image_free(image);
}

/* ---- the same through SQLite's own VFS, which calls a failed read damage ---- */

typedef ssize_t pread_fn(int, void *, size_t, off_t);
static pread_fn *real_pread;
static int fail_at, reads;
static bool fail_for_good;

static ssize_t failing_pread(int fd, void *out, size_t n, off_t at)
{
    reads++;
    if (fail_at && (reads == fail_at || (fail_for_good && reads > fail_at))) {
        errno = EIO;
        return -1;
    }
    return real_pread(fd, out, n, at);
}

static void let_preads_fail(bool fail)
{
    static const char *const names[] = {"pread", "pread64"};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sqlite3_syscall_ptr call = vfs->xGetSystemCall(vfs, names[i]);

        if (fail && call)
            real_pread = (pread_fn *)(void *)call;
        if (call)
            vfs->xSetSystemCall(vfs, names[i], fail ? (sqlite3_syscall_ptr)(void *)failing_pread : NULL);
    }
}

static enum tide_code attempt_here(const char *url, const struct way *w, int place, bool for_good, int64_t *sum)
{
    tide_store *store = NULL;
    enum tide_code code;

    fail_at = place;
    fail_for_good = for_good;
    reads = 0;
    last = (struct tide_err){0};
    code = tide_store_open(url, NULL, &store, &last);
    code = code ? code : go(w, store, sum);
    fail_at = 0;
    tide_store_close(store);
    return code;
}

static void a_failed_read_is_no_damage_to_sqlite_either(void **state)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_store *store = NULL;
    char dir[256], url[300];

    (void)state;
    SQLITE_ONLY("it is about SQLite's VFS");
    dir_make(dir);
    OK(tide_store_open(store_url_in(url, sizeof url, dir, "s"), &opt, &store, &err));
    fill(store);
    tide_store_close(store);
    let_preads_fail(true);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int64_t want = 0, got = 0;
        int place, most;

        expect_code(TIDE_OK, attempt_here(url, &ways[i], 0, false, &want), &last, ways[i].name, __FILE__, __LINE__);
        most = reads;
        assert_true(most > 5);
        for (place = 1; place <= most; place += STRIDE) {
            enum tide_code code = attempt_here(url, &ways[i], place, false, &got);

            if (code || got != want)
                fail_msg("%s, read %d fails once: %s %s", ways[i].name, place, tide_code_name(code), last.msg);
        }
        if (attempt_here(url, &ways[i], most / 2, true, &got) != TIDE_IO) /* it gives up after a quarter of a second */
            fail_msg("%s, reads fail from %d on: %s %s", ways[i].name, most / 2, tide_code_name(last.code), last.msg);
    }
    let_preads_fail(false);
    dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_that_fails_is_no_damage),
        cmocka_unit_test(a_failed_read_is_no_damage_to_sqlite_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
