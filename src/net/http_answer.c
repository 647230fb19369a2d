/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers, from any thread. The server's thread may be inside handle() while another one answers: `mu` decides whether the answer is
 * sent on the way out of handle(), or the connection sleeps and is woken. A stream has two holders, the caller and the connection;
 * the last one frees it.
 */
#include <sys/socket.h>

#include "base/invariant.h"
#include "net/http_internal.h"

#define STREAM_BLOCK 512 /* of clients that speak HTTP/1.0; chunks are of the connection's buffer */

struct http_stream {
    pthread_mutex_t mu;
    struct MHD_Connection *connection;
    struct http_listener *listener;
    int fd;
    struct buf waiting; /* written, not sent, but for `sent` bytes of it; http_stream_write() keeps it within `max` */
    size_t sent, max;
    bool sleeping; /* the connection is suspended: a write wakes it */
    bool ended, aborted, gone;
    int holders;
};

static void resume_answer(struct http_listener *l, struct MHD_Connection *connection)
{
    mhd.resume_connection(connection);
    http_listener_wake(l);
}

/* ---- giving an answer ---- */

static void add_fields(struct MHD_Response *r, const char *type, const char *const *fields)
{
    if (type)
        mhd.add_response_header(r, "Content-Type", type);
    for (; fields && fields[0]; fields += 2)
        mhd.add_response_header(r, fields[0], fields[1]);
}

static void give_response(struct http_request *q, int status, struct MHD_Response *r)
{
    struct http_exchange *x = q->exchange;
    struct http_listener *l = x->listener;
    struct MHD_Connection *sleeping;

    pthread_mutex_lock(&x->mu);
    INVARIANT(!x->response); /* one answer */
    x->status = status;
    x->response = r;
    sleeping = x->suspended ? x->connection : NULL;
    pthread_mutex_unlock(&x->mu);
    if (sleeping) /* from here on the exchange may be gone */
        resume_answer(l, sleeping);
}

void http_answer(struct http_request *q, int status, const char *type, struct buf *body, const char *const *fields)
{
    struct buf none = BUF_INIT(0);
    size_t n;
    struct MHD_Response *r;

    body = body ? body : &none;
    n = body->len;
    r = mhd.create_response_from_buffer(n, buf_take(body), MHD_RESPMEM_MUST_FREE);
    add_fields(r, type, fields);
    give_response(q, status, r);
}

void http_answer_const(struct http_request *q, int status, const char *type, struct str body, const char *const *fields)
{
    struct MHD_Response *r = mhd.create_response_from_buffer(body.len, (void *)body.ptr, MHD_RESPMEM_PERSISTENT);

    add_fields(r, type, fields);
    give_response(q, status, r);
}

/* On the server's thread. */
enum MHD_Result http_send(struct http_exchange *x)
{
    x->step = HTTP_STEP_ANSWERED;
    http_connection_due(x, 0);
    return mhd.queue_response(x->connection, (unsigned)x->status, x->response);
}

/* ---- streams ---- */

static void let_stream_go(struct http_stream *s)
{
    int left;

    pthread_mutex_lock(&s->mu);
    left = --s->holders;
    pthread_mutex_unlock(&s->mu);
    if (left)
        return;
    pthread_mutex_destroy(&s->mu);
    buf_done(&s->waiting);
    free(s);
}

/* With mu held. */
static size_t take_waiting(struct http_stream *s, char *out, size_t max)
{
    size_t n = s->waiting.len - s->sent;

    n = n < max ? n : max;
    memcpy(out, s->waiting.ptr + s->sent, n);
    s->sent += n;
    if (s->sent == s->waiting.len) { /* most streams are idle: they keep nothing */
        s->sent = 0;
        buf_done(&s->waiting);
        s->waiting = (struct buf)BUF_INIT(SIZE_MAX / 4);
    }
    return n;
}

static ssize_t read_stream(void *arg, uint64_t at, char *out, size_t max)
{
    struct http_stream *s = arg;
    ssize_t n = 0;

    (void)at;
    pthread_mutex_lock(&s->mu);
    if (s->aborted) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (s->waiting.len) {
        n = (ssize_t)take_waiting(s, out, max);
    } else if (s->ended) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        s->sleeping = true;
        mhd.suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&s->mu);
    return n;
}

