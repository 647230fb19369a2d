/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MAC = 16 bytes of SipHash-2-4 over seq, digest and the session's id, under a key derived from the user's. A proof is made
 * for every append, so it must be cheap: this takes a fifth of what BLAKE2b does, and is as hard to guess. Proofs of the
 * first form (the first 16 bytes of BLAKE2b under the user's key) are still believed, never made.
 */
#include "store/origin.h"

#include <endian.h>

void origin_key_set(struct origin_key *key, const void *bytes, size_t len)
{
    unsigned char full[DIGEST_SIZE];
    struct digest_state d;

    memcpy(key->user.bytes, bytes, len);
    key->user.len = len;
    digest_begin(&d, &key->user);
    digest_add_str(&d, STR("tidemark proofs of origin"));
    digest_end(&d, full);
    memcpy(key->mac, full, sizeof key->mac);
}

static void mac(unsigned char out[MAC_SIZE], const struct origin_key *key, struct str session, int64_t seq,
                const unsigned char digest[DIGEST_SIZE])
{
    unsigned char text[8 + DIGEST_SIZE + TIDE_ID_SIZE];
    uint64_t number = htole64((uint64_t)seq);

    memcpy(text, &number, 8);
    memcpy(text + 8, digest, DIGEST_SIZE);
    memcpy(text + 8 + DIGEST_SIZE, session.ptr, session.len);
    digest_mac(out, key->mac, text, 8 + DIGEST_SIZE + session.len);
}

static void first_mac(unsigned char out[DIGEST_SIZE], const struct digest_key *key, struct str session, int64_t seq,
                      const unsigned char digest[DIGEST_SIZE])
{
    struct digest_state d;

    digest_begin(&d, key);
    digest_add_str(&d, STR("tidemark origin"));
    digest_add_str(&d, session);
    digest_add_int(&d, (uint64_t)seq);
    digest_add(&d, digest, DIGEST_SIZE);
    digest_end(&d, out);
}

void origin_prove(struct origin_proof *ret, const struct origin_key *key, struct str session, const struct event *ev)
{
    ret->set = key->user.len > 0;
    if (ret->set)
        mac(ret->mac, key, session, ev->seq, ev->digest);
}

bool origin_holds(const struct origin_proof *proof, const struct origin_key *key, struct str session, int64_t seq,
                  const unsigned char digest[DIGEST_SIZE])
{
    unsigned char want[MAC_SIZE], first[DIGEST_SIZE];

    if (!proof->set || !key->user.len)
        return false;
    mac(want, key, session, seq, digest);
    if (sodium_memcmp(want, proof->mac, sizeof want) == 0)
        return true;
    first_mac(first, &key->user, session, seq, digest);
    return sodium_memcmp(first, proof->mac, sizeof want) == 0;
}

bool origin_wants(const struct batch *b, size_t i)
{
    return i + 1 == b->n || str_eq(b->events[i].kind, STR("checkpoint"));
}

bool origin_is_ours(const struct store *store, const struct head *h)
{
    return origin_holds(&h->proof, &store->origin, str_from(h->id), h->last_seq, h->digest);
}

void origin_mix(struct digest_state *d, const struct store *store)
{
    digest_add_str(d, (struct str){(const char *)store->origin.user.bytes, store->origin.user.len});
}
