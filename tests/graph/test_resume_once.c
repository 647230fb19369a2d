/* SPDX-License-Identifier: Apache-2.0 */
/* Ways back to before a node that must happen once: never twice without a word, whatever it is called since. */
#include "life.h"

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
        struct tide_graph_options opt = {.rollback = flags[i % 2]};
        struct wanted w;
        struct life l;

        begin(&l, rows[i / 2].graph);
        fails_at(&l, rows[i / 2].node);
        w = checkpoint(&l, "node_start", "a");
        opt.checkpoint = w.id;
        refused(&l, &opt, TIDE_UNSETTLED, "must happen once and failed");
        HOLDS(plan(&l, &opt), "\"code\":\"UNSETTLED\"");
        opt.retry = names;
        assert_int_equal(go(&l, &opt), TIDE_OK);
        expect_calls(&l, rows[i / 2].want);
        end(&l);
    }
}

static void roll_back(struct life *l, int64_t to, unsigned flags)
{
    tide_session *s = open_session(l);

    OK(tide_rollback(s, to, flags, "by hand", &err));
    tide_session_close(s);
}

static void after_a_rollback_by_hand_it_needs_a_word_too(void **state)
{
    static const char *const b[] = {"b", NULL};
    struct tide_graph_options opt = {.happened = b};
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "b");
    roll_back(&l, checkpoint(&l, "node_start", "a").seq, 0);
    refused(&l, NULL, TIDE_UNSETTLED, "node 'b' must happen once and failed");
    refused(&l, &opt, TIDE_INVALID, "outputs of b stay unset");
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
    struct tide_graph_options opt = {.rollback = TIDE_ROLLBACK_REUSE_EFFECTS};
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
    refused(&l, &opt, TIDE_INVALID, "no node of this name");
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
        struct tide_graph_options opt = {.renames = far};
        struct life l;

        begin(&l, CHAIN("a", "b", "c", ",\"effect\":\"once\"", ""));
        fails_at(&l, "b");
        use_graph(&l, X_ONCE);
        refused(&l, &opt, TIDE_INVALID, "the graph has no node 'zzzz': did you mean 'x'?");
        opt.renames = map;
        refused(&l, &opt, TIDE_UNSETTLED, "--retry x");
        opt.retry = names[i];
        assert_int_equal(go(&l, &opt), TIDE_OK);
        expect_calls(&l, "a#1 b#1 x#1 c#1");
        end(&l);
    }
}

static void a_name_that_was_recorded_need_not_be_given_again(void **state)
{
    static const char *const map[] = {"b", "x", NULL};
    struct tide_graph_options opt = {.renames = map};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "b");
    w = checkpoint(&l, "node_start", "b");
    use_graph(&l, CHAIN("a", "x", "c", "", ""));
    assert_int_equal(go(&l, &opt), TIDE_OK);
    opt = (struct tide_graph_options){.checkpoint = w.id};
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
    struct tide_graph_options opt = {.renames = map, .rollback = TIDE_ROLLBACK_REUSE_EFFECTS};
    struct wanted w;
    struct life l;

    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        begin(&l, CHAIN("a", "b", "c", ",\"effect\":\"once\"", ""));
        fails_at(&l, "c");
        w = checkpoint(&l, "node_start", "a");
        use_graph(&l, X_GIVES_B);
        if (recorded) {
            const struct tide_graph_options first = {.renames = map};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(going_back_before_one_that_failed_needs_a_word),
        cmocka_unit_test(after_a_rollback_by_hand_it_needs_a_word_too),
        cmocka_unit_test(what_completed_answers_after_a_rollback_by_hand),
        cmocka_unit_test(a_later_rollback_forgets_only_what_it_cuts_off),
        cmocka_unit_test(the_second_visit_is_told_from_the_first),
        cmocka_unit_test(old_and_new_names_are_understood_beside_a_rename),
        cmocka_unit_test(a_name_that_was_recorded_need_not_be_given_again),
        cmocka_unit_test(what_happened_under_another_name_does_not_happen_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
