/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket never blocks: each step waits for it with poll(), until the time of the request is over or somebody wants it to stop. A
 * kept connection that turns out to be closed is not an answer: the caller decides whether to send the request again.
 */
#include "net/http_client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/listen.h"
#include "net/tls_client.h"

#define PIECE ((size_t)64 << 10)
#define HEAD_MAX ((size_t)64 << 10)

struct http_client {
    struct http_client_options opt;
    int fd; /* -1: not connected */
    struct tls_client *tls;
    int64_t end_ms; /* of this request, by the monotonic clock; 0: none */
    enum http_lost lost;
};

struct http_client *http_client_new(const struct http_client_options *opt)
{
    struct http_client *c = mem_zero(sizeof *c);

    c->opt = *opt;
    c->opt.unix_path = opt->unix_path ? mem_dup(str_from(opt->unix_path)) : NULL;
    c->opt.host = mem_dup(str_from(opt->host));
    c->opt.port = mem_dup(str_from(opt->port));
    c->opt.pin = opt->pin ? mem_dup(str_from(opt->pin)) : NULL;
    c->fd = -1;
    return c;
}

static void disconnect_client(struct http_client *c)
{
    tls_client_free(TAKE(c->tls));
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

void http_client_free(struct http_client *c)
{
    if (!c)
        return;
    disconnect_client(c);
    free((char *)c->opt.unix_path);
    free((char *)c->opt.host);
    free((char *)c->opt.port);
    free((char *)c->opt.pin);
    free(c);
}

/* ---- waiting ---- */

static enum tide_code lose_connection(struct http_client *c, int failed, const char *what, struct tide_err *err)
{
    c->lost = HTTP_CUT;
    return failed ? tide_fail(err, TIDE_IO, "%s: %s", what, strerror(failed))
                  : tide_fail(err, TIDE_IO, "the connection was closed before there was an answer");
}

static enum tide_code await_socket(struct http_client *c, short events, struct tide_err *err)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = c->fd, .events = events}, {.fd = c->opt.stop_fd, .events = POLLIN}};
        int64_t left = c->end_ms ? c->end_ms - monotonic_ms() : 1000000;
        int n;

        if (c->opt.stop && *c->opt.stop)
            return tide_fail(err, TIDE_CANCELLED, "stopped");
        if (left <= 0) {
            c->lost = HTTP_LATE;
            return tide_fail(err, TIDE_IO, "the server did not answer in time");
        }
        n = poll(p, c->opt.stop_fd > 0 ? 2 : 1, (int)(left < 1000000 ? left : 1000000));
        if (n > 0 && p[0].revents)
            return TIDE_OK;
        if (n < 0 && errno != EINTR)
            return tide_fail_errno(err, errno, "wait for the server");
    }
}

/* ---- connecting ---- */

static bool is_loopback(const struct addrinfo *at)
{
    if (at->ai_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)at->ai_addr)->sin_addr.s_addr) >> 24 == 127;
    return at->ai_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)at->ai_addr)->sin6_addr);
}

