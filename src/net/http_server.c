/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners over libmicrohttpd, one epoll thread each, and the life of a request. The threads are ours: the library's own collects events
 * 128 at a time until there are fewer, and when there were just 128 it sleeps before it looks at them. The library has one time-out, for connections on
 * which nothing moves; a client that sends a byte now and then would hold its connection for ever. So each connection has a
 * deadline for what it owes (a head, a body), kept here, and a thread that shuts those down that are late. It sleeps while
 * nobody owes anything.
 */
#include "net/http_internal.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/thread.h"
#include "net/listen.h"

#define WATCH_MS 500 /* how exactly deadlines are kept */

struct http_server *http_server_new(const struct http_face *face, const struct http_limits *limits)
{
    static const struct http_limits defaults = {.head_bytes = 8192,
                                                .body_bytes = 1 << 20,
                                                .connections = 10000,
                                                .head_ms = 10000,
                                                .body_ms = 30000,
                                                .idle_ms = 60000};
    struct http_server *s = mem_zero(sizeof *s);

    s->face = *face;
    s->limits = limits ? *limits : defaults;
#define OR_DEFAULT(name) s->limits.name = s->limits.name ? s->limits.name : defaults.name
    OR_DEFAULT(head_bytes);
    OR_DEFAULT(body_bytes);
    OR_DEFAULT(connections);
    OR_DEFAULT(head_ms);
    OR_DEFAULT(body_ms);
    OR_DEFAULT(idle_ms);
#undef OR_DEFAULT
    pthread_mutex_init(&s->mu, NULL);
    cond_init_monotonic(&s->wake);
    return s;
}

/* ---- connections that owe something ---------------------------------------------------------------------------------- */

/* With mu held. False: nobody owes anything. */
static bool shut_late(struct http_server *s)
{
    int64_t now = monotonic_ms();
    bool any = false;

    for (struct http_connection *c = s->connections; c; c = c->next) {
        if (c->deadline_ms <= now) {
            shutdown(c->fd, SHUT_RDWR); /* the library notices, and closes it */
            c->deadline_ms = INT64_MAX;
            s->timed_out++;
        }
        any |= c->deadline_ms != INT64_MAX;
    }
    return any;
}

