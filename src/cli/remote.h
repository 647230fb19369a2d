/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in place of a store: `--server URL` and TIDEMARK_SERVER. A command's row says what it does then (struct command, `remote`): it
 * asks the server, reads the answer back into what its printer takes, and prints the same as on the store itself.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "base/json.h"
#include "base/shape.h"
#include "cli/cli.h"
#include "engine/shapes.h"

struct remote;

/* The server that is named, where no store is named instead; NULL: none. */
const char *remote_named(const struct args *args);

/* Runs the command through it; or refuses one that works on a store only. */
enum tide_code remote_run(struct cli *cli, struct tide_err *err) MUST_CHECK;
void remote_close(struct remote *r); /* takes NULL */

/* Where no server is named: the one that serves the store of the command, on its unix socket. TIDE_NOT_FOUND: there is none. */
enum tide_code remote_open_local(struct cli *cli, struct tide_err *err) MUST_CHECK;

/* Refuses the first of these options (ended by NULL) that is given: it means nothing through a server. */
enum tide_code remote_check_options(const struct cli *cli, const char *const *names, struct tide_err *err) MUST_CHECK;

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
enum tide_code remote_ask_page(struct remote *r, const struct json **ret, struct tide_err *err) MUST_CHECK;

/* The same, read into the struct of the shape. */
enum tide_code remote_read(struct remote *r, enum remote_patience patience, const struct shape *shape, void *data,
                           struct tide_err *err) MUST_CHECK;
enum tide_code remote_take(struct remote *r, const struct shape *shape, const struct json *v, void *data,
                           struct tide_err *err) MUST_CHECK;

/* The same, printed as it came; with --json, of what a server says in the same words. */
enum tide_code remote_pass(struct cli *cli, enum remote_patience patience, struct tide_err *err) MUST_CHECK;

/* Server-sent events: the id (0: none), the name ("": none) and the data of each ("": everything up to the id was sent); non-zero ends it. */
typedef int remote_event_fn(void *arg, int64_t id, struct str name, struct str data);
enum tide_code remote_follow(struct remote *r, remote_event_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

struct arena *remote_arena(struct remote *r);

/* Whether this user is known there: by a token, or on a unix socket. */
bool remote_is_known(const struct remote *r);

/* GET /sessions/{id}/why of the first operand: its whole id, and its status. */
enum tide_code remote_why(struct cli *cli, struct session_why *ret, struct tide_err *err) MUST_CHECK;

#endif
