/* SPDX-License-Identifier: Apache-2.0 */
/* Running graphs: what runs, in which order, how often; what the memory holds; what is left after a failure and a cut. */
#include "lives.h"

#define GRAPH(rest) "{\"tidemark_graph\":1,\"id\":\"g\"," rest "}"
#define WORK(id, more)                                                                                                 \
    "{\"id\":\"" id "\",\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"" id "\"]" more "}"
#define EDGE(from, to) "{\"from\":\"" from "\",\"to\":\"" to "\"}"
#define WHEN(from, to, when, more) "{\"from\":\"" from "\",\"to\":\"" to "\",\"when\":\"" when "\"" more "}"

/* Runs it in a new session; what it came to. The memory is put into *ret. */
static enum tide_code run(struct world *w, const char *json, const char *memory, char **ret, struct tide_err *why)
{
    const struct tide_graph_options opt = {
        .size = sizeof opt, .agent = &quick, .memory = memory, .event = world_hear, .arg = w};
    struct tide_graph_result result = {0};
    tide_graph *g = world_graph(w, json);
    tide_session *s = NULL;
    enum tide_code code;

    OK(tide_session_create(w->store, NULL, NULL, &s, &err));
    code = tide_graph_run(s, g, &opt, &result, why);
    tide_session_close(s);
    tide_graph_free(g);
    *ret = result.memory.ptr;
    return code;
}

struct row {
    const char *name, *graph, *memory;
    enum tide_code code;
    const char *calls, *result;
};

