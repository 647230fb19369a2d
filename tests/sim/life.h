/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated life: a machine, processes that come and go, sessions whose programs are executed again on every resume, and
 * beside them the world outside: what was really done, which tokens were handed out, what was acknowledged. The world never
 * asks the store what is right; the log is read by a fold of its own.
 *
 *   life_world.c     machine, processes, faults, clock         life_effects.c   what was done and acknowledged outside
 *   life_program.c   programs and the interpreter              life_steps.c     its steps, alone and two in parallel
 *   life_waits.c     its waits, sleeps, memory, marks          life_runs.c      starting, resuming, messages, tokens
 *   life_recovery.c  recovery, cancelling, looking             life_log_fold.c  what the log tells, and what it may not tell
 *   life_check.c     the log and the status against the world  life_main.c      one seed, many seeds
 */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include "base/json.h"
#include "env/sim.h"
#include "sim_store.h"

enum {
    PROCS = 3,
    SESSIONS = 3,
    OPS = 12,
    NAMES = 3,
    SLOTS = 2,
    SOFT = 16,
    LEASE_MS = 30000,
    SURE_MS = 19000, /* a lease is good this long after a commit, whatever the heartbeat did */
    TEXT = 64,
    KEY = 160,
};

#define LIFE_DEFAULT "{\"decision\":false,\"reason\":\"nobody\"}" /* of waits that have one */

/* ---- programs */

enum op_kind { OP_STEP, OP_WAIT, OP_SLEEP, OP_SET, OP_GET, OP_MARK };

struct op {
    enum op_kind kind;
    char name[8];
    const char *effect;                /* STEP */
    int retries, fails;                /* STEP: the first so many attempts of each use fail */
    bool probe;                        /* STEP: can be settled */
    bool whole;                        /* STEP: by tide_run_step() in one call */
    bool pair;                         /* STEP: in parallel with the next one */
    const char *wait_kind;             /* WAIT */
    int64_t span_ms;                   /* WAIT: to the deadline (0: none); SLEEP */
    int64_t good_ms;                   /* WAIT: the token is good so long; 0: as long as the wait */
    enum tide_on_deadline on_deadline; /* WAIT: with a deadline */
    bool fixed; /* WAIT: executed again it asks for the deadline it asked for first, past or not */
};

/* ---- the world outside */

/* One use of a step's name in one chain. */
struct effect {
    char key[33], chain[TIDE_ID_SIZE];
    int session, op;
    const char *effect;
    int done, tries;     /* really done; attempts that failed */
    int begins, ends;    /* calls made, whatever came of them */
    bool begun;          /* its start was acknowledged */
    bool completed;      /* its end was acknowledged */
    bool failed;         /* acknowledged as failed, for good */
    bool soft;           /* acknowledged, and in memory only: of a degraded run, or one that may be done again */
    char result[TEXT];   /* of the latest attempt */
    int64_t retry_at_ms; /* acknowledged; 0: none */
    bool retry_left;     /* retry_at_ms is on disk and nothing came after it */
    bool retry_soft;     /* it will be, with what comes next */
};

struct token_out {
    int session;
    char id[TIDE_ID_SIZE], text[TIDE_TOKEN_SIZE];
};

struct passed { /* a wait that a program passed */
    int session;
    char key[KEY], answer[TEXT], run_id[TIDE_ID_SIZE];
};

struct asked { /* the deadline a wait asked for first */
    int session;
    char key[KEY];
    int64_t deadline_ms;
};

struct message {
    int session;
    char text[TEXT]; /* JSON, different for each */
    bool acked;
};

struct request { /* a resume */
    int session;
    char id[TEXT]; /* "": none */
    char token[TIDE_TOKEN_SIZE];
    char input[TEXT]; /* "": none */
    bool acked;
    int64_t seq;
    char run_id[TIDE_ID_SIZE];
};

struct ended { /* a run whose end was acknowledged */
    int session;
    char run_id[TIDE_ID_SIZE];
    const char *kind;
};

struct marked { /* a checkpoint */
    int session, op;
    char chain[TIDE_ID_SIZE], id[TIDE_ID_SIZE];
};

struct ack { /* an append of a run that was acknowledged */
    int session, proc;
    int64_t seq;
};

#define LIST(type)                                                                                                     \
    struct {                                                                                                           \
        struct type **all;                                                                                             \
        size_t n, cap;                                                                                                 \
    }

/* ---- processes */

enum slot_state { SLOT_FREE, SLOT_WANT, SLOT_PROBE, SLOT_ASKED, SLOT_BEGUN, SLOT_DID, SLOT_OVER };

struct slot { /* a step under way */
    enum slot_state state;
    int op;
    struct effect *effect;
    bool worked;
    int64_t later_ms;
};

