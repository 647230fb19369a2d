/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nested loops that are cut behind every event and go on, and two of them on two threads in one session, with a lock that knows who
 * holds it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "agent/nested_runs.h"

/* ---- cut anywhere ---------------------------------------------------------------------------------------------------- */

static struct str digest_of_turn(struct arena *a, const struct log *log, int64_t turn)
{
    for (size_t i = 0; i < log->n; i++)
        if (str_eq(log->lines[i].kind, STR("llm.request")) && json_get_int(log->lines[i].json, STR("turn"), 0) == turn)
            return json_get_text(a, log->lines[i].json, STR("request_digest"));
    return STR("");
}

static const struct {
    const char *id, *word;
    int64_t turn;
} once[] = {{"call_t1_1", "b1", 1}, {"call_t3_2", "b2", 3}};

/* The last turn whose request has the same bytes: what follows an effect of which nobody knows is told so. */
static int64_t last_same_turn(const struct log *log, size_t n)
{
    for (size_t i = 0; i < 2; i++)
        if (log_count(log, 0, n, "tool.started", once[i].id) && !log_count(log, 0, n, "message.tool", once[i].id))
            return once[i].turn;
    return INT64_MAX;
}

static void check_cut(struct nest *k, const struct log *golden, size_t n)
{
    struct log *log = mem_zero(sizeof *log);
    struct arena a = ARENA_INIT;

    log_read(log, k->s);
    for (size_t i = 0; i < log->n; i++) {
        int64_t turn = json_get_int(log->lines[i].json, STR("turn"), 0);

        if (str_eq(log->lines[i].kind, STR("llm.request")) && turn <= last_same_turn(golden, n) &&
            !str_eq(json_get_text(&a, log->lines[i].json, STR("request_digest")), digest_of_turn(&a, golden, turn)))
            fail_msg("cut behind event %zu (%.*s): the request of turn %lld is another", n,
                     STR_ARG(golden->lines[n - 1].kind), (long long)turn);
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ledger_count(&k->w, once[i].word), !log_count(golden, 0, n, "tool.started", once[i].id));
    assert_int_equal(log_count(log, 0, log->n, "message.user", NULL), 2);
    assert_int_equal(log_count(log, 0, log->n, "message.assistant", NULL), 4);
    assert_int_equal(log_count(log, 0, log->n, "message.tool", NULL), 6);
    assert_int_equal(log_count(log, 0, log->n, "llm.error", NULL), 1); /* an attempt that failed is not made again */
    assert_int_equal(log_count(log, 0, log->n, "output.set", NULL),
                     2 + str_eq(golden->lines[n - 1].kind, STR("output.set"))); /* its call has no result yet */
    log_done(log);
    arena_done(&a);
}

static void cut_at(struct nest *k, const struct log *golden, size_t n, const char *outputs)
{
    const struct tide_run_options none = {.size = sizeof none};
    bool begun = log_count(golden, 0, n, "run.started", NULL) > 0;

    k->store = fresh_store(&k->w);
    world_reset(&k->w);
    keep_prefix(k->store, golden, n);
    OK(tide_session_open(k->store, "s", TIDE_SESSION_APPEND, &k->s, &err));
    if (begun)
        OK(tide_run_resume(k->s, &none, NULL, &k->run, &err));
    else
        OK(tide_run_start(k->s, &none, &k->run, &err));
    set_nested(k, "write", 1);
    want_two(k);
    RUNS_NESTED(TIDE_OK, k);
    assert_string_equal(buf_cstr(&k->result.outputs), outputs);
    check_cut(k, golden, n);
    tide_run_close(k->run);
    tide_session_close(k->s);
    tide_store_close(k->store);
}

