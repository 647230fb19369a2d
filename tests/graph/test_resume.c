/* SPDX-License-Identifier: Apache-2.0 */
/* Going on with a graph: from where, with another graph, with what is missing; what is refused before anything is written. */
#include "store_tamper.h"
#include "graph_resumes.h"

/* ---- from where ---- */

static void a_plan_says_what_would_run(void **state)
{
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "b");
    HOLDS(plan(&l, NULL), "\"action\":\"resume\"");
    HOLDS(l.plan, "\"nodes_to_run\":[{\"node\":\"b\",\"state\":\"failed\"");
    HOLDS(l.plan, "\"complete\":[\"a\"]");
    HOLDS(l.plan, "\"refused\":[]");
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 b#1 c#1");
    end(&l);
}

static void from_a_checkpoint_it_starts_at_the_next_node(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "c");
    w = checkpoint(&l, "node_complete", "a");
    opt.checkpoint = w.id;
    HOLDS(plan(&l, &opt), "\"action\":\"rollback\"");
    HOLDS(l.plan, "\"nodes_to_run\":[{\"node\":\"b\",\"state\":\"ready\"");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 b#1 c#1");
    assert_string_equal(l.memory, "{\"a\":1,\"b\":1,\"c\":1}");
    assert_string_equal(l.ran, l.session);
    HOLDS(l.w.notices, "back to checkpoint");
    end(&l);
}

static void a_completed_session_goes_on_only_as_a_fork(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt};
    struct tide_text text = {NULL, 0};
    tide_session *s = NULL;
    struct wanted w;
    struct life l;
    int64_t before;

    (void)state;
    begin(&l, ABC);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    refused(&l, NULL, TIDE_WRONG_STATE, TIDE_ACTION_LIST_CHECKPOINTS, "");
    helps(&l, 0, TIDE_ACTION_LIST_CHECKPOINTS, "{}");
    helps(&l, 1, TIDE_ACTION_REPEAT, "{\"checkpoint\":null}");
    w = checkpoint(&l, "node_complete", "b");
    opt.checkpoint = w.id;
    HOLDS(plan(&l, &opt), "\"action\":\"fork\"");
    before = last_seq(&l);
    assert_int_equal(go(&l, &opt), TIDE_OK);
    assert_int_equal(last_seq(&l), before);
    assert_string_not_equal(l.ran, l.session);
    expect_calls(&l, "a#1 b#1 c#1 c#1");
    assert_string_equal(l.memory, "{\"a\":1,\"b\":1,\"c\":1}");
    OK(tide_session_open(l.w.store, l.ran, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_get_state(s, 0, &text, &err));
    HOLDS(text.ptr, "\"agent\":\"tester\"");
    HOLDS(text.ptr, "\"outcome\":\"completed\"");
    tide_text_done(&text);
    tide_session_close(s);
    end(&l);
}

static void a_fork_made_by_hand_goes_on(void **state)
{
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, ABC);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    w = checkpoint(&l, "node_complete", "a");
    OK(tide_session_fork(l.w.store, l.session, w.seq, NULL, NULL, l.session, &err));
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 b#1 c#1");
    end(&l);
}

static void checkpoints_that_cannot_be_used_are_named(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt, .checkpoint = "ckpt_nope"};
    struct wanted a, b;
    tide_session *s;
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "c");
    refused(&l, &opt, TIDE_NOT_FOUND, TIDE_ACTION_LIST_CHECKPOINTS, "ckpt_nope");
    a = checkpoint(&l, "node_complete", "a");
    b = checkpoint(&l, "node_complete", "b");
    s = open_session(&l);
    OK(tide_session_rollback(s, a.seq, 0, NULL, &err));
    OK(tide_checkpoint_delete(s, (const char *const[]){a.id}, 1, &err));
    tide_session_close(s);
    opt.checkpoint = b.id;
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_ROLLBACK, b.id);
    opt.checkpoint = a.id;
    refused(&l, &opt, TIDE_NOT_FOUND, TIDE_ACTION_LIST_CHECKPOINTS, a.id);
    end(&l);
}