static void *watch_deadlines(void *arg)
{
    struct http_server *s = arg;
    struct timespec t;

    pthread_mutex_lock(&s->mu);
    while (!s->stopping) {
        if (!shut_late(s)) {
            pthread_cond_wait(&s->wake, &s->mu);
            continue;
        }
        t = monotonic_after(WATCH_MS);
        pthread_cond_timedwait(&s->wake, &s->mu, &t);
    }
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

/* With mu held. */
static void set_due(struct http_server *s, struct http_connection *c, int64_t in_ms)
{
    bool first = c->deadline_ms == INT64_MAX && in_ms;

    c->deadline_ms = in_ms ? monotonic_ms() + in_ms : INT64_MAX;
    if (first && !s->watching)
        s->watching = thread_start(&s->watcher, watch_deadlines, s);
    else if (first)
        pthread_cond_signal(&s->wake);
}

static struct http_connection *connection_of(struct MHD_Connection *connection)
{
    return mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void http_connection_due(struct http_exchange *x, int64_t in_ms)
{
    struct http_server *s = x->listener->server;
    struct http_connection *c = connection_of(x->connection);

    pthread_mutex_lock(&s->mu);
    set_due(s, c, in_ms);
    pthread_mutex_unlock(&s->mu);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_listener *l = arg;
    struct http_server *s = l->server;
    struct http_connection *c = *context;

    pthread_mutex_lock(&s->mu);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c = mem_zero(sizeof *c);
        c->fd = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        c->deadline_ms = INT64_MAX;
        c->next = s->connections;
        c->before = &s->connections;
        if (c->next)
            c->next->before = &c->next;
        s->connections = c;
        s->open++;
        set_due(s, c, s->limits.head_ms);
        *context = c;
    } else if (c) {
        *c->before = c->next;
        if (c->next)
            c->next->before = c->before;
        s->open--;
        free(c);
        *context = NULL;
    }
    pthread_mutex_unlock(&s->mu);
}

/* ---- requests ---- */

static void *on_target(void *arg, const char *target, struct MHD_Connection *connection)
{
    struct http_listener *l = arg;
    struct http_exchange *x = http_exchange_new(l, target);

    x->connection = connection;
    l->server->requests++;
    return x;
}

static void refuse_exchange(struct http_exchange *x, int status, const char *why)
{
    const struct http_face *face = &x->listener->server->face;
    struct buf body = BUF_INIT(1024);

    x->listener->server->refused++;
    if (face->refuse) {
        face->refuse(face->arg, &x->request, status, why);
        return;
    }
    buf_addf(&body, "%s\n", why);
    http_answer(&x->request, status, "text/plain; charset=utf-8", &body,
                (const char *const[]){"Connection", "close", NULL});
}

static enum MHD_Result begin_request(struct http_exchange *x, const char *method, const char *version)
{
    const struct http_face *face = &x->listener->server->face;
    const char *why = NULL;
    int status = http_read_head(x, method, version, &why);

    if (status) {
        refuse_exchange(x, status, why);
        return http_send(x);
    }
    x->begun = true;
    x->step = HTTP_STEP_BODY;
    if (!face->begin(face->arg, &x->request)) {
        INVARIANT(x->response);
        return http_send(x);
    }
    if (http_is_too_big(&x->request)) {
        refuse_exchange(x, 413, "the body is too big");
        return http_send(x);
    }
    http_connection_due(x, x->listener->server->limits.body_ms);
    x->request.body.max = x->request.body_max;
    return MHD_YES;
}

/* What is too big is read to its end, as far as that is near, so that the client sees the answer. */
static enum MHD_Result take_body(struct http_exchange *x, const char *bytes, size_t *n)
{
    struct buf *body = &x->request.body;
    const struct http_sink *sink = &x->request.sink;

    if (body->failed && (sink->arg || *n > body->max))
        return MHD_NO;
    if (sink->arg) { /* it may take long, as long as something comes */
        http_connection_due(x, x->listener->server->limits.body_ms);
        body->failed = !sink->take(sink->arg, (struct str){bytes, *n});
    } else {
        buf_add(body, bytes, *n);
    }
    *n = 0;
    return MHD_YES;
}

static enum MHD_Result handle_request(struct http_exchange *x)
{
    const struct http_face *face = &x->listener->server->face;
    bool answered;

    x->step = HTTP_STEP_HANDLE;
    http_connection_due(x, 0);
    if (x->request.body.failed)
        refuse_exchange(x, 413, "the body is too big");
    else
        face->handle(face->arg, &x->request);
    pthread_mutex_lock(&x->mu);
    answered = x->response != NULL;
    if (!answered) {
        mhd.suspend_connection(x->connection);
        x->suspended = true;
    }
    pthread_mutex_unlock(&x->mu);
    return answered ? http_send(x) : MHD_YES;
}

static enum MHD_Result on_access(void *arg, struct MHD_Connection *connection, const char *path, const char *method,
                                 const char *version, const char *bytes, size_t *n, void **context)
{
    struct http_exchange *x = *context;

    (void)arg;
    (void)connection;
    (void)path; /* the target, as it came, has it */
    switch (x->step) {
    case HTTP_STEP_HEAD:
        return begin_request(x, method, version);
    case HTTP_STEP_BODY:
        return *n ? take_body(x, bytes, n) : handle_request(x);
    case HTTP_STEP_HANDLE:
        return http_send(x);
    case HTTP_STEP_ANSWERED:
        break;
    }
    *n = 0;
    return MHD_YES;
}

static void on_over(void *arg, struct MHD_Connection *connection, void **context, enum MHD_RequestTerminationCode why)
{
    struct http_listener *l = arg;
    struct http_exchange *x = *context;

    (void)connection;
    if (!x)
        return;
    *context = NULL;
    if (x->stream)
        http_stream_lost(x->stream);
    if (x->taken && !x->was_taken)
        x->taken(x->taken_arg, NULL);
    if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK && !x->taken)
        http_connection_due(x, l->server->limits.idle_ms);
    if (x->begun)
        l->server->face.over(l->server->face.arg, &x->request);
    if (x->request.sink.arg)
        x->request.sink.done(x->request.sink.arg);
    if (x->response)
        mhd.destroy_response(x->response);
    pthread_mutex_destroy(&x->mu);
    buf_done(&x->request.body);
    arena_done(&x->request.arena);
    free(x);
}

/* ---- listening ---- */

static size_t keep_escapes(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

static void no_log(void *arg, const char *fmt, va_list args)
{
    (void)arg;
    (void)fmt;
    (void)args;
}

static struct MHD_Daemon *start_daemon(struct http_listener *l, int fd, const struct http_listen *on)
{
    const struct http_limits *limits = &l->server->limits;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_TURBO | MHD_USE_ERROR_LOG |
                     (on->certificate ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)on->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)on->key},
        {MHD_OPTION_END, 0, NULL},
    };

    return mhd.start_daemon(
        flags, 0, NULL, NULL, on_access, l, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_URI_LOG_CALLBACK, (void *(*)(void *, const char *, struct MHD_Connection *))on_target, l,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_over, l,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_CONNECTION_LIMIT, limits->connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, limits->per_address, MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits->head_bytes,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(limits->idle_ms / 1000 + 1), MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, on->certificate ? tls : tls + 2, MHD_OPTION_END);
}

