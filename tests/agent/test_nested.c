/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's loop as one part of somebody else's run: outputs, failures, waits, decisions, whose conversation it is. */
#include "agent/nested_runs.h"

/* ---- outputs --------------------------------------------------------------------------------------------------------- */

static void outputs_may_be_set_over_several_turns(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    char *told, *set;

    (void)state;
    begin(&k, pages_script);
    want_two(&k);
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.outputs), "{\"title\":\"T\",\"body\":{\"a\":[1,2.50]}}");
    assert_int_equal(count_kind(k.s, "message.assistant"), 4); /* and nothing was asked when all were set */
    assert_int_equal(k.turns_over, 4);
    assert_int_equal(count_kind(k.s, "checkpoint"), 0);
    assert_false(k.run->over);
    told = body_of(k.s, "message.user", 1);
    assert_non_null(strstr(told, "\"by\":\"loop\""));
    assert_non_null(strstr(told, "body"));
    assert_null(strstr(told, "title"));
    set = body_of(k.s, "output.set", 0);
    assert_string_equal(set, "{\"node\":\"write\",\"visit\":1,\"values\":{\"title\":\"T\"},\"by\":\"node\"}");
    free(told);
    free(set);
    end(&k);
}

static void one_that_may_stay_unset_is_not_waited_for(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};

    (void)state;
    begin(&k, "{\"turns\":[{\"calls\":[" SET("title", "1") "]}]}");
    want_two(&k);
    k.nested.nullable = one_nullable;
    k.nested.n_nullable = 1;
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.outputs), "{\"title\":1}");
    RUNS_NESTED(TIDE_OK, &k); /* it is over: nothing is asked */
    assert_int_equal(count_kind(k.s, "llm.request"), 1);
    end(&k);
}

static void where_all_may_stay_unset_it_answers_once(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};

    (void)state;
    begin(&k, "{\"turns\":[{\"text\":\"nothing to say\"}]}");
    k.nested.outputs = k.nested.nullable = one_nullable;
    k.nested.n_outputs = k.nested.n_nullable = 1;
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.outputs), "{}");
    assert_string_equal(buf_cstr(&k.result.answer), "nothing to say");
    end(&k);
}

static void a_wrong_output_is_refused_and_says_which_there_are(void **state)
{
    static const struct {
        const char *call, *says;
    } rows[] = {{SET("nope", "1"), "there is no output 'nope': the keys are title, body"},
                {SET("title", "null"), "'title' must not be null"},
                {CALL("c", "set_output", "{\"key\":\"title\"}"), "the value of 'title' is missing"},
                {CALL("c", "set_output", "{\"value\":1}"), "there is no output ''"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nest k = {.result = NESTED_RESULT_INIT};
        struct buf script = BUF_INIT(4096);
        char *result;

        buf_addf(&script, "{\"turns\":[{\"calls\":[%s]},{\"calls\":[" SET("title", "1") "," SET("body", "2") "]}]}",
                 rows[i].call);
        begin(&k, buf_cstr(&script));
        want_two(&k);
        RUNS_NESTED(TIDE_OK, &k);
        result = body_of(k.s, "message.tool", 0);
        assert_non_null(strstr(result, rows[i].says));
        assert_non_null(strstr(result, "\"is_error\":true"));
        assert_string_equal(buf_cstr(&k.result.outputs), "{\"title\":1,\"body\":2}");
        free(result);
        buf_done(&script);
        end(&k);
    }
}

static void it_is_offered_only_the_tools_it_may_use(void **state)
{
    static const char *const some[] = {"read", "glob", NULL};
    struct nest k = {.result = NESTED_RESULT_INIT};
    char *request, *result;

    (void)state;
    begin(&k, "{\"turns\":[{\"calls\":[" BASH("c", "echo no >> " LEDGER) "]},{\"text\":\"well\"}]}");
    k.nested.tools = some;
    RUNS_NESTED(TIDE_OK, &k);
    request = body_of(k.s, "llm.request", 0);
    result = body_of(k.s, "message.tool", 0);
    assert_non_null(strstr(request, "\"name\":\"glob\""));
    assert_null(strstr(request, "\"name\":\"bash\""));
    assert_null(strstr(request, "set_output")); /* it has no outputs */
    assert_non_null(strstr(result, "there is no tool 'bash': there are read, glob"));
    assert_int_equal(ledger_count(&k.w, "no"), 0);
    free(request);
    free(result);
    end(&k);
}

/* ---- faults ---------------------------------------------------------------------------------------------------------- */

static void it_fails_with_a_code_and_goes_on_where_it_was(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    char *request;

    (void)state;
    begin(&k, "{\"turns\":[{\"calls\":[" SET(
                  "title", "1") "]},"
                                "{\"fail\":[{\"status\":429},{\"status\":429},{\"status\":401}],\"text\":\"no\"}]}");
    want_two(&k);
    k.w.opt.max_retries = 1;
    RUNS_NESTED(TIDE_FAILED, &k);
    assert_string_equal(k.result.code, "rate_limit");
    assert_true(k.result.retry);
    assert_string_equal(buf_cstr(&k.result.outputs), "{\"title\":1}");
    assert_int_equal(count_kind(k.s, "llm.error"), 2);
    k.w.opt.max_retries = 2;
    RUNS_NESTED(TIDE_FAILED, &k); /* another attempt of the node: the same conversation */
    assert_string_equal(k.result.code, "auth");
    assert_int_equal(k.err.detail.subject, TIDE_SUBJECT_KEY);
    assert_string_equal(k.err.detail.name, "api_key");
    assert_false(k.result.retry);
    write_file(k.w.script, "{\"turns\":[{},{\"calls\":[" SET("body", "2") "]}]}");
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.outputs), "{\"title\":1,\"body\":2}");
    assert_int_equal(count_kind(k.s, "message.user"), 1);
    assert_int_equal(count_kind(k.s, "message.assistant"), 2);
    request = body_of(k.s, "llm.request", 2);
    assert_non_null(strstr(request, "\"turn\":2,\"node\":\"write\",\"visit\":1"));
    free(request);
    assert_int_equal(count_kind(k.s, "run.failed"), 0);
    end(&k);
}

