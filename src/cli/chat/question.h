/* SPDX-License-Identifier: Apache-2.0 */
/* A yes or a no at the terminal, the same in a chat and in a graph. */
#ifndef CLI_CHAT_QUESTION_H
#define CLI_CHAT_QUESTION_H

#include "cli/chat/chat_view.h"
#include "terminal/line_edit.h"
#include "tidemark.h"

struct question {
    const char *text;                      /* what is asked; of a call its tool is named instead */
    const char *tool, *args, *working_dir; /* the call that it is about, args JSON; tool NULL: none */
    bool always;                           /* the tool can be allowed until the chat ends */
};

struct asker {
    struct view *view;
    int out; /* the terminal */
    struct line_edit *answers;
    struct line_edit *next; /* what is typed before the question, or behind the answer, is for it; NULL: for nobody */
};

/* All of it: of an edit the diff. */
void question_show(const struct asker *k, const struct question *q);

/* One key, or a word. `reason`: why, when that was given. TIDE_DECIDE_LATER also when nothing was answered. */
enum tide_decision question_decide(const struct asker *k, const struct question *q, struct buf *reason);

#endif
