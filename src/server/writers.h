/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that this server changes. One call at a time changes a session; appended events follow each other without waiting, so
 * that those of all clients share commits. Handles of sessions that are appended to stay open, without a lease.
 */
#ifndef SERVER_WRITERS_H
#define SERVER_WRITERS_H

#include "tidemark.h"

struct writers;
struct writers *writers_new(tide_store *store);
/* Waits for what is queued. Takes NULL. */
void writers_free(struct writers *w);

/* Waits until nobody else changes the session. */
void writers_enter(struct writers *w, const char *id);
void writers_leave(struct writers *w, const char *id);

/* Called once, from another thread, when the event is on disk (TIDE_OK), or refused or lost; then its seq is 0. */
typedef void appended_fn(void *arg, enum tide_code code, int64_t seq);

/* Queues one event at the session's end. `fn` is called only if this returns TIDE_OK. */
enum tide_code writers_append(struct writers *w, const char *id, const struct tide_new_event *event, appended_fn *fn,
                              void *arg, struct tide_err *err) TIDE_MUST_CHECK;

#endif
