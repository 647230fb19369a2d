/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of pages, and how one is answered with. */
#include "server/pages.h"

#include "engine/shapes.h"
#include "server/server.h"

SHAPE(session_page, "Sessions, a page at a time.",
      {"sessions", SHAPE_STREAM, SHAPE_AT(struct session_page, sessions), 0, "those that were asked for",
       .of = &shape_session},
      {"next_cursor", SHAPE_TEXT, SHAPE_AT(struct session_page, next_cursor), SHAPE_NULLABLE,
       "`after` of the next page; null: this is the last"});

SHAPE(event_page, "Events of a log, a page at a time.",
      {"events", SHAPE_STREAM, SHAPE_AT(struct event_page, events), 0, "in order", .of = &shape_log_event},
      {"last_seq", SHAPE_INT, SHAPE_AT(struct event_page, last_seq), 0,
       "`after` of the next page: the seq of the last of these"});

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
