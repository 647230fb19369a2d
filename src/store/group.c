/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue before the disk. Invariants: `writing` is true while exactly one thread is inside step(); batches finish in
 * the order they were queued; a batch is marked finished only after commit() has returned, that is, after its events are
 * on disk; an owner's failure is set before any batch queued behind it is looked at.
 */
#include "store/group.h"

#include "base/invariant.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#define LINGER_NS 200000 /* a pause this long between submissions ends the gathering of unawaited work */
#define LINGER_MAX 10    /* such waits at most */
/* What may be written later waits so long for a caller that takes it along. Each time costs a thread that wakes. */
#define LATER_NS 20000000

struct group {
    struct store *store;
    pthread_mutex_t mu;
    pthread_cond_t work; /* for the thread */
    pthread_cond_t done; /* something finished, or the writer's place is free: for those who wait for neither below */
    int others;          /* how many wait for that */
    struct waiter *first, **last; /* those who wait for a batch or an owner, each woken by itself */
    struct batch *head, **tail;
    size_t queued, max;
    bool writing, stopping, keep_alive;
    bool thread_started;
    int64_t chore_ns; /* when the store has to be maintained; INT64_MAX: with a heartbeat */
    int64_t due_ns;   /* when the thread has to write what is queued; INT64_MAX: it need not, callers do */
    int64_t alarm_ns; /* the thread sleeps until then; 0: it does not, and looks before it does */
    bool later;       /* something came lately that could wait: likely more does */
    pthread_t thread;
    struct tide_completion *ring;
    size_t ring_len, ring_cap;
    struct tide_store_counts counts;
};

/*
 * A thread that waits: on its own stack, woken by itself. With a hundred of them, waking all for every commit, or all of them
 * through one lock, would cost more than the commit.
 */
struct waiter {
    const struct batch *batch;       /* until it is finished, … */
    const struct group_owner *owner; /* … or all of this owner's are */
    sem_t wake;
    bool over; /* it was woken because of that, and needs the lock no more; else to be the writer */
    struct waiter *next, **before;
};

struct group *group_new(struct store *store, size_t queue_max)
{
    struct group *g = mem_zero(sizeof *g);

    pthread_mutex_init(&g->mu, NULL);
    cond_init_monotonic(&g->work);
    cond_init_monotonic(&g->done);
    g->store = store;
    g->tail = &g->head;
    g->last = &g->first;
    g->max = queue_max;
    g->due_ns = g->chore_ns = INT64_MAX;
    return g;
}

static void finish_batch(struct group *g, struct batch *b)
{
    struct group_owner *o = b->owner;

    g->counts.appends += !b->code;
    g->counts.refused += b->code != TIDE_OK;
    g->counts.events += b->code ? 0 : b->n;

    INVARIANT(!b->finished);
    INVARIANT(b->code || !b->n || b->last_seq == b->first_seq + (int64_t)b->n - 1); /* no gap, no repeat */
    INVARIANT(!o || o->pending > 0);
    if (o) {
        if (b->code == TIDE_OK) {
            o->next_seq = b->last_seq + 1;
        } else if (!o->failed.code) {
            o->failed = b->err;
        }
        o->pending--; /* last: its thread may look without the lock */
    }
    if (b->user) {
        MEM_ROOM(g->ring, g->ring_len, g->ring_cap);
        g->ring[g->ring_len++] = (struct tide_completion){b->user, b->session_handle, b->code, b->last_seq};
    }
    b->finished = true;
    if (b->async)
        batch_free(b);
}

static void count_commit(struct group *g, size_t batches)
{
    size_t i = 0;

    while (i + 1 < TIDE_COMMIT_SIZES && batches > (size_t)1 << i)
        i++;
    g->counts.commits += batches > 0; /* else it was for other processes alone */
    g->counts.commits_of[i] += batches > 0;
}

