/* SPDX-License-Identifier: Apache-2.0 */
/* When to try again, and how long to wait before: one answer for steps and model calls. Pure. */
#ifndef SESSION_RETRY_H
#define SESSION_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define RETRY_BASE_MS_DEFAULT 500
#define RETRY_CAP_MS 60000

/*
 * Milliseconds to wait after `attempt` (from 0) failed: base * 2^attempt, ten per cent more or less by `random`, at most a
 * minute; what the other side asked for (Retry-After; negative: nothing) wins.
 */
int64_t retry_delay_ms(int64_t base_ms, int attempt, uint32_t random, int64_t asked_ms);

/* Whether a failure of this code can pass by itself; one that is not known can. */
bool retry_helps(struct str code);

#endif
