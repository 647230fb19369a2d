/* SPDX-License-Identifier: Apache-2.0 */
/* What a parked session asks a person: its words, and the call that an approval is about. */
#ifndef ENGINE_PENDING_QUESTION_H
#define ENGINE_PENDING_QUESTION_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct pending_question {
    struct arena arena;
    const char *text;        /* where none was asked, the name of the wait */
    const char *tool, *args; /* of the call; args is JSON; NULL: it is about no call, or not known which */
    const char *working_dir;
    bool approval;       /* yes or no; else a text */
    int64_t deadline_ms; /* 0: none */
};

/* Of the session as it is now. pending_question_done() it, whatever this returns. */
enum tide_code pending_question_read(tide_session *session, struct pending_question *ret, struct tide_err *err)
    MUST_CHECK;
void pending_question_done(struct pending_question *q);

#endif
