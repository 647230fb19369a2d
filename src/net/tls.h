/* SPDX-License-Identifier: Apache-2.0 */
/* What a server needs of GnuTLS, which libmicrohttpd brings along: certificates, and the digest of a WebSocket's handshake. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/buf.h"
#include "base/err.h"

#define TLS_FINGERPRINT_SIZE 65 /* SHA-256 as hex, and a NUL */

/* A new key and a certificate of its own for these names and addresses (ended by NULL), valid for ten years, as PEM. The key is wiped by the caller. */
enum tide_code tls_make_certificate(const char *const *names, struct buf *ret_certificate, struct buf *ret_key,
                                    struct tide_err *err) MUST_CHECK;

/* TIDE_INVALID: it is none, or of another key, or not valid now. */
enum tide_code tls_check_certificate(const char *certificate, const char *key,
                                     char ret_fingerprint[TLS_FINGERPRINT_SIZE], struct tide_err *err) MUST_CHECK;

/* What clients pin: the digest of its public key, as curl's --pinnedpubkey takes it: "sha256//" and base64. */
#define TLS_PIN_SIZE 53
enum tide_code tls_pin(const char *certificate, char ret[TLS_PIN_SIZE], struct tide_err *err) MUST_CHECK;

enum tide_code tls_sha1(struct str bytes, unsigned char ret[20], struct tide_err *err) MUST_CHECK;

#endif