static const struct row rows[] = {
    {"a chain",
     GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") "," WORK("b", "") "," WORK("c", "") "],\"edges\":[" EDGE(
         "a", "b") "," EDGE("b", "c") "]"),
     NULL, TIDE_OK, "a#1 b#1 c#1", "{\"a\":1,\"b\":1,\"c\":1}"},
    {"a fan-out comes together once",
     GRAPH("\"entry\":\"a\",\"parallel\":1,\"nodes\":[" WORK("a", "") "," WORK("b", "") "," WORK("c", "") "," WORK(
         "d", "") "],\"edges\":[" EDGE("a", "b") "," EDGE("a", "c") "," EDGE("b", "d") "," EDGE("c", "d") "]"),
     NULL, TIDE_OK, "a#1 b#1 c#1 d#1", "{\"a\":1,\"b\":1,\"c\":1,\"d\":1}"},
    {"branches of unequal length come together once",
     GRAPH("\"entry\":\"a\",\"parallel\":1,\"nodes\":[" WORK("a", "") "," WORK("b", "") "," WORK("c", "") "," WORK(
         "d", "") "," WORK("e",
                           "") "],\"edges\":[" EDGE("a",
                                                    "b") "," EDGE("a",
                                                                  "e") "," EDGE("b",
                                                                                "c") "," EDGE("c",
                                                                                              "d") "," EDGE("e",
                                                                                                            "d") "]"),
     NULL, TIDE_OK, "a#1 b#1 e#1 c#1 d#1", NULL},
    {"one conditional edge, by priority",
     GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") "," WORK("b", "") "," WORK("c", "") "],\"edges\":[" WHEN(
         "a", "b", "output.a == 1", "") "," WHEN("a", "c", "memory.a == 1", ",\"priority\":5") "]"),
     NULL, TIDE_OK, "a#1 c#1", NULL},
    {"a loop until it is good enough",
     GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", ",\"max_visits\":10") "," WORK("b", "") "],\"edges\":[" WHEN(
         "a", "a", "output.a < 4", ",\"priority\":1") "," WHEN("a", "b", "true", "") "]"),
     NULL, TIDE_OK, "a#1 a#2 a#3 a#4 b#1", NULL},
    {"a loop that is limited takes the other way",
     GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", ",\"max_visits\":3") "," WORK("b", "") "],\"edges\":[" WHEN(
         "a", "a", "true", ",\"priority\":1") "," WHEN("a", "b", "1 == 1", "") "]"),
     NULL, TIDE_OK, "a#1 a#2 a#3 b#1", NULL},
    {"a router",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[" WORK("a", "") ",{\"id\":\"r\",\"type\":\"router\",\"routes\":[{\"when\":\"memory.n > 5\",\"to\":\"b\"}],\"otherwise\":\"c\"}," WORK(
             "b", "") "," WORK("c", "") "],\"edges\":[" EDGE("a", "r") "]"),
     "{\"n\":7}", TIDE_OK, "a#1 b#1", NULL},
    {"lua",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {x = inputs.n * 2, y = 1}\",\"inputs\":[\"n\"],\"outputs\":[\"x\"]}]"),
     "{\"n\":21}", TIDE_OK, "", "{\"n\":21,\"x\":42}"},
    {"lua looks at one member",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {x = memory.n + inputs.n}\",\"outputs\":[\"x\"]}]"),
     "{\"n\":21,\"big\":[1,2,3]}", TIDE_OK, "", "{\"n\":21,\"big\":[1,2,3],\"x\":42}"},
    {"lua looks at all of them",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"local k = 0 for _ in pairs(inputs) do k = k + 1 end return {x = k}\",\"outputs\":[\"x\"]}]"),
     "{\"n\":21,\"big\":[1,2,3]}", TIDE_OK, "", "{\"n\":21,\"big\":[1,2,3],\"x\":2}"},
    {"lua looks by another name",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"local m = memory return {x = #m.big}\",\"outputs\":[\"x\"]}]"),
     "{\"n\":21,\"big\":[1,2,3]}", TIDE_OK, "", "{\"n\":21,\"big\":[1,2,3],\"x\":3}"},
    {"lua looks at a member by a name that it makes",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {x = memory['b' .. 'ig'][2]}\",\"outputs\":[\"x\"]}]"),
     "{\"n\":21,\"big\":[1,2,3]}", TIDE_OK, "", "{\"n\":21,\"big\":[1,2,3],\"x\":2}"},
    {"lua looks through its environment",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"return {x = _ENV['mem' .. 'ory'].n}\",\"outputs\":[\"x\"]}]"),
     "{\"n\":21,\"big\":[1,2,3]}", TIDE_OK, "", "{\"n\":21,\"big\":[1,2,3],\"x\":21}"},
    {"lua looks inside a function",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"lua\",\"code\":\"local function f(t) return t.n end return {x = f(inputs) + memory.n}\",\"outputs\":[\"x\"]}]"),
     "{\"n\":21,\"big\":[1,2,3]}", TIDE_OK, "", "{\"n\":21,\"big\":[1,2,3],\"x\":42}"},
    {"a map over a list",
     GRAPH(
         "\"entry\":\"m\",\"parallel\":2,\"nodes\":[{\"id\":\"m\",\"type\":\"map\",\"over\":\"list\",\"as\":\"it\",\"outputs\":[\"sq\"],\"node\":{\"type\":\"lua\",\"code\":\"return {sq = "
         "inputs.it * inputs.it}\",\"outputs\":[\"sq\"]}}]"),
     "{\"list\":[1,2,3]}", TIDE_OK, "", "{\"list\":[1,2,3],\"sq\":[1,4,9]}"},
    {"a map over nothing",
     GRAPH(
         "\"entry\":\"m\",\"nodes\":[{\"id\":\"m\",\"type\":\"map\",\"over\":\"list\",\"outputs\":[\"r\"],\"node\":{\"type\":\"lua\",\"code\":\"return {}\"}}]"),
     "{\"list\":[]}", TIDE_OK, "", "{\"list\":[],\"r\":[]}"},
    {"a graph inside",
     GRAPH(
         "\"entry\":\"a\",\"nodes\":[" WORK("a", "") ",{\"id\":\"s\",\"type\":\"subgraph\",\"inputs\":[\"a\"],\"outputs\":[\"z\"],\"graph\":{\"id\":\"in\",\"entry\":\"y\",\"nodes\":[" WORK(
             "y",
             "") "," WORK("z",
                          "") "],\"edges\":[" EDGE("y",
                                                   "z") "]}}," WORK("b",
                                                                    "") "],\"edges\":[" EDGE("a",
                                                                                             "s") "," EDGE("s",
                                                                                                           "b") "]"),
     NULL, TIDE_OK, "a#1 s#1/y#1 s#1/z#1 b#1", "{\"a\":1,\"z\":1,\"b\":1}"},
    {"an edge that maps",
     GRAPH("\"entry\":\"a\",\"nodes\":[" WORK(
         "a",
         "") ",{\"id\":\"l\",\"type\":\"lua\",\"code\":\"return {got = inputs.q}\",\"outputs\":[\"got\"]}],\"edges\":[{\"from\":\"a\",\"to\":\"l\","
             "\"map\":{\"q\":\"output.a + 10\"}}]"),
     NULL, TIDE_OK, "a#1", "{\"a\":1,\"got\":11}"},
    {"a condition that errs is told and not taken",
     GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") "," WORK("b", "") "],\"edges\":[" WHEN(
         "a", "b", "output.x.y > 1", "") "]"),
     NULL, TIDE_OK, "a#1", NULL},
    {"branches in conflict",
     GRAPH("\"entry\":\"a\",\"parallel\":1,\"conflict\":{\"k\":\"merge\"},\"nodes\":[" WORK(
         "a",
         "") ",{\"id\":\"b\",\"type\":\"lua\",\"code\":\"return {k = {1}}\",\"outputs\":[\"k\"]},{\"id\":\"c\",\"type\":"
             "\"lua\",\"code\":\"return {k = {2}}\",\"outputs\":[\"k\"]}],\"edges\":[" EDGE("a", "b") "," EDGE(
                 "a", "c") "]"),
     NULL, TIDE_OK, "a#1", "{\"a\":1,\"k\":[1,2]}"},
    {"a missing input", GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", ",\"inputs\":[\"nope\"]") "]"), NULL, TIDE_FAILED,
     "", NULL},
};

