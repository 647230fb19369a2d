/* SPDX-License-Identifier: Apache-2.0 */
/* A thread begins with the mask of the one that makes it: all signals are blocked for that moment. */
#include "base/thread.h"

#include <signal.h>

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
