/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One hub for each open store. While it has watchers, a thread of its own waits for the kernel to report writes to the
 * side file, which every commit of every process writes to; then it looks at the store's change number, and signals the
 * watchers' eventfds when that is another one. So a commit wakes each of them once, no matter who made it, and an idle
 * store costs nothing.
 *
 *   commit ─► side file written ─► inotify ─► the hub's thread: change() ─► an eventfd per watcher ─► their loops
 *
 * - A change may be visible before the write that signals it, and its process may die in between: the kernel closes its
 *   files then, and the hub wakes all watchers. That comes before the last of its locks is gone, which readers of plain
 *   files need, and not at all while a child has the same files open: so it checks once more, SETTLE_MS after the last
 *   change.
 * - A watcher is in the list before tide_watch_open() returns, and the list is walked after the look: what is committed later than
 *   that wakes it.
 * - Watchers hold no transaction and no queue: how far each has read is its own affair.
 * - A store that is no file (watch.self is empty) signals changes itself, from a thread of its own: hub_tell().
 * - Where the kernel reports nothing (instances used up, a file system that other machines write to) the thread checks
 *   every POLL_MS.
 * - Without threads (the simulator) the caller that waits checks.
 */
#include "store/hub.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/thread.h"
#include "env/file_watch.h"

#define POLL_MS 50
#define SETTLE_MS 300

struct tide_watch {
    struct hub *hub;
    int fd;      /* -1: no threads */
    bool signal; /* instead of it */
    struct tide_watch *next, **before;
};

struct hub {
    struct store *store;
    pthread_mutex_t life; /* of the thread: held while it is started or ended; it never takes it */
    pthread_mutex_t mu;   /* of the list and of `trouble` */
    struct tide_watch *first;
    struct tide_err trouble; /* code 0: none; else the error that every watcher gets */

    /* The thread's, once it runs. */
    struct file_watch *files;
    struct env_stat side, self; /* as they were when the watching began */
    bool side_watched;
    int64_t version;
    char why[160]; /* it has to poll; written before `polls` is set */

    pthread_t thread;
    bool running;
    atomic_bool polls, stopping;
};

struct hub *hub_new(struct store *store)
{
    struct hub *h = mem_zero(sizeof *h);

    h->store = store;
    if (store->env->threads && store->watch.self[0]) {
        path_from_root(store->watch.self, sizeof store->watch.self);
        path_from_root(store->watch.side, sizeof store->watch.side);
    }
    pthread_mutex_init(&h->life, NULL);
    pthread_mutex_init(&h->mu, NULL);
    return h;
}

void hub_free(struct hub *h)
{
    if (!h)
        return;
    INVARIANT(!h->first && !h->running);
    pthread_mutex_destroy(&h->life);
    pthread_mutex_destroy(&h->mu);
    free(h);
}

/* ---- looking -------------------------------------------------------------------------------------------------------- */

static bool is_same(const struct env_stat *a, const struct env_stat *b)
{
    return a->kind == b->kind && a->dev == b->dev && a->ino == b->ino;
}

static enum tide_code file_id(struct hub *h, const char *path, struct env_stat *ret, struct tide_err *err)
{
    return h->store->env->ops->stat(h->store->env, path, ret, err);
}

static enum tide_code fail_gone(const struct store *s, struct tide_err *err)
{
    tide_fail(err, TIDE_IO, "the store '%.300s' was deleted, moved away or replaced: restore it, or open the new one",
              s->url);
    return tide_about(err, TIDE_SUBJECT_FILE, s->url + strlen(s->ops->scheme) + 1);
}

/* The side file of a store that was closed may be missing: the next writer makes it. */
static enum tide_code check_files(struct hub *h, struct tide_err *err)
{
    const struct store *s = h->store;
    struct env_stat self, side;
    enum tide_code code;

    if (!s->watch.self[0])
        return TIDE_OK;
    code = file_id(h, s->watch.self, &self, err);
    code = code ? code : file_id(h, s->watch.side, &side, err);
    if (code)
        return code;
    if (h->side.kind == ENV_ABSENT)
        h->side = side;
    if (!is_same(&self, &h->self) || !is_same(&side, &h->side))
        return fail_gone(s, err);
    return TIDE_OK;
}

