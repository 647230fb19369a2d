/* SPDX-License-Identifier: Apache-2.0 */
/* The server: a store, who may reach it, and the listeners through which. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>

#include "net/http_server.h"
#include "server/access.h"
#include "server/runner.h"
#include "tidemark.h"

#define ANSWER_MAX ((size_t)64 << 20)

struct server_options {
    const char *config;                        /* as of settings_find() */
    const char *address, *port;                /* NULL: no TCP */
    const char *certificate, *key;             /* PEM; NULL: no TLS */
    const char *unix_path;                     /* NULL: no unix socket */
    const char *const *hosts, *const *origins; /* further ones that are answered, ended by NULL */
    struct runner_options runs;
    int64_t stop_ms; /* that what runs has to park */
};

struct server {
    tide_store *store;
    struct server_options opt;
    struct access *access;
    struct http_server *http;
    struct websocket_loop *sockets;
    struct workers *workers;
    struct feed *feed;
    struct runner *runner;
    struct writers *writers;
    struct arena arena;
    const char **hosts, **origins; /* exactly these */
    int port;
    atomic_bool ready;
};

/* `store` stays the caller's. Everything is refused that would be unsafe. */
enum tide_code server_start(tide_store *store, const struct server_options *opt, struct server **ret,
                            struct tide_err *err) MUST_CHECK;
/* No new connections; what is under way is finished. */
void server_stop(struct server *s);

#endif
