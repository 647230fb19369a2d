/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer is made for a session when it is first changed, and forgotten when nothing of it is under way and too many are kept.
 *
 *   free ──writers_enter──► alone ──writers_leave──► free          its handle is closed: what changes may be anything
 *   free ──writers_append─► appending (n under way) ──► free       its handle stays open
 *
 * One thread takes what is on disk from the store, which it also drives meanwhile. It sleeps while nothing is under way.
 */
#include "server/writers.h"

#include <pthread.h>
#include <string.h>

#include "base/err.h"
#include "base/invariant.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/thread.h"

#define KEPT_MAX 1024 /* handles that nobody uses now */
#define DONE_MAX 256
#define REAP_MS 200 /* what was counted may be refused before it is queued */

struct writer {
    struct writer *newer, *older; /* of those that are free and kept */
    tide_session *session;        /* NULL: not open */
    size_t under_way, waiting;
    bool alone, failed; /* failed: a new handle is needed */
    pthread_cond_t free;
    char id[TIDE_ID_SIZE];
};

struct appending {
    struct writer *writer;
    appended_fn *fn;
    void *arg;
};

struct writers {
    tide_store *store;
    pthread_mutex_t mu;
    pthread_cond_t more;
    struct map map; /* id -> struct writer * */
    struct writer *newest, *oldest;
    size_t kept, under_way;
    pthread_t thread;
    bool running, stopping;
};

/* ---- those that are free, with mu held ------------------------------------------------------------------------------ */

static void unlink_kept(struct writers *w, struct writer *one)
{
    *(one->newer ? &one->newer->older : &w->newest) = one->older;
    *(one->older ? &one->older->newer : &w->oldest) = one->newer;
    one->newer = one->older = NULL;
    w->kept--;
}

static void forget_writer(struct writers *w, struct writer *one)
{
    map_remove(&w->map, str_from(one->id));
    tide_session_close(one->session);
    pthread_cond_destroy(&one->free);
    free(one);
}

/* Nothing of it is under way: it is kept while there is room. */
static void keep_writer(struct writers *w, struct writer *one)
{
    if (one->alone || one->under_way)
        return;
    if (one->waiting) {
        pthread_cond_broadcast(&one->free);
        return;
    }
    if (!one->session) {
        forget_writer(w, one);
        return;
    }
    one->older = w->newest;
    *(w->newest ? &w->newest->newer : &w->oldest) = one;
    w->newest = one;
    if (++w->kept > KEPT_MAX) {
        struct writer *last = w->oldest;

        unlink_kept(w, last);
        forget_writer(w, last);
    }
}

/* Waits until it is free for this; `alone`: until nothing of it is under way. */
static struct writer *use_writer(struct writers *w, const char *id, bool alone)
{
    struct writer *one = map_get(&w->map, str_from(id));

    if (!one) {
        one = mem_zero(sizeof *one);
        INVARIANT(strlen(id) < sizeof one->id);
        memcpy(one->id, id, strlen(id) + 1);
        pthread_cond_init(&one->free, NULL);
        map_put(&w->map, str_from(id), one);
    } else if (w->newest == one || one->newer) {
        unlink_kept(w, one);
    }
    one->waiting++;
    while (one->alone || ((alone || one->failed) && one->under_way))
        pthread_cond_wait(&one->free, &w->mu);
    one->waiting--;
    return one;
}

/* ---- alone ---------------------------------------------------------------------------------------------------------- */

void writers_enter(struct writers *w, const char *id)
{
    struct writer *one;
    tide_session *session;

    pthread_mutex_lock(&w->mu);
    one = use_writer(w, id, true);
    one->alone = true;
    session = one->session;
    one->session = NULL;
    one->failed = false;
    pthread_mutex_unlock(&w->mu);
    tide_session_close(session);
}

void writers_leave(struct writers *w, const char *id)
{
    struct writer *one;

    pthread_mutex_lock(&w->mu);
    one = map_get(&w->map, str_from(id));
    INVARIANT(one && one->alone && !one->session);
    one->alone = false;
    keep_writer(w, one);
    pthread_mutex_unlock(&w->mu);
}

