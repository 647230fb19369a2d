/* SPDX-License-Identifier: Apache-2.0 */
/* The handle behind tide_session, for the files of this folder. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "base/sized.h"
#include "session/load.h"
#include "session/redact.h"
#include "session/cause_sign.h"
#include "session/state.h"
#include "store/group.h"
#include "store/store.h"

/* Whether trouble of the store is waited for: while a run is begun or continues. See hold.c. */
struct patience {
    bool on;
    bool hurry;            /* not now: somebody further out waits, or looks again later */
    tide_trouble_fn *told; /* before each further try; not zero: it is given up. NULL: not called */
    void *arg;
};

struct tide_session {
    struct store *store;
    struct head head;      /* as of the last look at the store */
    struct state *state;   /* fold up to state->seq, queued appends included */
    struct load_cost cost; /* since the last snapshot: weighs the next one */
    struct group_owner owner;
    unsigned flags;      /* enum tide_session_flags */
    bool acquiring;      /* the lease is held, or a queued batch takes it */
    bool fenced, stale;  /* stale: the state holds what did not get stored; load before use */
    bool lost;           /* queued batches failed, and their run does not know yet */
    bool doubted;        /* the store may have given the lease back, because nobody confirmed it: see keep_lease() */
    int64_t doubted_seq; /* where the log ended when it was taken anew with unknown outcome; 0: it was not */
    bool unsettled;      /* the outcome of an append is not known: settle the store before looking */
    struct arena parse;  /* of the append under way */
    struct patience patience;
    struct cause cause;          /* of the next append */
    struct hidden_values hidden; /* what runs of this handle were given that is stored nowhere */
    /* What the latest calls gave out: tide_session_get_info(), tide_checkpoint_load(), tide_session_get_event(). */
    struct tide_session_info *info;
    struct tide_checkpoint *checkpoint;
    struct tide_event *event;
    struct arena info_texts, checkpoint_texts, event_texts;
};

/* ---- hold.c */

/*
 * Tries until it succeeds, fails finally, or the callback gives up. One try when nobody waits. On success *err is as
 * it was: what went wrong before is of no interest any more.
 */
