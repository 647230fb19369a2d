/* SPDX-License-Identifier: Apache-2.0 */
/* What the feed reads and hands over: what is new for all, what one has missed, how a session stands. */
#include "server/feed_internal.h"

#include <stdio.h>

#include "base/json.h"
#include "engine/session_next.h"
#include "engine/shapes.h"
#include "server/links.h"

#define PAGE 256       /* events at a time, of what one has missed */
#define STALL_MS 10000 /* one that takes nothing for so long is dropped */
#define AGAIN_MS 1000  /* after trouble with what one follows */
#define ROW_MAX ((size_t)1 << 20)
#define TASKS_MAX 10000

/* ---- what one wants -------------------------------------------------------------------------------------------------- */

/* A word that ends with a dot stands for all that begin with it. */
static bool is_in(char **list, const char *text)
{
    bool any = !list;

    for (size_t i = 0; list && list[i] && !any; i++) {
        size_t n = strlen(list[i]);

        any = strcmp(list[i], text) == 0 || (n && list[i][n - 1] == '.' && strncmp(list[i], text, n) == 0);
    }
    return any;
}

static char *read_task(struct feed *f, const char *session_id)
{
    const struct tide_session_info *info;
    tide_session *session = NULL;
    struct tide_err err;
    char *task = NULL;

    if (!tide_session_open(f->store, session_id, TIDE_SESSION_WHOLE, &session, &err) &&
        !tide_session_get_info(session, &info, &err))
        task = mem_dup(str_from(info->task_id));
    tide_session_close(session);
    return task;
}

/* "": none. It stays the map's. */
static const char *task_of(struct feed *f, const char *session_id)
{
    char *task = map_get(&f->tasks, str_from(session_id));

    if (task || !session_id[0])
        return task ? task : "";
    task = read_task(f, session_id);
    if (!task)
        return "";
    if (f->tasks.live >= TASKS_MAX) {
        map_done(&f->tasks, free);
        f->tasks = (struct map){0};
    }
    map_put(&f->tasks, str_from(session_id), task);
    return task;
}

/* A session may be made anew, or get another task. */
static void forget_task(struct feed *f, const struct feed_item *item)
{
    if (strncmp(item->kind, "session.", 8) == 0)
        free(map_remove(&f->tasks, str_from(item->session_id)));
}

static bool wants_session(struct feed *f, const struct follower *one, const char *session_id)
{
    return is_in(one->sessions, session_id) && (!one->task_id || strcmp(one->task_id, task_of(f, session_id)) == 0);
}

static bool wants_event(struct feed *f, const struct follower *one, const struct feed_item *item)
{
    return is_in(one->kinds, item->kind) && wants_session(f, one, item->session_id);
}

/* ---- sending ---- */

/* False: it was dropped. */
static bool send_item(struct feed *f, struct follower *one, const struct feed_item *item)
{
    struct feed_item its = *item;

    if (one->flags & FOLLOW_TASK)
        its.task_id = item->session ? str_from(item->session->task_id).ptr : task_of(f, item->session_id);
    if (one->face.send(one->face.arg, &its)) {
        f->sent++;
        return true;
    }
    feed_drop(f, one, FEED_LEFT);
    return false;
}

static bool has_room(const struct follower *one)
{
    return one->face.has_room(one->face.arg);
}

/* One that is behind takes something now and then, or is dropped. False: it has no room, or is gone. */
static bool is_ready(struct feed *f, struct follower *one)
{
    size_t pending = one->face.pending ? one->face.pending(one->face.arg) : 0;
    bool room = has_room(one);

    if (room || pending != one->pending)
        one->moved_ms = f->now_ms;
    one->pending = pending;
    if (!room && f->now_ms >= one->moved_ms + STALL_MS)
        feed_drop(f, one, FEED_SLOW);
    return room;
}

void feed_fall_behind(struct feed *f, struct follower *one)
{
    one->catching_up = true;
    one->moved_ms = one->behind_ms = f->now_ms;
    f->n_behind++;
}

static int64_t place_of(const struct follower *one, const struct feed_item *item)
{
    return one->session_id[0] ? item->seq : item->pos;
}