static void model_calls_are_limited_for_the_whole_visit(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};

    (void)state;
    begin(&k, "{\"turns\":[{\"text\":\"no\"}],\"repeat\":true}");
    want_two(&k);
    k.w.opt.max_turns = 3;
    RUNS_NESTED(TIDE_FAILED, &k);
    assert_string_equal(k.result.code, "max_turns");
    assert_false(k.result.retry);
    assert_int_equal(count_kind(k.s, "message.assistant"), 3);
    RUNS_NESTED(TIDE_FAILED, &k);
    assert_int_equal(count_kind(k.s, "message.assistant"), 3);
    end(&k);
}

static void what_is_wrong_with_its_settings_is_a_failure(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};

    (void)state;
    begin(&k, "{\"turns\":[]}");
    RUNS_NESTED(TIDE_FAILED, &k);
    assert_string_equal(k.result.code, "config");
    write_file(k.w.script, "{\"turns\":[{\"text\":\"good\"}]}");
    k.nested.prompt = " \n";
    RUNS_NESTED(TIDE_FAILED, &k);
    assert_string_equal(k.result.code, "config");
    k.nested.prompt = "do it";
    RUNS_NESTED(TIDE_OK, &k);
    end(&k);
}

static bool is_stopped(void *arg)
{
    struct nest *k = arg;

    return k->turns_over == 1;
}

static void it_stops_when_it_is_told_to_and_goes_on(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};

    (void)state;
    begin(&k, pages_script);
    want_two(&k);
    k.nested.stopped = is_stopped;
    RUNS_NESTED(TIDE_CANCELLED, &k);
    assert_false(k.run->over);
    assert_int_equal(count_kind(k.s, "message.assistant"), 1);
    k.nested.stopped = NULL;
    RUNS_NESTED(TIDE_OK, &k);
    assert_int_equal(ledger_count(&k.w, "b1"), 1);
    assert_int_equal(ledger_count(&k.w, "b2"), 1);
    end(&k);
}

static enum tide_decision never(void *arg, const struct tide_approval *ask)
{
    (void)arg;
    (void)ask;
    fail_msg("a nested agent asks nobody itself");
    return TIDE_DECIDE_ALLOW;
}

/* ---- waits ----------------------------------------------------------------------------------------------------------- */

