/* SPDX-License-Identifier: Apache-2.0 */
/* What makes and starts sessions has in common: what a request may name, who may, and the answer once a run has begun. */
#ifndef SERVER_START_H
#define SERVER_START_H

#include "engine/server_settings.h"
#include "server/call.h"
#include "server/runner.h"

/* TIDE_DENIED: the caller's token lacks it. For what a route does only with some of its arguments. */
enum tide_code need_scope(const struct call *c, enum scope scope, struct tide_err *err) MUST_CHECK;

/* As they are now; they are the call's. */
enum tide_code start_settings(struct call *c, struct server_settings *ret, struct tide_err *err) MUST_CHECK;

/*
 * The graph that `graph` (a path below a root) or `graph_digest` (one that was uploaded, which needs SCOPE_ADMIN) names, tide_graph_free() it; and what the
 * runner needs of it, in the call's arena. NULL: the request names none.
 */
enum tide_code start_graph_named(struct call *c, const char *digest, tide_graph **ret, struct graph_order *ret_order,
                                 struct tide_err *err) MUST_CHECK;

/* Whether it can run here with `set`: a key and a model where agents work, and every input. `session`: its memory counts; NULL: none. */
enum tide_code start_check_graph(struct call *c, tide_graph *graph, const char *set, tide_session *session,
                                 struct tide_err *err) MUST_CHECK;

/*
 * Runs it, and answers the call with shape_started when it has begun on disk. `made`: the session was made for it, and is deleted
 * when it does not begin. A message that finds no place is queued in its session.
 */
enum start_flags { START_THERE = 0, START_MADE = 1 };
enum tide_code start_run(struct call *c, struct order *order, enum start_flags flags, struct tide_err *err) MUST_CHECK;

/* The answer where nothing runs. */
void start_reply(struct call *c, const char *session_id, const char *run_id, const char *queue_id, int64_t seq);

#endif