static bool is_over(const struct waiter *w)
{
    return w->batch ? w->batch->finished : !w->owner->pending;
}

/* With mu held, as all of these. */
static void line_up(struct group *g, struct waiter *w)
{
    w->next = NULL;
    w->before = g->last;
    *g->last = w;
    g->last = &w->next;
}

static void step_out(struct group *g, struct waiter *w)
{
    *w->before = w->next;
    if (w->next)
        w->next->before = w->before;
    else
        g->last = w->before;
}

/* Those for whom what they waited for has come. They are woken when the lock is free again. */
static struct waiter *take_finished(struct group *g)
{
    struct waiter *list = NULL, *next;

    for (struct waiter *w = g->first; w; w = next) {
        next = w->next;
        if (!is_over(w))
            continue;
        step_out(g, w);
        w->over = true;
        w->next = list;
        list = w;
    }
    if (g->others)
        pthread_cond_broadcast(&g->done);
    return list;
}

static void wake_all(struct waiter *list)
{
    for (struct waiter *next; list; list = next) {
        next = list->next; /* it is gone once it is woken */
        sem_post(&list->wake);
    }
}

static void *run_writer(void *arg);

/* With mu held. */
static void need_thread(struct group *g)
{
    if (!g->thread_started && g->store->env->threads)
        g->thread_started = thread_start(&g->thread, run_writer, g);
}

/* The writer's place is free: one of those whose work is queued takes it. */
static void leave_writing(struct group *g)
{
    struct waiter *w = g->first;

    INVARIANT(g->writing);
    g->writing = false;
    if (w && g->head) {
        step_out(g, w);
        sem_post(&w->wake);
    }
    if (g->others)
        pthread_cond_broadcast(&g->done);
    if (g->store->serve) {
        need_thread(g);
        pthread_cond_signal(&g->work);
    }
}

static void wait_for_any(struct group *g)
{
    g->others++;
    pthread_cond_wait(&g->done, &g->mu);
    g->others--;
}

