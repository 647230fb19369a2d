/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both protocols against a server that is not ours (aimock.sh starts it and says where it is): what it understands and
 * streams is somebody else's reading of them. What it answers to stands in aimock.json.
 */
#include "agent/provider.h"
#include "kit.h"

#define KEY "test-key" /* aimock.sh tells the mock to take no other */

static const char *const types[] = {"anthropic", "openai"};

#define TOOLS                                                                                                          \
    STR("[{\"name\":\"bash\",\"description\":\"runs a command\",\"input_schema\":{\"type\":\"object\",\"properties\":" \
        "{\"command\":{\"type\":\"string\"}}}},{\"name\":\"glob\",\"description\":\"finds files\",\"input_schema\":"   \
        "{\"type\":\"object\",\"properties\":{\"pattern\":{\"type\":\"string\"}}}}]")

struct conversation {
    struct model_answer answer;
    struct model_fault fault;
    size_t heard;
    int thoughts;
};

static void on_text(void *arg, struct str piece)
{
    assert_true(str_is_utf8(piece, NULL));
    ((struct conversation *)arg)->heard += piece.len;
}

static void on_thinking(void *arg)
{
    ((struct conversation *)arg)->thoughts++;
}

static enum tide_code say(struct conversation *t, const char *type, const char *key,
                          const struct model_message *messages, size_t n)
{
    const struct provider_config config = {.type = type, .base_url = getenv("AIMOCK_URL"), .key = key};
    const struct model_request request = {STR("mock-1"), STR("Be brief."), TOOLS, 500, messages, n, STR(""), 0};
    const struct model_listener listener = {t, on_text, on_thinking, NULL};
    AUTO(provider_closep) struct provider *p = NULL;
    struct buf body = BUF_INIT(65536);
    struct tide_err why = {0};
    enum tide_code code;

    *t = (struct conversation){.heard = 0};
    OK(provider_open(&config, &p, &err));
    provider_render(p, &request, &body);
    code = provider_call(p, buf_view(&body), 0, &listener, &t->answer, &t->fault, &why);
    assert_true(!code || !strstr(why.msg, KEY));
    buf_done(&body);
    return code;
}

static enum tide_code say_text(struct conversation *t, const char *type, const char *text)
{
    const struct model_message message = {.role = TIDE_ROLE_USER, .text = str_from(text)};

    return say(t, type, KEY, &message, 1);
}

static void text_arrives_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct conversation t;

        assert_int_equal(say_text(&t, types[i], "say hello"), TIDE_OK);
        assert_true(str_eq(t.answer.text,
                           STR("Hello \xf0\x9f\x98\x80 from the mock, in several pieces of text.\n\xe2\x82\xac")));
        assert_int_equal(t.heard, t.answer.text.len);
        assert_int_equal(t.answer.stop, STOP_END);
        assert_false(t.answer.replaced);
        assert_true(i == 0 || t.answer.usage.output_tokens > 0); /* it counts nothing for the other protocol */
        model_answer_done(&t.answer);
    }
}

static void check_calls(const struct model_answer *a)
{
    assert_true(str_eq(a->text, STR("Looking.")));
    assert_int_equal(a->stop, STOP_TOOLS);
    assert_int_equal(a->n_calls, 2);
    assert_true(str_eq(a->calls[0].id, STR("call_a")) && str_eq(a->calls[0].name, STR("bash")));
    assert_true(str_eq(a->calls[0].args, STR("{\"command\":\"ls -l \\\"a b\\\"\"}")));
    assert_true(str_eq(a->calls[1].id, STR("call_b")) && str_eq(a->calls[1].name, STR("glob")));
    assert_true(str_eq(a->calls[1].args, STR("{\"pattern\":\"*.c\"}")));
}

static void tools_are_asked_for_and_their_results_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct model_message talk[] = {
            {.role = TIDE_ROLE_USER, .text = STR("use tools")},
            {.role = TIDE_ROLE_ASSISTANT},
            {.role = TIDE_ROLE_TOOL, .text = STR("a b"), .call_id = STR("call_a")},
            {.role = TIDE_ROLE_TOOL, .text = STR("no such file"), .call_id = STR("call_b"), .failed = true},
        };
        struct conversation first, second;

        assert_int_equal(say(&first, types[i], KEY, talk, 1), TIDE_OK);
        check_calls(&first.answer);
        talk[1].text = first.answer.text;
        talk[1].calls = first.answer.calls;
        talk[1].n_calls = first.answer.n_calls;
        assert_int_equal(say(&second, types[i], KEY, talk, 4), TIDE_OK);
        assert_true(str_eq(second.answer.text, STR("The tools are done.")));
        assert_int_equal(second.answer.n_calls, 0);
        model_answer_done(&first.answer);
        model_answer_done(&second.answer);
    }
}

static void images_are_understood(void **state)
{
    const struct model_image dot = {STR("image/png"), STR("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
                                                          "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct model_message message = {
            .role = TIDE_ROLE_USER, .text = STR("see this"), .images = &dot, .n_images = 1};
        struct conversation t;

        assert_int_equal(say(&t, types[i], KEY, &message, 1), TIDE_OK);
        assert_true(str_eq(t.answer.text, STR("A dot.")));
        model_answer_done(&t.answer);
    }
}

static void thinking_is_passed_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct conversation t;

        assert_int_equal(say_text(&t, types[i], "think first"), TIDE_OK);
        assert_true(str_eq(t.answer.text, STR("Thought about.")));
        assert_true(t.thoughts > 0);
        model_answer_done(&t.answer);
    }
}

static void refusals_have_their_class(void **state)
{
    static const struct {
        const char *text, *code, *words;
        int status;
    } rows[] = {
        {"too fast", "rate_limit", "slow down", 429},
        {"be down", "server_error", "not now", 503},
        {"be overloaded", "overloaded", "too much", 529},
        {"break off", "connection", "", 200},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            struct conversation t;

            assert_int_not_equal(say_text(&t, types[i], rows[k].text), TIDE_OK);
            assert_string_equal(t.fault.code, rows[k].code);
            assert_int_equal(t.fault.http_status, rows[k].status);
            assert_non_null(strstr(t.fault.message, rows[k].words));
            assert_true(rows[k].status != 429 || t.fault.retry_after_ms > 0);
        }
    }
}

static void a_wrong_key_is_refused(void **state)
{
    const struct model_message message = {.role = TIDE_ROLE_USER, .text = STR("say hello")};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct conversation t;

        assert_int_equal(say(&t, types[i], "another-key", &message, 1), TIDE_DENIED);
        assert_string_equal(t.fault.code, "auth");
        assert_int_equal(say(&t, types[i], NULL, &message, 1), TIDE_DENIED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_arrives_whole),        cmocka_unit_test(tools_are_asked_for_and_their_results_understood),
        cmocka_unit_test(images_are_understood),     cmocka_unit_test(thinking_is_passed_over),
        cmocka_unit_test(refusals_have_their_class), cmocka_unit_test(a_wrong_key_is_refused),
    };

    setenv("no_proxy", "127.0.0.1", 1);
    return cmocka_run_group_tests_name("aimock", tests, NULL, NULL);
}
