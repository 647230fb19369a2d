/* SPDX-License-Identifier: Apache-2.0 */
/* A Tidemark without proofs of origin, for bench/origin.c alone: everything is ours, and nothing is proved or stored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "store/origin.h"

void origin_key_set(struct origin_key *key, const void *bytes, size_t len)
{
    (void)key;
    (void)bytes;
    (void)len;
}

void origin_prove(struct origin_proof *ret, const struct origin_key *key, struct str session, const struct event *ev)
{
    (void)key;
    (void)session;
    (void)ev;
    ret->set = false;
}

bool origin_holds(const struct origin_proof *proof, const struct origin_key *key, struct str session, int64_t seq,
                  const unsigned char digest[DIGEST_SIZE])
{
    (void)proof;
    (void)key;
    (void)session;
    (void)seq;
    (void)digest;
    return true;
}

bool origin_wants(const struct batch *b, size_t i)
{
    (void)b;
    (void)i;
    return false;
}

bool origin_is_ours(const struct store *store, const struct head *h)
{
    (void)store;
    (void)h;
    return true;
}

void origin_mix(struct digest_state *d, const struct store *store)
{
    (void)d;
    (void)store;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--child-run-starts") == 0)
        return child_run_starts(argv[2], (int)strtol(argv[3], NULL, 10));
    return 2;
}
