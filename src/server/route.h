/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API has: one row for each route. Parameters, bodies and answers are tables as well, so that they are checked in one place
 * and /openapi.json is printed from them.
 */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "base/shape.h"
#include "net/http_server.h"
#include "server/access.h"

#define ROUTE_PARAMS 3
#define API_ROOT "/api/v1"

struct call;

/* A parameter of the query, or a member of the body. */
enum field_type {
    FIELD_TEXT,
    FIELD_ID,
    FIELD_INT,
    FIELD_BOOL,
    FIELD_WORD,     /* one of `words` */
    FIELD_OBJECT,   /* JSON */
    FIELD_ANY,      /* JSON */
    FIELD_TEXTS,    /* a list of texts; in a query separated by commas */
    FIELD_SETTLED,  /* a list of texts NAME or NAME=JSON, or of {"name", "output"} as `next` and hints have it */
    FIELD_POSITION, /* a seq, as a number or a text, or the id of a checkpoint */
};
struct field {
    const char *name; /* NULL ends a table */
    enum field_type type;
    const char *help;
    bool required;
    const char *words; /* of FIELD_WORD, separated by blanks */
    int64_t min, max;  /* of FIELD_INT; both 0: from 0 on */
};

enum route_flags {
    ROUTE_STREAMS = 1,  /* the answer is written as it comes */
    ROUTE_BYTES_IN = 2, /* the body is no JSON, and may be big */
    ROUTE_OPEN = 4,     /* needs no token */
    ROUTE_AT_ROOT = 8,  /* its path is not below API_ROOT */
};

struct route {
    enum http_method method;
    const char *path;   /* below API_ROOT, unless ROUTE_AT_ROOT: "/sessions/{id}/events" */
    const char *action; /* its name: of a request over a WebSocket, and its operationId */
    enum scope scope;
    enum tide_code (*run)(struct call *c, struct tide_err *err);
    const char *help;
    const struct field *query, *body; /* NULL: none */
    const struct shape *answer;       /* NULL: as `type` says */
    int status;                       /* of success [200] */
    unsigned flags;
    const char *type;            /* of the answer, where it has no shape */
    const struct shape *dry_run; /* what a request with dry_run is answered with, status 200; NULL: as any other */
};

extern const struct shape shape_problem;         /* what every failure is answered with */
extern const struct route *const route_tables[]; /* ended by NULL; each ended by a row without a method */

/* NULL: it has none of this name. */
const struct field *field_find(const struct field *table, struct str name);

/* By its action; NULL: there is none. */
const struct route *route_named(struct str action);

/*
 * The route of a path, with its parameters unescaped in the arena. NULL: there is none; *ret_methods are those that this path has, 0:
 * it has none.
 */
const struct route *route_find(struct arena *a, struct str path, enum http_method method,
                               struct str ret_params[ROUTE_PARAMS], unsigned *ret_methods);

#endif
