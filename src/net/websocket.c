/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames are wslay's; here are the sockets, the mailbox and the time. Other threads reach a connection through its list of messages to
 * send, under `mu`, and wake the loop with an eventfd; everything else of it belongs to the loop's thread. A connection has two
 * holders, the loop and the caller: the last one frees it.
 */
#include "net/websocket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <wslay/wslay.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/thread.h"
#include "net/library.h"
#include "net/tls.h"

#define LEAVE_MS 1000
#define FRAMES_MAX 20000 /* that wait to go out */

static struct {
    __typeof__(&wslay_event_context_server_init) event_context_server_init;
    __typeof__(&wslay_event_context_free) event_context_free;
    __typeof__(&wslay_event_config_set_max_recv_msg_length) event_config_set_max_recv_msg_length;
    __typeof__(&wslay_event_recv) event_recv;
    __typeof__(&wslay_event_send) event_send;
    __typeof__(&wslay_event_want_read) event_want_read;
    __typeof__(&wslay_event_want_write) event_want_write;
    __typeof__(&wslay_event_queue_msg) event_queue_msg;
    __typeof__(&wslay_event_queue_close) event_queue_close;
    __typeof__(&wslay_event_set_error) event_set_error;
    __typeof__(&wslay_event_get_queued_msg_length) event_get_queued_msg_length;
    __typeof__(&wslay_event_get_queued_msg_count) event_get_queued_msg_count;
    __typeof__(&wslay_event_get_close_received) event_get_close_received;
    __typeof__(&wslay_event_get_close_sent) event_get_close_sent;
} wslay;

static const struct library_symbol symbols[] = {
#define SYMBOL(name) LIBRARY_SYMBOL(wslay, "wslay_", name)
    SYMBOL(event_context_server_init),
    SYMBOL(event_context_free),
    SYMBOL(event_config_set_max_recv_msg_length),
    SYMBOL(event_recv),
    SYMBOL(event_send),
    SYMBOL(event_want_read),
    SYMBOL(event_want_write),
    SYMBOL(event_queue_msg),
    SYMBOL(event_queue_close),
    SYMBOL(event_set_error),
    SYMBOL(event_get_queued_msg_length),
    SYMBOL(event_get_queued_msg_count),
    SYMBOL(event_get_close_received),
    SYMBOL(event_get_close_sent),
#undef SYMBOL
};

static struct library library = {
    .name = "libwslay.so.1",
    .package = "libwslay1",
    .what = "there are no WebSockets",
    .symbols = symbols,
    .n = sizeof symbols / sizeof symbols[0],
    .mu = PTHREAD_MUTEX_INITIALIZER,
};

struct outgoing {
    struct outgoing *next;
    size_t len;
    char bytes[];
};

struct websocket {
    struct websocket_loop *loop;
    void *user;

    pthread_mutex_t mu; /* of what other threads touch, to `holders` */
    struct outgoing *first, **last;
    size_t unsent; /* bytes of it, and of what wslay has not sent */
    unsigned close_code;
    char close_reason[64];
    bool noted; /* in the mailbox */
    bool gone;
    int holders;
    struct websocket *next_noted;

    /* The loop's. */
    struct http_upgraded up;
    size_t early_taken;
    wslay_event_context_ptr context;
    struct websocket *next, **before;
    int64_t heard_ms;
    bool asked, watches_write;
    bool broken; /* the client is gone */
    bool
        leaving; /* the close frame is sent: what comes is read and dropped, or the client would not get to see the frame */
};

struct websocket_loop {
    struct websocket_face face;
    struct websocket_limits limits;
    int epoll, wake;
    pthread_t thread;
    atomic_size_t n;
    struct websocket *list; /* the thread's */
    int64_t ticked_ms;

    pthread_mutex_t mu; /* of the mailbox; never taken with a connection's held by this thread in the other order */
    struct websocket *noted, *accepted;
    bool running, stopping;
};

static void wake_loop(struct websocket_loop *loop)
{
    uint64_t one = 1;

    (void)!write(loop->wake, &one, sizeof one);
}

/* ---- what other threads do ------------------------------------------------------------------------------------------ */

