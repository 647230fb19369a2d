/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 client for one server: a unix socket, a port of this machine, or TLS. One request at a time, by a connection that is kept
 * for the next one. No redirect is followed, and nothing is sent unencrypted beyond this machine.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include <stdatomic.h>

#include "net/http_reply.h"

struct http_client_options {
    const char *unix_path;   /* NULL: by TCP */
    const char *host, *port; /* "::1", "7007"; for a unix socket what Host says */
    bool tls;
    const char *pin; /* of TLS, as of tls_client_new() */
    int64_t connect_ms;
    size_t head_max, body_max;
    const atomic_int *stop; /* TIDE_CANCELLED when it is set; may be NULL */
    int stop_fd;            /* readable then, for what waits in a thread without signals; 0: none */
};

struct http_ask {
    const char *method;                        /* "GET" */
    struct str target;                         /* path and query, escaped */
    const char *const *fields;                 /* name, value, …, NULL; may be NULL */
    struct str body;                           /* JSON; empty: none */
    int64_t answer_ms;                         /* within which the whole answer has come; 0: no limit */
    bool (*take)(void *arg, struct str bytes); /* of an answer of status 200: as of struct http_reply */
    void *arg;
};

/* What became of the connection of a request that failed. */
enum http_lost {
    HTTP_NOT_LOST,      /* it failed otherwise: the same would happen again */
    HTTP_NOT_CONNECTED, /* nobody is there */
    HTTP_CUT,           /* it broke: whether the request was carried out is not known */
    HTTP_LATE,          /* no answer came in time: the same */
};

struct http_client;
struct http_client *http_client_new(const struct http_client_options *opt); /* copied */
void http_client_free(struct http_client *c);                               /* takes NULL */

/* http_reply_done() it, whatever this returns. */
enum tide_code http_client_ask(struct http_client *c, const struct http_ask *ask, struct http_reply *ret,
                               enum http_lost *ret_lost, struct tide_err *err) MUST_CHECK;

#endif
