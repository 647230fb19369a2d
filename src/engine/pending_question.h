/* SPDX-License-Identifier: Apache-2.0 */
/* What a parked session asks a person: its words, and the call that an approval is about. */
#ifndef ENGINE_PENDING_QUESTION_H
#define ENGINE_PENDING_QUESTION_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shape.h"
#include "tidemark.h"

struct pending_question {
    struct arena arena;
    const char *kind, *name; /* of the wait; name NULL: it has none */
    const char *text;        /* where none was asked, the name of the wait */
    const char *tool, *args; /* of the call; args is JSON; NULL: it is about no call, or not known which */
    const char *diff;        /* by pending_question_add_diff(); NULL: none */
    const char *working_dir; /* "." where the session has none */
    bool has_working_dir;
    bool approval;       /* yes or no; else a text */
    bool trusted;        /* it is asked by what began here */
    int64_t since_ms;    /* when it was asked */
    int64_t deadline_ms; /* 0: none */
    enum tide_on_deadline on_deadline;
    const char *default_answer; /* that it gives itself then, JSON; NULL: none */
};

/* A person can answer it, or let it be asked again: it waits for no time. */
bool session_asks(const struct tide_session_info *info);

/* Of the session as it is now. pending_question_done() it, whatever this returns. */
enum tide_code pending_question_read(tide_session *session, struct pending_question *ret, struct tide_err *err)
    MUST_CHECK;
/*
 * What the call would change in a file, as it is now: for who may answer alone, because it shows what is in that file. Nothing of what came
 * from elsewhere and is not trusted.
 */
void pending_question_add_diff(struct pending_question *q);
void pending_question_done(struct pending_question *q);

extern const struct shape shape_question; /* struct pending_question; has no name */

#endif