/* False: it was dropped. */
static bool send_event(struct feed *f, struct follower *one, const struct feed_item *item)
{
    one->last = place_of(one, item);
    return !wants_event(f, one, item) || send_item(f, one, item);
}

static void send_live(struct feed *f, struct follower *one, const struct feed_item *item)
{
    bool is_event = item->what == FEED_EVENT;

    if (is_event ? place_of(one, item) <= one->last : !wants_session(f, one, item->session_id))
        return;
    if (has_room(one)) {
        if (is_event)
            send_event(f, one, item);
        else
            send_item(f, one, item);
        return;
    }
    one->status_due |= item->what == FEED_STATUS && one->session_id[0];
    if (is_event || one->status_due)
        feed_fall_behind(f, one);
}

static void send_to_list(struct feed *f, struct follower *first, const struct feed_item *item)
{
    struct follower *next;

    for (struct follower *one = first; one; one = next) {
        next = one->next;
        if (!one->catching_up)
            send_live(f, one, item);
    }
}

void feed_send_text(struct feed *f, const struct note *n)
{
    const struct feed_item item = {.what = n->what, .session_id = n->session_id, .kind = "", .json = {n->json, n->len}};

    send_to_list(f, feed_followers_of(f, n->session_id), &item);
}

void feed_beat(struct feed *f, struct follower *one, void *ignored)
{
    int64_t last = one->catching_up || one->last < 0 ? 0 : one->last;
    bool all = !one->session_id[0];

    (void)ignored;
    if (has_room(one))
        send_item(f, one,
                  &(struct feed_item){.what = FEED_HEARTBEAT,
                                      .session_id = one->session_id,
                                      .kind = "",
                                      .seq = all ? 0 : last,
                                      .pos = all ? last : 0,
                                      .json = STR("{}")});
}

/* ---- status: the session as lists have it ---- */

