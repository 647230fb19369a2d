/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rate.h"

#include <pthread.h>
#include <sodium.h>

#include "base/clock.h"
#include "base/mem.h"

#define BUCKETS 1024
#define WHOLE 1000 /* one request, in the thousandths that a bucket counts */

struct rate {
    int64_t per_second, max;
    unsigned char key[crypto_shorthash_KEYBYTES]; /* of the hash: nobody chooses whose bucket they share */
    pthread_mutex_t mu;
    struct bucket {
        int64_t left, filled_ms; /* filled_ms 0: nobody came yet */
    } buckets[BUCKETS];
};

struct rate *rate_new(int64_t per_second, int64_t at_once)
{
    struct rate *r = mem_zero(sizeof *r);

    r->per_second = per_second;
    r->max = at_once * WHOLE;
    randombytes_buf(r->key, sizeof r->key);
    pthread_mutex_init(&r->mu, NULL);
    return r;
}

void rate_free(struct rate *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->mu);
    free(r);
}

/* With mu held. */
static struct bucket *filled_bucket(struct rate *r, struct str key)
{
    unsigned char hash[crypto_shorthash_BYTES];
    int64_t now = monotonic_ms();
    struct bucket *b;

    crypto_shorthash(hash, (const unsigned char *)key.ptr, key.len, r->key);
    b = &r->buckets[(hash[0] | hash[1] << 8) % BUCKETS];
    b->left = b->filled_ms ? b->left + (now - b->filled_ms) * r->per_second : r->max;
    if (b->left > r->max)
        b->left = r->max;
    b->filled_ms = now;
    return b;
}

bool rate_take(struct rate *r, struct str key)
{
    struct bucket *b;
    bool ok;

    if (!r->per_second)
        return true;
    pthread_mutex_lock(&r->mu);
    b = filled_bucket(r, key);
    ok = b->left >= WHOLE;
    if (ok)
        b->left -= WHOLE;
    pthread_mutex_unlock(&r->mu);
    return ok;
}
