/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweeper: a thread that does nothing but tide_store_recover(), so that what it takes to write down the fate of a thousand
 * sessions is in nobody's way. A sweep that fails is logged and tried again next time.
 * It must be started after the process has forked what it supervises, and stopped before the store is closed.
 */
#include "engine/recovery_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

struct recovery_thread {
    tide_store *store;
    int64_t interval_ms;
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t wake;
    bool stopping;
};

/* True when it is time for the next one; false when we are to stop. With mu held. */
static bool pause_until_next(struct recovery_thread *s)
{
    const struct timespec at = monotonic_after(s->interval_ms);

    while (!s->stopping && pthread_cond_timedwait(&s->wake, &s->mu, &at) == 0)
        continue;
    return !s->stopping;
}

static int stop_early(void *arg, const struct tide_recovered *what)
{
    struct recovery_thread *s = arg;
    bool stopping;

    (void)what;
    pthread_mutex_lock(&s->mu);
    stopping = s->stopping;
    pthread_mutex_unlock(&s->mu);
    return stopping;
}

static void *run_recovery(void *arg)
{
    struct recovery_thread *s = arg;
    struct tide_err err;

    pthread_mutex_lock(&s->mu);
    do {
        pthread_mutex_unlock(&s->mu);
        if (tide_store_recover(s->store, 0, stop_early, s, NULL, &err))
            log_write(TIDE_LOG_WARN, "recovery failed: tried again later", log_text("code", tide_code_name(err.code)),
                      log_text("why", err.msg));
        pthread_mutex_lock(&s->mu);
    } while (pause_until_next(s));
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

struct recovery_thread *recovery_thread_start(tide_store *store, int64_t interval_ms)
{
    struct recovery_thread *s;

    if (interval_ms <= 0)
        return NULL;
    s = mem_zero(sizeof(*s));
    s->store = store;
    s->interval_ms = interval_ms;
    pthread_mutex_init(&s->mu, NULL);
    cond_init_monotonic(&s->wake);
    if (thread_start(&s->thread, run_recovery, s))
        return s;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mu);
    free(s);
    return NULL;
}

void recovery_thread_stop(struct recovery_thread *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mu);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mu);
    free(s);
}
