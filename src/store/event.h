/* SPDX-License-Identifier: Apache-2.0 */
/* An event as stores know it: the record, its place in the chain of digests, its flat JSON form. */
#ifndef STORE_EVENT_H
#define STORE_EVENT_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"

/* That this user's Tidemark wrote the log up to an event: origin.h. */
struct origin_proof {
    unsigned char mac[MAC_SIZE];
    bool set; /* false: the event has none */
};

struct origin_key {
    struct digest_key user;            /* len 0: there is none, and nothing is proved */
    unsigned char mac[SHORT_KEY_SIZE]; /* derived from it */
};

struct event {
    int64_t seq, pos, ts_ms, epoch;
    struct str kind, body; /* body: compact JSON object without seq, ts and kind */
    unsigned char digest[DIGEST_SIZE];
    struct origin_proof proof;
};

/* digest = BLAKE2b(key; digest before, session, seq, epoch, ts, kind, body): what binds an event to its place. */
void event_digest(unsigned char out[DIGEST_SIZE], const struct digest_key *key, const unsigned char before[DIGEST_SIZE],
                  struct str session, const struct event *ev);

/* {"seq":…,"ts":"…","kind":"…",fields…}; `extra` (may be empty) is raw members put at the end, without a comma. */
void event_write_json(struct buf *out, const struct event *ev, struct str extra);

#endif
