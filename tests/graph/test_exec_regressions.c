/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong once while graphs ran: ways by which a secret came to the disk, answers that went to another question,
 * limits that were not kept, work that grew with the square of the graph. Graphs stand here with ' for ".
 */
#include "lives.h"

#define SECRET "hunter2-in-clear"
#define HEAD "{'tidemark_graph':1,'id':'g','max_steps':0,"
#define KEY(id, more) "{'id':'" id "','type':'function','callback':'key','outputs':['api_key','x']" more "}"
#define USE "{'id':'use','type':'lua','code':'return {y = 1}','outputs':['y']}"

static char *quoted(const char *text)
{
    char *out = mem_dup(str_from(text));

    for (char *at = out; (at = strchr(at, '\''));)
        *at = '"';
    return out;
}

static enum tide_code give_key(void *arg, const struct tide_node_call *call, struct tide_text *ret,
                               struct tide_err *err)
{
    struct buf b = BUF_INIT(4096);

    (void)arg;
    (void)call;
    (void)err;
    buf_addf(&b, "{\"api_key\":\"%s\",\"token\":\"%s\",\"x\":1}", SECRET, SECRET);
    ret->len = b.len;
    ret->ptr = buf_take(&b);
    return TIDE_OK;
}

/* Written with ' for " and with a callback that gives secrets. */
static void begin_quoted(struct life *l, const char *graph)
{
    AUTO(mem_freep) char *json = quoted(graph);

    begin(l, json);
    OK(tide_graph_add_callback(l->g, "key", give_key, NULL, &err));
}

static bool is_on_disk(struct life *l)
{
    char command[600];

    snprintf(command, sizeof command, "grep -r " SECRET " '%s' >/dev/null", l->w.dir);
    return system(command) == 0; /* NOLINT(cert-env33-c): our own directory */
}

static void expect_no_secret(struct life *l, const char *what)
{
    if (is_on_disk(l))
        fail_msg("%s: the secret is on disk", what);
    assert_null(strstr(l->w.notices, SECRET));
}

static void write_script(struct life *l, char path[400], const char *text)
{
    AUTO(mem_freep) char *json = quoted(text);
    FILE *f;

    snprintf(path, 400, "%s/script.json", l->w.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(json, f);
    fclose(f);
}

/* ---- secrets ---- */

static void a_secret_that_a_node_gives_is_stored_nowhere(void **state)
{
    static const struct {
        const char *name, *graph;
    } rows[] = {
        {"an effect in the ledger", HEAD
         "'entry':'get','nodes':[" KEY("get", ",'effect':'once'") "," USE "],'edges':[{'from':'get','to':'use'}]}"},
        {"what an edge gives",
         HEAD "'entry':'get','nodes':[" KEY(
             "get", "") "," USE "],'edges':[{'from':'get','to':'use','map':{'t':'output.api_key'}}]}"},
        {"a condition that errs",
         HEAD "'entry':'get','nodes':[" KEY(
             "get",
             "") "," USE
                 "],'edges':[{'from':'get','to':'use','when':'error(output.api_key)'},{'from':'get','to':'use'}]}"},
        {"what a model is asked with", HEAD
         "'entry':'get','nodes':[" KEY("get", "") "," USE "],'edges':[{'from':'get','to':'use','question':'on?'}]}"},
        {"a graph inside", HEAD
         "'entry':'s','nodes':[{'id':'s','type':'subgraph','outputs':['x'],'graph':{'id':'in','entry':'get','nodes':[" KEY(
             "get", "") "]}}," USE "],'edges':[{'from':'s','to':'use'}]}"},
        {"what a graph inside excludes", HEAD
         "'entry':'s','nodes':[{'id':'s','type':'subgraph','outputs':['x'],'graph':{'id':'in','entry':'get','checkpoints':{'exclude_memory_keys':['token','api_key']},'nodes':[{'id':'get','type':'function','callback':'key','outputs':['token','x']}]}}," USE
         "],'edges':[{'from':'s','to':'use'}]}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct life l;
        char script[400];
        const struct tide_agent_options agent = {.size = sizeof agent, .provider = "script", .script = script};

        begin_quoted(&l, rows[i].graph);
        write_script(&l, script, "{'turns':[{'text':'yes'}],'repeat':true}");
        assert_int_equal(
            go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .agent = &agent}), TIDE_OK);
        assert_non_null(strstr(l.memory, "\"y\":1"));
        expect_no_secret(&l, rows[i].name);
        end(&l);
    }
}

