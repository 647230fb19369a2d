/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the byte, and answers out of streams that are whole, cut at every byte, or bent. Without a network. */
#include "agent/provider_internal.h"
#include "kit.h"
#include "streams.h"

/* ---- requests ------------------------------------------------------------------------------------------------------ */

#define S(literal)                                                                                                     \
    {                                                                                                                  \
        literal, sizeof(literal) - 1                                                                                   \
    }

static const struct model_call two_calls[] = {
    {S("c.1"), S("bash"), S("{\"command\":\"ls \\\"a\\\"\"}")},
    {S("c2"), S("glob"), S("{}")},
};
static const struct model_message talk[] = {
    {.role = TIDE_ROLE_USER, .text = S("first")},
    {.role = TIDE_ROLE_USER, .text = S("second\n\"quoted\" \xff")},
    {.role = TIDE_ROLE_ASSISTANT, .calls = two_calls, .n_calls = 2},
    {.role = TIDE_ROLE_TOOL, .text = S("a.c"), .call_id = S("c.1")},
    {.role = TIDE_ROLE_TOOL, .text = S(""), .call_id = S("c2"), .failed = true},
    {.role = TIDE_ROLE_USER, .text = S("go on")},
    {.role = TIDE_ROLE_ASSISTANT, .text = S("done")},
    {.role = TIDE_ROLE_ASSISTANT},
    {.role = TIDE_ROLE_USER, .text = S("bye")},
};
#define TOOLS                                                                                                          \
    "[{\"name\":\"bash\",\"description\":\"runs\",\"input_schema\":{\"type\":\"object\"}},"                            \
    "{\"name\":\"glob\",\"description\":\"finds\",\"input_schema\":{\"type\":\"object\",\"properties\":{}}}]"
static const struct model_request full = {
    S("m-1"), S("Be brief."), S(TOOLS), 100, talk, sizeof talk / sizeof talk[0], S(""), 0,
};
static const struct model_request bare = {S("m-1"), S(""), S("[]"), 0, talk, 1, S(""), 0};

static void check_render(const struct provider *p, const struct model_request *request, const char *want)
{
    struct buf once = BUF_INIT(65536), again = BUF_INIT(65536);
    struct arena a = ARENA_INIT;
    struct json *json = NULL;

    provider_render(p, request, &once);
    provider_render(p, request, &again);
    assert_string_equal(buf_cstr(&once), want);
    assert_string_equal(buf_cstr(&again), want);
    OK(json_parse(&a, buf_view(&once), NULL, &json, NULL, &err));
    arena_done(&a);
    buf_done(&once);
    buf_done(&again);
}

static struct provider *open_at(const char *type, const char *base_url)
{
    struct provider_config config = {.type = type, .base_url = base_url, .key = "k-secret"};
    struct provider *p = NULL;

    OK(provider_open(&config, &p, &err));
    return p;
}

#define MARK ",\"cache_control\":{\"type\":\"ephemeral\"}"

static void anthropic_requests_are_these_bytes(void **state)
{
    struct provider *p = open_at("anthropic", NULL);

    (void)state;
    check_render(p, &bare,
                 "{\"model\":\"m-1\",\"max_tokens\":4096,\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":"
                 "[{\"type\":\"text\",\"text\":\"first\"" MARK "}]}]}");
    check_render(
        p, &full,
        "{\"model\":\"m-1\",\"max_tokens\":100,\"stream\":true,"
        "\"system\":[{\"type\":\"text\",\"text\":\"Be brief.\"" MARK "}],\"tools\":" TOOLS ",\"messages\":["
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"first\"},"
        "{\"type\":\"text\",\"text\":\"second\\n\\\"quoted\\\" \xef\xbf\xbd\"}]},"
        "{\"role\":\"assistant\",\"content\":["
        "{\"type\":\"tool_use\",\"id\":\"c_1\",\"name\":\"bash\",\"input\":{\"command\":\"ls \\\"a\\\"\"}},"
        "{\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"glob\",\"input\":{}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c_1\",\"content\":\"a.c\"},"
        "{\"type\":\"tool_result\",\"tool_use_id\":\"c2\",\"content\":\"\",\"is_error\":true},"
        "{\"type\":\"text\",\"text\":\"go on\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"done\"}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"bye\"" MARK "}]}]}");
    provider_close(p);
}