typedef enum tide_code session_try_fn(void *arg, struct tide_err *err);
enum tide_code session_hold(struct tide_session *s, session_try_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;
bool session_is_trouble(enum tide_code code); /* of the store: it may pass */

/* The same before there is a session. `told` may be NULL; `store` and `session` are for the log. */
struct store_pause {
    struct env *env;
    const char *store, *session;
    bool (*passes)(enum tide_code code);
    tide_trouble_fn *told;
    void *arg;
};
enum tide_code trouble_hold(const struct store_pause *t, session_try_fn *fn, void *arg, struct tide_err *err)
    MUST_CHECK;

void session_be_patient(struct tide_session *s, tide_trouble_fn *told, void *arg);
void session_be_quick(struct tide_session *s);
/* From now on one try each; what it gives is to be put back into patience.hurry. */
bool session_hurry(struct tide_session *s);

/* Events of this session, or of one that it was forked from. A read that fails continues behind the last event that it gave. */
enum tide_code session_read(struct tide_session *s, const struct head *head, int64_t from, int64_t to,
                            store_event_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

/*
 * session_create.c: tide_session_create() for a caller that runs something at once: it waits for a failing store. `told` as
 * for a run. It creates one session, however often it tries.
 */
enum tide_code session_create_held(tide_store *store, const char *id, const char *fields, tide_trouble_fn *told,
                                   void *arg, tide_session **ret_session, struct tide_err *err) MUST_CHECK;

/* The same of tide_session_open() for appending, and of appending one event: it is there once, however often it was tried. */
enum tide_code session_open_held(tide_store *store, const char *id, tide_trouble_fn *told, void *arg,
                                 tide_session **ret_session, struct tide_err *err) MUST_CHECK;
enum tide_code session_append_held(struct tide_session *s, const struct tide_new_event *event, tide_trouble_fn *told,
                                   void *arg, struct tide_err *err) MUST_CHECK;

/* ---- session.c */

/*
 * Another program's session becomes ours before anything is decided about it: its log gets digests, and behind it stands what only its
 * snapshot said. Of any other session nothing changes.
 */
enum tide_code session_take_over(struct store *store, const char *id, struct tide_err *err) MUST_CHECK;

/* Loads or catches up so that head and state are what the store has. Waits for queued appends first. */
enum tide_code session_sync(struct tide_session *s, struct tide_err *err) MUST_CHECK;

/* The state as of seq (0: now): the handle's own, or one loaded into *ret_own, which the caller frees. */
enum tide_code session_state(struct tide_session *s, int64_t seq, struct state **ret_own,
                             const struct state **ret_state, struct tide_err *err) MUST_CHECK;

/* Beside enum tide_append_flags: take the lease from the process that holds it. */
#define SESSION_APPEND_FORCE (1u << 16)

/* Appends events made by this folder: kinds that a plain append refuses are allowed. */
enum tide_code session_append(struct tide_session *s, unsigned flags, const struct tide_new_event *events, size_t n,
                              int64_t *ret_seq, struct tide_err *err) MUST_CHECK;

/* tide_session_append_async() of what the next append of this session takes along; without one it is written a little later. */
enum tide_code session_append_later(struct tide_session *s, unsigned flags, const struct tide_new_event *events,
                                    size_t n, struct tide_err *err) MUST_CHECK;

/* The lease of this epoch is this handle's: it was taken by an append whose outcome was not known. TIDE_FENCED: it is another's. */
enum tide_code session_regain_lease(struct tide_session *s, int64_t epoch, struct tide_err *err) MUST_CHECK;
void session_forget_lease(struct tide_session *s); /* given back by such an append */

/* What checking an event found out, so that folding it need not again. */
struct parsed {
    const struct kind *kind; /* NULL: unknown */
    const struct json *body;
};

/* Checks an event as it comes from outside and gives its compact body; the arena holds all. ret_parsed may be NULL. */
enum tide_code event_check(struct store *store, struct arena *a, const struct tide_new_event *in, bool internal,
                           struct event *ret, struct parsed *ret_parsed, struct tide_err *err) MUST_CHECK;

/*
 * The latest checkpoint that can be resumed from, neither deleted nor rolled back; "" when there is none. The state knows
 * it unless checkpoints were deleted: then the log is asked, and the state must be whole (not a summary).
 */
enum tide_code checkpoint_to_resume(struct store *store, const struct head *head, struct state *state,
                                    char ret_id[TIDE_ID_SIZE], struct tide_err *err) MUST_CHECK;
bool checkpoint_is_known(const struct state *state);

/* tide_session_verify() without what a fork shares with its parents: for callers that check those as well. */
enum tide_code session_verify_own(struct tide_session *s, tide_progress_fn *progress, void *arg, uint64_t *ret_events,
                                  struct tide_err *err) MUST_CHECK;

/* The body of a checkpoint event of the state as it is; `key` NULL: not made by a program. */
void checkpoint_log_failed(const struct tide_session *s, enum tide_checkpoint_type type, const struct tide_err *err);
enum tide_code checkpoint_draft(struct tide_session *s, const struct tide_new_checkpoint *in, const char *key,
                                struct buf *ret_body, char ret_id[TIDE_ID_SIZE], struct tide_err *err) MUST_CHECK;

/*
 * tide_checkpoint_list() of a session that cannot be read whole: one damaged event hides only what it damages. *ret_damage: the first; code
 * 0: there is none.
 */
enum tide_code checkpoint_list_around(struct store *store, const char *id, const struct tide_checkpoint_filter *filter,
                                      tide_checkpoint_fn *fn, void *arg, struct tide_err *ret_damage,
                                      struct tide_err *err) MUST_CHECK;

/* What people read of one that nobody has described. */
#define CHECKPOINT_SAYS 256
const char *checkpoint_describe(char out[CHECKPOINT_SAYS], enum tide_checkpoint_type type, const char *node,
                                const char *next_node, int64_t turn);

/* The same into a draft in which every effect is settled, of the state as it is with what is queued. */
struct draft;
void checkpoint_put(struct tide_session *s, struct draft *d, const struct tide_new_checkpoint *in,
                    char ret_id[TIDE_ID_SIZE]);

/* Whether tide_session_rollback() would refuse; writes nothing. The state must be of now. */
/* TIDE_EFFECTS: *ret_names (may be NULL) gets what must happen once and would be cut off. */
enum tide_code rollback_check(struct tide_session *s, int64_t to_seq, unsigned flags, struct buf *ret_names,
                              struct tide_err *err) MUST_CHECK;

/* Whether this event of the session is part of its content: not cut off by a rollback. */
bool session_in_content(const struct tide_session *s, int64_t seq);

/* Of a word in the log; TIDE_CHECKPOINT_OTHER: none that is known, which checkpoint_check_type() refuses. */
enum tide_checkpoint_type checkpoint_type_of(const char *word);
enum tide_code checkpoint_check_type(struct str type, struct tide_err *err) MUST_CHECK;

/* What a checkpoint event must have beyond the types of its fields. */
enum tide_code checkpoint_check(struct arena *a, const struct json *body, struct tide_err *err) MUST_CHECK;

/* TIDE_INVALID: it is no id. Whether there is such a session is not looked at. */
enum tide_code session_take_id(struct str id, char ret_id[TIDE_ID_SIZE], struct tide_err *err) MUST_CHECK;

/* A session id that is whole or a unique prefix, made whole. */
enum tide_code session_resolve(struct store *store, struct str prefix, char ret_id[TIDE_ID_SIZE], struct tide_err *err)
    MUST_CHECK;

/* What lists know of each session: without memory, outputs and effects. NULL: its log is damaged. Not zero: that is enough. */
typedef int session_state_fn(void *arg, const struct head *head, const struct state *state);
/* Deletes it, unless anything was appended behind `seq`: TIDE_CONFLICT. */
enum tide_code session_delete_at(struct store *store, const char *id, int64_t seq, struct tide_err *err) MUST_CHECK;
/*
 * tide_session_list() that looks at so many sessions at most (0: all): *ret_looked is the cursor of the last one then, from which the
 * caller continues; "" when all were looked at, or `fn` stopped.
 */
#define LIST_CURSOR_SIZE sizeof(((struct tide_session_info *)0)->cursor)
enum tide_code session_list_part(tide_store *store, const struct tide_list_filter *filter, int64_t look,
                                 tide_session_info_fn *fn, void *arg, char ret_looked[LIST_CURSOR_SIZE],
                                 struct tide_err *err) MUST_CHECK;

/*
 * As tide_session_list() gives them, in no order: those that nobody runs, and that wait or were interrupted. The cost is theirs, not that of
 * all sessions. One whose record is damaged is passed over.
 */
enum tide_code session_list_live(struct store *store, tide_session_info_fn *fn, void *arg, struct tide_err *err)
    MUST_CHECK;
enum tide_code session_each(struct store *store, session_state_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

/*
 * The draft of a session that nobody alive holds as one append, under a lease that is taken and given back in it, guarded by the
 * seq of its head. Folds it into the state (recovery.c).
 */
enum tide_code recovery_batch(struct store *store, const struct head *h, struct state *s, const struct draft *d,
                              struct batch **ret, struct tide_err *err) MUST_CHECK;

void session_make_id(struct store *store, const char *prefix, char out[TIDE_ID_SIZE]);

#endif
