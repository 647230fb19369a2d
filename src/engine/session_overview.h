/* SPDX-License-Identifier: Apache-2.0 */
/* All that a page of one session begins with, read at once: what it is, its task, what it asks, its queue, and what was said last. */
#ifndef ENGINE_SESSION_OVERVIEW_H
#define ENGINE_SESSION_OVERVIEW_H

#include "engine/pending_question.h"
#include "engine/shapes.h"
#include "engine/tasks.h"

struct session_overview {
    int64_t position; /* of the store, before anything was read; -1: it has none */
    struct session_detail session;
    const struct task_row *task;             /* NULL: it is of none, or was not asked for */
    const struct pending_question *question; /* NULL: it asks nothing */
    struct shape_stream queue, entries;
    int64_t entries_before;     /* as of struct transcript_page */
    const enum tide_code *code; /* of the streams, when they were written; the error is that of the call */
};
typedef void session_overview_fn(void *arg, const struct session_overview *overview);

struct overview_request {
    int64_t position;
    int64_t limit;    /* entries */
    size_t max_bytes; /* of their texts */
    bool no_task;     /* it is counted over all sessions, so not for a page that is to be there at once */
    bool diff;        /* of an edit that is to be approved, for who may answer */
    next_command_fn *command;
};

/* Hands it to `fn`, which writes it at once. */
enum tide_code session_overview_show(tide_store *store, tide_session *session, const struct overview_request *request,
                                     session_overview_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

extern const struct shape shape_session_overview; /* struct session_overview */

#endif