static void openai_requests_are_these_bytes(void **state)
{
    struct provider *own = open_at("openai", NULL), *other = open_at("openai", "http://127.0.0.1:1/v1");

    (void)state;
    check_render(own, &bare,
                 "{\"model\":\"m-1\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                 "\"messages\":[{\"role\":\"user\",\"content\":\"first\"}]}");
#define OPENAI_FULL(limit)                                                                                             \
    "{\"model\":\"m-1\",\"" limit "\":100,\"stream\":true,\"stream_options\":{\"include_usage\":true},\"tools\":["     \
    "{\"type\":\"function\",\"function\":{\"name\":\"bash\",\"description\":\"runs\",\"parameters\":"                  \
    "{\"type\":\"object\"}}},{\"type\":\"function\",\"function\":{\"name\":\"glob\",\"description\":\"finds\","        \
    "\"parameters\":{\"type\":\"object\",\"properties\":{}}}}],\"messages\":["                                         \
    "{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"first\"},"                       \
    "{\"role\":\"user\",\"content\":\"second\\n\\\"quoted\\\" \xef\xbf\xbd\"},"                                        \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["                                                        \
    "{\"id\":\"c.1\",\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":"                             \
    "\"{\\\"command\\\":\\\"ls \\\\\\\"a\\\\\\\"\\\"}\"}},"                                                            \
    "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"glob\",\"arguments\":\"{}\"}}]},"                   \
    "{\"role\":\"tool\",\"tool_call_id\":\"c.1\",\"content\":\"a.c\"},"                                                \
    "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"\"},{\"role\":\"user\",\"content\":\"go on\"},"          \
    "{\"role\":\"assistant\",\"content\":\"done\"},{\"role\":\"assistant\",\"content\":\"\"},"                         \
    "{\"role\":\"user\",\"content\":\"bye\"}]}"
    check_render(own, &full, OPENAI_FULL("max_completion_tokens"));
    check_render(other, &full, OPENAI_FULL("max_tokens"));
    provider_close(own);
    provider_close(other);
}

static void addresses_may_be_written_in_several_ways(void **state)
{
    static const struct {
        const char *type, *base, *want;
    } rows[] = {
        {"anthropic", NULL, "https://api.anthropic.com/v1/messages"},
        {"anthropic", "", "https://api.anthropic.com/v1/messages"},
        {"anthropic", "http://h:1/", "http://h:1/v1/messages"},
        {"anthropic", "http://h:1/v1", "http://h:1/v1/messages"},
        {"anthropic", "http://h:1/v1/", "http://h:1/v1/messages"},
        {"anthropic", "http://h:1/proxy", "http://h:1/proxy/v1/messages"},
        {"openai", NULL, "https://api.openai.com/v1/chat/completions"},
        {"openai", "http://h:1/v1//", "http://h:1/v1/chat/completions"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct provider *p = open_at(rows[i].type, rows[i].base);

        assert_string_equal(p->url, rows[i].want);
        provider_close(p);
    }
}

static void a_bad_configuration_is_one_clear_line_without_the_key(void **state)
{
    static const struct {
        struct provider_config config;
        const char *words;
    } rows[] = {
        {{.type = "gpt"}, "there is no provider 'gpt' (anthropic, openai, script)"},
        {{.type = NULL}, "there is no provider ''"},
        {{.type = "openai", .base_url = "ftp://x"}, "'ftp://x' is not an http:// or https:// address"},
        {{.type = "openai", .base_url = "http://"}, "is not an http://"},
        {{.type = "openai", .base_url = "http://a b"}, "is not an http://"},
        {{.type = "anthropic", .key = "k-secret\nx: y"}, "the API key holds a character that no key has"},
        {{.type = "anthropic", .key = "k-secret\x80"}, "the API key holds a character that no key has"},
        {{.type = "script"}, "needs a file to answer from"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_err err = {0};
        struct provider *p = NULL;

        assert_int_equal(provider_open(&rows[i].config, &p, &err), TIDE_INVALID);
        assert_non_null(strstr(err.msg, rows[i].words));
        assert_null(strstr(err.msg, "k-secret"));
        assert_null(p);
    }
    provider_close(NULL);
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

struct heard {
    struct buf text;
    int thoughts, pieces;
};

static void hear(void *arg, struct str piece)
{
    struct heard *h = arg;

    assert_true(piece.len > 0 && str_is_utf8(piece, NULL));
    h->pieces++;
    buf_add_str(&h->text, piece);
}

static void hear_thinking(void *arg)
{
    ((struct heard *)arg)->thoughts++;
}

/* Feeds a stream in pieces of `step` and ends it cleanly; the code, and the answer when it is TIDE_OK. */
static enum tide_code read_stream(const struct provider_ops *ops, struct str bytes, size_t step, struct heard *h,
                                  struct model_answer *ret, struct model_fault *f)
{
    const struct model_listener listener = {h, hear, hear_thinking, NULL};
    enum tide_code code;
    struct wire w;

    *h = (struct heard){.text = BUF_INIT(1 << 24)};
    wire_init(&w, ops, &listener);
    for (size_t at = 0; at < bytes.len; at += step) {
        size_t n = bytes.len - at < step ? bytes.len - at : step;

        if (!wire_feed(&w, (struct str){bytes.ptr + at, n}))
            break;
    }
    code = reply_finish(&w.reply, true, ret);
    *f = w.reply.fault;
    wire_done(&w);
    buf_done(&h->text);
    return code;
}

static void check_both(const struct model_answer *a)
{
    assert_true(str_eq(a->text, STR(BOTH_TEXT)));
    assert_int_equal(a->n_calls, 2);
    assert_true(str_eq(a->calls[0].id, STR("toolu_1")) && str_eq(a->calls[0].name, STR("bash")));
    assert_true(str_eq(a->calls[0].args, STR("{\"command\":\"ls\"}")));
    assert_true(str_eq(a->calls[1].id, STR("toolu_2")) && str_eq(a->calls[1].name, STR("glob")));
    assert_true(str_eq(a->calls[1].args, STR("{}")));
    assert_int_equal(a->stop, STOP_TOOLS);
    assert_false(a->replaced);
}

static const struct {
    const struct provider_ops *ops;
    struct str stream;
    int thoughts;
} streams[] = {
    {&provider_anthropic, S(ANTHROPIC_BOTH), 3},
    {&provider_openai, S(OPENAI_BOTH), 1},
};

static void a_stream_gives_the_same_answer_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t sizes[] = {1, 2, 3, 7, 64, 1000, streams[i].stream.len};

        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct model_answer a;
            struct model_fault f;
            struct heard h;

            assert_int_equal(read_stream(streams[i].ops, streams[i].stream, sizes[k], &h, &a, &f), TIDE_OK);
            check_both(&a);
            assert_int_equal(a.usage.input_tokens, 330);
            assert_int_equal(a.usage.output_tokens, 42);
            assert_int_equal(a.usage.cached_tokens, 300);
            assert_int_equal(h.thoughts, streams[i].thoughts);
            assert_int_equal(h.pieces, 2);
            model_answer_done(&a);
        }
    }
}

/* Up to which byte a stream is not whole: what tells that it is. */
static size_t whole_from(const struct provider_ops *ops, struct str stream)
{
    const char *mark = ops == &provider_openai ? "\"finish_reason\":\"tool_calls\"}]}\n\n" : "\"message_stop\"}\n\n";
    const char *at = memmem(stream.ptr, stream.len, mark, strlen(mark));

    assert_non_null(at);
    return (size_t)(at - stream.ptr) + strlen(mark);
}

static void a_stream_cut_at_any_byte_is_a_fault_or_the_whole_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t whole = whole_from(streams[i].ops, streams[i].stream);

        for (size_t cut = 0; cut <= streams[i].stream.len; cut++) {
            struct model_answer a;
            struct model_fault f;
            struct heard h;
            enum tide_code code =
                read_stream(streams[i].ops, (struct str){streams[i].stream.ptr, cut}, SIZE_MAX / 2, &h, &a, &f);

            if (cut < whole) {
                assert_int_equal(code, TIDE_IO);
                assert_string_equal(f.code, "connection");
            } else {
                assert_int_equal(code, TIDE_OK);
                check_both(&a);
                model_answer_done(&a);
            }
        }
    }
}

