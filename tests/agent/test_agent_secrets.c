/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets in a conversation: what a tool prints, the model repeats or a hook says is stored, told and sent to the model
 * without them; a call that holds one runs with it while its process lives, and never from the log.
 */
#include "agent/agents.h"
#include "session/session.h"

#define KEY "sk-live-4f9a8c21/x"
#define KEY_BASE64 "c2stbGl2ZS00ZjlhOGMyMS94"
#define MARK "[redacted:TEST_KEY]"

static int set_up_known(void **state)
{
    setenv("TEST_KEY", KEY, 1);
    return set_up(state);
}

static int tear_down_known(void **state)
{
    unsetenv("TEST_KEY");
    return tear_down(state);
}

/* ---- what is heard ---- */

static void hear_texts(void *arg, const struct tide_agent_event *e)
{
    struct fixture *f = arg;

    if (e->text)
        buf_add(&f->heard, e->text, e->text_len);
    if (e->args)
        buf_add_str(&f->heard, str_from(e->args));
    buf_add_char(&f->heard, '\n');
}

/* All that is logged, as well. */
static void hear_log(void *arg, const struct tide_log_record *r)
{
    struct fixture *f = arg;

    buf_addf(&f->heard, "%s: %s", tide_log_level_name(r->level), r->message);
    for (size_t i = 0; i < r->fields_len; i++)
        buf_addf(&f->heard, " %s=%s", r->fields[i].key, r->fields[i].value);
    buf_add_char(&f->heard, '\n');
}

static void lacks_secret(const char *what, const char *text)
{
    if (strstr(text, KEY) || strstr(text, "sk-live-4f9a8c21\\/x") || strstr(text, KEY_BASE64))
        fail_msg("%s holds the key: %s", what, text);
}

static int look_at_event(void *arg, const struct tide_event *ev)
{
    (void)arg;
    lacks_secret(ev->kind, ev->body);
    return 0;
}

static void log_lacks_secret(tide_session *s)
{
    OK(tide_session_refresh(s, &err));
    OK(tide_session_read(s, 0, 1, 0, look_at_event, NULL, &err));
}

static char *text_in(const struct fixture *f, const char *name)
{
    struct buf out = BUF_INIT(1 << 20);
    char path[400];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", f->work, name);
    file = fopen(path, "r");
    for (int c; file && (c = fgetc(file)) != EOF;)
        buf_add_char(&out, (char)c);
    if (file)
        fclose(file);
    buf_cstr(&out);
    return buf_take(&out);
}

/* ---- tests ---- */

static void what_is_said_and_done_is_kept_without_it(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    struct tide_text answer = {NULL, 0};
    tide_session *s;
    tide_agent *a;
    char *real;

    opt.event = hear_texts;
    opt.system_prompt = "The key is " KEY ".";
    write_file(f->script,
               "{\"turns\":[{\"text\":\"I use " KEY " now.\",\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":"
               "\"echo got " KEY " " KEY_BASE64 " | tee out.txt\"}}]},{\"text\":\"It is " KEY ".\"}]}");
    s = new_session(f);
    a = new_agent(s, &opt);
    tide_log_set(TIDE_LOG_DEBUG, hear_log, f);
    OK(tide_agent_run(a, "use " KEY, &answer, &err));
    tide_log_set(TIDE_LOG_OFF, NULL, NULL);
    assert_string_equal(answer.ptr, "It is " MARK ".");
    assert_non_null(strstr(f->heard.ptr, "info: agent works"));
    assert_non_null(strstr(f->heard.ptr, "debug: tool done"));
    assert_non_null(strstr(f->heard.ptr, "debug: turn"));
    tide_text_done(&answer);
    log_lacks_secret(s);
    lacks_secret("what was told", buf_cstr(&f->heard));
    assert_non_null(strstr(f->heard.ptr, "I use " MARK " now."));
    BODY_HAS(s, "message.user", 0, "use " MARK);
    BODY_HAS(s, "message.user", 0, "\"redacted\":true");
    BODY_HAS(s, "message.assistant", 0, "echo got " MARK " " MARK " | tee out.txt");
    BODY_HAS(s, "message.tool", 0, "got " MARK " " MARK);
    BODY_HAS(s, "llm.request", 0, "The key is " MARK ".");
    real = text_in(f, "out.txt");
    assert_string_equal(real, "got " KEY " " KEY_BASE64 "\n"); /* the live call ran with what the model gave */
    free(real);
    tide_agent_free(a);
    tide_session_close(s);
}

/* However long the output is, and wherever it is cut: its middle goes, and no half of the key stays. */
static void a_result_that_is_cut_keeps_no_half_of_it(void **state)
{
    static const char *const commands[] = {"for i in 1 2 3 4 5 6 7 8 9; do echo $TEST_KEY; done",
                                           "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo x$TEST_KEY; done"};
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    for (size_t i = 0; i < 2; i++)
        for (int max = 100; max < 100 + (i ? 6 : 30); max++) {
            char script[600], *body;

            opt.max_tool_result_chars = max;
            snprintf(
                script, sizeof script,
                "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"%s\"}}]},{\"text\":\"Done.\"}]}",
                commands[i]);
            write_file(f->script, script);
            tide_session_close(s);
            OK(tide_session_create(f->store, NULL, NULL, &s, &err));
            a = new_agent(s, &opt);
            OK(tide_agent_run(a, "go", NULL, &err));
            body = body_of(s, "message.tool", 0);
            if (strstr(body, "sk-l") || strstr(body, "21/x"))
                fail_msg("%d characters: %s", max, body);
            free(body);
            tide_agent_free(a);
        }
    tide_session_close(s);
}

