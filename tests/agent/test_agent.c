/* SPDX-License-Identifier: Apache-2.0 */
/* The loop as an embedder has it: turns, tools, permissions, retries, stopping, going on. */
#include "agent/agents.h"

static void a_plain_prompt_is_answered_and_recorded(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"Hello.\"},{\"text\":\"Again.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "hi", &answer, &err));
    assert_string_equal(answer.ptr, "Hello.");
    tide_text_done(&answer);
    LOG_IS(s, 2,
           "run.started session.updated message.user llm.request message.assistant llm.usage checkpoint run.completed");
    OK(tide_agent_run(a, "more", &answer, &err));
    assert_string_equal(answer.ptr, "Again.");
    tide_text_done(&answer);
    BODY_HAS(s, "message.user", 1, "\"turn\":2");
    BODY_HAS(s, "message.assistant", 1, "\"turn\":2");
    GIVES(TIDE_NOT_FOUND, tide_agent_resume(a, NULL, NULL, NULL, &err));
    tide_agent_free(a);
    tide_session_close(s);
}

static void a_tool_runs_between_its_start_and_its_result(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    write_file(
        f->script,
        "{\"turns\":[{\"text\":\"Look.\",\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"echo one; echo two\"}}]},"
        "{\"text\":\"Done.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "go", &answer, &err));
    assert_string_equal(answer.ptr, "Done.");
    tide_text_done(&answer);
    LOG_IS(s, 4,
           "message.user llm.request message.assistant llm.usage tool.started tool.completed message.tool checkpoint "
           "llm.request message.assistant llm.usage checkpoint run.completed");
    BODY_HAS(s, "tool.started", 0, "\"pid\":");
    BODY_HAS(s, "message.tool", 0, "one\\ntwo");
    assert_string_equal(buf_cstr(&f->heard), "text text_end tool tool_end text text_end");
    tide_agent_free(a);
    tide_session_close(s);
}

static void an_ask_is_parked_and_answered_once(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f), *t = NULL;
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    opt.permissions = NULL; /* bash is asked about */
    write_file(
        f->script,
        "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"echo x >> ledger\"}}]},{\"text\":\"Done.\"}]}");
    a = new_agent(s, &opt);
    SAYS(TIDE_WAITING, "echo x", tide_agent_run(a, "go", &answer, &err));
    assert_true(strlen(tide_agent_token(a)) > 20);
    GIVES(TIDE_WAITING, tide_agent_resume(a, NULL, NULL, &answer, &err));
    tide_agent_free(a);
    tide_session_close(s);
    OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &t, &err)); /* another process, later */
    a = new_agent(t, &opt);
    OK(tide_agent_resume(a, "\"allow\"", NULL, &answer, &err));
    assert_string_equal(answer.ptr, "Done.");
    tide_text_done(&answer);
    assert_int_equal(count_kind(t, "approval.requested"), 1);
    assert_int_equal(count_kind(t, "approval.given"), 1);
    assert_int_equal(count_kind(t, "tool.started"), 1);
    tide_agent_free(a);
    tide_session_close(t);
}

static void an_ask_is_answered_by_whoever_is_here(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    opt.permissions = NULL;
    opt.approve = decide;
    write_file(
        f->script,
        "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"true\"}},{\"name\":\"bash\",\"args\":{\"command\":\"false\"}}]},"
        "{\"text\":\"Done.\"}]}");
    a = new_agent(s, &opt);
    f->decision = TIDE_DECIDE_DENY;
    f->reason = "not today";
    OK(tide_agent_run(a, "go", &answer, &err));
    assert_int_equal(f->asked, 2);
    assert_int_equal(count_kind(s, "tool.started"), 0);
    BODY_HAS(s, "message.tool", 1, "denied by the user: not today");
    BODY_HAS(s, "approval.given", 1, "\"reason\":\"not today\"");
    tide_text_done(&answer);
    tide_agent_free(a);
    tide_session_close(s);
}

