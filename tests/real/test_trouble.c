/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run on a disk that is really full. By default it is held where it is and goes on by itself; one that was told to
 * continue does pure work in memory, flagged, and nothing else; if the lease is another's by then, what was not stored is
 * kept aside and named.
 */
#include "disk.h"
#include "proc.h"

static char dir[256], path[300], fill_path[300];
static tide_store *store;
static tide_session *session;

struct watching {
    int calls, over;
    int free_at; /* the call at which there is room again; 0: never */
    int give_up; /* the call at which to give up; 0: never */
};

static int watch(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct watching *w = arg;

    (void)waited_ms;
    if (!why) {
        w->over++;
        return 0;
    }
    if (++w->calls == w->free_at)
        assert_int_equal(unlink(fill_path), 0);
    return w->give_up && w->calls >= w->give_up;
}

static tide_run *start(struct watching *w, unsigned flags)
{
    const struct tide_run_options opt = {.size = sizeof opt, .flags = flags, .trouble = watch, .trouble_arg = w};
    tide_run *run = NULL;

    OK(tide_run_start(session, &opt, &run, &err));
    return run;
}

/* Until even what the store has in reserve within its files is used up, to the last line that is as short as any. */
static void fill_up(void)
{
    static const int widths[] = {3000, 1};
    char body[3100];
    struct tide_new_event ev = {"message.user", body, 0};

    disk_fill(fill_path);
    for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
        int refused = 0;

        snprintf(body, sizeof body, "{\"content\":\"%0*d\"}", widths[k], 1);
        for (int i = 0; i < 2000 && refused < 3; i++)
            refused += tide_session_append(session, TIDE_APPEND_ANY, &ev, 1, NULL, NULL) != TIDE_OK;
        assert_int_equal(refused, 3);
    }
}

static enum tide_code fine(void *arg, const char *key, struct tide_text *ret, struct tide_err *err)
{
    (void)key;
    (void)err;
    ++*(int *)arg;
    ret->ptr = strdup("\"done\"");
    ret->len = 6;
    return TIDE_OK;
}

static enum tide_code step(tide_run *run, const char *name, enum tide_effect effect, int *times, struct tide_err *err)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = name, .effect = effect};
    struct tide_text result = {NULL, 0};
    enum tide_code code = tide_run_step(run, &spec, fine, times, &result, err);

    if (!code)
        assert_string_equal(result.ptr, "\"done\"");
    tide_text_done(&result);
    return code;
}

struct counting {
    const char *kind, *with;
    int n;
};

static int count(void *arg, const struct tide_event *ev)
{
    struct counting *c = arg;

    c->n += strcmp(ev->kind, c->kind) == 0 && strstr(ev->body, c->with);
    return 0;
}

static int events(const char *kind, const char *with)
{
    struct counting c = {kind, with, 0};
    tide_session *s = NULL;

    OK(tide_session_open(store, "s", TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 1, 0, count, &c, &err));
    tide_session_close(s);
    return c.n;
}

static void a_run_is_held_and_goes_on_by_itself(void **unused)
{
    struct watching w = {.free_at = 3};
    tide_run *run = start(&w, 0);
    int times = 0;

    (void)unused;
    fill_up();
    OK(step(run, "once", TIDE_EFFECT_ONCE, &times, &err));
    assert_int_equal(times, 1);
    assert_int_equal(w.calls, 3);
    assert_int_equal(w.over, 1);
    assert_int_equal(events("tool.started", "\"once\""), 1);
    assert_int_equal(events("tool.completed", "\"once\""), 1);
    OK(tide_run_end(
        run, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_COMPLETED},
        &err));
    tide_run_close(run);
}

static void a_caller_that_gives_up_is_told_and_nothing_was_done(void **unused)
{
    struct watching w = {.give_up = 2};
    tide_run *run = start(&w, 0);
    int times = 0;

    (void)unused;
    fill_up();
    GIVES(TIDE_FULL, step(run, "never", TIDE_EFFECT_ONCE, &times, &err));
    assert_int_equal(times, 0);
    assert_int_equal(unlink(fill_path), 0);
    OK(step(run, "never", TIDE_EFFECT_ONCE, &times, &err));
    assert_int_equal(times, 1);
    OK(tide_run_end(
        run, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_COMPLETED},
        &err));
    tide_run_close(run);
}

