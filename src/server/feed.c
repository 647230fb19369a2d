/* SPDX-License-Identifier: Apache-2.0 */
#include "server/feed_internal.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "env/file_watch.h"

#define HEARTBEAT_MS 15000
#define CHECK_MS 500  /* tokens are looked at again so often, while anybody follows */
#define ROOM_MS 20    /* the same for those who are behind and take nothing */
#define AGAIN_MS 1000 /* after trouble with the store */
#define GATHER_MS 4 /* what comes so soon after the last look is looked at together: a look costs more than an event */

/* ---- lists ---------------------------------------------------------------------------------------------------------- */

struct follower *feed_followers_of(struct feed *f, const char *session_id)
{
    return session_id[0] ? map_get(&f->sessions, str_from(session_id)) : f->all;
}

static void put_first(struct feed *f, const char *session_id, struct follower *first)
{
    if (!session_id[0])
        f->all = first;
    else if (first)
        map_put(&f->sessions, str_from(session_id), first);
    else
        map_remove(&f->sessions, str_from(session_id));
}

static void add_follower(struct feed *f, struct follower *one)
{
    one->next = feed_followers_of(f, one->session_id);
    if (one->next)
        one->next->before = &one->next;
    one->before = NULL; /* the first */
    put_first(f, one->session_id, one);
}

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

static void follower_free(struct follower *one)
{
    free_list(one->kinds);
    free_list(one->sessions);
    free(one->task_id);
    free(one);
}

void feed_drop(struct feed *f, struct follower *one, enum feed_end why)
{
    if (one->before)
        *one->before = one->next;
    else
        put_first(f, one->session_id, one->next);
    if (one->next)
        one->next->before = one->before;
    f->n--;
    f->n_behind -= one->catching_up;
    f->dropped += why != FEED_LEFT;
    one->face.dropped(one->face.arg, why);
    follower_free(one);
}

/* Each follower once; `fn` may drop the one that it gets. */
static void each_follower(struct feed *f, void (*fn)(struct feed *f, struct follower *one, void *arg), void *arg)
{
    struct follower *next;

    for (struct follower *one = f->all; one; one = next) {
        next = one->next;
        fn(f, one, arg);
    }
    for (struct map_entry *e = map_next(&f->sessions, NULL); e; e = map_next(&f->sessions, e))
        for (struct follower *one = e->value; one; one = next) {
            next = one->next;
            fn(f, one, arg);
        }
}

/* ---- the thread ---- */

static void drop_number(struct feed *f, struct follower *first, int64_t number)
{
    for (struct follower *one = first; one; one = one->next)
        if (one->number == number) {
            feed_drop(f, one, FEED_LEFT);
            return;
        }
}

static void look_at_store(struct feed *f)
{
    feed_read_new(f);
    f->read_ms = monotonic_ms();
}

static void tell_end(struct feed *f, struct feed_end_of_all *end)
{
    look_at_store(f);
    pthread_mutex_lock(&f->mu);
    *end = (struct feed_end_of_all){f->position, true};
    pthread_cond_broadcast(&f->told);
    pthread_mutex_unlock(&f->mu);
}

static void take_note(struct feed *f, struct note *n)
{
    if (n->asks)
        tell_end(f, n->asks);
    else if (n->joins)
        add_follower(f, n->joins);
    else if (n->leaves)
        drop_number(f, feed_followers_of(f, n->session_id), n->leaves);
    else
        feed_send_text(f, n);
}

static bool take_notes(struct feed *f)
{
    struct note *list, *next;
    bool stopping;

    pthread_mutex_lock(&f->mu);
    list = f->first;
    f->first = NULL;
    f->last = &f->first;
    stopping = f->stopping;
    pthread_mutex_unlock(&f->mu);
    for (; list; list = next) {
        next = list->next;
        take_note(f, list);
        free(list);
    }
    return !stopping;
}

static void check_follower(struct feed *f, struct follower *one, void *arg)
{
    int64_t *longest_ms = arg, behind_ms = one->catching_up ? f->now_ms - one->behind_ms : 0;

    if (!access_holds(f->access, &one->caller))
        feed_drop(f, one, FEED_REVOKED);
    else if (behind_ms > *longest_ms)
        *longest_ms = behind_ms;
}

