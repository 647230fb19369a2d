/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What requests carry besides texts, to the byte and for both protocols: images, and a summary in place of what was said. The
 * conversation is cut behind each append and goes on; its last request must be the one of the conversation that was never cut.
 */
#include "agent/cuts.h"
#include "agent/server.h"

#define PNG "\x89PNG\r\n\x1a\n0123"
#define PNG_BASE64 "iVBORw0KGgowMTIz"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define OPENAI(text)                                                                                                   \
    HEAD "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"" text                      \
         "\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"                   \
         "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
#define ANTHROPIC(text)                                                                                                \
    HEAD                                                                                                               \
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"      \
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" \
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" text      \
        "\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"                                              \
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}"  \
        "\n\ndata: {\"type\":\"message_stop\"}\n\n"

/* The same answer to everything: how often it was asked must not matter. */
static const struct wire_row {
    const char *type;
    struct canned answer;
    const char *image, *summary; /* what a request has of them */
} wires[] = {
    {"openai",
     {OPENAI("Said."), CLOSE, 0},
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64," PNG_BASE64 "\"}}",
     "{\"role\":\"user\",\"content\":\"[Summary of the conversation so far; what was said itself is left out "
     "here]\\n\\nSaid.\"},{\"role\":\"user\",\"content\":\"third\"}"},
    {"anthropic",
     {ANTHROPIC("Said."), CLOSE, 0},
     "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"" PNG_BASE64 "\"}}",
     "{\"type\":\"text\",\"text\":\"[Summary of the conversation so far; what was said itself is left out "
     "here]\\n\\nSaid.\"},{\"type\":\"text\",\"text\":\"third\""},
};

struct talk {
    struct world world;
    const struct wire_row *wire;
    struct run_server server;
    tide_store *store;
    tide_session *s;
    tide_agent *a;
    char url[60];
    bool compacts;
};

static void open_agent(struct talk *t)
{
    const struct tide_agent_options opt = {.size = sizeof opt,
                                           .provider = t->wire->type,
                                           .model = "m",
                                           .base_url = t->url,
                                           .api_key = "k",
                                           .system_prompt = "Be brief.",
                                           .working_dir = t->world.dir,
                                           .no_tools = 1,
                                           .max_retries = -1};

    server_start(&t->server, &t->wire->answer, 1);
    snprintf(t->url, sizeof t->url, "http://127.0.0.1:%d", t->server.port);
    OK(tide_agent_new(t->s, &opt, &t->a, &err));
}

static void close_agent(struct talk *t)
{
    tide_agent_free(TAKE(t->a));
    server_stop(&t->server);
}

/* The body of the latest request, without the port that is another each time. */
static char *last_body(struct talk *t)
{
    char *body = strstr(buf_cstr(&t->server.request), "\r\n\r\n");

    assert_non_null(body);
    return mem_dup(str_from(body + 4));
}

/* What is missing of: first (with an image), second, a summary, third. */
static void finish_talk(struct talk *t, int prompts_said, bool compacted)
{
    if (prompts_said < 1) {
        OK(tide_agent_attach(t->a, "dot.png", PNG, sizeof(PNG) - 1, &err));
        OK(tide_agent_run(t->a, "first", NULL, &err));
    }
    if (prompts_said < 2)
        OK(tide_agent_run(t->a, "second", NULL, &err));
    if (t->compacts && !compacted)
        OK(tide_agent_compact(t->a, NULL, &err));
    if (prompts_said < 3)
        OK(tide_agent_run(t->a, "third", NULL, &err));
}

static void check_cut(struct talk *t, const struct log *log, size_t n, const char *want)
{
    bool compacted = log_count(log, 0, n, "context.trimmed", NULL) > 0, answered;
    int said = prompts_in(log, n);
    struct tide_err why = {0};
    enum tide_code code;
    char *got;

    t->store = fresh_store(&t->world);
    keep_prefix(t->store, log, n);
    OK(tide_session_open(t->store, "s", TIDE_SESSION_APPEND, &t->s, &err));
    open_agent(t);
    code = tide_agent_resume(t->a, NULL, NULL, NULL, &why);
    if (code != TIDE_OK && code != TIDE_NOT_FOUND)
        fail_msg("cut behind event %zu: %s", n, why.msg);
    answered = said == 3 && !t->server.n_requests;
    finish_talk(t, said, compacted);
    close_agent(t);
    if (!answered) {
        got = last_body(t);
        if (strcmp(got, want) != 0)
            fail_msg("%s, cut behind event %zu: asks\n%s\nnot\n%s", t->wire->type, n, got, want);
        free(got);
    }
    server_done(&t->server);
    tide_session_close(t->s);
    tide_store_close(t->store);
}

