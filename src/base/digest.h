/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b-256, keyed when there is a key. The only place that knows the hash function. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <sodium.h>

#include "base/str.h"

#define DIGEST_SIZE 32

struct digest_key {
    unsigned char bytes[64];
    size_t len; /* 0: unkeyed */
};

/* Small fields are gathered: a call of the hash costs more than hashing a few bytes. */
struct digest_state {
    crypto_generichash_state s;
    size_t n;
    unsigned char gathered[256];
};

void digest_begin(struct digest_state *d, const struct digest_key *key); /* key may be NULL */
void digest_add(struct digest_state *d, const void *bytes, size_t n);
void digest_add_int(struct digest_state *d, uint64_t v);   /* 8 bytes, little-endian */
void digest_add_str(struct digest_state *d, struct str s); /* its length first, so that fields cannot run together */
void digest_end(struct digest_state *d, unsigned char out[DIGEST_SIZE]);
void digest_of(unsigned char out[DIGEST_SIZE], struct str bytes); /* unkeyed, of plain bytes */

#define DIGEST_NAME_SIZE 17
void digest_name(char out[DIGEST_NAME_SIZE],
                 struct str bytes); /* the first 16 hex digits: to see whether something changed */
void digest_end_name(struct digest_state *d, char out[DIGEST_NAME_SIZE]);

#define SHORT_KEY_SIZE 16
/* 64 bits of SipHash-2-4: a check of small records, several times faster than the above. */
int64_t digest_short(const unsigned char key[SHORT_KEY_SIZE], const void *bytes, size_t n);

#define MAC_SIZE 16
/* 128 bits of the same: a proof that the process that has the key wrote these bytes. */
void digest_mac(unsigned char out[MAC_SIZE], const unsigned char key[SHORT_KEY_SIZE], const void *bytes, size_t n);

#endif
