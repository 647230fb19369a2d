/* SPDX-License-Identifier: Apache-2.0 */
/* Ways back to before a node that must happen once: never twice without a word, whatever it is called since. */
#include "graph_resumes.h"

#define ONCE CHAIN("a", "b", "c", ",\"effect\":\"once\"", "")

/* One of a graph in b, or of a map: what runs inside has a name of its own. */
#define ONCE_INSIDE                                                                                                    \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(                                                                          \
        "a", "") ",{\"id\":\"b\",\"type\":\"subgraph\",\"outputs\":[\"in\"],"                                          \
                 "\"graph\":{\"tidemark_graph\":1,\"id\":\"i\",\"entry\":\"in\",\"nodes\":[" WORK(                     \
                     "in", ",\"effect\":\"once\"") "]}}],\"edges\":[" EDGE("a", "b") "]")
#define ONCE_EACH                                                                                                      \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(                                                                          \
        "a", "") ",{\"id\":\"b\",\"type\":\"map\",\"over\":\"{1}\","                                                   \
                 "\"outputs\":[\"all\"],\"node\":{\"type\":\"function\",\"callback\":\"work\",\"effect\":\"once\","    \
                 "\"outputs\":[\"b\"]}}],\"edges\":[" EDGE("a", "b") "]")
#define ONCE_ROUND                                                                                                     \
    GRAPH("\"entry\":\"a\",\"max_steps\":9,\"nodes\":[" WORK("a", "") "," WORK(                                        \
        "b", ",\"effect\":\"once\"") "],"                                                                              \
                                     "\"edges\":[" EDGE("a", "b") "," EDGE("b", "b") "]")

/* Whichever way leads back before it, and whatever is said of those that ended: it may have happened. */
static void going_back_before_one_that_failed_needs_a_word(void **state)
{
    static const struct {
        const char *graph, *node;
        const char *word;
        const char *want;
    } rows[] = {
        {ONCE, "b", "b", "a#1 b#1 a#1 b#1 c#1"},
        {ONCE_INSIDE, "b#1/in", "b#1/in", "a#1 b#1/in#1 a#1 b#1/in#1"},
        {ONCE_EACH, "b#1[0]", "b#1[0]", "a#1 b#1[0]#1 a#1 b#1[0]#1"},
    };
    const unsigned flags[] = {0, TIDE_ROLLBACK_REUSE_EFFECTS};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        const char *const names[] = {rows[i / 2].word, NULL};
        struct tide_graph_options opt = {.size = sizeof opt, .rollback = flags[i % 2]};
        struct wanted w;
        struct life l;

        begin(&l, rows[i / 2].graph);
        fails_at(&l, rows[i / 2].node);
        w = checkpoint(&l, "node_start", "a");
        opt.checkpoint = w.id;
        refused(&l, &opt, TIDE_UNSETTLED, TIDE_ACTION_REPEAT, names[0]);
        HOLDS(plan(&l, &opt), "\"code\":\"UNSETTLED\"");
        opt.retry = names;
        assert_int_equal(go(&l, &opt), TIDE_OK);
        expect_calls(&l, rows[i / 2].want);
        end(&l);
    }
}

/* c fails before b, begun in one batch with it, gets its turn. */
#define BESIDE(c)                                                                                                      \
    "\"entry\":\"a\",\"nodes\":[" WORK("a", "") "," WORK("b", ",\"effect\":\"once\"") "," WORK(                        \
        "c", c) "],\"edges\":[" EDGE("a", "b") "," EDGE("a", "c") "]"
#define BESIDE_INSIDE(c)                                                                                               \
    "\"entry\":\"g\",\"nodes\":[{\"id\":\"g\",\"type\":\"subgraph\",\"graph\":" GRAPH(BESIDE(c)) "}]"
#define FAILS ",\"inputs\":[\"nobody_sets_it\"]"

