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
 *   chat_pick.c      which chat to go on with, from a list
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
    const char *input, *token; /* the answer to a wait, JSON; the right to give it */
    int token_fd;              /* for the token of the next wait; 0: none */
};

struct chat {
    struct cli *cli;
    const struct chat_want *want;
    struct chat_session core;
    struct arena prompt; /* of the prompt that is being said */
    struct chat_image {
        const char *name;
        struct str bytes;
    } images[TIDE_IMAGES_MAX]; /* that it names, in the same arena */
    size_t n_images;
    struct recovery_thread *sweep; /* recovery of what others left, as every process that lives long does it */
    const char *temporary;         /* directory of a store that goes away with the chat; NULL: none */
};

/* Reads the settings. Events and approvals go to the callbacks. */
enum tide_code chat_init(struct chat *c, struct cli *cli, const struct chat_want *want, tide_agent_event_fn *event,
                         tide_approve_fn *approve, void *arg, struct tide_err *err) MUST_CHECK;
void chat_done(struct chat *c);

/* One line beside the conversation. */
#define chat_tell(c, ...) agent_setup_tell(&(c)->core.setup, __VA_ARGS__)

/* Opens the store as the options want it. */
enum tide_code chat_store(struct chat *c, struct tide_err *err) MUST_CHECK;

/* The session that `want` names, and back to where it says. */
enum tide_code chat_resume(struct chat *c, struct tide_err *err) MUST_CHECK;

/* "@path" in a prompt stands for the file: its text is added below, or it is an image; which is told. In the arena. */
enum tide_code chat_expand(struct chat *c, const char *prompt, const char **ret_prompt, struct tide_err *err)
    MUST_CHECK;
/* Says it, with the images that it names. */
enum tide_code chat_say(struct chat *c, const char *prompt, struct tide_text *ret_answer, struct tide_err *err)
    MUST_CHECK;

/* What the agent does, into the log. */

/* ---- chat_print.c: one prompt, or without one going on */
enum tide_code chat_print(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;

/* ---- chat_screen.c: a conversation; or one prompt, or going on, shown as a conversation is */
enum tide_code chat_screen(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;
enum tide_code chat_watch(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;

#endif