static void rate_limits_are_waited_out_and_recorded(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"Hello.\",\"fail\":[{\"status\":429},{\"status\":429}]}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "hi", &answer, &err));
    tide_text_done(&answer);
    assert_int_equal(count_kind(s, "llm.error"), 2);
    BODY_HAS(s, "llm.error", 0, "\"attempt\":0");
    BODY_HAS(s, "llm.error", 1, "\"attempt\":1");
    BODY_HAS(s, "llm.error", 1, "\"retry_at\":");
    assert_string_equal(buf_cstr(&f->heard), "retry retry text text_end");
    tide_agent_free(a);
    tide_session_close(s);
}

static void what_cannot_pass_by_itself_fails_at_once_and_can_be_resumed(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"Hello.\",\"fail\":[{\"status\":401}]}]}");
    a = new_agent(s, &opt);
    HINTS(TIDE_FAILED, TIDE_ACTION_PROMPT, tide_agent_run(a, "hi", &answer, &err));
    assert_int_equal(count_kind(s, "llm.error"), 1);
    LOG_IS(s, 5, "llm.request llm.error run.failed");
    ABOUT(TIDE_FAILED, TIDE_SUBJECT_KEY, "api_key", tide_agent_resume(a, NULL, NULL, &answer, &err));
    tide_agent_free(a);
    write_file(f->script, "{\"turns\":[{\"text\":\"Hello.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_resume(a, NULL, NULL, &answer, &err));
    assert_string_equal(answer.ptr, "Hello.");
    BODY_HAS(s, "message.assistant", 0, "\"turn\":1");
    tide_text_done(&answer);
    tide_agent_free(a);
    tide_session_close(s);
}

static void for_ever_503_makes_four_calls_and_four_rows(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    write_file(
        f->script,
        "{\"turns\":[{\"text\":\"x\",\"fail\":[{\"status\":503},{\"status\":503},{\"status\":503},{\"status\":503},{\"status\":503}]}]}");
    a = new_agent(s, &opt);
    GIVES(TIDE_FAILED, tide_agent_run(a, "hi", NULL, &err));
    assert_int_equal(count_kind(s, "llm.error"), 4);
    tide_agent_free(a);
    tide_session_close(s);
}

static void too_many_turns_fail_by_name_and_go_on_when_resumed(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    opt.max_turns = 2;
    write_file(
        f->script,
        "{\"turns\":[{\"calls\":[{\"name\":\"glob\",\"args\":{\"pattern\":\"*\"}}]},{\"calls\":[{\"name\":\"glob\",\"args\":{"
        "\"pattern\":\"*\"}}]},{\"text\":\"Done.\"}]}");
    a = new_agent(s, &opt);
    HINTS(TIDE_FAILED, TIDE_ACTION_PROMPT, tide_agent_run(a, "hi", NULL, &err));
    BODY_HAS(s, "llm.error", 0, "\"context\":\"max_turns\"");
    OK(tide_agent_resume(a, NULL, NULL, &answer, &err));
    assert_string_equal(answer.ptr, "Done.");
    tide_text_done(&answer);
    BODY_HAS(s, "message.assistant", 2, "\"turn\":3");
    tide_agent_free(a);
    tide_session_close(s);
}

