/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a session: the fold of its log. Two parts: the ledger folds every event (what happened in the world stays
 * happened); the content folds a list of spans (what the agent knows: a rollback cuts it, a fork inherits it). State holds
 * where the conversation is, not the messages, so that it stays small. Pure: no clock, no I/O, no randomness.
 */
#ifndef SESSION_STATE_H
#define SESSION_STATE_H

#include "base/map.h"
#include "session/kinds.h"

/* The session's own description: the fields of session.created and session.updated, name -> JSON text (malloc). */
struct info {
    struct map fields;
};

struct span {
    char session[TIDE_ID_SIZE];
    int64_t from, to;
};

/* Where the messages of one node are (of the latest visit); a plain chat has the node "". */
struct message_range {
    int64_t visit, messages, first_seq, last_seq;
};

/* A node that a graph is to run, or runs. */
enum task_state {
    TASK_READY,
    TASK_RUNNING,
    TASK_RETRY,
    TASK_FAILED,
    TASK_DECIDING, /* complete; a model is asked where to continue */
    TASK_WITHDRAWN /* its start was recorded, and it never began */
};
struct task {
    enum task_state state;
    int64_t visit;       /* 0 while it is ready */
    int64_t attempt;     /* the one under way, or that failed last; from 0 */
    int64_t seq;         /* of the event that made it ready: who is older */
    int64_t retry_at_ms; /* TASK_RETRY */
    bool happened;       /* TASK_FAILED: its effect is done and what it gave is in the log; it could not be taken */
    bool unbegun;        /* TASK_FAILED: before its work began, so nothing happened */
    char *branch;        /* "12:0": which way after the fan-out at event 12; NULL: not in one */
    char *inputs;        /* JSON object: what the edges to it gave; NULL: nothing */
};

/*
 * Where a graph is. Nodes are named by where they stand: "write" in the graph itself, "review#2/ask" in the graph that node
 * review runs in its second visit, "pages#1[3]" for the fourth item of a map. What stands before '/' or '[' is a frame.
 */
#define ITEMS_FRAME "[*]" /* behind the frame of a map: the memory that graphs of its items have below their own */

struct position {
    struct map ready, active;         /* node -> struct task * */
    struct map scopes;                /* frame -> struct map * of key -> JSON text: what a graph inside remembers */
    struct map beneath;               /* frame -> the frame in which it reads what it has not itself */
    struct map writers;               /* frame, U+001F, key -> branch that set it while others ran beside it */
    struct map troubles;              /* node -> int64_t * failed attempts */
    struct map dropped;               /* node -> int64_t * visit in which it failed finally, and the others continued */
    int64_t steps, retries;           /* nodes begun; attempts that failed and were to be made again */
    char *checkpoints;                /* what the run says of them over the graph's; JSON; NULL: nothing */
    char *graph_digest;               /* of the graph that runs; NULL: none */
    char *graph_dir;                  /* where its programs are looked for; NULL: where the session works */
    char *goal;                       /* that the run was given; NULL: the graph's */
    char graph_session[TIDE_ID_SIZE]; /* whose event holds it … */
    int64_t graph_seq;                /* … at this seq */
};

struct content {
    char session[TIDE_ID_SIZE]; /* whose events are being folded */
    int64_t turn;
    int64_t messages;
    int64_t failures;         /* failures and retries so far: a checkpoint is clean while this is 0 */
    char *node, *next_node;   /* position; NULL: none */
    struct map memory;        /* key -> JSON text */
    struct map outputs;       /* node -> struct map * of key -> JSON text */
    struct map visits;        /* node -> int64_t * */
    struct map conversations; /* node -> struct message_range * */
    struct position position;
    struct map places; /* of values in memory and in scopes: see value_places.h */
    char checkpoint[TIDE_ID_SIZE], resume_checkpoint[TIDE_ID_SIZE]; /* latest; latest that can be resumed from */
    int64_t checkpoint_seq, resume_checkpoint_seq;
    struct span *spans;
    size_t span_count;
};

