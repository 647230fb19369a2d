/* SPDX-License-Identifier: Apache-2.0 */
/* Which ways are taken, what they bring, and what becomes of a key that two branches set. */
#include "graph/edge_choice.h"
#include "kit.h"

#define LUA(id) "{\"id\":\"" id "\",\"type\":\"lua\",\"code\":\"return {}\"}"
#define GRAPH(first, edges)                                                                                            \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"max_steps\":9,\"nodes\":[" first                             \
    "," LUA("b") "," LUA("c") "," LUA(                                                                                 \
        "d") "],\"edges\":[" edges ","                                                                                 \
             "{\"from\":\"b\",\"to\":\"c\"},{\"from\":\"c\",\"to\":\"d\"},{\"from\":\"d\",\"to\":\"b\"}]}"
#define TO(to, rest) "{\"from\":\"a\",\"to\":\"" to "\"" rest "}"

/* ---- choosing ---- */

struct world {
    struct buf told; /* problems */
    int answers[4];  /* of the model, in order */
    size_t asked;
    enum tide_code out; /* the model cannot be reached */
};

static enum tide_code decide(void *arg, const struct spec_edge *edge, int *ret_yes, struct tide_err *err)
{
    struct world *w = arg;

    assert_true(edge->question.len > 0);
    if (w->out)
        return tide_fail(err, w->out, "no model");
    *ret_yes = w->answers[w->asked++];
    return TIDE_OK;
}

static void problem(void *arg, const struct spec_edge *edge, const char *path, const char *what)
{
    struct world *w = arg;

    buf_addf(&w->told, "%s%s: %s\n", edge ? "" : "route ", path, what);
}

struct outcome {
    struct spec *spec;
    struct choice *at;
    size_t n;
    struct arena arena;
    char names[16]; /* targets, in order */
};

static void done(struct outcome *o)
{
    free(o->at);
    arena_done(&o->arena);
    spec_free(o->spec);
}

static struct edge_question choice_of(struct outcome *o, struct world *w, const char *json, bool failed)
{
    OK(spec_parse(str_from(json), NULL, &o->spec, &err));
    return (struct edge_question){.graph = o->spec->graph,
                                  .node = spec_find(o->spec->graph, STR("a")),
                                  .failed = failed,
                                  .output = STR("{\"n\":5,\"list\":[]}"),
                                  .memory = STR("{\"m\":\"x\"}"),
                                  .result = STR("{\"ok\":true}"),
                                  .decide = decide,
                                  .problem = problem,
                                  .arg = w,
                                  .arena = &o->arena};
}

static void run(struct outcome *o, const struct edge_question *c)
{
    OK(edges_choose(c, &o->at, &o->n, &err));
    for (size_t i = 0; i < o->n; i++)
        o->names[i] = o->spec->graph->nodes.at[o->at[i].to].id.ptr[0];
    o->names[o->n] = '\0';
}

