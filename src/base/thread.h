/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Signals are for the threads of the caller: one that blocks them to wait for them would lose them to ours. */
bool thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);

/* Timed waits by the monotonic clock (monotonic_after()): setting the wall clock holds up nobody. */
void cond_init_monotonic(pthread_cond_t *cond);

#endif
