/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has happened to a run that nobody wrote down: its process is gone, its wait is over, its token has expired. Pure:
 * decides which events say so; recovery, resume and a new run append them. The same decision everywhere is what makes each
 * of them happen once.
 */
#ifndef SESSION_SETTLE_H
#define SESSION_SETTLE_H

#include "session/event_draft.h"
#include "session/state.h"

enum settled { SETTLED_NOTHING, SETTLED_INTERRUPTED, SETTLED_TIMED_OUT, SETTLED_TOKEN_EXPIRED, SETTLED_ANSWERED };

#define SETTLED_BY "deadline" /* who answers a wait by its default: `by` of run.resumed */

/*
 * What the deadline of the wait that is open has made of it, by this time; UNSET: it has none, or it has not passed. Nobody
 * else can answer it then, whether that was written down or not.
 */
enum tide_on_deadline settle_deadline(const struct run *r, int64_t now_ms);

/* With nobody alive behind it. The events end with status.derived when there are any. */
enum settled settle_lapsed(struct draft *d, const struct state *s, int64_t now_ms);

/* The latest run is to be continued by a new one: it must have ended, as recovery would have ended it. `reason`: why
 * its wait is over. */
void settle_for_resume(struct draft *d, const struct state *s, const char *reason, int64_t now_ms);

/* A new chain begins: one that waits is superseded. */
void settle_for_new_run(struct draft *d, const struct state *s);

/* Whether the wait that is open takes a message from the queue; and whether there is one that a run could take now: that of such
 * a wait, or a new one after the last has completed. Recovery delivers it. */
bool settle_takes_queue(const struct run *r);
bool settle_delivers(const struct state *s);

/* Whether recovery has to look at it again though nobody holds it, and from when on (0: at once; INT64_MAX: not by the clock). */
bool settle_is_live(const struct state *s);
int64_t settle_wake_ms(const struct state *s);

#endif
