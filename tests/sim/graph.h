/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated graph: a machine whose processes die in the middle of it, the world outside that keeps its own books of what
 * was done and acknowledged, and an oracle that runs the same graph in memory, knowing nothing of logs.
 *
 *   graph_make.c       random graphs and fixed ones, as JSON    graph_oracle.c    the oracle: what may begin, and the end
 *   graph_behaviour.c  what nodes do, for both                  graph_values.c    its memory, its branches, its ways
 *   graph_world.c      the machine, its lives, the callbacks    graph_log_fold.c  what the log tells
 *   graph_nodes.c      what the oracle's nodes do               graph_check.c     what came of it against what should have
 *   graph_main.c       one seed, many seeds, a cut everywhere
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "base/json.h"
#include "base/map.h"
#include "env/sim.h"
#include "graph/spec.h"
#include "sim_store.h"

enum { NODES = 160, LEASE_MS = 30000 };
#define SESSION "s1"

/*
 * What the order in which nodes run may change. ORDERED: branches, loops and conflicts, but no retries, so that one worker
 * always takes the same order. ALONE: one branch only, with loops and retries. FREE: branches and retries, no loops, and
 * nobody reads what another branch writes, so that the order does not count.
 */
enum order { ORDERED, ALONE, FREE, ORDERS };

/* How one node of the graph behaves, by the number in its id. */
struct behaviour {
    const struct spec_node *node; /* that does something: of a map the one inside */
    int fails;                    /* the first so many attempts fail */
    int item;                     /* of a map: only this one; -1: all */
    bool hard;                    /* more than are tried: it fails until somebody mends it */
};

struct plan {
    enum order order;
    struct behaviour behaviours[NODES];
    int n; /* ids that are used */
    bool verbose;
    struct buf json;
};

/* What came of it: "node#visit" -> 'c' complete, 'h' failed and taken care of, 'd' dropped, 'f' failed; "from>to" -> how often. */
struct record {
    struct map at; /* -> int64_t * */
};

struct end {
    bool failed;
    struct map memory; /* -> char * JSON */
    struct record record;
    int64_t steps, failures;
};

/* graph_make.c */
struct rnd {
    uint64_t s;
};
uint64_t rnd_below(struct rnd *r, uint64_t n);
bool rnd_chance(struct rnd *r, unsigned percent);
void plan_random(struct plan *p, struct rnd *r);  /* as JSON; it may still be refused */
const char *plan_fixed(struct plan *p, size_t i); /* its name; NULL: there is none */
void plan_done(struct plan *p);

/* graph_behaviour.c */
void behaviours_bind(struct plan *p, const struct spec_graph *g); /* finds the nodes of the behaviours */
int behaviour_number(struct str name);                            /* of "n2#1/n7": 7 */
int64_t behaviour_item(struct str name);                          /* of "n2#1[3]": 3; -1: none */
bool behaviour_fails(const struct plan *p, const bool *mended, struct str name, int64_t attempt);
void behaviour_output(const struct spec_node *n, struct str name, int64_t visit, struct str inputs, struct buf *out);
void behaviour_answer(const struct spec_node *n, struct str wait, struct buf *out);

void record_add(struct record *r, struct str what, int64_t by);
void record_set(struct record *r, struct str what, int64_t value);
int64_t record_get(const struct record *r, struct str what);
void record_done(struct record *r);
bool is_inside(struct str name, struct str frame);

/* graph_oracle.c */
void oracle_run(const struct plan *p, const struct spec_graph *g, struct end *ret);
void end_done(struct end *e);

/* ---- graph_log_fold.c: what the log tells */

struct log_fold {
    struct arena arena;
    struct end end;
    struct map told;      /* "node#visit" -> how often it was completed, whatever was dropped */
    struct map effects;   /* node -> visit as text: begun, must happen once, neither complete nor given up */
    struct map withdrawn; /* visit -> the same: begun, and then said never to have */
    bool started, over, completed, waiting, failed;
    struct str wait_name;
    int64_t events;
    char wrong[300];
};
enum tide_code log_fold_read(tide_session *s, struct log_fold *ret, struct tide_err *err) MUST_CHECK;
void log_fold_done(struct log_fold *t);

/* ---- graph_world.c */

/* What was done outside: one node and visit. */
struct effect {
    int calls, done, life;
    int64_t attempt;
    bool acked;
    char *gave; /* JSON */
};

struct world {
    struct plan *plan;
    const struct spec *spec;
    const struct end *want;
    struct sim *sim;
    struct sim_proc *proc;
    struct rnd rnd;
    tide_graph *graph;
    struct map effects; /* "node#visit" -> struct effect * */
    struct map acks;    /* "node#visit" -> int64_t * */
    bool mended[NODES], broke[NODES];
    int life, crashes; /* crashes: how many more there are */
    int given_up; /* the life that was stopped while the store could not be written: what it had not stored is lost */
    bool verbose, failed, stopping, done, calm;
    bool final_failure;
    bool died;      /* the one before did */
    bool disturbed; /* one of them was killed, stopped, or met a fault */
    struct end end; /* what came of it */
};

enum { CRASH_NONE, CRASH_RANDOM, CRASH_AT };
struct crash {
    int how;
    enum sim_fault fault;
    uint64_t at; /* CRASH_AT: the operation */
};

void world_wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* graph_check.c */
void judge_acks(struct world *w, const struct log_fold *t);    /* what was told is there */
void judge_effects(struct world *w, const struct log_fold *t); /* what must happen once, against the books */
void judge_result(struct world *w, const struct tide_graph_result *r);
void judge_end(struct world *w, const struct end *want);

/* Runs the graph to its end, whatever happens on the way; false: something is wrong. *ret_ops: operations of all of it. */
bool world_run(struct plan *p, const struct spec *spec, uint64_t seed, const struct sim_image *image,
               const struct crash *crash, bool verbose, const struct end *want, uint64_t *ret_ops);
struct sim_image *world_image(void);

#endif
