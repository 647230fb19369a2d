/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of the files store that start and end: those that are made at once share syncs whatever stands between them, what
 * people read is written once for a short run, and the file of a lease is used again.
 */
#include "kit.h"

#include <dirent.h>
#include <sodium.h>
#include <sys/stat.h>

#include "env/sim.h"
#include "session/session.h"
#include "store/group.h"

/* The machine itself: counted, with a clock of its own, and without a thread that would write by itself. */
static struct {
    struct env_ops ops;
    struct env env;
    int64_t now_ns;
    int dir_syncs, shown;
} machine;

static int64_t mono_ns(struct env *env)
{
    (void)env;
    return machine.now_ns;
}

static enum tide_code sync_dir(struct env *env, const char *path, struct tide_err *err)
{
    machine.dir_syncs++;
    return env_real()->ops->sync_dir(env, path, err);
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static enum tide_code count_rename(struct env *env, const char *from, const char *to, struct tide_err *err)
{
    machine.shown += strstr(to, "/sessions/") && ends_with(to, ".json");
    return env_real()->ops->rename(env, from, to, err);
}

struct fixture {
    char dir[256], url[300];
    tide_store *store;
};

static void open_it(struct fixture *f)
{
    const struct tide_store_options opt = {
        .size = sizeof opt, .flags = TIDE_OPEN_CREATE, .origin_key = TEST_KEY, .origin_key_len = sizeof TEST_KEY};
    struct store *s = NULL;

    OK(store_open(f->url, &opt, &machine.env, &s, &err));
    f->store = (tide_store *)(void *)s;
}

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    machine.ops = *env_real()->ops;
    machine.ops.mono_ns = mono_ns;
    machine.ops.sync_dir = sync_dir;
    machine.ops.rename = count_rename;
    machine.env = *env_real();
    machine.env.ops = &machine.ops;
    machine.env.threads = false;
    machine.now_ns = 1000000000;
    dir_make(f->dir);
    snprintf(f->url, sizeof f->url, "files:%s/s", f->dir);
    open_it(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->store)
        tide_store_close(f->store);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static void pass(int ms)
{
    machine.now_ns += (int64_t)ms * 1000000;
}

static bool is_there(const struct fixture *f, const char *path)
{
    char all[600];

    snprintf(all, sizeof all, "%s/%s", store_path(f->url), path);
    return access(all, F_OK) == 0;
}

static bool shows(const struct fixture *f, const char *path, const char *what)
{
    char all[600], text[4096] = "";
    FILE *file;
    bool found;

    snprintf(all, sizeof all, "%s/%s", store_path(f->url), path);
    file = fopen(all, "r");
    found = file && fread(text, 1, sizeof text - 1, file) > 0 && strstr(text, what);
    if (file)
        (void)!fclose(file);
    return found;
}

/* ---- A list of batches ------------------------------------------------------------------------------------------ */

static struct batch *batch_of(const char *id, unsigned flags)
{
    const struct event ev = {.kind = STR("note.made"), .body = STR("{\"content\":\"one\"}")};
    struct batch *b = batch_new(str_from(id), flags, &ev, flags & BATCH_DELETE ? 0 : 1, STR(""), STR(""));

    b->expect_seq = flags & BATCH_DELETE ? 0 : STORE_ANY_SEQ;
    return b;
}

static struct batch *made(const char *id)
{
    return batch_of(id, BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE);
}

static struct batch *said(const char *id)
{
    return batch_of(id, BATCH_INPUT);
}

static struct batch *gone(const char *id)
{
    return batch_of(id, BATCH_DELETE);
}

static struct batch *forked(const char *id, const char *parent, int64_t at)
{
    struct batch *b = made(id);