/* ---- bent answers -------------------------------------------------------------------------------------------------- */

#define A_TEXT(json)                                                                                                   \
    CHUNK("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" json "\"}}")
#define A_CALL(index, id)                                                                                              \
    CHUNK("{\"type\":\"content_block_start\",\"index\":" index                                                         \
          ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"bash\",\"input\":{}}}")
#define A_ARGS(index, json)                                                                                            \
    CHUNK("{\"type\":\"content_block_delta\",\"index\":" index ",\"delta\":{\"type\":\"input_json_delta\","            \
          "\"partial_json\":\"" json "\"}}")
#define A_END(reason)                                                                                                  \
    CHUNK("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\"}}")                                   \
    CHUNK("{\"type\":\"message_stop\"}")
#define O_TEXT(json) CHUNK("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" json "\"}}]}")
#define O_CALL(more, id)                                                                                               \
    CHUNK("{\"choices\":[{\"delta\":{\"tool_calls\":[{" more "\"id\":\"" id                                            \
          "\",\"function\":{\"name\":\"bash\",\"arguments\":\"{}\"}}]}}]}")
#define O_END(reason) CHUNK("{\"choices\":[{\"delta\":{},\"finish_reason\":\"" reason "\"}]}") CHUNK("[DONE]")
#define BAD "\xef\xbf\xbd"

