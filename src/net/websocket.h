/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSocket connections (RFC 6455), all on one thread. Text messages come whole, one callback at a time, on that thread, which must
 * not be blocked; sending is allowed from any thread. A connection is the caller's from opened() until websocket_release(), which
 * comes at or after closed().
 */
#ifndef NET_WEBSOCKET_H
#define NET_WEBSOCKET_H

#include "net/http_server.h"

struct websocket;
struct websocket_loop;

struct websocket_face {
    void *arg;
    void (*opened)(void *arg, struct websocket *ws, void *user); /* `user`: of websocket_accept() */
    void (*message)(void *arg, struct websocket *ws, struct str text);
    void (*closed)(void *arg, struct websocket *ws); /* nothing more comes; what is sent goes nowhere */
    void (*tick)(void *arg, struct websocket *ws);   /* for each, now and then; NULL: it is not called */
};

/* Zero: the default. */
struct websocket_limits {
    size_t message_bytes, unsent_bytes; /* of one that comes in [1 MiB]; of those that wait to go out [1 MiB] */
    int64_t ping_ms; /* a connection that says nothing is asked, and closed when it says nothing still [30000] */
    int64_t tick_ms; /* between two ticks [500] */
};

struct websocket_loop *websocket_loop_new(const struct websocket_face *face, const struct websocket_limits *limits);
/*
 * Says goodbye (1001) to every connection, calls closed() for each, and ends the thread; one that is still being upgraded is closed when
 * it comes, on the thread of the HTTP server. Before that server is freed.
 */
void websocket_loop_stop(struct websocket_loop *loop);
/* After the HTTP server is freed. Both take NULL. */
void websocket_loop_free(struct websocket_loop *loop);

/* What is wrong with a request for an upgrade, and its status; NULL: nothing. */
const char *websocket_refuses(const struct http_request *q, int *ret_status);
/* Is it in the list of protocols that the client offers, which are separated by commas? *ret_rest: what it begins with `prefix` and continues with. */
bool websocket_offers(const struct http_request *q, const char *protocol);
struct str websocket_offered(const struct http_request *q, const char *prefix);

/*
 * Answers the request; opened() and closed() come whatever becomes of it, also where the client is gone by then. `protocol`: which one of those offered is
 * spoken; NULL: none was.
 */
enum tide_code websocket_accept(struct websocket_loop *loop, struct http_request *q, const char *protocol, void *user,
                                struct tide_err *err) MUST_CHECK;

/*
 * False: the connection is gone, or more waits to be sent than may wait: it is for the caller to close it then. A message that is
 * bigger than that is sent when nothing else waits.
 */
bool websocket_send(struct websocket *ws, struct str text);
size_t websocket_pending(struct websocket *ws); /* bytes that wait to go out */
void websocket_close(struct websocket *ws, unsigned code, const char *reason);
void websocket_set_user(struct websocket *ws, void *user);
void *websocket_user(const struct websocket *ws);
void websocket_release(struct websocket *ws);
size_t websocket_count(struct websocket_loop *loop);

#endif
