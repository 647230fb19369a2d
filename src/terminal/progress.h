/* SPDX-License-Identifier: Apache-2.0 */
/* One line on standard error about how far a long operation is; only when standard error is a terminal. */
#ifndef TERMINAL_PROGRESS_H
#define TERMINAL_PROGRESS_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tidemark.h"

struct progress {
    const char *what; /* "verify" */
    const char *of;   /* unit: "events" */
    bool shown;
    int64_t next_ms; /* not drawn again before */
};

/* The first call draws nothing before half a second has passed: short work stays silent. */
void progress_init(struct progress *p, const char *what, const char *of);

/* Draws now and then. Non-zero when the person asked to stop: what a tide_progress_fn returns. */
int progress_step(struct progress *p, uint64_t done, uint64_t total);
void progress_done(struct progress *p); /* takes the line away */

/* Set by SIGINT, SIGTERM and SIGHUP: the number of the signal. */
extern atomic_int stop_signal;

/* Waits until one of them is ready; false: a signal has come. */
bool await_any(struct pollfd *p, nfds_t n, int64_t timeout_ms); /* -1: no limit */

/* Waits until there is something to look at; false: it is to stop, or nobody reads standard output any more. */
bool await_change(tide_watch *watch);

#endif