static const struct {
    const char *name, *json;
    bool failed;
    int answers[4];
    const char *want; /* names of the targets */
    size_t asked;
    const char *told;
} cases[] = {
    {"all on success and always",
     GRAPH(LUA("a"), TO("b", "") "," TO("c", ",\"on\":\"always\"") "," TO("d", ",\"on\":\"failure\"")),
     false,
     {0},
     "bc",
     0,
     ""},
    {"after a failure",
     GRAPH(LUA("a"), TO("b", "") "," TO("c", ",\"on\":\"always\"") "," TO("d", ",\"on\":\"failure\"")),
     true,
     {0},
     "cd",
     0,
     ""},
    {"conditions are not looked at after a failure",
     GRAPH(LUA("a"),
           TO("b", ",\"when\":\"nosuch.x\"") "," TO("c", ",\"question\":\"?\"") "," TO("d", ",\"on\":\"failure\"")),
     true,
     {0},
     "d",
     0,
     ""},
    {"only one with a condition",
     GRAPH(LUA("a"), TO("b", ",\"when\":\"output.n > 3\"") "," TO("c", ",\"when\":\"output.n > 4\"")),
     false,
     {0},
     "b",
     0,
     ""},
    {"the higher priority first",
     GRAPH(LUA("a"), TO("b", ",\"when\":\"output.n > 3\"") "," TO("c", ",\"when\":\"output.n > 4\",\"priority\":1")),
     false,
     {0},
     "c",
     0,
     ""},
    {"one with a condition beside those on success",
     GRAPH(LUA("a"), TO("b", "") "," TO("c", ",\"when\":\"output.n > 4\"") "," TO("d", ",\"when\":\"true\"")),
     false,
     {0},
     "bc",
     0,
     ""},
    {"memory and result",
     GRAPH(LUA("a"), TO("b", ",\"when\":\"memory.m ~= 'x'\"") "," TO("c", ",\"when\":\"result.ok\"")),
     false,
     {0},
     "c",
     0,
     ""},
    {"one that errs is told and not taken",
     GRAPH(LUA("a"), TO("b", ",\"when\":\"output.gone.x > 1\"") "," TO("c", ",\"when\":\"true\"")),
     false,
     {0},
     "c",
     0,
     "$.edges[0].when: "},
    {"one that never ends is told",
     GRAPH(LUA("a"), TO("b", ",\"when\":\"(function() while true do end end)()\"") "," TO("c", "")),
     false,
     {0},
     "c",
     0,
     "$.edges[0].when: "},
    {"a model says yes",
     GRAPH(LUA("a"), TO("b", ",\"question\":\"b?\"") "," TO("c", ",\"question\":\"c?\"")),
     false,
     {1},
     "b",
     1,
     ""},
    {"a model says no",
     GRAPH(LUA("a"), TO("b", ",\"question\":\"b?\"") "," TO("c", ",\"question\":\"c?\"")),
     false,
     {0, 1},
     "c",
     2,
     ""},
    {"a model is not asked when a condition held before",
     GRAPH(LUA("a"), TO("b", ",\"question\":\"b?\"") "," TO("c", ",\"when\":\"true\",\"priority\":2")),
     false,
     {1},
     "c",
     0,
     ""},
    {"a model that cannot be read counts as success",
     GRAPH(LUA("a"), TO("b", ",\"question\":\"b?\"") "," TO("c", ",\"when\":\"true\"")),
     false,
     {-1},
     "b",
     1,
     "$.edges[0]: the model's answer is neither yes nor no"},
    {"two ways to one node",
     GRAPH(LUA("a"), TO("b", "") "," TO("b", ",\"when\":\"true\"") "," TO("c", ",\"on\":\"failure\"")),
     false,
     {0},
     "bb",
     0,
     ""},
    {"a route",
     GRAPH(
         "{\"id\":\"a\",\"type\":\"router\",\"routes\":[{\"when\":\"output.n > 9\",\"to\":\"b\"},{\"when\":\"memory.m == "
         "'x'\",\"to\":\"c\"},{\"when\":\"true\",\"to\":\"d\"}],\"otherwise\":\"d\"}",
         TO("b", ",\"on\":\"failure\"")),
     false,
     {0},
     "c",
     0,
     ""},
    {"otherwise, after a route that errs",
     GRAPH("{\"id\":\"a\",\"type\":\"router\",\"routes\":[{\"when\":\"output.x.y\",\"to\":\"b\"}],\"otherwise\":\"d\"}",
           TO("b", ",\"on\":\"failure\"")),
     false,
     {0},
     "d",
     0,
     "route $.nodes[0].routes[0].when: "},
    {"no route and no otherwise",
     GRAPH("{\"id\":\"a\",\"type\":\"router\",\"routes\":[{\"when\":\"false\",\"to\":\"b\"}]}",
           TO("b", ",\"on\":\"failure\"")),
     false,
     {0},
     "",
     0,
     ""},
    {"a router that failed",
     GRAPH("{\"id\":\"a\",\"type\":\"router\",\"routes\":[{\"when\":\"true\",\"to\":\"c\"}]}",
           TO("b", ",\"on\":\"failure\"")),
     true,
     {0},
     "b",
     0,
     ""},
};

