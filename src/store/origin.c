/* SPDX-License-Identifier: Apache-2.0 */
/* MAC = the first 16 bytes of BLAKE2b(user's key; "tidemark origin", session, seq, digest). */
#include "store/origin.h"

static void mac(unsigned char out[DIGEST_SIZE], const struct digest_key *key, struct str session, int64_t seq,
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

void origin_prove(struct origin_proof *ret, const struct digest_key *key, struct str session, const struct event *ev)
{
    unsigned char full[DIGEST_SIZE];

    ret->set = key->len > 0;
    if (!ret->set)
        return;
    mac(full, key, session, ev->seq, ev->digest);
    memcpy(ret->mac, full, sizeof ret->mac);
}

bool origin_holds(const struct origin_proof *proof, const struct digest_key *key, struct str session, int64_t seq,
                  const unsigned char digest[DIGEST_SIZE])
{
    unsigned char full[DIGEST_SIZE];

    if (!proof->set || !key->len)
        return false;
    mac(full, key, session, seq, digest);
    return sodium_memcmp(full, proof->mac, sizeof proof->mac) == 0;
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
    digest_add_str(d, (struct str){(const char *)store->origin.bytes, store->origin.len});
}
