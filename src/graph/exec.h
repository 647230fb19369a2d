/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a graph. What is to be done next is the fold of what was recorded (session/position.c): an execution only looks
 * there, does what is open and records it. So a resume is the same as continuing, and nothing else is kept anywhere.
 *
 *   graph.c        the public calls: parse, callbacks, stop       resume.c      whether and from where it can continue
 *   exec.c         workers, batches, the end of the run           exec_plan.c   what may begin now
 *   exec_end.c     a node is over: complete or failed             exec_job.c    doing a node's work, without the lock
 *   exec_values.c  what it gave                                   exec_edges.c   where it continues
 *   exec_nested.c   maps and graphs inside nodes                   exec_checkpoint.c   when there is a checkpoint
 *   exec_names.c   names of nodes, what a node gets to see        exec_wait.c   people who are asked
 *
 * Every worker holds the lock but while it does a node's work. The worker that has it puts all that has ended into one draft, then
 * all that may begin, and appends that once: completed, edges, checkpoint and the next start are one batch.
 */
#ifndef GRAPH_EXEC_H
#define GRAPH_EXEC_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/nested.h"
#include "base/invariant.h"
#include "graph/node_work.h"
#include "graph/edge_choice.h"
#include "graph/probe.h"
#include "program/guard.h"
#include "session/run.h"

#define EXEC_MEMORY_MAX ((size_t)64 << 20) /* bytes of all keys and values of one graph's memory */
#define EXEC_DRAFT_MAX 512                 /* events of pure work that are gathered before they are appended */
#define EXEC_CHEAP_MS 5                    /* a pure node that took less is done again rather than waited for */
#define EXEC_GATHER_MS 50                  /* and how long */

enum { GRAPH_GO_ON, GRAPH_BY_PERSON, GRAPH_BY_SHUTDOWN };

struct callback {
    tide_node_fn *fn;
    void *arg;
};

struct tide_graph {
    struct spec *spec;
    char digest[2 * DIGEST_SIZE + 1];
    struct map callbacks; /* name -> struct callback * */
    atomic_int stop;      /* GRAPH_… */
    bool redacted;        /* read from a log that does not have it as it was: it is not run */
    const struct probe *probe;
};

/* Where a node stands. */
struct place {
    const struct spec_graph *graph; /* that its edges belong to */
    const struct spec_node *node;
    struct str frame;            /* of the name: "" in the graph itself */
    const struct spec_node *map; /* it runs for one item of this map; NULL: of none */
    int64_t item;
};

/* One node's work, done by one worker without the lock. */
struct job {
    struct job *next;
    struct exec *x;
    struct place place;
    char *name, *branch;
    int64_t visit, attempt, began_ns;
    char key[33];
    bool deciding;                /* its work is done: a model is asked where to continue */
    struct buf inputs, memory;    /* JSON objects */
    struct str output;            /* deciding: what it gave; in the arena */
    atomic_bool halt;             /* it is to end */
    char turn_mark[TIDE_ID_SIZE]; /* checkpoint of its last turn that was not reported yet; "": none */

    /* what came of it */
    enum tide_code
        code; /* TIDE_OK: it gave what it promised, or `result` says what is wrong; TIDE_WAITING: wait; others: err */
    bool ok;
    bool unbegun;   /* it was to end, or failed, before it could begin */
    bool timed_out; /* an agent: programs end by themselves */
    bool hopeless;  /* it failed, and trying it again cannot help */
    bool told;      /* of one that must happen once: that it happened is recorded, … */
    bool kept;      /* … with what it gave */
    struct node_work_result result;
    struct nested_wait wait;
    struct choice *ways;
    size_t n_ways;
    struct tide_err err;
    struct arena arena;
};

/* A wait for a person that is not parked yet: other branches continue first. */
struct blocked {
    struct blocked *next;
    char *name; /* of the node */
    struct nested_wait wait;
    char *question;       /* malloc; NULL: that of the wait */
    int64_t deadline_ms;  /* 0: none */
    char *default_answer; /* at the deadline: JSON, malloc; NULL: it is interrupted then */
    bool human;           /* the answer is its output; else an agent asks */
};

/* What is reported when it is on disk. */
struct note {
    struct tide_graph_event ev; /* texts are malloc */
    char *node, *to, *text;
};

/* Checkpoints that are there, oldest first. */
struct kept_checkpoints {
    struct {
        char id[TIDE_ID_SIZE];
        bool clean;
    } * at;
    size_t n, cap;
    bool found;          /* those of earlier runs are among them */
    int64_t nodes;       /* complete since they were last pruned */
    int64_t changed;     /* keys set since the last checkpoint */
    uint64_t made_steps; /* counts up with every checkpoint: was one made for this? */
};