static void what_never_began_runs_and_nobody_is_asked(void **state)
{
    static const struct {
        const char *graph, *mended, *first, *plan, *before, *after, *back;
    } rows[] = {
        {GRAPH(BESIDE(FAILS)), GRAPH(BESIDE("")), "a", "\"node\":\"b\",\"state\":\"withdrawn\"", "a#1", "a#1 b#1 c#1",
         "a#1 a#1 b#1 c#1"},
        {GRAPH(BESIDE_INSIDE(FAILS)), GRAPH(BESIDE_INSIDE("")), "g", "\"node\":\"g#1/b\",\"state\":\"withdrawn\"",
         "g#1/a#1", "g#1/a#1 g#1/b#1 g#1/c#1", "g#1/a#1 g#1/a#1 g#1/b#1 g#1/c#1"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct tide_graph_options opt = {.size = sizeof opt, .threads = 2};
        struct wanted w;
        struct life l;

        begin(&l, rows[i / 2].graph);
        assert_int_equal(go(&l, &opt), TIDE_FAILED);
        expect_calls(&l, rows[i / 2].before);
        HOLDS(plan(&l, NULL), rows[i / 2].plan);
        w = checkpoint(&l, "node_start", rows[i / 2].first);
        use_graph(&l, rows[i / 2].mended);
        if (i % 2)
            opt.checkpoint = w.id;
        LACKS(plan(&l, &opt), "UNSETTLED");
        opt.threads = 1; /* for the order in which they are called */
        if (go(&l, &opt) != TIDE_OK)
            fail_msg("row %zu: %s", i, l.err.msg);
        expect_calls(&l, i % 2 ? rows[i / 2].back : rows[i / 2].after);
        end(&l);
    }
}

static void what_failed_before_it_began_runs_and_nobody_is_asked(void **state)
{
    static const char *const rows[] = {
        CHAIN("a", "b", "c", ",\"effect\":\"once\",\"inputs\":[\"x\"]", ""),
        GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(
            "a", "") ",{\"id\":\"b\",\"type\":\"function\",\"effect\":\"once\","
                     "\"program\":[\"./no such program\"],\"outputs\":[\"b\"]}],\"edges\":[" EDGE("a", "b") "]"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_graph_options opt = {.size = sizeof opt, .memory = "{\"x\":1}"};
        struct life l;

        begin(&l, rows[i]);
        assert_int_equal(go(&l, NULL), TIDE_FAILED);
        expect_calls(&l, "a#1");
        LACKS(plan(&l, &opt), "UNSETTLED");
        assert_int_equal(go(&l, &opt), i ? TIDE_FAILED : TIDE_OK);
        expect_calls(&l, i ? "a#1" : "a#1 b#1 c#1");
        end(&l);
    }
}

/* It happened beside another that set the same key. */
static void what_conflicts_is_kept_and_said_to_be(void **state)
{
#define BOTH(more)                                                                                                     \
    GRAPH("\"entry\":\"a\",\"parallel\":1,\"nodes\":[" WORK(                                                           \
        "a", "") ",{\"id\":\"c\",\"type\":\"lua\",\"outputs\":[\"b\"],"                                                \
                 "\"code\":\"return {b = 0}\"}," WORK("b", ",\"effect\":\"once\"") "],\"edges\":[" EDGE(               \
                     "a", "c") ",{\"from\":\"a\",\"to\":\"b\",\"when\":\"true\"}]" more)
    struct life l;

    (void)state;
    begin(&l, BOTH(""));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(go(&l, NULL), TIDE_FAILED);
        HOLDS(l.err.msg, "it happened, and its result is kept");
        HOLDS(plan(&l, NULL), "\"node\":\"b\",\"state\":\"failed\",\"visit\":1,\"attempt\":0,\"from_log\":true");
        expect_calls(&l, "a#1 b#1");
    }
    use_graph(&l, BOTH(",\"conflict\":{\"b\":\"last\"}"));
    assert_int_equal(go(&l, NULL), TIDE_OK);
    HOLDS(l.memory, "\"b\":1");
    expect_calls(&l, "a#1 b#1");
    end(&l);
}

static void roll_back(struct life *l, int64_t to, unsigned flags)
{
    tide_session *s = open_session(l);

    OK(tide_session_rollback(s, to, flags, "by hand", &err));
    tide_session_close(s);
}

static void after_a_rollback_by_hand_it_needs_a_word_too(void **state)
{
    static const char *const b[] = {"b", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .happened = b};
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "b");
    roll_back(&l, checkpoint(&l, "node_start", "a").seq, 0);
    refused(&l, NULL, TIDE_UNSETTLED, TIDE_ACTION_REPEAT, "b");
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    opt.memory = "{\"b\":7}";
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 a#1 c#1");
    HOLDS(l.memory, "\"b\":7");
    end(&l);
}