enum run_end { RUN_NONE, RUN_OPEN, RUN_COMPLETED, RUN_FAILED, RUN_CANCELLED, RUN_INTERRUPTED };
enum token_state { TOKEN_NONE, TOKEN_ACTIVE, TOKEN_CONSUMED, TOKEN_REVOKED, TOKEN_EXPIRED };

/* The latest run. Texts are malloc or NULL. */
struct run {
    enum run_end end;
    int64_t started_seq, started_ms, ended_seq, ended_ms;
    char *run_id, *boot_id, *kernel_boot, *reason, *error_code, *error_message, *failed_at_node,
        *resume_from_checkpoint_id,
        *changed_step; /* the last: a step that asked for something else than was recorded */
    int resumable;     /* -1: not said */
    bool waiting;      /* parked now, or when it ended */
    bool by_person;    /* somebody stopped it: it is not resumed by itself */
    char *wait_name, *wait_kind, *wait_key, *question, *token_id;
    int64_t since_seq, since_ms, deadline_ms, due_ms; /* 0: none */
    enum tide_on_deadline on_deadline;                /* UNSET is INTERRUPT */
    char *default_answer;                             /* at the deadline; JSON */
    enum token_state token;
    int64_t token_expires_ms;
    char *token_hash;
    char *retry_error;              /* of the latest failed model call that is tried again, at */
    int64_t retry_ms;               /* this time; 0: none */
    int64_t pid_ns, pid, pid_start; /* of its program, where kernel_boot and pid_ns are the same; 0: none */
    int64_t active_seq;             /* of run.started or the latest run.resumed */
    int64_t degraded;               /* events of it that waited in memory before they were stored */
};

struct effect {
    char *tool, *effect; /* effect: pure, idempotent, once */
    int64_t seq, turn;
    int64_t pid, pid_start; /* of the process that does it; 0: none of its own */
    bool unknown;           /* begun in a parent before the fork */
    bool past;              /* of a chain that another one has followed: nobody continues with it */
};

/* What became of a token. */
struct token_past {
    char *run_id, *wait_kind, *hash; /* malloc or NULL */
    enum token_state state;
    int64_t expires_ms; /* 0: never */
};

/*
 * The latest answer of the chain that was a no, and what came after it that may depend on it. Texts are malloc or NULL.
 * A question can be asked again while nothing did.
 */
struct denied {
    char *name, *key, *question; /* of the wait; name NULL: there is none */
    int64_t seq;                 /* of its answer */
    char *then;                  /* what came first, in words: "step 'x' has begun"; NULL: nothing */
};

struct ledger {
    int64_t events, runs, max_turn;
    struct run run;
    struct denied denied;
    char *chain_id;      /* first run of the chain that the latest one belongs to; malloc or NULL */
    int64_t chain_seq;   /* of its run.started */
    char *stuck;         /* a step that must happen once, failed or unknown: only a person lets it run again; or NULL */
    int64_t program_seq; /* of the latest run.started that says what runs, a program, an agent or a graph; 0: none */
    int64_t program_kind;  /* enum tide_session_kind: which of them */
    int64_t hidden_seq;    /* of the latest whose command line held a secret: it is not run from the log; 0: none */
    int64_t chain_resumes; /* runs of the chain since one of its steps was last completed */
    int64_t chain_before;  /* effects_completed when the chain began */
    int64_t chain_first;   /* number of its first run in the session, from 1; 0: not known */
    struct map effects;    /* call_id -> struct effect *: begun and not settled */
    int64_t effects_completed, effects_failed, effects_unknown;
    int64_t input_tokens, output_tokens, cached_tokens, calls, cost_nano;
    int64_t errors, rollbacks, checkpoints, checkpoint_events; /* checkpoints: not deleted; events: made or deleted */
    struct map queue; /* queue_id -> int64_t * seq: added and not taken; not in a summary, which has its number */
    int64_t queued;
    struct map approvals;    /* approval_id -> int64_t * seq: asked and not given */
    struct map tokens;       /* token_id -> struct token_past *, every one */
    int64_t trusted_seq;     /* of the latest session.trusted; 0: none */
    int64_t cancel_seq;      /* of the latest cancel request; 0: none */
    int64_t notify_from;     /* seq at or behind which the next notification to send is; 0: none is to be sent */
    int64_t notify_last;     /* seq of the latest event that asks for one */
    int64_t notify_tries;    /* how often the next one has failed, … */
    int64_t notify_retry_ms; /* … and when it may be tried again; 0: now */
};