struct exec {
    struct tide_graph *g;
    const struct spec_graph *graph;
    struct tide_session *s;
    struct tide_run *run;
    struct guard guard; /* of the programs of its nodes, and of its agents */
    struct kept
        *kept; /* effects that a rollback cut off and that are not to happen again; NULL: nothing was rolled back */
    const struct map *gave; /* node that somebody says happened -> JSON object of what it gave; NULL: of none */
    const struct tide_graph_options *opt;
    struct spec_checkpoints checkpoints; /* as they are for this run */
    const char *said;                    /* of them by the run, over the graph's; JSON; NULL: nothing */
    struct state *view;                  /* the state as it will be when the draft is appended */
    struct draft draft;
    int64_t draft_since_ns;
    bool must_put;      /* something in the draft would be a pity to lose */
    bool must_sync;     /* something in the draft is acted on */
    bool must_hold;     /* something in the draft touches the world: it never waits in memory (on_store_error) */
    struct map secrets; /* keys that are stored nowhere -> JSON text */
    struct kept_checkpoints checkpoints_kept;
    const char *dir;         /* where programs run */
    const char *program_dir; /* where those with a relative path are looked for; NULL: there */
    const char *goal;        /* that the run was given; NULL: each graph's own */
    int capacity;            /* nodes at once, … */
    int branches;            /* … and of those outside of maps */

    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_mutex_t done_lock;
    struct job *done;       /* finished and not looked at yet; under done_lock */
    struct job *todo;       /* begun, and nobody does them yet; oldest first */
    struct job *jobs[1024]; /* that are being done */
    int running, threads;
    pthread_t *workers;
    struct blocked *blocked;
    struct note *notes;
    size_t n_notes, cap_notes;
    struct map cursors; /* frame of a map -> struct cursor *: its list, and how far it is */
    struct map reasons; /* node that failed finally -> why; malloc */

    bool timed_out;  /* the node that is being ended was answered by its deadline */
    bool fresh;      /* what an earlier run left open has not been looked at */
    struct map open; /* of exec_tasks.c, and so is what it left */
    char **left;
    size_t n_left, cap_left, left_at;
    bool over;      /* workers go home */
    bool halting;   /* nothing begins any more: a node failed, or somebody stopped it */
    bool cancelled; /* somebody asked for it */
    int64_t looked_ns, ticked_ns, told_ns;
    enum tide_code code; /* what it comes to */
    struct tide_err err;
    char *failed_node;
    char failed_code[32];
    bool bytes_known;                /* the memories were counted … */
    size_t bytes_counted, bytes_set; /* … as so much, and so much was set since */
    struct arena scratch, fold;
    void *crowd; /* of exec_plan.c; malloc */
    bool broken; /* the store or the lease is lost: nothing more can be recorded */
    char token[TIDE_TOKEN_SIZE];
    atomic_bool in_trouble; /* the store cannot be written; said once */
};

/* Of functions alone: what an agent does is its tools' matter. */
static inline bool node_is_once(const struct spec_node *n)
{
    return n->effect == SPEC_ONCE && n->type == SPEC_FUNCTION;
}

/* ---- graph.c */
tide_graph *graph_of(struct spec *spec); /* takes it over */
const char *graph_effect(const struct spec_node *n);
/* The node at which a run begins; `name` of an entry point, NULL: its entry. */
enum tide_code graph_entry(const struct spec_graph *g, const char *name, struct str *ret, struct tide_err *err)
    MUST_CHECK;
/* Before there is a session, whose title may hold it: the store hides what options.memory gives and nothing may store. */
enum tide_code graph_hide_memory(tide_store *store, struct hidden_values *held, tide_graph *g,
                                 const struct tide_graph_options *opt, struct tide_err *err) MUST_CHECK;
bool exec_is_excluded(const struct exec *x, struct str key);
/* A value of such a key: only kept here, and hidden as long as the session's handle is open. */
enum tide_code exec_hide(struct exec *x, struct str key, struct str json, struct tide_err *err) MUST_CHECK;
/* Splits values (a JSON object) into what is stored and what is only kept here; *ret_stored is a JSON object. */
enum tide_code exec_take_values(struct exec *x, struct str json, struct buf *ret_stored, struct tide_err *err)
    MUST_CHECK;

/* ---- exec.c */

/* Runs until it ends, parks or fails; x->run is open on entry. */
enum tide_code exec_run(struct exec *x, struct tide_err *err) MUST_CHECK;
void exec_init(struct exec *x); /* the arenas and what workers share */
void exec_done(struct exec *x);