void websocket_release(struct websocket *ws)
{
    int left;

    pthread_mutex_lock(&ws->mu);
    left = --ws->holders;
    pthread_mutex_unlock(&ws->mu);
    if (left)
        return;
    for (struct outgoing *next, *o = ws->first; o; o = next) {
        next = o->next;
        free(o);
    }
    pthread_mutex_destroy(&ws->mu);
    free(ws);
}

/* With ws->mu held. The mailbox keeps it alive. */
static void note_change(struct websocket *ws)
{
    struct websocket_loop *loop = ws->loop;

    if (ws->noted)
        return;
    ws->noted = true;
    ws->holders++;
    pthread_mutex_lock(&loop->mu);
    ws->next_noted = loop->noted;
    loop->noted = ws;
    pthread_mutex_unlock(&loop->mu);
    wake_loop(loop);
}

bool websocket_send(struct websocket *ws, struct str text)
{
    struct outgoing *o = mem_alloc(sizeof *o + text.len);
    bool ok;

    o->next = NULL;
    o->len = text.len;
    if (text.len) /* of an empty message nobody gives a pointer */
        memcpy(o->bytes, text.ptr, text.len);
    pthread_mutex_lock(&ws->mu);
    ok = !ws->gone && !ws->close_code && (!ws->unsent || ws->unsent + text.len <= ws->loop->limits.unsent_bytes);
    if (ok) {
        *ws->last = o;
        ws->last = &o->next;
        ws->unsent += o->len;
        note_change(ws);
    }
    pthread_mutex_unlock(&ws->mu);
    if (!ok)
        free(o);
    return ok;
}

size_t websocket_pending(struct websocket *ws)
{
    size_t n;

    pthread_mutex_lock(&ws->mu);
    n = ws->unsent;
    pthread_mutex_unlock(&ws->mu);
    return n;
}

void websocket_close(struct websocket *ws, unsigned code, const char *reason)
{
    pthread_mutex_lock(&ws->mu);
    if (!ws->gone && !ws->close_code) {
        ws->close_code = code;
        snprintf(ws->close_reason, sizeof ws->close_reason, "%s", reason);
        note_change(ws);
    }
    pthread_mutex_unlock(&ws->mu);
}

void websocket_set_user(struct websocket *ws, void *user)
{
    ws->user = user;
}

void *websocket_user(const struct websocket *ws)
{
    return ws->user;
}

size_t websocket_count(struct websocket_loop *loop)
{
    return loop->n;
}

/* ---- frames: the loop's thread --------------------------------------------------------------------------------------- */

/* Each ping is answered, and a client may send them without reading: what it makes us keep has an end. */
static bool owes_too_much(const struct websocket *ws)
{
    return wslay.event_get_queued_msg_count(ws->context) > FRAMES_MAX;
}