/* The latest run says what runs, and it is stored as it was. */
static inline bool ledger_has_program(const struct ledger *l)
{
    return l->program_seq > 0 && l->program_seq != l->hidden_seq;
}

struct state {
    char session[TIDE_ID_SIZE];
    int64_t seq; /* as of this event */
    int64_t ts_ms;
    struct info info;
    struct content content;
    struct ledger ledger;
};

struct state *state_new(struct str session);
void state_free(struct state *s);
static inline void state_freep(struct state **s)
{
    state_free(*s);
}

/* Folds one event into both parts. A session.rolled_back changes the ledger only: the caller replaces the content. */
void state_apply(struct state *s, const struct event *ev, struct arena *scratch);

/* The same for one that was just checked: its kind (NULL: unknown) and parsed body are at hand. */
void state_apply_parsed(struct state *s, const struct event *ev, const struct kind *kind, const struct json *body,
                        struct arena *scratch);

/* One part alone, for the loader. */
void state_apply_ledger(struct state *s, const struct event *ev, struct arena *scratch);
void state_apply_content(struct state *s, const struct event *ev, struct arena *scratch);

/* Moves the content of `from` into `s`, replacing its own. */
void state_take_content(struct state *s, struct state *from);

/* Makes a parent's state at the fork point the beginning of a fork's: content stays, the ledger starts anew. */
void state_become_fork(struct state *s, struct str fork);

enum state_part {
    STATE_ALL,
    STATE_SNAPSHOT, /* the same without zeros; of values that stand in the log only where: value_places.h */
    STATE_SUMMARY,  /* what lists show: without memory, outputs, spans, effects and zeros */
};
void state_encode(struct buf *out, const struct state *s, enum state_part part);
/* Reads what state_encode wrote; missing members are empty. */
enum tide_code state_decode(struct str json, struct state **ret_state, struct tide_err *err) MUST_CHECK;

/* A field of the session's description as text, in the arena; empty when absent or not a string. */
struct str info_text(struct arena *a, const struct info *info, struct str key);

/* When a session was created, if its description has that (another program created it); else 0. */
int64_t info_created_ms(const struct info *info);

/* Whether an event is part of it: in one of its spans, of whichever session of the line that it is forked from. */
bool content_has(const struct content *c, int64_t seq);

/* state_util: small setters that own their memory. */
void text_set(char **slot, struct str s); /* an empty slice clears it */
void map_set_text(struct map *m, struct str key, struct str value);
void map_set_int(struct map *m, struct str key, int64_t value);
void map_drop(struct map *m, struct str key);

/* The node that a graph is at, innermost: the oldest that works, else one that is to be tried again, failed or ready. NULL: none. */
const char *position_under_way(const struct position *p);

bool ledger_has_open_effect(const struct ledger *l); /* of what continues now */
void ledger_done(struct ledger *l);
void content_done(struct content *c);

/* state_json.c: maps of name -> int64_t *. */
struct json_out;
void state_put_ints(struct json_out *o, const char *name, const struct map *m);
void state_get_ints(struct arena *a, struct map *m, const struct json *object);

bool branch_is_within(struct str branch, struct str outer);
struct map *position_scope(struct content *c, struct str frame, bool make); /* "" is the memory itself; NULL: none */
const char *position_value(const struct content *c, struct str frame, struct str key); /* JSON text; NULL: not set */
void position_done(struct position *p);
/* `weights`: of a snapshot that names events instead of values, see value_places.h; else NULL. */
void position_encode(struct json_out *o, const struct content *c, enum state_part part, const struct map *weights);
void position_decode(struct arena *a, struct position *p, const struct json *v);

#endif