#define HUMAN                                                                                                          \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(                                                                          \
        "a", "") ",{\"id\":\"h\",\"type\":\"human_input\",\"question\":\"go "                                          \
                 "on?\",\"outputs\":[\"said\"]}," WORK("c", "") "],\"edges\":[" EDGE("a", "h") "," EDGE("h", "c") "]")

static void a_question_is_asked_once_and_again_when_gone_back(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt}, answer = {.size = sizeof answer, .input = "\"yes\""};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, HUMAN);
    assert_int_equal(go(&l, NULL), TIDE_WAITING);
    refused(&l, NULL, TIDE_WRONG_STATE, TIDE_ACTION_ANSWER, "");
    w = checkpoint(&l, "node_complete", "a");
    opt = (struct tide_graph_options){.size = sizeof(struct tide_graph_options), .checkpoint = w.id, .input = "1"};
    refused(&l, &opt, TIDE_INVALID, 0, "");
    opt.input = NULL;
    assert_int_equal(go(&l, &opt), TIDE_WAITING); /* the old wait is over, a new one begun */
    assert_int_equal(go(&l, &answer), TIDE_OK);
    expect_calls(&l, "a#1 c#1");
    refused(&l, &answer, TIDE_WRONG_STATE, TIDE_ACTION_REPEAT, "");
    end(&l);
}

/* ---- another graph ---- */

static void a_node_that_is_gone_is_named(void **state)
{
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "b");
    use_graph(&l, CHAIN("a", "x", "c", "", ""));
    refused(&l, NULL, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    HOLDS(plan(&l, NULL), "\"node\":\"b\"");
    HOLDS(l.plan, "\"hints\":[{\"action\":\"repeat\",\"session_id\":");
    HOLDS(l.plan, "\"arguments\":{\"map\":{\"b\":\"x\"}}");
    end(&l);
}

static void a_renamed_node_goes_on_under_its_new_name(void **state)
{
    static const char *const map[] = {"b", "x", NULL}, *const wrong[] = {"b", "cc", NULL},
                             *const unknown[] = {"q", "x", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .renames = wrong};
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "b");
    use_graph(&l, CHAIN("a", "x", "c", "", ""));
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "cc");
    opt.renames = unknown;
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "q");
    opt.renames = map;
    HOLDS(plan(&l, &opt), "\"nodes_to_run\":[{\"node\":\"x\"");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 x#1 c#1");
    HOLDS(l.w.notices, "node 'b' is called 'x' in this graph");
    end(&l);
}

static void the_newest_checkpoint_that_fits_is_taken_when_asked_for(void **state)
{
    const struct tide_graph_options opt = {.size = sizeof opt, .fallback = 1};
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "c");
    use_graph(&l,
              GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") "," WORK("b", "") "],\"edges\":[" EDGE("a", "b") "]"));
    refused(&l, NULL, TIDE_INVALID, TIDE_ACTION_REPEAT, "c");
    HOLDS(plan(&l, &opt), "\"action\":\"rollback\"");
    HOLDS(l.plan, "using checkpoint");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    HOLDS(l.w.notices, "using checkpoint");
    expect_calls(&l, "a#1 b#1 c#1 b#1");
    end(&l);
}

static void a_node_that_became_another_is_told(void **state)
{
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "b");
    use_graph(&l, GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(
                      "a", "") ",{\"id\":\"b\",\"type\":\"lua\",\"code\":\"return "
                               "{b = 7}\",\"outputs\":[\"b\"]}," WORK("c", "") "],\"edges\":[" EDGE("a", "b") "," EDGE(
                                   "b", "c") "]"));
    HOLDS(plan(&l, NULL), "node 'b' was function and is lua now");
    HOLDS(l.plan, "\"refused\":[]"); /* it failed, so it begins anew */
    assert_int_equal(go(&l, NULL), TIDE_OK);
    assert_string_equal(l.memory, "{\"a\":1,\"b\":7,\"c\":1}");
    end(&l);
}