static void pure_work_goes_on_in_memory_flagged_and_is_flushed_in_order(void **unused)
{
    struct watching w = {.give_up = 0};
    tide_run *run = start(&w, TIDE_RUN_CONTINUE);
    struct tide_text value = {NULL, 0};
    int pure = 0, once = 0;

    (void)unused;
    fill_up();
    for (int i = 0; i < 5; i++)
        OK(step(run, "think", TIDE_EFFECT_PURE, &pure, &err));
    OK(tide_run_set(run, "thought", "\"deep\"", &err));
    OK(tide_run_get(run, "thought", &value, &err));
    assert_string_equal(value.ptr, "\"deep\"");
    tide_text_done(&value);
    assert_true(tide_run_is_degraded(run));
    assert_int_equal(pure, 5);
    w.give_up = w.calls + 2;
    GIVES(TIDE_FULL, step(run, "act", TIDE_EFFECT_ONCE, &once, &err)); /* no effect begins before it is on disk */
    GIVES(TIDE_FULL, step(run, "act", TIDE_EFFECT_IDEMPOTENT, &once, &err));
    assert_int_equal(once, 0);
    assert_int_equal(unlink(fill_path), 0);
    OK(step(run, "act", TIDE_EFFECT_ONCE, &once, &err));
    assert_false(tide_run_is_degraded(run));
    assert_int_equal(once, 1);
    assert_int_equal(events("tool.completed", "\"durability\":\"degraded\""), 5);
    assert_int_equal(events("memory.set", "\"durability\":\"degraded\""), 1);
    assert_int_equal(events("tool.started", "\"act\""), 1);
    tide_run_close(run);
    OK(tide_run_resume(session, NULL, NULL, &run, &err)); /* flushed work answers like any other */
    for (int i = 0; i < 5; i++)
        OK(step(run, "think", TIDE_EFFECT_PURE, &pure, &err));
    assert_int_equal(pure, 5);
    OK(tide_run_end(
        run, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_COMPLETED},
        &err));
    tide_run_close(run);
}

static void what_was_not_stored_is_kept_aside_when_the_lease_is_lost(void **unused)
{
    struct watching w = {.give_up = 0};
    tide_run *run = start(&w, TIDE_RUN_CONTINUE);
    tide_store *other = NULL;
    struct tide_err why = {0};
    enum tide_cancelled how;
    char *from, *to;
    int pure = 0;

    (void)unused;
    OK(tide_store_open(path, NULL, &other, &err));
    fill_up();
    OK(step(run, "think", TIDE_EFFECT_PURE, &pure, &err));
    assert_true(tide_run_is_degraded(run));
    assert_int_equal(unlink(fill_path), 0);
    OK(tide_session_cancel(other, "s", NULL, NULL, 20, &how, &err));
    assert_int_equal(how, TIDE_CANCEL_FORCED);
    assert_int_equal(step(run, "act", TIDE_EFFECT_ONCE, &pure, &why), TIDE_FENCED);
    from = strstr(why.msg, "kept in '");
    assert_non_null(from);
    from += strlen("kept in '");
    to = strchr(from, '\'');
    *to = 0;
    assert_int_equal(access(from, R_OK), 0);
    assert_int_equal(unlink(from), 0);
    assert_int_equal(pure, 1);
    tide_run_close(run);
    tide_store_close(other);
    assert_int_equal(events("tool.started", "\"degraded\""), 0);
}

static int set_up(void **unused)
{
    (void)unused;
    OK(tide_store_open(
        path, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE},
        &store, &err));
    OK(tide_session_create(store, "s", NULL, &session, &err));
    return 0;
}

static int tear_down(void **unused)
{
    char command[400];

    (void)unused;
    tide_session_close(session);
    tide_store_close(store);
    snprintf(command, sizeof command, "rm -rf '%s'/*", dir);
    return system(command); /* NOLINT(cert-env33-c): our own mkdtemp name */
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_run_is_held_and_goes_on_by_itself),
        T(a_caller_that_gives_up_is_told_and_nothing_was_done),
        T(pure_work_goes_on_in_memory_flagged_and_is_flushed_in_order),
        T(what_was_not_stored_is_kept_aside_when_the_lease_is_lost),
    };
    int failed;

    snprintf(dir, sizeof dir, "/tmp/tidemark-trouble.XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    store_url_in(path, sizeof path, dir, "s");
    snprintf(fill_path, sizeof fill_path, "%s/fill", dir);
    if (!disk_make(dir)) {
        print_message("neither root nor user namespaces: skipped\n");
        rmdir(dir);
        return 77;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    umount(dir);
    rmdir(dir);
    return failed;
}