static void a_tool_that_is_not_there_is_the_models_problem(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    write_file(
        f->script,
        "{\"turns\":[{\"calls\":[{\"name\":\"teleport\",\"id\":\"same\"},{\"name\":\"bash\",\"id\":\"same\",\"args\":\"{no json\"}]},"
        "{\"text\":\"Done.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "hi", NULL, &err));
    BODY_HAS(s, "message.tool", 0, "there is no tool 'teleport'");
    BODY_HAS(s, "message.tool", 1, "not valid JSON");
    BODY_HAS(s, "message.assistant", 0, "call_1_2"); /* the repeated id was replaced */
    tide_agent_free(a);
    tide_session_close(s);
}

static void stop_at_first_text(void *arg, const struct tide_agent_event *e)
{
    if (e->what == TIDE_AGENT_TEXT)
        tide_agent_stop(*(tide_agent **)arg);
}

static void a_person_may_stop_it_and_say_something_else(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a = NULL;

    opt.event = stop_at_first_text;
    opt.arg = &a;
    write_file(f->script, "{\"turns\":[{\"text\":\"one two three four\",\"chunk_ms\":20}]}");
    OK(tide_agent_new(s, &opt, &a, &err));
    GIVES(TIDE_CANCELLED, tide_agent_run(a, "hi", &answer, &err));
    assert_int_equal(count_kind(s, "run.interrupted"), 1);
    assert_int_equal(count_kind(s, "message.assistant"), 0);
    tide_agent_free(a);
    opt.event = hear;
    opt.arg = f;
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "again", &answer, &err));
    assert_string_equal(answer.ptr, "one two three four");
    tide_text_done(&answer);
    tide_agent_free(a);
    tide_session_close(s);
}

static void a_budget_that_is_used_up_parks_with_the_reason(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    opt.prices = "{\"script\":{\"input\":1,\"output\":2}}";
    opt.max_cost = 0.5;
    write_file(
        f->script,
        "{\"turns\":[{\"calls\":[{\"name\":\"glob\",\"args\":{\"pattern\":\"*\"}}],\"usage\":{\"input_tokens\":1000000,\"output_tokens\":0}},"
        "{\"text\":\"Done.\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}]}");
    a = new_agent(s, &opt);
    SAYS(TIDE_WAITING, "budget of 0.5", tide_agent_run(a, "hi", &answer, &err));
    BODY_HAS(s, "llm.usage", 0, "\"cost\":1.0");
    OK(tide_agent_resume(a, "{\"decision\":\"allow\"}", NULL, &answer, &err));
    assert_string_equal(answer.ptr, "Done.");
    tide_text_done(&answer);
    tide_agent_free(a);
    tide_session_close(s);
}

static enum tide_code add_one(void *arg, const char *args, const char *key, struct tide_text *ret, struct tide_err *err)
{
    (void)args;
    (void)err;
    assert_int_equal(strlen(key), 32);
    ++*(int *)arg;
    ret->ptr = mem_dup(STR("counted"));
    ret->len = 7;
    return TIDE_OK;
}

static enum tide_code deny_bash(void *arg, const char *input, struct tide_text *ret, struct tide_err *err)
{
    static const char answer[] = "{\"action\":\"deny\",\"reason\":\"not today\"}";

    (void)err;
    ++*(int *)arg;
    assert_non_null(strstr(input, "pre_tool_use"));
    ret->ptr = mem_dup(str_from(answer));
    ret->len = strlen(answer);
    return TIDE_OK;
}

