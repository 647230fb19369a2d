/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets from outside: the handshake, frames byte by byte, and what becomes of clients that do not keep to the rules. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "kit.h"
#include "net/websocket.h"

static struct world {
    struct http_server *server;
    struct websocket_loop *loop;
    int port;
    struct websocket *_Atomic ws;
    atomic_int opened, closed, ticks;
} w;

static bool begin(void *arg, struct http_request *q)
{
    (void)arg;
    (void)q;
    return true;
}

static void handle(void *arg, struct http_request *q)
{
    struct tide_err err;
    int status;
    const char *why = websocket_refuses(q, &status);
    struct buf body = BUF_INIT(1000);

    (void)arg;
    if (why) {
        buf_add_str(&body, str_from(why));
        http_answer(q, status, "text/plain", &body, NULL);
        return;
    }
    if (websocket_accept(w.loop, q, websocket_offers(q, "test.v1") ? "test.v1" : NULL, NULL, &err))
        http_answer(q, 503, NULL, NULL, NULL); /* it is being stopped */
}

static void over(void *arg, struct http_request *q)
{
    (void)arg;
    (void)q;
}

static void opened(void *arg, struct websocket *ws, void *user)
{
    (void)arg;
    (void)user;
    w.ws = ws;
    w.opened++;
}

static void message(void *arg, struct websocket *ws, struct str text)
{
    (void)arg;
    if (str_eq(text, STR("bye")))
        websocket_close(ws, 4001, "as asked");
    else
        assert_true(websocket_send(ws, text));
}

static void closed(void *arg, struct websocket *ws)
{
    (void)arg;
    w.closed++;
    websocket_release(ws);
}

static void tick(void *arg, struct websocket *ws)
{
    (void)arg;
    (void)ws;
    w.ticks++;
}

static int start(void **state)
{
    struct http_face face = {NULL, begin, handle, over, NULL};
    struct websocket_face sockets = {NULL, opened, message, closed, tick};
    struct websocket_limits limits = {.message_bytes = 100000, .unsent_bytes = 1 << 20, .ping_ms = 300, .tick_ms = 10};
    struct tide_err err;

    (void)state;
    w.opened = w.closed = w.ticks = 0;
    w.ws = NULL;
    w.loop = websocket_loop_new(&sockets, &limits);
    w.server = http_server_new(&face, NULL);
    assert_int_equal(http_server_listen(w.server, &(struct http_listen){.address = "127.0.0.1", .port = "0", .fd = -1},
                                        &w.port, &err),
                     TIDE_OK);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    websocket_loop_stop(w.loop);
    http_server_free(w.server);
    websocket_loop_free(w.loop);
    assert_int_equal(w.opened, w.closed);
    return 0;
}

static int client(void)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)w.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Reads at least n bytes more, or to the end; five seconds at most. */
static bool hear(int fd, struct buf *in, size_t n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t want = in->len + n;

    while (in->len < want && poll(&p, 1, 5000) > 0) {
        ssize_t got = recv(fd, buf_reserve(in, want - in->len), want - in->len, 0);

        if (got <= 0)
            return false;
        in->len += (size_t)got;
    }
    return in->len >= want;
}

#define HEAD "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"

static void ask(int fd, const char *head, struct buf *in)
{
    assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
    while (!strstr(buf_cstr(in), "\r\n\r\n") && hear(fd, in, 1))
        ;
}

static int open_client(void)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 16);
    int fd = client();

    ask(fd, HEAD KEY "Sec-WebSocket-Protocol: other, test.v1\r\n\r\n", &in);
    assert_non_null(strstr(buf_cstr(&in), " 101 "));
    assert_non_null(strstr(buf_cstr(&in), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")); /* the example of RFC 6455 */
    assert_non_null(strstr(buf_cstr(&in), "Sec-WebSocket-Protocol: test.v1\r\n"));
    return fd;
}

/* One frame as a client sends it. */
static void say(int fd, unsigned first, const void *bytes, size_t n)
{
    static const unsigned char mask[4] = {1, 2, 3, 4};
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 22);

    buf_add_char(&out, (char)first);
    if (n < 126) {
        buf_add_char(&out, (char)(0x80 | n));
    } else {
        buf_add_char(&out, (char)(0x80 | 127));
        for (int i = 7; i >= 0; i--)
            buf_add_char(&out, (char)(n >> (8 * i)));
    }
    buf_add(&out, mask, 4);
    for (size_t i = 0; i < n; i++)
        buf_add_char(&out, (char)(((const unsigned char *)bytes)[i] ^ mask[i % 4]));
    (void)!send(fd, out.ptr, out.len, MSG_NOSIGNAL);
}

