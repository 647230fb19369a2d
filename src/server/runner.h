/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs: a thread for each active run, none for one that waits, and places for so many at once, in which tasks take turns
 * (fair_line.h). A resume, an answer or a start that finds no place waits a while for its turn, then it is refused (TIDE_BUSY); a message is
 * queued in its session, which is due then. Chats and graphs run on that thread; a program runs in a process
 * of its own with its own lease (`tidemark resume`), which outlives this one, and the thread waits for its end. What is due, and
 * what was cut, continues by itself as the settings say.
 */
#ifndef SERVER_RUNNER_H
#define SERVER_RUNNER_H

#include "engine/resume_request.h"
#include "engine/scheduler.h"
#include "server/feed.h"

struct runner;

struct runner_options {
    const char *url, *config, *key_file; /* of the store, for processes that are started; NULL: not given */
    enum auto_resume automatic;
    int max_active;      /* at once */
    int64_t interval_ms; /* between looks at what is due, at most */
};

struct runner *runner_new(tide_store *store, struct feed *feed, const struct runner_options *opt);

/* Records what happened while nobody was there. Before anybody may ask. */
enum tide_code runner_sweep(struct runner *r, struct tide_err *err) MUST_CHECK;
/* From now on what is due is resumed. */
enum tide_code runner_start(struct runner *r, struct tide_err *err) MUST_CHECK;
/* Nothing new begins; what runs is asked to park, and waited for, at most so long. */
void runner_stop(struct runner *r, int64_t deadline_ms);
void runner_free(struct runner *r); /* after runner_stop(); takes NULL */

/* A program that begins in its session: of the settings, never of a request. */
struct program_order {
    const char *const *argv;
    const char *cwd, *env; /* env: names, "A,B"; NULL: none */
    bool anew;             /* also when the last run is unfinished */
    struct str set;        /* values of its memory, a JSON object; empty: none */
};

/* A graph that begins in its session. */
struct graph_order {
    struct str json; /* as it is stored with a run */
    const char *dir; /* where files are that it names; NULL: it names none */
};

/* What somebody asks for. Everything is copied. */
struct order {
    const char *session_id;
    const struct cause *request;         /* who asks, and by which request of theirs */
    bool until_parked;                   /* `fn` is called when it waits or has ended: with the token of its wait */
    int64_t expect_seq;                  /* TIDE_CONFLICT when its turn comes and this is not its last event; 0: any */
    int64_t queue_max;                   /* of a message that is queued: it is refused where so many are; 0: no limit */
    const struct program_order *program; /* it begins; NULL: the session continues */
    const struct graph_order *graph;     /* the same, with `memory` */
    const char *message;                 /* text; NULL: it is resumed */
    const char *input;                   /* an answer: JSON; NULL: none */
    const char *token;                   /* the right to give it; NULL: the owner's */
    const char *ask_again, *request_id;
    const char *const *retry, *const *happened;
    bool now, accept_change, has_reason;
    struct str memory; /* of a graph: values, a JSON object; stored nowhere but as the graph says */
    const char *checkpoint;
    bool fallback, reuse_effects, redo_effects;
};

/* Once it has begun on disk (or, until_parked, later): TIDE_OK, with the event that records it; or why it did not.
 * Called once, from any thread. */
struct begun {
    const char *kind; /* of the event: run.started, run.resumed, queue.added */
    int64_t seq;
    struct str event;  /* JSON */
    const char *token; /* of the wait where it is parked: shown only here. NULL: there is none */
};
typedef void begun_fn(void *arg, const struct begun *begun, const struct tide_err *err);

/* TIDE_BUSY: as many run and wait as may. TIDE_HELD: it runs already, or waits for its turn. Otherwise `fn` is called. */
enum tide_code runner_run(struct runner *r, const struct order *order, begun_fn *fn, void *arg, struct tide_err *err)
    MUST_CHECK;

/* Shut down what this server runs of the session, if it does. */
bool runner_runs(struct runner *r, const char *session_id);

/* What the sweeps recorded; of other reasons. */
#define INTERRUPTION_REASONS "process_restart", "process_exit", "wait_timeout", "shutdown", "other"
struct runner_counts {
    size_t active, due, asked; /* due, asked: wait for a place */
    uint64_t started, failed, degraded;
    uint64_t interrupted[5];
};
void runner_count(struct runner *r, struct runner_counts *ret);

#endif
