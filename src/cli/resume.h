/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's resume and send, with what the command line does meanwhile. Behind `tidemark resume ID`, `tidemark sessions resume
 * ID`, `tidemark --resume ID`, `tidemark exec --resume ID` and `tidemark sessions send ID TEXT`.
 */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "cli/chat/chat.h"
#include "cli/graph/graph_view.h"
#include "engine/resume.h"

struct resuming {
    struct resume core;
    struct cli *cli;
    int token_fd; /* for the token of the next wait; -1: shown */
    struct graph_face face;
    struct graph_driving graph;
    struct chat_printing chat;
    struct buf token_text, input_text, checkpoints;
    const char **given, **renames; /* as of core.ask; OLD, NEW, …: both ended by NULL */
    struct cause request;          /* who asked a server for it */
    struct arena arena;
};

#define RESUMING_INIT                                                                                                  \
    {                                                                                                                  \
        .core = RESUME_INIT, .token_fd = -1, .checkpoints = BUF_INIT((size_t)1 << 20), .arena = ARENA_INIT             \
    }

/* Opens the store as well. */
enum tide_code resume_and_print(struct cli *cli, struct resuming *r, struct tide_err *err) MUST_CHECK;
enum tide_code send_and_print(struct cli *cli, struct resuming *r, const char *text, bool only_queue,
                              struct tide_err *err) MUST_CHECK;
void resuming_done(struct resuming *r);

/* What a server asks of its process, in the arena, and who asked the server: "by", "request_id", "request_digest". The program gets no part of it. */
enum tide_code read_asked(int fd, struct arena *a, const struct json **ret, struct cause *ret_cause,
                          struct tide_err *err) MUST_CHECK;

#endif
