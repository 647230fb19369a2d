/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server is, as people name it: unix:PATH, http://HOST:PORT on this machine, https://HOST:PORT. */
#ifndef REMOTE_REMOTE_URL_H
#define REMOTE_REMOTE_URL_H

#include "base/err.h"
#include "base/mem.h"

struct remote_url {
    const char *text;        /* as it was given, for messages */
    const char *unix_path;   /* NULL: by TCP */
    const char *host, *port; /* host without brackets */
    bool tls, is_loopback;
    const char *pin; /* of TLS; NULL: the authorities of this system say who it is */
};

/*
 * `pin` NULL: TIDEMARK_SERVER_PIN, else, of a server on this machine, that of the certificate that it made for itself in this user's state
 * directory. TIDE_DENIED: http:// to another machine.
 */
enum tide_code remote_url_read(struct arena *a, const char *text, const char *pin, struct remote_url *ret,
                               struct tide_err *err) MUST_CHECK;

#endif