/* ---- appending ------------------------------------------------------------------------------------------------------ */

static void take_done(struct writers *w, const struct tide_completion *done, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct appending *a = done[i].user;

        a->fn(a->arg, done[i].code, done[i].code ? 0 : done[i].seq);
    }
    pthread_mutex_lock(&w->mu);
    for (size_t i = 0; i < n; i++) {
        struct appending *a = done[i].user;

        w->under_way--;
        a->writer->under_way--;
        a->writer->failed |= done[i].code != TIDE_OK;
        keep_writer(w, a->writer);
        free(a);
    }
    pthread_mutex_unlock(&w->mu);
}

static void *run_writers(void *arg)
{
    struct tide_completion done[DONE_MAX];
    struct writers *w = arg;
    bool over;

    for (;;) {
        pthread_mutex_lock(&w->mu);
        while (!w->under_way && !w->stopping)
            pthread_cond_wait(&w->more, &w->mu);
        over = !w->under_way;
        pthread_mutex_unlock(&w->mu);
        if (over)
            return NULL;
        take_done(w, done, tide_store_reap(w->store, done, DONE_MAX, REAP_MS));
    }
}

/* One at a time for a session. A handle that has failed is of no use any more. */
static enum tide_code submit_event(struct writers *w, struct writer *one, const struct tide_new_event *event,
                                   struct appending *a, bool anew, struct tide_err *err)
{
    if (anew) {
        tide_session_close(one->session);
        one->session = NULL;
    }
    if (!one->session &&
        tide_session_open(w->store, one->id, TIDE_SESSION_APPEND | TIDE_SESSION_WHOLE, &one->session, err))
        return err->code;
    return tide_session_append_async(one->session, TIDE_APPEND_DATA | TIDE_APPEND_RELEASE, event, 1, a, err);
}

/* With mu held. Counted before it is queued: its end may come at once. */
static enum tide_code begin_append(struct writers *w, struct writer *one, bool *ret_anew, struct tide_err *err)
{
    if (!w->running)
        w->running = thread_start(&w->thread, run_writers, w);
    if (!w->running)
        return tide_fail(err, TIDE_BUSY, "no thread could be started: try again later");
    *ret_anew = one->failed;
    one->failed = false;
    one->alone = true;
    one->under_way++;
    if (!w->under_way++)
        pthread_cond_signal(&w->more);
    return TIDE_OK;
}

/* With mu held. */
static void settle_append(struct writers *w, struct writer *one, enum tide_code code)
{
    one->alone = false;
    if (code) {
        one->under_way--;
        w->under_way--;
        one->failed = true;
    }
    if (one->under_way && one->waiting)
        pthread_cond_broadcast(&one->free);
    keep_writer(w, one);
}

enum tide_code writers_append(struct writers *w, const char *id, const struct tide_new_event *event, appended_fn *fn,
                              void *arg, struct tide_err *err)
{
    struct appending *a = mem_zero(sizeof *a);
    enum tide_code code;
    struct writer *one;
    bool anew = false;

    pthread_mutex_lock(&w->mu);
    one = use_writer(w, id, false);
    *a = (struct appending){one, fn, arg};
    code = begin_append(w, one, &anew, err);
    if (!code) {
        pthread_mutex_unlock(&w->mu);
        code = submit_event(w, one, event, a, anew, err);
        pthread_mutex_lock(&w->mu);
        settle_append(w, one, code);
    } else {
        keep_writer(w, one);
    }
    pthread_mutex_unlock(&w->mu);
    if (code)
        free(a);
    return code;
}

/* ---- */

struct writers *writers_new(tide_store *store)
{
    struct writers *w = mem_zero(sizeof *w);

    w->store = store;
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->more, NULL);
    return w;
}

void writers_free(struct writers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mu);
    w->stopping = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->mu);
    if (w->running)
        pthread_join(w->thread, NULL);
    while (w->newest) {
        struct writer *one = w->newest;

        unlink_kept(w, one);
        forget_writer(w, one);
    }
    INVARIANT(!map_next(&w->map, NULL));
    map_done(&w->map, NULL);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->mu);
    free(w);
}
