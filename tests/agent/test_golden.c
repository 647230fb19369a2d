/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the byte, over the wire. The conversation of cuts.h is held with a server that speaks each provider's protocol
 * and keeps every body; then it is cut behind each event and goes on, and each request sent from there on must have the bytes
 * that the uninterrupted conversation sent for the same turn, so that the provider's cache still hits.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "agent/cuts.h"
#include "base/digest.h"

enum { REQUESTS_MAX = 40 };

/* ---- a provider ------------------------------------------------------------------------------------------------------ */

struct request {
    char *body;
    int64_t turn; /* answers that were given before it */
    bool failed;  /* it was answered with 429 */
};

struct run_server {
    int fd, port, stop[2];
    pthread_t thread;
    bool anthropic;
    struct arena arena;
    const struct json *turns; /* of the script */
    pthread_mutex_t lock;
    int64_t next;  /* turn to be asked for next */
    bool trims;    /* then requests do not hold all answers */
    bool owes_429; /* the first request of a turn that is to fail has not come yet */
    struct request requests[REQUESTS_MAX];
    size_t n;
};

static void put_event(struct buf *out, const char *json)
{
    buf_addf(out, "data: %s\n\n", json);
}

static void quoted(struct buf *out, struct str text)
{
    json_quote(out, text);
}

static void anthropic_call(struct buf *out, struct arena *a, const struct json *call, int index)
{
    buf_addf(
        out,
        "data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"tool_use\",\"id\":\"%.*s\","
        "\"name\":\"%.*s\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":"
        "\"input_json_delta\",\"partial_json\":",
        index, STR_ARG(json_get_text(a, call, STR("id"))), STR_ARG(json_get_text(a, call, STR("name"))), index);
    quoted(out, json_source(json_get(call, STR("args"))));
    buf_addf(out, "}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", index);
}

static void anthropic_answer(struct buf *out, struct arena *a, const struct json *turn)
{
    const struct json *calls = json_get(turn, STR("calls")), *usage = json_get(turn, STR("usage"));
    int index = 0;

    buf_addf(
        out,
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":%lld,\"output_tokens\":1}}}\n\n",
        (long long)json_get_int(usage, STR("input_tokens"), 0));
    if (json_get(turn, STR("text"))) {
        put_event(out,
                  "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}");
        buf_add_str(
            out,
            STR("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":"));
        quoted(out, json_get_text(a, turn, STR("text")));
        buf_add_str(out, STR("}}\n\n"));
        put_event(out, "{\"type\":\"content_block_stop\",\"index\":0}");
        index++;
    }
    for (const struct json *c = calls ? calls->first : NULL; c; c = c->next)
        anthropic_call(out, a, c, index++);
    buf_addf(
        out,
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\"},\"usage\":{\"output_tokens\":%lld}}\n\n",
        calls ? "tool_use" : "end_turn", (long long)json_get_int(usage, STR("output_tokens"), 0));
    put_event(out, "{\"type\":\"message_stop\"}");
}

static void openai_answer(struct buf *out, struct arena *a, const struct json *turn)
{
    const struct json *calls = json_get(turn, STR("calls")), *usage = json_get(turn, STR("usage"));
    int index = 0;

    buf_add_str(out, STR("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"));
    quoted(out, json_get_text(a, turn, STR("text")));
    buf_add_str(out, STR("}}]}\n\n"));
    for (const struct json *c = calls ? calls->first : NULL; c; c = c->next) {
        buf_addf(out,
                 "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"%.*s\",\"type\":"
                 "\"function\",\"function\":{\"name\":\"%.*s\",\"arguments\":",
                 index++, STR_ARG(json_get_text(a, c, STR("id"))), STR_ARG(json_get_text(a, c, STR("name"))));
        quoted(out, json_source(json_get(c, STR("args"))));
        buf_add_str(out, STR("}}]}}]}\n\n"));
    }
    buf_addf(out, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"%s\"}]}\n\n",
             calls ? "tool_calls" : "stop");
    buf_addf(out, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld}}\n\n",
             (long long)json_get_int(usage, STR("input_tokens"), 0),
             (long long)json_get_int(usage, STR("output_tokens"), 0));
    put_event(out, "[DONE]");
}