    snprintf(b->parent, sizeof b->parent, "%s", parent);
    b->parent_seq = at;
    return b;
}

/* All of them in one commit, up to a NULL; frees them. */
static void commit(struct fixture *f, struct batch **list, enum tide_code *ret_codes)
{
    struct store *s = store_of(f->store);

    for (struct batch **b = list; *b; b++)
        group_submit(s->group, *b, GROUP_AWAITED);
    for (struct batch **b = list; *b; b++) {
        group_wait(s->group, *b);
        *ret_codes++ = (*b)->code;
        batch_free(*b);
    }
}

#define COMMIT(f, codes, ...) commit(f, (struct batch *[]){__VA_ARGS__, NULL}, codes)

static void sessions_are_made_together_whatever_stands_between_them(void **state)
{
    struct fixture *f = *state;
    enum tide_code codes[7];

    COMMIT(f, codes, made("old"));
    OK(codes[0]);
    machine.dir_syncs = 0;
    COMMIT(f, codes, made("a"), said("old"), made("b"), said("a"), said("old"), made("c"), said("b"));
    for (int i = 0; i < 7; i++)
        OK(codes[i]);
    assert_int_equal(machine.dir_syncs, 1);
}

static void what_depends_on_one_before_it_stays_behind_it(void **state)
{
    struct fixture *f = *state;
    enum tide_code codes[7];

    COMMIT(f, codes, made("old"), made("other"));
    COMMIT(f, codes, said("old"), forked("fork", "old", 2), said("new"), made("new"), said("new"));
    OK(codes[0]);
    OK(codes[1]);
    GIVES(TIDE_NOT_FOUND, codes[2]);
    OK(codes[3]);
    OK(codes[4]);
    COMMIT(f, codes, said("other"), gone("other"), made("other"), forked("of-it", "other", 1), said("other"));
    for (int i = 0; i < 5; i++)
        OK(codes[i]);
    COMMIT(f, codes, forked("early", "new", 3), said("new"), made("early"), made("new"));
    GIVES(TIDE_INVALID, codes[0]);
    OK(codes[1]);
    OK(codes[2]);
    GIVES(TIDE_EXISTS, codes[3]);
}

/* ---- What people read ------------------------------------------------------------------------------------------- */

static tide_session *begin(struct fixture *f, const char *id, tide_run **ret_run)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, id, "{\"title\":\"first\"}", &s, &err));
    OK(tide_run_start(s, NULL, ret_run, &err));
    return s;
}

static void end(tide_session *s, tide_run *run)
{
    const struct tide_run_result result = {.size = sizeof result, .outcome = TIDE_OUTCOME_COMPLETED};

    OK(tide_run_end(run, &result, &err));
    tide_run_close(run);
    tide_session_close(s);
}

static void a_short_run_is_shown_once(void **state)
{
    struct fixture *f = *state;
    tide_session *s;
    tide_run *run;

    machine.shown = 0;
    s = begin(f, "s", &run);
    assert_false(is_there(f, "sessions/s.json"));
    end(s, run);
    assert_true(shows(f, "sessions/s.json", "\"ended_at\": \"2"));
    assert_true(is_there(f, "sessions/s.tokens.json"));
    assert_int_equal(machine.shown, 2);
}

static void what_goes_on_is_shown_soon(void **state)
{
    struct fixture *f = *state;
    tide_session *s;
    tide_run *run;

    s = begin(f, "s", &run);
    pass(199);
    put(s, "message.user", SAID);
    assert_false(is_there(f, "sessions/s.json"));
    pass(1);
    put(s, "message.user", SAID);
    assert_true(shows(f, "sessions/s.json", "\"ended_at\": null"));
    assert_true(shows(f, "sessions/s.json", "\"title\": \"first\""));
    put(s, "session.updated", "{\"title\":\"second\"}");
    assert_true(shows(f, "sessions/s.json", "\"title\": \"first\""));
    pass(200);
    put(s, "message.user", SAID);
    assert_true(shows(f, "sessions/s.json", "\"title\": \"second\""));
    end(s, run);
}