/* ---- inside a node ---- */

#define INNER(b, more)                                                                                                 \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(                                                                          \
        "a", "") ",{\"id\":\"s\",\"type\":\"subgraph\",\"outputs\":[\"z\"],\"graph\":{"                                \
                 "\"id\":\"in\",\"entry\":\"y\",\"nodes\":[" WORK("y", "") "," WORK(b, more) "," WORK(                 \
                     "z", "") "],\"edges\":[" EDGE("y", b) "," EDGE(b, "z") "]}}],\"edges\":[" EDGE("a", "s") "]")

static void a_graph_inside_goes_on_at_its_own_node(void **state)
{
    static const char *const inside[] = {"s#1/x", "s#1/w", NULL}, *const outer[] = {"s", "a", NULL};
    struct tide_graph_options opt = {.size = sizeof opt};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, INNER("x", ""));
    fails_at(&l, "s#1/x");
    w = checkpoint(&l, "node_complete", "s#1/y");
    opt.checkpoint = w.id;
    HOLDS(plan(&l, &opt), "{\"node\":\"s#1/x\",\"state\":\"ready\"");
    opt.renames = outer;
    HOLDS(plan(&l, &opt), "is in the middle of what runs inside it");
    opt.renames = NULL;
    use_graph(&l, INNER("w", ""));
    HOLDS(plan(&l, &opt), "node 's#1/x', which is to run next, is not in this graph");
    opt.renames = inside;
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 s#1/y#1 s#1/x#1 s#1/w#1 s#1/z#1");
    end(&l);
}

/* What an item sets is its own; what it does not set is that of the map, also when that is set anew. */
static void items_that_are_graphs_share_the_memory_around_the_map(void **state)
{
    static const char json[] = GRAPH(
        "\"entry\":\"m\",\"memory\":{\"list\":[1,2,3],\"factor\":10,\"own\":5},\"nodes\":[{\"id\":\"m\","
        "\"type\":\"map\",\"parallel\":1,\"over\":\"list\",\"outputs\":[\"k\"],\"node\":{\"type\":\"subgraph\","
        "\"outputs\":[\"k\"],\"graph\":{\"id\":\"i\",\"entry\":\"a\",\"memory\":{\"own\":0,\"more\":100},\"nodes\":["
        "{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {own = memory.own + inputs.item}\",\"outputs\":"
        "[\"own\"]}," WORK("w", "") ",{\"id\":\"b\",\"type\":\"lua\",\"outputs\":[\"k\"],\"code\":"
                                    "\"return {k = memory.own * memory.factor + memory.more}\"}],\"edges\":[" EDGE(
                                        "a", "w") "," EDGE("w", "b") "]}}}]");
    struct tide_graph_options opt = {.size = sizeof opt, .threads = 1, .memory = "{\"factor\":20}"};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, json);
    fails_at(&l, "m#1[1]#1/w");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    HOLDS(l.memory, "\"k\":[160,240,260]");
    HOLDS(l.memory, "\"own\":5");
    w = checkpoint(&l, "node_complete", "m#1[0]");
    opt = (struct tide_graph_options){.size = sizeof opt, .threads = 1, .checkpoint = w.id};
    assert_int_equal(go(&l, &opt), TIDE_OK);
    assert_string_not_equal(l.ran, l.session);
    HOLDS(l.memory, "\"k\":[160,170,180]");
    end(&l);
}

/* ---- what it needs ---- */