static void keep_time(struct feed *f)
{
    if (f->now_ms >= f->checked_ms + CHECK_MS) {
        int64_t longest_ms = 0;

        f->checked_ms = f->now_ms;
        each_follower(f, check_follower, &longest_ms);
        f->lag_ms = longest_ms;
    }
    if (f->now_ms >= f->beat_ms + HEARTBEAT_MS) {
        f->beat_ms = f->now_ms;
        each_follower(f, feed_beat, NULL);
    }
}

static void drop_any(struct feed *f, struct follower *one, void *arg)
{
    (void)arg;
    feed_drop(f, one, FEED_STOPPED);
}

/* Until something is new, or may be. */
static int patience_ms(const struct feed *f, bool changed)
{
    int64_t gathers = f->read_ms + GATHER_MS - f->now_ms;

    if (f->more || (changed && gathers <= 0))
        return 0;
    return changed ? (int)gathers : f->trouble ? AGAIN_MS : f->n_behind ? ROOM_MS : f->n ? CHECK_MS : -1;
}

static void *run_feed(void *arg)
{
    struct feed *f = arg;
    struct tide_err err;
    int changed = 1;

    while (take_notes(f)) {
        struct pollfd p[2] = {{.fd = tide_watch_fd(f->watch), .events = POLLIN}, {.fd = f->wake, .events = POLLIN}};

        f->now_ms = monotonic_ms();
        f->more = false;
        if (f->trouble || (changed && f->now_ms >= f->read_ms + GATHER_MS)) {
            changed = 0;
            look_at_store(f);
        }
        if (f->n_behind)
            each_follower(f, feed_catch_up, NULL);
        keep_time(f);
        p[0].fd = changed ? -1 : p[0].fd; /* it is known, and waits for more of it */
        if (poll(p, 2, patience_ms(f, changed)) <= 0)
            continue;
        if (p[1].revents)
            (void)wake_fd_wait(f->wake, 0);
        if (p[0].revents && tide_watch_wait(f->watch, 0, &changed, &err))
            changed = 1;
    }
    each_follower(f, drop_any, NULL);
    return NULL;
}

/* ---- for others ---- */

static int last_position(void *arg, const struct tide_event *e)
{
    (void)arg;
    (void)e;
    return 1;
}

struct feed *feed_new(tide_store *store, struct access *access)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct feed *f = mem_zero(sizeof *f);
    struct json *info = NULL;
    struct tide_err err;

    f->store = store;
    f->access = access;
    f->last = &f->first;
    f->wake = -1;
    pthread_mutex_init(&f->mu, NULL);
    pthread_cond_init(&f->told, NULL);
    f->by_position = !tide_store_read(store, INT64_MAX - 1, 1, last_position, NULL, &err);
    if (f->by_position && !tide_store_get_info(store, &text, &err) &&
        !json_parse(&a, (struct str){text.ptr, text.len}, NULL, &info, NULL, &err))
        f->position = json_get_int(info, STR("last_position"), 0);
    return f;
}

/* With mu held: nobody follows yet, and nothing runs until somebody does. */
static enum tide_code start_feed(struct feed *f, struct tide_err *err)
{
    if (f->running)
        return TIDE_OK;
    if (!f->watch && tide_watch_open(f->store, &f->watch, err))
        return err->code;
    if (f->wake < 0 && wake_fd_open(&f->wake, err))
        return err->code;
    f->running = thread_start(&f->thread, run_feed, f);
    return f->running ? TIDE_OK : tide_fail(err, TIDE_BUSY, "no thread could be started: try again later");
}

/* With mu held. */
static void leave_note(struct feed *f, struct note *n)
{
    *f->last = n;
    f->last = &n->next;
    wake_fd_signal(f->wake);
}

static struct note *note_new(size_t len)
{
    return mem_zero(sizeof(struct note) + len);
}

