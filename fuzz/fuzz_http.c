/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and WebSocket frames, as bytes on a socket. The first byte decides: raw bytes to the HTTP server, or frames behind a
 * handshake. Whatever comes, the server answers or closes, and every request that began is over once.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct http_server *server;
static struct websocket_loop *loop;
static int port;
static atomic_int open_requests;

static bool begin(void *arg, struct http_request *q)
{
    (void)arg;
    open_requests++;
    q->body_max = 4096;
    return true;
}

static int pass(void *arg, struct str name, struct str value)
{
    *(size_t *)arg += name.len + value.len;
    return 0;
}

static void handle(void *arg, struct http_request *q)
{
    struct buf body = BUF_INIT(1 << 20);
    struct tide_err err;
    struct str path;
    size_t n = 0;
    int status;

    (void)arg;
    if (!websocket_refuses(q, &status)) {
        assert(!websocket_accept(loop, q, NULL, NULL, &err));
        return;
    }
    if (!http_unescape(&q->arena, q->path, false, &path) || !http_query_each(q, pass, &n)) {
        http_answer(q, 400, NULL, NULL, NULL);
        return;
    }
    buf_addf(&body, "%zu", n);
    buf_add_str(&body, path);
    buf_add_str(&body, buf_view(&q->body));
    http_answer(q, 200, "application/octet-stream", &body, NULL);
}

static void over(void *arg, struct http_request *q)
{
    (void)arg;
    (void)q;
    open_requests--;
}

static void opened(void *arg, struct websocket *ws, void *user)
{
    (void)arg;
    (void)ws;
    (void)user;
}

static void message(void *arg, struct websocket *ws, struct str text)
{
    (void)arg;
    assert(str_is_utf8(text, NULL));
    (void)websocket_send(ws, text);
}

static void closed(void *arg, struct websocket *ws)
{
    (void)arg;
    websocket_release(ws);
}

static void start(void)
{
    struct http_face face = {.begin = begin, .handle = handle, .over = over};
    struct websocket_face sockets = {NULL, opened, message, closed, NULL};
    struct tide_err err;

    loop = websocket_loop_new(&sockets, NULL);
    server = http_server_new(&face, &(struct http_limits){.head_bytes = 8192});
    assert(
        !http_server_listen(server, &(struct http_listen){.address = "127.0.0.1", .port = "0", .fd = -1}, &port, &err));
}

static void drain(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char piece[8192];

    while (poll(&p, 1, 20) > 0 && recv(fd, piece, sizeof piece, 0) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char handshake[] = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger reset = {.l_onoff = 1}; /* no port stays in TIME_WAIT */
    int fd;

    if (!server)
        start();
    if (!size)
        return 0;
    at.sin_port = htons((uint16_t)port);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(!connect(fd, (struct sockaddr *)&at, sizeof at));
    if (data[0] & 1)
        (void)!send(fd, handshake, sizeof handshake - 1, MSG_NOSIGNAL);
    (void)!send(fd, data + 1, size - 1, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    drain(fd);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    for (int i = 0; i < 2000 && (open_requests || websocket_count(loop)); i++)
        usleep(1000);
    assert(!open_requests && !websocket_count(loop));
    return 0;
}
