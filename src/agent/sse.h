/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, read as they come: however the bytes are cut, the same events come out. */
#ifndef AGENT_SSE_H
#define AGENT_SSE_H

#include "base/buf.h"
#include "base/err.h"

#define SSE_MAX_EVENT ((size_t)16 << 20) /* bytes of one line, and of one event's data */

/* One event; `name` is empty when the stream gave none. Anything but TIDE_OK ends the reading and is handed back. */
typedef enum tide_code sse_fn(void *arg, struct str name, struct str data);

struct sse {
    struct buf line, name, data;
    bool has_data; /* a data field came: an empty one counts */
    bool after_cr; /* a line feed that follows belongs to the line that has ended */
    bool begun;    /* past the place where a byte order mark may stand */
};

#define SSE_INIT                                                                                                       \
    {                                                                                                                  \
        .line = BUF_INIT(SSE_MAX_EVENT), .name = BUF_INIT(256), .data = BUF_INIT(SSE_MAX_EVENT)                        \
    }

/*
 * TIDE_TOO_BIG: a line or an event is longer than SSE_MAX_EVENT; nothing more can be fed then. An event that the stream
 * did not finish with an empty line never comes out.
 */
enum tide_code sse_feed(struct sse *s, struct str bytes, sse_fn *fn, void *arg) MUST_CHECK;
void sse_done(struct sse *s);

#endif