static void graphs_run_as_they_say(void **state)
{
    AUTO(buf_done) struct buf calls = BUF_INIT(1 << 20);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        char *memory = NULL;
        struct world w;
        struct tide_err err = {0};
        enum tide_code code;

        world_open(&w);
        code = run(&w, r->graph, r->memory, &memory, &err);
        if (code != r->code || strcmp(world_calls(&w, &calls), r->calls) != 0 ||
            (r->result && strcmp(memory, r->result) != 0))
            fail_msg("%s: %s %s\ncalls %s, want %s\nmemory %s\nwant %s", r->name, tide_code_name(code), err.msg,
                     buf_cstr(&calls), r->calls, memory, r->result ? r->result : "anything");
        free(memory);
        world_close(&w);
    }
}

/* ---- failing, going on ---- */

static void expect_calls(struct life *l, const char *want)
{
    AUTO(buf_done) struct buf calls = BUF_INIT(1 << 20);

    if (strcmp(world_calls(&l->w, &calls), want) != 0)
        fail_msg("calls %s, want %s", buf_cstr(&calls), want);
}

#define CHAIN(more_b, rest)                                                                                            \
    GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", "") "," WORK("b", more_b) "," WORK("c", "") "],\"edges\":[" EDGE(    \
        "a", "b") "," EDGE("b", "c") "]" rest)

static void a_node_that_fails_is_tried_again(void **state)
{
    struct life l;

    (void)state;
    begin(&l, CHAIN("", ""));
    snprintf(l.w.fail, sizeof l.w.fail, "b");
    l.w.fail_times = 2;
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 b#1 b#1 c#1");
    end(&l);
}

