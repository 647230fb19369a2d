/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of pages, and how one is answered with. */
#include "server/pages.h"

#include <stdio.h>

#include "engine/session_next.h"
#include "engine/shapes.h"
#include "engine/store_position.h"
#include "server/links.h"
#include "server/server.h"

static bool has_position(const void *data)
{
    return ((const struct session_page *)data)->position >= 0;
}

SHAPE(session_page, "Sessions, a page at a time.",
      {"sessions", SHAPE_STREAM, SHAPE_AT(struct session_page, sessions), 0, "those that were asked for",
       .of = &shape_session},
      {"next_cursor", SHAPE_TEXT, SHAPE_AT(struct session_page, next_cursor), SHAPE_NULLABLE,
       "`after` of the next page; null: this is the last"},
      {"position", SHAPE_INT, SHAPE_AT(struct session_page, position), SHAPE_NULLABLE,
       "where the store ended before this was read: follow all sessions from there; null: it has no such order",
       .has = has_position});

static bool has_first(const void *data)
{
    return ((const struct event_page *)data)->first_seq > 0;
}

SHAPE(event_page, "Events of a log, a page at a time.",
      {"events", SHAPE_STREAM, SHAPE_AT(struct event_page, events), 0, "in order", .of = &shape_log_event},
      {"last_seq", SHAPE_INT, SHAPE_AT(struct event_page, last_seq), 0,
       "`after` of the next page: the seq of the last of these; with filters, of the last that was looked at"},
      {"first_seq", SHAPE_INT, SHAPE_AT(struct event_page, first_seq), SHAPE_NULLABLE,
       "`before` of the page before it; null: there is none", .has = has_first});

SHAPE(message_page, "Messages that no run has taken yet.",
      {"messages", SHAPE_STREAM, SHAPE_AT(struct message_page, messages), 0, "in the order in which they are taken",
       .of = &shape_queued_message});

enum tide_code call_reply_page(struct call *c, const struct shape *shape, const void *page, const enum tide_code *code)
{
    struct buf body = BUF_INIT(ANSWER_MAX);
    struct json_out o = json_out_to(&body);

    shape_put(&o, shape, page);
    if (*code)
        buf_done(&body);
    else
        call_reply_text(c, 200, "application/json", &body);
    return *code;
}

/* ---- sessions ---- */

struct listing {
    tide_store *store;
    struct tide_list_filter filter;
    struct session_page page;
    struct json_out *o;
    int64_t left, look;
    char looked[NEXT_CURSOR_SIZE];
    bool runs, more; /* only runs; one behind the page was found */
    char cursor[sizeof((struct tide_session_info *)0)->cursor];
    enum tide_code code;
    struct tide_err *err;
};

static int put_session(void *arg, const struct tide_session_info *info)
{
    struct listing *l = arg;

    if (l->runs && info->kind == TIDE_KIND_TASK)
        return 0;
    l->more = l->left-- == 0;
    if (l->more)
        return 1;
    snprintf(l->cursor, sizeof l->cursor, "%s", info->cursor);
    shape_put(l->o, &shape_session, &(struct session_row){*info, link_of});
    return 0;
}

static void write_sessions(struct json_out *o, void *arg)
{
    struct listing *l = arg;

    l->o = o;
    l->code = session_list_next_part(l->store, &l->filter, l->look, put_session, l, l->looked, l->err);
    l->page.next_cursor = l->more ? l->cursor : l->looked[0] ? l->looked : NULL;
}

enum tide_code call_reply_sessions(struct call *c, const struct tide_list_filter *filter, bool runs,
                                   struct tide_err *err)
{
    struct listing l = {.store = c->server->store,
                        .filter = *filter,
                        .page.sessions = {write_sessions, &l},
                        .left = call_int(c, "limit", 50),
                        .look = call_int(c, "look", 0),
                        .runs = runs,
                        .err = err};

    if (store_position(l.store, &l.page.position, err))
        return err->code;
    l.filter.after = call_text(c, "after");
    return call_reply_page(c, &shape_session_page, &l.page, &l.code);
}
