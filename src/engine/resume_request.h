/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a resume, and what may not be asked of which kind of session; who takes a message. */
#ifndef ENGINE_RESUME_REQUEST_H
#define ENGINE_RESUME_REQUEST_H

#include "engine/agent_setup.h"
#include "base/cause.h"

struct resume_request {
    const char *id;                 /* or unique prefix */
    const char *token;              /* NULL: the right of the store's owner */
    const char *input;              /* JSON; NULL: none */
    bool has_reason;                /* … and it holds a reason: resume_give_reason() */
    const char *ask_again;          /* a question that was answered with no; NULL: none */
    const char *request_id;         /* NULL: none */
    const struct cause *request;    /* who asks, and by which request of theirs; NULL: nobody is named */
    const char **retry, **happened; /* names, ended by NULL; NULL: none */
    int64_t queue_max;              /* of a message that is queued: it is refused where so many are; 0: no limit */
    bool now, accept_change;
    bool dry_run;                    /* only what would be done; nothing is written */
    bool unattended;                 /* no person resumes it: who.keep_pause, whatever it runs */
    struct agent_want who;           /* of chats and graphs; degrade and degrade_said of all */
    const char *graph_file;          /* another version of the graph; NULL: the one that is stored */
    struct tide_graph_options graph; /* of a graph: checkpoints, threads, checkpoint, renames, rollback, fallback */
    const char *const *given;        /* which options are given, of resume_option_name(), ended by NULL; NULL: none */
};

/* What it runs, as lists have it. */
enum tide_session_kind session_kind_of(const tide_session *session);

/* The options that do not mean something to every kind of session, from 0; NULL: no more. */
const char *resume_option_name(size_t i);

/*
 * TIDE_INVALID: an option is given that means nothing to this kind. `session` NULL: its log cannot be read to its end, as `err`
 * says; only a graph continues before its damage.
 */
enum tide_code resume_kind(tide_session *session, const struct resume_request *ask, enum tide_session_kind *ret_kind,
                           struct tide_err *err) MUST_CHECK;

/* A yes or a no, JSON, and why, as one answer into *ret. TIDE_INVALID: there is no answer, or it holds a reason itself. */
enum tide_code resume_give_reason(const char *input, const char *reason, struct buf *ret, struct tide_err *err)
    MUST_CHECK;

/* Whether this is a token with which the session's wait can be answered now: TIDE_TOKEN_…. Writes nothing. */
enum tide_code resume_check_token(tide_session *session, const char *token, struct tide_err *err) MUST_CHECK;

/* Opens the question again that ask->ask_again names; an answer that goes with it is looked at first. */
enum tide_code resume_ask_again(tide_session *session, const struct resume_request *ask,
                                char ret_token[TIDE_TOKEN_SIZE], struct tide_err *err) MUST_CHECK;

/*
 * Who takes a message: TIDE_KIND_PROGRAM and TIDE_KIND_GRAPH are run with it, TIDE_KIND_CHAT answers it, TIDE_KIND_LOG: it is
 * queued for the process that runs the session.
 */
enum tide_code send_kind(tide_session *session, enum tide_session_kind *ret_kind, struct tide_err *err) MUST_CHECK;

#endif
