/* SPDX-License-Identifier: Apache-2.0 */
/* Providers over real connections to a server that misbehaves on purpose: every trouble has its class, and none shows the key. */
#include <time.h>

#include "agent/http.h"
#include "agent/provider_internal.h"
#include "server.h"
#include "session/retry.h"
#include "streams.h"

#define KEY "k-5ecret-value"
#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
#define UNTIL_CLOSE HEAD "Connection: close\r\n\r\n"
#define STATUS(line, more, body)                                                                                       \
    "HTTP/1.1 " line "\r\nContent-Type: application/json\r\n" more "Connection: close\r\n\r\n" body

/* One conversation with the server. */
struct conversation {
    struct run_server server;
    struct provider *p;
    struct model_answer answer;
    struct model_fault fault;
    struct tide_err err;
    enum tide_code code;
    struct model_listener listener;
    int idles, give_up_at; /* 0: never */
    size_t heard;
    int64_t silence_ms, first_byte_ms, stall_ms, total_ms;
};

static bool on_idle(void *arg)
{
    struct conversation *t = arg;

    return ++t->idles == t->give_up_at;
}

static void on_text(void *arg, struct str piece)
{
    ((struct conversation *)arg)->heard += piece.len;
}

static void begin(struct conversation *t, const char *type, const struct canned *answers, size_t n)
{
    struct provider_config config = {.type = type,
                                     .key = KEY,
                                     .silence_ms = t->silence_ms,
                                     .first_byte_ms = t->first_byte_ms,
                                     .stall_ms = t->stall_ms,
                                     .total_ms = t->total_ms};
    char url[64];

    server_start(&t->server, answers, n);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", t->server.port);
    config.base_url = url;
    OK(provider_open(&config, &t->p, &err));
    t->listener = (struct model_listener){t, on_text, NULL, on_idle};
}

static void once(struct conversation *t, struct str body)
{
    t->fault = (struct model_fault){.code = "untouched"};
    t->err = (struct tide_err){0};
    t->code = provider_call(t->p, body, 0, &t->listener, &t->answer, &t->fault, &t->err);
    if (!t->code)
        return;
    assert_string_equal(t->err.msg, t->fault.message);
    assert_null(strstr(t->err.msg, "k-5e")); /* nor a part of it */
    assert_null(strpbrk(t->err.msg, "\r\n\t\033"));
}

static void end(struct conversation *t)
{
    provider_close(t->p);
    server_stop(&t->server);
    server_done(&t->server);
}

/* One request, one answer of the server. */
static void exchange(struct conversation *t, const char *type, const char *bytes, enum then then)
{
    const struct canned canned = {bytes, then, 0};

    begin(t, type, &canned, 1);
    once(t, STR("{}"));
    end(t);
}

static void expect_fault(const char *name, const struct conversation *t, const char *code, const char *words)
{
    if (!t->code || strcmp(t->fault.code, code) != 0 || !strstr(t->fault.message, words))
        fail_msg("%s: want %s with '%s', got %s: %s", name, code, words, t->fault.code, t->fault.message);
}