static void what_completed_answers_after_a_rollback_by_hand(void **state)
{
    struct life l;

    (void)state;
    begin(&l, ONCE);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    roll_back(&l, checkpoint(&l, "node_start", "a").seq, TIDE_ROLLBACK_REUSE_EFFECTS);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 a#1 c#1");
    HOLDS(l.w.notices, "node 'b' happened before the rollback");
    roll_back(&l, checkpoint(&l, "node_start", "a").seq, TIDE_ROLLBACK_REDO_EFFECTS);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 a#1 c#1 a#1 b#1 c#1");
    end(&l);
}

/* A later choice to do things again is about what it cuts off, not about what was kept before. */
static void a_later_rollback_forgets_only_what_it_cuts_off(void **state)
{
    struct life l;
    struct wanted w;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "c");
    w = checkpoint(&l, "node_start", "a");
    roll_back(&l, w.seq, TIDE_ROLLBACK_REUSE_EFFECTS);
    fails_at(&l, "a");
    roll_back(&l, last_seq(&l) - 1, TIDE_ROLLBACK_REDO_EFFECTS);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 a#1 a#1 c#1");
    end(&l);
}

static void the_second_visit_is_told_from_the_first(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt, .rollback = TIDE_ROLLBACK_REUSE_EFFECTS};
    static const char *const b[] = {"b", NULL};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, ONCE_ROUND);
    assert_int_equal(go(&l, NULL), TIDE_FAILED); /* max_steps */
    expect_calls(&l, "a#1 b#1 b#2 b#3 b#4 b#5 b#6 b#7 b#8");
    w = checkpoint(&l, "node_start", "a");
    world_forget(&l.w);
    opt.checkpoint = w.id;
    opt.retry = b;
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    opt.retry = NULL;
    assert_int_equal(go(&l, &opt), TIDE_FAILED);
    expect_calls(&l, "a#1");
    end(&l);
}

/* ---- other names ---- */

#define X_ONCE CHAIN("a", "x", "c", ",\"effect\":\"once\"", "")

static void old_and_new_names_are_understood_beside_a_rename(void **state)
{
    static const char *const map[] = {"b", "x", NULL}, *const far[] = {"b", "zzzz", NULL};
    static const char *const names[][2] = {{"b", NULL}, {"x", NULL}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tide_graph_options opt = {.size = sizeof opt, .renames = far};
        struct life l;

        begin(&l, CHAIN("a", "b", "c", ",\"effect\":\"once\"", ""));
        fails_at(&l, "b");
        use_graph(&l, X_ONCE);
        refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "zzzz");
        opt.renames = map;
        refused(&l, &opt, TIDE_UNSETTLED, TIDE_ACTION_REPEAT, "x");
        helps(&l, 1, TIDE_ACTION_REPEAT, "{\"retry\":[\"x\"]}");
        opt.retry = names[i];
        assert_int_equal(go(&l, &opt), TIDE_OK);
        expect_calls(&l, "a#1 b#1 x#1 c#1");
        end(&l);
    }
}

static void a_name_that_was_recorded_need_not_be_given_again(void **state)
{
    static const char *const map[] = {"b", "x", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .renames = map};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "b");
    w = checkpoint(&l, "node_start", "b");
    use_graph(&l, CHAIN("a", "x", "c", "", ""));
    assert_int_equal(go(&l, &opt), TIDE_OK);
    opt = (struct tide_graph_options){.size = sizeof(struct tide_graph_options), .checkpoint = w.id};
    HOLDS(plan(&l, &opt), "\"renames\":[{\"from\":\"b\",\"to\":\"x\"}]");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 x#1 c#1 x#1 c#1");
    end(&l);
}

/* It gives what b gave. */
#define X_GIVES_B                                                                                                      \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") ",{\"id\":\"x\",\"type\":\"function\",\"callback\":\"work\","    \
                                                      "\"effect\":\"once\",\"outputs\":[\"b\"]}," WORK(                \
                                                          "c", "") "],\"edges\":[" EDGE("a", "x") "," EDGE("x",        \
                                                                                                           "c") "]")