static ssize_t on_receive(wslay_event_context_ptr context, uint8_t *out, size_t max, int flags, void *arg)
{
    struct websocket *ws = arg;
    size_t early = ws->up.n_early - ws->early_taken;
    ssize_t n;

    (void)flags;
    if (owes_too_much(ws)) {
        ws->broken = true;
        wslay.event_set_error(context, WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
    }
    if (early) {
        n = (ssize_t)(early < max ? early : max);
        memcpy(out, ws->up.early + ws->early_taken, (size_t)n);
        ws->early_taken += (size_t)n;
        return n;
    }
    do
        n = recv(ws->up.fd, out, max, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        ws->heard_ms = monotonic_ms();
        ws->asked = false;
        return n;
    }
    ws->broken = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    wslay.event_set_error(context, ws->broken ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
    return -1;
}

static ssize_t on_send(wslay_event_context_ptr context, const uint8_t *bytes, size_t n, int flags, void *arg)
{
    struct websocket *ws = arg;
    ssize_t sent;

    do
        sent = send(ws->up.fd, bytes, n, MSG_NOSIGNAL | (flags & WSLAY_MSG_MORE ? MSG_MORE : 0));
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        wslay.event_set_error(context, errno == EAGAIN || errno == EWOULDBLOCK ? WSLAY_ERR_WOULDBLOCK
                                                                               : WSLAY_ERR_CALLBACK_FAILURE);
    return sent;
}

static void on_message(wslay_event_context_ptr context, const struct wslay_event_on_msg_recv_arg *m, void *arg)
{
    static const char only_text[] = "only text messages are taken";
    struct websocket *ws = arg;
    const struct websocket_face *face = &ws->loop->face;

    if (m->opcode == WSLAY_TEXT_FRAME)
        face->message(face->arg, ws, (struct str){(const char *)m->msg, m->msg_length});
    else if (m->opcode == WSLAY_BINARY_FRAME)
        wslay.event_queue_close(context, WSLAY_CODE_UNSUPPORTED_DATA, (const uint8_t *)only_text, sizeof only_text - 1);
}

static void lose_peer(struct websocket *ws)
{
    struct websocket_loop *loop = ws->loop;

    if (ws->up.handle)
        http_upgraded_close(&ws->up);
    free(ws->up.early);
    pthread_mutex_lock(&ws->mu);
    ws->gone = true;
    pthread_mutex_unlock(&ws->mu);
    loop->n--;
    loop->face.closed(loop->face.arg, ws);
    websocket_release(ws);
}

static void drop_peer(struct websocket *ws)
{
    *ws->before = ws->next;
    if (ws->next)
        ws->next->before = ws->before;
    epoll_ctl(ws->loop->epoll, EPOLL_CTL_DEL, ws->up.fd, NULL);
    wslay.event_context_free(ws->context);
    lose_peer(ws);
}

static void watch_socket(struct websocket *ws, int how, bool also_write)
{
    struct epoll_event e = {.events = EPOLLIN | (also_write ? EPOLLOUT : 0), .data.ptr = ws};

    ws->watches_write = also_write;
    epoll_ctl(ws->loop->epoll, how, ws->up.fd, &e);
}

/* Hands over what others want sent; it is wslay's until it is on its way. */
static void take_outgoing(struct websocket *ws)
{
    struct outgoing *list, *next;
    unsigned code;

    pthread_mutex_lock(&ws->mu);
    list = ws->first;
    ws->first = NULL;
    ws->last = &ws->first;
    code = ws->close_code;
    pthread_mutex_unlock(&ws->mu);
    for (; list; list = next) {
        struct wslay_event_msg m = {WSLAY_TEXT_FRAME, (const uint8_t *)list->bytes, list->len};

        next = list->next;
        wslay.event_queue_msg(ws->context, &m);
        free(list);
    }
    if (code && !wslay.event_get_close_sent(ws->context))
        wslay.event_queue_close(ws->context, (uint16_t)code, (const uint8_t *)ws->close_reason,
                                strlen(ws->close_reason));
}

/* Until the client closes, or has been silent for too long (ask_silent). */
static bool leave_socket(struct websocket *ws)
{
    char dropped[4096];
    ssize_t n;

    if (!ws->leaving) {
        ws->leaving = true;
        ws->heard_ms = monotonic_ms();
        shutdown(ws->up.fd, SHUT_WR);
        watch_socket(ws, EPOLL_CTL_MOD, false);
    }
    while ((n = recv(ws->up.fd, dropped, sizeof dropped, 0)) > 0)
        ;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* What was read is answered, what is to be sent is sent; false: it is over. */
static bool serve_socket(struct websocket *ws, bool readable)
{
    if (ws->leaving)
        return leave_socket(ws);
    if (readable)
        (void)wslay.event_recv(ws->context); /* an invalid frame is answered with the reason; `broken` is the rest */
    take_outgoing(ws);
    if (ws->broken || wslay.event_send(ws->context) != 0)
        return false;
    if (!wslay.event_want_read(ws->context) && !wslay.event_want_write(ws->context))
        return leave_socket(ws);
    pthread_mutex_lock(&ws->mu);
    ws->unsent = wslay.event_get_queued_msg_length(ws->context);
    for (const struct outgoing *o = ws->first; o; o = o->next)
        ws->unsent += o->len;
    pthread_mutex_unlock(&ws->mu);
    if (wslay.event_want_write(ws->context) != ws->watches_write)
        watch_socket(ws, EPOLL_CTL_MOD, !ws->watches_write);
    return true;
}

/* ---- the loop ---- */

static bool open_socket(struct websocket *ws)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_receive, .send_callback = on_send, .on_msg_recv_callback = on_message};
    struct websocket_loop *loop = ws->loop;
    int yes = 1;

    if (wslay.event_context_server_init(&ws->context, &callbacks, ws))
        return false;
    wslay.event_config_set_max_recv_msg_length(ws->context, loop->limits.message_bytes);
    setsockopt(ws->up.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ws->heard_ms = monotonic_ms();
    ws->next = loop->list;
    ws->before = &loop->list;
    if (ws->next)
        ws->next->before = &ws->next;
    loop->list = ws;
    watch_socket(ws, EPOLL_CTL_ADD, false);
    return true;
}

static void open_accepted(struct websocket_loop *loop, struct websocket *list)
{
    for (struct websocket *next, *ws = list; ws; ws = next) {
        bool is_open;

        next = ws->next;
        is_open = ws->up.handle && open_socket(ws);
        loop->face.opened(loop->face.arg, ws, ws->user);
        if (!is_open)
            lose_peer(ws);
        else if (!serve_socket(ws, ws->up.n_early > 0))
            drop_peer(ws);
    }
}

static void read_mailbox(struct websocket_loop *loop)
{
    struct websocket *noted, *accepted, *next;
    uint64_t n;

    (void)!read(loop->wake, &n, sizeof n);
    pthread_mutex_lock(&loop->mu);
    noted = loop->noted;
    accepted = loop->accepted;
    loop->noted = loop->accepted = NULL;
    pthread_mutex_unlock(&loop->mu);
    open_accepted(loop, accepted);
    for (struct websocket *ws = noted; ws; ws = next) {
        bool gone;

        next = ws->next_noted;
        pthread_mutex_lock(&ws->mu);
        ws->noted = false;
        gone = ws->gone;
        pthread_mutex_unlock(&ws->mu);
        if (!gone && !serve_socket(ws, false))
            drop_peer(ws);
        websocket_release(ws);
    }
}

/* Asks those that have been silent, and drops those that stay so. Returns how long there is nothing to ask, in ms; -1: nobody is there. */
static int ask_silent(struct websocket_loop *loop)
{
    int64_t now = monotonic_ms(), soonest = INT64_MAX;
    struct websocket *next;

    for (struct websocket *ws = loop->list; ws; ws = next) {
        int64_t patience = ws->leaving ? LEAVE_MS : loop->limits.ping_ms * (ws->asked ? 2 : 1);
        int64_t left = ws->heard_ms + patience - now;

        next = ws->next;
        if (left <= 0 && (ws->asked || ws->leaving)) {
            drop_peer(ws);
            continue;
        }
        if (left <= 0) {
            struct wslay_event_msg ping = {WSLAY_PING, NULL, 0};

            ws->asked = true;
            left = loop->limits.ping_ms;
            wslay.event_queue_msg(ws->context, &ping);
            if (!serve_socket(ws, false)) {
                drop_peer(ws);
                continue;
            }
        }
        soonest = left < soonest ? left : soonest;
    }
    return soonest == INT64_MAX ? -1 : (int)(soonest < 1000000 ? soonest : 1000000);
}

/* Returns how long until the next round, in ms, as ask_silent(). */
static int tick_all(struct websocket_loop *loop)
{
    int64_t now = monotonic_ms();

    if (!loop->face.tick || !loop->list)
        return -1;
    if (now >= loop->ticked_ms + loop->limits.tick_ms) {
        loop->ticked_ms = now;
        for (struct websocket *ws = loop->list; ws; ws = ws->next)
            loop->face.tick(loop->face.arg, ws);
    }
    return (int)(loop->ticked_ms + loop->limits.tick_ms - now);
}

/* The sooner one; -1: never. */
static int sooner(int a_ms, int b_ms)
{
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static void say_goodbye(struct websocket_loop *loop)
{
    for (struct websocket *next, *ws = loop->list; ws; ws = next) {
        next = ws->next;
        wslay.event_queue_close(ws->context, WSLAY_CODE_GOING_AWAY, NULL, 0);
        (void)serve_socket(ws, false);
        drop_peer(ws);
    }
}

static void *run_loop(void *arg)
{
    struct websocket_loop *loop = arg;
    struct epoll_event events[64];
    bool stopping = false;

    while (!stopping) {
        int until_asked = ask_silent(loop);
        int n = epoll_wait(loop->epoll, events, 64, sooner(until_asked, tick_all(loop)));
        bool woken = false;

        for (int i = 0; i < n; i++) {
            struct websocket *ws = events[i].data.ptr;

            if (!ws)
                woken = true;
            else if (!serve_socket(ws, events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                drop_peer(ws); /* none of the other events is of it: each has one */
        }
        if (woken)
            read_mailbox(loop);
        pthread_mutex_lock(&loop->mu);
        stopping = loop->stopping;
        pthread_mutex_unlock(&loop->mu);
    }
    read_mailbox(loop);
    say_goodbye(loop);
    return NULL;
}

struct websocket_loop *websocket_loop_new(const struct websocket_face *face, const struct websocket_limits *limits)
{
    struct websocket_loop *loop = mem_zero(sizeof *loop);
    struct epoll_event e = {.events = EPOLLIN};

    loop->face = *face;
    loop->limits = limits ? *limits : (struct websocket_limits){0};
    loop->limits.message_bytes = loop->limits.message_bytes ? loop->limits.message_bytes : 1 << 20;
    loop->limits.unsent_bytes = loop->limits.unsent_bytes ? loop->limits.unsent_bytes : 1 << 20;
    loop->limits.ping_ms = loop->limits.ping_ms ? loop->limits.ping_ms : 30000;
    loop->limits.tick_ms = loop->limits.tick_ms ? loop->limits.tick_ms : 500;
    pthread_mutex_init(&loop->mu, NULL);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &e);
    return loop;
}

void websocket_loop_stop(struct websocket_loop *loop)
{
    bool runs;

    if (!loop)
        return;
    pthread_mutex_lock(&loop->mu);
    loop->stopping = true;
    runs = loop->running;
    loop->running = false;
    pthread_mutex_unlock(&loop->mu);
    wake_loop(loop);
    if (runs)
        pthread_join(loop->thread, NULL);
}

void websocket_loop_free(struct websocket_loop *loop)
{
    if (!loop)
        return;
    websocket_loop_stop(loop);
    close(loop->epoll);
    close(loop->wake);
    pthread_mutex_destroy(&loop->mu);
    free(loop);
}

/* ---- a new connection ---- */

static void take_socket(void *arg, const struct http_upgraded *up)
{
    struct websocket *ws = arg;
    struct websocket_loop *loop = ws->loop;
    bool too_late;

    if (up)
        ws->up = *up;
    pthread_mutex_lock(&loop->mu);
    too_late = loop->stopping;
    if (!too_late) {
        ws->next = loop->accepted;
        loop->accepted = ws;
    }
    pthread_mutex_unlock(&loop->mu);
    if (!too_late) {
        wake_loop(loop);
        return;
    }
    loop->face.opened(loop->face.arg, ws, ws->user);
    lose_peer(ws);
}

static enum tide_code start_loop(struct websocket_loop *loop, struct tide_err *err)
{
    enum tide_code code = library_load(&library, err);

    pthread_mutex_lock(&loop->mu);
    if (!code && loop->stopping)
        code = tide_fail(err, TIDE_BUSY, "the server stops: ask again when it is back");
    if (!code && !loop->running) {
        loop->running = thread_start(&loop->thread, run_loop, loop);
        code = loop->running ? TIDE_OK : tide_fail(err, TIDE_BUSY, "no thread could be started: try again later");
    }
    pthread_mutex_unlock(&loop->mu);
    return code;
}

enum tide_code websocket_accept(struct websocket_loop *loop, struct http_request *q, const char *protocol, void *user,
                                struct tide_err *err)
{
    struct str key = http_field(q, "Sec-WebSocket-Key");
    unsigned char digest[20];
    char accept[sodium_base64_ENCODED_LEN(20, sodium_base64_VARIANT_ORIGINAL)];
    struct websocket *ws;
    const char *text = arena_printf(&q->arena, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", STR_ARG(key));

    if (start_loop(loop, err) || tls_sha1(str_from(text), digest, err))
        return err->code;
    sodium_bin2base64(accept, sizeof accept, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
    ws = mem_zero(sizeof *ws);
    pthread_mutex_init(&ws->mu, NULL);
    ws->loop = loop;
    ws->user = user;
    ws->last = &ws->first;
    ws->holders = 2;
    loop->n++;
    http_upgrade(q, "websocket",
                 (const char *const[]){"Sec-WebSocket-Accept", accept, protocol ? "Sec-WebSocket-Protocol" : NULL,
                                       protocol, NULL},
                 take_socket, ws);
    return TIDE_OK;
}
