/* SPDX-License-Identifier: Apache-2.0 */
#include "server/workers.h"

#include <pthread.h>

#include "base/mem.h"
#include "base/thread.h"

struct work {
    void (*fn)(void *arg);
    void *arg;
};

struct workers {
    pthread_mutex_t mu;
    pthread_cond_t more;
    pthread_t *threads;
    size_t started, max_threads, idle;
    struct work *ring;
    size_t first, n, max;
    bool stopping;
};

struct workers *workers_new(size_t threads, size_t queue_max)
{
    struct workers *w = mem_zero(sizeof *w);

    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->more, NULL);
    w->threads = mem_array(threads, sizeof *w->threads);
    w->max_threads = threads;
    w->ring = mem_array(queue_max, sizeof *w->ring);
    w->max = queue_max;
    return w;
}

static void *run_worker(void *arg)
{
    struct workers *w = arg;
    struct work job;

    pthread_mutex_lock(&w->mu);
    while (w->n || !w->stopping) {
        if (!w->n) {
            w->idle++;
            pthread_cond_wait(&w->more, &w->mu);
            w->idle--;
            continue;
        }
        job = w->ring[w->first];
        w->first = (w->first + 1) % w->max;
        w->n--;
        pthread_mutex_unlock(&w->mu);
        job.fn(job.arg);
        pthread_mutex_lock(&w->mu);
    }
    pthread_mutex_unlock(&w->mu);
    return NULL;
}

/* With mu held. A thread is started when there is work for one more. */
static void start_one(struct workers *w)
{
    if (w->started < w->max_threads && w->idle < w->n && thread_start(&w->threads[w->started], run_worker, w))
        w->started++;
}

bool workers_post(struct workers *w, void (*fn)(void *arg), void *arg)
{
    bool ok;

    pthread_mutex_lock(&w->mu);
    ok = w->n < w->max && !w->stopping;
    if (ok) {
        w->ring[(w->first + w->n++) % w->max] = (struct work){fn, arg};
        start_one(w);
        if (!w->started) {
            w->n--;
            ok = false;
        }
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->mu);
    return ok;
}

size_t workers_queued(struct workers *w)
{
    size_t n;

    pthread_mutex_lock(&w->mu);
    n = w->n;
    pthread_mutex_unlock(&w->mu);
    return n;
}

void workers_stop(struct workers *w)
{
    size_t started;

    if (!w)
        return;
    pthread_mutex_lock(&w->mu);
    w->stopping = true;
    started = w->started;
    w->started = 0;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->mu);
    for (size_t i = 0; i < started; i++)
        pthread_join(w->threads[i], NULL);
}

void workers_free(struct workers *w)
{
    if (!w)
        return;
    workers_stop(w);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->mu);
    free(w->threads);
    free(w->ring);
    free(w);
}