static const struct bent {
    const char *name;
    const struct provider_ops *ops;
    const char *stream;
    const char *want; /* text|stop|replaced|id:args … */
} bents[] = {
    {"a lone first half", &provider_anthropic, A_TEXT("a\\ud83d!") A_END("end_turn"), "a" BAD "!|0|1"},
    {"a lone second half", &provider_openai, O_TEXT("\\ude00") O_END("stop"), BAD "|0|1"},
    {"a half at the end", &provider_anthropic, A_TEXT("a\\ud83d") A_END("end_turn"), "a" BAD "|0|1"},
    {"halves in two events", &provider_anthropic, A_TEXT("a\\ud83d") A_TEXT("\\ude00b") A_END("end_turn"),
     "a\xf0\x9f\x98\x80"
     "b|0|0"},
    {"halves in three", &provider_openai, O_TEXT("\\ud83d") O_TEXT("\\ude00\\ud83d") O_TEXT("\\ude01") O_END("stop"),
     "\xf0\x9f\x98\x80\xf0\x9f\x98\x81|0|0"},
    {"two first halves", &provider_openai, O_TEXT("\\ud83d") O_TEXT("\\ud83d") O_TEXT("x") O_END("stop"),
     BAD BAD "x|0|1"},
    {"a half, then nothing, then its other", &provider_openai,
     O_TEXT("\\ud83d") O_TEXT("") O_TEXT("\\ude00") O_END("stop"), "\xf0\x9f\x98\x80|0|0"},
    {"an escaped backslash is no escape", &provider_openai, O_TEXT("\\\\ud83d") O_END("stop"), "\\ud83d|0|0"},
    {"bytes that are no UTF-8", &provider_openai, O_TEXT("a\xff\xc3") O_END("stop"), "a" BAD BAD "|0|1"},
    {"U+FFFD itself", &provider_openai, O_TEXT("\\ufffd") O_END("stop"), BAD "|0|0"},
    {"words behind the end", &provider_anthropic, A_TEXT("x") A_END("end_turn") A_TEXT("y") CHUNK("{"), "x|0|0"},
    {"words behind the end, the other", &provider_openai, O_TEXT("x") O_END("stop") O_TEXT("y") CHUNK("{"), "x|0|0"},
    {"length", &provider_anthropic, A_TEXT("x") A_END("max_tokens"), "x|2|0"},
    {"a stop sequence", &provider_anthropic, A_TEXT("x") A_END("stop_sequence"), "x|0|0"},
    {"a pause", &provider_anthropic, A_TEXT("x") A_END("pause_turn"), "x|0|0"},
    {"a refusal", &provider_anthropic, A_TEXT("x") A_END("refusal"), "x|3|0"},
    {"length, the other", &provider_openai, O_TEXT("x") O_END("length"), "x|2|0"},
    {"a filter", &provider_openai, O_TEXT("x") O_END("content_filter"), "x|3|0"},
    {"refusing words", &provider_openai, CHUNK("{\"choices\":[{\"delta\":{\"refusal\":\"no\"}}]}") O_END("stop"),
     "no|3|0"},
    {"the last word alone ends it", &provider_openai, O_TEXT("x") CHUNK("[DONE]"), "x|0|0"},
    {"nothing at all is an answer", &provider_anthropic, A_END("end_turn"), "|0|0"},
    {"calls although it says stop", &provider_openai, O_CALL("\"index\":0,", "a") O_END("stop"), "|1|0|a:{}"},
    {"tools without calls", &provider_anthropic, A_TEXT("x") A_END("tool_use"), "x|0|0"},
    {"repeated ids", &provider_anthropic, A_CALL("0", "a") A_CALL("1", "a") A_CALL("2", "a_2") A_END("tool_use"),
     "|1|0|a:{}|a_2:{}|a_2_2:{}"},
    {"repeated ids, the other", &provider_openai,
     O_CALL("\"index\":0,", "a") O_CALL("\"index\":1,", "a") O_END("tool_calls"), "|1|0|a:{}|a_2:{}"},
    {"no ids", &provider_anthropic, A_CALL("0", "") A_CALL("1", "") A_END("tool_use"), "|1|0|call_1:{}|call_2:{}"},
    {"every call of index 0", &provider_openai,
     O_CALL("\"index\":0,", "a") O_CALL("\"index\":0,", "b") O_END("tool_calls"), "|1|0|a:{}|b:{}"},
    {"no index", &provider_openai, O_CALL("", "a") O_CALL("", "b") O_END("tool_calls"), "|1|0|a:{}|b:{}"},
    {"arguments that are no JSON", &provider_anthropic,
     A_CALL("0", "a") A_ARGS("0", "{\\\"x\\\": ") A_END("max_tokens"), "|2|0|a:{\"_malformed\":\"{\\\"x\\\": \"}"},
    {"arguments that are no object", &provider_anthropic, A_CALL("0", "a") A_ARGS("0", "[1]") A_END("tool_use"),
     "|1|0|a:{\"_malformed\":\"[1]\"}"},
    {"arguments with spaces", &provider_anthropic,
     A_CALL("0", "a") A_ARGS("0", " { \\\"x\\\" : 1.50 } ") A_END("tool_use"), "|1|0|a:{\"x\":1.50}"},
    {"a lone half in arguments", &provider_anthropic,
     A_CALL("0", "a") A_ARGS("0", "{\\\"x\\\":\\\"\\\\ud800\\\"}") A_END("tool_use"), "|1|1|a:{\"x\":\"\\ufffd\"}"},
    {"a character of arguments in two events", &provider_anthropic,
     A_CALL("0", "a") A_ARGS("0", "{\\\"x\\\":\\\"\\ud83d") A_ARGS("0", "\\ude00\\\"}") A_END("tool_use"),
     "|1|0|a:{\"x\":\"\xf0\x9f\x98\x80\"}"},
    {"input at once", &provider_anthropic,
     CHUNK("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\","
           "\"name\":\"bash\",\"input\":{\"x\": 1}}}") A_END("tool_use"),
     "|1|0|a:{\"x\":1}"},
    {"input at once and in pieces", &provider_anthropic,
     CHUNK("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\","
           "\"name\":\"bash\",\"input\":{\"x\": 1}}}") A_ARGS("0", "{\\\"x\\\": 1}") A_END("tool_use"),
     "|1|0|a:{\"x\":1}"},
    {"arguments as an object", &provider_openai,
     CHUNK("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"bash\","
           "\"arguments\":{\"x\": 1}}}]}}]}") O_END("tool_calls"),
     "|1|0|a:{\"x\":1}"},
    {"kinds of later versions", &provider_anthropic,
     CHUNK("{\"type\":\"novelty\"}") CHUNK("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
                                           "\"server_tool_use\",\"id\":\"s\"}}") A_ARGS("0", "{}") A_TEXT("x")
         A_END("what_next"),
     "x|0|0"},
    {"shapes that are not ours", &provider_openai,
     CHUNK("{\"choices\":7,\"usage\":\"x\"}") CHUNK("{\"choices\":[{\"delta\":[],\"finish_reason\":null}]}") CHUNK(
         "{\"choices\":[{\"delta\":{\"content\":{\"a\":1},\"tool_calls\":{}}},{\"index\":1,\"delta\":{\"content\":\"no\"}}]}")
         O_END("stop"),
     "|0|0"},
};

