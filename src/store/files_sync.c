/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Syncs of many files at once. A disk takes the flushes of several files together when they come together: sixteen threads
 * that wait are enough for that, and one file is synced by whoever asks. Where nothing may start a thread they go one by one.
 */
#include <signal.h>

#include "base/thread.h"
#include "store/files_store.h"

#define THREADS 16

struct files_pool {
    struct env *env;
    pthread_mutex_t turn; /* of one who asks: commits and readers come at the same time */
    pthread_mutex_t mu;
    pthread_cond_t work, done;
    pthread_t threads[THREADS];
    int started;
    bool stopping;
    struct env_file *const *files;
    size_t n, next, left;
    enum tide_code *codes;
    struct tide_err *errs;
};

struct files_pool *pool_new(struct env *env)
{
    struct files_pool *p = mem_zero(sizeof *p);

    p->env = env;
    pthread_mutex_init(&p->turn, NULL);
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    return p;
}

/* With mu, which is given back meanwhile. */
static void do_one(struct files_pool *p)
{
    size_t i = p->next++;

    pthread_mutex_unlock(&p->mu);
    p->codes[i] = p->env->ops->sync(p->files[i], &p->errs[i]);
    pthread_mutex_lock(&p->mu);
    if (--p->left == 0)
        pthread_cond_signal(&p->done);
}

static void *run(void *arg)
{
    struct files_pool *p = arg;

    pthread_mutex_lock(&p->mu);
    while (!p->stopping) {
        if (p->next < p->n)
            do_one(p);
        else
            pthread_cond_wait(&p->work, &p->mu);
    }
    pthread_mutex_unlock(&p->mu);
    return NULL;
}

static void hire(struct files_pool *p, size_t wanted)
{
    while (p->env->threads && p->started < THREADS && (size_t)p->started < wanted &&
           thread_start(&p->threads[p->started], run, p))
        p->started++;
}

void pool_sync(struct files_pool *p, struct env_file *const *files, size_t n, enum tide_code *codes,
               struct tide_err *errs)
{
    pthread_mutex_lock(&p->turn);
    if (n > 1)
        hire(p, n - 1);
    pthread_mutex_lock(&p->mu);
    p->files = files;
    p->codes = codes;
    p->errs = errs;
    p->next = 0;
    p->n = p->left = n;
    if (n > 1)
        pthread_cond_broadcast(&p->work);
    while (p->next < p->n)
        do_one(p);
    while (p->left > 0)
        pthread_cond_wait(&p->done, &p->mu);
    p->n = p->next = 0;
    pthread_mutex_unlock(&p->mu);
    pthread_mutex_unlock(&p->turn);
}

void pool_free(struct files_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mu);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mu);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->turn);
    pthread_mutex_destroy(&p->mu);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    free(p);
}
