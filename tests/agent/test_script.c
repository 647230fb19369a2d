/* SPDX-License-Identifier: Apache-2.0 */
/* The provider that answers from a file: the right turn for what was said, failures by attempt, waiting that can be ended. */
#include <time.h>

#include "agent/provider.h"
#include "engine/agent_setup.h"
#include "kit.h"

struct desk {
    char dir[256], path[300];
    struct provider *p;
    struct model_answer answer;
    struct model_fault fault;
    struct tide_err err;
    struct buf heard;
    int pieces, idles, give_up_at;
};

static void on_text(void *arg, struct str piece)
{
    struct desk *d = arg;

    d->pieces++;
    buf_add_str(&d->heard, piece);
}

static bool on_idle(void *arg)
{
    struct desk *d = arg;

    return ++d->idles == d->give_up_at;
}

static void write_script(struct desk *d, const char *json)
{
    FILE *f;

    *d = (struct desk){.heard = BUF_INIT(65536)};
    dir_make(d->dir);
    snprintf(d->path, sizeof d->path, "%s/script.json", d->dir);
    f = fopen(d->path, "w");
    assert_non_null(f);
    fputs(json, f);
    fclose(f);
}

static enum tide_code try_open(struct desk *d)
{
    const struct provider_config config = {.type = "script", .script = d->path};

    return provider_open(&config, &d->p, &d->err);
}

static void desk_open(struct desk *d, const char *json)
{
    write_script(d, json);
    if (try_open(d))
        fail_msg("%s", d->err.msg);
}

static void desk_close(struct desk *d)
{
    provider_close(d->p);
    buf_done(&d->heard);
    dir_remove(d->dir);
}

/* A request after `answers` answers. */
static enum tide_code ask(struct desk *d, size_t answers, int attempt)
{
    const struct model_listener listener = {d, on_text, NULL, on_idle};
    struct model_message talk[40] = {{.role = TIDE_ROLE_USER, .text = STR("hi")}};
    struct model_request request = {STR("m"), STR("s"), STR("[]"), 9, talk, 1 + 2 * answers, STR(""), 0};
    struct buf body = BUF_INIT(65536);
    enum tide_code code;

    for (size_t i = 0; i < answers; i++) {
        talk[1 + 2 * i] = (struct model_message){.role = TIDE_ROLE_ASSISTANT, .text = STR("a")};
        talk[2 + 2 * i] = (struct model_message){.role = TIDE_ROLE_USER, .text = STR("u")};
    }
    buf_clear(&d->heard);
    d->pieces = d->idles = 0;
    provider_render(d->p, &request, &body);
    code = provider_call(d->p, buf_view(&body), attempt, &listener, &d->answer, &d->fault, &d->err);
    buf_done(&body);
    return code;
}

static void expect_text(struct desk *d, size_t answers, const char *want)
{
    assert_int_equal(ask(d, answers, 0), TIDE_OK);
    assert_true(str_eq(d->answer.text, str_from(want)));
    assert_string_equal(buf_cstr(&d->heard), want);
    model_answer_done(&d->answer);
}

static void requests_are_these_bytes(void **state)
{
    const struct model_call call = {STR("c"), STR("bash"), STR("{\"a\":1}")};
    const struct model_message talk[] = {
        {.role = TIDE_ROLE_USER, .text = STR("hi \"you\"")},
        {.role = TIDE_ROLE_ASSISTANT, .text = STR("x"), .calls = &call, .n_calls = 1},
        {.role = TIDE_ROLE_TOOL, .text = STR("no"), .call_id = STR("c"), .failed = true},
    };
    const struct model_request request = {STR("m"), STR("s"), STR("[{\"name\":\"bash\"}]"), 9, talk, 3, STR(""), 0};
    struct buf out = BUF_INIT(4096);
    struct desk d;

    (void)state;
    desk_open(&d, "{\"turns\":[{}]}");
    provider_render(d.p, &request, &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"part\":\"\",\"model\":\"m\",\"max_tokens\":9,\"system\":\"s\",\"tools\":[{\"name\":\"bash\"}],"
        "\"messages\":[{\"role\":\"user\",\"text\":\"hi \\\"you\\\"\"},{\"role\":\"assistant\",\"text\":\"x\","
        "\"calls\":[{\"id\":\"c\",\"name\":\"bash\",\"args\":{\"a\":1}}]},"
        "{\"role\":\"tool\",\"call_id\":\"c\",\"text\":\"no\",\"failed\":true}],\"turn\":1}");
    buf_done(&out);
    desk_close(&d);
}

