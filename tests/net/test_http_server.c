/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server from outside: real sockets, what a client sends byte by byte, and what comes back. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "net/http_server.h"
#include "kit.h"

struct world {
    struct http_server *server;
    int port;
    pthread_t thread;
    atomic_int over;
    struct http_stream *stream;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    struct http_upgraded up;
    bool upgraded;
};

static struct world w = {.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static bool begin(void *arg, struct http_request *q)
{
    (void)arg;
    if (str_eq(q->path, STR("/refused"))) {
        http_answer(q, 403, "text/plain", NULL, NULL);
        return false;
    }
    return true;
}

static void *answer_later(void *arg)
{
    struct http_request *q = arg;
    struct buf body = BUF_INIT(64);

    usleep(20000);
    buf_add_str(&body, STR("later"));
    http_answer(q, 200, "text/plain", &body, NULL);
    return NULL;
}

static void take_socket(void *arg, const struct http_upgraded *up)
{
    (void)arg;
    pthread_mutex_lock(&w.mu);
    w.up = *up;
    w.upgraded = true;
    pthread_cond_signal(&w.cond);
    pthread_mutex_unlock(&w.mu);
}

static void handle(void *arg, struct http_request *q)
{
    struct buf body = BUF_INIT(4 << 20);

    (void)arg;
    if (str_eq(q->path, STR("/later"))) {
        pthread_t t;

        assert_true(thread_start(&t, answer_later, q));
        pthread_detach(t);
        return;
    }
    if (str_eq(q->path, STR("/stream"))) {
        pthread_mutex_lock(&w.mu);
        w.stream = http_stream_start(q, 200, "text/event-stream", NULL, 1 << 20);
        pthread_cond_signal(&w.cond);
        pthread_mutex_unlock(&w.mu);
        return;
    }
    if (str_eq(q->path, STR("/upgrade"))) {
        http_upgrade(q, "other", NULL, take_socket, NULL);
        return;
    }
    buf_addf(&body, "%d %.*s", q->method, STR_ARG(q->path));
    buf_add_char(&body, ' ');
    buf_add_str(&body, http_query(q, "name"));
    buf_add_char(&body, ' ');
    buf_add_str(&body, buf_view(&q->body));
    http_answer(q, 200, "text/plain", &body, (const char *const[]){"X-Test", "yes", NULL});
}

static void over(void *arg, struct http_request *q)
{
    (void)arg;
    (void)q;
    w.over++;
}

static int start(void **state)
{
    struct http_face face = {NULL, begin, handle, over, NULL};
    struct http_limits limits = {.body_bytes = 1000, .head_ms = 300, .body_ms = 300, .idle_ms = 3000};
    struct tide_err err;

    (void)state;
    w.server = http_server_new(&face, &limits);
    w.over = 0;
    w.stream = NULL;
    w.upgraded = false;
    assert_int_equal(http_server_listen(w.server, &(struct http_listen){.address = "127.0.0.1", .port = "0", .fd = -1},
                                        &w.port, &err),
                     TIDE_OK);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    http_server_free(w.server);
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

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads until `until` is there, or the end, five seconds at most. */
static const char *hear(int fd, struct buf *in, const char *until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (!strstr(buf_cstr(in), until) && poll(&p, 1, 5000) > 0) {
        char piece[4096];
        ssize_t n = recv(fd, piece, sizeof piece, 0);

        if (n <= 0)
            break;
        buf_add(in, piece, (size_t)n);
    }
    return buf_cstr(in);
}

static void await(bool (*is)(void))
{
    for (int i = 0; i < 5000 && !is(); i++)
        usleep(1000);
    assert_true(is());
}

static void answers_at_once_and_later(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    int fd = client();

    (void)state;
    say(fd, "GET /a/b?name=x%20y+z HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(fd, &in, "1 /a/b x y z "), "X-Test: yes"));
    buf_clear(&in);
    say(fd, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(fd, &in, "later"), "200 OK"));
    buf_clear(&in);
    say(fd, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    assert_non_null(strstr(hear(fd, &in, "4 /a  abc"), "200 OK"));
    buf_clear(&in);
    say(fd, "POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    assert_non_null(strstr(hear(fd, &in, "\r\n\r\n"), "403"));
    close(fd);
}

static bool four_over(void)
{
    return w.over == 4;
}

static void each_request_is_over_once(void **state)
{
    answers_at_once_and_later(state);
    await(four_over);
}

static void refuses_what_can_be_understood_in_two_ways(void **state)
{
    static const struct {
        const char *name, *head;
        int status; /* 0: the connection is closed without an answer, or the library's own 400 */
    } cases[] = {
        {"two lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
        {"length and coding",
         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"another coding", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400},
        {"a length that is none", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc", 400},
        {"negative length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -3\r\n\r\nabc", 400},
        {"two hosts", "GET / HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n", 400},
        {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
        {"two tokens", "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400},
        {"absolute target", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"not ASCII", "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"too big", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n", 413},
        {"huge", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413},
        {"version", "GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505},
        {"version", "GET / HTTP/1.9\r\nHost: h\r\n\r\n", 505},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
        char want[16];
        int fd = client();

        say(fd, cases[i].head);
        snprintf(want, sizeof want, " %d ", cases[i].status);
        if (!strstr(hear(fd, &in, "\r\n\r\n"), want))
            fail_msg("%s: wants %d, got: %s", cases[i].name, cases[i].status, buf_cstr(&in));
        close(fd);
    }
}

static void chunked_body_over_the_limit_is_refused(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    char chunk[1300];
    int fd = client();

    (void)state;
    memset(chunk, 'x', sizeof chunk);
    snprintf(chunk, sizeof chunk,
             "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n%01001d\r\n0\r\n\r\n", 7);
    say(fd, chunk);
    assert_non_null(strstr(hear(fd, &in, "\r\n\r\n"), " 413 "));
    close(fd);
}

static void late_heads_and_bodies_are_cut(void **state)
{
    static const char *const starts[] = {"GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
        int fd = client();

        say(fd, starts[i]);
        for (int k = 0; k < 40 && send(fd, "T", 1, MSG_NOSIGNAL) == 1 && i == 0; k++)
            usleep(50000); /* a byte now and then helps nobody */
        hear(fd, &in, "never");
        assert_null(strstr(buf_cstr(&in), "200"));
        close(fd);
    }
}

static struct http_stream *await_stream(void)
{
    pthread_mutex_lock(&w.mu);
    while (!w.stream)
        pthread_cond_wait(&w.cond, &w.mu);
    pthread_mutex_unlock(&w.mu);
    return w.stream;
}

static void streams_are_sent_as_they_are_written(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    int fd = client();

    (void)state;
    say(fd, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    for (int i = 0; i < 200; i++) {
        char line[32];

        snprintf(line, sizeof line, "data: <%d>\n\n", i);
        assert_true(http_stream_write(await_stream(), str_from(line)));
        if (i % 3 == 0)
            assert_non_null(strstr(hear(fd, &in, line), line)); /* the connection sleeps now and then */
    }
    http_stream_close(w.stream, false);
    assert_non_null(strstr(hear(fd, &in, "\r\n0\r\n\r\n"), "<199>"));
    close(fd);
}

static bool one_over(void)
{
    return w.over == 1;
}

static void stream_of_a_client_that_is_gone_says_so(void **state)
{
    int fd = client();
    bool wrote = true;

    (void)state;
    say(fd, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(http_stream_write(await_stream(), STR("x")));
    close(fd);
    for (int i = 0; i < 1000 && wrote; i++) {
        wrote = http_stream_write(w.stream, STR("more"));
        usleep(1000);
    }
    assert_false(wrote);
    assert_true(http_stream_is_gone(w.stream));
    http_stream_close(w.stream, false);
    await(one_over);
}

static void reader_that_does_not_read_is_bounded_and_dropped(void **state)
{
    static char block[65536];
    int fd = client(), n = 0;

    (void)state;
    say(fd, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    memset(block, 'x', sizeof block);
    while (http_stream_write(await_stream(), (struct str){block, sizeof block})) {
        assert_true(++n < 2000);
        usleep(500);
    }
    assert_true(http_stream_pending(w.stream) <= 1 << 20);
    http_stream_close(w.stream, true);
    await(one_over);
    close(fd);
}

static void upgraded_socket_is_the_callers(void **state)
{
    AUTO(buf_done) struct buf in = BUF_INIT(1 << 20);
    char got[8] = {0};
    int fd = client();

    (void)state;
    say(fd, "GET /upgrade HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nearly");
    hear(fd, &in, "\r\n\r\n");
    assert_non_null(strstr(buf_cstr(&in), " 101 "));
    pthread_mutex_lock(&w.mu);
    while (!w.upgraded)
        pthread_cond_wait(&w.cond, &w.mu);
    pthread_mutex_unlock(&w.mu);
    if (w.up.n_early < 5) {
        struct pollfd p = {.fd = w.up.fd, .events = POLLIN};

        assert_int_equal(poll(&p, 1, 5000), 1);
        assert_int_equal(recv(w.up.fd, got, sizeof got, 0), 5);
    } else {
        memcpy(got, w.up.early, 5);
    }
    assert_string_equal(got, "early");
    free(w.up.early);
    assert_int_equal(send(w.up.fd, "hello", 5, 0), 5);
    assert_non_null(strstr(hear(fd, &in, "hello"), "hello"));
    http_upgraded_close(&w.up);
    await(one_over);
    close(fd);
}

static void escapes(void **state)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
    } cases[] = {{"a%2Fb", "a/b"}, {"%41%62", "Ab"}, {"%4", NULL}, {"%", NULL},   {"%zz", NULL},
                 {"a%00b", NULL},  {"", ""},         {"%2f", "/"}, {"a+b", "a+b"}};
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str got;
        bool ok = http_unescape(&a, str_from(cases[i].text), false, &got);

        assert_int_equal(ok, cases[i].want != NULL);
        if (ok)
            assert_string_equal(got.ptr, cases[i].want);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        CASE(each_request_is_over_once),
        CASE(refuses_what_can_be_understood_in_two_ways),
        CASE(chunked_body_over_the_limit_is_refused),
        CASE(late_heads_and_bodies_are_cut),
        CASE(streams_are_sent_as_they_are_written),
        CASE(stream_of_a_client_that_is_gone_says_so),
        CASE(reader_that_does_not_read_is_bounded_and_dropped),
        CASE(upgraded_socket_is_the_callers),
        cmocka_unit_test(escapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
