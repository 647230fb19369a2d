/* SPDX-License-Identifier: Apache-2.0 */
/* A thread begins with the mask of the one that makes it: all signals are blocked for that moment. */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

bool thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    bool started;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    started = pthread_create(ret_thread, NULL, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void cond_init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}