/* Nobody commits: a thread of the store does it, while another session is written to without a pause, too. */
static void it_is_shown_by_itself(void **state)
{
    struct fixture *f = *state;
    tide_session *quiet = NULL, *busy = NULL;
    int64_t until = env_real()->ops->mono_ns(env_real()) + 30000000000;

    machine.env.threads = true;
    machine.ops.mono_ns = env_real()->ops->mono_ns;
    OK(tide_session_create(f->store, "quiet", NULL, &quiet, &err));
    while (!is_there(f, "sessions/quiet.tokens.json"))
        assert_true(env_real()->ops->mono_ns(env_real()) < until);
    OK(tide_session_create(f->store, "busy", NULL, &busy, &err));
    while (!is_there(f, "sessions/busy.tokens.json")) {
        put(busy, "message.user", SAID);
        assert_true(env_real()->ops->mono_ns(env_real()) < until);
    }
    tide_session_close(quiet);
    tide_session_close(busy);
}

static void nothing_is_owed_when_the_store_is_closed(void **state)
{
    static tide_session *s; /* stay open, as in a process that ends */
    static tide_run *run;
    struct fixture *f = *state;

    s = begin(f, "s", &run);
    assert_non_null(s);
    store_close(store_of(TAKE(f->store)));
    assert_true(shows(f, "sessions/s.json", "\"title\": \"first\""));
    assert_true(is_there(f, "sessions/s.tokens.json"));
}

/* Whoever took the session shows it: what was to be shown before is not. */
static void one_that_was_taken_away_is_not_shown_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct store *other = NULL;
    struct batch *b = batch_of("s", BATCH_ACQUIRE | BATCH_FORCE | BATCH_RELEASE);
    tide_session *s;
    tide_run *run;

    s = begin(f, "s", &run);
    OK(store_open(f->url, NULL, &machine.env, &other, &err));
    OK(store_write(other, b, NULL, &err));
    OK(store_write(other, gone("s"), NULL, &err));
    store_close(other);
    pass(1000);
    OK(store_write(store_of(f->store), made("another"), NULL, &err));
    assert_false(is_there(f, "sessions/s.json"));
    assert_false(is_there(f, "sessions/s.tokens.json"));
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
    tide_run_close(run);
    tide_session_close(s);
}

/* ---- Leases ----------------------------------------------------------------------------------------------------- */

static ino_t inode_of(const struct fixture *f, const char *path)
{
    char all[600];
    struct stat st;

    snprintf(all, sizeof all, "%s/%s", store_path(f->url), path);
    return stat(all, &st) == 0 ? st.st_ino : 0;
}

static void the_file_of_a_lease_is_used_again(void **state)
{
    struct fixture *f = *state;
    ino_t first = 0;

    for (int i = 0; i < 5; i++) {
        char id[8], path[40];
        tide_session *s;

        snprintf(id, sizeof id, "s%d", i);
        snprintf(path, sizeof path, "live/%s.json", id);
        OK(tide_session_create(f->store, id, NULL, &s, &err));
        first = first ? first : inode_of(f, path);
        assert_int_equal(inode_of(f, path), first);
        tide_session_close(s);
        assert_false(is_there(f, path));
    }
    tide_store_close(TAKE(f->store));
    open_it(f);
    assert_int_equal(inode_of(f, "live/s4.json"), 0);
}

static int count_files(const struct fixture *f, const char *folder)
{
    char path[600];
    int n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "%s/%s", store_path(f->url), folder);
    dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void none_is_left_when_the_store_is_closed(void **state)
{
    struct fixture *f = *state;
    tide_session *all[3];

    for (int i = 0; i < 3; i++)
        OK(tide_session_create(f->store, NULL, NULL, &all[i], &err));
    for (int i = 0; i < 3; i++)
        tide_session_close(all[i]);
    tide_store_close(TAKE(f->store));
    assert_int_equal(count_files(f, "live"), 0);
    assert_int_equal(count_files(f, "boots"), 0);
}

/* Others sweep what is old. One that is so old is not used; one that is gone is not missed. */
static void one_that_is_gone_or_old_is_not_used(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 4; i++) {
        char command[600];
        tide_session *s;

        OK(tide_session_create(f->store, NULL, NULL, &s, &err));
        tide_session_close(s);
        assert_int_equal(count_files(f, "live"), 1);
        snprintf(command, sizeof command, "rm %s/live/*", store_path(f->url));
        if (i % 2)
            pass(300000);
        else
            assert_int_equal(system(command), 0); /* NOLINT: our own names */
    }
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
}

