/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that a server listens on. Bound first, and nobody is let in before listen(): what else could refuse comes in between. */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* "127.0.0.1" or "::1", "7007" or "0": bound, and not listening. TIDE_EXISTS: somebody else listens there. */
enum tide_code listen_bind_tcp(const char *address, const char *port, int *ret_fd, struct tide_err *err) MUST_CHECK;

/*
 * A unix socket of mode 0600 in a directory that only this user can enter, which is made where it is missing: bound, and not listening.
 * A socket that nobody listens on any more is replaced. TIDE_EXISTS: somebody does, or it is another kind of file.
 */
enum tide_code listen_bind_unix(const char *path, int *ret_fd, struct tide_err *err) MUST_CHECK;

/* Longer paths are no address. */
size_t listen_unix_path_max(void);

struct listen_place {
    bool is_unix, is_loopback,
        is_any;            /* loopback: nobody on another machine reaches it. any: every address of this one */
    char address[108 + 1]; /* in brackets where it is IPv6; of a unix socket its path */
    int port;
};

/* What a bound socket is bound to. TIDE_INVALID: it is no stream socket of TCP or unix. */
enum tide_code listen_place_of(int fd, struct listen_place *ret, struct tide_err *err) MUST_CHECK;

/*
 * Whose processes listen on a TCP port of this machine: true where all of them are this user's or the administrator's, as far as the
 * system reports. False: another user's, none, or not known.
 */
bool listen_port_is_own(int port);

#endif
