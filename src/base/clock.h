/* SPDX-License-Identifier: Apache-2.0 */
/* This machine's clocks, for faces and for what waits for processes. Sessions take their time from env.h. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_us(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static inline int64_t wall_ms(void) /* Unix milliseconds */
{
    return clock_us(CLOCK_REALTIME) / 1000;
}

static inline int64_t monotonic_ms(void)
{
    return clock_us(CLOCK_MONOTONIC) / 1000;
}

/* Until when a condition of cond_init_monotonic() is waited for. */
static inline struct timespec monotonic_after(int64_t ms)
{
    int64_t us = clock_us(CLOCK_MONOTONIC) + ms * 1000;

    return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

#endif
