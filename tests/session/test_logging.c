/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an embedder's sink hears of runs, steps, checkpoints and recovery, at which level; of a store in trouble too. No secret
 * is in it, and threads may log at once.
 */
#include <pthread.h>

#include "base/log.h"
#include "session/runs.h"
#include "session/session.h"

/* ---- a sink ---- */

struct record {
    enum tide_log_level level;
    char message[100], fields[400];
};

static struct {
    pthread_mutex_t lock;
    struct record records[400];
    size_t n;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hear(void *arg, const struct tide_log_record *r)
{
    struct record *to;

    (void)arg;
    pthread_mutex_lock(&heard.lock);
    assert_true(heard.n < sizeof heard.records / sizeof heard.records[0]);
    to = &heard.records[heard.n++];
    *to = (struct record){.level = r->level};
    snprintf(to->message, sizeof to->message, "%s", r->message);
    for (size_t i = 0; i < r->fields_len; i++)
        snprintf(to->fields + strlen(to->fields), sizeof to->fields - strlen(to->fields), "%s=%s;", r->fields[i].key,
                 r->fields[i].value);
    pthread_mutex_unlock(&heard.lock);
}

static void listen(enum tide_log_level level)
{
    heard.n = 0;
    tide_log_set(level, hear, NULL);
}

static int stop_listening(void **state)
{
    tide_log_set(TIDE_LOG_OFF, NULL, NULL);
    return tear_down(state);
}

/* How many of these there were: of this level, with this field ("key=value;"; NULL: any). */
static int count(enum tide_log_level level, const char *message, const char *field)
{
    int n = 0;

    for (size_t i = 0; i < heard.n; i++)
        n += heard.records[i].level == level && strcmp(heard.records[i].message, message) == 0 &&
             (!field || strstr(heard.records[i].fields, field));
    return n;
}

/* ---- a store that refuses ---- */

static struct store_ops refusing;
static const struct store_ops *plain;
static int refusals; /* of the next commits; -1: of all */

static void refuse_commit(struct store *store, struct batch *list)
{
    if (!refusals) {
        plain->commit(store, list);
        return;
    }
    refusals -= refusals > 0;
    for (struct batch *b = list; b; b = b->next)
        b->code = tide_fail(&b->err, TIDE_FULL, "no space left");
}

static void no_sleep(struct env *env, int ms)
{
    (void)env;
    (void)ms;
}

static void refuse_commits(struct fixture *f, int n)
{
    struct store *store = store_of(f->store);

    f->ops.sleep_ms = no_sleep;
    plain = plain ? plain : store->ops;
    refusing = *plain;
    refusing.commit = refuse_commit;
    store->ops = &refusing;
    refusals = n;
}

static int trouble_told;

static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    (void)arg;
    (void)waited_ms;
    trouble_told += why != NULL;
    return 0;
}

/* ---- tests ---- */

static void a_run_is_logged_at_its_levels(void **state)
{
    struct fixture *f = *state;

    for (int level = TIDE_LOG_OFF; level <= TIDE_LOG_DEBUG; level++) {
        char id[TIDE_ID_SIZE] = "";
        tide_session *s = NULL;
        struct doing d = {0};
        tide_run *r;
        size_t wanted[] = {0, 0, 0, 2, 5};

        OK(tide_session_create(f->store, NULL, NULL, &s, &err));
        listen((enum tide_log_level)level);
        r = start(s);
        step(r, "a", TIDE_EFFECT_ONCE, &d);
        OK(tide_run_checkpoint(r, 0, NULL, id, &err));
        finish(r);
        assert_int_equal(heard.n, wanted[level]);
        if (level == TIDE_LOG_DEBUG) {
            assert_int_equal(count(TIDE_LOG_INFO, "run started", tide_session_id(s)), 1);
            assert_int_equal(count(TIDE_LOG_DEBUG, "step started", "step=a;"), 1);
            assert_int_equal(count(TIDE_LOG_DEBUG, "step ended", "outcome=completed;"), 1);
            assert_int_equal(count(TIDE_LOG_DEBUG, "checkpoint", id), 1);
            assert_int_equal(count(TIDE_LOG_INFO, "run ended", "outcome=completed;"), 1);
        }
        tide_session_close(s);
    }
}