/* A power cut may bring back its name, and not its text. */
static void a_lease_that_names_another_session_was_given_back(void **state)
{
    struct fixture *f = *state;
    struct tide_recovery found;
    tide_session *s, *held;
    char command[900];

    OK(tide_session_create(f->store, "before", NULL, &s, &err));
    tide_session_close(s);
    OK(tide_session_create(f->store, "now", NULL, &held, &err));
    snprintf(command, sizeof command, "cd %s/live && cp now.json before.json", store_path(f->url));
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
    OK(tide_store_recover(f->store, 0, NULL, NULL, &found, &err));
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
    OK(tide_session_open(f->store, "before", TIDE_SESSION_APPEND, &s, &err));
    put(s, "message.user", SAID);
    tide_session_close(s);
    put(held, "message.user", SAID);
    tide_session_close(held);
}

/* ---- Power cuts ------------------------------------------------------------------------------------------------- */

#define LIVES 4

/* One after the other, so that each has the file of the one before. How many ended. */
static int live_in(tide_store *store, int from)
{
    int n = from;

    for (; n < from + LIVES; n++) {
        char id[16];
        struct tide_err why;
        tide_session *s = NULL;

        snprintf(id, sizeof id, "s%d", n);
        if (tide_session_create(store, id, NULL, &s, &why))
            break;
        tide_session_close(s);
    }
    return n;
}

static tide_store *store_in(struct sim *sim)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE, .lease_ms = 30000};
    struct store *s = NULL;

    OK(store_open("files:/disk/lives", &opt, sim_proc_env(sim_proc_start(sim)), &s, &err));
    return (tide_store *)(void *)s;
}

/* False when the n-th operation came after all of it. */
static bool cut_at(enum sim_fault fault, uint64_t n)
{
    struct sim *sim = sim_new(n);
    tide_store *store = store_in(sim);
    int told = live_in(store, 0);
    struct tide_recovery found;
    bool fired;

    sim_fault_at(sim, fault, n, false);
    told = live_in(store, told);
    fired = sim_fault_fired(sim);
    sim_fault_at(sim, SIM_NO_FAULT, 0, false);
    sim_power_cut(sim);
    tide_store_close(store);
    store = store_in(sim);
    OK(tide_store_recover(store, 0, NULL, NULL, &found, &err));
    OK(tide_store_check(store, 0, NULL, NULL, NULL, &err));
    for (int i = 0; i < told; i++) {
        char id[16];
        tide_session *s;

        snprintf(id, sizeof id, "s%d", i);
        OK(tide_session_open(store, id, TIDE_SESSION_APPEND, &s, &err)); /* nobody holds it */
        put(s, "message.user", SAID);
        tide_session_close(s);
    }
    tide_store_close(store);
    sim_free(sim);
    return fired;
}

static void after_a_cut_at_any_operation_nobody_holds_what_ended(void **state)
{
    static const enum sim_fault faults[] = {SIM_KILL, SIM_POWER_CUT, SIM_EIO};

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        uint64_t n = 1;

        while (n < 2000 && cut_at(faults[i], n))
            n++;
        assert_in_range(n, 20, 1999);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sessions_are_made_together_whatever_stands_between_them),
        CASE(what_depends_on_one_before_it_stays_behind_it),
        CASE(a_short_run_is_shown_once),
        CASE(what_goes_on_is_shown_soon),
        CASE(it_is_shown_by_itself),
        CASE(nothing_is_owed_when_the_store_is_closed),
        CASE(one_that_was_taken_away_is_not_shown_as_it_was),
        CASE(the_file_of_a_lease_is_used_again),
        CASE(none_is_left_when_the_store_is_closed),
        CASE(one_that_is_gone_or_old_is_not_used),
        CASE(a_lease_that_names_another_session_was_given_back),
        cmocka_unit_test(after_a_cut_at_any_operation_nobody_holds_what_ended),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
