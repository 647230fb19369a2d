/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated run: a machine with a few processes that work on one store, and beside it the oracle: what was
 * acknowledged, what is in doubt, what was refused. The oracle never asks the store what is right.
 *
 *   world.c         machine, processes, handles, faults       make_events.c  events and their meaning
 *   oracle.c        what is known of each session             model.c        a second, simple fold to compare states with
 *   check_answer.c  whether an answer was a right one         steps*.c       what the processes do
 *   check.c         a session in the store against the oracle  check_all.c    states, and the store as a whole
 *   run_seed.c      one seed                                  exhaustive.c   a fault at every operation
 *   lost_files.c    files beside a database go
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/mem.h"
#include "env/sim.h"
#include "sim_store.h"

enum { MAX_PROCS = 3, MAX_SESSIONS = 10, MAX_ALTS = 6, MAX_KEPT = 6, KEYS = 5, LEASE_MS = 30000 };

/* What an event means to the model. */
enum meaning { M_NONE, M_MESSAGE, M_SET, M_DEL, M_USAGE, M_ROLLBACK, M_MARK, M_MARKS_GONE };

struct o_event {
    const char *kind;
    struct str body;
    bool prefix; /* body is only how it begins, until it was seen */
    bool input;
    bool seen;     /* epoch and digest are known */
    int64_t pos;   /* 0: not known */
    int64_t floor; /* positions up to here were used before it was written */
    int64_t epoch;
    unsigned char digest[TIDE_DIGEST_SIZE];
    int owner; /* number of the process that appended it; -1: not known */
    enum meaning meaning;
    int key;          /* M_SET, M_DEL */
    struct str value; /* M_SET */
    int64_t number;   /* M_USAGE: input tokens; M_ROLLBACK: to_seq */
};

struct o_batch {
    struct o_event *events;
    size_t n;
};

/* A chain of batches of one writer: of each chain the first so many are there, each whole. */
struct o_chain {
    struct o_batch *batches;
    size_t n;
};

enum presence { ABSENT, PRESENT, MAYBE_MADE, MAYBE_GONE };

struct o_session {
    char id[TIDE_ID_SIZE];
    enum presence presence;
    struct o_session *parent; /* NULL unless a fork */
    int64_t parent_seq, first_seq;
    bool foreign;            /* imported, or a fork of one that was: nothing of it may run */
    struct o_event **events; /* acknowledged */
    size_t n, cap;
    struct o_chain alts[MAX_ALTS]; /* in doubt: one of these, or none */
    size_t alt_count;
    int doubt_by;      /* number of the process that was told "unknown": its own next look decides; -1: none */
    uint64_t doubt_at; /* commits so far when the doubt arose */
    int holder;        /* number of the process that holds the lease; -1: nobody */
    bool holder_sure;
    struct {
        int64_t seq;
        uint64_t hash;
    } kept[MAX_KEPT]; /* states seen once */
    size_t kept_n;
    char marks[4][TIDE_ID_SIZE]; /* some checkpoint ids */
    size_t marks_n;
};

enum { QUEUE_MAX = 8 };

/* A batch in the queue of append_async. */
struct queued {
    struct o_batch batch;
    bool done;
    enum tide_code code;
};

struct handle {
    tide_session *h;
    bool holds, lost; /* lost: another took the lease over */
    bool knows;       /* view is what the caller has seen; else the handle looks again by itself */
    int64_t view;
    struct queued *queue[QUEUE_MAX];
    size_t queue_n;
    bool queue_failed; /* since the last flush */
};

struct proc {
    struct sim_proc *sim;
    tide_store *store;
    int number; /* counts through the run; never used again */
    struct handle handles[MAX_SESSIONS];
};

struct world {
    uint64_t seed, rng;
    struct sim *sim;
    bool verbose, failed, quiet;
    struct arena arena;
    struct proc procs[MAX_PROCS];
    int proc_count, next_number;
    struct o_session sessions[MAX_SESSIONS];
    size_t session_count;
    uint64_t commits, unique;
    int64_t max_pos; /* highest position seen */
    bool clock_back;
    enum sim_fault fault;
    bool sticky, armed;
    bool fired_before;
    struct env *clock;
    const struct proc *looker; /* it may die while it looks: what it has not seen then proves nothing; NULL: nobody */
    int64_t commit_ms[256];    /* by number of process: when it last committed */
    int64_t touch_ms[256];     /* and when it last could have moved its heartbeat */
};