static void a_cut_conversation_asks_the_same(bool compacts)
{
    for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++) {
        struct talk t = {.wire = &wires[i], .compacts = compacts};
        struct log *log = mem_zero(sizeof *log);
        size_t cuts = 0;
        char *want;

        world_init(&t.world);
        t.store = fresh_store(&t.world);
        note_appends(t.store, log);
        OK(tide_session_create(t.store, "s", "{}", &t.s, &err));
        open_agent(&t);
        finish_talk(&t, 0, false);
        log_read(log, t.s);
        close_agent(&t);
        want = last_body(&t);
        assert_int_equal(!strstr(want, wires[i].image), compacts);
        assert_int_equal(!strstr(want, wires[i].summary), !compacts);
        assert_int_equal(!strstr(want, "second"), compacts);
        server_done(&t.server);
        tide_session_close(t.s);
        tide_store_close(t.store);
        for (size_t n = 1; n < log->n; n++)
            if (log->is_end[n]) {
                check_cut(&t, log, n, want);
                cuts++;
            }
        assert_true(cuts >= 6);
        free(want);
        log_done(log);
        dir_remove(t.world.dir);
    }
}

static void images_are_sent_again_to_the_byte(void **state)
{
    (void)state;
    a_cut_conversation_asks_the_same(false);
}

static void a_summary_is_there_whole_or_not_at_all(void **state)
{
    (void)state;
    a_cut_conversation_asks_the_same(true);
}

static void what_is_no_image_is_refused(void **state)
{
    struct talk t = {.wire = &wires[0]};
    AUTO(mem_freep) char *big = mem_zero(TIDE_IMAGE_MAX_BYTES + 1);

    (void)state;
    memcpy(big, PNG, 8);
    world_init(&t.world);
    t.store = fresh_store(&t.world);
    OK(tide_session_create(t.store, "s", "{}", &t.s, &err));
    open_agent(&t);
    assert_int_equal(tide_agent_attach(t.a, "a", "GIF", 3, NULL), TIDE_INVALID);
    assert_int_equal(tide_agent_attach(t.a, "a", big, TIDE_IMAGE_MAX_BYTES + 1, NULL), TIDE_TOO_BIG);
    OK(tide_agent_attach(t.a, "a", big, TIDE_IMAGE_MAX_BYTES, &err));
    for (int i = 1; i < TIDE_IMAGES_MAX; i++)
        OK(tide_agent_attach(t.a, "a", "RIFF....WEBP", 12, &err));
    assert_int_equal(tide_agent_attach(t.a, "a", "GIF89a", 6, NULL), TIDE_TOO_BIG);
    close_agent(&t);
    server_done(&t.server);
    tide_session_close(t.s);
    tide_store_close(t.store);
    dir_remove(t.world.dir);
}

static void what_is_owed_is_not_summarised(void **state)
{
    struct talk t = {.wire = &wires[0]};

    (void)state;
    world_init(&t.world);
    t.store = fresh_store(&t.world);
    OK(tide_session_create(t.store, "s", "{}", &t.s, &err));
    open_agent(&t);
    assert_int_equal(tide_agent_compact(t.a, NULL, NULL), TIDE_NOT_FOUND);
    OK(tide_agent_run(t.a, "first", NULL, &err));
    OK(tide_agent_compact(t.a, "the first", &err));
    assert_int_equal(tide_agent_compact(t.a, NULL, NULL), TIDE_NOT_FOUND); /* a summary of a summary */
    OK(tide_session_append(t.s, 0, &(struct tide_new_event){"message.user", "{\"content\":\"x\"}", 15}, 1, NULL, &err));
    assert_int_equal(tide_agent_compact(t.a, NULL, NULL), TIDE_CONFLICT);
    close_agent(&t);
    server_done(&t.server);
    tide_session_close(t.s);
    tide_store_close(t.store);
    dir_remove(t.world.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_sent_again_to_the_byte),
        cmocka_unit_test(a_summary_is_there_whole_or_not_at_all),
        cmocka_unit_test(what_is_no_image_is_refused),
        cmocka_unit_test(what_is_owed_is_not_summarised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