/* Begins an event in the draft; exec_close() ends it, and the view has it at once. */
void exec_commit(struct exec *x, bool now); /* what is gathered; `now`: all of it is on disk on return */
struct json_out *exec_open(struct exec *x, const char *kind);
void exec_close(struct exec *x);
void exec_close_mark(struct exec *x);
struct json_out *exec_open_node(struct exec *x, const char *kind, const char *name, int64_t visit);
void exec_note(struct exec *x, const struct tide_graph_event *ev);
/* The condition of an edge erred. */
void exec_notice_edge(struct exec *x, const char *from, const char *to, const char *what, const char *path);
void exec_notice(struct exec *x, const char *node, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* For struct tide_run_options: says when trouble of the store begins and is over; gives up when the graph is stopped. */
int exec_trouble(void *exec, const struct tide_err *why, int64_t waited_ms);
/* Of trouble with the store (NULL: it is over): it cannot wait until it is stored. */
void exec_tell_now(struct exec *x, const char *text, bool held, const struct tide_err *why);
void exec_keep(struct exec *x, const struct spec_node *n,
               int64_t ms);                                  /* it is complete: how soon that is to be on disk */
bool exec_touches(const struct spec_node *n);                /* the world outside, by itself */
void exec_break(struct exec *x, const struct tide_err *why); /* it cannot continue */
int64_t exec_now_ns(const struct exec *x);
bool exec_stopped(void *job);
void job_free(struct job *j);

/* ---- exec_wait.c: x->blocked, in the order in which they came to wait */
enum tide_code wait_ask(struct exec *x, struct tide_err *err) MUST_CHECK; /* the first: answered, or parked */
bool wait_drop_stale(struct exec *x);  /* one that waits for nobody any more; true: there was one */
bool wait_take_answer(struct exec *x); /* one that the log answers becomes the first */
void wait_drop(struct exec *x);        /* the first */

/* ---- exec_names.c */

/* Where a node of this name stands; false: the graph has none. */
bool place_find(const struct spec_graph *g, struct str name, struct place *ret);
struct str place_local(struct str name); /* "ask" of "review#1/ask" */
/* The name of a node beside another: in the same frame. */
const char *place_beside(struct arena *a, struct str frame, struct str id);
const char *place_frame(struct arena *a, const char *name, int64_t visit);
struct str place_owner(struct str frame); /* the node whose frame it is: "review" of "review#2" */

/* Who looks. */
struct sight {
    bool secrets;            /* gets them, too */
    const struct expr *code; /* sees only what it uses of the value `name`; NULL: everything */
    const char *name;
    const struct place *ways; /* sees only what the expressions at its ways use of the memory */
    struct str key;           /* sees only this one */
    bool own;                 /* sees nothing of the frames below */
};

/* The frame whose memory counts there: a map's items see what the map sees. *ret_map: of the outermost of these maps. */
struct str place_around(const struct exec *x, struct str frame, struct str *ret_map);
/* What edges gave, over the memory; of an item of a map, what they gave to the map, and the item itself over that. */
const struct json *place_given(struct exec *x, const struct place *p, const struct task *t);
const struct spec_texts *place_input_keys(const struct place *p); /* none: it gets all of the memory */

/* JSON object of all that a frame remembers; `more` (a JSON object or NULL) goes over it. */
void place_memory(struct exec *x, struct str frame, const struct json *more, struct sight sight, struct buf *out);
/* An object of what a node gets, for its texts: the goal stands behind what is called so in the memory. */
enum tide_code place_text_values(const struct exec *x, const struct place *p, struct arena *a, struct str inputs,
                                 struct json **ret, struct tide_err *err) MUST_CHECK;
/* What a node gets: its inputs, what edges gave, the item of a map. False: *ret_missing is an input that nobody has set. */
bool place_inputs(struct exec *x, const struct place *p, const struct task *t, struct sight sight, struct buf *out,
                  struct str *ret_missing);

/* ---- exec_plan.c */
void plan_all(struct exec *x); /* whatever may begin is begun, into the draft; jobs into x->todo */
void plan_begin(struct exec *x, const char *name);
bool plan_may_begin(struct exec *x, struct str name);     /* of one that is ready */
bool plan_is_held(const struct exec *x, struct str name); /* inside something that failed: it continues with that */
int plan_waiting(const struct exec *x);                   /* jobs that nobody does yet */
/* What one gave of which somebody says that it happened: as was said with it, else as the memory has it. */
struct str plan_known_output(struct exec *x, const struct place *p, const char *name);
int64_t plan_next_ms(struct exec *x); /* when the next attempt is due; INT64_MAX: none is */

/* ---- exec_values.c */
struct values {
    struct exec *x;
    const struct place *p;
    const struct task *task;
    struct buf json; /* what is stored */
    int64_t n;
    size_t bytes;
};
/* Into v->json; what is stored nowhere is only kept. TIDE_CONFLICT: a branch beside has set it, and the graph has no rule. */
enum tide_code values_take(struct values *v, const struct json *output, struct tide_err *err) MUST_CHECK;
enum tide_code end_check_size(struct exec *x, struct str frame, size_t more, struct tide_err *err) MUST_CHECK;
struct str end_without_secrets(struct exec *x, const struct json *output); /* as JSON */

/* ---- exec_edges.c */

/* Chooses the ways into j->ways; `ask`: a model may be asked, and then the lock is given back meanwhile. */
enum tide_code end_choose(struct job *j, struct str output, const struct json *values, struct str error, bool ask,
                          struct tide_err *err) MUST_CHECK;
bool ways_use(const struct place *p, struct str key); /* of the memory */
bool ways_have_expressions(const struct place *p);    /* else nothing that the node gave is looked at */
const char *ways_put(struct job *j);                  /* records them; the node that the first leads to */

/* ---- exec_end.c */
void end_job(struct exec *x, struct job *j);
void end_complete(struct exec *x, const struct place *p, const char *name, struct str output, int64_t ms);
void end_failed(struct exec *x, const struct place *p, const char *name, const char *code, const char *message,
                bool again);
void end_missing(struct exec *x, const struct place *p, const char *name, struct str key); /* an input */
void end_unbegun(struct exec *x, struct job *j);
void end_put_failed(struct job *j, struct str error, int64_t retry_at, const char *how); /* node.failed */
void end_unsettled(struct exec *x, const char *name, const char *message);
void end_effect_started(struct exec *x, const struct place *p, const char *name, int64_t visit);
void end_effect_over(struct exec *x, const struct place *p, const char *name, int64_t visit, struct str output);

/* ---- exec_tasks.c */
void tasks_index(struct exec *x); /* of the view, as an earlier run left it */
void tasks_begun(struct exec *x, const char *name);
/* Walks over what was begun and has not failed; NULL begins. Nothing may begin meanwhile. */
struct map_entry *tasks_next(struct exec *x, struct map_entry *after, const struct task **ret);
bool tasks_are_open(const struct exec *x);          /* none that runs is missing in x->open */
void tasks_leave(struct exec *x, const char *name); /* it is to be taken up again */
const char *tasks_left(struct exec *x);             /* the next that was left; NULL: none */
void tasks_done(struct exec *x);

/* ---- resume_reuse.c */

/* It must happen once, by the graph of now or of its start, and nobody has allowed it to happen again since. */
bool effect_is_once(const struct exec *x, const struct place *p, const char *name, int64_t visit);

/* ---- exec_nested.c */
bool inner_begin(struct exec *x, const struct place *p, const char *name, const struct task *t); /* false: it failed */
int64_t inner_count(const struct exec *x, struct str frame);            /* items of the map whose frame this is */
struct str inner_item(struct exec *x, struct str frame, int64_t index); /* of a map's list; JSON */
void inner_items(struct exec *x); /* begins items of maps as far as there is room */
void inner_item_over(struct exec *x, const struct place *p, const char *name, struct str output, int64_t ms);
void inner_item_failed(struct job *j, struct str error, const char *message);
bool inner_look(struct exec *x); /* completes what is complete inside; true: something was */
void inner_failed(struct exec *x, struct str frame, const char *node, const char *code, const char *message);

/* ---- exec_job.c */
void job_run(struct job *j); /* without the lock */
enum tide_code job_decide(void *job, const struct spec_edge *edge, int *ret_yes, struct tide_err *err) MUST_CHECK;
struct job *job_new(struct exec *x, const struct place *p, const char *name,
                    const struct task *t); /* NULL: it failed */
struct job *job_new_decision(struct exec *x, const struct place *p, const char *name, const struct task *t);

/* ---- probe.c: around a node's work */
void probe_begin(const struct job *j);
void probe_end(const struct job *j);

/* ---- exec_checkpoint.c */
void checkpoint_before(struct exec *x, const struct place *p, const char *name); /* node_start, risky */
void checkpoint_after(struct exec *x, const struct place *p, const char *name, int64_t ms, const char *next);
void checkpoint_edge(struct exec *x, const char *from, const char *to);
void checkpoint_wait(struct exec *x, const char *name, const char *question);
void checkpoint_turn(void *job, struct draft *d, int64_t turn);
void checkpoint_tell_turn(struct job *j); /* that of its last turn: when the agent has appended it */

#endif