static void the_turn_follows_from_what_was_said(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, "{\"turns\":[{\"text\":\"one\"},{\"text\":\"tw\\u00f6\"},{}]}");
    expect_text(&d, 1, "tw\xc3\xb6");
    expect_text(&d, 0, "one");
    expect_text(&d, 0, "one");
    expect_text(&d, 2, "");
    assert_int_equal(ask(&d, 3, 0), TIDE_FAILED);
    assert_string_equal(d.fault.code, "bad_request");
    assert_non_null(strstr(d.err.msg, "has 3 turns, and turn 4 was asked for"));
    desk_close(&d);
    desk_open(&d, "{\"turns\":[{\"text\":\"one\"},{\"text\":\"two\"}], \"repeat\": true}");
    expect_text(&d, 5, "two");
    desk_close(&d);
}

static void calls_have_ids_arguments_and_usage(void **state)
{
    struct desk d;

    (void)state;
    desk_open(
        &d,
        "{\"turns\":[{\"text\":\"look\",\"calls\":[{\"name\":\"bash\",\"args\":{ \"command\" : \"ls\" },\"id\":\"mine\"},"
        "{\"name\":\"glob\"},{\"name\":\"odd\",\"args\":\"{no\"}]},"
        "{\"text\":\"x\",\"stop\":\"length\",\"usage\":{\"input_tokens\":5,\"output_tokens\":6,\"cached_tokens\":2}}]}");
    assert_int_equal(ask(&d, 0, 0), TIDE_OK);
    assert_int_equal(d.answer.n_calls, 3);
    assert_int_equal(d.answer.stop, STOP_TOOLS);
    assert_true(str_eq(d.answer.calls[0].id, STR("mine")));
    assert_true(str_eq(d.answer.calls[0].args, STR("{\"command\":\"ls\"}")));
    assert_true(str_eq(d.answer.calls[1].id, STR("call_1_2")));
    assert_true(str_eq(d.answer.calls[1].args, STR("{}")));
    assert_true(str_eq(d.answer.calls[2].args, STR("{\"_malformed\":\"{no\"}")));
    assert_true(d.answer.usage.input_tokens > 10 && d.answer.usage.output_tokens > 5);
    model_answer_done(&d.answer);
    assert_int_equal(ask(&d, 1, 0), TIDE_OK);
    assert_int_equal(d.answer.stop, STOP_LENGTH);
    assert_int_equal(d.answer.usage.input_tokens, 5);
    assert_int_equal(d.answer.usage.output_tokens, 6);
    assert_int_equal(d.answer.usage.cached_tokens, 2);
    model_answer_done(&d.answer);
    desk_close(&d);
}

