/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   torture.c         what to try, in a place of its own
 *   torture_child.c   one process: runs or resumes the graph, and kills itself where it should
 *   torture_trial.c   one session: killed, resumed until it ends, answered where it asks
 *   torture_ledger.c  what really happened: read from a file outside the store, and judged
 *
 * The ledger is a file of JSON lines that the process writes when a node's work begins ("begin") and ends ("end"), and when
 * an append is on disk ("append"); the torturing process adds what it decided in a person's place ("retry", "happened").
 */
#ifndef TORTURE_TORTURE_INTERNAL_H
#define TORTURE_TORTURE_INTERNAL_H

#include <sys/types.h>

#include "base/map.h"
#include "graph/spec.h"
#include "torture/torture.h"

/* ---- where it is killed ---- */

enum point_kind { POINT_NONE, POINT_BEFORE, POINT_AFTER, POINT_INSIDE };

struct point {
    enum point_kind kind;
    int64_t append;    /* before or after this one of the session, from 1 */
    const char *node;  /* inside this one … */
    int64_t visit;     /* … in this visit, … */
    int64_t attempt;   /* … this attempt; node NULL: in the n-th that this process begins, from 1 */
    int64_t after_us;  /* so long after its work began */
    const char *about; /* what the append holds; NULL: not known */
    int64_t nth;       /* of node NULL */
};

const char *point_text(struct arena *a, const struct point *p);

/* ---- what really happened ---- */

enum record_kind { RECORD_APPEND, RECORD_BEGIN, RECORD_END, RECORD_RETRY, RECORD_HAPPENED };

struct effect_seen {
    enum record_kind kind;
    const char *node;
    int64_t visit, attempt, us;
    int64_t seq;       /* of an append: the last one on disk */
    const char *about; /* of an append: the kinds of its events */
    bool once, ok;
    struct str output; /* of an end: JSON object */
};

struct effects_seen {
    struct effect_seen *at;
    size_t n, cap;
    int64_t appends;
};

/* Reads the whole ledger; a last line that was cut is left out. Texts are in the arena. */
enum tide_code effects_read(struct arena *a, const char *path, struct effects_seen *ret, struct tide_err *err)
    MUST_CHECK;
void effects_done(struct effects_seen *f);
enum tide_code ledger_add(int fd, const struct buf *line, struct tide_err *err) MUST_CHECK; /* with one write */

/* The latest that is known of a node. NULL: it never began. */
const struct effect_seen *effects_last(const struct effects_seen *f, const char *node);

/* ---- one process ---- */

struct torture;

struct order {
    const char *session_id;
    bool resume;                                /* continues, else a new session */
    bool recover;                               /* the last one was killed */
    const char *input;                          /* JSON: the answer to what it waits for; NULL: none */
    const char *const *retry, *const *happened; /* nodes; end with NULL; NULL: none */
    const char *memory;                         /* JSON object; NULL: none */
    struct point kill;
    int64_t appends; /* of the session so far */
};

/* What it says at its end. Texts are in the arena. */
struct outcome {
    bool killed;         /* as it should be */
    enum tide_code code; /* TIDE_OK: the graph is complete */
    const char *message, *wait_name;
    const struct json *unsettled;    /* nodes that must happen once and were cut */
    struct json *memory, *completed; /* completed: [[node, visit, seq], …], of one that is complete */
    size_t left;                     /* processes that a killed one left, and that this one did not end */
};

/* In the process that was forked for it; does not return. The outcome goes to `fd`. */
_Noreturn void torture_child(struct torture *t, const struct order *o, int fd);

/* Starts it and waits for its end. TIDE_CANCELLED: a person stopped it. */
enum tide_code torture_process(struct torture *t, struct arena *a, const struct order *o, struct outcome *ret,
                               struct tide_err *err) MUST_CHECK;

/* ---- one session ---- */

struct trial {
    char session_id[TIDE_ID_SIZE];
    struct point point;
    int kills, resumes;
    int64_t ran_again;     /* nodes that were cut and begun again */
    int happened, retried; /* answers in a person's place about a node that was cut */
    bool reached;
    const char *told; /* a node that a person declared complete: its output may be lost; NULL: none */
    struct json *memory, *completed;
    int64_t us; /* how long it took */
};

/* Runs a session to its end. Why it did not come to one is among the faults. What `ret` points to is in the arena. */
enum tide_code trial_run(struct torture *t, struct arena *a, const struct point *point, struct trial *ret,
                         struct tide_err *err) MUST_CHECK;

/* ---- all of it ---- */

struct torture {
    const struct torture_want *want;
    tide_graph *graph;
    const struct spec_graph *spec;
    const char *memory;  /* JSON object; NULL: none */
    const char *secrets; /* the part of it that is stored nowhere: given again with every resume; NULL: none */
    const char *dir, *store, *ledger; /* dir NULL: none yet */
    struct arena arena;               /* of all that is kept to the end */

    const char **answers; /* JSON; the last one counts for all further questions */
    size_t n_answers;
    struct map asked; /* name of a wait -> which answer, from 1 */

    struct trial base;                /* that nobody killed */
    struct effects_seen effects_seen; /* of it */
    struct map unsteady;              /* what differs by itself, as in a fault -> why */

    pid_t orphans[64]; /* what the process that was killed last left running */
    size_t n_orphans;

    struct point *points;
    size_t n_points, wanted; /* wanted: how many of them, from the front, are tried */
    uint64_t random;
    struct torture_report report;
};

/* `what`: a node, a key of the memory, or why it did not end; want and got: of a key, JSON, or how often it was complete. */
void torture_fault(struct torture *t, const struct trial *trial, enum torture_fault_kind kind, const char *what,
                   const char *want, const char *got);
uint64_t torture_random(struct torture *t);

/* Nodes that ran though they were complete, effects that happened twice: from the ledger and the log. */
void torture_judge(struct torture *t, struct trial *trial, const struct effects_seen *effects_seen);
/* What it came to, against the uninterrupted run; `unsteady`: only notes what differs. */
void torture_compare(struct torture *t, const struct trial *trial, bool unsteady);

#endif
