/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the API: who asks for what, with what. It is checked against its route (route.h), runs on a worker, and answers once:
 * by call_reply() and its like, or by its route's function failing. Once it has answered it may be gone.
 */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include "base/json.h"
#include "engine/signed_request.h"
#include "server/route.h"
#include "tidemark.h"

struct server;
struct idempotency;

struct call {
    struct server *server;
    struct http_request *http; /* NULL: over a WebSocket */
    struct arena *arena;
    const struct route *route;
    struct str params[ROUTE_PARAMS];
    struct caller caller;
    struct str if_match, idempotency_key; /* without a pointer: not given */
    struct cause request;                 /* who asks; with a key which request it is: for the events that it causes */
    tide_session *session;                /* that it works on, until it is answered */
    bool alone;                           /* nobody else changes it meanwhile */
    const struct json *body;              /* an object; NULL: none. Over a WebSocket the query as well */
    void (*answer)(struct call *c, int status, const char *type, struct buf *body); /* called once; takes the bytes */
    bool answered;
    void *data;           /* the route's own */
    struct str kept;      /* of an answer that is shown once: what a repeated request gets in its place */
    struct call *waiting; /* the next one that repeats the request of the same one */
    const char *extra[8]; /* fields of the answer: name, value, …, NULL */
    size_t n_extra;
};

/* Parameters of the query and members of the body, which were checked. NULL, `otherwise`: not given. */
const char *call_text(struct call *c, const char *name);
int64_t call_int(struct call *c, const char *name, int64_t otherwise);
bool call_on(struct call *c, const char *name);
struct str call_json(struct call *c, const char *name);          /* source text; empty: not given */
const char *const *call_texts(struct call *c, const char *name); /* ended by NULL; NULL: not given */
const char *const *call_list(struct call *c, const char *name);  /* the same of a text, "a,b" */

/* ---- the answer ---- */

void call_field(struct call *c, const char *name, const char *value); /* copied */
void call_reply(struct call *c, const struct shape *shape, const void *data);
void call_reply_text(struct call *c, int status, const char *type, struct buf *body); /* taken */
void call_reply_nothing(struct call *c);                                              /* 204 */
/* problem+json by the table of codes; with another status. */
void call_fail(struct call *c, const struct tide_err *err);
void call_fail_as(struct call *c, int status, const struct tide_err *err);

/* The session of the first parameter, by its whole id; to append, alone. It is closed before the call is answered: who asked may use it then. */
enum tide_code call_session(struct call *c, unsigned flags, tide_session **ret, struct tide_err *err) MUST_CHECK;
/* That the first parameter is the whole id of a session, for what opens it by itself. One that is damaged is there. */
enum tide_code call_check_id(struct call *c, struct tide_err *err) MUST_CHECK;
/*
 * The same, to be changed: the next append is signed by the call, and refused when something came behind what If-Match says. *ret_flags
 * (may be NULL): for that append.
 */
enum tide_code call_change(struct call *c, tide_session **ret, unsigned *ret_flags, struct tide_err *err) MUST_CHECK;
void call_enter_session(struct call *c); /* for what changes it by itself */
void call_close_session(struct call *c); /* for a call that is answered later, or by a stream */

/* The seq of If-Match: "12"; -1: none is given. */
enum tide_code call_expected_seq(struct call *c, int64_t *ret, struct tide_err *err) MUST_CHECK;

/* The id of a session that the call makes: `given`, else one that the same request makes again; NULL: any. */
const char *call_new_id(struct call *c, const char *given);

/* ---- the server's part ---- */

/*
 * TIDE_INVALID, with the field as its subject: unknown, missing, of the wrong type. Parses the body. Over a WebSocket the body is
 * there, and has the parameters of the path and of the query as members.
 */
enum tide_code call_check(struct call *c, struct tide_err *err) MUST_CHECK;
/* The members of an object by themselves. */
enum tide_code call_check_members(struct call *c, const struct field *table, const struct json *object,
                                  struct tide_err *err) MUST_CHECK;
/* Checks it and runs it. Once it has answered it may be gone. */
void call_run(struct call *c);

/* A problem document by itself, for what is refused before there is a call. */
void problem_write(struct buf *out, const struct tide_err *err, int status);
int problem_status(const struct tide_err *err);

#endif
