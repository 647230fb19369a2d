/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP POST at a time whose answer is handed out as it comes, over libcurl, which is loaded at the first one. */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include "base/buf.h"
#include "base/err.h"

#define HTTP_MAX_BYTES ((size_t)64 << 20)   /* of one answer */
#define HTTP_ERROR_BYTES ((size_t)64 << 10) /* of the body of an answer that is no success: the rest is passed over */

enum http_want {
    HTTP_MORE,
    HTTP_NOTHING, /* the same, but this piece brought nothing of the answer: a comment, a ping, a part of an event */
    HTTP_ENOUGH, /* nothing more is needed: the other side has a moment to end, so that the connection can be used again */
    HTTP_STOP, /* what comes is no good: hang up */
};

struct http_call {
    const char *url;
    const char *const *headers; /* "name: value", ended by NULL. Never in an error */
    struct str body;
    int64_t connect_ms, first_byte_ms, silence_ms; /* silence: not a byte */
    int64_t stall_ms;                              /* bytes, but nothing of the answer */
    int64_t total_ms;                              /* from the call to its end */
    void *arg;
    enum http_want (*data)(void *arg, struct str piece); /* the body of a 200 */
    bool (*idle)(void *arg);                             /* at least ten times a second; true: give up. May be NULL */
};

enum http_end {
    HTTP_DONE,      /* an answer was read to its end, or as far as was wanted */
    HTTP_CANCELLED, /* idle said so */
    HTTP_TIMEOUT,   /* to connect, to the first byte, or silence: `why` says which */
    HTTP_STALLED,   /* bytes came, and nothing of an answer */
    HTTP_DEADLINE,  /* it took too long in all */
    HTTP_BROKEN,    /* the connection failed, or ended before the answer did */
    HTTP_UNUSABLE,  /* it will fail the next time too: address, certificate */
    HTTP_TOO_BIG,   /* the answer is over HTTP_MAX_BYTES */
    HTTP_MISSING,   /* no libcurl */
};

#define RETRY_AFTER_MAX_MS INT64_C(1000000000000000) /* a longer pause that somebody asks for counts as this one */

struct http_result {
    enum http_end end;
    int status;             /* 0: none was read */
    int64_t retry_after_ms; /* -1: nothing was said */
    struct buf body;        /* of an answer that is no 200 */
    char type[64];          /* its content type */
    char moved_to[128];     /* where it says that the thing is now; not followed: the key is for one host */
    char why[160];          /* unless HTTP_DONE: one line */
};

struct http;
struct http *http_new(void); /* loads nothing yet */
void http_free(struct http *h);

void http_post(struct http *h, const struct http_call *call, struct http_result *ret);
void http_result_done(struct http_result *r);

/* Loads libcurl under this name; TIDE_FAILED says which package brings it. What is loaded stays. */
enum tide_code http_load(const char *name, struct tide_err *err) MUST_CHECK;

#endif