/* True: the watchers must be woken. */
static bool look_at_store(struct hub *h, struct tide_err *ret_trouble)
{
    int64_t version = h->version;
    enum tide_code code = check_files(h, ret_trouble);
    bool changed;

    code = code ? code : store_change(h->store, &version, ret_trouble);
    changed = !code && version != h->version;
    h->version = version;
    ret_trouble->code = code;
    return changed || code != h->trouble.code;
}

static void look_and_wake(struct hub *h, bool wake)
{
    struct tide_err trouble = {.code = TIDE_OK};
    bool news = look_at_store(h, &trouble);

    if (!news && !wake)
        return;
    pthread_mutex_lock(&h->mu);
    h->trouble = trouble;
    for (struct tide_watch *w = h->first; w; w = w->next) {
        w->signal = true;
        if (w->fd >= 0)
            wake_fd_signal(w->fd);
    }
    pthread_mutex_unlock(&h->mu);
}

/* ---- the thread ----------------------------------------------------------------------------------------------------- */

static void parent_of(const char *path, char out[1300])
{
    char *slash;

    snprintf(out, 1300, "%s", path);
    slash = strrchr(out, '/');
    if (slash)
        slash[slash == out] = 0;
    else
        snprintf(out, 1300, ".");
}

static void poll_because(struct hub *h, const char *why)
{
    snprintf(h->why, sizeof h->why, "%.150s", why);
    h->polls = true;
}

/* The side file, as soon as it is there. */
static void watch_side(struct hub *h)
{
    struct tide_err err;
    enum tide_code code;

    if (h->side_watched || h->polls || !h->store->watch.self[0])
        return;
    code = file_watch_add(h->files, h->store->watch.side, FILE_WATCH_WRITES, &err);
    h->side_watched = !code;
    if (code && code != TIDE_NOT_FOUND)
        poll_because(h, err.msg);
}

static void watch_files(struct hub *h)
{
    struct store *s = h->store;
    struct tide_err err;
    char dir[1300];

    if (!h->polls && !s->env->ops->is_local(s->env, s->watch.self))
        poll_because(h, "other machines may write to its file system, and the kernel does not report that");
    watch_side(h);
    parent_of(s->watch.side, dir);
    if (!h->polls && (file_watch_add(h->files, s->watch.self, FILE_WATCH_NAME, &err) ||
                      (!h->side_watched && file_watch_add(h->files, dir, FILE_WATCH_DIR, &err))))
        poll_because(h, err.msg);
    watch_side(h); /* made while its directory was not watched yet */
}

static void *run_hub(void *arg)
{
    struct hub *h = arg;
    bool settled = true;

    for (;;) {
        enum file_news news = file_watch_wait(h->files, h->polls ? POLL_MS : settled ? -1 : SETTLE_MS);

        if (h->stopping)
            return NULL;
        watch_side(h);
        look_and_wake(h, news == FILE_NEWS_LEFT);
        settled = news == FILE_NEWS_NONE && !h->trouble.code;
    }
}

/* In this order: watch what is written from here on; then read the change number. */
static enum tide_code start_hub(struct hub *h, struct tide_err *err)
{
    struct store *s = h->store;
    enum tide_code code = TIDE_OK;

    h->polls = h->side_watched = false;
    h->stopping = false;
    h->trouble.code = TIDE_OK;
    h->why[0] = 0;
    if (s->env->threads)
        code = file_watch_open(&h->files, h->why, sizeof h->why, err);
    h->polls = h->why[0] != 0;
    if (s->watch.self[0]) {
        code = code ? code : file_id(h, s->watch.self, &h->self, err);
        code = code ? code : file_id(h, s->watch.side, &h->side, err);
        if (!code && h->self.kind == ENV_ABSENT)
            code = fail_gone(s, err);
        if (!code && h->files)
            watch_files(h);
    }
    code = code ? code : store_change(s, &h->version, err);
    if (!code && h->files) {
        bool started = thread_start(&h->thread, run_hub, h);

        h->running = started;
        code = started ? TIDE_OK : tide_fail(err, TIDE_FAILED, "no thread could be started");
    }
    if (code)
        file_watch_close(TAKE(h->files));
    return code;
}

