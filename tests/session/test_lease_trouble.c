/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease that could not be taken is nobody's, and one who looks before a run begins is as patient as the run. The holder of a session
 * was killed in its run; the disk fails from the n-th sync on, while who goes on with the session and recovery try in turns. It may
 * be taken at every try, and when the disk works again it is. (SQLite does that in its transaction, and syncs by itself.)
 */
#include "env/sim.h"
#include "engine/user_store.h"
#include "kit.h"
#include "session/session.h"
#include "sim/sim_store.h"

#define ROUNDS 3
#define SYNCS 5 /* that it takes to go on with it, in files */
#define LASTS_MS 60000
#define PROGRAM "{\"argv\":[\"x\"],\"cwd\":\"/\"}"
#define GRAPH                                                                                                          \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return "  \
    "{x = 1}\",\"outputs\":[\"x\"]}]}"

static void run_graph(tide_session *s)
{
    const struct tide_graph_options opt = {.size = sizeof opt};
    struct tide_graph_result result = {0};
    tide_graph *g = NULL;

    OK(tide_graph_parse(GRAPH, strlen(GRAPH), NULL, NULL, NULL, &g, &err));
    OK(tide_graph_run(s, g, &opt, &result, &err));
    tide_text_done(&result.memory);
    tide_graph_free(g);
}

/* A disk with a session that its killed holder left in a run of a program, behind one of a graph. */
static struct sim_image *prepare(void)
{
    const struct tide_run_options opt = {.size = sizeof opt, .fields = PROGRAM};
    struct sim *sim = sim_new(1);
    struct sim_proc *proc = sim_proc_start(sim);
    tide_store *store = sim_store_open(proc, 0, NULL);
    struct sim_image *image;
    tide_session *s = NULL;
    tide_run *run = NULL;

    assert_non_null(store);
    OK(tide_session_create(store, "s", NULL, &s, &err));
    run_graph(s);
    OK(tide_run_start(s, &opt, &run, &err));
    sim_proc_kill(proc);
    tide_run_close(run);
    tide_session_close(s);
    tide_store_close(store);
    image = sim_image_take(sim);
    sim_free(sim);
    return image;
}

/* A disk that can be read, but from the n-th sync on, of a file or of a directory, nothing is known to last. */
static struct {
    const struct env_ops *plain;
    struct env_ops ops;
    uint64_t seen, from; /* 0: never */
    bool names;          /* those of directories fail, and of files the two that put a lease right, or give it back */
} disk;

static enum tide_code sync_file(struct env_file *f, struct tide_err *err)
{
    bool due = disk.from && ++disk.seen >= disk.from;

    if (due && (!disk.names || disk.seen <= disk.from + 2))
        return tide_fail(err, TIDE_IO, "the disk fails");
    return disk.plain->sync(f, err);
}

static enum tide_code sync_dir(struct env *env, const char *path, struct tide_err *err)
{
    if (disk.from && ++disk.seen >= disk.from)
        return tide_fail(err, TIDE_IO, "the disk fails");
    return disk.plain->sync_dir(env, path, err);
}

static void fail_from(struct env *env, bool names, uint64_t n)
{
    disk.names = names;
    disk.plain = env->ops;
    disk.ops = *env->ops;
    disk.ops.sync = sync_file;
    disk.ops.sync_dir = sync_dir;
    disk.seen = 0;
    disk.from = n;
    env->ops = &disk.ops;
}

static enum tide_code note(tide_session *s, struct tide_err *ret_why)
{
    const struct tide_new_event ev = {"note.made", "{\"text\":\"as it came\"}", 0};

    return tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, ret_why);
}

/* False: the n-th sync never came. */
static bool tries(const struct sim_image *image, bool names, uint64_t n)
{
    struct sim *sim = sim_new_from(2, image);
    struct sim_proc *proc = sim_proc_start(sim);
    tide_store *store = sim_store_open(proc, 0, NULL);
    enum tide_code code = TIDE_IO;
    struct tide_recovery found;
    struct tide_err why = {0};
    tide_session *s = NULL;

    assert_non_null(store);
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    fail_from(sim_proc_env(proc), names, n);
    for (int i = 0; i < ROUNDS && code; i++) {
        code = note(s, &why);
        if (code && !session_is_trouble(code))
            fail_msg("sync %llu, round %d: %s", (unsigned long long)n, i, why.msg);
        if (code && !names)
            (void)!tide_store_recover(store, 0, NULL, NULL, &found, NULL);
    }
    disk.from = 0;
    if (code && note(s, &why))
        fail_msg("sync %llu, when it is over: %s", (unsigned long long)n, why.msg);
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    tide_session_close(s);
    tide_store_close(store);
    sim_free(sim);
    return disk.seen >= n;
}

static void what_could_not_be_taken_may_be_taken_when_the_disk_works(void **state)
{
    struct sim_image *image = prepare();

    (void)state;
    for (int names = 0; names < 2; names++)
        for (uint64_t n = 1; n <= SYNCS; n++)
            if (!tries(image, names, n) && on_files())
                fail_msg("there was no sync %llu", (unsigned long long)n);
    sim_image_free(image);
}

/* ---- what is looked at before it goes on ---- */

struct watch {
    struct sim *sim;
    int64_t since_ms;
    int troubles, passed;
};

static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct watch *w = arg;

    w->troubles += why != NULL;
    w->passed += why == NULL;
    if (why && waited_ms >= LASTS_MS)
        sim_fault_at(w->sim, SIM_NO_FAULT, 1, false);
    return 0;
}

/* As a resume looks at what it is to go on with. */
static void look(tide_store *store, const struct held *held)
{
    const struct tide_session_info *info = NULL;
    struct tide_text program = {NULL, 0};
    tide_session *s = NULL;
    tide_graph *g = NULL;

    OK(held_open(held, store, "s", &s, &err));
    OK(tide_session_check_trust(s, &err));
    OK(tide_session_get_info(s, &info, &err));
    assert_int_equal(info->status, TIDE_STATUS_INTERRUPTED_STARTUP);
    OK(tide_session_get_program(s, &program, &err));
    assert_non_null(strstr(program.ptr, "\"argv\":[\"x\"]"));
    OK(tide_graph_load(s, &g, &err));
    tide_graph_free(g);
    tide_text_done(&program);
    tide_session_close(s);
}

/* False: the n-th read never came. */
static bool looks(const struct sim_image *image, uint64_t n)
{
    struct watch w = {.sim = sim_new_from(2, image)};
    const struct held held = {.told = on_trouble, .arg = &w};
    tide_store *store = sim_store_open(sim_proc_start(w.sim), 0, NULL);
    bool fired;

    assert_non_null(store);
    sim_fault_at(w.sim, SIM_READ_FAILS, n, true);
    look(store, &held);
    fired = w.troubles > 0 || sim_fault_fired(w.sim);
    sim_fault_at(w.sim, SIM_NO_FAULT, 1, false);
    assert_int_equal(w.troubles > 0, w.passed > 0);
    tide_store_close(store);
    sim_free(w.sim);
    return fired;
}

static void reads_that_fail_before_a_run_goes_on_are_waited_for(void **state)
{
    struct sim_image *image = prepare();
    uint64_t n = 1;

    (void)state;
    while (looks(image, n) && n < 1000)
        n++;
    assert_in_range(n, on_files() ? 5 : 1, 999);
    sim_image_free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_could_not_be_taken_may_be_taken_when_the_disk_works),
        cmocka_unit_test(reads_that_fail_before_a_run_goes_on_are_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