static void what_happened_under_another_name_does_not_happen_again(void **state)
{
    static const char *const map[] = {"b", "x", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .renames = map, .rollback = TIDE_ROLLBACK_REUSE_EFFECTS};
    struct wanted w;
    struct life l;

    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        begin(&l, CHAIN("a", "b", "c", ",\"effect\":\"once\"", ""));
        fails_at(&l, "c");
        w = checkpoint(&l, "node_start", "a");
        use_graph(&l, X_GIVES_B);
        if (recorded) {
            const struct tide_graph_options first = {.size = sizeof first, .renames = map};

            l.w.fail_times = 1;
            assert_int_equal(go(&l, &first), TIDE_FAILED);
            world_forget(&l.w);
        }
        opt.checkpoint = w.id;
        opt.renames = recorded ? NULL : map;
        assert_int_equal(go(&l, &opt), TIDE_OK);
        expect_calls(&l, recorded ? "a#1 c#1" : "a#1 b#1 c#1 a#1 c#1");
        HOLDS(l.w.notices, "node 'x' happened before the rollback");
        end(&l);
    }
}

/* ---- items of maps ---- */

#define EACH_THEN(effect)                                                                                              \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") ",{\"id\":\"b\",\"type\":\"map\",\"over\":\"{1,2}\","            \
                                                      "\"parallel\":1,\"outputs\":[\"all\"],\"node\":{\"type\":"       \
                                                      "\"function\",\"callback\":\"work\",\"retries\":0,\"effect\":"   \
                                                      "\"" effect                                                      \
                                                      "\",\"outputs\":[\"b\"]}}," WORK("c", "") "],\"edges\":[" EDGE(  \
                                                          "a", "b") "," EDGE("b", "c") "]")

static int count_completed(void *arg, const struct event *ev)
{
    *(int *)arg += str_eq(ev->kind, STR("tool.completed"));
    return 0;
}

static void items_that_completed_are_known_to_have(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt, .rollback = TIDE_ROLLBACK_REUSE_EFFECTS};
    tide_session *s;
    struct wanted w;
    struct life l;
    int n = 0;

    (void)state;
    begin(&l, EACH_THEN("once"));
    fails_at(&l, "c");
    s = open_session(&l);
    OK(store_read(s->store, &s->head, 1, 0, count_completed, &n, &err));
    tide_session_close(s);
    assert_int_equal(n, 2);
    w = checkpoint(&l, "node_start", "a");
    opt.checkpoint = w.id;
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1[0]#1 b#1[1]#1 c#1 a#1 c#1");
    HOLDS(l.memory, "\"all\":[1,1]");
    end(&l);
}

static void put_raw(tide_session *s, const char *kind, const char *body)
{
    const struct tide_new_event ev = {.kind = kind, .body = body, .body_len = strlen(body)};

    OK(session_append(s, 0, &ev, 1, NULL, &err));
}

/* As they were written before: the end of an item is its node's alone. */
static void items_of_older_logs_are_known_by_the_end_of_their_node(void **state)
{
    const struct kept_effect *done, *cut;
    struct kept *k = NULL;
    tide_session *s;
    struct life l;

    (void)state;
    begin(&l, ABC);
    s = open_session(&l);
    put_raw(s, "tool.started", "{\"call_id\":\"node:m#1[0]#1\",\"tool\":\"m#1[0]\",\"effect\":\"once\"}");
    put_raw(s, "tool.started", "{\"call_id\":\"node:m#1[1]#1\",\"tool\":\"m#1[1]\",\"effect\":\"once\"}");
    put_raw(s, "memory.set", "{\"frame\":\"m#1\",\"values\":{\"0\":{\"r\":1}}}");
    put_raw(s, "node.completed", "{\"node\":\"m#1[0]\",\"visit\":1,\"ms\":0}");
    tide_session_close(s);
    s = open_session(&l);
    OK(kept_load(s->store, &s->head, &k, &err));
    done = map_get(&k->past.effects, STR("node:m#1[0]#1"));
    cut = map_get(&k->past.effects, STR("node:m#1[1]#1"));
    assert_int_equal(done->past.state, PAST_DONE);
    assert_int_equal(done->past.seq, tide_session_last_seq(s) - 1); /* what it gave */
    assert_int_equal(cut->past.state, PAST_CUT);
    kept_free(k);
    tide_session_close(s);
    end(&l);
}

