/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client at the other end of a WebSocket: its requests, answers and notifications as messages of one form,
 *
 *   {"id":…,"type":"request|response|notification|error","action":…,"payload":{…},"timestamp":"…"}
 *
 * It is kept by its connection, by each request that is not answered yet and by each subscription; the last one frees it.
 */
#ifndef SERVER_PEER_H
#define SERVER_PEER_H

#include <pthread.h>

#include "net/websocket.h"
#include "server/call.h"

struct peer;
struct subscription;

/* The WebSockets of a server; a message is as big as a body may be. */
struct websocket_loop *peers_new(const struct server *server);

/* One that is about to be upgraded; peer_free() if that fails. */
struct peer *peer_new(struct server *server, const struct caller *caller);
void peer_free(struct peer *p);

/* A notification. False: it is gone, or it was too slow and is being closed. `payload` is a JSON object. */
bool peer_notify(struct peer *p, const char *action, struct str payload);
/* Whether more may be sent to it that it did not ask for; bytes that wait to go out. */
bool peer_has_room(struct peer *p);
size_t peer_pending(struct peer *p);
enum peer_close { PEER_STOPS = 1001, PEER_POLICY = 1008, PEER_FAILED = 1011, PEER_SLOW = 1013 };
void peer_close(struct peer *p, enum peer_close code, const char *why);

/* The peer of a call, which came over a WebSocket. */
struct peer *peer_of(struct call *c);
void peer_keep(struct peer *p);
void peer_release(struct peer *p);
struct server *peer_server(struct peer *p);

/* subscription.c: what only a peer can ask for, as routes without a path; a row without an action ends it. */
extern const struct route peer_routes[];

/* Its subscriptions. Under the peer's lock: from any thread. */
struct subscriptions {
    pthread_mutex_t mu;
    struct subscription *first;
    size_t n;
    bool closed;
};
struct subscriptions *peer_subscriptions(struct peer *p);
void subscriptions_close(struct peer *p); /* the connection is gone: all of them end */

#endif