static void every_reason_is_told_at_once(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt, .memory = "{\"one\":1,\"two\":2}"};
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "b");
    use_graph(&l, CHAIN("a", "b", "c", ",\"inputs\":[\"one\",\"two\"]", ""));
    refused(&l, NULL, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    HOLDS(l.err.msg, "(and 1 more)");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"set\":{\"one\":null}}");
    helps(&l, 1, TIDE_ACTION_REPEAT, "{\"dry_run\":true}");
    HOLDS(plan(&l, NULL), "{\"node\":\"b\",\"key\":\"two\",\"never_stored\":false,\"later\":false}");
    HOLDS(plan(&l, &opt), "\"overrides\":[{\"key\":\"one\",\"never_stored\":false}");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    HOLDS(l.memory, "\"two\":2");
    end(&l);
}

static bool on_disk(struct life *l, const char *words)
{
    char command[700];

    snprintf(command, sizeof command, "grep -raF '%s' '%s' >/dev/null", words, l->w.dir);
    return system(command) == 0; /* NOLINT(cert-env33-c): our own directory */
}

static void what_is_never_stored_is_asked_for_again(void **state)
{
    static const struct tide_graph_options first = {.size = sizeof first, .memory = "{\"api_key\":\"hunter-one\"}"},
                                           second = {.size = sizeof second,
                                                     .memory = "{\"api_key\":\"hunter-two\",\"seen\":1}"};
    struct life l;

    (void)state;
    begin(&l,
          GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(
              "a", "") ",{\"id\":\"b\",\"type\":\"function\",\"retries\":0,"
                       "\"program\":[\"sh\",\"-c\",\"grep -q two && echo '{\\\"b\\\":1}'\"],\"inputs\":[\"api_key\"],"
                       "\"outputs\":[\"b\"]}],\"edges\":[" EDGE("a", "b") "]"));
    assert_int_equal(go(&l, &first), TIDE_FAILED);
    refused(&l, NULL, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"set\":{\"api_key\":null}}");
    LACKS(plan(&l, &second), "hunter");
    HOLDS(l.plan, "{\"key\":\"api_key\",\"never_stored\":true}");
    assert_int_equal(go(&l, &second), TIDE_OK);
    assert_false(on_disk(&l, "hunter-"));
    assert_true(on_disk(&l, "\"by\":\"override\""));
    end(&l);
}

static void what_is_needed_later_is_told(void **state)
{
    struct life l;

    (void)state;
    begin(&l, GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") "," WORK(
                  "b", ",\"inputs\":[\"api_key\"]") "],\"edges\":"
                                                    "[" EDGE("a", "b") "]"));
    fails_at(&l, "a");
    HOLDS(plan(&l, NULL), "{\"node\":\"b\",\"key\":\"api_key\",\"never_stored\":true,\"later\":true}");
    HOLDS(l.plan, "\"refused\":[]");
    end(&l);
}

/* ---- what must happen once ---- */

#define ONCE CHAIN("a", "b", "c", ",\"effect\":\"once\"", "")

static void going_back_past_what_must_happen_once_is_refused(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "c");
    w = checkpoint(&l, "node_complete", "a");
    opt.checkpoint = w.id;
    refused(&l, &opt, TIDE_EFFECTS, TIDE_ACTION_REPEAT, "");
    opt.rollback = TIDE_ROLLBACK_REUSE_EFFECTS;
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 c#1"); /* b answered from the log */
    assert_string_equal(l.memory, "{\"a\":1,\"b\":1,\"c\":1}");
    end(&l);
}

static void it_happens_again_only_when_somebody_says_so(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt, .rollback = TIDE_ROLLBACK_REDO_EFFECTS};
    struct wanted w;
    struct life l;

    (void)state;
    begin(&l, ONCE);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    w = checkpoint(&l, "node_complete", "a");
    opt.checkpoint = w.id;
    opt.rollback = 0;
    refused(&l, &opt, TIDE_EFFECTS, TIDE_ACTION_REPEAT, "");
    HOLDS(l.err.msg, "b (call node:b#1)");
    opt.rollback = TIDE_ROLLBACK_REDO_EFFECTS;
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 b#1 c#1");
    end(&l);
}