static void what_fails_is_worse(void **state)
{
    const struct tide_run_result failed = {
        .size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED, .error_code = "E_MINE", .error_message = "it broke"};
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "a", .effect = TIDE_EFFECT_PURE};
    const struct tide_step_result broke = {
        .size = sizeof broke, .outcome = TIDE_OUTCOME_FAILED, .error_code = "E_STEP"};
    struct tide_step_answer answer;
    tide_session *s = create(*state);
    tide_run *r;

    listen(TIDE_LOG_WARN);
    r = start(s);
    OK(tide_step_ask(r, &spec, &answer, &err));
    OK(tide_step_begin(r, "a", 0, 0, &err));
    OK(tide_step_end(r, "a", &broke, NULL, &err));
    OK(tide_run_end(r, &failed, &err));
    assert_int_equal(count(TIDE_LOG_WARN, "step ended", "outcome=failed;error=E_STEP;"), 1);
    assert_int_equal(count(TIDE_LOG_ERROR, "run ended", "code=E_MINE;why=it broke;"), 1);
    assert_int_equal(heard.n, 2);
    tide_run_close(r);
    tide_session_close(s);
}

static void a_wait_and_a_resume_are_logged(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options ask = {.size = sizeof ask, .name = "w", .kind = TIDE_WAIT_INPUT};
    char token[TIDE_TOKEN_SIZE];
    struct tide_text answer = {NULL, 0};
    const struct tide_run_options opt = {.size = sizeof opt, .input = "1"};
    tide_session *s = create(f);
    tide_run *r;

    listen(TIDE_LOG_INFO);
    r = start(s);
    GIVES(TIDE_WAITING, tide_run_wait(r, &ask, &answer, token, &err));
    tide_run_close(r);
    finish(resume(s, &opt));
    assert_int_equal(count(TIDE_LOG_INFO, "run waits", "for=input;name=w;"), 1);
    assert_int_equal(count(TIDE_LOG_INFO, "run resumed", "session=s;"), 1);
    assert_int_equal(heard.n, 4);
    tide_session_close(s);
}

static void a_checkpoint_that_fails_is_a_warning(void **state)
{
    struct fixture *f = *state;
    const struct tide_new_checkpoint in = {.size = sizeof in, .type = TIDE_CHECKPOINT_SAFE_POINT};
    tide_session *s = create(f);
    char id[TIDE_ID_SIZE];

    listen(TIDE_LOG_WARN);
    refuse_commits(f, -1);
    GIVES(TIDE_FULL, tide_checkpoint_save(s, &in, id, &err));
    refusals = 0;
    assert_int_equal(count(TIDE_LOG_WARN, "checkpoint failed", "type=safe_point;code=FULL;"), 1);
    assert_int_equal(heard.n, 1);
    tide_session_close(s);
}

static void a_full_disk_is_told_when_it_begins_and_when_it_is_over(void **state)
{
    struct fixture *f = *state;
    const struct tide_run_options opt = {.size = sizeof opt, .trouble = on_trouble};
    tide_session *s = create(f);
    struct doing d = {0};
    tide_run *r = NULL;

    OK(tide_run_start(s, &opt, &r, &err));
    listen(TIDE_LOG_WARN);
    trouble_told = 0;
    refuse_commits(f, 3);
    step(r, "a", TIDE_EFFECT_ONCE, &d);
    assert_int_equal(trouble_told, 3);
    assert_int_equal(count(TIDE_LOG_WARN, "paused until the store can be written", "session=s;code=FULL;"), 1);
    assert_int_equal(count(TIDE_LOG_WARN, "the store can be written again", "session=s;"), 1);
    assert_int_equal(heard.n, 2);
    finish(r);
    tide_session_close(s);
}