static void stop_hub(struct hub *h)
{
    INVARIANT(!h->first); /* nobody watches any more */
    if (h->running) {
        h->stopping = true;
        file_watch_poke(h->files);
        pthread_join(h->thread, NULL);
        h->running = false;
    }
    file_watch_close(TAKE(h->files));
}

void hub_tell(struct hub *h)
{
    pthread_mutex_lock(&h->life); /* it may be ending */
    if (h->running)
        file_watch_poke(h->files);
    pthread_mutex_unlock(&h->life);
}

void hub_committed(struct hub *h)
{
    if (h && h->polls)
        hub_tell(h);
}

/* ---- watchers ------------------------------------------------------------------------------------------------------- */

size_t hub_count(struct hub *h)
{
    size_t n = 0;

    pthread_mutex_lock(&h->mu);
    for (const struct tide_watch *w = h->first; w; w = w->next)
        n++;
    pthread_mutex_unlock(&h->mu);
    return n;
}

enum tide_code tide_watch_open(tide_store *store, tide_watch **ret_watch, struct tide_err *err)
{
    struct hub *h = store_of(store)->hub;
    struct tide_watch *w = mem_zero(sizeof *w);
    enum tide_code code = TIDE_OK;

    ERR_LOCAL(err);
    w->hub = h;
    w->fd = -1;
    if (h->store->env->threads)
        code = wake_fd_open(&w->fd, err);
    pthread_mutex_lock(&h->life);
    if (!code && !h->first)
        code = start_hub(h, err);
    if (!code) {
        pthread_mutex_lock(&h->mu);
        w->next = h->first;
        w->before = &h->first;
        if (w->next)
            w->next->before = &w->next;
        h->first = w;
        if (h->trouble.code && w->fd >= 0)
            wake_fd_signal(w->fd); /* the others heard of it */
        pthread_mutex_unlock(&h->mu);
        *ret_watch = w;
    }
    pthread_mutex_unlock(&h->life);
    if (!code)
        return TIDE_OK;
    if (w->fd >= 0)
        close(w->fd);
    free(w);
    return tide_wrap(err, "watch the store");
}

void tide_watch_close(tide_watch *w)
{
    struct hub *h;

    if (!w)
        return;
    h = w->hub;
    INVARIANT(h);
    pthread_mutex_lock(&h->life);
    pthread_mutex_lock(&h->mu);
    INVARIANT(*w->before == w);
    *w->before = w->next;
    if (w->next)
        w->next->before = w->before;
    pthread_mutex_unlock(&h->mu);
    if (!h->first)
        stop_hub(h);
    pthread_mutex_unlock(&h->life);
    if (w->fd >= 0)
        close(w->fd);
    free(w);
}

int tide_watch_fd(const tide_watch *w)
{
    return w->fd;
}

const char *tide_watch_polls(const tide_watch *w)
{
    return w->hub->polls ? w->hub->why : NULL;
}

/* Without threads: a wake is a look. */
static bool look_until(struct tide_watch *w, int timeout_ms)
{
    struct env *env = w->hub->store->env;

    for (int waited = 0, nap = 1;; waited += nap, nap = nap < 32 ? nap * 2 : POLL_MS) {
        look_and_wake(w->hub, false);
        if (w->signal || (timeout_ms >= 0 && waited >= timeout_ms))
            return w->signal;
        env->ops->sleep_ms(env, nap);
    }
}

enum tide_code tide_watch_wait(tide_watch *w, int timeout_ms, int *ret_changed, struct tide_err *err)
{
    bool changed = w->fd >= 0 ? wake_fd_wait(w->fd, timeout_ms) : look_until(w, timeout_ms);
    enum tide_code code;

    ERR_LOCAL(err);
    if (w->fd < 0)
        w->signal = false;
    pthread_mutex_lock(&w->hub->mu);
    code = w->hub->trouble.code ? tide_err_copy(err, &w->hub->trouble) : TIDE_OK;
    pthread_mutex_unlock(&w->hub->mu);
    if (!code)
        *ret_changed = changed;
    return code;
}
