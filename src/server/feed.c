/* SPDX-License-Identifier: Apache-2.0 */
#include "server/feed.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/thread.h"
#include "engine/session_next.h"
#include "engine/shapes.h"
#include "env/file_watch.h"
#include "server/links.h"

#define PAGE 256 /* events at a time, of what one has missed */
#define HEARTBEAT_MS 15000
#define CHECK_MS 500  /* tokens are looked at again so often, while anybody follows */
#define ROOM_MS 20    /* the same for those who are behind and take nothing */
#define AGAIN_MS 1000 /* after trouble with the store */

struct follower {
    struct follower *next, **before; /* of its session, or of those who follow all */
    struct follower_face face;
    int64_t number;
    char session_id[TIDE_ID_SIZE]; /* "": all */
    int64_t last;                  /* seq or position that it got */
    bool catching_up, leaving;
    char **kinds;
    struct caller caller;
};

/* What other threads leave for the feed's. */
struct note {
    struct note *next;
    struct follower *joins;
    int64_t leaves; /* the number of one */
    enum feed_what what;
    char session_id[TIDE_ID_SIZE];
    size_t len;
    char json[];
};

struct feed {
    tide_store *store;
    struct access *access;
    tide_watch *watch;
    int wake;
    pthread_t thread;
    bool running, by_position;

    pthread_mutex_t mu; /* of the notes and of `stopping` */
    struct note *first, **last;
    bool stopping;
    atomic_size_t n, n_behind;
    atomic_uint_fast64_t sent, dropped;
    atomic_int_fast64_t last_number;
    atomic_int_fast64_t position; /* everybody who takes part has what is up to there */

    /* The thread's. */
    struct map sessions; /* id -> struct follower *, the first of a list */
    struct follower *all;
    int64_t beat_ms, checked_ms;
    struct map changed; /* sessions whose status may be another, for those who follow */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

/* ---- lists ---------------------------------------------------------------------------------------------------------- */

static struct follower *followers_of(struct feed *f, const char *session_id)
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
    one->next = followers_of(f, one->session_id);
    if (one->next)
        one->next->before = &one->next;
    one->before = NULL; /* the first */
    put_first(f, one->session_id, one);
}

static void follower_free(struct follower *one)
{
    for (size_t i = 0; one->kinds && one->kinds[i]; i++)
        free(one->kinds[i]);
    free(one->kinds);
    free(one);
}