static void cut_behind_any_event_it_ends_the_same(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    struct log *golden = mem_zero(sizeof *golden);
    char *outputs;

    (void)state;
    begin(&k, pages_script);
    want_two(&k);
    RUNS_NESTED(TIDE_OK, &k);
    outputs = mem_dup(buf_view(&k.result.outputs));
    OK(tide_session_flush(k.s, &err));
    log_read(golden, k.s);
    tide_run_close(k.run);
    tide_session_close(k.s);
    tide_store_close(k.store);
    assert_true(golden->n > 25);
    for (size_t n = 1; n <= golden->n; n++)
        cut_at(&k, golden, n, outputs);
    free(outputs);
    log_done(golden);
    nested_result_done(&k.result);
    dir_remove(k.w.dir);
}

/* ---- two at once ----------------------------------------------------------------------------------------------------- */

struct pair {
    struct nest nest;
    pthread_mutex_t mutex;
    pthread_t holder;
    atomic_bool held;
    int told, alternations;
    pthread_t before;
};

struct member {
    struct pair *pair;
    struct nested_agent nested;
    struct nested_result result;
    enum tide_code code;
};

static void lock(void *arg)
{
    struct pair *p = arg;

    assert_int_equal(pthread_mutex_lock(&p->mutex), 0);
    p->holder = pthread_self();
    p->held = true;
    if (p->before && !pthread_equal(p->before, p->holder))
        p->alternations++;
    p->before = p->holder;
}

static void unlock(void *arg)
{
    struct pair *p = arg;

    assert_true(p->held && pthread_equal(p->holder, pthread_self()));
    p->held = false;
    assert_int_equal(pthread_mutex_unlock(&p->mutex), 0);
}

static void hear_locked(void *arg, const struct tide_agent_event *e)
{
    struct pair *p = arg;

    (void)e;
    assert_true(p->held && pthread_equal(p->holder, pthread_self()));
    p->told++;
}

static bool never_stopped(void *arg)
{
    (void)arg;
    return false;
}

static void *sit_down(void *arg)
{
    struct member *t = arg;
    struct tide_err err = {0};

    lock(t->pair);
    t->code = nested_run(&t->nested, &t->result, &err);
    if (t->code)
        print_error("%s: %s\n", t->nested.node, err.msg);
    unlock(t->pair);
    return NULL;
}

/* The same ids from the provider, pieces of text, pauses, a rate limit and a hook: each gives the lock away. */
#define PAIR_TURN(word, key)                                                                                           \
    "{\"text\":\"one two three\",\"chunk_ms\":1,\"delay_ms\":2,\"fail\":[{\"status\":429}],\"calls\":[" BASH(          \
        "same", "echo " word " >> " LEDGER) "," SET(key, "\"" word "\"") "]}"
static const char pair_script[] =
    "{\"nodes\":{\"left\":[" PAIR_TURN("l1", "title") "," PAIR_TURN("l2", "title") "," PAIR_TURN(
        "l3", "body") "],\"right\":[" PAIR_TURN("r1", "title") "," PAIR_TURN("r2", "title") "," PAIR_TURN("r3",
                                                                                                          "body") "]}}";

static const char *const pair_nodes[] = {"left", "right"};
static const char *const pair_words[] = {"l1", "l2", "l3", "r1", "r2", "r3"};

/* Every turn and every call is one node's. */
static void check_apart(const struct log *log)
{
    struct arena a = ARENA_INIT;
    struct map turns = {0}, calls = {0};

    for (size_t i = 0; i < log->n; i++) {
        const struct json *json = log->lines[i].json;
        struct str node = json_get_text(&a, json, STR("node")), was;
        const char *turn = arena_printf(&a, "%lld", (long long)json_get_int(json, STR("turn"), 0));
        const char *mine = pair_nodes[str_eq(node, STR("right"))];

        if (!node.len)
            continue;
        assert_int_equal(json_get_int(json, STR("visit"), 0), 1);
        was = str_from(map_put(&turns, str_from(turn), (void *)(uintptr_t)mine));
        if (strcmp(turn, "0") != 0)
            assert_true(!was.len || str_eq(was, str_from(mine)));
        was = str_from(log->lines[i].call_id.len ? map_put(&calls, log->lines[i].call_id, (void *)(uintptr_t)mine)
                                                 : NULL);
        assert_true(!was.len || str_eq(was, str_from(mine)));
    }
    assert_int_equal(turns.live, 6 + 1); /* and those that name none */
    assert_int_equal(calls.live, 12);
    map_done(&turns, NULL);
    map_done(&calls, NULL);
    arena_done(&a);
}

