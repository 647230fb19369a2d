/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one resume and the one send, for sessions of every kind: a face fills in the request and its callbacks, and prints the
 * result.
 *
 *   resume_session()   answers a wait or continues an interruption; with dry_run reports what that would do
 *   send_message()     the run continues with a message, or begins with it; or it is queued for the process that runs the session
 */
#ifndef ENGINE_RESUME_H
#define ENGINE_RESUME_H

#include "engine/chat_session.h"
#include "engine/graph_resume.h"
#include "engine/program_run.h"
#include "engine/resume_request.h"

/* Callbacks of the face, for every kind of run; NULL: none. Each gets `arg`. */
struct resume_face {
    void *arg;
    struct held held; /* while the store fails before anything runs */
    void (*tell)(void *arg,
                 const char *line); /* for people: the place where it continues, if that is not where it stopped */
    /* Of chats and graphs: opens the settings and sets the callbacks. Not NULL. */
    enum tide_code (*open_setup)(void *arg, struct agent_setup *setup, struct tide_err *err);
    /* Before and after a program or a chat runs: `program` or `chat` is set, so that it can be stopped. Of a graph it is in `run`. */
    void (*running)(void *arg, bool runs);
    /* Of a message to a chat: the prompt with the files that it names; in chat.setup.arena. */
    enum tide_code (*expand_prompt)(void *arg, const char *text, const char **ret_prompt, struct tide_err *err);
    /* Of graphs, before they run: the answer to the wait (JSON; false: none); values that are never stored. */
    bool (*answer)(void *arg, tide_session *session, struct buf *ret_json);
    enum tide_code (*ask_missing)(void *arg, const struct graph_missing *list, struct buf *memory, bool *ret_asked,
                                  struct tide_err *err);
    graph_unread_fn *unread; /* of the values that are given */
};

enum resume_result {
    RESUME_NOTHING, /* it was refused, or failed before it started */
    RESUME_PLANNED, /* dry_run: plan, refused, refused_code */
    RESUME_ASKED,   /* the question is open again, and waits: token */
    RESUME_RAN,     /* as `kind` says: program and resumed; chat and chat_answer; run and graph_result */
    RESUME_QUEUED,  /* the message is: queue_id, seq */
};

#define QUEUE_ID_SIZE 40

struct resume {
    tide_store *store;
    const char *config; /* as of settings_find() */
    struct resume_request ask;
    bool quiet;        /* the events of a graph's run are not shown */
    struct buf memory; /* of a graph: values, a JSON object or nothing; what is asked for is added. Wiped */
    struct resume_face face;

    enum resume_result result;
    enum tide_session_kind kind;
    tide_session *session; /* NULL: its log cannot be read to its end, or the chat has it */

    struct str plan; /* JSON, as of tide_graph_make_plan() */
    const struct graph_refusal *refused;
    enum tide_code refused_code;       /* of the first; TIDE_OK: there is none */
    const struct graph_refusal *notes; /* of a program: where it would end, and what helps; the same */

    char token[TIDE_TOKEN_SIZE];
    char queue_id[QUEUE_ID_SIZE];
    int64_t seq;

    /* They hold the callbacks of the face by kind: notice, trouble, stopped; event and approve; event, running, answer. */
    struct program_run program;
    struct tide_resumed resumed;
    struct chat_session chat;
    struct tide_text chat_answer;
    bool graph_refused;  /* the file of another version of the graph holds none */
    bool prompt_refused; /* the interrupted run comes first and did not end: the prompt was not taken */
    struct graph_want want;
    struct graph_run run;
    struct tide_graph_result graph_result;

    struct graph_resume graph;
    struct buf plan_text, content;
    struct tide_err plan_error;
    struct graph_refusal plan_refused[2];
    struct arena arena; /* of the notes */
};

#define RESUME_INIT                                                                                                    \
    {                                                                                                                  \
        .memory = BUF_INIT((size_t)64 << 20), .program = {.signals = -1}, .run = GRAPH_RUN_INIT,                       \
        .graph = GRAPH_RESUME_INIT, .plan_text = BUF_INIT(SIZE_MAX / 4), .content = BUF_INIT((size_t)16 << 20)         \
    }

/*
 * The code is that of the run (TIDE_WAITING, TIDE_FAILED, …; of a program that has ended TIDE_OK), or the reason why nothing ran:
 * `result` says which. program.end.not_run: the program cannot be run here.
 */
enum tide_code resume_session(struct resume *r, struct tide_err *err) MUST_CHECK;

/* `only_queue`: the next run takes it. */
enum tide_code send_message(struct resume *r, const char *text, bool only_queue, struct tide_err *err) MUST_CHECK;

/* Starts a run of this graph (JSON) in the session of `ask`, with its `memory` and provider. `dir`: as of graph_text_read(). */
enum tide_code start_graph(struct resume *r, struct str json, const char *dir, struct tide_err *err) MUST_CHECK;

/* The token of the wait of a chat or a graph, shown only to the caller whose run it is; "": it does not wait. */
const char *resume_token(const struct resume *r);

void resume_done(struct resume *r);

struct queue_limits {
    int64_t max;        /* TIDE_BUSY: so many are queued already; 0: no limit */
    int64_t expect_seq; /* TIDE_CONFLICT: this is not its last event; 0: any */
};

/* Queues a message. `content`: JSON; `request` NULL: the log names no author. */
enum tide_code send_queue(tide_store *store, const char *session, struct str content, const struct cause *request,
                          const struct queue_limits *limits, char ret_queue_id[QUEUE_ID_SIZE], int64_t *ret_seq,
                          struct tide_err *err) MUST_CHECK;

/* TIDE_CONFLICT: somebody who knows the session up to `expected` wants to change it. */
enum tide_code refuse_moved(const char *session, int64_t at, int64_t expected, struct tide_err *err) MUST_CHECK;

#endif