static void one_that_failed_needs_a_word(void **state)
{
    static const char *const b[] = {"b", NULL}, *const q[] = {"q", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .retry = q};
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "b");
    refused(&l, NULL, TIDE_UNSETTLED, TIDE_ACTION_REPEAT, "b");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"happened\":[{\"name\":\"b\"}],\"set\":{\"b\":null}}");
    helps(&l, 1, TIDE_ACTION_REPEAT, "{\"retry\":[\"b\"]}");
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "q");
    opt = (struct tide_graph_options){.size = sizeof(struct tide_graph_options), .happened = q};
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "q");
    opt.happened = NULL;
    opt.retry = b;
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 b#1 c#1");
    end(&l);
}

/* l and r set `seen` beside each other: r comes second, and must happen once. */
#define BESIDE(rule)                                                                                                      \
    GRAPH("\"entry\":\"a\",\"parallel\":1,\"conflict\":{\"seen\":\"" rule "\"},\"nodes\":[" WORK(                         \
        "a",                                                                                                              \
        "") ","                                                                                                           \
            "{\"id\":\"l\",\"type\":\"function\",\"callback\":\"work\",\"retries\":0,\"outputs\":[\"l\",\"seen\"]},"      \
            "{\"id\":\"r\",\"type\":\"function\",\"callback\":\"work\",\"effect\":\"once\",\"outputs\":[\"r\",\"seen\"]}" \
            "],\"edges\":[" EDGE("a", "l") "," EDGE("a", "r") "]")

static void what_happened_and_could_not_be_taken_is_kept(void **state)
{
    static const char *const r[] = {"r", NULL};
    struct tide_graph_options again = {.size = sizeof again, .retry = r};
    struct life l;

    (void)state;
    begin(&l, BESIDE("error"));
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    HOLDS(l.err.msg, "seen");
    assert_int_equal(go(&l, NULL), TIDE_FAILED); /* nothing has changed: it fails as before, and does nothing */
    expect_calls(&l, "a#1 l#1 r#1");
    use_graph(&l, BESIDE("last"));
    HOLDS(plan(&l, NULL), "\"refused\":[]");
    HOLDS(plan(&l, &again), "\"refused\":[]"); /* who wants it once more can say so */
    assert_int_equal(go(&l, NULL), TIDE_OK);
    HOLDS(l.w.notices, "node 'r' happened before it failed: its result is used");
    expect_calls(&l, "a#1 l#1 r#1");
    HOLDS(l.memory, "\"r\":1");
    end(&l);
}

static void what_happened_must_have_left_what_it_promised(void **state)
{
    static const char *const b[] = {"b", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .happened = b};
    struct life l;

    (void)state;
    begin(&l, ONCE);
    fails_at(&l, "b");
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "b");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"set\":{\"b\":null}}");
    plan(&l, &opt);
    HOLDS(l.plan, "\"nodes_to_run\":[]");
    opt.memory = "{\"b\":7}";
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1");
    assert_string_equal(l.memory, "{\"a\":1,\"b\":7,\"c\":1}");
    end(&l);
}

/* Its start was recorded with that of a branch which failed at once: it never began, and nobody is asked whether it did. */
static void what_never_began_is_not_asked_about(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt, .memory = "{\"nope\":1}"};
    struct life l;

    (void)state;
    begin(
        &l,
        "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"function\",\"callback\":"
        "\"work\",\"outputs\":[\"a\"]},{\"id\":\"b\",\"type\":\"function\",\"effect\":\"once\",\"callback\":\"work\","
        "\"outputs\":[\"b\"]},{\"id\":\"c\",\"type\":\"function\",\"callback\":\"work\",\"inputs\":[\"nope\"],"
        "\"outputs\":[\"c\"]}],\"edges\":[{\"from\":\"a\",\"to\":\"b\"},{\"from\":\"a\",\"to\":\"c\"}]}");
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    expect_calls(&l, "a#1");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    assert_int_equal(world_count(&l.w, "b"), 1);
    assert_int_equal(world_count(&l.w, "c"), 1);
    end(&l);
}

