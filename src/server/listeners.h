/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server is reached: addresses of its own, a unix socket, sockets that a service manager gave. All of them are bound, and what
 * is unsafe is refused, before the store is touched; they are opened when it is ready.
 */
#ifndef SERVER_LISTENERS_H
#define SERVER_LISTENERS_H

#include "env/service_manager.h"
#include "net/http_server.h"
#include "net/listen.h"
#include "server/certificate.h"

#define LISTENERS_MAX 20

struct listen_options {
    const char *address, *port; /* NULL: no TCP of its own */
    const char *unix_path;      /* NULL: no unix socket of its own */
    const struct service_socket *given;
    size_t n_given;
    bool tls;                                  /* for all that is TCP: with these, or with its own */
    const char *certificate_file, *key_file;   /* PEM; NULL: its own */
    const char *const *hosts, *const *origins; /* further ones that are answered, ended by NULL; NULL: none */
};

struct listeners {
    struct listener {
        struct listen_place place;
        int fd;      /* -1: opened */
        bool shared; /* of the service manager */
    } at[LISTENERS_MAX];
    size_t n;
    bool tls;
    struct certificate certificate;
    const char **hosts, **origins; /* exactly these are answered, ended by NULL */
    const char *first_host;        /* that was named; NULL: none */
    struct arena arena;
};

enum tide_code listeners_bind(struct listeners *l, const struct listen_options *opt, struct tide_err *err) MUST_CHECK;
enum tide_code listeners_open(struct listeners *l, struct http_server *http, struct tide_err *err) MUST_CHECK;
/* Removes the files of unix sockets of its own, so that the next server finds nothing in its way. */
void listeners_hide(struct listeners *l);
void listeners_done(struct listeners *l); /* closes those that were never opened */

/* "http://127.0.0.1:7007", "unix:/run/user/1000/tidemark/server.sock": as clients take it. */
const char *listener_url(const struct listeners *l, size_t i, struct arena *a);

/* "http://127.0.0.1:7007/": as a browser opens it. Of all addresses a further host that was named, else this machine. NULL: no TCP. */
const char *listeners_page_url(const struct listeners *l, struct arena *a);

#endif