static void describe(const struct model_answer *a, struct buf *out)
{
    buf_addf(out, "%.*s|%d|%d", STR_ARG(a->text), (int)a->stop, a->replaced);
    for (size_t i = 0; i < a->n_calls; i++)
        buf_addf(out, "|%.*s:%.*s", STR_ARG(a->calls[i].id), STR_ARG(a->calls[i].args));
}

static void check_bent(const struct bent *b, size_t step)
{
    struct buf got = BUF_INIT(4096);
    struct model_answer a;
    struct model_fault f;
    struct heard h;

    if (read_stream(b->ops, str_from(b->stream), step, &h, &a, &f))
        fail_msg("%s: %s: %s", b->name, f.code, f.message);
    describe(&a, &got);
    if (strcmp(buf_cstr(&got), b->want) != 0)
        fail_msg("%s: want %s, got %s", b->name, b->want, buf_cstr(&got));
    model_answer_done(&a);
    buf_done(&got);
}

static void bent_answers_are_mended_and_said_to_be(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bents / sizeof bents[0]; i++) {
        check_bent(&bents[i], 1);
        check_bent(&bents[i], SIZE_MAX / 2);
    }
}

static void what_is_no_answer_is_a_fault_of_its_class(void **state)
{
    static const struct {
        const char *name;
        const struct provider_ops *ops;
        const char *stream, *code, *words;
    } rows[] = {
        {"no JSON", &provider_anthropic, CHUNK("{\"type\":"), "malformed", "not a JSON object: line 1"},
        {"no object", &provider_openai, CHUNK("[1]"), "malformed", "not a JSON object"},
        {"a key twice", &provider_openai, CHUNK("{\"a\":1,\"a\":2}"), "malformed", "duplicate key"},
        {"the last word alone", &provider_openai, CHUNK("[DONE]"), "connection", "ended early"},
        {"the other's last word", &provider_anthropic, A_TEXT("x") CHUNK("[DONE]"), "malformed", "not a JSON object"},
        {"nothing", &provider_openai, "", "connection", "ended early"},
        {"no events", &provider_openai, "<html>\n\n", "connection", "ended early"},
        {"a call without a name", &provider_anthropic,
         CHUNK("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\"}}")
             A_END("tool_use"),
         "malformed", "call 1"},
        {"overloaded inside", &provider_anthropic,
         A_TEXT("x")
             CHUNK("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\\nnow\"}}"),
         "overloaded", "overloaded_error in the answer: Overloaded now"},
        {"an error of the server inside", &provider_anthropic,
         CHUNK("{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}"), "server_error", "x"},
        {"an error inside, the other", &provider_openai,
         O_TEXT("x")
             CHUNK("{\"error\":{\"message\":\"too fast\",\"type\":\"requests\",\"code\":\"rate_limit_exceeded\"}}"),
         "rate_limit", "too fast"},
        {"an error as text", &provider_openai, CHUNK("{\"error\":\"out of memory\"}"), "server_error", "out of memory"},
        {"no money inside", &provider_openai, CHUNK("{\"error\":{\"type\":\"insufficient_quota\",\"message\":\"x\"}}"),
         "quota", "x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model_answer a;
        struct model_fault f;
        struct heard h;

        assert_int_not_equal(read_stream(rows[i].ops, str_from(rows[i].stream), 3, &h, &a, &f), TIDE_OK);
        if (strcmp(f.code, rows[i].code) != 0 || !strstr(f.message, rows[i].words))
            fail_msg("%s: want %s with '%s', got %s: %s", rows[i].name, rows[i].code, rows[i].words, f.code, f.message);
    }
}

static void arguments_of_a_mebibyte_are_taken(void **state)
{
    struct buf stream = BUF_INIT(SIZE_MAX / 2);
    struct model_answer a;
    struct model_fault f;
    struct heard h;

    (void)state;
    buf_add_str(&stream, STR(A_CALL("0", "a")));
    buf_add_str(&stream, STR(A_ARGS("0", "{\\\"x\\\":\\\"")));
    for (int i = 0; i < 1024; i++) {
        char kib[1025];

        memset(kib, 'a' + i % 26, 1024);
        kib[1024] = '\0';
        buf_addf(&stream, A_ARGS("0", "%s"), kib);
    }
    buf_add_str(&stream, STR(A_ARGS("0", "\\\"}") A_END("tool_use")));
    assert_int_equal(read_stream(&provider_anthropic, buf_view(&stream), 4096, &h, &a, &f), TIDE_OK);
    assert_int_equal(a.calls[0].args.len, (1 << 20) + 8);
    model_answer_done(&a);
    buf_done(&stream);
}

static void arguments_nested_too_deep_are_malformed(void **state)
{
    struct buf args = BUF_INIT(4096);
    struct arena a = ARENA_INIT;
    bool replaced = false;

    (void)state;
    for (int i = 0; i < ARGS_MAX_DEPTH + 1; i++)
        buf_add_str(&args, STR("{\"a\":"));
    buf_add_char(&args, '1');
    for (int i = 0; i < ARGS_MAX_DEPTH + 1; i++)
        buf_add_char(&args, '}');
    assert_true(str_starts(model_args(&a, buf_view(&args), &replaced), STR("{\"_malformed\":")));
    arena_done(&a);
    buf_done(&args);
}

static void calls_without_end_are_refused(void **state)
{
    struct buf stream = BUF_INIT(1 << 20);
    struct model_answer a;
    struct model_fault f;
    struct heard h;

    (void)state;
    for (int i = 0; i <= REPLY_MAX_CALLS; i++)
        buf_addf(&stream, A_CALL("%d", "a"), i);
    buf_add_str(&stream, STR(A_END("tool_use")));
    assert_int_equal(read_stream(&provider_anthropic, buf_view(&stream), 4096, &h, &a, &f), TIDE_IO);
    assert_string_equal(f.code, "malformed");
    buf_done(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anthropic_requests_are_these_bytes),
        cmocka_unit_test(openai_requests_are_these_bytes),
        cmocka_unit_test(addresses_may_be_written_in_several_ways),
        cmocka_unit_test(a_bad_configuration_is_one_clear_line_without_the_key),
        cmocka_unit_test(a_stream_gives_the_same_answer_in_pieces_of_any_size),
        cmocka_unit_test(a_stream_cut_at_any_byte_is_a_fault_or_the_whole_answer),
        cmocka_unit_test(bent_answers_are_mended_and_said_to_be),
        cmocka_unit_test(what_is_no_answer_is_a_fault_of_its_class),
        cmocka_unit_test(arguments_of_a_mebibyte_are_taken),
        cmocka_unit_test(arguments_nested_too_deep_are_malformed),
        cmocka_unit_test(calls_without_end_are_refused),
    };

    return cmocka_run_group_tests_name("providers", tests, NULL, NULL);
}