/* Parks the run as whoever drives it would, and resumes it with an answer. */
static void answer(struct nest *k, const char *input)
{
    const struct tide_wait_options wait = {.size = sizeof wait,
                                           .name = k->result.wait.name,
                                           .kind = k->result.wait.kind,
                                           .question = k->result.wait.question};
    struct tide_text text = {NULL, 0};
    char token[TIDE_TOKEN_SIZE];

    assert_false(k->run->over);
    GIVES(TIDE_WAITING, tide_run_wait(k->run, &wait, &text, token, &err));
    tide_run_close(k->run);
    OK(tide_run_resume(k->s, &(struct tide_run_options){.size = sizeof(struct tide_run_options), .input = input}, NULL,
                       &k->run, &err));
    k->nested.run = k->run;
}

static void a_call_that_needs_a_word_waits_for_it(void **state)
{
    static const struct {
        const char *answer;
        int done;
    } rows[] = {{"{\"decision\":\"allow\"}", 1}, {"\"no\"", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nest k = {.result = NESTED_RESULT_INIT};

        begin(&k, "{\"turns\":[{\"calls\":[" BASH("c", "echo yes >> " LEDGER) "]},{\"text\":\"as you wish\"}]}");
        k.w.opt.permissions = RULES;
        k.w.opt.approve = never;
        for (int again = 0; again < 2; again++) { /* also when it is asked for once more before anybody answered */
            RUNS_NESTED(TIDE_WAITING, &k);
            assert_int_equal(k.result.wait.kind, TIDE_WAIT_APPROVAL);
            assert_non_null(strstr(k.result.wait.question, "echo yes"));
            assert_int_equal(count_kind(k.s, "approval.requested"), 1);
            assert_int_equal(count_kind(k.s, "run.waiting"), 0);
        }
        answer(&k, rows[i].answer);
        RUNS_NESTED(TIDE_OK, &k);
        assert_int_equal(ledger_count(&k.w, "yes"), rows[i].done);
        assert_string_equal(buf_cstr(&k.result.answer), "as you wish");
        assert_int_equal(count_kind(k.s, "approval.given"), 1);
        assert_int_equal(count_kind(k.s, "message.assistant"), 2);
        end(&k);
    }
}

static void a_budget_is_one_of_all_nested_agents(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};

    (void)state;
    begin(&k, "{\"turns\":[{\"calls\":[" SET("title", "1") "]," USAGE(
                  "60", "40") "},"
                              "{\"text\":\"done\",\"calls\":[" SET("body", "1") "]," USAGE("60", "40") "}]}");
    want_two(&k);
    k.w.opt.max_tokens = 100;
    RUNS_NESTED(TIDE_WAITING, &k);
    assert_string_equal(k.result.wait.name, "budget-1");
    answer(&k, "\"yes\"");
    RUNS_NESTED(TIDE_OK, &k);
    set_nested(&k, "other", 1); /* what it may use was allowed before it began, and is used up by now */
    want_two(&k);
    RUNS_NESTED(TIDE_WAITING, &k);
    assert_string_equal(k.result.wait.name, "budget-2");
    answer(&k, "\"no\"");
    RUNS_NESTED(TIDE_FAILED, &k);
    assert_string_equal(k.result.code, "budget");
    RUNS_NESTED(TIDE_WAITING, &k); /* trying again asks again */
    assert_string_equal(k.result.wait.name, "budget-3");
    assert_int_equal(count_kind(k.s, "message.assistant"), 2);
    end(&k);
}

/* ---- conversations --------------------------------------------------------------------------------------------------- */

static void every_visit_is_a_conversation_of_its_own(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    char *request;

    (void)state;
    begin(&k, "{\"nodes\":{\"write\":[{\"text\":\"first\"}],\"write#2\":[{\"text\":\"second\"}],"
              "\"ask\":[{\"text\":\"inner\"}],\"pages\":[{\"text\":\"item\"}]},\"turns\":[{\"text\":\"chat\"}]}");
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.answer), "first");
    set_nested(&k, "write", 2);
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.answer), "second");
    set_nested(&k, "write", 3);
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.answer), "first");
    set_nested(&k, "review#2/ask", 1);
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.answer), "inner");
    set_nested(&k, "pages#1[3]", 1);
    k.nested.branch = "12:0";
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.answer), "item");
    set_nested(&k, "else", 1);
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.answer), "chat");
    request = body_of(k.s, "llm.request", 4);
    assert_non_null(strstr(request, "\"turn\":5,\"node\":\"pages#1[3]\",\"visit\":1,\"branch\":\"12:0\""));
    assert_non_null(strstr(request, "\"messages\":1"));
    free(request);
    set_nested(&k, "write", 1); /* an older visit than the latest */
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.answer), "first");
    assert_int_equal(count_kind(k.s, "llm.request"), 6);
    end(&k);
}