/* ---- another graph takes it for something that may be repeated ---- */

#define CHAIN_B(effect) CHAIN("a", "b", "c", ",\"effect\":\"" effect "\"", "")
#define INSIDE_B(effect)                                                                                               \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(                                                                          \
        "a", "") ",{\"id\":\"b\",\"type\":\"subgraph\",\"outputs\":[\"in\"],"                                          \
                 "\"graph\":{\"tidemark_graph\":1,\"id\":\"i\",\"entry\":\"in\",\"nodes\":[" WORK(                     \
                     "in", ",\"effect\":\"" effect                                                                     \
                           "\"") "]}}," WORK("c", "") "],\"edges\":[" EDGE("a", "b") "," EDGE("b", "c") "]")

static const struct weaker {
    const char *before, *after, *node, *first, *done; /* calls until it failed; when c failed */
} weaker[] = {
    {CHAIN_B("once"), CHAIN_B("idempotent"), "b", "a#1 b#1", "a#1 b#1 c#1"},
    {CHAIN_B("once"), CHAIN_B("pure"), "b", "a#1 b#1", "a#1 b#1 c#1"},
    {INSIDE_B("once"), INSIDE_B("pure"), "b#1/in", "a#1 b#1/in#1", "a#1 b#1/in#1 c#1"},
    {EACH_THEN("once"), EACH_THEN("pure"), "b#1[1]", "a#1 b#1[0]#1 b#1[1]#1", "a#1 b#1[0]#1 b#1[1]#1 c#1"},
};
#define EACH_WEAKER(w) (const struct weaker *w = weaker; w < weaker + sizeof weaker / sizeof weaker[0]; w++)

static void what_failed_as_once_needs_a_word_in_a_weaker_graph(void **state)
{
    (void)state;
    for
        EACH_WEAKER(w)
        {
            const char *const names[] = {w->node, NULL};
            struct tide_graph_options opt = {.size = sizeof opt, .retry = names};
            char want[200];
            struct life l;

            begin(&l, w->before);
            fails_at(&l, w->node);
            use_graph(&l, w->after);
            refused(&l, NULL, TIDE_UNSETTLED, TIDE_ACTION_REPEAT, w->node);
            assert_int_equal(go(&l, &opt), TIDE_OK);
            snprintf(want, sizeof want, "%s %s#1 c#1", w->first, w->node);
            expect_calls(&l, want);
            end(&l);
        }
}

static void what_completed_as_once_answers_in_a_weaker_graph(void **state)
{
    (void)state;
    for
        EACH_WEAKER(w)
        {
            struct tide_graph_options opt = {.size = sizeof opt, .rollback = TIDE_ROLLBACK_REUSE_EFFECTS};
            struct wanted from;
            char want[200];
            struct life l;

            begin(&l, w->before);
            fails_at(&l, "c");
            use_graph(&l, w->after);
            from = checkpoint(&l, "node_start", "a");
            for (int i = 0; i < 2; i++) { /* and what answered answers again */
                snprintf(l.w.fail, sizeof l.w.fail, "c");
                l.w.fail_times = 1 - i;
                opt.checkpoint = from.id;
                assert_int_equal(go(&l, &opt), i ? TIDE_OK : TIDE_FAILED);
            }
            snprintf(want, sizeof want, "%s a#1 c#1 a#1 c#1", w->done);
            expect_calls(&l, want);
            end(&l);
        }
}

static void who_says_that_it_happened_is_believed_in_a_weaker_graph(void **state)
{
    static const char *const b[] = {"b", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .happened = b, .memory = "{\"b\":7}"};
    struct wanted from;
    struct life l;

    (void)state;
    begin(&l, CHAIN_B("once"));
    fails_at(&l, "b");
    from = checkpoint(&l, "node_start", "a");
    use_graph(&l, CHAIN_B("pure"));
    snprintf(l.w.fail, sizeof l.w.fail, "c");
    l.w.fail_times = 1;
    assert_int_equal(go(&l, &opt), TIDE_FAILED);
    opt = (struct tide_graph_options){
        .size = sizeof(struct tide_graph_options), .checkpoint = from.id, .rollback = TIDE_ROLLBACK_REUSE_EFFECTS};
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 a#1 c#1");
    HOLDS(l.memory, "\"b\":7");
    end(&l);
}

