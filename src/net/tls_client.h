/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS on a connected socket, for a client: the server proves itself by a pin (the digest of its public key, as tls_pin() has it), else by a
 * certificate that an authority of this system signed for its name. Nothing is sent before it has.
 */
#ifndef NET_TLS_CLIENT_H
#define NET_TLS_CLIENT_H

#include "base/err.h"
#include "base/str.h"

struct tls_client;

/* `fd` does not block. `host`: its name or address. `pin` NULL: by an authority. The socket stays the caller's. */
enum tide_code tls_client_new(int fd, const char *host, const char *pin, struct tls_client **ret, struct tide_err *err)
    MUST_CHECK;
void tls_client_free(struct tls_client *t); /* takes NULL */

enum tls_step { TLS_DONE, TLS_WANTS_READ, TLS_WANTS_WRITE, TLS_CLOSED, TLS_FAILED };

/* One step of the handshake, again when the socket is ready. TLS_FAILED: *err; TIDE_DENIED is a server that did not prove itself. */
enum tls_step tls_client_shake(struct tls_client *t, struct tide_err *err);
enum tls_step tls_client_write(struct tls_client *t, struct str bytes, size_t *ret_n, struct tide_err *err);
enum tls_step tls_client_read(struct tls_client *t, char *room, size_t size, size_t *ret_n, struct tide_err *err);

#endif