static void its_own_retry_count_beats_the_graphs(void **state)
{
    struct life l;

    (void)state;
    begin(&l, CHAIN(",\"retries\":1", ""));
    snprintf(l.w.fail, sizeof l.w.fail, "b");
    l.w.fail_times = -1;
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    assert_int_equal(l.err.detail.subject, TIDE_SUBJECT_NODE);
    assert_string_equal(l.err.detail.name, "b");
    expect_calls(&l, "a#1 b#1 b#1");
    end(&l);
}

static void a_failed_graph_goes_on_at_the_failed_node(void **state)
{
    struct life l;

    (void)state;
    begin(&l, CHAIN(",\"retries\":0", ""));
    snprintf(l.w.fail, sizeof l.w.fail, "b");
    l.w.fail_times = 1;
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 b#1 b#1 c#1");
    assert_string_equal(l.memory, "{\"a\":1,\"b\":1,\"c\":1}");
    end(&l);
}

static void a_failure_edge_takes_care_of_it(void **state)
{
    struct life l;

    (void)state;
    begin(&l, GRAPH("\"entry\":\"a\",\"nodes\":[" WORK("a", ",\"retries\":1") "," WORK("b", "") "," WORK(
                  "c", "") "],\"edges\":[" EDGE("a", "b") ",{\"from\":\"a\",\"to\":\"c\",\"on\":\"failure\"}]"));
    snprintf(l.w.fail, sizeof l.w.fail, "a");
    l.w.fail_times = -1;
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "a#1 a#1 c#1");
    end(&l);
}

#define FORK(rule)                                                                                                     \
    GRAPH(                                                                                                             \
        "\"entry\":\"a\",\"parallel\":1,\"branch_failure\":\"" rule                                                    \
        "\",\"nodes\":[" WORK("a", "") "," WORK("b", ",\"retries\":0") "," WORK("c", "") "," WORK("d", "") "," WORK(   \
            "e", "") "],\"edges\":[" EDGE("a", "b") "," EDGE("a", "c") "," EDGE("c",                                   \
                                                                                "d") "," EDGE("b",                     \
                                                                                              "e") "," EDGE("d",       \
                                                                                                            "e") "]")