struct doing { /* a run that a process executes */
    tide_session *h;
    tide_run *r; /* NULL: none */
    int pc;
    char chain[TIDE_ID_SIZE], run_id[TIDE_ID_SIZE];
    uint64_t generation;
    bool may_lose;               /* its lease may have lapsed, or been taken by force: being fenced is right */
    bool retry;                  /* steps that must happen once may be done again */
    const char *ending, *reason; /* it is to end so; NULL: not yet */
    int uses[NAMES];
    struct slot slots[SLOTS];
    struct effect *soft[SOFT];
    int soft_n;
};

struct call { /* what had happened when a call into the library began */
    uint64_t fired, nested;
};

struct proc {
    struct sim_proc *sim;
    tide_store *store;
    int number;
    int64_t beat_ms;   /* its last commit */
    int64_t called_ms; /* when its last call began */
    struct call call;
    bool paused, busy;
    bool releasing; /* its call may give the lease back before it returns */
    int tries;      /* of the call under way, while the store is in trouble */
    void *self[2];  /* for life_trouble: the process, the world */
    struct doing doing[SESSIONS];
};

struct life_session {
    char id[TIDE_ID_SIZE];
    struct op ops[OPS];
    int n;
    uint64_t generation; /* counts acknowledged changes of who may append */
    bool cancelling;     /* somebody is about to take it by force, or just has */
    bool asked_again;    /* somebody has tried to: an answer may change */
};

struct world {
    uint64_t seed, rng;
    struct sim *sim;
    struct env *clock;
    bool verbose, failed, quiet, calm; /* calm: no faults, nobody else */
    struct arena arena;
    struct proc procs[PROCS];
    int next_number;
    struct life_session sessions[SESSIONS];
    int session_count;
    LIST(effect) effects;
    LIST(token_out) tokens;
    LIST(passed) passed;
    LIST(asked) asked;
    LIST(message) messages;
    LIST(request) requests;
    LIST(ended) ended;
    LIST(marked) marked;
    LIST(ack) acks;
    uint64_t unique;
    int64_t max_wall_ms;
    bool armed, sticky;
    uint64_t fired_past, nested;
    int depth;
    size_t act_now; /* what is being done at the top, and with which session: others do the same now and then */
    int act_session;
};

