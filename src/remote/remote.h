/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of Tidemark as its clients see it: where it is, who asks, how long a request whose connection broke is sent again, and answers
 * as the structs that the server wrote them from. One request at a time: a thread has a remote of its own.
 */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <stdatomic.h>

#include "base/json.h"
#include "base/shape.h"
#include "engine/shapes.h"

struct remote;

struct remote_options {
    const char *url, *pin;  /* as people name a server; pin NULL: none is given. They must stay */
    const atomic_int *stop; /* TIDE_CANCELLED when it is set */
    int stop_fd;            /* readable then; 0: none, signals interrupt what waits */
    bool once;              /* what only asks is not sent again when the connection broke: the caller does so */
    bool whole_ids;         /* what is given for the id of a session is never a prefix of one */
};

/* remote_close() it, whatever this returns. */
enum tide_code remote_open(const struct remote_options *opt, struct remote **ret, struct tide_err *err) MUST_CHECK;
void remote_close(struct remote *r); /* takes NULL */

/*
 * A request is begun, added to and asked. What its answer gives lives until the remote is closed.
 *
 * The segments of its path below /api/v1, ended by NULL; they are escaped. One that is no GET gets a key of its own, and is carried out
 * once, however often it has to be sent.
 */
#define remote_begin(r, method, ...) remote_begin_at(r, method, (const char *const[]){__VA_ARGS__, NULL})
void remote_begin_at(struct remote *r, const char *method, const char *const *segments);
void remote_param(struct remote *r, const char *name, const char *value); /* of the query; NULL: none */
void remote_param_int(struct remote *r, const char *name, int64_t value);
struct json_out *remote_body(struct remote *r); /* an object, which is ended by the asking */
void remote_body_text(struct remote *r, const char *name, const char *value); /* NULL: none */
void remote_body_flag(struct remote *r, const char *name, bool value);        /* false: none */

/* An answer may take as long as it takes. */
enum remote_patience { REMOTE_SOON, REMOTE_WHENEVER };

/* *ret: the JSON of the answer; NULL: it has none. What the server refuses is the error that it says. */
enum tide_code remote_ask(struct remote *r, enum remote_patience patience, const struct json **ret,
                          struct tide_err *err) MUST_CHECK;

/* The same of one page of many: it lives until the next one is asked for. */
enum tide_code remote_ask_page(struct remote *r, enum remote_patience patience, const struct json **ret,
                               struct tide_err *err) MUST_CHECK;
/* The same in an arena of the caller's. */
enum tide_code remote_ask_into(struct remote *r, struct arena *a, enum remote_patience patience,
                               const struct json **ret, struct tide_err *err) MUST_CHECK;

/* The same, read into the struct of the shape. */
enum tide_code remote_read(struct remote *r, enum remote_patience patience, const struct shape *shape, void *data,
                           struct tide_err *err) MUST_CHECK;
enum tide_code remote_take(struct remote *r, const struct shape *shape, const struct json *v, void *data,
                           struct tide_err *err) MUST_CHECK;
enum tide_code remote_take_into(struct remote *r, struct arena *a, const struct shape *shape, const struct json *v,
                                void *data, struct tide_err *err) MUST_CHECK;

/* The JSON of the last answer, as it came. */
struct str remote_text(const struct remote *r);

/* Server-sent events: the id (0: none), the name ("": none) and the data of each ("": everything up to the id was sent); non-zero ends it. */
typedef int remote_event_fn(void *arg, int64_t id, struct str name, struct str data);
enum tide_code remote_follow(struct remote *r, remote_event_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

struct arena *remote_arena(struct remote *r);

/* Whether this user is known there: by a token, or on a unix socket. */
bool remote_is_known(const struct remote *r);

#endif