static void a_failed_branch_does_as_the_graph_says(void **state)
{
    static const struct {
        const char *graph, *calls, *after;
        enum tide_code code;
    } ways[] = {
        {FORK("fail_all"), "a#1 b#1", "a#1 b#1 b#1 c#1 d#1 e#1", TIDE_FAILED},
        {FORK("wait_all"), "a#1 b#1 c#1 d#1", "a#1 b#1 c#1 d#1 b#1 e#1", TIDE_FAILED},
        {FORK("continue"), "a#1 b#1 c#1 d#1 e#1", NULL, TIDE_OK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct life l;

        begin(&l, ways[i].graph);
        snprintf(l.w.fail, sizeof l.w.fail, "b");
        l.w.fail_times = 1;
        assert_int_equal(go(&l, NULL), ways[i].code);
        expect_calls(&l, ways[i].calls);
        if (ways[i].after) {
            assert_int_equal(go(&l, NULL), TIDE_OK);
            expect_calls(&l, ways[i].after);
        }
        end(&l);
    }
}

static void a_person_is_asked_once_and_the_answer_goes_on(void **state)
{
    static const struct tide_graph_options answer = {.size = sizeof answer, .input = "\"yes, do\""};
    struct life l;

    (void)state;
    begin(
        &l,
        GRAPH(
            "\"entry\":\"a\",\"nodes\":[" WORK("a", "") ",{\"id\":\"h\",\"type\":\"human_input\",\"question\":\"go on after {a}?\",\"outputs\":[\"said\"]}," WORK(
                "c", "") "],\"edges\":[" EDGE("a", "h") "," EDGE("h", "c") "]"));
    assert_int_equal(go(&l, NULL), TIDE_WAITING);
    assert_non_null(strstr(l.err.msg, "go on after 1?"));
    assert_true(l.token[0] != 0);
    assert_int_equal(go(&l, NULL), TIDE_WRONG_STATE); /* going on is not answering */
    assert_int_equal(go(&l, &answer), TIDE_OK);
    expect_calls(&l, "a#1 c#1");
    assert_string_equal(l.memory, "{\"a\":1,\"said\":\"yes, do\",\"c\":1}");
    end(&l);
}

static void an_approval_is_answered_yes_or_no(void **state)
{
    static const struct {
        const char *said;
        enum tide_code code;
        const char *memory;
    } rows_of[] = {
        {"\"maybe\"", TIDE_INVALID, NULL},    {"\"\"", TIDE_INVALID, NULL},
        {"{\"a\":1}", TIDE_INVALID, NULL},    {"\" Yes \"", TIDE_OK, "{\"ok\":true}"},
        {"false", TIDE_OK, "{\"ok\":false}"}, {"{\"decision\":\"deny\"}", TIDE_OK, "{\"ok\":false}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
        struct life l;

        begin(
            &l,
            GRAPH(
                "\"entry\":\"h\",\"nodes\":[{\"id\":\"h\",\"type\":\"human_input\",\"kind\":\"approval\",\"question\":\"go on?\",\"outputs\":[\"ok\"]}]"));
        assert_int_equal(go(&l, NULL), TIDE_WAITING);
        assert_int_equal(
            go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .input = rows_of[i].said}),
            rows_of[i].code);
        if (rows_of[i].memory)
            assert_string_equal(l.memory, rows_of[i].memory);
        else /* it still waits */
            assert_int_equal(
                go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .input = "\"no\""}),
                TIDE_OK);
        end(&l);
    }
}

static void an_unanswered_question_fails_at_its_deadline(void **state)
{
    struct life l;

    (void)state;
    begin(
        &l,
        GRAPH(
            "\"entry\":\"h\",\"nodes\":[{\"id\":\"h\",\"type\":\"human_input\",\"question\":\"well?\",\"deadline\":\"1s\",\"outputs\":[\"said\"]}," WORK(
                "c", "") "],\"edges\":[{\"from\":\"h\",\"to\":\"c\",\"on\":\"failure\"}]"));
    assert_int_equal(go(&l, NULL), TIDE_WAITING);
    for (int i = 0; i < 300 && go(&l, NULL) == TIDE_WRONG_STATE; i++) /* going on is not answering, until it is over */
        usleep(10000);
    expect_calls(&l, "c#1");
    end(&l);
}

static void a_maps_own_limit_counts_for_its_items(void **state)
{
    struct life l;

    (void)state;
    begin(
        &l,
        GRAPH(
            "\"entry\":\"m\",\"parallel\":1,\"nodes\":[{\"id\":\"m\",\"type\":\"map\",\"over\":\"list\",\"parallel\":6,\"outputs\":[\"m\"],\"node\":{\"type\":\"function\",\"callback\":\"meet\",\"outputs\":[\"m\"]}}]"));
    OK(tide_graph_add_callback(l.g, "meet", world_meet, &l.w, &err));
    assert_int_equal(go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options),
                                                         .memory = "{\"list\":[1,2,3,4,5,6]}"}),
                     TIDE_OK);
    assert_int_equal(l.w.most_concurrent, 6); /* each waits until all are there */
    end(&l);
}

