/* SPDX-License-Identifier: Apache-2.0 */
/* An event as people and programs write it: a line of JSON, {"kind":K,fields…}, or the fields alone. */
#ifndef ENGINE_EVENT_LINE_H
#define ENGINE_EVENT_LINE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

/* What the event that was read last points to. */
struct event_line {
    struct arena arena;
    struct buf body;
};
void event_line_done(struct event_line *s);

/* `given`: the kind of every line; NULL: each says its own. *ret_event lives until the next line. */
enum tide_code event_line_read(struct event_line *s, struct str line, const char *given,
                               struct tide_new_event *ret_event, struct tide_err *err) MUST_CHECK;

/* TIDE_INVALID when it cannot be the kind of an event, or cannot begin JSON; `what` is how the message names it. */
enum tide_code event_kind_check(const char *what, struct str kind, struct tide_err *err) MUST_CHECK;
enum tide_code event_text_check(const char *what, struct str text, struct tide_err *err) MUST_CHECK;

#endif