static void ways_are_taken_as_the_graph_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w = {.told = BUF_INIT(4096)};
        struct outcome o = {.arena = ARENA_INIT};
        struct edge_question c;

        memcpy(w.answers, cases[i].answers, sizeof(w.answers));
        c = choice_of(&o, &w, cases[i].json, cases[i].failed);
        run(&o, &c);
        if (strcmp(o.names, cases[i].want) != 0 || w.asked != cases[i].asked ||
            strncmp(buf_cstr(&w.told), cases[i].told, strlen(cases[i].told)) != 0 ||
            (!cases[i].told[0] && w.told.len > 0))
            fail_msg("%s: got '%s', asked %zu, told '%s'", cases[i].name, o.names, w.asked, buf_cstr(&w.told));
        buf_done(&w.told);
        done(&o);
    }
}

static void without_a_condition_that_holds_nothing_is_taken(void **state)
{
    struct world w = {.told = BUF_INIT(4096)};
    struct outcome o = {.arena = ARENA_INIT};
    struct edge_question c = choice_of(
        &o, &w,
        GRAPH(LUA("a"),
              TO("b", ",\"when\":\"false\"") "," TO("c", ",\"when\":\"nil\"") "," TO("d", ",\"on\":\"failure\"")),
        false);

    (void)state;
    run(&o, &c);
    assert_int_equal(o.n, 0);
    assert_int_equal(w.told.len, 0);
    done(&o);
    buf_done(&w.told);
}

static void a_model_that_cannot_be_asked_makes_no_choice(void **state)
{
    static const char json[] = GRAPH(LUA("a"), TO("b", ",\"question\":\"b?\"") "," TO("c", ""));
    struct world w = {.told = BUF_INIT(4096), .out = TIDE_BUSY};
    struct outcome o = {.arena = ARENA_INIT};
    struct edge_question c = choice_of(&o, &w, json, false);

    (void)state;
    GIVES(TIDE_BUSY, edges_choose(&c, &o.at, &o.n, &err));
    assert_null(o.at);
    c.decide = NULL;
    run(&o, &c);
    assert_string_equal(o.names, "bc");
    assert_non_null(strstr(buf_cstr(&w.told), "no model to ask"));
    free(o.at);
    o.at = NULL;
    c.problem = NULL; /* nobody hears */
    run(&o, &c);
    assert_int_equal(o.n, 2);
    done(&o);
    buf_done(&w.told);
}

static void an_edge_brings_what_its_map_says(void **state)
{
    static const char json[] = GRAPH(
        LUA("a"),
        TO("b",
           ",\"map\":{\"n\":\"output.n + 1\",\"a \\\"b\":\"{memory.m, result.ok}\",\"none\":\"output.gone\","
           "\"list\":\"output.list\"}") "," TO("c",
                                               ",\"map\":{\"bad\":\"output.gone.x\",\"good\":\"1\"}") "," TO("d",
                                                                                                             ",\"map\":{\"bad\":\"output.gone.x\"}"));
    struct world w = {.told = BUF_INIT(4096)};
    struct outcome o = {.arena = ARENA_INIT};
    struct edge_question c = choice_of(&o, &w, json, false);

    (void)state;
    run(&o, &c);
    assert_string_equal(o.names, "bcd");
    assert_string_equal(o.at[0].values.ptr, "{\"n\":6,\"a \\\"b\":[\"x\",true],\"none\":null,\"list\":[]}");
    assert_string_equal(o.at[1].values.ptr, "{\"good\":1}");
    assert_int_equal(o.at[2].values.len, 0);
    assert_non_null(strstr(buf_cstr(&w.told), "$.edges[1].map.bad: "));
    assert_non_null(strstr(buf_cstr(&w.told), "$.edges[2].map.bad: "));
    assert_ptr_equal(o.at[0].edge, &o.spec->graph->edges.at[0]);
    done(&o);
    buf_done(&w.told);
}

/* ---- keys that two branches set ---- */

