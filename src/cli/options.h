/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that several commands have, each written once, so that the same word means and takes the same everywhere; {OPT_X}
 * is a row, and what a command says of it in its own words is the argument. And how those of graphs are read.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/args.h"
#include "cli/graph/graph_view.h"

#define OPT_MANY(NAME, VALUE, HELP)                                                                                    \
    .name = NAME, .type = VALUE_TEXT, .value = VALUE, .many = true, .help = HELP "; may be given more than once"

/* ---- who answers ---- */

#define OPT_PROVIDER(HELP)                                                                                             \
    .name = "provider", .type = VALUE_WORD, .words = "anthropic openai script", .value = "TYPE", .help = HELP
#define OPT_MODEL(HELP) .name = "model", .type = VALUE_TEXT, .value = "NAME", .help = HELP
#define OPT_BASE_URL                                                                                                   \
    .name = "base-url", .type = VALUE_TEXT, .value = "URL",                                                            \
    .help = "the URL of another server with the provider's protocol"
#define OPT_SCRIPT .name = "script", .type = VALUE_FILE, .value = "FILE", .help = "answer from this file, offline"

/* ---- how it runs and what is shown ---- */

#define OPT_PARALLEL(HELP) .name = "parallel", .type = VALUE_INT, .value = "N", .min = 1, .max = 1024, .help = HELP
#define OPT_YES .name = "yes", .help = "allow every tool that the configuration does not deny"
#define OPT_ON_STORE_ERROR(HELP)                                                                                       \
    .name = "on-store-error", .type = VALUE_WORD, .words = "stop continue", .value = "HOW",                            \
    .help = "when the store cannot be written: stop (the default) " HELP
#define STORE_ERROR_HELP "pauses the run until it can; continue runs pure work in memory"
#define OPT_OUTPUT(HELP)                                                                                               \
    .name = "output", .type = VALUE_WORD, .words = "text json stream-json", .value = "HOW",                            \
    .help = HELP " (text, the default), one JSON object, or one JSON object per line as it happens"
#define OPT_QUIET .name = "quiet", .letter = 'q', .help = "print only the result, no progress"

/* ---- waits ---- */

#define OPT_TOKEN                                                                                                      \
    .name = "token", .type = VALUE_TEXT, .value = "TOKEN|-|@FILE",                                                     \
    .help = "the token of the wait; other users can see it in `ps`, so prefer - (standard input) or @FILE"
#define OPT_TOKEN_FD(MIN, WHICH)                                                                                       \
    .name = "token-fd", .type = VALUE_INT, .value = "FD", .min = MIN, .max = 1 << 20,                                  \
    .help = "write the token of " WHICH " wait to this file descriptor instead of showing it"
#define OPT_DEADLINE                                                                                                   \
    .name = "deadline", .type = VALUE_WHEN, .value = "D",                                                              \
    .help = "the time at which the wait ends without an answer: 3h, 2d, or a time such as 2026-02-21T10:00:00Z"
#define OPT_EXPIRES                                                                                                    \
    .name = "expires", .type = VALUE_WHEN, .value = "D",                                                               \
    .help = "the time at which the token expires (default: the deadline)"
#define OPT_INPUT(HELP) .name = "input", .type = VALUE_TEXT, .value = "TEXT", .help = HELP
#define OPT_ASK_AGAIN                                                                                                  \
    .name = "ask-again", .type = VALUE_TEXT, .value = "NAME",                                                          \
    .help = "ask a question again that was answered with no, while nothing later depends on it"
#define OPT_REASON                                                                                                     \
    .name = "reason", .type = VALUE_TEXT, .value = "TEXT",                                                             \
    .help = "the reason for a yes or a no; it is stored with the answer and shown to the program or model that asked"
#define OPT_INPUT_JSON .name = "input-json", .type = VALUE_TEXT, .value = "JSON", .help = "the answer, as JSON"

/* ---- reading them ---- */

/* --on-store-error continue */
bool is_continue(const struct args *args);

/* --NAME TEXT or --NAME-json JSON, as JSON; NULL: neither. `room` keeps the text. */
enum tide_code text_or_json(const struct args *args, const char *name, struct buf *room, const char **ret,
                            struct tide_err *err) MUST_CHECK;

/* Who answers, of chats and graphs; and how a graph is shown. */
struct agent_want agent_want_from(const struct args *args);
void take_on_store_error(const struct args *args, struct agent_want *who);
struct graph_face graph_face_from(const struct args *args);

/* The first --set that takes standard input; NULL: none. */
const char *set_from_input(const struct args *args);

#endif
