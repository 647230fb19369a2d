/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two looks. Of all live sessions only who waits since when is kept; sorted, these are the inbox and its size. Those of the page are then
 * opened, one after the other: what was answered or deleted in between is left out.
 */
#include "engine/inbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/timefmt.h"
#include "engine/session_next.h"
#include "session/session.h"

struct waiting {
    char id[TIDE_ID_SIZE];
    int64_t since_ms;
};

#define CURSOR_SIZE (TIDE_ID_SIZE + 24)

struct showing {
    tide_store *store;
    const struct inbox_request *request;
    struct waiting *at;
    size_t n, cap;
    size_t from; /* of the page */
    struct inbox inbox;
    char cursor[CURSOR_SIZE];
    struct json_out *json;
    enum tide_code code;
    struct tide_err *err;
};

/* ---- who waits ---- */

static int take_waiting(void *arg, const struct tide_session_info *info)
{
    struct showing *s = arg;
    struct waiting *w;

    if (!session_asks(info))
        return 0;
    MEM_ROOM(s->at, s->n, s->cap);
    w = &s->at[s->n++];
    *w = (struct waiting){.since_ms = info->wait_since_ms};
    snprintf(w->id, sizeof w->id, "%s", info->id);
    return 0;
}

static int oldest_first(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    return x->since_ms != y->since_ms ? (x->since_ms > y->since_ms) - (x->since_ms < y->since_ms)
                                      : strcmp(x->id, y->id);
}

/* The first one behind the cursor, whether the one that it names still waits or not. */
static enum tide_code find_page(struct showing *s, struct tide_err *err)
{
    const char *after = s->request->after, *dot = after ? strchr(after, '.') : NULL;
    struct waiting last = {.since_ms = 0};

    if (!after)
        return TIDE_OK;
    if (!dot || !str_to_int64((struct str){after, (size_t)(dot - after)}, &last.since_ms) ||
        !str_is_id(str_from(dot + 1)))
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "after", "is no cursor of this list");
    snprintf(last.id, sizeof last.id, "%s", dot + 1);
    while (s->from < s->n && oldest_first(&s->at[s->from], &last) <= 0)
        s->from++;
    return TIDE_OK;
}

/* ---- its page ---- */

struct item {
    struct showing *showing;
    struct pending_question question;
};

static int put_item(void *arg, const struct tide_session_info *info)
{
    const struct item *i = arg;

    if (session_asks(info))
        shape_put(i->showing->json, &shape_inbox_item,
                  &(struct inbox_item){{*info, i->showing->request->command}, &i->question});
    return 0;
}

static enum tide_code show_item(struct showing *s, const struct waiting *w, struct tide_err *err)
{
    struct item i = {.showing = s};
    tide_session *session = NULL;
    enum tide_code code = tide_session_open(s->store, w->id, TIDE_SESSION_READ, &session, err);

    if (code)
        return code;
    code = pending_question_read(session, &i.question, err);
    if (!code && s->request->diff)
        pending_question_add_diff(&i.question);
    code = code ? code : session_show_next(session, put_item, &i, err);
    pending_question_done(&i.question);
    tide_session_close(session);
    return code;
}

static void write_items(struct json_out *o, void *arg)
{
    struct showing *s = arg;
    size_t before = o->buf->len;

    s->json = o;
    for (int64_t n = 0; s->from < s->n && !s->code; n++, s->from++) {
        const struct waiting *w = &s->at[s->from];

        if (n == s->request->limit || (n && o->buf->len - before > s->request->max_bytes)) {
            s->inbox.next_cursor = s->cursor;
            return;
        }
        s->code = show_item(s, w, s->err);
        if (s->code == TIDE_NOT_FOUND || s->code == TIDE_CORRUPT) /* it went meanwhile; what is damaged asks nothing */
            s->code = TIDE_OK;
        snprintf(s->cursor, sizeof s->cursor, "%" PRId64 ".%s", w->since_ms, w->id);
    }
}

enum tide_code inbox_show(tide_store *store, const struct inbox_request *request, inbox_fn *fn, void *arg,
                          struct tide_err *err)
{
    struct showing s = {.store = store, .request = request, .err = err};
    enum tide_code code = session_list_live(store_of(store), take_waiting, &s, err);

    if (!code && s.n > 1)
        qsort(s.at, s.n, sizeof *s.at, oldest_first);
    code = code ? code : find_page(&s, err);
    if (!code) {
        s.inbox = (struct inbox){
            .position = request->position, .items = {write_items, &s}, .total = (int64_t)s.n, .code = &s.code};
        fn(arg, &s.inbox);
        code = s.code;
    }
    free(s.at);
    return code;
}

/* ---- as JSON ---- */

static void put_question(struct json_out *o, const void *data)
{
    shape_put(o, &shape_question, ((const struct inbox_item *)data)->question);
}

static void put_since(struct json_out *o, const void *data)
{
    char time[TIME_TEXT_SIZE];

    time_format(time, ((const struct inbox_item *)data)->question->since_ms);
    json_out_str(o, str_from(time));
}

const struct shape shape_inbox_item = {
    .members =
        (const struct shape_member[]){
            {"session", SHAPE_OBJECT, SHAPE_AT(struct inbox_item, row), 0, "who asks", .of = &shape_session},
            {"question", SHAPE_OBJECT, SHAPE_AT(struct inbox_item, question), 0, "what is asked", .of = &shape_question,
             .put = put_question},
            {"since", SHAPE_TEXT, SHAPE_AT(struct inbox_item, question), 0, "when it was asked", .put = put_since},
            {.name = NULL},
        },
};

static bool has_position(const void *data)
{
    return ((const struct inbox *)data)->position >= 0;
}

SHAPE(inbox, "What waits for a person, oldest first.",
      {"position", SHAPE_INT, SHAPE_AT(struct inbox, position), SHAPE_NULLABLE,
       "where the store ended before this was read: follow all sessions from there; null: it has no such order",
       .has = has_position},
      {"items", SHAPE_STREAM, SHAPE_AT(struct inbox, items), 0, "a page of them", .of = &shape_inbox_item},
      {"next_cursor", SHAPE_TEXT, SHAPE_AT(struct inbox, next_cursor), SHAPE_NULLABLE,
       "`after` of the next page; null: this is the last"},
      {"total", SHAPE_INT, SHAPE_AT(struct inbox, total), 0, "how many there are on all pages"});