static void an_embedder_brings_tools_and_hooks(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    int counted = 0, hooked = 0;
    const struct tide_tool tool = {
        .size = sizeof tool, .name = "count", .description = "counts", .fn = add_one, .arg = &counted};
    struct tide_tool strange = tool;
    tide_agent *a;

    write_file(
        f->script,
        "{\"turns\":[{\"calls\":[{\"name\":\"count\"},{\"name\":\"bash\",\"args\":{\"command\":\"true\"}}]},{\"text\":\"Done.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_add_tool(a, &tool, &err));
    GIVES(TIDE_EXISTS, tide_agent_add_tool(a, &tool, &err));
    strange.name = "strange";
    strange.permission = (enum tide_permission)3;
    GIVES(TIDE_INVALID, tide_agent_add_tool(a, &strange, &err));
    OK(tide_agent_add_hook(a, "no bash", "pre_tool_use", "^bash$", deny_bash, &hooked, &err));
    OK(tide_agent_run(a, "hi", NULL, &err));
    assert_int_equal(counted, 1);
    assert_int_equal(hooked, 1);
    BODY_HAS(s, "message.tool", 1, "denied by hook 'no bash': not today");
    BODY_HAS(s, "llm.request", 0, "\"name\":\"count\"");
    tide_agent_free(a);
    tide_session_close(s);
}

static void old_turns_are_left_out_by_an_event(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    opt.max_context_tokens = 1000;
    write_file(
        f->script,
        "{\"turns\":[{\"text\":\"a long answer\",\"usage\":{\"input_tokens\":500,\"output_tokens\":90}}],\"repeat\":true}");
    a = new_agent(s, &opt);
    for (int i = 0; i < 6; i++)
        OK(tide_agent_run(a, "a prompt that is said again and again, so that the conversation grows longer", NULL,
                          &err));
    assert_int_equal(count_kind(s, "context.trimmed"), 0);
    write_file(
        f->script,
        "{\"turns\":[{\"text\":\"a long answer\",\"usage\":{\"input_tokens\":900,\"output_tokens\":90}}],\"repeat\":true}");
    tide_agent_free(a);
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "more", NULL, &err));
    OK(tide_agent_run(a, "more", NULL, &err));
    assert_int_equal(count_kind(s, "context.trimmed"), 1);
    BODY_HAS(s, "context.trimmed", 0, "\"from\":\"msg_");
    tide_agent_free(a);
    tide_session_close(s);
}

/* A process that runs one prompt and is killed when it hears this. */
static enum tide_agent_what deadly;

static void die(void *arg, const struct tide_agent_event *e)
{
    (void)arg;
    if (e->what == deadly)
        raise(SIGKILL);
}

static enum tide_code add_tool(tide_agent *a, void *tool)
{
    return tool ? tide_agent_add_tool(a, tool, NULL) : TIDE_OK;
}

static void die_at(struct fixture *f, enum tide_agent_what what, const struct tide_tool *tool)
{
    struct tide_agent_options opt = options(f);

    deadly = what;
    opt.event = die;
    die_in_a_run(f, &opt, add_tool, (void *)(uintptr_t)tool);
}

static char *text_of(const char *path)
{
    char *text = mem_zero(200);
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_true(fread(text, 1, 199, file) < 199);
    fclose(file);
    return text;
}

/* The answers that trimming leaves out were given all the same: the script continues, also in another process. */
static void a_script_continues_where_it_is_when_turns_are_left_out(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct buf script = BUF_INIT(65536), want = BUF_INIT(4096);
    char path[320], *done;

    buf_add_str(&script, STR("{\"turns\":["));
    for (int i = 0; i < 12; i++) {
        buf_addf(&script,
                 "%s{\"text\":\"answer %d\",\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"echo %d >>done\"}}],"
                 "\"usage\":{\"input_tokens\":900,\"output_tokens\":90}},{\"text\":\"end %d\"}",
                 i ? "," : "", i, i, i);
        buf_addf(&want, "%d\n", i);
    }
    buf_add_str(&script, STR("]}"));
    write_file(f->script, buf_cstr(&script));
    opt.max_context_tokens = 1000;
    for (int i = 0; i < 12; i += 3) {
        tide_agent *a = new_agent(s, &opt);

        for (int k = 0; k < 3; k++) {
            struct tide_text answer = {0};
            char end[16];

            OK(tide_agent_run(a, "more", &answer, &err));
            snprintf(end, sizeof end, "end %d", i + k);
            assert_string_equal(answer.ptr, end);
            tide_text_done(&answer);
        }
        tide_agent_free(a);
    }
    assert_true(count_kind(s, "context.trimmed") > 0);
    snprintf(path, sizeof path, "%s/done", f->work);
    done = text_of(path);
    assert_string_equal(done, buf_cstr(&want));
    free(done);
    buf_done(&script);
    buf_done(&want);
    tide_session_close(s);
}