static void attempts_fail_as_the_script_says(void **state)
{
    static const struct {
        const char *code, *heard;
        int status;
        int64_t after;
    } want[] = {
        {"rate_limit", "", 429, 1500}, {"overloaded", "", 529, -1}, {"connection", "par", 0, -1},
        {NULL, "partly", 0, 0},        {"auth", "", 401, -1},       {NULL, "partly", 0, 0},
    };
    struct desk d;

    (void)state;
    desk_open(&d, "{\"turns\":[{\"text\":\"partly\",\"fail\":[{\"status\":429,\"retry_after\":1.5},{\"status\":529},"
                  "{\"code\":\"connection\",\"after_text\":\"par\"},null,{\"status\":401,\"message\":\"go away\"}]}]}");
    for (int i = 0; i < 6; i++) {
        enum tide_code code = ask(&d, 0, i);

        assert_string_equal(buf_cstr(&d.heard), want[i].heard);
        if (!want[i].code) {
            assert_int_equal(code, TIDE_OK);
            model_answer_done(&d.answer);
            continue;
        }
        assert_int_not_equal(code, TIDE_OK);
        assert_string_equal(d.fault.code, want[i].code);
        assert_int_equal(d.fault.http_status, want[i].status);
        assert_int_equal(d.fault.retry_after_ms, want[i].after);
    }
    assert_int_equal(ask(&d, 0, 4), TIDE_DENIED);
    assert_non_null(strstr(d.err.msg, "script: status 401: go away"));
    desk_close(&d);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void waiting_is_in_small_pieces_and_can_be_ended(void **state)
{
    int64_t began = now_ms();
    struct desk d;

    (void)state;
    desk_open(
        &d,
        "{\"turns\":[{\"text\":\"one two three\",\"delay_ms\":120,\"chunk_ms\":20},{\"text\":\"x\",\"delay_ms\":600000},"
        "{\"text\":\"a b\",\"chunk_ms\":600000}]}");
    expect_text(&d, 0, "one two three");
    assert_true(now_ms() - began >= 160);
    assert_int_equal(d.pieces, 3);
    assert_true(d.idles >= 3);
    for (size_t turn = 1; turn <= 2; turn++) {
        d.give_up_at = 4;
        assert_int_equal(ask(&d, turn, 0), TIDE_CANCELLED);
        assert_string_equal(d.fault.code, "cancelled");
    }
    assert_string_equal(buf_cstr(&d.heard), "a ");
    desk_close(&d);
}

static void a_bad_script_is_one_clear_line(void **state)
{
    static const struct {
        const char *json, *words;
    } rows[] = {
        {"", "script.json: line 1, column 1"},
        {"{\"turns\":[}", "line 1, column 11"},
        {"[]", "it is not an object"},
        {"{}", "it has no turns"},
        {"{\"turns\":[]}", "it has no turns"},
        {"{\"turns\":7}", "'turns' must be an array"},
        {"{\"nodes\":{}}", "it has no turns"},
        {"{\"nodes\":[]}", "'nodes' must be an object"},
        {"{\"nodes\":{\"a\":[]}}", "node 'a': it has no turns"},
        {"{\"nodes\":{\"a\":[{}],\"b\":[{},{\"txt\":1}]}}", "node 'b': turn 2 has an unknown key 'txt'"},
        {"{\"turns\":[{}],\"repaet\":true}", "unknown key 'repaet'"},
        {"{\"turns\":[{},7]}", "turn 2 is not an object"},
        {"{\"turns\":[{\"txt\":\"x\"}]}", "turn 1 has an unknown key 'txt'"},
        {"{\"turns\":[{\"text\":7}]}", "turn 1: 'text' must be a string"},
        {"{\"turns\":[{\"delay_ms\":-1}]}", "turn 1: 'delay_ms' must be a number"},
        {"{\"turns\":[{\"calls\":[{}]}]}", "turn 1: call 1 has no name"},
        {"{\"turns\":[{\"calls\":[{\"name\":\"a\",\"args\":[]}]}]}", "'args' must be an object or a string"},
        {"{\"turns\":[{\"fail\":[{}]}]}", "turn 1: fail 1 needs a status"},
        {"{\"turns\":[{\"fail\":[{\"status\":200}]}]}", "turn 1: fail 1 needs a status"},
        {"{\"turns\":[{\"stop\":\"never\"}]}", "'stop' must be end"},
        {"{\"turns\":[{\"usage\":{\"tokens\":1}}]}", "turn 1: usage has an unknown key 'tokens'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct desk d;

        write_script(&d, rows[i].json);
        assert_int_equal(try_open(&d), TIDE_INVALID);
        if (!strstr(d.err.msg, rows[i].words))
            fail_msg("'%s' is not in '%s'", rows[i].words, d.err.msg);
        assert_null(d.p);
        desk_close(&d);
    }
}

static void a_script_that_is_not_there_is_named(void **state)
{
    const struct provider_config config = {.type = "script", .script = "/nowhere/at/all.json"};
    struct provider *p = NULL;

    (void)state;
    ABOUT(TIDE_NOT_FOUND, TIDE_SUBJECT_FILE, "/nowhere/at/all.json", provider_open(&config, &p, &err));
    assert_int_equal(provider_open(&config, &p, NULL), TIDE_NOT_FOUND);
}

static void a_body_of_somebody_else_is_refused(void **state)
{
    static const char *const bodies[] = {
        "", "{", "{\"turn\":", "{\"turn\":-1,", "{\"turn\":x,", "{\"turn\":1", "{\"model\":1}"};
    struct desk d;

    (void)state;
    desk_open(&d, "{\"turns\":[{\"text\":\"x\"}]}");
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        assert_int_equal(provider_call(d.p, str_from(bodies[i]), 0, NULL, &d.answer, &d.fault, &d.err), TIDE_FAILED);
        assert_string_equal(d.fault.code, "bad_request");
    }
    desk_close(&d);
}

static void a_key_that_is_refused_is_named_by_its_setting(void **state)
{
    struct agent_setup setup = {.opt = {.provider = "script", .model = "m"}};
    char dir[256], path[300];
    FILE *f;

    (void)state;
    dir_make(dir);
    snprintf(path, sizeof path, "%s/script.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("{\"turns\":[{\"text\":\"Yes.\",\"fail\":[{\"status\":401}]}]}", f) >= 0);
    assert_int_equal(fclose(f), 0);
    setup.opt.script = path;
    ABOUT(TIDE_DENIED, TIDE_SUBJECT_KEY, "api_key", agent_setup_ask(&setup, &err));
    dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_these_bytes),
        cmocka_unit_test(the_turn_follows_from_what_was_said),
        cmocka_unit_test(calls_have_ids_arguments_and_usage),
        cmocka_unit_test(attempts_fail_as_the_script_says),
        cmocka_unit_test(waiting_is_in_small_pieces_and_can_be_ended),
        cmocka_unit_test(a_bad_script_is_one_clear_line),
        cmocka_unit_test(a_script_that_is_not_there_is_named),
        cmocka_unit_test(a_key_that_is_refused_is_named_by_its_setting),
        cmocka_unit_test(a_body_of_somebody_else_is_refused),
    };

    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
