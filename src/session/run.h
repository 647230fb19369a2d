/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle behind tide_run, for the files of this folder:
 *
 *   coordinator.c  begins and resumes runs                 run.c    appends what the run does; store trouble; the end
 *   cancel.c       ends them from outside                  run_queue.c  appends that nobody waits for yet
 *   run_replay.c   what the chain has done so far          run_degraded.c  what waits in memory
 *   run_obstacles.c  who is in the way of a run            run_recorded.c  what the log holds of runs, for people
 *   step.c         steps                                   wait.c   waits and sleeps
 *   token_rotate.c a new token for a wait
 */
#ifndef SESSION_RUN_H
#define SESSION_RUN_H

#include "session/event_draft.h"
#include "session/session.h"

enum recorded_state {
    RECORDED_STARTED,
    RECORDED_COMPLETED,
    RECORDED_FAILED,
    RECORDED_UNKNOWN,
    RECORDED_WAITING,
    RECORDED_ANSWERED
};

/* What the log says of one use of a name. */
struct recorded {
    enum recorded_state state;
    int64_t seq; /* of the event that records it */
    int attempt;
    int64_t retry_at_ms; /* failed, and to be tried again; 0: not */
    int64_t due_ms;      /* of a sleep */
    int64_t run;         /* read from the log: the number of its run in the session, from 1; else 0 or less */
    bool once;
    bool undone;   /* failed, because a probe found that it had not happened: it may be done */
    char args[17]; /* digest of the arguments */
};

/* What a chain has done, as far as its log was read: key -> struct recorded *. */
struct chain {
    struct map steps, waits, checkpoints; /* checkpoints: key -> char * id */
    int64_t next, stop;                   /* events from next on, before stop, are not read yet */
    int64_t run;                          /* number in the session of the run that is read next */
    char *wait_key;                       /* of the wait that is open there; malloc or NULL */
    size_t block;                         /* how many are read at a time */
};

/* A step that was asked for and has not ended. */
struct attempt {
    char *key;       /* its call_id */
    char within[33]; /* key of the step that it is part of; "" when of none */
    char idempotency[33];
    enum tide_effect effect;
    char args[17];
    int retries, number;
    bool begun, probing;
};

/* Events of a degraded run that are not on disk yet. */
struct backlog {
    struct tide_new_event *events; /* malloc, and so are kinds and bodies */
    size_t n, cap, bytes;
    int64_t tried_ms;
    bool doubt;     /* the caller gave up on a try whose outcome is not known: it may be there, … */
    int64_t before; /* … after this seq */
};

/* Batches that were handed over and are not known to be on disk. */
#define RUN_QUEUE_MAX 8
struct run_queue {
    struct {
        struct draft draft;
        int64_t before; /* last seq when it was queued */
        unsigned flags;
        size_t ours; /* as in struct trying */
        bool pure;   /* a run with `continue` may keep it in memory */
    } batches[RUN_QUEUE_MAX];
    size_t n;
    bool doubt; /* the store failed under one of them: they are looked for before anything else */
};

struct tide_run {
    struct tide_session *s;
    char id[TIDE_ID_SIZE], chain_id[TIDE_ID_SIZE];
    unsigned flags; /* enum tide_run_flags */
    bool over;      /* ended, parked or lost */
    bool starting;  /* run.started, or run.resumed, is on its way and not known to be on disk */
    bool unsure;    /* the caller gave up on an append whose outcome is not known: the marks may be behind the log */
    struct chain done;
    struct map uses;     /* "step NAME", "wait NAME", … -> int64_t * how often so far */
    struct map active;   /* name -> struct attempt * */
    struct map retry;    /* names of steps that may run again -> itself */
    struct map happened; /* names of steps of which a person knows that they happened -> itself */
    struct map overlay;  /* memory set while degraded: key -> JSON text */
    struct backlog backlog;
    struct run_queue queue;
    int64_t seen_version;
    int64_t appended_seq; /* last event of the last append */
    char *changed_step;   /* the last step that asked for something else than was recorded, and was refused; malloc */
    int64_t given_turn;   /* latest number of a turn that one of several agents was given, in the log or not yet */
};

/* ---- run.c */

/* Fields of a record about a run. */
#define RUN_FIELDS(r)                                                                                                  \
    log_text("store", (r)->s->store->url), log_text("session", (r)->s->head.id), log_text("run", (r)->id)

struct tide_run *run_new(struct tide_session *s, const struct tide_run_options *opt);
void run_free(struct tide_run *r);

