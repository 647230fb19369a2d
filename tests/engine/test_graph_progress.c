/* SPDX-License-Identifier: Apache-2.0 */
/* How far a graph is, and what came of it, as any face shows it: folded from the events of its run. */
#include "engine/run_report.h"
#include "session/runs.h"

#define LUA(id, code, outputs) "{\"id\":\"" id "\",\"type\":\"lua\",\"code\":\"" code "\",\"outputs\":" outputs "}"
#define HEAD "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":["

static tide_graph *parse(const char *json)
{
    tide_graph *g = NULL;

    OK(tide_graph_parse(json, strlen(json), NULL, NULL, NULL, &g, &err));
    return g;
}

static void take_event(void *arg, const struct tide_graph_event *event)
{
    graph_progress_take(arg, event);
}

/* Runs it; what came of it is in *ret, whose texts live as long as the rest. */
struct ran {
    tide_graph *graph;
    tide_session *session;
    struct tide_graph_result result;
    struct graph_progress progress;
    struct graph_report report;
};

static void run_graph(struct fixture *f, struct ran *r, const char *json, const char *message)
{
    const struct tide_graph_options opt = {.size = sizeof opt, .event = take_event, .arg = &r->progress, .threads = 1};
    const struct tide_session_info *info;
    enum tide_code code;

    r->graph = parse(json);
    graph_progress_init(&r->progress, r->graph);
    OK(tide_session_create(f->store, NULL, NULL, &r->session, &err));
    code = tide_graph_run(r->session, r->graph, &opt, &r->result, NULL);
    graph_progress_end(&r->progress, code);
    OK(tide_session_get_info(r->session, &info, &err));
    graph_report_fill(&r->report, &r->progress.arena, r->session, info, &r->progress, &r->result, code, message);
}

static void ran_done(struct ran *r)
{
    graph_progress_done(&r->progress);
    tide_text_done(&r->result.memory);
    tide_session_close(r->session);
    tide_graph_free(r->graph);
}

static void a_run_that_completes_is_counted_and_gives_what_its_last_nodes_set(void **state)
{
    struct ran r = {0};

    run_graph(
        *state, &r,
        HEAD LUA("a", "return {x = 1}", "[\"x\"]") "," LUA("b", "return {y = 2}", "[\"y\"]") "," LUA(
            "c", "return {z = 3}",
            "[\"z\"]") "],\"edges\":[{\"from\":\"a\",\"to\":\"b\"},{\"from\":\"a\",\"to\":\"c\",\"when\":\"false\"}]}",
        "");
    assert_string_equal(r.report.status, "completed");
    assert_string_equal(r.report.durability, "full");
    assert_null(r.report.message);
    assert_false(r.report.has_wait || r.report.has_failed_node || r.report.has_usage);
    assert_int_equal(r.report.nodes, 2);
    assert_int_equal(r.report.retries, 0);
    assert_true(r.report.checkpoints > 0);
    assert_null(r.report.failed_nodes[0]);
    assert_int_equal(graph_progress_find(&r.progress, "a")->state, PROGRESS_DONE);
    assert_int_equal(graph_progress_find(&r.progress, "c")->state, PROGRESS_NOT_TAKEN);
    assert_true(graph_progress_gives(&r.progress, STR("y")));
    assert_false(graph_progress_gives(&r.progress, STR("x"))); /* on the way */
    assert_false(graph_progress_gives(&r.progress, STR("z"))); /* on a way that was not taken */
    ran_done(&r);
}

static void a_run_that_fails_names_its_node(void **state)
{
    struct ran r = {0};

    run_graph(*state, &r,
              HEAD LUA("a", "return {x = 1}", "[\"x\"]") "," LUA(
                  "b", "error('no')", "[]") "],\"max_retries\":0,\"edges\":[{\"from\":\"a\",\"to\":\"b\"}]}",
              "it failed");
    assert_string_equal(r.report.status, "failed");
    assert_string_equal(r.report.message, "it failed");
    assert_true(r.report.has_failed_node);
    assert_string_equal(r.report.failed_node, "b");
    assert_int_equal(r.report.nodes, 1);
    assert_int_equal(graph_progress_find(&r.progress, "b")->state, PROGRESS_FAILED);
    assert_string_equal(r.report.failed_nodes[0], "b");
    assert_null(r.report.failed_nodes[1]);
    assert_true(graph_progress_gives(&r.progress, STR("x"))); /* of the one that ended last: no way has ended */
    ran_done(&r);
}