/* The next frame: its first byte, 0 at the end. */
static unsigned next(int fd, struct buf *body)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 22);
    size_t n;

    buf_clear(body);
    if (!hear(fd, &in, 2))
        return 0;
    n = (unsigned char)in.ptr[1];
    if (n == 126) {
        assert_true(hear(fd, &in, 2));
        n = (size_t)(unsigned char)in.ptr[2] << 8 | (unsigned char)in.ptr[3];
    } else if (n == 127) {
        assert_true(hear(fd, &in, 8));
        n = 0;
        for (int i = 2; i < 10; i++)
            n = n << 8 | (unsigned char)in.ptr[i];
    }
    if (n)
        assert_true(hear(fd, body, n));
    return (unsigned char)in.ptr[0];
}

static unsigned close_code(const struct buf *body)
{
    return body->len < 2 ? 0 : (unsigned)(unsigned char)body->ptr[0] << 8 | (unsigned char)body->ptr[1];
}

static void handshakes(void **state)
{
    static const struct {
        const char *head;
        const char *status;
    } cases[] = {
        {HEAD KEY "\r\n", " 101 "},
        {"GET / HTTP/1.1\r\nHost: h\r\n" KEY "\r\n", " 426 "},
        {HEAD "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n", " 426 "},
        {HEAD "Sec-WebSocket-Version: 13\r\n\r\n", " 400 "},
        {HEAD "Sec-WebSocket-Key: AAAA\r\nSec-WebSocket-Version: 13\r\n\r\n", " 400 "},
        {HEAD "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==AAAA\r\nSec-WebSocket-Version: 13\r\n\r\n", " 400 "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO(buf_done) struct buf in = BUF_INIT(1 << 16);
        int fd = client();

        ask(fd, cases[i].head, &in);
        if (!strstr(buf_cstr(&in), cases[i].status))
            fail_msg("case %zu: %s", i, buf_cstr(&in));
        close(fd);
    }
}

static void messages_come_back_whole(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    static char big[90000];
    int fd = open_client();

    (void)state;
    say(fd, 0x81, "hello", 5);
    assert_int_equal(next(fd, &in), 0x81);
    assert_string_equal(buf_cstr(&in), "hello");
    say(fd, 0x01, "in ", 3); /* three fragments with a ping between */
    say(fd, 0x00, "three ", 6);
    say(fd, 0x89, "p", 1);
    say(fd, 0x80, "parts", 5);
    assert_int_equal(next(fd, &in), 0x8a);
    assert_int_equal(next(fd, &in), 0x81);
    assert_string_equal(buf_cstr(&in), "in three parts");
    memset(big, 'x', sizeof big);
    say(fd, 0x81, big, sizeof big);
    assert_int_equal(next(fd, &in), 0x81);
    assert_int_equal(in.len, sizeof big);
    say(fd, 0x81, "bye", 3);
    assert_int_equal(next(fd, &in), 0x88);
    assert_int_equal(close_code(&in), 4001);
    close(fd);
}

static void breaches_are_closed_by_their_code(void **state)
{
    static char big[100001];
    static const struct {
        const char *name;
        unsigned first;
        const char *bytes;
        size_t n;
        unsigned code;
    } cases[] = {
        {"binary", 0x82, "x", 1, 1003},           {"no UTF-8", 0x81, "\xff\xfe", 2, 1007},
        {"too big", 0x81, big, sizeof big, 1009}, {"reserved bit", 0xc1, "x", 1, 1002},
        {"unknown kind", 0x83, "x", 1, 1002},     {"a long ping", 0x89, big, 126, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
        int fd = open_client();

        say(fd, cases[i].first, cases[i].bytes, cases[i].n);
        if (next(fd, &in) != 0x88 || close_code(&in) != cases[i].code)
            fail_msg("%s: %u", cases[i].name, close_code(&in));
        close(fd);
    }
}

static void frame_without_a_mask_ends_the_connection(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    int fd = open_client();

    (void)state;
    assert_int_equal(send(fd, "\x81\x01x", 3, 0), 3);
    while (next(fd, &in) == 0x81)
        fail();
    close(fd);
}

static void *send_many(void *arg)
{
    for (int i = 0; i < 200; i++)
        assert_true(websocket_send(arg, STR("from a thread")));
    return NULL;
}

static void other_threads_send(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    int fd = open_client();
    pthread_t threads[4];

    (void)state;
    while (!w.ws)
        usleep(1000);
    for (int i = 0; i < 4; i++)
        assert_true(thread_start(&threads[i], send_many, w.ws));
    for (int i = 0; i < 800; i++) {
        assert_int_equal(next(fd, &in), 0x81);
        assert_string_equal(buf_cstr(&in), "from a thread");
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    close(fd);
}

static void one_who_does_not_read_is_bounded(void **state)
{
    static char block[65536];
    int fd = open_client(), n = 0;

    (void)state;
    while (!w.ws)
        usleep(1000);
    memset(block, 'x', sizeof block);
    while (websocket_send(w.ws, (struct str){block, sizeof block})) {
        assert_true(++n < 2000);
        usleep(500);
    }
    websocket_close(w.ws, 1008, "too slow");
    close(fd);
}

static void pings_that_nobody_reads_end_the_connection(void **state)
{
    static unsigned char pings[6 * 1000];
    int fd = open_client();
    struct timeval patience = {.tv_sec = 1};

    (void)state;
    for (size_t i = 0; i < sizeof pings; i += 6)
        memcpy(pings + i, "\x89\x80\0\0\0", 6);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    for (int i = 0; i < 5000 && !w.closed; i++)
        (void)!send(fd, pings, sizeof pings, MSG_NOSIGNAL);
    for (int i = 0; i < 5000 && !w.closed; i++)
        usleep(1000);
    assert_int_equal(w.closed, 1);
    close(fd);
}

/* However early it goes: whoever was told of it is told of its end, stop() looks. */
static void one_that_is_gone_before_its_upgrade_leaves_nothing(void **state)
{
    struct linger reset = {.l_onoff = 1};

    (void)state;
    for (int i = 0; i < 200; i++) {
        int fd = client();

        assert_true(send(fd, HEAD KEY "\r\n", strlen(HEAD KEY "\r\n"), MSG_NOSIGNAL) > 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    close(open_client()); /* behind all of them */
    for (int i = 0; i < 5000 && websocket_count(w.loop); i++)
        usleep(1000);
    assert_int_equal(websocket_count(w.loop), 0);
}

static void each_is_looked_at_now_and_then(void **state)
{
    int fd = open_client();

    (void)state;
    while (w.ticks < 3)
        usleep(1000);
    close(fd);
}

static void silent_ones_are_asked_and_dropped(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    int fd = open_client();

    (void)state;
    for (int i = 0; i < 3; i++) { /* one that answers stays */
        assert_int_equal(next(fd, &in), 0x89);
        say(fd, 0x8a, in.ptr, in.len);
    }
    assert_int_equal(next(fd, &in), 0x89);
    assert_int_equal(next(fd, &in), 0); /* one that does not is dropped */
    for (int i = 0; i < 5000 && !w.closed; i++)
        usleep(1000);
    assert_int_equal(w.closed, 1);
    close(fd);
}

static void the_end_says_goodbye(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    int fd = open_client();

    while (!w.ws)
        usleep(1000);
    stop(state);
    assert_int_equal(next(fd, &in), 0x88);
    assert_int_equal(close_code(&in), 1001);
    close(fd);
    start(state);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        CASE(handshakes),
        CASE(messages_come_back_whole),
        CASE(breaches_are_closed_by_their_code),
        CASE(frame_without_a_mask_ends_the_connection),
        CASE(other_threads_send),
        CASE(one_who_does_not_read_is_bounded),
        CASE(pings_that_nobody_reads_end_the_connection),
        CASE(one_that_is_gone_before_its_upgrade_leaves_nothing),
        CASE(each_is_looked_at_now_and_then),
        CASE(silent_ones_are_asked_and_dropped),
        CASE(the_end_says_goodbye),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