static void no_reader(void *arg)
{
    (void)arg; /* http_stream_lost() comes, whatever happens */
}

struct http_stream *http_stream_start(struct http_request *q, int status, const char *type, const char *const *fields,
                                      size_t max)
{
    struct http_exchange *x = q->exchange;
    struct http_stream *s = mem_zero(sizeof *s);
    struct MHD_Response *r;

    pthread_mutex_init(&s->mu, NULL);
    s->connection = x->connection;
    s->listener = x->listener;
    s->fd = mhd.get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    s->max = max;
    s->waiting = (struct buf)BUF_INIT(SIZE_MAX / 4);
    s->holders = 2;
    x->stream = s;
    r = mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, s, no_reader);
    add_fields(r, type, fields);
    arena_done(&q->arena); /* it may last for days */
    give_response(q, status, r);
    return s;
}

/* With mu held. */
static void wake_stream(struct http_stream *s)
{
    if (!s->sleeping || s->gone)
        return;
    s->sleeping = false;
    resume_answer(s->listener, s->connection);
}

/* With mu held. A reader may never have read all of it: what was sent goes when it is the greater part. */
static void forget_sent(struct http_stream *s)
{
    struct buf *w = &s->waiting;

    if (s->sent <= w->len / 2)
        return;
    memmove(w->ptr, w->ptr + s->sent, w->len - s->sent);
    w->len -= s->sent;
    s->sent = 0;
}

bool http_stream_write(struct http_stream *s, struct str bytes)
{
    size_t pending;
    bool ok;

    pthread_mutex_lock(&s->mu);
    pending = s->waiting.len - s->sent;
    ok = !s->gone && !s->ended && (!pending || (pending <= s->max && bytes.len <= s->max - pending));
    if (ok) {
        forget_sent(s);
        buf_add_str(&s->waiting, bytes);
        wake_stream(s);
    }
    pthread_mutex_unlock(&s->mu);
    return ok;
}

bool http_stream_is_gone(struct http_stream *s)
{
    bool gone;

    pthread_mutex_lock(&s->mu);
    gone = s->gone;
    pthread_mutex_unlock(&s->mu);
    return gone;
}

size_t http_stream_pending(struct http_stream *s)
{
    size_t n;

    pthread_mutex_lock(&s->mu);
    n = s->waiting.len - s->sent;
    pthread_mutex_unlock(&s->mu);
    return n;
}

void http_stream_close(struct http_stream *s, bool abort)
{
    pthread_mutex_lock(&s->mu);
    s->ended = true;
    s->aborted |= abort;
    if (abort && !s->gone)
        shutdown(s->fd, SHUT_RDWR); /* its client may read nothing: the library would wait for it */
    wake_stream(s);
    pthread_mutex_unlock(&s->mu);
    let_stream_go(s);
}

void http_stream_lost(struct http_stream *s)
{
    pthread_mutex_lock(&s->mu);
    s->gone = true;
    pthread_mutex_unlock(&s->mu);
    let_stream_go(s);
}

/* ---- upgrades ---- */

static void on_upgraded(void *arg, struct MHD_Connection *connection, void *context, const char *early, size_t n_early,
                        MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct http_exchange *x = arg;
    struct http_upgraded up = {.fd = fd, .handle = handle, .listener = x->listener, .n_early = n_early};

    (void)connection;
    (void)context;
    if (n_early)
        up.early = mem_dup((struct str){early, n_early});
    x->was_taken = true;
    x->taken(x->taken_arg, &up);
}

void http_upgrade(struct http_request *q, const char *protocol, const char *const *fields,
                  void (*taken)(void *arg, const struct http_upgraded *up), void *arg)
{
    struct http_exchange *x = q->exchange;
    struct MHD_Response *r = mhd.create_response_for_upgrade(on_upgraded, x);

    x->taken = taken;
    x->taken_arg = arg;
    mhd.add_response_header(r, "Upgrade", protocol);
    add_fields(r, NULL, fields);
    give_response(q, 101, r);
}

void http_upgraded_close(const struct http_upgraded *up)
{
    struct http_listener *l = up->listener;

    mhd.upgrade_action(up->handle, MHD_UPGRADE_ACTION_CLOSE);
    http_listener_wake(l);
}
