/* SPDX-License-Identifier: Apache-2.0 */
/* The one resume, behind `tidemark resume ID`, `tidemark sessions resume ID`, `tidemark --resume ID` and `tidemark exec --resume ID`. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "cli/chat/chat.h"
#include "cli/cli.h"
#include "cli/graph/graph_set.h"
#include "cli/graph/graph_view.h"
#include "engine/resume.h"

struct resume {
    struct resume_request ask;
    bool degrade, degrade_said;
    bool dry_run;
    int token_out_fd; /* for the token of the next wait; -1: shown */
    struct buf token_text, input_text, checkpoints;
    const char **given, **renames; /* as of ask.given; OLD, NEW, …: both ended by NULL */
    struct graph_again graph;      /* what only a graph is told */
    struct chat_want chat;         /* what only a chat is told */
    struct arena arena;
};

#define RESUME_INIT                                                                                                    \
    {                                                                                                                  \
        .token_out_fd = -1, .checkpoints = BUF_INIT((size_t)1 << 20), .graph = {.memory = BUF_INIT(GRAPH_SETS_MAX)},   \
        .arena = ARENA_INIT                                                                                            \
    }

/* Opens the store as well. */
enum tide_code resume_session(struct cli *cli, struct resume *r, struct tide_err *err) MUST_CHECK;
void resume_done(struct resume *r);

#define INPUT_MAX ((size_t)16 << 20)

#endif