static bool changes_status(const char *kind)
{
    static const char *const kinds[] = {"run.",    "token.", "queue.",   "approval.",
                                        "cancel.", "tool.",  "session.", "checkpoint"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(kind, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* What a session is shown to: one follower, or all that it has. */
struct showing {
    struct feed *f;
    struct follower *one; /* NULL: all */
    enum feed_what what;
    int64_t at; /* of a snapshot or a reset */
    bool lost;  /* `one` was dropped */
};

static int show_row(void *arg, const struct tide_session_info *info)
{
    struct showing *s = arg;
    struct buf json = BUF_INIT(ROW_MAX);
    struct json_out o = json_out_to(&json);
    struct feed_item item = {.what = s->what, .session_id = info->id, .kind = "", .session = info};

    shape_put(&o, &shape_session, &(struct session_row){*info, link_of});
    item.json = buf_view(&json);
    item.seq = s->what == FEED_STATUS ? info->last_seq : s->at;
    item.pos = s->what == FEED_STATUS ? s->f->position : 0;
    if (s->one) {
        s->lost = !send_item(s->f, s->one, &item);
    } else {
        send_to_list(s->f, feed_followers_of(s->f, info->id), &item);
        send_to_list(s->f, s->f->all, &item);
    }
    buf_done(&json);
    return s->lost;
}

static void send_statuses(struct feed *f)
{
    struct showing s = {.f = f, .what = FEED_STATUS};

    for (struct map_entry *e = map_next(&f->changed, NULL); e; e = map_next(&f->changed, e)) {
        tide_session *session = NULL;
        struct tide_err err;

        if ((feed_followers_of(f, e->key) || f->all) &&
            !tide_session_open(f->store, e->key, TIDE_SESSION_WHOLE, &session, &err))
            (void)!session_show_next(session, show_row, &s, &err);
        tide_session_close(session);
    }
    map_done(&f->changed, NULL);
    f->changed = (struct map){0};
}

/* ---- what is new, for all ---- */

struct reading {
    struct feed *f;
    struct follower *one; /* it catches up; NULL: for all */
    size_t n;
    bool lost;    /* it was dropped */
    bool stopped; /* it has no room */
};

/* The caller that followed it already follows one that was deleted and made anew, or was faster than the feed: it is looked at. */
static void doubt_session(struct feed *f, struct follower *first)
{
    for (struct follower *one = first; one; one = one->next) {
        one->unsure = true;
        if (!one->catching_up)
            feed_fall_behind(f, one);
    }
}

static int on_event(void *arg, const struct tide_event *e)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct reading *r = arg;
    struct feed *f = r->f;
    struct feed_item item = {
        .what = FEED_EVENT, .session_id = e->session_id, .kind = e->kind, .seq = e->seq, .pos = e->pos};
    struct follower *first = r->one ? NULL : feed_followers_of(f, e->session_id);

    r->n++;
    forget_task(f, &item);
    if (!r->one)
        f->position = e->pos;
    if (!r->one && !first && !f->all)
        return 0;
    if (tide_event_write_json(e, &text, NULL))
        return 1;
    item.json = (struct str){text.ptr, text.len};
    if (r->one) {
        r->one->status_due |= changes_status(e->kind);
        r->lost = !send_event(f, r->one, &item);
        r->stopped = !r->lost && !has_room(r->one);
        return r->lost || r->stopped || r->n == PAGE;
    }
    if (strcmp(e->kind, "session.created") == 0)
        doubt_session(f, first);
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
            if (!one->catching_up)
                feed_fall_behind(f, one);
}

void feed_read_new(struct feed *f)
{
    struct reading r = {.f = f};
    enum tide_code code = TIDE_OK;
    struct tide_err err;
    int64_t before = f->position;

    while (f->by_position && !code) {
        r.n = 0;
        code = tide_store_read(f->store, f->position, PAGE, on_event, &r, &err);
        if (r.n < PAGE)
            break;
    }
    f->trouble = code != TIDE_OK;
    if (f->trouble || f->position == before) /* a session was deleted, perhaps */
        look_at_each(f);
    send_statuses(f);
}

/* ---- what one has missed ---- */

/* How the session stands, before its events. False: it was dropped. */
static bool begin_session(struct feed *f, struct follower *one, tide_session *session, enum tide_code *ret_code,
                          struct tide_err *err)
{
    int64_t head = tide_session_last_seq(session);
    bool reset = one->last > head;
    struct showing s = {.f = f, .one = one, .what = reset ? FEED_RESET : FEED_SNAPSHOT, .at = head};

    *ret_code = TIDE_OK;
    if (one->last < 0) /* as of the snapshot */
        one->last = head;
    if (reset || (!one->begun && one->flags & FOLLOW_SNAPSHOT))
        *ret_code = session_show_next(session, show_row, &s, err);
    if (s.lost || *ret_code)
        return !s.lost;
    if (reset)
        one->last = head;
    one->begun = true;
    return true;
}

/* The status that came of what it has got. False: it was dropped. */
static bool send_status(struct feed *f, struct follower *one, tide_session *session, struct tide_err *err)
{
    struct showing s = {.f = f, .one = one, .what = FEED_STATUS};

    if (!one->status_due)
        return true;
    one->status_due = false;
    (void)!session_show_next(session, show_row, &s, err);
    return !s.lost;
}

static bool end_session(struct feed *f, struct follower *one)
{
    const struct feed_item item = {
        .what = FEED_GONE, .session_id = one->session_id, .kind = "", .seq = one->last, .json = STR("{}")};

    if (send_item(f, one, &item))
        feed_drop(f, one, FEED_LEFT);
    return false;
}

/* Positions of another session with the same id mean nothing to it. */
static bool is_another(struct feed *f, struct follower *one, tide_session *session, enum tide_code *ret_code,
                       struct tide_err *err)
{
    const struct tide_session_info *info;
    int64_t before = one->made_ms;

    if (!one->unsure && f->by_position)
        return false;
    *ret_code = tide_session_get_info(session, &info, err);
    if (*ret_code)
        return false;
    one->unsure = false;
    one->made_ms = info->created_ms;
    return before && before != info->created_ms;
}

/* False: it was dropped. *ret_done: it has all there is. */
static bool catch_up_session(struct feed *f, struct follower *one, bool *ret_done, enum tide_code *ret_code,
                             struct tide_err *err)
{
    struct reading r = {.f = f, .one = one};
    tide_session *session = NULL;
    bool stays = true;
    int64_t head;

    *ret_code = tide_session_open(f->store, one->session_id, TIDE_SESSION_WHOLE, &session, err);
    if (*ret_code == TIDE_NOT_FOUND) {
        *ret_code = TIDE_OK;
        return end_session(f, one);
    }
    if (*ret_code)
        return true;
    if (is_another(f, one, session, ret_code, err)) {
        tide_session_close(session);
        return end_session(f, one);
    }
    head = tide_session_last_seq(session);
    stays = *ret_code || begin_session(f, one, session, ret_code, err);
    if (stays && !*ret_code && one->last < head) {
        *ret_code = tide_session_read(session, TIDE_READ_INHERITED, one->last + 1, 0, on_event, &r, err);
        stays = !r.lost;
    }
    *ret_done = stays && !*ret_code && one->last >= head;
    if (*ret_done)
        stays = send_status(f, one, session, err);
    tide_session_close(session);
    return stays;
}

static bool begin_all(struct feed *f, struct follower *one)
{
    bool reset = one->last > f->position;
    const struct feed_item item = {.what = reset ? FEED_RESET : FEED_SNAPSHOT,
                                   .session_id = "",
                                   .kind = "",
                                   .pos = f->position,
                                   .json = STR("{}")};

    if (one->last < 0 || reset) /* below 0: as of the snapshot */
        one->last = f->position;
    if (!reset && (one->begun || !(one->flags & FOLLOW_SNAPSHOT))) {
        one->begun = true;
        return true;
    }
    one->begun = one->listing = true;
    one->cursor[0] = '\0';
    return send_item(f, one, &item);
}

struct page {
    struct showing s;
    size_t n;
};

static int list_row(void *arg, const struct tide_session_info *info)
{
    struct page *p = arg;
    struct follower *one = p->s.one;

    p->n++;
    snprintf(one->cursor, sizeof one->cursor, "%s", info->cursor);
    return is_in(one->sessions, info->id) && (show_row(&p->s, info) || !has_room(one));
}

/* The rest of the snapshot of all: a page of sessions. */
static enum tide_code list_page(struct feed *f, struct follower *one, bool *ret_lost, struct tide_err *err)
{
    const struct tide_list_filter filter = {
        .size = sizeof filter, .task_id = one->task_id, .after = one->cursor[0] ? one->cursor : NULL, .limit = PAGE};
    struct page p = {.s = {.f = f, .one = one, .what = FEED_STATUS}};
    enum tide_code code = session_list_next(f->store, &filter, list_row, &p, err);

    *ret_lost = p.s.lost;
    if (!code && !p.s.lost && p.n < PAGE && has_room(one))
        one->listing = false;
    return code;
}

static bool catch_up_all(struct feed *f, struct follower *one, bool *ret_done, enum tide_code *ret_code,
                         struct tide_err *err)
{
    struct reading r = {.f = f, .one = one};
    bool lost;

    *ret_code = TIDE_OK;
    if (f->trouble)
        return true;
    lost = !begin_all(f, one);
    if (!lost && one->listing) {
        *ret_code = list_page(f, one, &lost, err);
        return !lost;
    }
    if (lost)
        return false;
    if (one->last < f->position)
        *ret_code = tide_store_read(f->store, one->last, PAGE, on_event, &r, err);
    if (r.lost)
        return false;
    *ret_done = !*ret_code && !r.stopped && r.n < PAGE;
    if (*ret_done && one->last < f->position) /* what was there is deleted */
        one->last = f->position;
    return true;
}

/* A page of it. What it has got then is all there was, or it continues in the next round. */
void feed_catch_up(struct feed *f, struct follower *one, void *ignored)
{
    enum tide_code code = TIDE_OK;
    struct tide_err err;
    bool done = false;

    (void)ignored;
    if (!one->catching_up || f->now_ms < one->again_ms || !is_ready(f, one))
        return;
    if (!(one->session_id[0] ? catch_up_session(f, one, &done, &code, &err) : catch_up_all(f, one, &done, &code, &err)))
        return;
    if (code == TIDE_CORRUPT) {
        feed_drop(f, one, FEED_FAILED);
        return;
    }
    if (code)
        one->again_ms = f->now_ms + AGAIN_MS;
    if (done) {
        one->catching_up = false;
        f->n_behind--;
    }
    f->more |= !done && !code && !f->trouble && has_room(one);
}
