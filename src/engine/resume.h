/* SPDX-License-Identifier: Apache-2.0 */
/* The one resume and the one send: which kind of session goes on, and what cannot be asked of that kind. */
#ifndef ENGINE_RESUME_H
#define ENGINE_RESUME_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct resume_request {
    const char *id;                 /* or unique prefix */
    const char *token;              /* NULL: the right of the store's owner */
    const char *input;              /* JSON; NULL: none */
    bool has_reason;                /* … and it holds a reason: resume_give_reason() */
    const char *ask_again;          /* a question that was answered with no; NULL: none */
    const char *request_id;         /* NULL: none */
    const char **retry, **happened; /* names, ended by NULL; NULL: none */
    bool now, accept_change;
    bool no_input;            /* nobody is asked at the terminal */
    bool keep_pause;          /* a pause that a provider asked for is waited for */
    bool unattended;          /* no person resumes it: the same, whatever it runs */
    const char *const *given; /* which options are given, of resume_option_name(), ended by NULL; NULL: none */
};

/* What it runs, as lists have it. */
enum tide_session_kind session_kind_of(const tide_session *session);

/* The options that do not mean something to every kind of session, from 0; NULL: no more. */
const char *resume_option_name(size_t i);

/*
 * TIDE_INVALID: an option is given that means nothing to this kind. `session` NULL: its log cannot be read to its end, as `err`
 * says; only a graph goes on before its damage.
 */
enum tide_code resume_kind(tide_session *session, const struct resume_request *ask, enum tide_session_kind *ret_kind,
                           struct tide_err *err) MUST_CHECK;

/* A yes or a no, JSON, and why, as one answer into *ret. TIDE_INVALID: there is no answer, or it holds a reason itself. */
enum tide_code resume_give_reason(const char *input, const char *reason, struct buf *ret, struct tide_err *err)
    MUST_CHECK;

/* Opens the question again that ask->ask_again names; an answer that goes with it is looked at first. */
enum tide_code resume_ask_again(tide_session *session, const struct resume_request *ask,
                                char ret_token[TIDE_TOKEN_SIZE], struct tide_err *err) MUST_CHECK;

/*
 * What a resume of a program or a chat would do, JSON as of tide_graph_make_plan(), and what stands in its way; *ret_refused with a
 * code: that does. Writes nothing.
 */
struct tide_run_options;
enum tide_code resume_plan(tide_session *session, const struct tide_run_options *opt, struct tide_err *ret_refused,
                           struct buf *ret_json, struct tide_err *err) MUST_CHECK;

/*
 * Who takes a message: TIDE_KIND_PROGRAM and TIDE_KIND_GRAPH are run with it, TIDE_KIND_CHAT answers it, TIDE_KIND_LOG: it is
 * queued for whoever runs the session.
 */
enum tide_code send_kind(tide_session *session, enum tide_session_kind *ret_kind, struct tide_err *err) MUST_CHECK;

/* Whether a message is queued that a run could take now. */
bool resume_delivers(const tide_session *session);

/* Queues it. `content`: JSON. */
#define QUEUE_ID_SIZE 40
enum tide_code send_queue(tide_store *store, const char *session, struct str content, char ret_queue_id[QUEUE_ID_SIZE],
                          int64_t *ret_seq, struct tide_err *err) MUST_CHECK;

#endif