static void a_run_that_waits_says_for_what(void **state)
{
    struct ran r = {0};

    run_graph(*state, &r, HEAD "{\"id\":\"a\",\"type\":\"human_input\",\"question\":\"Go on?\",\"outputs\":[\"ok\"]}]}",
              "why");
    assert_string_equal(r.report.status, "waiting");
    assert_true(r.report.has_wait);
    assert_string_equal(r.report.wait.question, "Go on?");
    assert_null(r.report.message); /* to wait is no failure */
    assert_int_equal(graph_progress_find(&r.progress, "a")->state, PROGRESS_PARKED);
    ran_done(&r);
}

/* What a resume begins with: nodes that were complete, and the one that was not. */
static void what_a_session_did_before_is_known(void **state)
{
    struct ran r = {0};
    struct graph_progress again;

    run_graph(*state, &r,
              HEAD LUA("a", "return {x = 1}", "[\"x\"]") "," LUA(
                  "b", "error('no')", "[]") "],\"max_retries\":0,\"edges\":[{\"from\":\"a\",\"to\":\"b\"}]}",
              "");
    graph_progress_init(&again, r.graph);
    graph_progress_before(&again, r.session, 0);
    assert_int_equal(graph_progress_find(&again, "a")->state, PROGRESS_DONE);
    assert_int_equal(graph_progress_find(&again, "b")->state, PROGRESS_FAILED);
    assert_int_equal(again.completed, 0); /* of this run */
    graph_progress_done(&again);
    ran_done(&r);
}

static void what_runs_inside_a_node_is_counted_in_it(void **unused)
{
    static const struct tide_graph_event events[] = {
        {.what = TIDE_GRAPH_NODE_START, .node = "a", .visit = 1, .attempt = 1, .attempts = 1},
        {.what = TIDE_GRAPH_NODE_START, .node = "a#1[0]", .items = 3},
        {.what = TIDE_GRAPH_NODE_END, .node = "a#1[0]", .ms = 5},
        {.what = TIDE_GRAPH_NODE_FAILED, .node = "a#1[1]", .text = "no", .delay_ms = 100},
        {.what = TIDE_GRAPH_NODE_END, .node = "a#1[1]/x#1/deep", .ms = 5},
        {.what = TIDE_GRAPH_CHECKPOINT},
    };
    tide_graph *g =
        parse(HEAD "{\"id\":\"a\",\"type\":\"map\",\"over\":\"list\",\"as\":\"item\",\"outputs\":[\"v\"],\"node\":"
                   "{\"type\":\"lua\",\"code\":\"return {v = 1}\",\"outputs\":[\"v\"]}}]}");
    const struct progress_node *n;
    struct graph_progress p;

    (void)unused;
    graph_progress_init(&p, g);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        graph_progress_take(&p, &events[i]);
    n = graph_progress_find(&p, "a#1[2]");
    assert_ptr_equal(n, graph_progress_find(&p, "a"));
    assert_int_equal(n->inside, 3);
    assert_int_equal(n->inside_done, 1);
    assert_int_equal(n->state, PROGRESS_RUNNING);
    assert_string_equal(n->note, "no");
    assert_int_equal(p.completed, 0);
    assert_int_equal(p.retries, 1);
    assert_int_equal(p.checkpoints, 1);
    graph_progress_end(&p, TIDE_CANCELLED);
    assert_int_equal(n->state, PROGRESS_PARKED);
    graph_progress_done(&p);
    tide_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_that_completes_is_counted_and_gives_what_its_last_nodes_set, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_fails_names_its_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_waits_says_for_what, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_session_did_before_is_known, set_up, tear_down),
        cmocka_unit_test(what_runs_inside_a_node_is_counted_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