static void both_protocols_answer_over_a_connection(void **state)
{
    static const struct {
        const char *type, *bytes, *path, *key;
    } rows[] = {
        {"anthropic", UNTIL_CLOSE ANTHROPIC_BOTH, "POST /v1/messages HTTP/1.1\r\n", "\r\nx-api-key: " KEY "\r\n"},
        {"openai", UNTIL_CLOSE OPENAI_BOTH, "POST /v1/chat/completions HTTP/1.1\r\n",
         "\r\nAuthorization: Bearer " KEY "\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct conversation t = {0};
        const struct canned canned = {rows[i].bytes, CLOSE, 0};
        const char *head;

        begin(&t, rows[i].type, &canned, 1);
        once(&t, STR("{\"the\":\"body\"}"));
        assert_int_equal(t.code, TIDE_OK);
        assert_true(str_eq(t.answer.text, STR(BOTH_TEXT)));
        assert_int_equal(t.answer.n_calls, 2);
        assert_int_equal(t.answer.usage.input_tokens, 330);
        assert_int_equal(t.heard, strlen(BOTH_TEXT));
        provider_close(t.p);
        server_stop(&t.server);
        head = buf_cstr(&t.server.request);
        assert_non_null(strstr(head, rows[i].path));
        assert_non_null(strstr(head, rows[i].key));
        assert_non_null(strstr(head, "\r\nContent-Type: application/json\r\n"));
        assert_string_equal(strstr(head, "\r\n\r\n") + 4, "{\"the\":\"body\"}");
        assert_true((strstr(head, "\r\nanthropic-version: 2023-06-01\r\n") != NULL) == (i == 0));
        server_done(&t.server);
        model_answer_done(&t.answer);
    }
}

static void a_status_has_its_class_and_the_message_of_the_provider(void **state)
{
#define A_ERROR(type, message) "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" message "\"}}"
#define TEN "xxxxxxxxxx"
    static const struct {
        const char *name, *type, *bytes, *code, *words;
        bool helps;
    } rows[] = {
        {"429", "anthropic", STATUS("429 Too Many Requests", "", A_ERROR("rate_limit_error", "slow\\n\\u001b[31mdown")),
         "rate_limit", "anthropic: status 429: slow [31mdown", true},
        {"429 for money", "openai",
         STATUS("429 Too Many", "",
                "{\"error\":{\"message\":\"You exceeded\",\"type\":\"insufficient_quota\",\"code\":"
                "\"insufficient_quota\"}}"),
         "quota", "You exceeded", false},
        {"429 near a billing page", "openai",
         STATUS("429 Too Many", "",
                "{\"error\":{\"message\":\"Rate limit; see https://x.test/account/billing\",\"type\":"
                "\"requests\"}}"),
         "rate_limit", "Rate limit", true},
        {"429 about credit", "anthropic",
         STATUS("429 Too Many", "", A_ERROR("rate_limit_error", "Your credit balance is too low")), "quota",
         "credit balance", false},
        {"400 about credit", "anthropic",
         STATUS("400 Bad", "", A_ERROR("invalid_request_error", "Your credit balance is too low")), "quota",
         "credit balance", false},
        {"529", "anthropic", STATUS("529 Overloaded", "", A_ERROR("overloaded_error", "Overloaded")), "overloaded",
         "529", true},
        {"503", "openai", STATUS("503 Unavailable", "", "<html><b>down</b>"), "server_error", "503: <html><b>down</b>",
         true},
        {"500 without a word", "openai", STATUS("500 Oops", "", ""), "server_error", "openai: status 500", true},
        {"408", "openai", STATUS("408 Late", "", "{}"), "timeout", "408", true},
        {"401 that shows the key", "openai",
         STATUS("401 Unauthorized", "", "{\"error\":{\"message\":\"Incorrect API key provided: " KEY ".\"}}"), "auth",
         "provided: ***.", false},
        {"401 cut inside the key", "openai",
         STATUS("401 Unauthorized", "",
                "{\"error\":{\"message\":\"" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN " " KEY
                " and so on\"}}"),
         "auth", "xxx ***", false},
        {"403", "anthropic", STATUS("403 Forbidden", "", A_ERROR("permission_error", "no")), "auth", "no", false},
        {"402", "openai", STATUS("402 Pay", "", "{\"detail\":\"pay\"}"), "quota", "402: pay", false},
        {"400", "openai", STATUS("400 Bad", "", "{\"error\":\"what\"}"), "bad_request", "400: what", false},
        {"404", "openai", STATUS("404 Not", "", "{\"message\":\"no model\"}"), "bad_request", "no model", false},
        {"413", "anthropic", STATUS("413 Big", "", A_ERROR("request_too_large", "big")), "bad_request", "big", false},
        {"422", "openai", STATUS("422 Bad", "", "{}"), "bad_request", "422", false},
        {"a status whose body breaks off", "openai", "HTTP/1.1 503 Un\r\nContent-Length: 1000\r\n\r\n{\"err",
         "server_error", "503", true},
        {"a body that is no Unicode", "openai", STATUS("500 Oops", "", "\xff\xfe\x01 x"), "server_error",
         "\xef\xbf\xbd", true},
        {"elsewhere", "openai",
         "HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/steal?key=" KEY "\r\nContent-Length: 0\r\n\r\n",
         "bad_request", "moved to http://127.0.0.1:9/steal", false},
        {"a portal", "openai",
         "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>pay here</html>", "bad_request",
         "answered with text/html", false},
        {"no HTTP at all", "openai", "SSH-2.0-x\r\n", "bad_request", "HTTP/0.9", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct conversation t = {0};

        exchange(&t, rows[i].type, rows[i].bytes, CLOSE);
        expect_fault(rows[i].name, &t, rows[i].code, rows[i].words);
        assert_int_equal(retry_helps(str_from(t.fault.code)), rows[i].helps);
        assert_int_equal(t.fault.retry_after_ms, -1);
        assert_int_equal(t.server.n_requests, 1);
    }
}

static void retry_after_is_understood_in_seconds_and_as_a_date(void **state)
{
    static char dated[256];
    char date[64];
    time_t then = time(NULL) + 100;
    struct tm tm;
    struct {
        const char *bytes;
        int64_t from, to;
    } rows[] = {
        {STATUS("429 x", "Retry-After: 7\r\n", "{}"), 7000, 7000},
        {STATUS("503 x", "retry-after:1.5\r\n", "{}"), 1500, 1500},
        {STATUS("429 x", "retry-after-ms: 250\r\nRetry-After: 9\r\n", "{}"), 250, 250},
        {STATUS("429 x", "Retry-After: 0\r\n", "{}"), 0, 0},
        {STATUS("429 x", "Retry-After: 99999999\r\n", "{}"), 99999999000, 99999999000},
        {STATUS("429 x", "Retry-After: 99999999999999999999999\r\n", "{}"), RETRY_AFTER_MAX_MS, RETRY_AFTER_MAX_MS},
        {STATUS("429 x", "Retry-After-Ms: 99999999999999999999999\r\n", "{}"), RETRY_AFTER_MAX_MS, RETRY_AFTER_MAX_MS},
        {STATUS("429 x", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "{}"), 0, 0},
        {STATUS("429 x", "Retry-After: soon\r\n", "{}"), -1, -1},
        {STATUS("429 x", "Retry-After: -5\r\n", "{}"), -1, -1},
        {STATUS("429 x", "Retry-After:\r\n", "{}"), -1, -1},
        {dated, 90000, 100000},
    };

    (void)state;
    gmtime_r(&then, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    snprintf(dated, sizeof dated, "HTTP/1.1 429 x\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", date);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct conversation t = {0};

        exchange(&t, "anthropic", rows[i].bytes, CLOSE);
        assert_int_not_equal(t.code, TIDE_OK);
        if (t.fault.retry_after_ms < rows[i].from || t.fault.retry_after_ms > rows[i].to)
            fail_msg("row %zu: %lld ms", i, (long long)t.fault.retry_after_ms);
    }
}

static void refused_three_times_and_then_answered(void **state)
{
    const struct canned answers[] = {
        {STATUS("429 x", "Retry-After: 0\r\n", "{}"), CLOSE, 0},
        {STATUS("503 x", "", "{}"), CLOSE, 0},
        {STATUS("529 x", "", "{}"), CLOSE, 0},
        {UNTIL_CLOSE ANTHROPIC_BOTH, CLOSE, 0},
    };
    static const char *const codes[] = {"rate_limit", "server_error", "overloaded"};
    struct conversation t = {0};

    (void)state;
    begin(&t, "anthropic", answers, 4);
    for (int i = 0; i < 3; i++) {
        once(&t, STR("{}"));
        assert_string_equal(t.fault.code, codes[i]);
    }
    once(&t, STR("{}"));
    assert_int_equal(t.code, TIDE_OK);
    model_answer_done(&t.answer);
    end(&t);
    assert_int_equal(t.server.n_requests, 4);
}

#define MAX_CUTS 1024

/* Answers cut after 1, 1 + step, … bytes, and at last one whose connection is torn. How many. */
static size_t cut_up(const char *bytes, size_t whole, struct canned out[MAX_CUTS])
{
    size_t n = 0;

    for (size_t cut = 1; cut < whole && n < MAX_CUTS - 1; cut += SLOW_BUILD ? 37 : 5)
        out[n++] = (struct canned){bytes, CLOSE, cut};
    out[n++] = (struct canned){bytes, RESET, whole - 1};
    return n;
}

static void a_stream_cut_anywhere_on_the_wire_is_a_broken_connection(void **state)
{
    static const struct {
        const char *type, *bytes;
        size_t tail; /* with less than this missing it is whole */
    } rows[] = {
        {"anthropic", UNTIL_CLOSE ANTHROPIC_BOTH, 1},
        {"openai", UNTIL_CLOSE OPENAI_BOTH, 200},
    };
    static struct canned cuts[MAX_CUTS];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t n = cut_up(rows[i].bytes, strlen(rows[i].bytes) - rows[i].tail, cuts);
        struct conversation t = {0};

        begin(&t, rows[i].type, cuts, n);
        for (size_t k = 0; k < n; k++) {
            once(&t, STR("{}"));
            expect_fault(rows[i].type, &t, "connection", "");
        }
        end(&t);
    }
}

/* With chunks the end of an answer is known: one that says why it stopped, and then breaks, is not whole. */
static void a_chunked_stream_without_its_last_chunk_is_cut(void **state)
{
#define REASON CHUNK("{\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}")
    static const char cut[] = HEAD "Transfer-Encoding: chunked\r\n\r\n100\r\n" REASON;
    static const char ended[] = UNTIL_CLOSE REASON;
    struct conversation t = {0};

    (void)state;
    exchange(&t, "openai", cut, CLOSE);
    expect_fault("cut", &t, "connection", "");
    t = (struct conversation){0};
    exchange(&t, "openai", ended, CLOSE);
    assert_int_equal(t.code, TIDE_OK);
    model_answer_done(&t.answer);
}

static void each_time_out_has_its_own_words(void **state)
{
    struct conversation t = {.first_byte_ms = 120};

    (void)state;
    exchange(&t, "anthropic", "", STALL);
    expect_fault("first byte", &t, "timeout", "no answer within 0.12 s");
    t = (struct conversation){.first_byte_ms = 150};
    exchange(&t, "anthropic", UNTIL_CLOSE, STALL);
    expect_fault("head only", &t, "timeout", "no answer within 0.15 s");
    t = (struct conversation){.silence_ms = 180};
    exchange(&t, "anthropic", UNTIL_CLOSE ": hello\n\n", STALL);
    expect_fault("silence", &t, "timeout", "paused for 0.18 s");
    assert_true(t.idles >= 2);
}

/* Bytes come all the time; each row says whether any of them is a part of an answer. */
static void a_server_that_drips_holds_nobody(void **state)
{
    static const struct {
        const char *name, *type, *head, *drop;
        bool moves;
    } rows[] = {
        {"comments", "anthropic", UNTIL_CLOSE, ": ping\n\n", false},
        {"pings", "anthropic", UNTIL_CLOSE, "event: ping\ndata: {\"type\":\"ping\"}\n\n", false},
        {"an endless line", "anthropic", UNTIL_CLOSE "data: ", "x", false},
        {"an event that never ends", "openai", UNTIL_CLOSE, "data: {\n", false},
        {"empty pieces", "openai", UNTIL_CLOSE, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n",
         false},
        {"text", "openai", UNTIL_CLOSE, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n", true},
        {"thoughts", "openai", UNTIL_CLOSE, "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"x\"}}]}\n\n",
         true},
        {"arguments", "anthropic", UNTIL_CLOSE,
         "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}"
         "\n\n",
         true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[1024];
        const struct canned canned = {bytes, DRIP, strlen(rows[i].head)};
        struct conversation t = {.stall_ms = 150, .total_ms = rows[i].moves ? 450 : 20000};

        snprintf(bytes, sizeof bytes, "%s%s", rows[i].head, rows[i].drop);
        begin(&t, rows[i].type, &canned, 1);
        once(&t, STR("{}"));
        end(&t);
        if (rows[i].moves)
            expect_fault(rows[i].name, &t, "call_timeout", "not complete after 0.45 s");
        else
            expect_fault(rows[i].name, &t, "stalled", "for 0.15 s");
        assert_int_equal(t.code, TIDE_BUSY);
        assert_true(retry_helps(str_from(t.fault.code)));
    }
}

/* The head of an answer and the body of an error have no limit of their own that a byte now and then would not extend. */
static void a_head_or_an_error_that_drips_holds_nobody(void **state)
{
    static const struct {
        const char *name, *head, *drop, *code;
    } rows[] = {
        {"head", "HTTP/1.1 200 OK\r\n", "x: y\r\n", "timeout"},
        {"error", "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n", "x", "server_error"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[256];
        const struct canned canned = {bytes, DRIP, strlen(rows[i].head)};
        struct conversation t = {.stall_ms = 150, .first_byte_ms = 150};

        snprintf(bytes, sizeof bytes, "%s%s", rows[i].head, rows[i].drop);
        begin(&t, "openai", &canned, 1);
        once(&t, STR("{}"));
        end(&t);
        expect_fault(rows[i].name, &t, rows[i].code, "");
    }
}

/* An address that nobody answers: packets to a full queue are dropped. */
static void no_connection_is_a_time_out_of_its_own(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct provider_config config = {.type = "openai", .key = KEY, .connect_ms = 150};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), crowd[8];
    socklen_t len = sizeof at;
    struct conversation t = {0};
    char url[64];

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    for (size_t i = 0; i < 8; i++) {
        crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(crowd[i], (struct sockaddr *)&at, sizeof at);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    config.base_url = url;
    OK(provider_open(&config, &t.p, &err));
    once(&t, STR("{}"));
    expect_fault("connect", &t, "timeout", "no connection within 0.15 s");
    provider_close(t.p);
    for (size_t i = 0; i < 8; i++)
        close(crowd[i]);
    close(fd);
}

static void nobody_there_is_a_broken_connection(void **state)
{
    struct provider_config config = {.type = "openai", .key = KEY, .base_url = "http://127.0.0.1:1"};
    struct conversation t = {0};

    (void)state;
    OK(provider_open(&config, &t.p, &err));
    once(&t, STR("{}"));
    expect_fault("refused", &t, "connection", "no connection to 127.0.0.1:1: Connection refused");
    assert_int_equal(t.fault.http_status, 0);
    provider_close(t.p);
}

static void a_peer_without_a_certificate_gets_no_key(void **state)
{
    const struct canned canned = {"HTTP/1.1 200 OK\r\n\r\n", CLOSE, 0};
    struct provider_config config = {.type = "openai", .key = KEY};
    struct conversation t = {0};
    char url[64];

    (void)state;
    server_start(&t.server, &canned, 1);
    snprintf(url, sizeof url, "https://127.0.0.1:%d", t.server.port);
    config.base_url = url;
    config.first_byte_ms = 300;
    config.connect_ms = 300;
    OK(provider_open(&config, &t.p, &err));
    once(&t, STR("{}"));
    assert_int_not_equal(t.code, TIDE_OK);
    provider_close(t.p);
    server_stop(&t.server);
    assert_null(memmem(t.server.request.ptr ? t.server.request.ptr : "", t.server.request.len, KEY, strlen(KEY)));
    server_done(&t.server);
}

static void giving_up_ends_a_stalled_call(void **state)
{
    struct conversation t = {.give_up_at = 3};

    (void)state;
    exchange(&t, "anthropic", UNTIL_CLOSE ": hello\n\n", STALL);
    assert_int_equal(t.code, TIDE_CANCELLED);
    expect_fault("given up", &t, "cancelled", "cancelled");
    assert_int_equal(t.idles, 3);
}

static void a_whole_answer_does_not_wait_for_the_line_to_close(void **state)
{
    struct conversation t = {.silence_ms = 20000};

    (void)state;
    exchange(&t, "openai", HEAD "Transfer-Encoding: chunked\r\n\r\n5000\r\n" OPENAI_BOTH, STALL);
    assert_int_equal(t.code, TIDE_OK);
    model_answer_done(&t.answer);
}

static void the_connection_is_used_again(void **state)
{
    static char bytes[8192];
    struct canned canned = {bytes, KEEP, 0};
    struct conversation t = {0};

    (void)state;
    snprintf(bytes, sizeof bytes, HEAD "Content-Length: %zu\r\n\r\n%s", strlen(ANTHROPIC_BOTH), ANTHROPIC_BOTH);
    begin(&t, "anthropic", &canned, 1);
    for (int i = 0; i < 5; i++) {
        once(&t, STR("{}"));
        assert_int_equal(t.code, TIDE_OK);
        model_answer_done(&t.answer);
    }
    end(&t);
    assert_int_equal(t.server.n_requests, 5);
    assert_int_equal(t.server.n_connections, 1);
}

static void arguments_and_requests_of_a_mebibyte_pass(void **state)
{
    struct buf bytes = BUF_INIT((size_t)8 << 20), body = BUF_INIT((size_t)8 << 20);
    struct canned canned = {NULL, CLOSE, 0};
    struct conversation t = {0};

    (void)state;
    buf_add_str(&bytes, STR(UNTIL_CLOSE "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\","
                                        "\"function\":{\"name\":\"write\",\"arguments\":\"{\\\"x\\\":\\\""));
    for (int i = 0; i < 1 << 20; i++)
        buf_add_char(&bytes, 'x');
    buf_add_str(&bytes, STR("\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"));
    buf_add_char(&body, '"');
    for (int i = 0; i < 1 << 20; i++)
        buf_add_char(&body, 'y');
    buf_add_char(&body, '"');
    canned.bytes = buf_cstr(&bytes);
    begin(&t, "openai", &canned, 1);
    once(&t, buf_view(&body));
    assert_int_equal(t.code, TIDE_OK);
    assert_int_equal(t.answer.calls[0].args.len, (1 << 20) + 8);
    provider_close(t.p);
    server_stop(&t.server);
    assert_true(t.server.request.len > body.len);
    assert_memory_equal(t.server.request.ptr + t.server.request.len - body.len, body.ptr, body.len);
    server_done(&t.server);
    model_answer_done(&t.answer);
    buf_done(&bytes);
    buf_done(&body);
}

static void an_answer_without_end_is_refused(void **state)
{
    struct buf bytes = BUF_INIT((size_t)80 << 20);
    struct canned canned = {NULL, CLOSE, 0};
    struct conversation t = {0};

    (void)state;
    buf_add_str(&bytes, STR(UNTIL_CLOSE));
    while (bytes.len < (size_t)70 << 20)
        buf_add_str(&bytes,
                    STR(": nothing in here but air, again and again, and never a word of what was asked for\n"));
    canned.bytes = buf_cstr(&bytes);
    begin(&t, "openai", &canned, 1);
    once(&t, STR("{}"));
    expect_fault("endless", &t, "malformed", "over 64 MiB");
    end(&t);
    buf_done(&bytes);
}

/* Must come first: what is loaded stays. */
static void a_missing_library_is_named_with_its_package(void **state)
{
    (void)state;
    SAYS(TIDE_FAILED, "install the Debian package libcurl4", http_load("libcurl-that-is-not-there.so.4", &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named_with_its_package),
        cmocka_unit_test(both_protocols_answer_over_a_connection),
        cmocka_unit_test(a_status_has_its_class_and_the_message_of_the_provider),
        cmocka_unit_test(retry_after_is_understood_in_seconds_and_as_a_date),
        cmocka_unit_test(refused_three_times_and_then_answered),
        cmocka_unit_test(a_stream_cut_anywhere_on_the_wire_is_a_broken_connection),
        cmocka_unit_test(a_chunked_stream_without_its_last_chunk_is_cut),
        cmocka_unit_test(each_time_out_has_its_own_words),
        cmocka_unit_test(a_server_that_drips_holds_nobody),
        cmocka_unit_test(a_head_or_an_error_that_drips_holds_nobody),
        cmocka_unit_test(no_connection_is_a_time_out_of_its_own),
        cmocka_unit_test(nobody_there_is_a_broken_connection),
        cmocka_unit_test(a_peer_without_a_certificate_gets_no_key),
        cmocka_unit_test(giving_up_ends_a_stalled_call),
        cmocka_unit_test(a_whole_answer_does_not_wait_for_the_line_to_close),
        cmocka_unit_test(the_connection_is_used_again),
        cmocka_unit_test(arguments_and_requests_of_a_mebibyte_pass),
        cmocka_unit_test(an_answer_without_end_is_refused),
    };

    setenv("no_proxy", "127.0.0.1", 1); /* what the machine is set up for is not what is tested */
    return cmocka_run_group_tests_name("provider faults", tests, NULL, NULL);
}
