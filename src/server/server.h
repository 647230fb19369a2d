/* SPDX-License-Identifier: Apache-2.0 */
/* The server: a store, who may reach it, and the listeners through which. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>

#include "net/http_server.h"
#include "server/access.h"
#include "server/listeners.h"
#include "server/rate.h"
#include "server/runner.h"
#include "server/signin.h"
#include "tidemark.h"

#define ANSWER_MAX ((size_t)64 << 20)

struct server_options {
    const char *config; /* as of settings_find() */
    struct listen_options listen;
    struct http_limits limits;
    int64_t max_depth, max_per_second; /* of a body; of one caller, 0: no limit */
    struct runner_options runs;
    int64_t stop_ms; /* within which server_stop() returns */
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
    struct idempotency *idempotency;
    struct transfers *transfers;
    struct listeners listeners;
    struct rate *rate, *guesses; /* of requests, by caller; of tokens and codes that are none, by address */
    struct signin *signin;
    atomic_int beats; /* server_beat() */
};

/* Everything is refused that would be unsafe, and every address is taken, while nobody is let in. `opt` is copied, its texts are not. */
enum tide_code server_new(const struct server_options *opt, struct server **ret, struct tide_err *err) MUST_CHECK;

/*
 * `store` stays the caller's. What happened while nobody was there is recorded, then everybody is let in. Whatever comes of it,
 * server_stop() is the end.
 */
enum tide_code server_start(struct server *s, tide_store *store, struct tide_err *err) MUST_CHECK;

enum server_stopped { SERVER_STOPPED, SERVER_RUNS_LEFT };
/*
 * No new work; what runs is asked to park, and what is asked is answered. SERVER_RUNS_LEFT: something runs on; the server and the store
 * must stay as they are until the process ends, as if it were killed. Takes NULL.
 */
enum server_stopped server_stop(struct server *s);

/* Where a browser opens the console, "http://127.0.0.1:7007/"; NULL: by no address of this server. */
const char *server_console_url(const struct server *s, struct arena *a);

/* Whether requests are still worked on: asks for it, and returns whether the last request of this kind has been answered. */
bool server_beat(struct server *s);

#endif