static void a_secret_is_seen_by_the_node_and_stored_nowhere(void **state)
{
    static const struct tide_graph_options with = {.size = sizeof with,
                                                   .memory = "{\"api_key\":\"hunter2-in-clear\",\"q\":1}"};
    struct life l;
    char command[600];

    (void)state;
    begin(
        &l,
        GRAPH(
            "\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"function\",\"program\":[\"sh\",\"-c\",\"cat; echo >&2\"],\"inputs\":[\"api_key\",\"q\"],\"outputs\":[\"q\"]}]"));
    assert_int_equal(go(&l, &with), TIDE_OK);
    assert_string_equal(l.memory, "{\"q\":1}");
    snprintf(command, sizeof command, "grep -r hunter2 '%s' >/dev/null", l.w.dir);
    assert_int_not_equal(system(command), 0); /* NOLINT(cert-env33-c): our own directory */
    end(&l);
}

static void a_secret_cannot_stand_in_the_graph(void **state)
{
    static const char graph[] = GRAPH("\"entry\":\"a\",\"memory\":{\"api_key\":\"x\"},\"nodes\":[" WORK("a", "") "]");
    tide_graph *g = NULL;

    (void)state;
    SAYS(TIDE_INVALID, "never stored", tide_graph_parse(graph, strlen(graph), NULL, NULL, NULL, &g, &err));
}

static void an_inner_failure_goes_on_inside(void **state)
{
    struct life l;

    (void)state;
    begin(
        &l,
        GRAPH(
            "\"entry\":\"s\",\"nodes\":[{\"id\":\"s\",\"type\":\"subgraph\",\"outputs\":[\"z\"],\"graph\":{\"id\":\"in\",\"entry\":\"y\",\"nodes\":[" WORK(
                "y",
                "") "," WORK("z",
                             ",\"retries\":0") "],\"edges\":[" EDGE("y",
                                                                    "z") "]}}," WORK("b",
                                                                                     "") "],\"edges\":[" EDGE("s",
                                                                                                              "b") "]"));
    snprintf(l.w.fail, sizeof l.w.fail, "s#1/z");
    l.w.fail_times = 1;
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "s#1/y#1 s#1/z#1 s#1/z#1 b#1"); /* y is complete: not again */
    end(&l);
}

static void an_item_that_failed_is_the_only_one_again(void **state)
{
    struct life l;

    (void)state;
    begin(
        &l,
        GRAPH(
            "\"entry\":\"m\",\"parallel\":1,\"nodes\":[{\"id\":\"m\",\"type\":\"map\",\"over\":\"list\",\"outputs\":[\"m\"],\"node\":{\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"m\"],\"retries\":0}}]"));
    snprintf(l.w.fail, sizeof l.w.fail, "m#1[1]");
    l.w.fail_times = 1;
    assert_int_equal(
        go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .memory = "{\"list\":[7,8,9]}"}),
        TIDE_FAILED);
    assert_int_equal(go(&l, NULL), TIDE_OK);
    expect_calls(&l, "m#1[0]#1 m#1[1]#1 m#1[1]#1 m#1[2]#1");
    end(&l);
}

static void branches_run_beside_each_other(void **state)
{
    struct life l;

    (void)state;
    begin(
        &l,
        GRAPH(
            "\"entry\":\"m\",\"parallel\":4,\"nodes\":[{\"id\":\"m\",\"type\":\"map\",\"over\":\"list\",\"outputs\":[\"m\"],\"node\":{\"type\":\"function\",\"callback\":\"work\",\"outputs\":[\"m\"]}}]"));
    assert_int_equal(
        go(&l,
           &(struct tide_graph_options){.size = sizeof(struct tide_graph_options),
                                        .memory = "{\"list\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}"}),
        TIDE_OK);
    assert_int_equal(l.w.n, 20);
    end(&l);
}

/* ---- checkpoints ---- */

struct tally {
    int n, types[7], clean, resumable;
};

static int count_mark(void *arg, const struct tide_checkpoint *c)
{
    static const char *const types[] = {"turn",           "node_start", "node_complete",  "edge_transition",
                                        "loop_iteration", "safe_point", "user_checkpoint"};
    struct tally *t = arg;

    t->n++;
    t->clean += c->is_clean;
    t->resumable += c->can_resume_from;
    for (int i = 0; i < 7; i++)
        t->types[i] += strcmp(types[i], c->type_word) == 0;
    return 0;
}

