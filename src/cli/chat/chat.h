/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chat: the settings, a session, and the agent over it. Behind `tidemark chat`, `tidemark resume` of a chat and
 * `tidemark sessions send` to one:
 *
 *   chat.c           settings into an agent; making, finding and opening the session
 *   chat_from.c      going back before going on
 *   chat_files.c     the files that a prompt names
 *   chat_log.c       what the agent does, into the log
 *   chat_print.c     one prompt, for programs: text, JSON, a stream of JSON
 *   chat_screen.c    at a terminal: reads prompts, shows what happens
 *   chat_ask.c       asks for a word
 *   chat_detail.c    what is asked about, as people read it
 *   chat_commands.c  /help and the others
 */
#ifndef CLI_CHAT_CHAT_H
#define CLI_CHAT_CHAT_H

#include "cli/cli.h"
#include "engine/settings.h"

/* What was asked for on the command line; all zero: nothing. */
struct chat_want {
    const char *provider, *model, *base_url, *script, *agent, *title;
    const char *prompt, *output; /* output: text, json, stream-json */
    const char *piped;           /* what the prompt is about; only with a prompt */
    const char *resume, *from;   /* resume: a session; from: checkpoint, seq:N or a checkpoint's id */
    bool latest, yes, no_tools, no_store, refresh_prompt, reuse_effects, redo_effects;
    int64_t max_turns;
    const char *input, *token; /* the answer to a wait, JSON; the right to give it */
    int token_fd;              /* for the token of the next wait; 0: none */
    bool degrade;              /* as on_store_error: continue */
    bool degrade_said;         /* by the command line: what is set does not count */
    bool keep_pause;           /* nobody is there who would rather not wait: a pause between attempts is waited for */
};

struct chat {
    struct cli *cli;
    const struct chat_want *want;
    struct settings settings;
    struct arena arena;  /* of what the options point to */
    struct arena prompt; /* of the prompt that is being said */
    struct buf key;      /* the provider's: never shown */
    struct tide_agent_options opt;
    const char *model;     /* as it was asked for; NULL: what is stored, else what is set */
    tide_session *session; /* NULL: made with the first prompt */
    tide_agent *agent;
    struct recovery_thread *sweep; /* recovery of what others left, as every process that lives long does it */
    void (*tell)(void *arg, const char *line); /* what is to be known besides, with opt.arg; NULL: standard error */
    bool (*stopped)(void *arg); /* before there is an agent that could be stopped, with opt.arg; NULL: by a signal */
    bool resumed;
    bool quiet;            /* what is logged would be drawn into the conversation, where it is shown already */
    const char *temporary; /* directory of a store that goes away with the chat; NULL: none */
};

/* Reads the settings. Events and approvals go to the callbacks. */
enum tide_code chat_init(struct chat *c, struct cli *cli, const struct chat_want *want, tide_agent_event_fn *event,
                         tide_approve_fn *approve, void *arg, struct tide_err *err) MUST_CHECK;
void chat_done(struct chat *c);

/* One line beside the conversation. */
__attribute__((format(printf, 2, 3))) void chat_tell(const struct chat *c, const char *fmt, ...);

/* Whether a new session could be spoken to: a key, a model, a script; all that is missing is said at once. */
enum tide_code chat_check(struct chat *c, struct tide_err *err) MUST_CHECK;

/* What --yes says to a question of before: as if it had been there then. */
enum tide_decision chat_yes(const struct chat *c, const struct tide_approval *ask);

/* Opens the store as the options want it. */
enum tide_code chat_store(struct chat *c, struct tide_err *err) MUST_CHECK;

/* An existing one, by id or unique prefix; or the latest of this directory. `from` as of --from; NULL: where it is. */
enum tide_code chat_open(struct chat *c, const char *id, const char *from, struct tide_err *err) MUST_CHECK;
enum tide_code chat_open_latest(struct chat *c, struct tide_err *err) MUST_CHECK;
enum tide_code chat_take(struct chat *c, tide_session *session, struct tide_err *err) MUST_CHECK; /* takes it over */

/* --from: `checkpoint` (the latest, but never behind a prompt that has no answer), seq:N, a checkpoint's id. */
enum tide_code chat_roll_back(struct chat *c, const char *from, struct tide_err *err) MUST_CHECK;

/* Rolls back, and withdraws what it waits for: *ret_withdrawn is the question, the caller's; NULL: it did not wait. */
enum tide_code chat_roll_back_to(struct chat *c, int64_t seq, unsigned flags, const char *reason, char **ret_withdrawn,
                                 struct tide_err *err) MUST_CHECK;
#define CHAT_WITHDRAWN "not answered, and withdrawn by going back: %s"

/* A new one, named after its first prompt. */
enum tide_code chat_new(struct chat *c, const char *prompt, struct tide_err *err) MUST_CHECK;

/* Another agent over the same session, when options have changed. */
enum tide_code chat_agent(struct chat *c, struct tide_err *err) MUST_CHECK;
void chat_leave(struct chat *c); /* the session is closed: what is open of it is parked */

/* Whether a session was made by an agent: it has a provider, and runs no graph. */
bool chat_made(tide_session *session);

/* "@path" in a prompt stands for the file: its text is added below, which is told. In the arena. */
enum tide_code chat_expand(struct chat *c, const char *prompt, const char **ret_prompt, struct tide_err *err)
    MUST_CHECK;

/* It was cut, and nobody stopped it on purpose: it goes on by itself when somebody comes back. */
bool chat_needs_resume(struct chat *c);
bool chat_was_stopped(struct chat *c); /* by a person */

/* What the agent does, into the log. */
void chat_log_open(const struct chat *c);
void chat_log_end(const struct chat *c, enum tide_code code, const char *why);
void chat_log(const struct chat *c, const struct tide_agent_event *e);

/* ---- chat_print.c: one prompt, or without one going on */
enum tide_code chat_print(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;

/* ---- chat_screen.c: a conversation; or one prompt, or going on, shown as a conversation is */
enum tide_code chat_screen(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;
enum tide_code chat_watch(struct cli *cli, const struct chat_want *want, struct tide_err *err) MUST_CHECK;

#endif