/* One append that may take several tries. */
struct trying {
    unsigned flags;
    const struct tide_new_event *events;
    size_t n;
    size_t ours;    /* which of them nobody else can have appended */
    int64_t before; /* last seq when it began */
    bool unknown;   /* the outcome of the last try is not known: look before trying again */
};
enum tide_code run_try(struct tide_run *r, struct trying *t, struct tide_err *err) MUST_CHECK; /* once */
enum tide_code run_try_held(struct tide_run *r, struct trying *t, struct tide_err *err)
    MUST_CHECK; /* until the store can */

/* Appends what the run does; waits while the store is in trouble. `pure`: may wait in memory in a run with `continue`. */
enum tide_code run_append(struct tide_run *r, unsigned flags, struct draft *d, bool pure, struct tide_err *err)
    MUST_CHECK;
enum tide_code run_usable(struct tide_run *r, struct tide_err *err) MUST_CHECK;
enum tide_code run_sure(struct tide_run *r, struct tide_err *err) MUST_CHECK; /* and its marks are what the log has */

/*
 * The n-th use of this name (from 1), as a key: "<chain>/<name>/<n>". Inside a step (`within` is its key, else NULL) uses
 * count apart, because they do not happen when that step answers from the log: "<chain>/<within>/<name>/<n>".
 */
char *run_key(struct tide_run *r, const char *what, const char *within, const char *name);
/* The use was refused: it does not count. */
void run_unuse(struct tide_run *r, const char *what, const char *within, const char *name);
enum tide_code run_name_check(const struct tide_run *r, const char *what, const char *name, struct tide_err *err)
    MUST_CHECK;

/* The key that the outside may know an effect by: the same in every attempt, different for every use and session. */
void run_idempotency(char out[33], const struct tide_run *r, const char *call_id);

/* Ends the run, what the draft holds before it in the same append. Takes the draft's events; the caller has its memory. */
enum tide_code run_end_with(struct tide_run *r, struct draft *d, const struct tide_run_result *result,
                            struct tide_err *err) MUST_CHECK;

/* ---- run_degraded.c */

/* It has `continue`, and there is room for these. */
bool degraded_may_take(const struct tide_run *r, const struct draft *d);
/* Keeps them in memory; the callback gets `why` when the store begins to fail, and may give up. */
enum tide_code degraded_take(struct tide_run *r, const struct draft *d, const struct tide_err *why,
                             struct tide_err *err) MUST_CHECK;
/* Appends what degraded_may_take(), or keeps it in memory. */
enum tide_code degraded_append(struct tide_run *r, struct trying *t, const struct draft *d, struct tide_err *err)
    MUST_CHECK;
/* What waits in memory goes to the store. `held`: waits until it can; else one try, unless its outcome is not known. */
enum tide_code degraded_flush(struct tide_run *r, bool held, struct tide_err *err) MUST_CHECK;
void degraded_done(struct tide_run *r);
/* What was done while degraded is on disk, or stays aside; then the state is as the store has it. */
enum tide_code run_settle(struct tide_run *r, struct tide_err *err) MUST_CHECK;

/* ---- run_queue.c */

/* Queues the start of the run, without waiting. `ours`: as in struct trying. Takes the draft if it succeeds. */
enum tide_code run_put_start(struct tide_run *r, struct draft *d, size_t ours, struct tide_err *err) MUST_CHECK;

/* Queues without waiting; takes the draft, which is empty after it. `how`: of these. */
enum {
    PUT_PURE = 1,  /* a run with `continue` may keep it in memory */
    PUT_LATER = 2, /* the next append takes it along; without one it is written a little later */
};
enum tide_code run_put(struct tide_run *r, struct draft *d, unsigned how, struct tide_err *err) MUST_CHECK;

/* run_append() in one commit with what is queued, where that can be. */
enum tide_code run_append_behind(struct tide_run *r, struct draft *d, bool pure, struct tide_err *err) MUST_CHECK;
static inline bool run_queue_takes(const struct tide_run *r)
{
    return r->queue.n && r->queue.n < RUN_QUEUE_MAX && !r->queue.doubt && !r->starting && !r->backlog.n;
}
/*
 * All that was queued is on disk, or in the memory of a run with `continue`. Must come before anything that depends
 * on it is shown; what is done outside of the program needs run_append() before it.
 */
enum tide_code run_flush(struct tide_run *r, struct tide_err *err) MUST_CHECK;
void run_queue_done(struct tide_run *r);

/* ---- wait.c */

/* A member of one event, as JSON; null when it has none. */
enum tide_code run_read_member(struct tide_session *s, int64_t seq, const char *member, struct tide_text *ret,
                               struct tide_err *err) MUST_CHECK;

/* What the first wait of this name was answered with. TIDE_NOT_FOUND: it was not; nothing is parked, no use is counted. */
enum tide_code wait_answer(struct tide_run *r, const char *name, struct tide_text *ret_answer, struct tide_err *err)
    MUST_CHECK;