static struct tally marks_of(struct life *l)
{
    struct tally t = {0};
    tide_session *s;

    OK(tide_session_open(l->w.store, l->session, TIDE_SESSION_READ, &s, &err));
    OK(tide_checkpoint_list(s, NULL, count_mark, &t, &err));
    tide_session_close(s);
    return t;
}

static void checkpoints_are_made_as_configured(void **state)
{
    static const struct {
        const char *config;
        struct tally want;
    } ways[] = {
        {"{}", {6, {0, 3, 3}, 6, 6}},
        {"{\"checkpoint_on_node_start\":false}", {3, {0, 0, 3}, 3, 3}},
        {"{\"checkpoint_on_edge\":true,\"checkpoint_on_node_start\":false,\"checkpoint_on_node_complete\":false}",
         {2, {0, 0, 0, 2}, 2, 2}},
        {"{\"checkpoint_on_node_start\":false,\"checkpoint_on_node_complete\":false,\"memory_delta_keys\":2}",
         {1, {0, 0, 0, 0, 0, 1}, 1, 1}},
        {"{\"checkpoint_on_node_start\":false,\"checkpoint_on_node_complete\":false,\"risky_nodes\":[\"b\"]}",
         {1, {0, 1}, 1, 1}},
        {"{\"max_checkpoints_per_session\":2,\"prune_after_node_count\":1}", {2, {0, 0, 2}, 2, 2}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct tide_graph_options opt = {.size = sizeof opt, .checkpoints = ways[i].config};
        struct life l;
        struct tally got;

        begin(&l, CHAIN("", ""));
        assert_int_equal(go(&l, &opt), TIDE_OK);
        got = marks_of(&l);
        if (i < 5 ? memcmp(&got, &ways[i].want, sizeof got) != 0 : got.n > 3)
            fail_msg("%s: %d: start %d, complete %d, edge %d, safe %d; clean %d, resumable %d", ways[i].config, got.n,
                     got.types[1], got.types[2], got.types[3], got.types[5], got.clean, got.resumable);
        end(&l);
    }
}

static void a_checkpoint_setting_that_is_not_known_is_refused(void **state)
{
    struct life l;

    (void)state;
    begin(&l, CHAIN("", ""));
    assert_int_equal(go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options),
                                                         .checkpoints = "{\"asynch\":true}"}),
                     TIDE_INVALID);
    assert_non_null(strstr(l.err.msg, "asynch"));
    assert_int_equal(l.w.n, 0);
    end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_run_as_they_say),
        cmocka_unit_test(a_node_that_fails_is_tried_again),
        cmocka_unit_test(its_own_retry_count_beats_the_graphs),
        cmocka_unit_test(a_failed_graph_goes_on_at_the_failed_node),
        cmocka_unit_test(a_failure_edge_takes_care_of_it),
        cmocka_unit_test(a_failed_branch_does_as_the_graph_says),
        cmocka_unit_test(a_person_is_asked_once_and_the_answer_goes_on),
        cmocka_unit_test(an_approval_is_answered_yes_or_no),
        cmocka_unit_test(an_unanswered_question_fails_at_its_deadline),
        cmocka_unit_test(a_maps_own_limit_counts_for_its_items),
        cmocka_unit_test(a_secret_is_seen_by_the_node_and_stored_nowhere),
        cmocka_unit_test(a_secret_cannot_stand_in_the_graph),
        cmocka_unit_test(an_inner_failure_goes_on_inside),
        cmocka_unit_test(an_item_that_failed_is_the_only_one_again),
        cmocka_unit_test(branches_run_beside_each_other),
        cmocka_unit_test(checkpoints_are_made_as_configured),
        cmocka_unit_test(a_checkpoint_setting_that_is_not_known_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