/* An answer may take hours: what lies between must not forget the connection, and a machine that is gone is noticed. */
static void keep_alive(int fd)
{
    static const struct {
        int level, name, value;
    } rows[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                {SOL_SOCKET, SO_KEEPALIVE, 1},
                {IPPROTO_TCP, TCP_KEEPIDLE, 60},
                {IPPROTO_TCP, TCP_KEEPINTVL, 30},
                {IPPROTO_TCP, TCP_KEEPCNT, 4}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        (void)setsockopt(fd, rows[i].level, rows[i].name, &rows[i].value, sizeof rows[i].value);
}

/* 0, or errno; TIDE_CANCELLED and its like stand in *err. */
static int connect_to(struct http_client *c, const struct sockaddr *at, socklen_t len, struct tide_err *err)
{
    socklen_t size = sizeof(int);
    int failed = 0;

    c->fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return errno;
    failed = connect(c->fd, at, len) ? errno : 0;
    if (failed == EINPROGRESS)
        failed = await_socket(c, POLLOUT, err)                                 ? ETIMEDOUT
                 : getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0 ? errno
                                                                               : failed;
    if (failed)
        disconnect_client(c);
    else if (at->sa_family != AF_UNIX)
        keep_alive(c->fd);
    return failed;
}

static enum tide_code nobody(struct http_client *c, int failed, struct tide_err *err)
{
    if (err->code) /* stopped, or too late */
        return err->code;
    c->lost = HTTP_NOT_CONNECTED;
    return tide_fail(err, TIDE_IO, "no server answers there: %s", strerror(failed));
}

static enum tide_code connect_unix(struct http_client *c, struct tide_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int failed;

    if (strlen(c->opt.unix_path) > listen_unix_path_max())
        return tide_fail(err, TIDE_INVALID, "the path of a socket has at most %zu bytes", listen_unix_path_max());
    memcpy(at.sun_path, c->opt.unix_path, strlen(c->opt.unix_path));
    failed = connect_to(c, (const struct sockaddr *)&at, sizeof at, err);
    return failed ? nobody(c, failed, err) : TIDE_OK;
}

static enum tide_code connect_tcp(struct http_client *c, struct tide_err *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV},
                    *list = NULL;
    int failed = getaddrinfo(c->opt.host, c->opt.port, &hints, &list);

    if (failed)
        return tide_fail(err, failed == EAI_AGAIN ? TIDE_IO : TIDE_NOT_FOUND, "there is no host '%s': %s", c->opt.host,
                         gai_strerror(failed));
    for (const struct addrinfo *at = list; at && c->fd < 0 && !err->code; at = at->ai_next) {
        if (c->opt.tls || is_loopback(at))
            failed = connect_to(c, at->ai_addr, at->ai_addrlen, err);
        else
            (void)tide_fail(err, TIDE_DENIED,
                            "'%s' is on another machine, and http:// would show the token to everybody in between: "
                            "use https://",
                            c->opt.host);
    }
    freeaddrinfo(list);
    return c->fd >= 0 ? TIDE_OK : nobody(c, failed, err);
}

static enum tide_code shake_hands(struct http_client *c, struct tide_err *err)
{
    if (!c->opt.tls)
        return TIDE_OK;
    if (tls_client_new(c->fd, c->opt.host, c->opt.pin, &c->tls, err))
        return err->code;
    for (;;) {
        enum tls_step step = tls_client_shake(c->tls, err);

        if (step == TLS_DONE || step == TLS_FAILED)
            return err->code;
        if (await_socket(c, step == TLS_WANTS_WRITE ? POLLOUT : POLLIN, err))
            return err->code;
    }
}

static enum tide_code connect_server(struct http_client *c, struct tide_err *err)
{
    int64_t end_ms = c->end_ms, until = monotonic_ms() + c->opt.connect_ms;

    c->end_ms = end_ms && end_ms < until ? end_ms : until;
    err->code = TIDE_OK;
    if ((c->opt.unix_path ? connect_unix(c, err) : connect_tcp(c, err)) || shake_hands(c, err))
        disconnect_client(c);
    if (c->lost != HTTP_NOT_LOST)
        c->lost = HTTP_NOT_CONNECTED; /* nothing was sent yet */
    c->end_ms = end_ms;
    return err->code;
}

/* ---- bytes ---- */

/* TLS_FAILED: *err. */
static enum tls_step write_some(struct http_client *c, struct str bytes, size_t *ret_n, struct tide_err *err)
{
    ssize_t n;

    if (c->tls)
        return tls_client_write(c->tls, bytes, ret_n, err);
    n = send(c->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TLS_WANTS_WRITE;
    if (n < 0) {
        tide_fail(err, TIDE_IO, "send the request: %s", strerror(errno));
        return TLS_FAILED;
    }
    *ret_n = (size_t)n;
    return TLS_DONE;
}

static enum tls_step read_some(struct http_client *c, char *room, size_t *ret_n, struct tide_err *err)
{
    ssize_t n;

    if (c->tls)
        return tls_client_read(c->tls, room, PIECE, ret_n, err);
    n = recv(c->fd, room, PIECE, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TLS_WANTS_READ;
    if (n < 0) {
        tide_fail(err, TIDE_IO, "read the answer: %s", strerror(errno));
        return TLS_FAILED;
    }
    *ret_n = (size_t)n;
    return n ? TLS_DONE : TLS_CLOSED;
}

static enum tide_code send_all(struct http_client *c, struct str bytes, struct tide_err *err)
{
    while (bytes.len) {
        size_t n = 0;
        enum tls_step step = write_some(c, bytes, &n, err);

        if (step == TLS_FAILED) {
            c->lost = HTTP_CUT;
            return err->code;
        }
        if (step != TLS_DONE && await_socket(c, step == TLS_WANTS_READ ? POLLIN : POLLOUT, err))
            return err->code;
        bytes = (struct str){bytes.ptr + n, bytes.len - n};
    }
    return TIDE_OK;
}

static enum tide_code receive_reply(struct http_client *c, struct http_reply *r, struct tide_err *err)
{
    AUTO(mem_freep) char *room = mem_alloc(PIECE);