static int64_t read_from; /* the smallest seq that was read from; INT64_MAX: none */
static const struct store_ops *real_ops;

static enum tide_code noting_read(struct store *store, const struct head *head, int64_t from, int64_t to,
                                  store_event_fn *fn, void *arg, struct tide_err *err)
{
    read_from = from < read_from ? from : read_from;
    return real_ops->read(store, head, from, to, fn, arg, err);
}

static void only_what_may_be_of_it_is_read(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    struct store_ops ops;
    int64_t began;

    (void)state;
    begin(&k, "{\"turns\":[{\"text\":\"first\"},{\"text\":\"second\"}]}");
    RUNS_NESTED(TIDE_OK, &k);
    OK(tide_session_flush(k.s, &err));
    began = tide_session_last_seq(k.s) + 1;
    real_ops = store_of(k.store)->ops;
    ops = *real_ops;
    ops.read = noting_read;
    store_of(k.store)->ops = &ops;
    for (int again = 0; again < 2; again++) {
        read_from = INT64_MAX;
        set_nested(&k, "write", 2);
        RUNS_NESTED(TIDE_OK, &k);
        assert_int_equal(read_from, again ? began : INT64_MAX);
    }
    store_of(k.store)->ops = real_ops;
    end(&k);
}

static int count_message(void *arg, const struct tide_message *m)
{
    (void)m;
    ++*(int *)arg;
    return 0;
}

static void a_chat_in_the_same_session_hears_nothing_of_it(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    const struct tide_run_result completed = {.size = sizeof completed, .outcome = TIDE_OUTCOME_COMPLETED};
    tide_agent *a = NULL;
    int messages = 0;

    (void)state;
    begin(&k, pages_script);
    want_two(&k);
    RUNS_NESTED(TIDE_OK, &k);
    OK(tide_run_end(k.run, &completed, &err));
    write_file(k.w.script, "{\"turns\":[{\"calls\":[" BASH("same", "echo b3 >> " LEDGER) "]},{\"text\":\"hi\"}]}");
    OK(tide_agent_new(k.s, &k.w.opt, &a, &err));
    OK(tide_agent_run(a, "hello", NULL, &err));
    OK(tide_agent_read_history(a, count_message, &messages, &err));
    assert_int_equal(messages, 4);
    assert_int_equal(ledger_count(&k.w, "b3"), 1);
    tide_agent_free(a);
    end(&k);
}

static void a_fork_inherits_the_conversation_of_its_node_alone(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    tide_session *parent;
    char id[TIDE_ID_SIZE];

    (void)state;
    begin(&k, pages_script);
    set_nested(&k, "other", 1);
    RUNS_NESTED(TIDE_FAILED, &k); /* the script has nothing for it, and what it was told must not come up again */
    set_nested(&k, "write", 1);
    want_two(&k);
    k.nested.stopped = is_stopped;
    k.turns_over = 0;
    RUNS_NESTED(TIDE_CANCELLED, &k);
    OK(tide_session_flush(k.s, &err));
    OK(tide_session_fork(k.store, "s", tide_session_last_seq(k.s), "f", NULL, id, &err));
    parent = k.s;
    tide_run_close(k.run);
    OK(tide_session_open(k.store, "f", TIDE_SESSION_APPEND, &k.s, &err));
    OK(tide_run_start(k.s, &(struct tide_run_options){.size = sizeof(struct tide_run_options)}, &k.run, &err));
    set_nested(&k, "write", 1);
    want_two(&k);
    RUNS_NESTED(TIDE_OK, &k);
    assert_string_equal(buf_cstr(&k.result.outputs), "{\"title\":\"T\",\"body\":{\"a\":[1,2.50]}}");
    assert_int_equal(ledger_count(&k.w, "b1"), 1);
    assert_int_equal(count_kind(k.s, "message.assistant"), 3);
    tide_session_close(parent);
    end(&k);
}

/* ---- decisions ------------------------------------------------------------------------------------------------------- */