/* With a word it runs as the graph has it, and from then on that counts. */
static void what_was_allowed_once_is_what_the_graph_says(void **state)
{
    static const char *const b[] = {"b", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .retry = b};
    struct wanted from;
    struct life l;

    (void)state;
    begin(&l, CHAIN_B("once"));
    fails_at(&l, "b");
    use_graph(&l, CHAIN_B("idempotent"));
    l.w.fail_times = 1;
    assert_int_equal(go(&l, &opt), TIDE_FAILED);
    from = checkpoint(&l, "node_start", "b");
    opt = (struct tide_graph_options){.size = sizeof(struct tide_graph_options), .checkpoint = from.id};
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 b#1 b#1 c#1");
    end(&l);
}

/* ---- what contradicts itself ---- */

static void one_that_is_there_does_not_become_another(void **state)
{
    static const char *const map[] = {"b", "c", NULL};
    const struct tide_graph_options opt = {.size = sizeof opt, .renames = map};
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "b");
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    use_graph(&l, CHAIN_B("pure"));
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    end(&l);
}

static void a_weaker_node_of_another_name_needs_a_word(void **state)
{
    static const char *const map[] = {"b", "x", NULL};
    const struct tide_graph_options opt = {.size = sizeof opt, .renames = map};
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "b");
    use_graph(&l, CHAIN("a", "x", "c", ",\"effect\":\"pure\"", ""));
    refused(&l, &opt, TIDE_UNSETTLED, TIDE_ACTION_REPEAT, "x");
    end(&l);
}

static void words_that_contradict_each_other_are_refused(void **state)
{
    static const char *const b[] = {"b", NULL}, *const map[] = {"b", "x", "b", "c", NULL};
    const struct tide_graph_options both = {.size = sizeof both, .retry = b, .happened = b},
                                    twice = {.size = sizeof twice, .renames = map};
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "b");
    refused(&l, &both, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    use_graph(&l, X_ONCE);
    refused(&l, &twice, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    end(&l);
}

static void who_said_fallback_is_told_why_it_does_not_help(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt};
    struct life l;

    (void)state;
    begin(&l, CHAIN("a", "b", "c", "", ",\"max_steps\":1"));
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    use_graph(&l, CHAIN("a", "x", "c", "", ",\"max_steps\":1"));
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    opt.fallback = 1;
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"graph\":null}");
    LACKS(l.err.msg, "is not in this graph");
    end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(going_back_before_one_that_failed_needs_a_word),
        cmocka_unit_test(what_never_began_runs_and_nobody_is_asked),
        cmocka_unit_test(what_failed_before_it_began_runs_and_nobody_is_asked),
        cmocka_unit_test(what_conflicts_is_kept_and_said_to_be),
        cmocka_unit_test(after_a_rollback_by_hand_it_needs_a_word_too),
        cmocka_unit_test(what_completed_answers_after_a_rollback_by_hand),
        cmocka_unit_test(a_later_rollback_forgets_only_what_it_cuts_off),
        cmocka_unit_test(the_second_visit_is_told_from_the_first),
        cmocka_unit_test(old_and_new_names_are_understood_beside_a_rename),
        cmocka_unit_test(a_name_that_was_recorded_need_not_be_given_again),
        cmocka_unit_test(what_happened_under_another_name_does_not_happen_again),
        cmocka_unit_test(items_that_completed_are_known_to_have),
        cmocka_unit_test(items_of_older_logs_are_known_by_the_end_of_their_node),
        cmocka_unit_test(what_failed_as_once_needs_a_word_in_a_weaker_graph),
        cmocka_unit_test(what_completed_as_once_answers_in_a_weaker_graph),
        cmocka_unit_test(who_says_that_it_happened_is_believed_in_a_weaker_graph),
        cmocka_unit_test(what_was_allowed_once_is_what_the_graph_says),
        cmocka_unit_test(one_that_is_there_does_not_become_another),
        cmocka_unit_test(a_weaker_node_of_another_name_needs_a_word),
        cmocka_unit_test(words_that_contradict_each_other_are_refused),
        cmocka_unit_test(who_said_fallback_is_told_why_it_does_not_help),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
