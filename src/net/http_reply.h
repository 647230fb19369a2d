/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request, parsed piece by piece as it comes: pure, whatever the pieces are. What is ambiguous is refused: two lengths,
 * a length beside chunks, folded lines. Nothing beyond the limits is kept.
 */
#ifndef NET_HTTP_REPLY_H
#define NET_HTTP_REPLY_H

#include "base/buf.h"
#include "base/err.h"

struct http_reply {
    int status;
    struct buf head; /* the status line and the fields, each with its end of line */
    struct buf body;
    /* Gets the body of an answer of status 200 instead of `body`, in pieces; false: it wants no more, and the reading ends. May be NULL. */
    bool (*take)(void *arg, struct str bytes);
    void *arg;
    bool stays; /* the connection can take another request when this is over */

    enum {
        REPLY_HEAD,
        REPLY_LENGTH,
        REPLY_CHUNK_SIZE,
        REPLY_CHUNK,
        REPLY_CHUNK_END,
        REPLY_TRAILER,
        REPLY_REST,
        REPLY_OVER
    } state;
    bool stopped;  /* `take` wanted no more */
    uint64_t left; /* of the body, of the chunk or for trailers */
    int passed;    /* answers of status 1xx */
    struct buf line;
};

/* Limits in bytes. */
void http_reply_init(struct http_reply *r, size_t head_max, size_t body_max);
void http_reply_done(struct http_reply *r);

/*
 * Takes bytes; *ret_used of them belong to this answer, all unless it is over. TIDE_INVALID: this is no answer; TIDE_TOO_BIG: a limit.
 */
enum tide_code http_reply_feed(struct http_reply *r, struct str bytes, size_t *ret_used, struct tide_err *err)
    MUST_CHECK;

/* The connection was closed by the other side. TIDE_IO: in the middle of the answer. */
enum tide_code http_reply_end(struct http_reply *r, struct tide_err *err) MUST_CHECK;

static inline bool http_reply_is_over(const struct http_reply *r)
{
    return r->state == REPLY_OVER;
}

/* The field of this name, without regard to case; without a pointer: there is none. */
struct str http_reply_field(const struct http_reply *r, const char *name);

#endif