/* Of a request: the answers in it; -1 when results do not stand right behind their calls, as both protocols want it. */
static int64_t count_answers(struct arena *a, const struct json *body, bool anthropic)
{
    const struct json *messages = json_get(body, STR("messages"));
    struct str before = STR("");
    int64_t n = 0;

    for (const struct json *m = messages ? messages->first : NULL; m; m = m->next) {
        struct str role = json_get_text(a, m, STR("role"));
        const struct json *content = json_get(m, STR("content"));
        bool text = false;

        if (!anthropic && str_eq(role, STR("tool")) && str_eq(before, STR("user")))
            return -1;
        for (const struct json *b = anthropic && str_eq(role, STR("user")) ? content->first : NULL; b; b = b->next) {
            if (text && str_eq(json_get_text(a, b, STR("type")), STR("tool_result")))
                return -1;
            text |= str_eq(json_get_text(a, b, STR("type")), STR("text"));
        }
        n += str_eq(role, STR("assistant"));
        before = role;
    }
    return n;
}

static void make_answer(struct run_server *s, struct request *r, struct buf *out)
{
    struct arena a = ARENA_INIT;
    struct json *body = NULL;
    const struct json *turn = s->turns->first;

    r->turn = json_parse(&a, str_from(r->body), NULL, &body, NULL, NULL) ? -1 : count_answers(&a, body, s->anthropic);
    if (s->trims && r->turn >= 0)
        r->turn = s->next;
    for (int64_t i = 0; turn && i < r->turn; i++)
        turn = turn->next;
    r->failed = turn && json_get(turn, STR("fail")) && s->owes_429;
    if (r->turn != s->next || !turn) {
        buf_add_str(out, STR("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    } else if (r->failed) {
        s->owes_429 = false;
        buf_add_str(out, STR("HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    } else {
        buf_add_str(out, STR("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"));
        (s->anthropic ? anthropic_answer : openai_answer)(out, &a, turn);
        s->next++;
    }
    arena_done(&a);
}

/* The body of the request that comes on this line; NULL: none does. */
static char *read_body(int fd)
{
    struct buf in = BUF_INIT(1 << 26);
    char *body = NULL, *length, *copy = NULL;

    for (;;) {
        char *room = buf_reserve(&in, 65536);
        ssize_t got = room ? recv(fd, room, 65535, 0) : 0;

        if (got <= 0)
            break;
        in.len += (size_t)got;
        body = strstr(buf_cstr(&in), "\r\n\r\n");
        length = strcasestr(in.ptr, "\r\ncontent-length:");
        if (body && length && in.len >= (size_t)(body + 4 - in.ptr) + strtoul(length + 17, NULL, 10)) {
            copy = mem_dup(str_from(body + 4));
            break;
        }
    }
    buf_done(&in);
    return copy;
}

static void serve(struct run_server *s, int fd)
{
    struct buf out = BUF_INIT(1 << 20);
    char *body = read_body(fd);

    pthread_mutex_lock(&s->lock);
    if (body && s->n < REQUESTS_MAX) {
        s->requests[s->n].body = body;
        make_answer(s, &s->requests[s->n++], &out);
        body = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    free(body);
    if (send(fd, out.ptr, out.len, MSG_NOSIGNAL) != (ssize_t)out.len)
        print_error("an answer could not be sent\n");
    buf_done(&out);
    close(fd);
}

static void *server_run(void *arg)
{
    struct run_server *s = arg;

    for (;;) {
        struct pollfd p[] = {{.fd = s->stop[0], .events = POLLIN}, {.fd = s->fd, .events = POLLIN}};

        poll(p, 2, -1);
        if (p[0].revents)
            return NULL;
        if (p[1].revents)
            serve(s, accept4(s->fd, NULL, NULL, SOCK_CLOEXEC));
    }
}

static void server_start(struct run_server *s, bool anthropic)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    struct json *script = NULL;

    *s = (struct run_server){.anthropic = anthropic, .arena = ARENA_INIT};
    OK(json_parse(&s->arena, str_from(script_text), NULL, &script, NULL, &err));
    s->turns = json_get(script, STR("turns"));
    pthread_mutex_init(&s->lock, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pipe2(s->stop, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
}

static void forget_requests(struct run_server *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->requests[i].body);
    s->n = 0;
}

static void server_stop(struct run_server *s)
{
    assert_int_equal(write(s->stop[1], "x", 1), 1);
    pthread_join(s->thread, NULL);
    close(s->stop[0]);
    close(s->stop[1]);
    close(s->fd);
    forget_requests(s);
    arena_done(&s->arena);
    pthread_mutex_destroy(&s->lock);
}

/* ---- comparing ------------------------------------------------------------------------------------------------------- */

struct golden {
    struct world w;
    struct run_server server;
    struct log *log;
    char *bodies[TURNS];
    void (*extra)(tide_agent *);
};

/* Each llm.request behind event n names the digest of a body that was sent, in order. */
static void check_digests(const struct run_server *s, const struct log *log, size_t n)
{
    struct arena a = ARENA_INIT;
    size_t next = 0;

    for (size_t i = n; i < log->n; i++) {
        unsigned char digest[DIGEST_SIZE];
        char hex[17];

        if (!str_eq(log->lines[i].kind, STR("llm.request")))
            continue;
        while (next < s->n && s->requests[next].failed)
            next++;
        assert_true(next < s->n);
        digest_of(digest, str_from(s->requests[next++].body));
        hex_encode(hex, digest, 8);
        assert_true(str_eq(json_get_text(&a, log->lines[i].json, STR("request_digest")), str_from(hex)));
    }
    arena_done(&a);
}

static void where_they_part(size_t n, const struct log *log, int64_t turn, const char *got, const char *want)
{
    size_t i = 0;

    while (got[i] && got[i] == want[i])
        i++;
    i = i > 60 ? i - 60 : 0;
    fail_msg("cut behind event %zu (%.*s): request of turn %lld: …%.160s… where it was …%.160s…", n,
             STR_ARG(log->lines[n - 1].kind), (long long)turn + 1, got + i, want + i);
}

/* The turn (from 0) whose calls were cut, one that must happen once among them; TURNS: none. */
static int64_t first_other_turn(const struct log *log, size_t n)
{
    for (size_t i = 0; i < CALL_CASES; i++)
        if (strcmp(call_cases[i].effect, "once") == 0 && log_count(log, 0, n, "tool.started", call_cases[i].id) &&
            !log_count(log, 0, n, "message.tool", call_cases[i].id))
            return log_count(log, 0, n, "message.assistant", NULL);
    return TURNS;
}

static void check_requests(struct golden *g, size_t n)
{
    const struct run_server *s = &g->server;
    int had = log_count(g->log, 0, n, "message.assistant", NULL), failed = log_count(g->log, 0, n, "llm.error", NULL);
    int64_t other = first_other_turn(g->log, n);

    if (s->n != (size_t)(TURNS - had + !failed))
        fail_msg("cut behind event %zu (%.*s): %zu requests", n, STR_ARG(g->log->lines[n - 1].kind), s->n);
    for (size_t i = 0; i < s->n; i++) {
        const struct request *r = &s->requests[i];

        assert_true(r->turn >= had && r->turn < TURNS);
        if (r->turn < other && strcmp(r->body, g->bodies[r->turn]) != 0)
            where_they_part(n, g->log, r->turn, r->body, g->bodies[r->turn]);
        if (r->turn >= other && !s->trims)
            assert_non_null(strstr(r->body, "outcome unknown"));
    }
}

static void try_cut(struct golden *g, size_t n)
{
    tide_store *store = fresh_store(&g->w);
    struct log *log = mem_zero(sizeof *log);
    tide_session *s = NULL;

    keep_prefix(store, g->log, n);
    world_reset(&g->w);
    forget_requests(&g->server);
    g->server.owes_429 = !log_count(g->log, 0, n, "llm.error", NULL);
    g->server.next = log_count(g->log, 0, n, "message.assistant", NULL);
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    go_on(&g->w, s, g->log, n, g->extra);
    check_requests(g, n);
    log_read(log, s);
    check_digests(&g->server, log, n);
    log_done(log);
    tide_session_close(s);
    tide_store_close(store);
}

static void hold_it(struct golden *g)
{
    static char base[60];

    world_init(&g->w);
    snprintf(base, sizeof base, "http://127.0.0.1:%d", g->server.port);
    g->w.opt.provider = g->server.anthropic ? "anthropic" : "openai";
    g->w.opt.model = "m-1";
    g->w.opt.base_url = base;
    g->w.opt.api_key = "k";
    g->w.opt.max_context_tokens = g->server.trims ? 75 : 0;
    g->server.owes_429 = true;
    g->log = uninterrupted(&g->w, g->extra);
    assert_int_equal(g->server.n, TURNS + 1);
    assert_int_equal(log_count(g->log, 0, g->log->n, "context.trimmed", NULL) > 0, g->server.trims);
    check_digests(&g->server, g->log, 0);
    for (size_t i = 0; i < g->server.n; i++) {
        struct request *r = &g->server.requests[i];

        assert_in_range(r->turn, 0, TURNS - 1);
        if (getenv("GOLDEN_PASSWORD"))
            assert_true(strstr(r->body, "[redacted:GOLDEN_PASSWORD]") && !strstr(r->body, "Be brief."));
        if (g->bodies[r->turn])
            assert_string_equal(g->bodies[r->turn], r->body); /* the attempt behind the 429 */
        else
            g->bodies[r->turn] = mem_dup(str_from(r->body));
    }
}

enum { ANTHROPIC = 1, EVERY_EVENT = 2, TRIMMED = 4 }; /* without EVERY_EVENT: cut where an append ended */

static void golden(unsigned flags, void (*extra)(tide_agent *))
{
    struct golden *g = mem_zero(sizeof *g);
    size_t cuts = 0;

    g->extra = extra;
    server_start(&g->server, flags & ANTHROPIC);
    g->server.trims = flags & TRIMMED;
    hold_it(g);
    for (size_t n = 1; n <= g->log->n; n++)
        if (flags & EVERY_EVENT || g->log->is_end[n]) {
            try_cut(g, n);
            cuts++;
        }
    print_message("%zu cuts\n", cuts);
    server_stop(&g->server);
    for (int i = 0; i < TURNS; i++)
        free(g->bodies[i]);
    log_done(g->log);
    dir_remove(g->w.dir);
    free(g);
}

static void anthropic_requests_have_the_same_bytes_after_any_cut(void **state)
{
    (void)state;
    golden(ANTHROPIC | (SLOW_BUILD ? 0 : EVERY_EVENT), NULL);
}

static void openai_requests_have_the_same_bytes_after_any_cut(void **state)
{
    (void)state;
    golden(SLOW_BUILD ? 0 : EVERY_EVENT, NULL);
}

static enum tide_code say(void *arg, const char *input, struct tide_text *ret, struct tide_err *err)
{
    (void)input;
    (void)err;
    ret->len = (size_t)asprintf(&ret->ptr, "{\"action\":\"append_context\",\"context\":\"by %s\"}", (const char *)arg);
    return TIDE_OK;
}

static void add_speakers(tide_agent *a)
{
    static char *const events[] = {"turn_start", "turn_end", "post_tool_use"};

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        OK(tide_agent_add_hook(a, events[i], events[i], NULL, say, events[i], &err));
}

/* Which also shows that a hook that speaks between two results does not come between them in the request. */
static void so_they_have_when_hooks_add_to_the_conversation(void **state)
{
    (void)state;
    golden(ANTHROPIC, add_speakers);
    golden(0, add_speakers);
}

static void so_they_have_when_old_turns_are_left_out(void **state)
{
    (void)state;
    golden(ANTHROPIC | TRIMMED, NULL);
    golden(TRIMMED, NULL);
}

/* A prompt, a result, an answer and the system prompt: the model is sent what is stored, at once and after any cut. */
static void so_they_have_when_secrets_are_replaced(void **state)
{
    static const char *const secrets[][2] = {{"GOLDEN_KEY", "what was given"},
                                             {"GOLDEN_TOKEN", "do several things"},
                                             {"GOLDEN_SECRET", "As you wish."},
                                             {"GOLDEN_PASSWORD", "Be brief."}};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        setenv(secrets[i][0], secrets[i][1], 1);
    golden(ANTHROPIC, NULL);
    golden(0, NULL);
    for (size_t i = 0; i < 4; i++)
        unsetenv(secrets[i][0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anthropic_requests_have_the_same_bytes_after_any_cut),
        cmocka_unit_test(openai_requests_have_the_same_bytes_after_any_cut),
        cmocka_unit_test(so_they_have_when_hooks_add_to_the_conversation),
        cmocka_unit_test(so_they_have_when_old_turns_are_left_out),
        cmocka_unit_test(so_they_have_when_secrets_are_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
