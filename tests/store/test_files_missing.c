/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session are taken away, each alone and any of them together: it reads as it was, or is missed by name. */
#include <sys/wait.h>

#include "kit.h"

/* idle: given back; open: given back with an open run; held: its process died with the lease that it was made with. */
static const char *const ids[] = {"idle", "open", "held"};

#define N_IDS (sizeof ids / sizeof ids[0])
#define EVENTS 4

static const struct part {
    const char *folder, *suffix;
    bool tells; /* that there is a session */
} parts[] = {
    {"sessions", ".messages.jsonl", true}, {"sessions", ".mark", true}, {"sessions", ".json", true},
    {"sessions", ".tokens.json", true},    {"live", ".json", true},     {"cache", ".head", false},
};

#define N_PARTS (sizeof parts / sizeof parts[0])

struct fixture {
    char dir[256], url[300], kept[300];
};

static void make(tide_store *store, const char *id)
{
    tide_session *s = NULL;

    OK(tide_session_create(store, id, "{\"title\":\"a title\"}", &s, &err));
    put(s, "message.user", "{\"content\":\"one\"}");
    put(s, "memory.set", "{\"values\":{\"k\":1}}");
    put(s, strcmp(id, "open") == 0 ? "run.started" : "note.made", "{\"run_id\":\"run_1\"}");
    if (strcmp(id, "held") != 0)
        tide_session_close(s);
}

static void copy(const char *from, const char *to)
{
    char command[1000];

    snprintf(command, sizeof command, "rm -rf '%s' && cp -a '%s' '%s'", to, from, to);
    assert_int_equal(system(command), 0); /* NOLINT: our own names */
}

static int set_up(void **state)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct fixture *f = fixture_new(sizeof *f);
    int status = 0;
    pid_t pid;

    snprintf(f->url, sizeof f->url, "files:%s/s", f->dir);
    snprintf(f->kept, sizeof f->kept, "%s/kept", f->dir);
    pid = fork();
    if (pid == 0) {
        tide_store *store = NULL;

        OK(tide_store_open(f->url, &opt, &store, &err));
        for (size_t i = 0; i < N_IDS; i++)
            make(store, ids[i]);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    copy(store_path(f->url), f->kept);
    *state = f;
    return 0;
}

/* ---- What is missed --------------------------------------------------------------------------------------------- */

static int count(void *arg, const struct tide_event *ev)
{
    ++*(int *)arg;
    return ev->seq != *(int *)arg;
}

/* TIDE_OK only when all of it is there. */
static enum tide_code read_it(tide_store *store, const char *id)
{
    tide_session *s = NULL;
    int n = 0;
    enum tide_code code = tide_session_open(store, id, TIDE_SESSION_READ, &s, NULL);

    code = code ? code : tide_session_verify(s, NULL, NULL, NULL, NULL);
    code = code ? code : tide_session_read(s, 0, 0, 0, count, &n, NULL);
    tide_session_close(s);
    return code ? code : n == EVENTS ? TIDE_OK : TIDE_FAILED;
}

static int find_listed(void *arg, const struct tide_session_info *info)
{
    const char **id = arg;

    if (strcmp(info->id, *id) == 0)
        *id = "";
    return 0;
}

static bool is_listed(tide_store *store, const char *id)
{
    const char *looked = id;

    OK(tide_session_list(store, NULL, find_listed, &looked, &err));
    return !looked[0];
}

static void note_problem(void *arg, const char *where, const char *what)
{
    const char **id = arg;

    (void)what;
    if (strncmp(where, *id, strlen(*id)) == 0)
        *id = "";
}

static bool check_names(tide_store *store, const char *id)
{
    const char *looked = id;
    struct tide_err why;

    return tide_store_check(store, 0, NULL, note_problem, &looked, &why) == TIDE_CORRUPT && !looked[0];
}