static void going_on_in_memory_is_told_as_well(void **state)
{
    struct fixture *f = *state;
    const struct tide_run_options opt = {.size = sizeof opt, .flags = TIDE_RUN_CONTINUE, .trouble = on_trouble};
    tide_session *s = create(f);
    tide_run *r = NULL;

    OK(tide_run_start(s, &opt, &r, &err));
    listen(TIDE_LOG_WARN);
    refuse_commits(f, 1);
    OK(tide_run_set(r, "k", "1", &err));
    assert_true(tide_run_is_degraded(r));
    assert_int_equal(count(TIDE_LOG_WARN, "continuing in memory until the store can be written", "code=FULL;"), 1);
    finish(r);
    assert_int_equal(count(TIDE_LOG_WARN, "the store can be written again", "session=s;"), 1);
    tide_session_close(s);
}

static void what_is_recovered_is_logged_and_a_dry_run_is_not(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options ask = {
        .size = sizeof ask, .name = "w", .kind = TIDE_WAIT_INPUT, .deadline_ms = now() + 1000};
    struct tide_text answer = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];
    tide_session *s = create(f);
    tide_run *r = start(s);

    GIVES(TIDE_WAITING, tide_run_wait(r, &ask, &answer, token, &err));
    tide_run_close(r);
    tide_session_close(s);
    until(now() + 2000);
    listen(TIDE_LOG_INFO);
    OK(tide_store_recover(f->store, TIDE_RECOVER_DRY_RUN, NULL, NULL, NULL, &err));
    assert_int_equal(heard.n, 0);
    OK(tide_store_recover(f->store, 0, NULL, NULL, NULL, &err));
    assert_int_equal(count(TIDE_LOG_INFO, "recovered", "session=s;action=timed_out;"), 1);
    OK(tide_store_recover(f->store, 0, NULL, NULL, NULL, &err));
    assert_int_equal(heard.n, 1);
}

static void a_secret_of_any_open_store_is_in_no_record(void **state)
{
    struct fixture *f = *state;
    const struct tide_run_result failed = {
        .size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED, .error_message = "no: hunter2hunter2, other-secret"};
    tide_session *s = create(f);
    tide_run *r = start(s);

    OK(tide_store_add_secret(f->store, "ONE", "hunter2hunter2", 14, &err));
    OK(tide_store_add_secret(f->other, "TWO", "other-secret", 12, &err));
    listen(TIDE_LOG_DEBUG);
    OK(tide_run_end(r, &failed, &err));
    assert_int_equal(count(TIDE_LOG_ERROR, "run ended", "why=no: [redacted:ONE], [redacted:TWO];"), 1);
    tide_run_close(r);
    tide_session_close(s);
}

enum { THREADS = 4, RUNS = 10 };

static void *work(void *arg)
{
    tide_session *s = NULL;

    OK(tide_session_create(arg, NULL, NULL, &s, &err));
    for (int i = 0; i < RUNS; i++)
        finish(start(s));
    tide_session_close(s);
    return NULL;
}

static void runs_of_several_threads_and_stores_log_to_one_sink(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];

    listen(TIDE_LOG_INFO);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, i % 2 ? f->store : f->other), 0);
    for (int i = 0; i < 50; i++) /* another level meanwhile, for what is not here */
        tide_log_set(i % 2 ? TIDE_LOG_INFO : TIDE_LOG_DEBUG, hear, NULL);
    tide_log_set(TIDE_LOG_INFO, hear, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count(TIDE_LOG_INFO, "run started", NULL), THREADS * RUNS);
    assert_int_equal(count(TIDE_LOG_INFO, "run ended", "outcome=completed;"), THREADS * RUNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, stop_listening)
        TEST(a_run_is_logged_at_its_levels),
        TEST(what_fails_is_worse),
        TEST(a_wait_and_a_resume_are_logged),
        TEST(a_checkpoint_that_fails_is_a_warning),
        TEST(a_full_disk_is_told_when_it_begins_and_when_it_is_over),
        TEST(going_on_in_memory_is_told_as_well),
        TEST(what_is_recovered_is_logged_and_a_dry_run_is_not),
        TEST(a_secret_of_any_open_store_is_in_no_record),
        TEST(runs_of_several_threads_and_stores_log_to_one_sink),
    };

    return cmocka_run_group_tests_name("session/logging", tests, NULL, NULL);
}
