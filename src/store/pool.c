/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same for several files or parts of an event at once: writes, syncs, digests. A disk takes the flushes of several files together
 * when they come together: sixteen threads that wait are enough for that, and the first share is the caller's own work. Where nothing may start a thread they go one
 * by one. Which of them is next is a counter, not a lock: with a lock for every file the threads would wait for each other.
 */
#include <stdatomic.h>

#include "base/invariant.h"
#include "base/thread.h"
#include "base/mem.h"
#include "env/env.h"
#include "store/pool.h"

#define THREADS 16

struct pool {
    struct env *env;
    pthread_mutex_t turn; /* of one who asks: commits and readers come at the same time */
    pthread_mutex_t mu;   /* of what follows, but for `next` */
    pthread_cond_t work, done;
    pthread_t threads[THREADS];
    size_t started, working; /* working: threads that have taken up this job, and must leave it before it is over */
    bool stopping;
    pool_fn *fn;
    void *arg;
    size_t n;
    atomic_size_t next;
};

struct pool *pool_new(struct env *env)
{
    struct pool *p = mem_zero(sizeof *p);

    p->env = env;
    pthread_mutex_init(&p->turn, NULL);
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    return p;
}

static void work_share(struct pool *p)
{
    for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < p->n;)
        p->fn(p->arg, i);
}

static void *run_worker(void *arg)
{
    struct pool *p = arg;

    pthread_mutex_lock(&p->mu);
    while (!p->stopping) {
        if (p->next >= p->n) {
            pthread_cond_wait(&p->work, &p->mu);
            continue;
        }
        p->working++;
        pthread_mutex_unlock(&p->mu);
        work_share(p);
        pthread_mutex_lock(&p->mu);
        if (--p->working == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->mu);
    return NULL;
}

static void share_work(struct pool *p, size_t n, pool_fn *fn, void *arg)
{
    size_t helpers = n - 1 < THREADS ? n - 1 : THREADS;

    pthread_mutex_lock(&p->turn);
    while (p->started < helpers && thread_start(&p->threads[p->started], run_worker, p))
        p->started++;
    pthread_mutex_lock(&p->mu);
    INVARIANT(!p->working && !p->n); /* nobody is at the job before */
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    p->next = 0;
    pthread_mutex_unlock(&p->mu);
    for (size_t i = 0; i < helpers; i++)
        pthread_cond_signal(&p->work);
    work_share(p);
    pthread_mutex_lock(&p->mu);
    while (p->working > 0)
        pthread_cond_wait(&p->done, &p->mu);
    p->n = 0;
    pthread_mutex_unlock(&p->mu);
    pthread_mutex_unlock(&p->turn);
}

void pool_each(struct pool *p, size_t n, pool_fn *fn, void *arg)
{
    if (n > 1 && p->env->threads) {
        share_work(p, n, fn, arg);
        return;
    }
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mu);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mu);
    for (size_t i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->turn);
    pthread_mutex_destroy(&p->mu);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    free(p);
}