static void a_graph_that_would_store_a_secret_is_refused(void **state)
{
    static const char *const graphs[] = {
        HEAD "'entry':'h','nodes':[{'id':'h','type':'human_input','question':'key?','outputs':['api_key']}]}",
        HEAD "'entry':'use','nodes':[" USE
             ",{'id':'v','type':'lua','code':'return {}'}],'edges':[{'from':'use','to':'v','map':{'api_key':'1'}}]}",
        HEAD
        "'entry':'m','memory':{'l':[1]},'nodes':[{'id':'m','type':'map','over':'l','as':'api_key','node':{'type':'lua','code':'return {}'}}]}",
        HEAD
        "'entry':'m','memory':{'l':[1]},'nodes':[{'id':'m','type':'map','over':'l','node':{'type':'function','program':['cat'],'outputs':['api_key']},'outputs':['r']}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        AUTO(mem_freep) char *json = quoted(graphs[i]);
        tide_graph *g = NULL;

        SAYS(TIDE_INVALID, "never stored", tide_graph_parse(json, strlen(json), NULL, NULL, NULL, &g, &err));
    }
}

static void what_a_run_excludes_is_excluded_when_it_goes_on(void **state)
{
    static const struct tide_graph_options first = {.size = sizeof first,
                                                    .memory = "{\"token\":\"" SECRET "\"}",
                                                    .checkpoints = "{\"exclude_memory_keys\":[\"token\"]}"},
                                           again = {.size = sizeof again, .memory = "{\"token\":\"" SECRET "\"}"};
    struct life l;

    (void)state;
    begin_quoted(&l,
                 HEAD "'entry':'a','nodes':[{'id':'a','type':'function','program':['sh','-c','cat >/dev/null; exit 1'],"
                      "'inputs':['token'],'retries':0}]}");
    assert_int_equal(go(&l, &first), TIDE_FAILED);
    assert_int_equal(go(&l, NULL), TIDE_INVALID); /* it is asked for again */
    assert_non_null(strstr(l.err.msg, "never stored"));
    assert_int_equal(go(&l, &again), TIDE_FAILED);
    assert_int_equal(go(&l, &again), TIDE_FAILED);
    expect_no_secret(&l, "a resume");
    end(&l);
}

static void a_run_cannot_exclude_what_its_graph_stores(void **state)
{
    static const struct tide_graph_options opt = {.size = sizeof opt,
                                                  .checkpoints = "{\"exclude_memory_keys\":[\"token\"]}"};
    static const char *const graphs[] = {
        HEAD "'entry':'use','memory':{'token':'x'},'nodes':[" USE "]}",
        HEAD "'entry':'h','nodes':[{'id':'h','type':'human_input','question':'key?','outputs':['token']}]}",
        HEAD "'entry':'use','nodes':[" USE
             ",{'id':'v','type':'lua','code':'return {}'}],'edges':[{'from':'use','to':'v','map':{'token':'1'}}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        struct life l;

        begin_quoted(&l, graphs[i]);
        assert_int_equal(go(&l, &opt), TIDE_INVALID);
        assert_non_null(strstr(l.err.msg, "'token' is never to be stored"));
        end(&l);
    }
}

static void an_output_that_cannot_be_read_is_not_shown_where_a_secret_is_due(void **state)
{
    struct life l;

    (void)state;
    begin_quoted(&l, HEAD "'entry':'a','nodes':[{'id':'a','type':'function','program':['cut','-c1-24','k.json'],"
                          "'outputs':['api_key'],'retries':0}]}");
    {
        char path[400];
        FILE *f;

        snprintf(path, sizeof path, "%s/k.json", l.w.dir);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs("{\"api_key\":\"half-a-secret-value\"}", f);
        fclose(f);
    }
    assert_int_equal(
        go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .working_dir = l.w.dir}),
        TIDE_FAILED);
    assert_non_null(strstr(l.err.msg, "a secret may be in it"));
    assert_null(strstr(l.err.msg, "half-a"));
    end(&l);
}

static void put_note(struct life *l, const char *text)
{
    const struct tide_new_event ev = {"note", text, 0};
    tide_session *s = NULL;

    OK(tide_session_create(l->w.store, NULL, NULL, &s, &err));
    OK(tide_session_append(s, 0, &ev, 1, NULL, &err));
    tide_session_close(s);
}