/* life_world.c */
void world_init(struct world *w, uint64_t seed, const struct sim_image *image);
void world_done(struct world *w);
uint64_t rnd(struct world *w, uint64_t n);
bool chance(struct world *w, unsigned percent);
void say(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int64_t now(struct world *w);
void clock_move(struct world *w, int64_t ms);
void note_clock(struct world *w); /* runs whose process was silent too long may lose their lease from here on */
struct proc *proc_start(struct world *w, int slot);
bool proc_alive(const struct proc *p);
void proc_exit(struct world *w, struct proc *p);
void proc_kill(struct world *w, struct proc *p);
void bury_the_dead(struct world *w);
struct proc *any_proc(struct world *w); /* living, not paused, not in a call; NULL: none */
void arm(struct world *w);
void disarm(struct world *w);
struct sim_image *prepared_image(void);

enum verdict { V_OK, V_DEAD, V_TROUBLE, V_OTHER };
struct call call_begin(struct world *w, struct proc *p);
struct call call_release(struct world *w, struct proc *p); /* of one that may give the lease back */
enum verdict call_end(struct world *w, struct proc *p, const struct call *c, const char *what, enum tide_code code,
                      const struct tide_err *err);
bool call_faulty(struct world *w, const struct call *c);    /* a fault fired meanwhile */
bool call_disturbed(struct world *w, const struct call *c); /* a fault fired or others acted meanwhile */
int life_trouble(void *arg, const struct tide_err *why, int64_t waited_ms);

/* life_effects.c */
void *life_add(struct world *w, void *list, size_t size);
#define ADD(w, list) life_add(w, &(w)->list, sizeof **(w)->list.all)
struct effect *effect_find(struct world *w, const char *key);
struct effect *effect_of(struct world *w, struct doing *d, int session, int op, const char *key);
void effect_begins(struct world *w, struct doing *d, struct effect *e);
bool effect_do(struct world *w, struct proc *p, struct doing *d, struct effect *e); /* whether it worked */
void effect_stored(struct world *w, struct effect *e, const char *result, bool failed);
void took_over(struct world *w, struct proc *p, int s, bool by_force);
void acked(struct world *w, struct proc *p, int s); /* an append of the process's run went through */
void beat(struct world *w, struct proc *p);         /* its last call has committed */
bool is_soft(struct world *w, struct proc *p, int s, struct effect *e);
void lost_lease(struct world *w, struct proc *p, int s);
void run_drop(struct world *w, struct proc *p, int s); /* closes it, whatever it did */

/* life_program.c */
void program_make(struct world *w, struct life_session *s);
void program_step(struct world *w, struct proc *p, int s); /* the next call of a run that is executed here */
void run_finish(struct world *w, struct proc *p, int s, const char *outcome, const char *reason);
bool run_look(struct world *w, struct proc *p, int s); /* true when the run is to go on */
/* After a call of a run: true when it is to go on. Trouble, death and a lost lease are dealt with. */
bool run_goes_on(struct world *w, struct proc *p, int s, enum verdict v, enum tide_code code);

/* life_steps.c, life_waits.c */
void op_step(struct world *w, struct proc *p, int s);
void op_wait(struct world *w, struct proc *p, int s);
void op_sleep(struct world *w, struct proc *p, int s);
void op_set(struct world *w, struct proc *p, int s);
void op_get(struct world *w, struct proc *p, int s);
void op_mark(struct world *w, struct proc *p, int s);
void keep_token(struct world *w, int s, const char *text);

/* life_runs.c */
void act_begin(struct world *w, struct proc *p, int s); /* whatever its status calls for, now and then something else */
void act_start(struct world *w, struct proc *p, int s);
void act_message(struct world *w, struct proc *p, int s);
void act_rotate(struct world *w, struct proc *p, int s);
void act_ask_again(struct world *w, struct proc *p, int s);
struct resume_plan {
    enum { BY_OWNER, BY_TOKEN, BY_OLD, BY_FOREIGN, BY_GARBAGE } right;
    bool answer, now, retry, repeat;
};
void act_resume(struct world *w, struct proc *p, int s, const struct resume_plan *plan);

/* life_recovery.c */
void act_recover(struct world *w, struct proc *p, unsigned flags);
void act_cancel(struct world *w, struct proc *p, int s);
void act_any(struct world *w, struct proc *p); /* one of all */

/* What session_shown() says, copied. */
struct view {
    enum tide_status status;
    enum tide_outcome outcome;
    char reason[64], run_id[TIDE_ID_SIZE];
    bool resumable, held, seen;
    int64_t due_ms, deadline_ms;
};
bool show(struct world *w, struct proc *p, int s, struct view *ret);

/* ---- life_log_fold.c: what the log tells */

enum token_fate { FATE_ACTIVE, FATE_CONSUMED, FATE_REVOKED, FATE_EXPIRED };

struct t_token {
    struct str id;
    enum token_fate fate;
    int64_t expires_ms, consumed_seq;
};

struct t_run {
    struct str id, chain;
    int64_t seq;
    const char *end; /* kind of its terminal event; NULL: open */
    struct str reason;
    int resumable;
    bool waiting;
    struct str wait_key, wait_kind;
    int64_t deadline_ms, due_ms, since_seq;
    struct str on_deadline, value; /* "": none; the default */
    bool defaulted;                /* the event before was its default's answer */
    struct t_token *token;         /* NULL: none */
};

struct t_wait {
    struct str key; /* "": it is not known any more */
    int64_t seq, due_ms, answer_seq;
    struct str answer; /* JSON */
    struct str
        before[8];     /* answers with no, after which it was asked again: a run that began before may have got them */
    int again;         /* how many there are */
    int64_t again_seq; /* where it was asked again last */
};

struct t_step {
    struct str call_id, key, result;
    int started, completed, failed;
    bool over;
};

struct t_message {
    struct str id, content;
    int64_t seq;
    int taken;
};

struct t_resume { /* run.resumed or run.started */
    int64_t seq;
    struct str kind, run_id, request_id, input;
};

struct t_mark { /* a checkpoint of a program */
    struct str key;
    int64_t seq;
};

struct log_fold {
    struct world *w;
    int session;
    struct arena arena;
    int64_t seq, epoch, ts_ms;
    struct str last_kind, last_token; /* of the event before */
    LIST(t_run) runs;
    LIST(t_token) tokens;
    LIST(t_wait) waits;
    LIST(t_step) steps;
    LIST(t_message) messages;
    LIST(t_resume) resumes;
    LIST(t_mark) marks;
    struct t_wait *no; /* whose answer with no is the latest of the chain; NULL: none */
    int64_t no_seq;
    const char *then; /* what came after it that may depend on it; NULL: nothing */
    int64_t *epochs;  /* by seq */
    size_t epochs_cap;
};

bool log_fold_read(struct world *w, struct proc *p, int s, struct log_fold *ret); /* false: it could not be read */
void log_fold_done(struct log_fold *t);
struct t_run *log_fold_run(struct log_fold *t); /* the latest; NULL: none */
struct t_token *log_fold_token(struct log_fold *t, struct str id);
struct t_wait *log_fold_wait(struct log_fold *t, struct str key);
struct t_step *log_fold_step(struct log_fold *t, struct str key);

/* life_check.c */
struct told { /* the status as the design has it */
    enum tide_status status;
    enum tide_outcome outcome;
    bool resumable;
};
struct told told_status(struct log_fold *t, bool alive, int64_t now_ms);
bool told_lapsed(struct log_fold *t, int64_t now_ms); /* with nobody behind it: there is something to write down */
bool told_due(struct log_fold *t, int64_t now_ms);
bool told_defaulted(const struct t_run *r, int64_t now_ms); /* its deadline has answered it, and nobody else can */
void check_session(struct world *w, struct proc *p, int s);
void check_all(struct world *w, struct proc *p);
void check_recovered(struct world *w, struct proc *p); /* nobody is alive but p, which runs nothing */

#endif