/* What is inside of a map or a graph has no keys of the memory that could be set: what it gave is said with it. */
static void inside_of_others_what_it_gave_is_said_with_it(void **state)
{
    static const char *const item[] = {"m#1[0]", NULL}, *const inner[] = {"s#1/b", NULL};
    static const char *const wrong[] = {"m#1[0]=[1", NULL}, *const null[] = {"m#1[0]={\"x\":null}", NULL},
                             *const gave[] = {"m#1[0]={\"x\":{\"a\":7}}", NULL}, *const lone[] = {"s#1/b=8", NULL};
    struct tide_graph_options opt = {.size = sizeof opt, .happened = item};
    struct life l;

    (void)state;
    begin(&l,
          "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"m\",\"memory\":{\"l\":[1]},\"nodes\":[{\"id\":\"m\",\"type\":"
          "\"map\",\"over\":\"l\",\"as\":\"i\",\"outputs\":[\"m\"],\"node\":{\"type\":\"function\",\"effect\":\"once\","
          "\"callback\":\"work\",\"outputs\":[\"x\"]}}]}");
    fails_at(&l, "m#1[0]");
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "m#1[0]");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"happened\":[{\"name\":\"m#1[0]\",\"output\":{\"x\":null}}]}");
    helps(&l, 1, TIDE_ACTION_REPEAT, "{\"retry\":[\"m#1[0]\"]}");
    refused(&l, NULL, TIDE_UNSETTLED, TIDE_ACTION_REPEAT, "m#1[0]");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"happened\":[{\"name\":\"m#1[0]\",\"output\":null}]}");
    opt.happened = wrong;
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "m#1[0]");
    opt.happened = null; /* the hint, sent back as it is */
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "m#1[0]");
    opt.happened = gave;
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "m#1[0]#1");
    HOLDS(l.memory, "\"m\":[{\"a\":7}]");
    end(&l);
    begin(
        &l,
        "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"s\",\"nodes\":[{\"id\":\"s\",\"type\":\"subgraph\",\"outputs\":"
        "[\"b\"],\"graph\":{\"tidemark_graph\":1,\"id\":\"i\",\"entry\":\"b\",\"nodes\":[{\"id\":\"b\",\"type\":"
        "\"function\",\"effect\":\"once\",\"callback\":\"work\",\"outputs\":[\"b\"]}]}}]}");
    fails_at(&l, "s#1/b");
    opt.happened = inner;
    refused(&l, &opt, TIDE_INVALID, TIDE_ACTION_REPEAT, "s#1/b");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"happened\":[{\"name\":\"s#1/b\",\"output\":{\"b\":null}}]}");
    opt.happened = lone;
    assert_int_equal(go(&l, &opt), TIDE_OK);
    expect_calls(&l, "s#1/b#1");
    HOLDS(l.memory, "\"b\":8");
    end(&l);
}

static void steps_that_are_used_up_need_another_graph(void **state)
{
    static const char two[] =
        "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"max_steps\":%d,\"nodes\":[{\"id\":\"a\","
        "\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"a\"]},{\"id\":\"b\",\"type\":"
        "\"function\",\"callback\":\"work\",\"outputs\":[\"b\"]}],\"edges\":[{\"from\":\"a\",\"to\":\"b\"}]}";
    char json[sizeof two + 16];
    struct life l;

    (void)state;
    snprintf(json, sizeof json, two, 1);
    begin(&l, json);
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    refused(&l, NULL, TIDE_INVALID, TIDE_ACTION_REPEAT, "");
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"graph\":null}");
    snprintf(json, sizeof json, two, 2);
    use_graph(&l, json);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1");
    end(&l);
}