/* How long nothing is due; -1: until something comes. */
static int patience_ms(struct http_listener *l)
{
    MHD_UNSIGNED_LONG_LONG ms;

    return mhd.get_timeout(l->daemon, &ms) != MHD_YES ? -1 : ms < INT_MAX ? (int)ms : INT_MAX;
}

void http_listener_wake(struct http_listener *l)
{
    (void)eventfd_write(l->wake_fd, 1);
}

static void *run_daemon(void *arg)
{
    struct http_listener *l = arg;
    int epoll_fd = mhd.get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct pollfd p[2] = {{.fd = epoll_fd, .events = POLLIN}, {.fd = l->wake_fd, .events = POLLIN}};
    eventfd_t n;

    while (!l->stopping) {
        mhd.run(l->daemon);
        if (poll(p, 2, patience_ms(l)) > 0 && p[1].revents)
            (void)eventfd_read(l->wake_fd, &n);
    }
    return NULL;
}

static bool start_listener(struct http_listener *l, int fd, const struct http_listen *on)
{
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->daemon = l->wake_fd < 0 ? NULL : start_daemon(l, fd, on);
    if (l->daemon && thread_start(&l->thread, run_daemon, l))
        return true;
    if (l->daemon) {
        (void)mhd.quiesce_daemon(l->daemon); /* the socket is the caller's */
        mhd.stop_daemon(l->daemon);
    }
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    return false;
}

static void stop_listener(struct http_listener *l)
{
    l->stopping = true;
    http_listener_wake(l);
    pthread_join(l->thread, NULL);
    mhd.stop_daemon(l->daemon);
    close(l->wake_fd);
    if (l->quiet_fd >= 0)
        close(l->quiet_fd);
    free(l);
}

enum tide_code http_server_listen(struct http_server *s, const struct http_listen *on, int *ret_port,
                                  struct tide_err *err)
{
    struct listen_place place;
    struct http_listener *l;
    int fd = on->fd;

    if (mhd_load(err) || (on->address && listen_bind_tcp(on->address, on->port, &fd, err)))
        return err->code;
    if (listen_place_of(fd, &place, err) || (!on->shared && listen(fd, SOMAXCONN))) {
        if (!err->code)
            tide_fail(err, errno == EADDRINUSE ? TIDE_EXISTS : TIDE_IO, "listen on %s port %d: %s", place.address,
                      place.port, strerror(errno));
        close(fd);
        return err->code;
    }
    l = mem_zero(sizeof *l);
    l->server = s;
    l->quiet_fd = -1;
    l->inherited = on->shared;
    l->by = place.is_unix ? HTTP_BY_UNIX : on->certificate ? HTTP_BY_TLS : HTTP_BY_TCP;
    if (!start_listener(l, fd, on)) {
        close(fd);
        free(l);
        return tide_fail(err, TIDE_FAILED, "%s",
                         on->certificate ? "the certificate and its key do not fit together, or are no PEM"
                                         : "the HTTP server does not start");
    }
    l->next = s->listeners;
    s->listeners = l;
    if (ret_port)
        *ret_port = place.port;
    return TIDE_OK;
}

void http_server_quiesce(struct http_server *s)
{
    for (struct http_listener *l = s->listeners; l; l = l->next) {
        l->quiet_fd = mhd.quiesce_daemon(l->daemon);
        if (l->quiet_fd >= 0 && !l->inherited)
            shutdown(l->quiet_fd, SHUT_RDWR); /* clients are refused; it is closed when the thread is gone */
    }
}

void http_server_free(struct http_server *s)
{
    struct http_listener *next;

    if (!s)
        return;
    for (struct http_listener *l = s->listeners; l; l = next) {
        next = l->next;
        stop_listener(l);
    }
    pthread_mutex_lock(&s->mu);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mu);
    if (s->watching)
        pthread_join(s->watcher, NULL);
    INVARIANT(!s->connections);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mu);
    free(s);
}

void http_server_count(struct http_server *s, struct http_counts *ret)
{
    *ret = (struct http_counts){s->requests, s->refused, s->open, s->timed_out};
}
