/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP server share. */
#ifndef NET_HTTP_INTERNAL_H
#define NET_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/http_server.h"
#include "net/mhd.h"

#define HTTP_FIELDS_MAX 64

struct http_listener {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    pthread_t thread; /* which runs it */
    int wake_fd;      /* readable: there is something to look at */
    atomic_bool stopping;
    enum http_origin by;
    int quiet_fd;   /* its socket, when it takes no new connections; -1 */
    bool inherited; /* somebody else listens on it, too */
    struct http_listener *next;
};

/* A connection while it is open: when it must have sent what it is about to send. */
struct http_connection {
    struct http_connection *next, **before;
    int fd;
    int64_t deadline_ms; /* by the monotonic clock; INT64_MAX: none */
};

struct http_server {
    struct http_face face;
    struct http_limits limits;
    struct http_listener *listeners;
    pthread_mutex_t mu; /* of what follows */
    pthread_cond_t wake;
    struct http_connection *connections;
    bool stopping, watching;
    pthread_t watcher;
    atomic_uint_fast64_t requests, refused, open, timed_out;
};

enum http_step { HTTP_STEP_HEAD, HTTP_STEP_BODY, HTTP_STEP_HANDLE, HTTP_STEP_ANSWERED };

/* One request and its answer. `mu` is between the server's thread and the one that answers. */
struct http_exchange {
    struct http_request request;
    struct http_listener *listener;
    struct MHD_Connection *connection;
    enum http_step step;
    bool begun; /* the caller has seen it */
    struct http_field *fields;
    pthread_mutex_t mu;
    struct MHD_Response *response;
    int status;
    bool suspended;
    struct http_stream *stream;
    void (*taken)(void *arg, const struct http_upgraded *up);
    void *taken_arg;
    bool was_taken;
};

/* http_server.c */
void http_connection_due(struct http_exchange *x, int64_t in_ms); /* 0: it owes nothing now */
void http_listener_wake(struct http_listener *l);                 /* after a call that its thread must notice */

/* http_request.c: fills in the request. The status that refuses it, with why; 0: it may be looked at. */
int http_read_head(struct http_exchange *x, const char *method, const char *version, const char **ret_why);
bool http_is_too_big(const struct http_request *q); /* what it says that its body has */
struct http_exchange *http_exchange_new(struct http_listener *l, const char *target);

/* http_answer.c */
enum MHD_Result http_send(struct http_exchange *x);
void http_stream_lost(struct http_stream *s); /* the connection is over */

#endif