static void a_node_that_was_left_behind_is_not_complete(void **state)
{
    struct life l;

    (void)state;
    begin(
        &l,
        "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"branch_failure\":\"continue\",\"max_retries\":0,\"nodes\":["
        "{\"id\":\"a\",\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"a\"]},"
        "{\"id\":\"b\",\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"b\"]},"
        "{\"id\":\"c\",\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"c\"]}],"
        "\"edges\":[{\"from\":\"a\",\"to\":\"b\"},{\"from\":\"a\",\"to\":\"c\"}]}");
    snprintf(l.w.fail, sizeof l.w.fail, "b");
    l.w.fail_times = -1;
    assert_int_equal(go(&l, NULL), TIDE_OK);
    plan(&l, NULL);
    HOLDS(l.plan, "\"failed\":[\"b\"]");
    LACKS(l.plan, "\"complete\":[\"a\",\"b\"");
    end(&l);
}

/* ---- damage ---- */

static void damage(struct life *l, int64_t seq)
{
    tide_store_close(l->w.store);
    damage_event(l->w.url, seq);
    OK(tide_store_open(l->w.url, NULL, &l->w.store, &err));
}

static void a_damaged_session_goes_on_from_the_newest_checkpoint_that_can_be_read(void **state)
{
    struct buf json = BUF_INIT(1 << 20);
    struct wanted a, b;
    struct rescue r;
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "c");
    a = checkpoint(&l, "node_complete", "a");
    b = checkpoint(&l, "node_complete", "b");
    damage(&l, b.seq);
    ABOUT(TIDE_CORRUPT, TIDE_SUBJECT_CHECKPOINT, b.id,
          graph_rescue(l.w.store, l.session, b.id, false, false, false, &r, &err));
    OK(graph_rescue(l.w.store, l.session, NULL, false, false, true, &r, &err));
    assert_string_equal(r.fork, "");
    rescue_json(&r, &json);
    HOLDS(buf_cstr(&json), "\"complete\":[\"a\"]");
    buf_done(&json);
    rescue_done(&r);
    OK(graph_rescue(l.w.store, l.session, b.id, true, false, false, &r, &err));
    assert_true(r.seq < b.seq && r.seq >= a.seq);
    assert_true(r.damage.code == TIDE_CORRUPT);
    snprintf(l.session, sizeof l.session, "%s", r.fork);
    rescue_done(&r);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 b#1 c#1");
    end(&l);
}

/* Until the state is read from a snapshot: damage before it does not keep the session from being opened. */
static void make_snapshot(struct life *l)
{
    AUTO(buf_done) struct buf body = BUF_INIT(1 << 20);
    tide_session *s = open_session(l);
    struct tide_new_event ev = {"message.user", NULL, 0};

    buf_addf(&body, "{\"content\":\"%0*d\"}", 20000, 0);
    ev.body = buf_cstr(&body);
    for (int i = 0; i < 6; i++)
        OK(tide_session_append(s, 0, &ev, 1, NULL, &err));
    tide_session_close(s);
}

/* In files the damage is seen before anything is done with the session: what can be had is a fork from before it. */
static void is_rescued_only_from_before(struct life *l, struct wanted damaged, struct wanted before)
{
    struct tide_session *s;
    struct rescue r;

    ABOUT_EVENT(TIDE_CORRUPT, damaged.seq, tide_session_open(l->w.store, l->session, TIDE_SESSION_APPEND, &s, &err));
    ABOUT(TIDE_CORRUPT, TIDE_SUBJECT_CHECKPOINT, damaged.id,
          graph_rescue(l->w.store, l->session, damaged.id, false, false, false, &r, &err));
    OK(graph_rescue(l->w.store, l->session, NULL, false, false, false, &r, &err));
    assert_string_equal(r.checkpoint, before.id);
    rescue_done(&r);
}