/* world.c */
void world_init(struct world *w, uint64_t seed, const struct sim_image *image);
void world_done(struct world *w);
uint64_t rnd(struct world *w, uint64_t n); /* 0 .. n-1 */
bool chance(struct world *w, unsigned percent);
void say(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* the run has failed */
int64_t now(struct world *w);
struct proc *proc_start(struct world *w, int slot); /* opens the store; NULL when that was cut by a fault */
bool proc_alive(const struct proc *p);
void proc_exit(struct world *w, struct proc *p); /* closes everything in order */
void proc_bury(struct world *w, struct proc *p); /* after a kill: what it had queued is in doubt */
bool bury_the_dead(struct world *w);             /* true when all are dead */
struct proc *any_proc(struct world *w);          /* a living one; NULL: none */
void call_begin(struct world *w);
bool call_excused(struct world *w); /* the fault fired during this call, or is sticky and has fired */
void arm(struct world *w, enum sim_fault fault, uint64_t n, bool sticky);
void disarm(struct world *w);
bool reboot(struct world *w, bool faults); /* starts a process, with faults while it opens; false: it failed */
tide_store *open_store(struct world *w, struct sim_proc *p, struct tide_err *err);

/* make_events.c */
void gen_init(void);
void gen_batch(struct world *w, struct o_batch *b, size_t n, bool input);
void gen_big(struct world *w, struct o_batch *b, size_t n); /* each over what is stored by content */
struct tide_new_event *gen_public(struct world *w, const struct o_batch *b);
struct o_batch batch_one(struct world *w, const char *kind, struct str body, bool prefix, enum meaning m,
                         int64_t number);

/* oracle.c */
struct o_session *o_add(struct world *w, const char *id); /* NULL: no room */
int64_t o_last(const struct o_session *s);
const struct o_event *o_at(const struct o_session *s, int64_t seq); /* own event */
void o_acked(struct world *w, struct o_session *s, const struct o_batch *b, struct proc *by);
void o_doubt(struct world *w, struct o_session *s, const struct o_batch *batches, size_t n, struct proc *by);
void o_drop_doubt(struct o_session *s);
void o_gone(struct world *w, struct o_session *s);
void note_commit(struct world *w, struct proc *p);
void o_lease(struct world *w, struct o_session *s, struct proc *by, bool released); /* an append of `by` went through */
struct o_session *o_pick(struct world *w); /* one that is there for sure; NULL: none */
size_t o_index(struct world *w, const struct o_session *s);
bool o_has_forks(struct world *w, const struct o_session *s, bool surely);

/* model.c */
struct model {
    struct str memory[KEYS]; /* ptr NULL: not set */
    int64_t messages, events, rollbacks, input_tokens, calls, mark_events;
};
void model_at(struct world *w, const struct o_session *s, int64_t seq, struct model *ret);

/* check.c, check_all.c */
bool same_event(const struct o_event *want, const char *kind, struct str body);
bool look(struct world *w, tide_store *store, struct o_session *s, bool final); /* false when it could not be read */
void check_state(struct world *w, tide_session *h, struct o_session *s, int64_t seq, bool keep);
void check_all(struct world *w, tide_store *store, bool thorough);
void check_rebuilt(struct world *w, tide_store *store);

/* steps.c, steps_more.c, end.c */
void step(struct world *w);
void do_append(struct world *w, struct proc *p, struct o_session *s, size_t n, unsigned flags);
void do_append_big(struct world *w, struct proc *p, struct o_session *s, size_t n, unsigned flags);
void do_create(struct world *w, struct proc *p, const char *id);
void do_async(struct world *w, struct proc *p);
void do_flush(struct world *w, struct proc *p, struct o_session *s);
void do_checkpoint(struct world *w, struct proc *p, struct o_session *s);
void do_marks_gone(struct world *w, struct proc *p, struct o_session *s);
void do_rollback(struct world *w, struct proc *p, struct o_session *s);
void do_fork(struct world *w, struct proc *p, struct o_session *s);
void do_input(struct world *w, struct proc *p, struct o_session *s);
void do_delete(struct world *w, struct proc *p, struct o_session *s);
void do_move(struct world *w, struct proc *p, struct o_session *s); /* export, delete, import */
void do_close(struct world *w, struct proc *p, struct o_session *s);
struct handle *get_handle(struct world *w, struct proc *p, struct o_session *s);
struct handle *handle_of(struct world *w, struct proc *p, const struct o_session *s);
void drain(struct world *w, struct proc *p); /* takes finished batches of the queue into the oracle */
/* Takes the outcome of a write into the oracle. True when it was acknowledged. */
bool judge(struct world *w, struct proc *p, struct o_session *s, struct o_batch *b, enum tide_code code,
           const struct tide_err *err, unsigned flags);
void must_work_again(struct world *w); /* the trouble is over: every process can append again */

/* modes */
bool run_seed(uint64_t seed, const struct sim_image *image, bool verbose);
int run_exhaustive(bool verbose, const char *only); /* only: part of the name of what to run; NULL: all */
int run_upgrade(bool verbose, const char *only);
int run_lost(bool verbose, const char *only); /* lost_files.c: files beside a database go */
struct sim_image *prepared_image(void);

#endif
