/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chat: the settings, a session, and the agent over it. Behind `tidemark chat`, `tidemark resume` of a chat and
 * `tidemark sessions send` to one:
 *
 *   chat.c           the engine's chat (engine/chat_session.h), its store and its settings
 *   chat_files.c     the files that a prompt names
 *   chat_print.c     one prompt, for programs: text, JSON, a stream of JSON
 *   chat_screen.c    at a terminal: reads prompts, shows what happens
 *   chat_ask.c       asks for a word
 *   question.c       a yes or a no, with one key; of graphs, too
 *   chat_pick.c      which chat to continue with, from a list
 *   chat_detail.c    what is asked about, as people read it
 *   chat_commands.c  /help and the others
 */
#ifndef CLI_CHAT_CHAT_H
#define CLI_CHAT_CHAT_H

#include "cli/cli.h"
#include "engine/chat_session.h"

/* What was asked for on the command line; all zero: nothing. */
struct chat_want {
    struct agent_want who;
    const char *agent, *title;
    const char *prompt, *output; /* output: text, json, stream-json */
    const char *piped;           /* what the prompt is about; only with a prompt */
    const char *resume, *from;   /* resume: a session; from: checkpoint, seq:N or a checkpoint's id */
    bool pick;                   /* resume, of one that is chosen from a list */
    bool latest, no_store, reuse_effects, redo_effects;
};

struct chat {
    struct cli *cli;
    const struct chat_want *want;
    struct chat_session core;
    struct recovery_thread *sweep; /* recovery of what others left, as every process that lives long does it */
    const char *temporary;         /* directory of a store that goes away with the chat; NULL: none */
};

/* Reads the settings. Callbacks are set in core.setup.opt by the caller. */
enum tide_code chat_init(struct chat *c, struct cli *cli, const struct chat_want *want, struct tide_err *err)
    MUST_CHECK;
void chat_done(struct chat *c);

/* One line beside the conversation. */
#define chat_tell(c, ...) agent_setup_tell(&(c)->core.setup, __VA_ARGS__)

/* Opens the store as the options want it. */
enum tide_code chat_store(struct chat *c, struct tide_err *err) MUST_CHECK;

/* The session that `want` names, and back to where it says. */
enum tide_code chat_resume(struct chat *c, struct tide_err *err) MUST_CHECK;

/* "@path" in a prompt stands for the file: its text is added below, or it is an image; the user sees which. In c->prompt. */
enum tide_code chat_expand(struct chat_session *c, const char *prompt, const char **ret_prompt, struct tide_err *err)
    MUST_CHECK;

/* ---- chat_print.c: one prompt, or without one continuing */
enum tide_code chat_print(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;

/* The same of a chat that the engine runs: what there is to say meanwhile, and what came of it. */
struct chat_printing {
    struct cli *cli;
    struct chat_session *chat;
    const char *input; /* the answer that is given, JSON; NULL: none */
    int token_fd;      /* for the token of the next wait; 0: it is shown */
    bool no_store;

    enum { PRINT_TEXT, PRINT_JSON, PRINT_STREAM } how;
    bool began; /* it did something */
    int64_t turns;
    int unwritten;        /* why a line could not be written; 0: all were */
    const char *answered; /* the question that was answered, until that is shown */
};
void chat_print_begin(struct chat_printing *p, struct cli *cli, const char *output, bool yes, struct chat_session *c);
void chat_print_running(struct chat_printing *p, bool runs);
enum tide_code chat_print_end(struct chat_printing *p, enum tide_code code, bool prompt_refused,
                              const struct tide_text *answer, struct tide_err *err) MUST_CHECK;

bool chat_is_stopped(void *arg); /* by a signal */

/* Of a chat that is not kept (--no-store): no command finds its session, so none is offered. */
void chat_drop_hints(struct tide_err *err);

/* ---- chat_screen.c: a conversation; or one prompt, or continuing, shown as a conversation is */
enum tide_code chat_screen(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;
enum tide_code chat_watch(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;

#endif