/* Whether the first wait of this name was answered by its default, when its deadline had passed; false: it has no answer. */
enum tide_code wait_was_defaulted(struct tide_run *r, const char *name, bool *ret, struct tide_err *err) MUST_CHECK;

/* The members of run.waiting that say what happens at the deadline. */
void wait_draft_deadline(struct draft *d, enum tide_on_deadline on_deadline, const char *default_answer);

/* ---- coordinator.c */

/* Beside enum tide_run_flags: what the chain has done is read when it is first asked for (run_sure()). */
#define RUN_READ_LATER (1u << 16)
/* start: a run that waits is not superseded by a new chain, but continued. */
#define RUN_CONTINUES (1u << 17)

/* The last run leaves nothing to be continued: there is none, or it completed, or a person cancelled it. */
bool run_is_over(const struct run *r);

/* tide_run_ensure() about the log up to `seq`: TIDE_CONFLICT when there is more of it, and nothing is written then. */
enum tide_code run_ensure_at(struct tide_session *s, const struct tide_run_options *opt, int64_t seq,
                             enum tide_ensured *ret_how, struct tide_run **ret_run, struct tide_err *err) MUST_CHECK;
bool run_has_moved(struct tide_session *s, int64_t seq); /* that was the reason */

/* Whether tide_run_resume() would be refused, and why; nothing is written. */
void run_look_resume(struct tide_session *s, const struct tide_run_options *opt, struct tide_err *ret_refused);

/*
 * Begins a run with further events in the same append (`more` may be NULL). `queued`: without waiting, and then whatever
 * prevents it is returned by the next flush: TIDE_CONFLICT and TIDE_HELD mean that nothing was begun.
 */
enum tide_code run_start_with(struct tide_session *s, const struct tide_run_options *opt, const struct draft *more,
                              bool queued, struct tide_run **ret_run, struct tide_err *err) MUST_CHECK;

/* run.started of a run that continues `from`; NULL: of a new chain. */
enum tide_code run_draft_started(struct draft *d, struct tide_session *s, const char *run_id, const struct run *from,
                                 const struct tide_run_options *opt, struct tide_err *err) MUST_CHECK;

/* ---- run_recorded.c */

/* The names of the steps that the chain of the latest run has finished, as a member. */
enum tide_code run_put_finished(struct tide_session *s, struct json_out *o, const char *member, struct tide_err *err)
    MUST_CHECK;

/* Steps of the chain of the latest run that a new chain does again: "'a', 'b' and 3 more", and how many. */
struct run_steps {
    struct buf names;
    size_t n;
};
/* Those that finished; those that must happen once and may have happened. */
enum tide_code run_repeated_steps(struct tide_session *s, struct run_steps *ret_finished, struct run_steps *ret_open,
                                  struct tide_err *err) MUST_CHECK;

/* A step that must happen once and is not known to have: at it a plain resume ends. */
struct run_open_step {
    const char *name;
    bool failed; /* else it was cut: a probe may find out */
};
/* All of them, each name once; in the arena. */
enum tide_code run_open_steps(struct tide_session *s, struct arena *a, const struct run_open_step **ret, size_t *ret_n,
                              struct tide_err *err) MUST_CHECK;

/* ---- run_obstacles.c */

/* TIDE_HELD: somebody who lives may append, or a run of this process is under way. */
enum tide_code session_refuse_held(struct tide_session *s, struct tide_err *err) MUST_CHECK;
/* Somebody else holds it, and lives as far as is known. */
bool session_held_alive(const struct tide_session *s);
/* TIDE_ALIVE: a program of the last run lives on, also after a moment. */
enum tide_code session_refuse_living(struct tide_session *s, struct tide_err *err) MUST_CHECK;

/* ---- run_replay.c */

/* Reads what the chain of the latest run has done. */
enum tide_code chain_load(struct tide_session *s, struct chain *ret_chain, struct tide_err *err) MUST_CHECK;
/* The same when it is asked for, with chain_find(), where what comes later in the log cannot change it. */
enum tide_code chain_open(struct tide_session *s, struct chain *ret_chain, struct tide_err *err) MUST_CHECK;
static inline bool chain_is_read(const struct chain *c)
{
    return c->next >= c->stop;
}
/* What `m`, one of the chain's three, has under this key; NULL: nothing. The log is read as far as it takes to know. */
enum tide_code chain_find(struct tide_session *s, struct chain *c, const struct map *m, struct str key, void *ret_found,
                          struct tide_err *err) MUST_CHECK;
void chain_done(struct chain *c);
struct recorded *chain_recorded(struct map *m, struct str key); /* made when there is none */

#endif