/* In a process that lasts many runs follow each other: what one was given is no secret of the others, nor kept for ever. */
static void a_secret_is_one_as_long_as_its_run(void **state)
{
    struct life l;

    (void)state;
    begin_quoted(&l, HEAD "'entry':'use','nodes':[" USE "]}");
    for (int i = 0; i < 3; i++) {
        AUTO(buf_done) struct buf memory = BUF_INIT(1 << 20);

        buf_addf(&memory, "{\"api_key\":[\"%s\"", SECRET);
        for (int k = 0; k < SECRETS_MAX / 2; k++)
            buf_addf(&memory, ",\"number-%d-of-run-%d\"", k, i);
        buf_addf(&memory, "]}");
        l.session[0] = 0;
        assert_int_equal(go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options),
                                                             .memory = buf_cstr(&memory)}),
                         TIDE_OK);
    }
    expect_no_secret(&l, "three runs");
    put_note(&l, "{\"a\":\"" SECRET "\"}");
    assert_true(is_on_disk(&l));
    end(&l);
}

static void a_value_that_cannot_be_hidden_is_not_stored(void **state)
{
    AUTO(buf_done) struct buf memory = BUF_INIT(1 << 20);
    struct life l;

    (void)state;
    begin_quoted(&l, HEAD "'entry':'use','nodes':[" USE "]}");
    buf_addf(&memory, "{\"api_key\":[\"first-of-them\"");
    for (int k = 0; k < SECRETS_MAX; k++)
        buf_addf(&memory, ",\"value-%d-of-too-many\"", k);
    buf_addf(&memory, "]}");
    assert_int_equal(
        go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .memory = buf_cstr(&memory)}),
        TIDE_TOO_BIG);
    assert_non_null(strstr(l.err.msg, "'api_key' cannot be hidden: a store hides at most"));
    end(&l);
}

/* ---- people ---- */

#define LONG60 "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"

static void two_questions_with_long_names_are_two_questions(void **state)
{
    static const char graph[] =
        HEAD "'entry':'" LONG60 "','nodes':[{'id':'" LONG60
             "','type':'subgraph','outputs':['one','two'],'graph':{'id':'in','entry':'" LONG60 "1','nodes':["
             "{'id':'" LONG60 "1','type':'human_input','kind':'approval','question':'one?','outputs':['one']},"
             "{'id':'" LONG60 "2','type':'human_input','kind':'approval','question':'two?','outputs':['two']}],"
             "'edges':[{'from':'" LONG60 "1','to':'" LONG60 "2'}]}}]}";
    struct life l;

    (void)state;
    begin_quoted(&l, graph);
    assert_int_equal(go(&l, NULL), TIDE_WAITING);
    assert_int_equal(
        go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .input = "\"yes\""}),
        TIDE_WAITING);
    assert_non_null(strstr(l.err.msg, "two?"));
    assert_int_equal(go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .input = "\"no\""}),
                     TIDE_OK);
    assert_string_equal(l.memory, "{\"one\":true,\"two\":false}");
    end(&l);
}

static void a_long_question_is_asked_whole(void **state)
{
    AUTO(buf_done) struct buf memory = BUF_INIT(1 << 20);
    struct life l;

    (void)state;
    begin_quoted(&l, HEAD "'entry':'h','nodes':[{'id':'h','type':'human_input','question':'send this? {letter}',"
                          "'inputs':['letter'],'outputs':['said']}]}");
    buf_add_str(&memory, STR("{\"letter\":\""));
    for (int i = 0; i < 5000; i++)
        buf_add_str(&memory, STR("ä"));
    buf_add_str(&memory, STR("\"}"));
    assert_int_equal(
        go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .memory = buf_cstr(&memory)}),
        TIDE_WAITING);
    assert_int_equal(go(&l, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .input = "\"ok\""}),
                     TIDE_OK);
    assert_non_null(strstr(l.memory, "\"said\":\"ok\""));
    end(&l);
}

/* ---- models ---- */

static int failed_at_a(void *arg, const struct tide_session_info *info)
{
    (void)arg;
    assert_string_equal(info->failed_at_node, "a");
    return 0;
}