static enum tide_code say_key(void *arg, const char *input, struct tide_text *ret, struct tide_err *err)
{
    (void)arg;
    (void)input;
    (void)err;
    ret->ptr = mem_dup(STR("{\"action\":\"append_context\",\"context\":\"hook says " KEY "\"}"));
    ret->len = strlen(ret->ptr);
    return TIDE_OK;
}

static void what_a_hook_says_is_kept_without_it(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s;
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"Hello.\"}]}");
    s = new_session(f);
    a = new_agent(s, &opt);
    OK(tide_agent_add_hook(a, "h", "turn_start", NULL, say_key, NULL, &err));
    OK(tide_agent_run(a, "go", NULL, &err));
    log_lacks_secret(s);
    BODY_HAS(s, "message.user", 1, "hook says " MARK);
    tide_agent_free(a);
    tide_session_close(s);
}

static void the_key_of_the_provider_is_known_by_itself(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s;
    tide_agent *a;

    opt.api_key = "another-key-of-some-provider";
    write_file(f->script, "{\"turns\":[{\"text\":\"You use another-key-of-some-provider.\"}]}");
    s = new_session(f);
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "go", NULL, &err));
    BODY_HAS(s, "message.assistant", 0, "You use [redacted:api_key].");
    tide_agent_free(a);
    tide_session_close(s);
}

/* ---- calls that are cut ---- */

static int calls;

static enum tide_code count_call(void *arg, const char *args, const char *key, struct tide_text *ret,
                                 struct tide_err *err)
{
    (void)args;
    (void)key;
    (void)err;
    calls++;
    if (arg)
        raise(SIGKILL);
    ret->ptr = mem_dup(STR("sent"));
    ret->len = 4;
    return TIDE_OK;
}

static enum tide_code add_tool(tide_agent *a, const char *effect, bool deadly)
{
    const struct tide_tool tool = {.size = sizeof tool,
                                   .name = "send",
                                   .description = "sends",
                                   .schema = "{\"type\":\"object\"}",
                                   .effect = (enum tide_effect)tide_effect_from(effect),
                                   .fn = count_call,
                                   .arg = deadly ? &calls : NULL};

    return tide_agent_add_tool(a, &tool, NULL);
}

static enum tide_code ready_to_die(tide_agent *a, void *arg)
{
    return add_tool(a, arg, true);
}

static void a_call_that_held_it_is_never_run_from_the_log(void **state)
{
    static const struct {
        const char *name, *effect, *args;
        bool second; /* it comes behind the call in which the process dies */
        const char *want;
        int calls;
    } rows[] = {
        {"pure, started", "pure", KEY, false, "outcome unknown", 0},
        {"idempotent, started", "idempotent", KEY_BASE64, false, "outcome unknown", 0},
        {"once, started", "once", KEY, false, "outcome unknown", 0},
        {"pure, not started", "pure", KEY, true, "not run", 1},
        {"once, not started", "once", KEY, true, "not run", 0},
        {"without a secret", "pure", "nothing", true, "sent", 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_agent_options opt;
        tide_session *s = NULL;
        struct fixture *f;
        tide_agent *a;
        char script[600];

        if (i && (tear_down_known(state), set_up_known(state)))
            fail();
        f = *state;
        opt = options(f);
        snprintf(script, sizeof script,
                 "{\"turns\":[{\"calls\":[%s{\"name\":\"send\",\"args\":{\"to\":\"%s\"}}]},{\"text\":\"Done.\"}]}",
                 rows[i].second ? "{\"name\":\"send\",\"args\":{}}," : "", rows[i].args);
        write_file(f->script, script);
        die_in_a_run(f, &opt, ready_to_die, (void *)(uintptr_t)rows[i].effect);
        calls = 0;
        OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
        a = new_agent(s, &opt);
        OK(add_tool(a, rows[i].effect, false));
        OK(tide_agent_resume(a, NULL, NULL, NULL, &err));
        print_message("%s\n", rows[i].name);
        assert_int_equal(calls, rows[i].calls);
        BODY_HAS(s, "message.tool", rows[i].second, rows[i].want);
        log_lacks_secret(s);
        tide_agent_free(a);
        tide_session_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_said_and_done_is_kept_without_it, set_up_known, tear_down_known),
        cmocka_unit_test_setup_teardown(a_result_that_is_cut_keeps_no_half_of_it, set_up_known, tear_down_known),
        cmocka_unit_test_setup_teardown(what_a_hook_says_is_kept_without_it, set_up_known, tear_down_known),
        cmocka_unit_test_setup_teardown(the_key_of_the_provider_is_known_by_itself, set_up_known, tear_down_known),
        cmocka_unit_test_setup_teardown(a_call_that_held_it_is_never_run_from_the_log, set_up_known, tear_down_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
