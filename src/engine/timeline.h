/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a session, gathered from its log: a lane per run with its steps, waits and sleeps, marks for
 * what has no length, and what each run kept of the runs before it. Its size has a bound, whatever the log's is: of many
 * runs, and of many steps of a run, the first and the last are kept and those between are counted.
 */
#ifndef ENGINE_TIMELINE_H
#define ENGINE_TIMELINE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "tidemark.h"

#define TL_RUNS 64
#define TL_RUNS_FIRST 8 /* of too many runs this many first ones stay, */
#define TL_ITEMS 48
#define TL_ITEMS_FIRST 32  /* and of too many steps */
#define TL_MARKS 64        /* of one kind in a run that are drawn */
#define TL_KEPT 64         /* whose places are drawn */
#define TL_STEPS (1 << 16) /* that are distinguished: a later one counts as new each time */
#define TL_AXIS 256        /* places of the axis whose seqs are known */
#define TL_WINDOW 20000    /* events that a part of a timeline reads */

enum tl_type { TL_STEP, TL_WAIT, TL_SLEEP, TL_NODE };

enum tl_outcome {
    TL_OPEN,    /* under way */
    TL_RAN,     /* a step or a node was done, a sleep is over, a wait was answered */
    TL_FAILED,  /* a step or a node failed */
    TL_UNKNOWN, /* nobody knows whether it happened */
    TL_CUT,     /* its run ended before it */
    TL_SETTLED, /* cut in an earlier run; found out here that it had happened */
    TL_OUTCOMES
};

struct tl_item {
    enum tl_type type;
    enum tl_outcome outcome;
    bool again;               /* a step that had begun before */
    int tries;                /* of a step or a node */
    int64_t kept;             /* of a wait or sleep: steps and nodes that were finished when it continued */
    int64_t seq, end_seq;     /* its events; end_seq 0: still open */
    uint64_t call;            /* hash of the call id, or of the node and its visit */
    int64_t start_ms, end_ms; /* as the log says; start 0: before a part, not known; end 0: still open */
    int64_t from, to;         /* the same on the axis, which never goes back */
    char name[64], word[16],
        note[160];  /* word: its effect, what is waited for, or "node"; note: a question, an error, an answer */
    char found[64]; /* of a step that was cut in an earlier run: how it was settled, "probe: it had not happened" */
};

enum tl_mark {
    TL_CHECKPOINT,
    TL_TOKEN,
    TL_RESUME,
    TL_MESSAGE,
    TL_MODEL,
    TL_ERROR,
    TL_INPUT,
    TL_ROLLBACK,
    TL_MARK_KINDS
};

struct tl_marks {
    int64_t n, stride; /* every stride-th is in `at` */
    int64_t at[TL_MARKS], seq[TL_MARKS];
    size_t n_at;
};

struct tl_kept {
    int64_t n;                          /* steps and nodes finished by earlier runs of the chain: not run again */
    int64_t from[TL_KEPT], to[TL_KEPT]; /* when they were */
    size_t n_places;
    char names[512]; /* as many as fit, each with its NUL */
    size_t n_names, names_len;
};

enum tl_end { TL_RUN_OPEN, TL_RUN_GONE, TL_RUN_WAITS, TL_COMPLETED, TL_RUN_FAILED, TL_CANCELLED, TL_INTERRUPTED };

struct tl_run {
    int64_t number; /* from 1; 0: what lies before the first run */
    char run_id[TIDE_ID_SIZE], from_id[TIDE_ID_SIZE];
    int64_t from_number; /* of the run it continues; 0: none */
    char program[96], reason[96], error[160];
    int64_t pid, started_ms, ended_ms, from, to;
    int64_t first_seq, last_seq; /* its events, of those that were read */
    enum tl_end end;
    bool late; /* nobody was there when it ended: it was noticed later */
    struct tl_item *items;
    size_t n_items;
    int64_t omitted[TL_OUTCOMES]; /* items that are only counted */
    struct tl_marks marks[TL_MARK_KINDS];
    struct tl_kept kept;
};

struct tl_summary {
    int64_t events, other; /* other: events of kinds that are not known */
    int64_t runs, steps, once, repeated, failed, unknown, cut, open;
    int64_t begun_again, settled; /* steps that were cut: run again later; not run, but found to have happened */
    int64_t not_compared;         /* steps beyond those that are distinguished: each counts as a new one */
    int64_t waits, sleeps, interruptions, checkpoints;
    int64_t nodes; /* of a graph, complete */
};

struct timeline {
    char id[TIDE_ID_SIZE], title[128], why[1024];
    char codes[80];    /* "idle, failed" */
    char standing[80]; /* "failed", for people */
    enum tide_status status;
    enum tide_outcome outcome;
    bool gone; /* its process is gone, and nobody has written that down yet */
    struct tl_run *runs;
    size_t n_runs;
    int64_t omitted_runs;
    struct map steps;    /* call id -> struct tl_step_count * */
    struct tl_kept done; /* what the chain has finished so far */
    struct tl_summary sum;
    int64_t wait_since;          /* seq by which the last wait is known */
    int64_t now;                 /* the axis: the latest time so far */
    int64_t at;                  /* seq of the event that is folded */
    int64_t first_seq, last_seq; /* the events that were read; 0: none */
    bool partial;                /* there are others before or behind them */
    struct {
        int64_t seq, ms;
    } axis[TL_AXIS]; /* every axis_stride-th event */
    size_t n_axis;
    int64_t axis_stride;
    struct arena scratch;
    const atomic_int *stop;
};

/* Reads the whole log. `stop` (may be NULL) ends it with TIDE_CANCELLED when it is set. timeline_done() it, whatever this
 * returns. */
enum tide_code timeline_read(tide_session *session, const atomic_int *stop, struct timeline *ret, struct tide_err *err)
    MUST_CHECK;

/*
 * A part: the events from `from` to `to`, at most TL_WINDOW of them; 0: where that begins or ends by itself, the newest ones of it. What was under
 * way before is there as well. Figures are of the part.
 */
enum tide_code timeline_read_part(tide_session *session, int64_t from, int64_t to, struct timeline *ret,
                                  struct tide_err *err) MUST_CHECK;

/* The same from what is known of the session, and events that `each` gives, from its first one on: of a session that is not here. */
typedef enum tide_code timeline_events_fn(void *from, tide_event_fn *fn, void *arg, struct tide_err *err);
enum tide_code timeline_fold(const struct tide_session_info *info, timeline_events_fn *each, void *from,
                             const atomic_int *stop, struct timeline *ret, struct tide_err *err) MUST_CHECK;
void timeline_done(struct timeline *t);

const char *tl_outcome_word(const struct tl_item *item);
const char *tl_end_word(enum tl_end end);
extern const char *const tl_mark_words[TL_MARK_KINDS];

#endif
