/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chat: a session and the agent over it. A new session is made with its first prompt, so that looking around leaves
 * nothing behind.
 */
#ifndef ENGINE_CHAT_SESSION_H
#define ENGINE_CHAT_SESSION_H

#include "engine/agent_setup.h"
#include "engine/project_instructions.h"
#include "engine/session_fields.h"

struct chat_session {
    struct agent_setup setup;
    const char *agent_name, *title; /* of a new one; NULL: `chat`, its first prompt */
    tide_session *session;          /* NULL: made with the first prompt */
    tide_agent *agent;
    struct project_instructions project; /* as it was read for the agent */
    const char *working_dir;             /* of the session, or where the next one begins */
    bool resumed;
    bool (*stopped)(void *arg); /* before there is an agent that could be stopped, with opt.arg; NULL: no */
    struct chat_image {
        const char *name;
        struct str bytes;
    } images[TIDE_IMAGES_MAX]; /* of the next prompt */
    size_t n_images;
    struct arena prompt; /* the same: for the caller that makes it */
};

void chat_leave(struct chat_session *c); /* the session is closed: what is open of it is parked */
void chat_session_done(struct chat_session *c);

/*
 * An existing one, by id or unique prefix; or the latest of this directory. `from`: `checkpoint` (the latest, but never behind a
 * prompt that has no answer), seq:N, a checkpoint's id; NULL: where it is. `rollback`: enum tide_rollback_flags.
 */
enum tide_code chat_open(struct chat_session *c, const char *id, const char *from, unsigned rollback,
                         struct tide_err *err) MUST_CHECK;
enum tide_code chat_open_latest(struct chat_session *c, struct tide_err *err) MUST_CHECK;
enum tide_code chat_take(struct chat_session *c, tide_session *session, struct tide_err *err)
    MUST_CHECK; /* takes it over */

/* Rolls back, and withdraws what it waits for: *ret_withdrawn is the question, the caller's; NULL: it did not wait. */
enum tide_code chat_roll_back_to(struct chat_session *c, int64_t seq, unsigned flags, const char *reason,
                                 char **ret_withdrawn, struct tide_err *err) MUST_CHECK;
#define CHAT_WITHDRAWN "not answered, and withdrawn by the rollback: %s"

/* A new one, named after its first prompt. */
enum tide_code chat_new(struct chat_session *c, const char *prompt, struct tide_err *err) MUST_CHECK;

/* The session of one alone, before anything is said: the settings are open, and nothing was chosen yet. Trouble of the store is an error. */
struct chat_creation {
    const char *id; /* NULL: one is made */
    const char *working_dir;
    const struct session_fields *fields;
};
enum tide_code chat_create(struct chat_session *c, const struct chat_creation *what, struct tide_err *err) MUST_CHECK;

/* Another agent over the same session, when options have changed. */
enum tide_code chat_agent(struct chat_session *c, struct tide_err *err) MUST_CHECK;

/* Who answers, where it works and what the project says to it; without a session: what the next one begins with. In the arena. */
#define CHAT_FILE_REFUSED "%s is not used: %s" /* of a file of the project */
struct chat_about {
    const char *provider, *model, *working_dir;
    const char *instructions; /* names of files, with commas; NULL: none */
};
void chat_about(struct chat_session *c, struct arena *a, struct chat_about *ret);

/* It was cut, and nobody stopped it on purpose: it continues by itself when somebody comes back. */
bool chat_needs_resume(struct chat_session *c);
bool chat_can_go_on(struct chat_session *c);   /* it was cut, stopped, failed, or waits */
bool chat_was_stopped(struct chat_session *c); /* by a person */

void chat_tell_refused(const struct chat_session *c); /* files of the project that are not used */

/* Says it, with the images. */
enum tide_code chat_say(struct chat_session *c, const char *prompt, struct tide_text *ret_answer, struct tide_err *err)
    MUST_CHECK;

/*
 * The same after what was cut, which comes first: *ret_refused when that did not come to its end, and the prompt was not taken.
 * `prompt` NULL: it continues, with an answer (JSON) and the right to give it where it waits; NULL: none.
 */
enum tide_code chat_go(struct chat_session *c, const char *prompt, const char *input, const char *token,
                       bool *ret_refused, struct tide_text *ret_answer, struct tide_err *err) MUST_CHECK;

#endif
