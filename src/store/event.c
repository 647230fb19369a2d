/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms every event has: its link in the chain, and one flat line of JSON. */
#include "store/event.h"

#include <endian.h>

#include "base/json.h"
#include "base/timefmt.h"

void event_digest(unsigned char out[DIGEST_SIZE], const struct digest_key *key, const unsigned char before[DIGEST_SIZE],
                  struct str session, const struct event *ev)
{
    struct digest_state d;

    digest_begin(&d, key);
    digest_add(&d, before, DIGEST_SIZE);
    digest_add_str(&d, session);
    digest_add(&d, (uint64_t[]){htole64((uint64_t)ev->seq), htole64((uint64_t)ev->epoch), htole64((uint64_t)ev->ts_ms)},
               24);
    digest_add_str(&d, ev->kind);
    digest_add_str(&d, ev->body);
    digest_end(&d, out);
}

void event_write_json(struct buf *out, const struct event *ev, struct str extra)
{
    char ts[TIME_TEXT_SIZE];

    time_format(ts, ev->ts_ms);
    buf_add_str(out, STR("{\"seq\":"));
    buf_add_int(out, ev->seq);
    buf_add_str(out, STR(",\"ts\":\""));
    buf_add_str(out, str_from(ts));
    buf_add_str(out, STR("\",\"kind\":"));
    json_quote(out, ev->kind);
    if (ev->body.len > 2) { /* more than "{}" */
        buf_add_char(out, ',');
        buf_add(out, ev->body.ptr + 1, ev->body.len - 2);
    }
    if (extra.len) {
        buf_add_char(out, ',');
        buf_add_str(out, extra);
    }
    buf_add_char(out, '}');
}
