/* SPDX-License-Identifier: Apache-2.0 */
/* The server's certificate and its key: files that are named, or a pair of its own in the state directory. */
#ifndef SERVER_CERTIFICATE_H
#define SERVER_CERTIFICATE_H

#include "base/buf.h"
#include "base/err.h"
#include "net/tls.h"

struct certificate {
    struct buf pem, key;
    char pin[TLS_PIN_SIZE]; /* of the public key, as clients take it */
    char path[4096];        /* of the file with the pair that is its own; "": files that were named */
};

/*
 * Both files, or both NULL: its own, which is made when there is none, valid for these names (ended by NULL). TIDE_DENIED: others can
 * read the key. TIDE_INVALID: they do not fit together, or are not valid now.
 */
enum tide_code certificate_read(const char *file, const char *key_file, const char *const *names,
                                struct certificate *ret, struct tide_err *err) MUST_CHECK;
void certificate_done(struct certificate *c);

/* The pin of the certificate that a server of this user made for itself. False: there is none. */
bool certificate_own_pin(char ret[TLS_PIN_SIZE]);

#endif
