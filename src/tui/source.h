/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the screens get what they show, and what carries out what is asked there: a store, through the engine, or a server. Both answer in the
 * shapes of the API (docs/SERVER.md), so there is one way to read an answer, and a screen does not know which one it
 * shows.
 */
#ifndef TUI_SOURCE_H
#define TUI_SOURCE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/mem.h"

enum ask_what {
    ASK_SESSIONS,    /* a page of the list: status, kind, task_id, text, limit */
    ASK_INBOX,       /* what waits for a person */
    ASK_PAGE,        /* all that a session's page begins with: id, limit */
    ASK_TALK,        /* entries of its transcript before `seq` */
    ASK_TIMELINE,    /* id */
    ASK_LOG,         /* events before or after `seq`: limit, text: kinds */
    ASK_CHECKPOINTS, /* id */
    ASK_STATE,       /* as of `seq`; 0: now */
    ASK_GRAPH,       /* the same of the nodes of its graph */
    ASK_PLAN,        /* what a resume would do: the act `how` */
    ASK_UNDONE,      /* what a rollback to `seq` would undo */
    ASK_KINDS,
};

enum act_what {
    ACT_NOTHING,
    ACT_ANSWER,   /* input, reason */
    ACT_RESUME,   /* checkpoint, set, retry, happened */
    ACT_SEND,     /* message */
    ACT_CANCEL,   /* reason */
    ACT_FORK,     /* seq */
    ACT_ROLLBACK, /* seq, reason */
};

/* What a person wants done; its texts are its own. */
struct act {
    enum act_what what;
    uint64_t number; /* the caller's */
    char id[TIDE_ID_SIZE];
    int64_t seq;
    char *input; /* JSON */
    char *reason, *message, *checkpoint;
    char *set;              /* JSON object: values of the memory of a graph, which may be secrets: wiped */
    char *retry, *happened; /* names of steps or nodes, separated by commas */
    char *ask_again;
    bool now, accept_change;
};
void act_done(struct act *a);

struct ask {
    enum ask_what what;
    uint64_t number; /* the caller's */
    char id[TIDE_ID_SIZE];
    char status[24], kind[16], task_id[TIDE_ID_SIZE], text[128];
    int64_t limit, seq, after; /* after: of ASK_LOG; -1: before `seq`, or the end */
    struct act how;            /* of ASK_PLAN */
};

/* What came of an ask: JSON, or why there is none. */
struct answer {
    struct ask ask;
    struct arena arena;
    struct str json;
    struct tide_err err;
    bool lost;  /* the store or the server cannot be reached now, and may come back */
    void *view; /* what view.h makes of it, in the arena */
};
void answer_free(struct answer *a); /* takes NULL */

/* What came of an act. */
struct acted {
    enum act_what what;
    uint64_t number;
    char id[TIDE_ID_SIZE], new_id[TIDE_ID_SIZE]; /* new_id: of a fork */
    struct tide_err err;                         /* code TIDE_WAITING: it waits again */
    char said[200];                              /* in a sentence */
};

enum news_what {
    NEWS_CHANGED, /* something was committed */
    NEWS_TEXT,    /* a model is saying this, in `id` */
    NEWS_LOST,    /* nothing is heard any more: err */
    NEWS_BACK,
};
struct news {
    enum news_what what;
    const char *id;
    struct str text;
    const struct tide_err *err;
};
typedef void news_fn(void *arg, const struct news *news);

struct source;

/* Ends what waits: `is` is set, and `fd` is readable. */
struct halt {
    atomic_int is;
    int fd;
};
void halt_init(struct halt *h);
void halt_done(struct halt *h);
void halt_now(struct halt *h);
bool halt_within(const struct halt *h, int ms); /* waits so long at most; true: it is halted */

struct source_ops {
    /* Fills json, in the arena of the answer. On one thread. */
    enum tide_code (*get)(struct source *s, struct answer *answer, struct tide_err *err);
    /* Carries it out, and waits until it is done or has begun. On any thread, on several at once. */
    enum tide_code (*act)(struct source *s, const struct act *act, struct acted *ret, struct tide_err *err);
    /* Reports what is new until the source is stopped. On a thread of its own; it reconnects by itself. */
    void (*follow)(struct source *s, news_fn *fn, void *arg);
    /* The same of one session, with what its model is saying, until it is halted. NULL: follow() reports all there is.
     * On a thread of its own. */
    void (*look_at)(struct source *s, const char *id, struct halt *halt, news_fn *fn, void *arg);
    void (*close)(struct source *s); /* when nothing is under way any more */
};

struct source {
    const struct source_ops *ops;
    const char *name; /* "…/tidemark.db", "http://127.0.0.1:7007" */
    bool is_server;
    struct halt halt; /* everything is to end */
};

#endif