static void a_model_that_cannot_be_asked_fails_the_run_and_is_asked_again(void **state)
{
    struct life l;
    char script[400];
    const struct tide_agent_options agent = {
        .size = sizeof agent, .provider = "script", .script = script, .retry_base_delay_ms = 1};
    const struct tide_graph_options opt = {.size = sizeof opt, .agent = &agent};

    (void)state;
    begin_quoted(&l, HEAD "'entry':'a','nodes':[{'id':'a','type':'function','callback':'work','outputs':['a']}," USE
                          "],'edges':[{'from':'a','to':'use','question':'on?'}]}");
    write_script(&l, script, "{'turns':[{'text':'x','fail':[{'status':401,'message':'no key'}]}],'repeat':true}");
    assert_int_equal(go(&l, &opt), TIDE_FAILED);
    assert_non_null(strstr(l.err.msg, "node 'a'"));
    {
        tide_session *s = NULL;

        OK(tide_session_open(l.w.store, l.session, TIDE_SESSION_READ, &s, &err));
        OK(session_shown(s, failed_at_a, NULL, &err));
        tide_session_close(s);
    }
    write_script(&l, script, "{'turns':[{'text':'yes'}],'repeat':true}");
    assert_int_equal(go(&l, &opt), TIDE_OK);
    assert_int_equal(l.w.n, 1); /* its work was done */
    assert_non_null(strstr(l.memory, "\"y\":1"));
    end(&l);
}

/* ---- limits and sizes ---- */

static void an_item_that_fails_at_once_takes_its_map_along(void **state)
{
    struct life l;

    (void)state;
    begin_quoted(
        &l, HEAD
        "'entry':'m','memory':{'l':[1,2,3,4,5]},'nodes':[{'id':'m','type':'map','over':'l','outputs':['z'],'node':{"
        "'type':'lua','inputs':['item','nobody_sets_it'],'code':'return {z = 1}','outputs':['z']}}," USE
        "],'edges':[{'from':'m','to':'use','on':'failure'}]}");
    assert_int_equal(go(&l, NULL), TIDE_OK);
    assert_string_equal(l.memory, "{\"l\":[1,2,3,4,5],\"y\":1}");
    end(&l);
}

/* The first item fails when the second is under way, which happens all the same, when what comes after the failure has begun. */
static enum tide_code fail_or_happen(void *arg, const struct tide_node_call *call, struct tide_text *ret,
                                     struct tide_err *err)
{
    struct world *w = arg;
    bool first = strstr(call->node, "[0]") != NULL;
    int met, wanted = strcmp(call->node, "use") == 0 ? 1 : first ? 2 : 3;

    pthread_mutex_lock(&w->lock);
    met = ++w->concurrent;
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < 20000 && met < wanted; i++) {
        usleep(1000);
        pthread_mutex_lock(&w->lock);
        met = w->concurrent;
        pthread_mutex_unlock(&w->lock);
    }
    if (first)
        return tide_fail(err, TIDE_FAILED, "it was told to fail");
    ret->ptr = mem_dup(STR("{\"z\":1}"));
    ret->len = 7;
    return TIDE_OK;
}

static int count_effects(void *arg, const struct tide_event *ev)
{
    int *n = arg;

    n[0] += strcmp(ev->kind, "tool.started") == 0;
    n[1] += strcmp(ev->kind, "tool.completed") == 0;
    n[2] += strcmp(ev->kind, "tool.failed") == 0;
    return 0;
}

static void what_happened_beside_an_item_that_failed_is_recorded(void **state)
{
    int n[3] = {0, 0, 0};
    tide_session *s;
    struct life l;

    (void)state;
    begin_quoted(
        &l,
        HEAD "'entry':'m','memory':{'l':[1,2]},'nodes':[{'id':'m','type':'map','over':'l','parallel':2,'outputs':['z'],"
             "'node':{'type':'function','callback':'pay','effect':'once','outputs':['z']}},"
             "{'id':'use','type':'function','callback':'pay','outputs':['z']}],"
             "'edges':[{'from':'m','to':'use','on':'failure'}]}");
    OK(tide_graph_add_callback(l.g, "pay", fail_or_happen, &l.w, &err));
    assert_int_equal(go(&l, NULL), TIDE_OK);
    OK(tide_session_open(l.w.store, l.session, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 1, 0, count_effects, n, &err));
    tide_session_close(s);
    assert_int_equal(n[0], 2);
    assert_int_equal(n[2], 1);
    assert_int_equal(n[1], 1);
    end(&l);
}