/* The id of the call whose command leaves this word; its turn depends on who came first. */
static struct str call_with(struct arena *a, const struct log *log, const char *word)
{
    for (size_t i = 0; i < log->n; i++) {
        const struct json *calls = json_get(log->lines[i].json, STR("tool_calls"));

        if (calls && memmem(calls->raw.ptr, calls->raw.len, word, strlen(word)))
            return json_get_text(a, calls->first, STR("id"));
    }
    return STR("");
}

/* Cut while both were at work; then one goes on after the other. */
static void cut_both(struct nest *k, const struct log *golden, size_t n, const char *const outputs[2])
{
    const struct tide_run_options none = {.size = sizeof none};
    struct arena a = ARENA_INIT;

    k->store = fresh_store(&k->w);
    world_reset(&k->w);
    keep_prefix(k->store, golden, n);
    OK(tide_session_open(k->store, "s", TIDE_SESSION_APPEND, &k->s, &err));
    if (n > 1)
        OK(tide_run_resume(k->s, &none, NULL, &k->run, &err));
    else
        OK(tide_run_start(k->s, &none, &k->run, &err));
    for (int i = 0; i < 2; i++) {
        set_nested(k, pair_nodes[i], 1);
        want_two(k);
        RUNS_NESTED(TIDE_OK, k);
        assert_string_equal(buf_cstr(&k->result.outputs), outputs[i]);
    }
    for (size_t i = 0; i < 6; i++) {
        const char *id = arena_dup(&a, call_with(&a, golden, pair_words[i])).ptr;

        assert_int_equal(ledger_count(&k->w, pair_words[i]), !log_count(golden, 0, n, "tool.started", id));
    }
    assert_int_equal(count_kind(k->s, "message.assistant"), 6);
    arena_done(&a);
    tide_run_close(k->run);
    tide_session_close(k->s);
    tide_store_close(k->store);
}