static void a_tampered_checkpoint_is_rejected_by_name(void **state)
{
    struct tide_graph_options opt = {.size = sizeof opt};
    struct wanted a, before;
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "c");
    a = checkpoint(&l, "node_complete", "a");
    before = checkpoint(&l, "node_start", "a");
    make_snapshot(&l);
    damage(&l, a.seq);
    if (on_files()) {
        is_rescued_only_from_before(&l, a, before);
        end(&l);
        return;
    }
    opt.checkpoint = a.id;
    refused(&l, &opt, TIDE_CORRUPT, TIDE_ACTION_REPEAT, a.id);
    helps(&l, 0, TIDE_ACTION_REPEAT, "{\"fallback\":true}");
    opt.checkpoint = before.id;
    refused(&l, &opt, TIDE_CORRUPT, TIDE_ACTION_REPEAT, "");
    opt = (struct tide_graph_options){.size = sizeof(struct tide_graph_options), .checkpoint = a.id, .fallback = 1};
    HOLDS(plan(&l, &opt), "using checkpoint");
    HOLDS(l.plan, "\"action\":\"fork\"");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    HOLDS(l.w.notices, "using checkpoint");
    assert_string_not_equal(l.ran, l.session);
    expect_calls(&l, "a#1 b#1 c#1 a#1 b#1 c#1"); /* from before a */
    end(&l);
}

static void it_goes_on_from_where_it_stands_when_only_the_past_is_damaged(void **state)
{
    struct life l;

    (void)state;
    if (on_files())
        skip(); /* there the damage is seen */
    begin(&l, ABC);
    fails_at(&l, "c");
    make_snapshot(&l);
    damage(&l, checkpoint(&l, "node_complete", "a").seq);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 c#1 c#1");
    end(&l);
}

static void without_one_it_never_begins_anew_in_silence(void **state)
{
    struct rescue r;
    struct life l;

    (void)state;
    begin(&l, ABC);
    fails_at(&l, "c");
    damage(&l, 1);
    ABOUT_SESSION(TIDE_CORRUPT, l.session, graph_rescue(l.w.store, l.session, NULL, true, false, false, &r, &err));
    end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_says_what_would_run),
        cmocka_unit_test(from_a_checkpoint_it_starts_at_the_next_node),
        cmocka_unit_test(a_completed_session_goes_on_only_as_a_fork),
        cmocka_unit_test(a_fork_made_by_hand_goes_on),
        cmocka_unit_test(checkpoints_that_cannot_be_used_are_named),
        cmocka_unit_test(a_question_is_asked_once_and_again_when_gone_back),
        cmocka_unit_test(a_node_that_is_gone_is_named),
        cmocka_unit_test(a_renamed_node_goes_on_under_its_new_name),
        cmocka_unit_test(the_newest_checkpoint_that_fits_is_taken_when_asked_for),
        cmocka_unit_test(a_node_that_became_another_is_told),
        cmocka_unit_test(a_graph_inside_goes_on_at_its_own_node),
        cmocka_unit_test(items_that_are_graphs_share_the_memory_around_the_map),
        cmocka_unit_test(every_reason_is_told_at_once),
        cmocka_unit_test(what_is_never_stored_is_asked_for_again),
        cmocka_unit_test(what_is_needed_later_is_told),
        cmocka_unit_test(going_back_past_what_must_happen_once_is_refused),
        cmocka_unit_test(it_happens_again_only_when_somebody_says_so),
        cmocka_unit_test(one_that_failed_needs_a_word),
        cmocka_unit_test(what_happened_and_could_not_be_taken_is_kept),
        cmocka_unit_test(what_happened_must_have_left_what_it_promised),
        cmocka_unit_test(what_never_began_is_not_asked_about),
        cmocka_unit_test(inside_of_others_what_it_gave_is_said_with_it),
        cmocka_unit_test(steps_that_are_used_up_need_another_graph),
        cmocka_unit_test(a_node_that_was_left_behind_is_not_complete),
        cmocka_unit_test(a_damaged_session_goes_on_from_the_newest_checkpoint_that_can_be_read),
        cmocka_unit_test(a_tampered_checkpoint_is_rejected_by_name),
        cmocka_unit_test(it_goes_on_from_where_it_stands_when_only_the_past_is_damaged),
        cmocka_unit_test(without_one_it_never_begins_anew_in_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