static void drop_follower(struct feed *f, struct follower *one, const char *why)
{
    if (one->before)
        *one->before = one->next;
    else
        put_first(f, one->session_id, one->next);
    if (one->next)
        one->next->before = one->before;
    f->n--;
    f->n_behind -= one->catching_up;
    f->dropped += why[0] != 0;
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

/* ---- sending ---- */

#define TOO_SLOW "it did not read what was sent"

static bool wants(const struct follower *one, const char *kind)
{
    bool any = !one->kinds;

    for (size_t i = 0; one->kinds && one->kinds[i]; i++)
        any |= strcmp(one->kinds[i], kind) == 0;
    return any;
}

/* False: it was dropped. */
static bool send_item(struct feed *f, struct follower *one, const struct feed_item *item)
{
    if (one->face.send(one->face.arg, item)) {
        f->sent++;
        return true;
    }
    drop_follower(f, one, TOO_SLOW);
    return false;
}

static int64_t place_of(const struct follower *one, const struct feed_item *item)
{
    return one->session_id[0] ? item->seq : item->pos;
}

static bool send_event(struct feed *f, struct follower *one, const struct feed_item *item)
{
    if (place_of(one, item) <= one->last)
        return true;
    one->last = place_of(one, item);
    return !wants(one, item->kind) || send_item(f, one, item);
}

static void send_to_list(struct feed *f, struct follower *first, const struct feed_item *item)
{
    struct follower *next;

    for (struct follower *one = first; one; one = next) {
        next = one->next;
        if (one->catching_up)
            continue;
        if (item->what == FEED_EVENT)
            send_event(f, one, item);
        else
            send_item(f, one, item);
    }
}

/* ---- status: the session as lists have it, after it may have changed ---- */

static bool changes_status(const char *kind)
{
    static const char *const kinds[] = {"run.",    "token.", "queue.",   "approval.",
                                        "cancel.", "tool.",  "session.", "checkpoint"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(kind, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

struct shown {
    struct buf json;
    int64_t seq;
};

static int show_row(void *arg, const struct tide_session_info *info)
{
    struct shown *s = arg;
    struct json_out o = json_out_to(&s->json);

    s->seq = info->last_seq;
    shape_put(&o, &shape_session, &(struct session_row){*info, link_of});
    return 0;
}

static enum tide_code show_session(struct feed *f, const char *id, struct shown *ret, struct tide_err *err)
{
    tide_session *session = NULL;
    enum tide_code code = tide_session_open(f->store, id, TIDE_SESSION_READ, &session, err);

    code = code ? code : session_show_next(session, show_row, ret, err);
    tide_session_close(session);
    return code;
}

static void send_statuses(struct feed *f)
{
    for (struct map_entry *e = map_next(&f->changed, NULL); e; e = map_next(&f->changed, e)) {
        struct shown s = {.json = BUF_INIT((size_t)1 << 20)};
        struct follower *first = followers_of(f, e->key);
        struct tide_err err;

        if ((first || f->all) && !show_session(f, e->key, &s, &err)) {
            const struct feed_item item = {FEED_STATUS, e->key, "", s.seq, f->position, buf_view(&s.json)};

            send_to_list(f, first, &item);
            send_to_list(f, f->all, &item);
        }
        buf_done(&s.json);
    }
    map_done(&f->changed, NULL);
    f->changed = (struct map){0};
}

/* ---- what is new, for all ---- */

struct reading {
    struct feed *f;
    struct follower *one; /* it catches up; NULL: for all */
    size_t n;
    bool lost; /* it was dropped */
};

static int on_event(void *arg, const struct tide_event *e)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct reading *r = arg;
    struct feed *f = r->f;
    struct feed_item item = {FEED_EVENT, e->session_id, e->kind, e->seq, e->pos, {NULL, 0}};
    struct follower *first = r->one ? NULL : followers_of(f, e->session_id);

    r->n++;
    if (!r->one)
        f->position = e->pos;
    if (!r->one && !first && !f->all)
        return 0;
    if (tide_event_write_json(e, &text, NULL))
        return 1;
    item.json = (struct str){text.ptr, text.len};
    if (r->one) {
        r->lost = !send_event(f, r->one, &item);
        return r->lost || r->n == PAGE || !r->one->face.has_room(r->one->face.arg);
    }
    send_to_list(f, first, &item);
    send_to_list(f, f->all, &item);
    if (changes_status(e->kind))
        map_put(&f->changed, str_from(e->session_id), f);
    return 0;
}

/* Each session that is followed is looked at: without positions (plain files), and where something changed that is no event. */
static void look_at_each(struct feed *f)
{
    for (struct map_entry *e = map_next(&f->sessions, NULL); e; e = map_next(&f->sessions, e))
        for (struct follower *one = e->value; one; one = one->next)
            if (!one->catching_up) {
                one->catching_up = true;
                f->n_behind++;
            }
}

static enum tide_code read_new(struct feed *f, struct tide_err *err)
{
    struct reading r = {.f = f};
    enum tide_code code = TIDE_OK;

    int64_t before = f->position;

    while (f->by_position && !code) {
        r.n = 0;
        code = tide_store_read(f->store, f->position, PAGE, on_event, &r, err);
        if (r.n < PAGE)
            break;
    }
    if (f->position == before) /* a session was deleted, perhaps */
        look_at_each(f);
    send_statuses(f);
    return code;
}

/* ---- what one has missed ---- */

static void begin_anew(struct feed *f, struct follower *one, int64_t at, struct str json)
{
    const struct feed_item item = {
        FEED_RESET, one->session_id, "", one->session_id[0] ? at : 0, one->session_id[0] ? 0 : at, json};

    one->last = at;
    send_item(f, one, &item);
}

/* False: it was dropped. */
static bool catch_up_session(struct feed *f, struct follower *one, struct reading *r, int64_t *ret_head,
                             enum tide_code *ret_code, struct tide_err *err)
{
    tide_session *session = NULL;

    *ret_code = tide_session_open(f->store, one->session_id, TIDE_SESSION_READ, &session, err);
    if (*ret_code == TIDE_NOT_FOUND) {
        const struct feed_item item = {
            .what = FEED_GONE, .session_id = one->session_id, .kind = "", .seq = one->last, .json = STR("{}")};

        if (send_item(f, one, &item))
            drop_follower(f, one, "");
        *ret_code = TIDE_OK;
        return false;
    }
    if (*ret_code)
        return true;
    *ret_head = tide_session_last_seq(session);
    if (one->last < 0)
        one->last = *ret_head;
    if (one->last > *ret_head) {
        struct shown s = {.json = BUF_INIT((size_t)1 << 20)};

        if (!session_show_next(session, show_row, &s, err))
            begin_anew(f, one, *ret_head, buf_view(&s.json));
        buf_done(&s.json);
    } else if (one->last < *ret_head) {
        *ret_code = tide_session_read(session, TIDE_READ_INHERITED, one->last + 1, 0, on_event, r, err);
    }
    tide_session_close(session);
    return !r->lost;
}

static bool catch_up_all(struct feed *f, struct follower *one, struct reading *r, enum tide_code *ret_code,
                         struct tide_err *err)
{
    if (one->last < 0)
        one->last = f->position;
    *ret_code = TIDE_OK;
    if (one->last > f->position)
        begin_anew(f, one, f->position, STR("{}"));
    else if (one->last < f->position)
        *ret_code = tide_store_read(f->store, one->last, PAGE, on_event, r, err);
    return !r->lost;
}

/* A page of it. What it has got then is all there was, or it goes on in the next round. */
static void catch_up(struct feed *f, struct follower *one, void *arg)
{
    struct reading r = {.f = f, .one = one};
    struct tide_err *err = arg;
    enum tide_code code;
    int64_t head = f->position;
    bool stays;

    if (!one->catching_up || !one->face.has_room(one->face.arg))
        return;
    stays = one->session_id[0] ? catch_up_session(f, one, &r, &head, &code, err) : catch_up_all(f, one, &r, &code, err);
    if (stays && !code && one->last >= head) {
        one->catching_up = false;
        f->n_behind--;
    }
}

/* ---- the thread ---- */

static void drop_number(struct feed *f, struct follower *first, int64_t number)
{
    for (struct follower *one = first; one; one = one->next)
        if (one->number == number) {
            drop_follower(f, one, "");
            return;
        }
}

static void take_note(struct feed *f, struct note *n)
{
    struct feed_item item = {n->what, n->session_id, "", 0, 0, {n->json, n->len}};

    if (n->joins)
        add_follower(f, n->joins);
    else if (n->leaves)
        drop_number(f, followers_of(f, n->session_id), n->leaves);
    else
        send_to_list(f, followers_of(f, n->session_id), &item);
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

static void beat(struct feed *f, struct follower *one, void *arg)
{
    send_item(f, one, arg);
}

static void check_token(struct feed *f, struct follower *one, void *arg)
{
    (void)arg;
    if (!access_holds(f->access, &one->caller))
        drop_follower(f, one, "its token was revoked or has expired");
}

static void keep_time(struct feed *f)
{
    int64_t now = now_ms();

    if (now >= f->checked_ms + CHECK_MS) {
        f->checked_ms = now;
        each_follower(f, check_token, NULL);
    }
    if (now >= f->beat_ms + HEARTBEAT_MS) {
        f->beat_ms = now;
        each_follower(f, beat,
                      &(struct feed_item){.what = FEED_HEARTBEAT, .session_id = "", .kind = "", .json = STR("{}")});
    }
}

static void drop_any(struct feed *f, struct follower *one, void *arg)
{
    drop_follower(f, one, arg);
}

static void *run_feed(void *arg)
{
    struct feed *f = arg;
    struct tide_err err;
    int changed = 1;

    while (take_notes(f)) {
        struct pollfd p[2] = {{.fd = tide_watch_fd(f->watch), .events = POLLIN}, {.fd = f->wake, .events = POLLIN}};
        bool trouble = changed && read_new(f, &err);

        each_follower(f, catch_up, &err);
        keep_time(f);
        changed = trouble;
        if (poll(p, 2, trouble ? AGAIN_MS : f->n_behind ? ROOM_MS : f->n ? CHECK_MS : -1) <= 0)
            continue;
        if (p[1].revents)
            (void)wake_fd_wait(f->wake, 0);
        if (p[0].revents && tide_watch_wait(f->watch, 0, &changed, &err))
            changed = 1;
    }
    each_follower(f, drop_any, "the server stops");
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

static char **copy_kinds(const char *const *kinds)
{
    size_t n = 0;
    char **copy;

    if (!kinds)
        return NULL;
    while (kinds[n])
        n++;
    copy = mem_array(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = mem_dup(str_from(kinds[i]));
    return copy;
}

enum tide_code follower_new(struct feed *f, const struct follow *what, const struct follower_face *face,
                            struct follower **ret, int64_t *ret_number, struct tide_err *err)
{
    struct follower *one;

    if (!what->session_id && !f->by_position)
        return tide_fail(err, TIDE_INVALID,
                         "a store of plain files has no order among its sessions: follow them one by one");
    one = mem_zero(sizeof *one);
    one->face = *face;
    snprintf(one->session_id, sizeof one->session_id, "%s", what->session_id ? what->session_id : "");
    one->last = what->after;
    one->catching_up = true;
    one->kinds = copy_kinds(what->kinds);
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
    one->face.dropped(one->face.arg, err.msg);
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
    *ret = (struct feed_counts){f->n, f->n_behind, f->sent, f->dropped, f->position};
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
    pthread_mutex_destroy(&f->mu);
    free(f);
}
