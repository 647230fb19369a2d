/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for a person, of a whole store: each with what is asked, oldest first. Only live sessions are looked at. */
#ifndef ENGINE_INBOX_H
#define ENGINE_INBOX_H

#include "engine/pending_question.h"
#include "engine/shapes.h"

struct inbox_item {
    struct session_row row;
    const struct pending_question *question;
};

struct inbox {
    int64_t position; /* of the store, before anything was read; -1: it has none */
    struct shape_stream items;
    const char *next_cursor; /* NULL: the last page; set while the items are written */
    int64_t total;
    const enum tide_code *code; /* of the items, when they were written; the error is that of the call */
};
typedef void inbox_fn(void *arg, const struct inbox *inbox);

struct inbox_request {
    int64_t position;
    const char *after; /* a cursor; NULL: from the oldest on */
    int64_t limit;
    size_t max_bytes; /* of the page; one item at least is there */
    bool diff;        /* of edits that are to be approved, for who may answer */
    next_command_fn *command;
};

/* Hands it to `fn`, which writes it at once. TIDE_INVALID: this is no cursor. */
enum tide_code inbox_show(tide_store *store, const struct inbox_request *request, inbox_fn *fn, void *arg,
                          struct tide_err *err) MUST_CHECK;

extern const struct shape shape_inbox;      /* struct inbox */
extern const struct shape shape_inbox_item; /* struct inbox_item; has no name */

#endif
