/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on the loopback that answers one request after another with bytes prepared by the test, and keeps what it was
 * asked. It is a thread of the test and ends with it.
 */
#ifndef TESTS_AGENT_SERVER_H
#define TESTS_AGENT_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "kit.h"

enum then { KEEP, CLOSE, STALL, RESET, DRIP };

struct canned {
    const char *bytes; /* the whole answer, head included */
    enum then then;
    size_t
        cut; /* how much of it is sent; 0: all. DRIP: what is behind it is sent again and again, until somebody gives up */
};

struct run_server {
    int fd, port, stop[2];
    pthread_t thread;
    const struct canned *answers;
    size_t n_answers, n_requests;
    int n_connections;
    struct buf request; /* the latest, head and body */
};

static void server_write(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = send(fd, bytes, n, MSG_NOSIGNAL);

        if (put <= 0)
            return; /* the client has hung up */
        bytes += put;
        n -= (size_t)put;
    }
}

/* The length that the head announces. */
static size_t server_body_len(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");

    return at ? strtoul(at + 17, NULL, 10) : 0;
}

/* False: the other side has hung up. */
static bool server_read(struct run_server *s, int fd)
{
    const char *body = NULL;

    buf_clear(&s->request);
    while (!body || s->request.len < (size_t)(body - s->request.ptr) + server_body_len(s->request.ptr)) {
        char *room = buf_reserve(&s->request, 65536);
        ssize_t got = room ? recv(fd, room, 65536, 0) : 0;

        if (got <= 0)
            return false;
        s->request.len += (size_t)got;
        body = strstr(buf_cstr(&s->request), "\r\n\r\n");
        body = body ? body + 4 : NULL;
    }
    return true;
}

/* Holds the line until the client or the test gives up. */
static void server_stall(struct run_server *s, int fd)
{
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = s->stop[0], .events = POLLIN}};

    poll(p, 2, 20000);
}

static void server_drip(struct run_server *s, int fd, const char *drop)
{
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = s->stop[0], .events = POLLIN}};

    for (int i = 0; i < 4000 && poll(p, 2, 5) == 0; i++)
        server_write(fd, drop, strlen(drop));
}

static bool server_answer(struct run_server *s, int fd)
{
    const struct canned *c;
    const struct linger hard = {1, 0};

    if (!server_read(s, fd))
        return false;
    c = &s->answers[s->n_requests < s->n_answers ? s->n_requests : s->n_answers - 1];
    s->n_requests++;
    server_write(fd, c->bytes, c->cut ? c->cut : strlen(c->bytes));
    if (c->then == STALL)
        server_stall(s, fd);
    if (c->then == DRIP)
        server_drip(s, fd, c->bytes + c->cut);
    if (c->then == RESET)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    return c->then == KEEP;
}

static void *server_run(void *arg)
{
    struct run_server *s = arg;
    int fd = -1;

    for (;;) {
        struct pollfd p[] = {
            {.fd = s->stop[0], .events = POLLIN}, {.fd = s->fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

        poll(p, 3, -1);
        if (p[0].revents)
            break;
        if (fd >= 0 && p[2].revents && !server_answer(s, fd)) {
            close(fd);
            fd = -1;
        } else if (p[1].revents) {
            if (fd >= 0)
                close(fd);
            fd = accept(s->fd, NULL, NULL);
            s->n_connections++;
        }
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void server_start(struct run_server *s, const struct canned *answers, size_t n)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;

    *s = (struct run_server){.answers = answers, .n_answers = n, .request = BUF_INIT((size_t)32 << 20)};
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pipe(s->stop), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
}

/* After it, what the server has kept may be looked at. */
static void server_stop(struct run_server *s)
{
    assert_int_equal(write(s->stop[1], "x", 1), 1);
    pthread_join(s->thread, NULL);
    close(s->stop[0]);
    close(s->stop[1]);
    close(s->fd);
}

static void server_done(struct run_server *s)
{
    buf_done(&s->request);
}

#endif
