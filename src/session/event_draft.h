/* SPDX-License-Identifier: Apache-2.0 */
/* Events on their way into one append: written one after the other, then handed over together. */
#ifndef SESSION_EVENT_DRAFT_H
#define SESSION_EVENT_DRAFT_H

#include "base/json.h"

#define DRAFT_EVENTS 24 /* as many as an agent gathers before it appends; a draft itself grows */

struct draft {
    struct tide_new_event *events; /* malloc */
    size_t n, cap;
    struct json_out out; /* of the event that is open */
    struct buf text;
    struct arena arena;
};

#define DRAFT_INIT                                                                                                     \
    {                                                                                                                  \
        .text = BUF_INIT(SIZE_MAX / 4), .arena = ARENA_INIT                                                            \
    }

/* Begins an event; write its members to what it gives, then draft_close(). */
struct json_out *draft_open(struct draft *d, const char *kind);
void draft_close(struct draft *d);
void draft_add(struct draft *d, const char *kind, struct str body); /* a whole one; the body is copied */
void draft_take(struct draft *d, const struct tide_new_event *ev);  /* the same; the body stays where it is */
void draft_done(struct draft *d);
void draft_reset(struct draft *d);

/* Members. Empty texts and times of 0 are left out. */
void draft_text(struct draft *d, const char *key, const char *text);
void draft_error(struct draft *d, const char *code, const char *message); /* both NULL: none */
void draft_time(struct draft *d, const char *key, int64_t unix_ms);

/* The members of a JSON object, but for those named in `except` (ended by NULL; NULL: none). TIDE_INVALID. */
enum tide_code draft_members(struct draft *d, const char *object, const char *const *except, struct tide_err *err)
    MUST_CHECK;

/* A value that came from outside: TIDE_INVALID unless it is JSON. NULL is null. */
enum tide_code draft_value(struct draft *d, const char *key, const char *json, struct tide_err *err) MUST_CHECK;

#endif