static const struct {
    enum spec_conflict rule;
    const char *before, *now, *want; /* NULL: refused */
} values[] = {
    {SPEC_CONFLICT_LAST, "1", "[2]", "[2]"},
    {SPEC_CONFLICT_FIRST, "1", "[2]", "1"},
    {SPEC_CONFLICT_MERGE, "[1, 2]", "[2,{ }]", "[1,2,2,{}]"},
    {SPEC_CONFLICT_MERGE, "[]", "[]", "[]"},
    {SPEC_CONFLICT_MERGE, "[]", "[1]", "[1]"},
    {SPEC_CONFLICT_MERGE, "{}", "{}", "{}"},
    {SPEC_CONFLICT_MERGE, "{\"a\":1,\"b\":{\"x\":1,\"y\":[1]}}", "{\"c\":3,\"b\":{\"y\":[2],\"z\":{}},\"a\":2}",
     "{\"a\":2,\"b\":{\"x\":1,\"y\":[2],\"z\":{}},\"c\":3}"},
    {SPEC_CONFLICT_MERGE, "{\"a\\u0062\":1}", "{\"ab\":{\"\\\"\":2}}", "{\"ab\":{\"\\\"\":2}}"},
    {SPEC_CONFLICT_MERGE, "{\"a\":{\"b\":1}}", "{\"a\":7}", "{\"a\":7}"},
    {SPEC_CONFLICT_MERGE, "\"a\"", "\"\\u0061\"", "\"a\""},
    {SPEC_CONFLICT_MERGE, "1.50", "1.50", "1.50"},
    {SPEC_CONFLICT_MERGE, "true", "true", "true"},
    {SPEC_CONFLICT_MERGE, "null", "null", "null"},
    {SPEC_CONFLICT_MERGE, "1", "2", NULL},
    {SPEC_CONFLICT_MERGE, "true", "false", NULL},
    {SPEC_CONFLICT_MERGE, "\"a\"", "\"b\"", NULL},
    {SPEC_CONFLICT_MERGE, "[1]", "{}", NULL},
    {SPEC_CONFLICT_MERGE, "null", "1", NULL},
};

static void two_values_of_one_key_follow_its_rule(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str got = {"", 0};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct str before = str_from(values[i].before), now = str_from(values[i].now);

        if (!values[i].want) {
            SAYS(TIDE_INVALID, "'k'", memory_merge_value(values[i].rule, STR("k"), before, now, &a, &got, &err));
            continue;
        }
        OK(memory_merge_value(values[i].rule, STR("k"), before, now, &a, &got, &err));
        if (!str_eq(got, str_from(values[i].want)))
            fail_msg("%s and %s: %.*s", values[i].before, values[i].now, STR_ARG(got));
    }
    GIVES(TIDE_CONFLICT, memory_merge_value(SPEC_CONFLICT_ERROR, STR("k"), STR("1"), STR("2"), &a, &got, &err));
    GIVES(TIDE_CONFLICT, memory_merge_value(SPEC_CONFLICT_ERROR, STR("k"), STR("1"), STR("1"), &a, &got, &err));
    SAYS(TIDE_INVALID, "one branch set a list, another a text",
         memory_merge_value(SPEC_CONFLICT_MERGE, STR("k"), STR("[]"), STR("\"\""), &a, &got, &err));
    GIVES(TIDE_INVALID, memory_merge_value(SPEC_CONFLICT_MERGE, STR("k"), STR("{"), STR("1"), &a, &got, NULL));
}

/* Members are found by their names and not one by one. */
static void big_objects_are_merged_in_time(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf x = BUF_INIT(16 << 20), y = BUF_INIT(16 << 20);
    struct str got = {"", 0};
    enum { N = 50000 };

    (void)state;
    for (int i = 0; i < N; i++) {
        buf_addf(&x, "%s\"k%d\":1", i ? "," : "{", i);
        buf_addf(&y, "%s\"k%d\":2", i ? "," : "{", i + N / 2);
    }
    buf_add_char(&x, '}');
    buf_add_char(&y, '}');
    OK(memory_merge_value(SPEC_CONFLICT_MERGE, STR("k"), buf_view(&x), buf_view(&y), &a, &got, &err));
    assert_memory_equal(got.ptr, "{\"k0\":1,\"k1\":1,", 15);
    assert_non_null(strstr(got.ptr, "\"k25000\":2,"));
    assert_non_null(strstr(got.ptr, "\"k74999\":2}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_are_taken_as_the_graph_says),
        cmocka_unit_test(without_a_condition_that_holds_nothing_is_taken),
        cmocka_unit_test(a_model_that_cannot_be_asked_makes_no_choice),
        cmocka_unit_test(an_edge_brings_what_its_map_says),
        cmocka_unit_test(two_values_of_one_key_follow_its_rule),
        cmocka_unit_test(big_objects_are_merged_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