static void a_decision_is_read_or_called_unreadable(void **state)
{
    static const struct {
        const char *text;
        int yes;
    } rows[] = {
        {"{\\\"proceed\\\": true, \\\"reason\\\": \\\"good\\\"}", 1},
        {"{\\\"proceed\\\":false}", 0},
        {"```json\\n{\\\"proceed\\\": true}\\n```", 1},
        {"yes", 1},
        {" No.", 0},
        {"YES, because it is", 1},
        {"no idea", -1},
        {"{\\\"proceed\\\": \\\"maybe\\\"}", -1},
        {"{\\\"proceed\\\": true", -1},
        {"{\\\"go\\\": true}", -1},
        {"{{}} yes", -1},
        {"", -1},
        {"yesterday", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nest k = {.result = NESTED_RESULT_INIT};
        struct buf script = BUF_INIT(4096);
        char *request;
        int yes = 7;

        buf_addf(&script, "{\"nodes\":{\"write?\":[{\"text\":\"%s\"}],\"write\":[{\"text\":\"work\"}]}}", rows[i].text);
        begin(&k, buf_cstr(&script));
        RUNS_NESTED(TIDE_OK, &k); /* what the node itself said is no part of it */
        for (int again = 0; again < 2; again++) {
            OK(nested_decide(&k.nested, "Go on?", "{\"a\":1}", &yes, &err));
            if (yes != rows[i].yes)
                fail_msg("%s: %d", rows[i].text, yes);
        }
        assert_int_equal(count_kind(k.s, "llm.request"), 2); /* the second time the log answers */
        OK(nested_decide(&k.nested, "Go on?", "{\"a\":2}", &yes, &err));
        assert_int_equal(count_kind(k.s, "llm.request"), 3);
        request = body_of(k.s, "llm.request", 1);
        assert_non_null(strstr(request, "\"node\":\"write\",\"visit\":1,\"decides\":"));
        assert_non_null(strstr(request, "\"messages\":1"));
        assert_non_null(strstr(request, "\"tools\":[]"));
        RUNS_NESTED(TIDE_OK, &k); /* and it is no part of the node's conversation */
        assert_string_equal(buf_cstr(&k.result.answer), "work");
        assert_int_equal(count_kind(k.s, "llm.request"), 3);
        free(request);
        buf_done(&script);
        end(&k);
    }
}

static void a_decision_that_nobody_answers_fails(void **state)
{
    struct nest k = {.result = NESTED_RESULT_INIT};
    int yes = 7;

    (void)state;
    begin(&k, "{\"turns\":[{\"fail\":[{\"status\":401}],\"text\":\"yes\"}]}");
    GIVES(TIDE_FAILED, nested_decide(&k.nested, "Go on?", NULL, &yes, &err));
    assert_int_equal(yes, 7);
    write_file(k.w.script, "{\"turns\":[{\"text\":\"yes\"}]}");
    OK(nested_decide(&k.nested, "Go on?", NULL, &yes, &err));
    assert_int_equal(yes, 1);
    assert_int_equal(count_kind(k.s, "message.user"), 1);
    end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_may_be_set_over_several_turns),
        cmocka_unit_test(one_that_may_stay_unset_is_not_waited_for),
        cmocka_unit_test(where_all_may_stay_unset_it_answers_once),
        cmocka_unit_test(a_wrong_output_is_refused_and_says_which_there_are),
        cmocka_unit_test(it_is_offered_only_the_tools_it_may_use),
        cmocka_unit_test(it_fails_with_a_code_and_goes_on_where_it_was),
        cmocka_unit_test(model_calls_are_limited_for_the_whole_visit),
        cmocka_unit_test(what_is_wrong_with_its_settings_is_a_failure),
        cmocka_unit_test(it_stops_when_it_is_told_to_and_goes_on),
        cmocka_unit_test(a_call_that_needs_a_word_waits_for_it),
        cmocka_unit_test(a_budget_is_one_of_all_nested_agents),
        cmocka_unit_test(every_visit_is_a_conversation_of_its_own),
        cmocka_unit_test(only_what_may_be_of_it_is_read),
        cmocka_unit_test(a_chat_in_the_same_session_hears_nothing_of_it),
        cmocka_unit_test(a_fork_inherits_the_conversation_of_its_node_alone),
        cmocka_unit_test(a_decision_is_read_or_called_unreadable),
        cmocka_unit_test(a_decision_that_nobody_answers_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