    while (!http_reply_is_over(r)) {
        size_t n = 0, used;
        enum tls_step step = read_some(c, room, &n, err);

        if (step == TLS_FAILED) {
            c->lost = HTTP_CUT;
            return err->code;
        }
        if (step == TLS_CLOSED && r->state == REPLY_HEAD && !r->head.len)
            return lose_connection(c, 0, "", err);
        if (step == TLS_CLOSED && http_reply_end(r, err)) {
            c->lost = HTTP_CUT;
            return err->code;
        }
        if (step == TLS_DONE && http_reply_feed(r, (struct str){room, n}, &used, err))
            return err->code = TIDE_IO; /* the error is the peer's, not the caller's */
        if (step == TLS_DONE && used < n)
            r->stays = false; /* what comes behind the answer is nobody's */
        if ((step == TLS_WANTS_READ || step == TLS_WANTS_WRITE) &&
            await_socket(c, step == TLS_WANTS_WRITE ? POLLOUT : POLLIN, err))
            return err->code;
    }
    return TIDE_OK;
}

/* ---- a request ---- */

static void write_host(const struct http_client *c, struct buf *out)
{
    bool v6 = strchr(c->opt.host, ':') != NULL, usual = strcmp(c->opt.port, c->opt.tls ? "443" : "80") == 0;

    buf_addf(out, "Host: %s%s%s%s%s\r\n", v6 ? "[" : "", c->opt.host, v6 ? "]" : "",
             c->opt.unix_path || usual ? "" : ":", c->opt.unix_path || usual ? "" : c->opt.port);
}

static void write_head(const struct http_client *c, const struct http_ask *ask, struct buf *out)
{
    buf_addf(out, "%s ", ask->method);
    buf_add_str(out, ask->target);
    buf_add_str(out, STR(" HTTP/1.1\r\n"));
    write_host(c, out);
    for (const char *const *f = ask->fields; f && *f; f += 2)
        buf_addf(out, "%s: %s\r\n", f[0], f[1]);
    if (ask->body.len)
        buf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", ask->body.len);
    else if (strcmp(ask->method, "GET") != 0)
        buf_add_str(out, STR("Content-Length: 0\r\n"));
    buf_add_str(out, STR("\r\n"));
}

/* A server that refuses a request before it was sent closes the connection, and may have said why. */
static enum tide_code receive_early(struct http_client *c, struct http_reply *r, struct tide_err *err)
{
    struct tide_err ignored = {0};

    if (receive_reply(c, r, &ignored)) {
        c->lost = HTTP_CUT;
        return err->code;
    }
    r->stays = false;
    c->lost = HTTP_NOT_LOST;
    *err = (struct tide_err){0};
    return TIDE_OK;
}

static enum tide_code ask_server(struct http_client *c, const struct http_ask *ask, struct http_reply *r,
                                 struct tide_err *err)
{
    AUTO(buf_done) struct buf head = BUF_INIT(HEAD_MAX);

    write_head(c, ask, &head);
    if (head.failed)
        return tide_fail(err, TIDE_TOO_BIG, "the request has more than %zu bytes in its head", HEAD_MAX);
    if (c->fd < 0 && connect_server(c, err))
        return err->code;
    if (!send_all(c, buf_view(&head), err) && !send_all(c, ask->body, err))
        return receive_reply(c, r, err);
    return c->lost == HTTP_CUT ? receive_early(c, r, err) : err->code;
}

enum tide_code http_client_ask(struct http_client *c, const struct http_ask *ask, struct http_reply *ret,
                               enum http_lost *ret_lost, struct tide_err *err)
{
    enum tide_code code;

    http_reply_init(ret, c->opt.head_max, c->opt.body_max);
    ret->take = ask->take;
    ret->arg = ask->arg;
    c->end_ms = ask->answer_ms ? monotonic_ms() + ask->answer_ms : 0;
    c->lost = HTTP_NOT_LOST;
    code = ask_server(c, ask, ret, err);
    if (code || !ret->stays)
        disconnect_client(c);
    *ret_lost = c->lost;
    return code;
}