/* Called with mu held, nobody writing and something queued, here or by other processes; returns with mu held. */
static void step_group(struct group *g)
{
    struct batch *list = g->head, *next;
    struct waiter *over;

    INVARIANT((list || g->store->serve) && !g->writing); /* one writer at a time */
    count_commit(g, g->queued);
    g->head = NULL;
    g->tail = &g->head;
    g->queued = 0;
    g->due_ns = INT64_MAX;
    g->writing = true;
    pthread_mutex_unlock(&g->mu);
    store_commit(g->store, list);
    pthread_mutex_lock(&g->mu);
    for (struct batch *b = list; b; b = next) {
        next = b->next; /* before finish: a waiter owns b from then on */
        finish_batch(g, b);
    }
    over = take_finished(g);
    if (!store_is_due(g->store)) {
        leave_writing(g); /* first of all: the next group is written while those of this one are woken */
        pthread_mutex_unlock(&g->mu);
        wake_all(over);
        pthread_mutex_lock(&g->mu);
        return;
    }
    pthread_mutex_unlock(&g->mu);
    wake_all(over);
    store_maintain(g->store);
    pthread_mutex_lock(&g->mu);
    leave_writing(g);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static struct timespec time_at(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static struct timespec deadline_in(int64_t ns)
{
    return time_at(now_ns() + ns);
}

/* Does the next piece of work when that is ours to do, else waits for a change. False when the deadline passed. */
static bool work_or_wait(struct group *g, const struct timespec *deadline)
{
    bool in_time;

    if (!g->writing && g->head) {
        step_group(g);
        return true;
    }
    if (!deadline) {
        wait_for_any(g);
        return true;
    }
    g->others++;
    in_time = pthread_cond_timedwait(&g->done, &g->mu, deadline) != ETIMEDOUT;
    g->others--;
    return in_time;
}

/* The same until what the waiter waits for has come. */
static void work_until_over(struct group *g, struct waiter *w)
{
    sem_init(&w->wake, 0, 0);
    pthread_mutex_lock(&g->mu);
    while (!is_over(w)) {
        if (!g->writing && g->head) {
            step_group(g);
            continue;
        }
        line_up(g, w);
        pthread_mutex_unlock(&g->mu);
        while (sem_wait(&w->wake) != 0)
            ; /* a signal handler ran */
        if (w->over)
            return;
        pthread_mutex_lock(&g->mu);
    }
    pthread_mutex_unlock(&g->mu);
}

/* Waits until submissions pause: a caller that waits for them takes the work meanwhile, whole. */
static void linger_for_more(struct group *g)
{
    for (int i = 0; i < LINGER_MAX && !g->stopping && g->queued < g->max / 2; i++) {
        struct timespec until = deadline_in(LINGER_NS);
        size_t before = g->queued;

        pthread_cond_timedwait(&g->work, &g->mu, &until);
        if (g->queued <= before)
            return;
    }
}

/* Until work is due, or the store is to be maintained. True: it is. */
static bool sleep_until_due(struct group *g)
{
    int64_t now = now_ns(), beat = now + g->store->lease_ms / 4 * 1000000;
    int64_t chore = g->chore_ns < beat ? g->chore_ns : beat, until = g->due_ns < chore ? g->due_ns : chore;
    struct timespec t;
    bool over;

    if (g->later && until > now + LATER_NS) /* then it need not be woken for that */
        until = now + LATER_NS;
    g->later = false;
    t = time_at(until);
    g->alarm_ns = until;
    over = pthread_cond_timedwait(&g->work, &g->mu, &t) == ETIMEDOUT;
    g->alarm_ns = 0;
    return over && until == chore;
}

/* Unless somebody is writing: what was asked for a time is seen to a little later then. */
static void maintain_now(struct group *g)
{
    int64_t now = now_ns();

    if (g->chore_ns <= now)
        g->chore_ns = g->writing ? now + LATER_NS : INT64_MAX;
    if (g->writing)
        return;
    g->writing = true;
    pthread_mutex_unlock(&g->mu);
    store_maintain(g->store);
    pthread_mutex_lock(&g->mu);
    leave_writing(g);
}

static void *run_writer(void *arg)
{
    struct group *g = arg;

    pthread_mutex_lock(&g->mu);
    while (!g->stopping) {
        if (g->store->serve && !g->writing) {
            step_group(g);
            continue;
        }
        if (g->due_ns > now_ns()) {
            if (sleep_until_due(g) && g->keep_alive)
                maintain_now(g);
            continue;
        }
        linger_for_more(g);
        if (g->head && !g->writing)
            step_group(g);
        else if (g->head)
            wait_for_any(g);
    }
    pthread_mutex_unlock(&g->mu);
    return NULL;
}

/* With mu held. */
static void be_due(struct group *g, int64_t due_ns)
{
    need_thread(g);
    if (due_ns < g->due_ns)
        g->due_ns = due_ns;
    if (g->alarm_ns > g->due_ns || g->queued == g->max / 2)
        pthread_cond_signal(&g->work);
}

void group_submit(struct group *g, struct batch *b, enum group_when when)
{
    INVARIANT(b->session[0]);
    INVARIANT(!(b->flags & BATCH_DELETE) || !b->n);
    INVARIANT(!(b->flags & BATCH_LIVE) || b->flags & BATCH_RELEASE);
    INVARIANT(!(b->flags & BATCH_FORCE) || b->flags & BATCH_ACQUIRE);
    INVARIANT(!(b->flags & BATCH_HIDDEN) || b->flags & (BATCH_CREATE | BATCH_DELETE));
    b->next = NULL;
    b->finished = false;
    b->async = when != GROUP_AWAITED;
    pthread_mutex_lock(&g->mu);
    while (g->queued >= g->max)
        work_or_wait(g, NULL);
    *g->tail = b;
    g->tail = &b->next;
    g->queued++;
    if (b->owner)
        b->owner->pending++;
    g->later |= when == GROUP_LATER;
    if (when != GROUP_AWAITED)
        be_due(g, when == GROUP_SOON ? 0 : now_ns() + LATER_NS);
    pthread_mutex_unlock(&g->mu);
}

void group_wait(struct group *g, struct batch *b)
{
    struct waiter w = {.batch = b};

    work_until_over(g, &w);
}

enum tide_code group_flush(struct group *g, struct group_owner *owner, struct tide_err *err)
{
    struct waiter w = {.owner = owner};
    struct tide_err failed;

    if (owner->pending)
        work_until_over(g, &w);
    failed = owner->failed; /* nothing is pending: it is the owner's */
    owner->failed.code = TIDE_OK;
    return failed.code ? tide_err_copy(err, &failed) : TIDE_OK;
}

void group_count(struct group *g, struct tide_store_counts *ret)
{
    pthread_mutex_lock(&g->mu);
    *ret = g->counts;
    ret->queued = g->queued;
    pthread_mutex_unlock(&g->mu);
}

size_t group_reap(struct group *g, struct tide_completion *out, size_t max, int timeout_ms)
{
    struct timespec deadline = deadline_in((timeout_ms > 0 ? timeout_ms : 0) * (int64_t)1000000);
    size_t n;

    pthread_mutex_lock(&g->mu);
    while (!g->ring_len && timeout_ms != 0 && (g->head || g->writing || g->store->env->threads)) {
        if (!work_or_wait(g, timeout_ms < 0 ? NULL : &deadline))
            break;
    }
    n = g->ring_len < max ? g->ring_len : max;
    if (n) {
        memcpy(out, g->ring, n * sizeof *out);
        memmove(g->ring, g->ring + n, (g->ring_len - n) * sizeof *g->ring);
        g->ring_len -= n;
    }
    pthread_mutex_unlock(&g->mu);
    return n;
}

enum tide_code group_alone(struct group *g, enum tide_code (*fn)(struct store *, struct tide_err *),
                           struct tide_err *err)
{
    enum tide_code code;

    pthread_mutex_lock(&g->mu);
    while (g->writing)
        work_or_wait(g, NULL);
    g->writing = true;
    pthread_mutex_unlock(&g->mu);
    code = fn(g->store, err);
    pthread_mutex_lock(&g->mu);
    leave_writing(g);
    pthread_mutex_unlock(&g->mu);
    return code;
}

void group_keep_alive(struct group *g)
{
    pthread_mutex_lock(&g->mu);
    g->keep_alive = true;
    need_thread(g);
    pthread_mutex_unlock(&g->mu);
}

void group_maintain_by(struct group *g, int64_t mono_ns)
{
    if (!g->store->env->threads)
        return; /* the next commit takes care of it, or the close of the store */
    pthread_mutex_lock(&g->mu);
    if (mono_ns < g->chore_ns)
        g->chore_ns = mono_ns;
    g->keep_alive = true;
    need_thread(g);
    if (g->alarm_ns > g->chore_ns)
        pthread_cond_signal(&g->work);
    pthread_mutex_unlock(&g->mu);
}

void group_free(struct group *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->mu);
    while (g->head || g->writing)
        work_or_wait(g, NULL);
    g->stopping = true;
    pthread_cond_broadcast(&g->work);
    pthread_cond_broadcast(&g->done);
    pthread_mutex_unlock(&g->mu);
    if (g->thread_started)
        pthread_join(g->thread, NULL);
    INVARIANT(!g->head && !g->first && !g->writing); /* nobody's work is lost, nobody waits */
    pthread_cond_destroy(&g->work);
    pthread_cond_destroy(&g->done);
    pthread_mutex_destroy(&g->mu);
    free(g->ring);
    free(g);
}