static char **copy_list(const char *const *from)
{
    size_t n = 0;
    char **copy;

    if (!from)
        return NULL;
    while (from[n])
        n++;
    copy = mem_array(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = mem_dup(str_from(from[i]));
    return copy;
}

/* The feed itself looks: what it has not handed to anybody yet is older than a follower that comes now. */
static enum tide_code find_end_of_all(struct feed *f, int64_t *ret, struct tide_err *err)
{
    struct feed_end_of_all end = {0, false};
    struct note *n = note_new(0);
    enum tide_code code;

    n->asks = &end;
    pthread_mutex_lock(&f->mu);
    code = f->stopping ? tide_fail(err, TIDE_BUSY, "the server is being stopped") : start_feed(f, err);
    if (!code)
        leave_note(f, n); /* its thread takes all that is left before it is stopped */
    while (!code && !end.known)
        pthread_cond_wait(&f->told, &f->mu);
    pthread_mutex_unlock(&f->mu);
    if (code)
        free(n);
    *ret = end.position;
    return code;
}

static enum tide_code find_end_of_session(struct feed *f, const char *id, int64_t *ret, struct tide_err *err)
{
    tide_session *session;

    if (tide_session_open(f->store, id, TIDE_SESSION_WHOLE, &session, err))
        return err->code;
    *ret = tide_session_last_seq(session);
    tide_session_close(session);
    return TIDE_OK;
}

/* The caller that follows from now on misses nothing that happens once this is answered. A snapshot is as of when it is made. */
static enum tide_code find_begin(struct feed *f, const struct follow *what, int64_t *ret, struct tide_err *err)
{
    *ret = what->after;
    if (what->after >= 0 || what->flags & FOLLOW_SNAPSHOT)
        return TIDE_OK;
    return what->session_id ? find_end_of_session(f, what->session_id, ret, err) : find_end_of_all(f, ret, err);
}

enum tide_code follower_new(struct feed *f, const struct follow *what, const struct follower_face *face,
                            struct follower **ret, int64_t *ret_number, struct tide_err *err)
{
    struct follower *one;
    int64_t begin;

    if (!what->session_id && !f->by_position)
        return tide_fail(err, TIDE_INVALID,
                         "a store of plain files has no order among its sessions: follow them one by one");
    if (find_begin(f, what, &begin, err))
        return err->code;
    one = mem_zero(sizeof *one);
    one->face = *face;
    snprintf(one->session_id, sizeof one->session_id, "%s", what->session_id ? what->session_id : "");
    one->last = begin;
    one->catching_up = one->unsure = true;
    one->moved_ms = one->behind_ms = monotonic_ms();
    one->flags = what->flags;
    one->kinds = copy_list(what->kinds);
    one->sessions = copy_list(what->sessions);
    one->task_id = what->task_id ? mem_dup(str_from(what->task_id)) : NULL;
    one->caller = what->caller;
    one->number = ++f->last_number;
    *ret_number = one->number;
    *ret = one;
    return TIDE_OK;
}

void follower_join(struct feed *f, struct follower *one)
{
    struct note *n = note_new(0);
    struct tide_err err;
    bool runs;

    n->joins = one;
    f->n++;
    f->n_behind++;
    pthread_mutex_lock(&f->mu);
    runs = !start_feed(f, &err);
    if (runs)
        leave_note(f, n);
    pthread_mutex_unlock(&f->mu);
    if (runs)
        return;
    free(n);
    f->n--;
    f->n_behind--;
    one->face.dropped(one->face.arg, FEED_FAILED);
    follower_free(one);
}

void follower_leave(struct feed *f, const char *session_id, int64_t number)
{
    struct note *n = note_new(0);

    n->leaves = number;
    snprintf(n->session_id, sizeof n->session_id, "%s", session_id ? session_id : "");
    pthread_mutex_lock(&f->mu);
    leave_note(f, n);
    pthread_mutex_unlock(&f->mu);
}

void feed_publish(struct feed *f, enum feed_what what, const char *session_id, struct str json)
{
    struct note *n;

    if (!f->n)
        return;
    n = note_new(json.len);
    n->what = what;
    snprintf(n->session_id, sizeof n->session_id, "%s", session_id);
    n->len = json.len;
    memcpy(n->json, json.ptr, json.len);
    pthread_mutex_lock(&f->mu);
    leave_note(f, n);
    pthread_mutex_unlock(&f->mu);
}

void feed_count(struct feed *f, struct feed_counts *ret)
{
    *ret = (struct feed_counts){f->n, f->n_behind, f->sent, f->dropped, f->position, f->n_behind ? f->lag_ms : 0};
}

void feed_free(struct feed *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->mu);
    f->stopping = true;
    pthread_mutex_unlock(&f->mu);
    if (f->wake >= 0)
        wake_fd_signal(f->wake);
    if (f->running)
        pthread_join(f->thread, NULL);
    tide_watch_close(f->watch);
    if (f->wake >= 0)
        close(f->wake);
    map_done(&f->sessions, NULL);
    map_done(&f->changed, NULL);
    map_done(&f->tasks, free);
    pthread_cond_destroy(&f->told);
    pthread_mutex_destroy(&f->mu);
    free(f);
}