/* Just under what was once not counted. */
static enum tide_code give_much(void *arg, const struct tide_node_call *call, struct tide_text *ret,
                                struct tide_err *err)
{
    const size_t n = 1000000;

    (void)arg;
    (void)call;
    (void)err;
    ret->ptr = mem_alloc(n + 1);
    memset(ret->ptr, 'x', n);
    ret->ptr[0] = ret->ptr[n - 1] = '"';
    ret->ptr[n] = '\0';
    ret->len = n;
    return TIDE_OK;
}

static void many_values_that_are_not_big_fill_the_memory_too(void **state)
{
    AUTO(buf_done) struct buf graph = BUF_INIT(1 << 20);
    struct life l;

    (void)state;
    buf_add_str(&graph, STR(HEAD "'memory':{'one':1},'entry':'n0','nodes':["));
    for (int i = 0; i < 80; i++)
        buf_addf(&graph, "%s{'id':'n%d','type':'function','callback':'much','inputs':['one'],'outputs':['k%d']}",
                 i ? "," : "", i, i);
    buf_add_str(&graph, STR("],'edges':["));
    for (int i = 1; i < 80; i++)
        buf_addf(&graph, "%s{'from':'n%d','to':'n%d'}", i > 1 ? "," : "", i - 1, i);
    buf_add_str(&graph, STR("]}"));
    begin_quoted(&l, buf_cstr(&graph));
    OK(tide_graph_add_callback(l.g, "much", give_much, NULL, &err));
    assert_int_equal(go(&l, NULL), TIDE_FAILED);
    assert_non_null(strstr(l.err.msg, "keep big data in files"));
    end(&l);
}

/* One branch of many nodes, and many that wait for its end: what may begin is found without comparing all with all. */
static void many_nodes_that_wait_for_a_long_branch_do_not_slow_it_down(void **state)
{
    enum { STEPS = 150, WAITING = 800 };
    AUTO(buf_done) struct buf graph = BUF_INIT(8 << 20);
    struct life l;

    (void)state;
    buf_add_str(&graph, STR(HEAD "'entry':'e','nodes':[{'id':'e','type':'lua','code':'return {}'}"));
    for (int i = 0; i < STEPS; i++)
        buf_addf(&graph, ",{'id':'s%d','type':'lua','code':'return {}'}", i);
    for (int i = 0; i < WAITING; i++)
        buf_addf(&graph, ",{'id':'w%d','type':'lua','code':'return {}'}", i);
    buf_add_str(&graph, STR("," USE "],'edges':[{'from':'e','to':'s0'}"));
    for (int i = 1; i < STEPS; i++)
        buf_addf(&graph, ",{'from':'s%d','to':'s%d'}", i - 1, i);
    for (int i = 0; i < WAITING; i++)
        buf_addf(&graph, ",{'from':'e','to':'w%d'},{'from':'s%d','to':'w%d'},{'from':'w%d','to':'use'}", i, STEPS - 1,
                 i, i);
    buf_add_str(&graph, STR("]}"));
    begin_quoted(&l, buf_cstr(&graph));
    assert_int_equal(go(&l, NULL), TIDE_OK);
    assert_string_equal(l.memory, "{\"y\":1}");
    end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_that_a_node_gives_is_stored_nowhere),
        cmocka_unit_test(a_graph_that_would_store_a_secret_is_refused),
        cmocka_unit_test(what_a_run_excludes_is_excluded_when_it_goes_on),
        cmocka_unit_test(a_run_cannot_exclude_what_its_graph_stores),
        cmocka_unit_test(an_output_that_cannot_be_read_is_not_shown_where_a_secret_is_due),
        cmocka_unit_test(a_secret_is_one_as_long_as_its_run),
        cmocka_unit_test(a_value_that_cannot_be_hidden_is_not_stored),
        cmocka_unit_test(two_questions_with_long_names_are_two_questions),
        cmocka_unit_test(a_long_question_is_asked_whole),
        cmocka_unit_test(a_model_that_cannot_be_asked_fails_the_run_and_is_asked_again),
        cmocka_unit_test(an_item_that_fails_at_once_takes_its_map_along),
        cmocka_unit_test(what_happened_beside_an_item_that_failed_is_recorded),
        cmocka_unit_test(many_values_that_are_not_big_fill_the_memory_too),
        cmocka_unit_test(many_nodes_that_wait_for_a_long_branch_do_not_slow_it_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