static void an_edit_that_was_cut_is_settled_by_looking(void **state)
{
    static const struct {
        enum tide_agent_what killed_at;
        const char *result;
        int started;
    } rows[] = {
        {TIDE_AGENT_TOOL, "NEW", 2},                  /* begun and not done: it is done now */
        {TIDE_AGENT_TOOL_END, "its work is done", 1}, /* done and not recorded: it is not done again */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = *state;
        struct tide_agent_options opt = options(f);
        tide_session *s = NULL;
        char path[400], *text;
        tide_agent *a;

        snprintf(path, sizeof path, "%s/a.txt", f->work);
        write_file(path, "one OLD two\n");
        write_file(f->script, "{\"turns\":[{\"calls\":[{\"name\":\"edit\",\"args\":{\"path\":\"a.txt\",\"old\":"
                              "\"OLD\",\"new\":\"NEW\"}}]},{\"text\":\"Done.\"}]}");
        die_at(f, rows[i].killed_at, NULL);
        OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
        a = new_agent(s, &opt);
        OK(tide_agent_resume(a, NULL, NULL, NULL, &err));
        text = text_of(path);
        assert_string_equal(text, "one NEW two\n");
        free(text);
        assert_int_equal(count_kind(s, "tool.started"), rows[i].started);
        BODY_HAS(s, "message.tool", 0, rows[i].result);
        tide_agent_free(a);
        tide_session_close(s);
        OK(tide_session_delete(f->store, "s", &err));
    }
}

static int find_out(void *arg, const char *args, const char *key)
{
    (void)args;
    assert_int_equal(strlen(key), 32);
    return *(int *)arg;
}

static void an_embedders_tool_that_was_cut_is_settled_by_its_probe(void **state)
{
    static const struct {
        int happened;
        const char *result;
        int ran;
    } rows[] = {{1, "its work is done", 0}, {0, "counted", 1}, {-1, "outcome unknown", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = *state;
        struct tide_agent_options opt = options(f);
        int box[1] = {rows[i].happened}; /* what the probe finds; then how often it ran */
        const struct tide_tool probed = {
            .size = sizeof probed, .name = "count", .fn = add_one, .probe = find_out, .arg = box};
        tide_session *s = NULL;
        tide_agent *a;

        write_file(f->script, "{\"turns\":[{\"calls\":[{\"name\":\"count\"}]},{\"text\":\"Done.\"}]}");
        die_at(f, TIDE_AGENT_TOOL, &probed);
        OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
        a = new_agent(s, &opt);
        OK(tide_agent_add_tool(a, &probed, &err));
        OK(tide_agent_resume(a, NULL, NULL, NULL, &err));
        assert_int_equal(box[0], rows[i].happened + rows[i].ran);
        BODY_HAS(s, "message.tool", 0, rows[i].result);
        tide_agent_free(a);
        tide_session_close(s);
        OK(tide_session_delete(f->store, "s", &err));
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_plain_prompt_is_answered_and_recorded),
        T(a_tool_runs_between_its_start_and_its_result),
        T(an_ask_is_parked_and_answered_once),
        T(an_ask_is_answered_by_whoever_is_here),
        T(rate_limits_are_waited_out_and_recorded),
        T(what_cannot_pass_by_itself_fails_at_once_and_can_be_resumed),
        T(for_ever_503_makes_four_calls_and_four_rows),
        T(too_many_turns_fail_by_name_and_go_on_when_resumed),
        T(a_tool_that_is_not_there_is_the_models_problem),
        T(a_person_may_stop_it_and_say_something_else),
        T(a_budget_that_is_used_up_parks_with_the_reason),
        T(an_embedder_brings_tools_and_hooks),
        T(an_edit_that_was_cut_is_settled_by_looking),
        T(an_embedders_tool_that_was_cut_is_settled_by_its_probe),
        T(old_turns_are_left_out_by_an_event),
        T(a_script_continues_where_it_is_when_turns_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
