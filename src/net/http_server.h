/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 server: listeners, limits, requests and their answers. What is served, and to whom, is the caller's.
 *
 *   head read ─► begin() ─► body read ─► handle() ─► one of http_answer, http_stream_start, http_upgrade ─► over()
 *
 * begin(), handle() and over() run on the server's own threads, one for each listener, and must not block: what takes time is given
 * to another thread, which answers when it is done. A request stays valid until it was answered and over() has returned.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

enum http_method {
    HTTP_GET = 1,
    HTTP_HEAD = 2,
    HTTP_POST = 4,
    HTTP_PUT = 8,
    HTTP_PATCH = 16,
    HTTP_DELETE = 32,
    HTTP_OPTIONS = 64,
    HTTP_OTHER = 128,
};

struct http_field {
    struct str name, value;
};

/* Where a request came in. */
enum http_origin { HTTP_BY_TCP, HTTP_BY_TLS, HTTP_BY_UNIX };

/* What takes the body piece by piece, on the server's own thread; false: it is too big. `done` is called once, after over(). */
struct http_sink {
    void *arg; /* NULL: the body is kept in the request */
    bool (*take)(void *arg, struct str bytes);
    void (*done)(void *arg);
};

struct http_request {
    void *user;         /* the caller's */
    struct arena arena; /* the caller's, until over() has returned */
    enum http_method method;
    struct str path, query; /* as they came: still escaped */
    const struct http_field *fields;
    size_t n_fields;
    size_t body_max; /* begin() may lower or raise it [http_limits] */
    struct buf body;
    struct http_sink sink; /* begin() may set it: then `body` stays empty, and only the sink limits it */
    enum http_origin by;
    char peer[64];                  /* address, or "uid N" of a unix socket */
    int64_t peer_uid;               /* of a unix socket; -1: not known */
    struct http_exchange *exchange; /* the server's */
};

struct http_face {
    void *arg;
    bool (*begin)(void *arg, struct http_request *q); /* false: it has answered, and the body is not read */
    void (*handle)(void *arg, struct http_request *q);
    void (*over)(void *arg, struct http_request *q); /* the answer was sent, or the client is gone */
    /* Instead of begin() and handle(), answers what is no request or too big. NULL: the server does, with a line of text. */
    void (*refuse)(void *arg, struct http_request *q, int status, const char *why);
};

/* Zero: the default. */
struct http_limits {
    size_t head_bytes, body_bytes;     /* [8192], which each connection keeps; [1 MiB] */
    unsigned connections, per_address; /* [10000]; [no limit] */
    int64_t head_ms, body_ms, idle_ms; /* to send a head [10000], a body [30000]; between two requests [60000] */
};

struct http_listen {
    const char *address, *port;    /* "127.0.0.1" or "::1", "0": any free port; NULL: not TCP */
    int fd;                        /* else: a bound socket, which is taken over, also where this fails */
    bool shared;                   /* fd listens already, and is somebody else's as well: it is left open for them */
    const char *certificate, *key; /* PEM; NULL: no TLS */
};

struct http_server;
struct http_server *http_server_new(const struct http_face *face, const struct http_limits *limits);
/* *ret_port (may be NULL): the port that it has. */
enum tide_code http_server_listen(struct http_server *s, const struct http_listen *on, int *ret_port,
                                  struct tide_err *err) MUST_CHECK;
/* Takes no new connections; those that are open are served on, each for one answer more. */
void http_server_quiesce(struct http_server *s);
/* Closes everything. Every request that was handled must have been answered, every stream closed. Takes NULL. */
void http_server_free(struct http_server *s);

struct http_counts {
    uint64_t requests, refused, connections, timed_out; /* connections: open now */
};
void http_server_count(struct http_server *s, struct http_counts *ret);

const char *http_method_name(enum http_method method);

/* The field of this name, without regard to case; an empty slice without a pointer when there is none. */
struct str http_field(const struct http_request *q, const char *name);

/* The value of a parameter of the query, unescaped, in the arena; without a pointer: it is not there. */
struct str http_query(struct http_request *q, const char *name);
/* Each parameter, unescaped; non-zero from `fn` stops. False: the escapes are wrong. */
bool http_query_each(struct http_request *q, int (*fn)(void *arg, struct str name, struct str value), void *arg);
/* "%2F" and so on, in the arena; false: not such a text, or a NUL in it. */
bool http_unescape(struct arena *a, struct str text, bool plus_is_space, struct str *ret);

/* ---- answers: one for each request, from any thread; the request belongs to the server after it ---- */

/* `fields`: name, value, …, NULL; may be NULL. The bytes of `body` are taken (NULL: none). `type` NULL: no body's type. */
void http_answer(struct http_request *q, int status, const char *type, struct buf *body, const char *const *fields);
/* The same of bytes that stay as they are as long as the process lives: they are not copied. */
void http_answer_const(struct http_request *q, int status, const char *type, struct str body,
                       const char *const *fields);

/*
 * An answer that is written as it comes. The request's arena is emptied. The stream is the caller's, until it is closed.
 * What is written and was not sent yet is kept, at most `max` bytes: a write beyond that fails, as does one to a client that is gone. One that is bigger succeeds when
 * nothing waits.
 */
struct http_stream;
struct http_stream *http_stream_start(struct http_request *q, int status, const char *type, const char *const *fields,
                                      size_t max);
bool http_stream_write(struct http_stream *s, struct str bytes);
bool http_stream_is_gone(struct http_stream *s);
size_t http_stream_pending(struct http_stream *s); /* bytes that were not sent yet */
/* Ends it when what was written is sent; `abort`: at once, without an end that a client could take for one. */
void http_stream_close(struct http_stream *s, bool abort);

/* The connection becomes the caller's: `taken` gets its socket, and gives it back with http_upgraded_close(); NULL: the client is gone. */
struct http_upgraded {
    int fd;
    void *handle;
    struct http_listener *listener;
    char *early; /* bytes that came behind the head: malloc()ed, the caller's */
    size_t n_early;
};
void http_upgrade(struct http_request *q, const char *protocol, const char *const *fields,
                  void (*taken)(void *arg, const struct http_upgraded *up), void *arg);
void http_upgraded_close(const struct http_upgraded *up);

#endif
