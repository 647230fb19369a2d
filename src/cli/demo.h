/* SPDX-License-Identifier: Apache-2.0 */
/* The demo: a worker that is killed again and again, a parent that keeps what was acknowledged, and the comparison. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include <sys/types.h>

#include "cli/cli.h"

#define DEMO_KILLS 5
#define DEMO_FIRST_SEQ 2 /* session.created is 1 */

/* The event of step 1, 2, 3, …: what the worker appends. Written into `body`, which is cleared before. */
const char *demo_event(int64_t step, struct buf *body);

/* The worker, a process of its own: goes on behind the last event of the session, up to step `until`. */
enum tide_code demo_work(struct cli *cli, const char *id, int64_t until, int64_t pace_ms, struct tide_err *err)
    MUST_CHECK;

/* A child of this same program, its output on a pipe. */
struct demo_child {
    pid_t pid; /* 0: none */
    int fd;
};
enum tide_code demo_spawn(const char *const *args, struct demo_child *ret_child, struct tide_err *err) MUST_CHECK;
int demo_reap(struct demo_child *child); /* waits for its end; the wait status */

/* What is seen of it. */
struct demo_run {
    pid_t pid;
    int64_t mark;  /* steps that it found in the log */
    int64_t acked; /* steps up to which it has acknowledged */
    bool killed;
};
void demo_picture_begin(struct out *out, int64_t steps, const char *store);
void demo_picture_run(struct out *out, int64_t steps, int number, const struct demo_run *run, bool ended);

#endif