static void two_of_them_share_a_session_on_two_threads(void **state)
{
    static const char *const outputs[] = {"{\"title\":\"l2\",\"body\":\"l3\"}", "{\"title\":\"r2\",\"body\":\"r3\"}"};
    struct log *log = mem_zero(sizeof *log);
    struct pair p = {.nest = {.result = NESTED_RESULT_INIT}, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct member members[2];
    pthread_t threads[2];

    (void)state;
    begin(&p.nest, pair_script);
    p.nest.w.opt.event = hear_locked;
    p.nest.w.opt.arg = &p;
    p.nest.w.opt.hooks = "[{\"name\":\"h\",\"event\":\"turn_start\",\"command\":[\"true\"]}]";
    for (int i = 0; i < 2; i++) {
        members[i] = (struct member){.pair = &p, .result = NESTED_RESULT_INIT};
        set_nested(&p.nest, pair_nodes[i], 1);
        want_two(&p.nest);
        members[i].nested = p.nest.nested;
        members[i].nested.turn_over = NULL;
        members[i].nested.lock = lock;
        members[i].nested.unlock = unlock;
        members[i].nested.stopped = never_stopped;
        members[i].nested.arg = &p;
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sit_down, &members[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(members[i].code, TIDE_OK);
        assert_string_equal(buf_cstr(&members[i].result.outputs), outputs[i]);
        nested_result_done(&members[i].result);
    }
    assert_true(p.told > 0 && p.alternations > 2);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(ledger_count(&p.nest.w, pair_words[i]), 1);
    OK(tide_session_flush(p.nest.s, &err));
    log_read(log, p.nest.s);
    check_apart(log);
    tide_run_close(p.nest.run);
    tide_session_close(p.nest.s);
    tide_store_close(p.nest.store);
    p.nest.w.opt.event = NULL;
    for (size_t n = 1; n <= log->n; n += SLOW_BUILD ? 7 : 1)
        cut_both(&p.nest, log, n, outputs);
    log_done(log);
    nested_result_done(&p.nest.result);
    dir_remove(p.nest.w.dir);
}

/* ---- the lock -------------------------------------------------------------------------------------------------------- */

enum { PHASE_HOOK, PHASE_TOOL, PHASE_PAUSE, PHASES };

/* What goes on is known from what was told last; a program runs until it was seen that the lock is free meanwhile. */
struct watch {
    bool held;
    int phase, locks, pieces, locks_at_piece;
    bool free_in[PHASES];
    char go[PHASES][320];
};

static void watch_lock(void *arg)
{
    struct watch *w = arg;

    assert_false(w->held);
    w->held = true;
    w->locks++;
}

static void watch_unlock(void *arg)
{
    struct watch *w = arg;

    assert_true(w->held);
    w->held = false;
}

static bool watch_free(void *arg)
{
    struct watch *w = arg;

    if (!w->held && !w->free_in[w->phase]) {
        w->free_in[w->phase] = true;
        write_file(w->go[w->phase], "");
    }
    return w->free_in[PHASE_PAUSE]; /* which would last */
}

static void watch_told(void *arg, const struct tide_agent_event *e)
{
    struct watch *w = arg;

    assert_true(w->held);
    if (e->what == TIDE_AGENT_TOOL)
        w->phase = PHASE_TOOL;
    if (e->what == TIDE_AGENT_RETRY)
        w->phase = PHASE_PAUSE;
    if (e->what != TIDE_AGENT_TEXT)
        return;
    assert_true(w->locks > w->locks_at_piece); /* each piece of an answer comes while others may work */
    w->locks_at_piece = w->locks;
    w->pieces++;
}

#define UNTIL "i=0; while [ ! -e %s ] && [ $i -lt 400 ]; do i=$((i+1)); sleep 0.01; done"

static void the_lock_is_given_away_while_something_takes_long(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    struct watch w = {.held = true};
    struct buf script = BUF_INIT(4096), hooks = BUF_INIT(4096);

    (void)state;
    begin(&k, "{\"turns\":[{}]}");
    for (int i = 0; i < PHASES; i++)
        snprintf(w.go[i], sizeof w.go[i], "%s/go%d", k.w.work, i);
    buf_addf(&script,
             "{\"turns\":[{\"text\":\"one two\",\"chunk_ms\":1,\"calls\":[" BASH(
                 "c", UNTIL) "]},"
                             "{\"fail\":[{\"status\":429,\"retry_after\":60}]}]}",
             w.go[PHASE_TOOL]);
    write_file(k.w.script, buf_cstr(&script));
    buf_addf(&hooks, "[{\"name\":\"h\",\"event\":\"agent_start\",\"command\":[\"/bin/sh\",\"-c\",\"" UNTIL "\"]}]",
             w.go[PHASE_HOOK]);
    k.w.opt.hooks = buf_cstr(&hooks);
    k.w.opt.event = watch_told;
    k.w.opt.arg = &w;
    k.nested.lock = watch_lock;
    k.nested.unlock = watch_unlock;
    k.nested.stopped = watch_free;
    k.nested.turn_over = NULL;
    k.nested.arg = &w;
    RUNS_NESTED(TIDE_CANCELLED, &k);
    assert_true(w.held);
    assert_int_equal(w.pieces, 2);
    for (int i = 0; i < PHASES; i++)
        if (!w.free_in[i])
            fail_msg("phase %d", i);
    buf_done(&script);
    buf_done(&hooks);
    end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_behind_any_event_it_ends_the_same),
        cmocka_unit_test(the_lock_is_given_away_while_something_takes_long),
        cmocka_unit_test(two_of_them_share_a_session_on_two_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