/* *ret_there: all of them were there; *ret_all: nothing is left that tells. */
static void take_away(struct fixture *f, const char *id, unsigned which, bool *ret_there, bool *ret_all)
{
    unsigned gone = 0;

    copy(f->kept, store_path(f->url));
    *ret_all = true;
    for (size_t i = 0; i < N_PARTS; i++) {
        char path[600];

        snprintf(path, sizeof path, "%s/%s/%s%s", store_path(f->url), parts[i].folder, id, parts[i].suffix);
        if (which >> i & 1 && unlink(path) == 0)
            gone |= 1u << i;
        *ret_all &= !parts[i].tells || access(path, F_OK) != 0;
    }
    *ret_there = gone == which;
}

static void any_files_of_a_session_that_are_gone_are_missed_or_do_no_harm(void **state)
{
    struct fixture *f = *state;
    int failed = 0, missed = 0;

    for (unsigned k = 0; k < N_IDS << N_PARTS; k++) {
        const char *id = ids[k >> N_PARTS];
        unsigned which = k & ((1u << N_PARTS) - 1);
        tide_store *store = NULL;
        enum tide_code code;
        bool told, there, all;

        take_away(f, id, which, &there, &all);
        if (!there)
            continue; /* it has not all of them */
        OK(tide_store_open(f->url, NULL, &store, &err));
        code = read_it(store, id);
        told = check_names(store, id);
        missed += told;
        if (all ? code != TIDE_NOT_FOUND || told
                : (code == TIDE_OK) == told || (code != TIDE_NOT_FOUND && !is_listed(store, id)) ||
                      (code && code != TIDE_CORRUPT && code != TIDE_NOT_FOUND)) {
            print_error("'%s' without %#x: %s, %s\n", id, which, tide_code_name(code), told ? "named" : "not named");
            failed++;
        }
        tide_store_close(store);
    }
    assert_int_equal(failed, 0);
    assert_true(missed > 40);
}

/* Recovery says so as well; it is not made anew; what is left of it can be deleted, and then it can. */
static void a_session_of_which_only_the_lease_is_left_is_missed_everywhere(void **state)
{
    struct fixture *f = *state;
    unsigned all = 0xf | 1u << 5;

    for (size_t i = 1; i < N_IDS; i++) {
        tide_session *s = NULL;
        tide_store *store = NULL;
        struct tide_recovery found;
        bool there, none;

        take_away(f, ids[i], all, &there, &none);
        OK(tide_store_open(f->url, NULL, &store, &err));
        HINTS(TIDE_CORRUPT, TIDE_ACTION_DELETE, tide_store_recover(store, 0, NULL, NULL, &found, &err));
        HINTS(TIDE_CORRUPT, TIDE_ACTION_DELETE, tide_session_open(store, ids[i], 0, &s, &err));
        ABOUT_SESSION(TIDE_CORRUPT, ids[i], tide_session_create(store, ids[i], "{}", &s, &err));
        OK(tide_session_delete(store, ids[i], &err));
        OK(tide_store_check(store, 0, NULL, NULL, NULL, &err));
        GIVES(TIDE_NOT_FOUND, tide_session_open(store, ids[i], 0, &s, &err));
        OK(tide_session_create(store, ids[i], "{}", &s, &err));
        tide_session_close(s);
        tide_store_close(store);
    }
}

/* Whatever else stands in the directory is made anew, or does without. */
static void files_of_the_store_that_are_gone_do_no_harm(void **state)
{
    static const char *const gone[] = {"lock", "changes", "store.json", "boots/*", "live/*", "cache/*", ".gitignore"};
    struct fixture *f = *state;

    for (size_t k = 0; k < sizeof gone / sizeof gone[0]; k++) {
        char command[900];
        tide_store *store = NULL;

        copy(f->kept, store_path(f->url));
        snprintf(command, sizeof command, "rm %s/%s", store_path(f->url), gone[k]);
        assert_int_equal(system(command), 0); /* NOLINT: our own names */
        OK(tide_store_open(f->url, NULL, &store, &err));
        for (size_t i = 0; i < N_IDS; i++)
            OK(read_it(store, ids[i]));
        OK(tide_store_check(store, 0, NULL, NULL, NULL, &err));
        tide_store_close(store);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(any_files_of_a_session_that_are_gone_are_missed_or_do_no_harm),
        CASE(a_session_of_which_only_the_lease_is_left_is_missed_everywhere),
        CASE(files_of_the_store_that_are_gone_do_no_harm),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
