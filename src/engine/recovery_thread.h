/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery beside what a long-lived process does: at its start, and again every so often while it lives. */
#ifndef ENGINE_RECOVERY_THREAD_H
#define ENGINE_RECOVERY_THREAD_H

#include <stdint.h>

#include "tidemark.h"

struct recovery_thread;

/* Begins in a thread of its own; interval_ms 0: none, and NULL comes back. */
struct recovery_thread *recovery_thread_start(tide_store *store, int64_t interval_ms);
void recovery_thread_stop(struct recovery_thread *sweep); /* waits for one that is under way; takes NULL */

#endif
