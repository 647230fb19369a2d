/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where events live: the interface that every backend keeps. Each slot's comment is its law; each law has a test in
 * tests/store/ that every backend passes. Callers use the store_…() calls below, which check once and then call the slot.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/secrets.h"
#include "env/env.h"
#include "store/event.h"

struct store;
struct group;
struct hub;
struct group_owner;

#define STORE_ANY_SEQ (-1)
#define STORE_BIG_VALUE (64 * 1024) /* values over this are stored once by content */

/* Where a session stands. */
struct head {
    char id[TIDE_ID_SIZE];
    int64_t first_seq; /* 1; for a fork one past the fork point */
    int64_t last_seq;
    int64_t epoch; /* of the latest lease */
    int64_t created_ms, updated_ms;
    unsigned char digest[DIGEST_SIZE]; /* of the last event */
    struct origin_proof proof;         /* of the last event */
    unsigned char
        first_before[DIGEST_SIZE]; /* its first event stands on it: zeros, or the parent's at the fork point */
    char parent_id[TIDE_ID_SIZE];  /* empty unless a fork */
    int64_t parent_seq;
    bool unverified;   /* lines of another program are in it, without digests */
    bool damaged;      /* it cannot be read to its end: reading last_seq says why */
    bool held;         /* by a lease, of any process */
    bool holder_alive; /* the holder lives, or may live elsewhere and its lease has not expired */
    char holder[160];  /* who, in words */
};

enum batch_flags {
    BATCH_CREATE = 1,  /* a new session: `session` must not exist */
    BATCH_ACQUIRE = 2, /* take the lease; `epoch` is set to the new one */
    BATCH_RELEASE = 4, /* give the lease back */
    BATCH_INPUT = 8,   /* without the lease: guarded by expect_seq alone; a session that stayed live wakes at once */
    BATCH_HIDDEN = 16, /* with CREATE: not listed nor found before BATCH_REVEAL; swept when its maker died */
    BATCH_REVEAL = 32,
    BATCH_DELETE = 64,  /* the whole session goes, no events; with HIDDEN: one of ours that was never revealed */
    BATCH_KEEP = 128,   /* events bring their own epoch (import) */
    BATCH_LIVE = 256,   /* with RELEASE: a run is open or was interrupted: it stays among the live, with wake_ms */
    BATCH_FORCE = 512,  /* with ACQUIRE: take the lease no matter who holds it */
    BATCH_VOUCH = 1024, /* the log up to and with this batch is of this user: see commit() */
};

/* One unit of writing: whole or not at all. One allocation: batch_new() copies everything in, but for the session files. */
struct batch {
    char session[TIDE_ID_SIZE];
    unsigned flags;
    int64_t expect_seq;        /* last seq the caller knows of, or STORE_ANY_SEQ; 0 with DELETE: whatever it is */
    int64_t epoch;             /* of the caller's lease; with an owner, the owner's counts */
    char parent[TIDE_ID_SIZE]; /* with CREATE: fork of this one … */
    int64_t parent_seq;        /* … at this seq */
    size_t n;
    struct event *events;    /* kind, body and ts (0: now) in; seq, pos, digest out */
    struct str snapshot;     /* state as of the last event of this batch; empty: none */
    struct str summary;      /* what lists show of the session as of the last event; empty: not known */
    struct str session_file; /* the session as its file shows it, as of the last event; empty: not known */
    struct str tokens;       /* and the index of its tokens; both by batch_set_session_files() */
    int64_t caches_seq;      /* seq all of them are for: they are dropped when the batch lands elsewhere */
    /* With LIVE: Unix time at which recovery has to look at it; 0: at once; INT64_MAX: not by the clock. It is for caches_seq
     * as well: at once when the batch lands elsewhere. */
    int64_t wake_ms;

    /* Out. */
    enum tide_code code;
    struct tide_err err;
    int64_t first_seq, last_seq;

    /* For the group. */
    struct group_owner *owner;    /* batches of one owner fail together: see group.h; NULL: none */
    bool async;                   /* nobody waits for it: the group frees it */
    bool answered;                /* another process has committed it */
    tide_session *session_handle; /* for the completion */
    void *user;                   /* not NULL: a completion is handed out */
    bool finished;
    struct batch *next;
    char *session_files; /* holds session file and tokens */
};

struct batch *batch_new(struct str session, unsigned flags, const struct event *events, size_t n, struct str snapshot,
                        struct str summary);
void batch_set_session_files(struct batch *b, struct str session_file, struct str tokens); /* copies them in; once */
void batch_free(struct batch *b);
static inline void batch_freep(struct batch **b)
{
    batch_free(*b);
}

typedef int store_event_fn(void *arg, const struct event *ev); /* non-zero stops the reading, without error */

/* A row of the directory. `summary` is what the last writer left, empty when it may be behind the log. */
struct store_entry {
    const struct head *head;
    struct str summary;
    const struct tide_err *damage; /* not NULL: what is known to be wrong; of its head only the id is sure then */
};
typedef int store_entry_fn(void *arg, const struct store_entry *entry);

typedef int store_live_fn(void *arg, const struct store_entry *entry, int64_t wake_ms); /* non-zero stops */

struct store_check {
    tide_progress_fn *progress;
    tide_problem_fn *problem;
    void *arg;
    uint64_t done, total;
    uint64_t problems; /* damage that was named */
    bool can_rebuild;  /* … of which some is made anew when the check rebuilds */
    uint64_t unread;   /* what could not be read, named as well: that is no damage */
};

/*
 * What not every backend can do, declared in its table: the caller that needs it asks store_can(). A slot that belongs to a capability is
 * called only where that is declared; all others are there.
 */
enum store_capability {
    STORE_SESSION_FILES = 1, /* keeps the session file and the token index of every session beside its log */
    STORE_PROVES = 2,        /* knows when somebody else touched a log: prove() */
    STORE_POSITIONS = 4,     /* has one order over the events of all sessions: read_all() */
    STORE_COMPACTS = 8,      /* has space that it can give back: compact() */
    STORE_DIRECTORY = 16,    /* its URL names a directory, to which files can be added */
    STORE_FOREIGN = 32       /* reads what other programs wrote, in logs and beside them: foreign_rest() */
};

struct store_ops {
    const char *scheme;
    unsigned can; /* enum store_capability */

    /* Ends it: leases that it holds are given back by the process that recovers. Nothing is queued, nobody reads. */
    void (*close)(struct store *);

    /*
     * Commits a list of batches in order in one durable transaction and sets each one's code. A batch that is refused
     * (TIDE_CONFLICT unless expect_seq is the head, TIDE_FENCED if the lease moved on, TIDE_HELD, TIDE_NOT_FOUND, …)
     * leaves no trace and does not fail the others. When the transaction fails, all fail: TIDE_FULL and TIDE_READ_ONLY
     * mean nothing was stored; TIDE_UNKNOWN means that is not known before the store is read again.
     *
     * The list is NULL when `serve` is set and nothing is queued: what other processes wait for is committed alone.
     *
     * The last event of a batch, and each checkpoint, gets a proof of origin when the batch vouches, or when the event before it carries one that
     * holds: what is appended to a log that came from elsewhere proves nothing. With KEEP only one that vouches does: events keep those they bring.
     */
    void (*commit)(struct store *, struct batch *list);

    /* Work that can wait until callers were answered: moving the write-ahead log, heartbeats. Both by the writer only. */
    bool (*is_due)(struct store *);
    void (*maintain)(struct store *);

    /* TIDE_NOT_FOUND. Sees everything that any process has committed. */
    enum tide_code (*head)(struct store *, struct str id, struct head *ret_head, struct tide_err *err);

    /*
     * Hands out the session's own events from..to in order, each proved against the chain; TIDE_CORRUPT names the first
     * that is not right. No transaction is open while `fn` runs.
     */
    enum tide_code (*read)(struct store *, const struct head *, int64_t from, int64_t to, store_event_fn *fn, void *arg,
                           struct tide_err *err);

    /*
     * STORE_PROVES. For one who is about to write: proves what of the session's own events up to `to` was not proved since
     * others than its writers may have touched them. TIDE_CORRUPT as read().
     */
    enum tide_code (*prove)(struct store *, const struct head *, int64_t to, struct tide_err *err);

    /*
     * STORE_FOREIGN. Of a session whose lines have no digests (head.unverified): the events that the first write to it will add
     * behind its last one, from what its program kept beside the log. None where the log says everything. Writes nothing.
     */
    enum tide_code (*foreign_rest)(struct store *, const struct head *, store_event_fn *fn, void *arg,
                                   struct tide_err *err);

    /*
     * Hands out the session's checkpoint events (or its checkpoint.deleted events) with seq <= to, newest first, each
     * proved. *ret_total (may be NULL) is how many the backend's cache has in all; fn may be NULL. A cache can be damaged:
     * callers compare with what the ledger says there must be.
     */
    enum tide_code (*checkpoints)(struct store *, const struct head *, bool deleted, int64_t to, store_event_fn *fn,
                                  void *arg, int64_t *ret_total, struct tide_err *err);

    /* Where the checkpoint event with this id is said to be; 0 when the index does not know. A hint: read it and look. */
    enum tide_code (*checkpoint_seq)(struct store *, const struct head *, struct str id, int64_t *ret_seq,
                                     struct tide_err *err);

    /* STORE_POSITIONS. Events of all sessions with pos > after in order of pos, at most max (0: all); *ret_session is set
     * before each fn. */
    enum tide_code (*read_all)(struct store *, int64_t after, uint64_t max, struct head *ret_session,
                               store_event_fn *fn, void *arg, struct tide_err *err);

    /* STORE_POSITIONS. Up to where events have positions: everything that comes later has a higher one. Never falls. */
    enum tide_code (*last_position)(struct store *, int64_t *ret_position, struct tide_err *err);

    /*
     * The newest snapshot with seq <= to that is whole and belongs to this log; *ret_seq 0 when there is none. Never one
     * that is ahead of the log or of another history.
     */
    enum tide_code (*snapshot)(struct store *, const struct head *, int64_t to, struct buf *ret_data, int64_t *ret_seq,
                               struct tide_err *err);

    /*
     * All sessions, newest first; or only the forks of one. `from`: may begin with the session of this id, where that is found at once;
     * empty, or of none that is there: with the newest.
     */
    enum tide_code (*list)(struct store *, const struct head *forks_of, struct str from, store_entry_fn *fn, void *arg,
                           struct tide_err *err);

    /*
     * The live sessions that no living process holds and that are to be looked at by `until_ms`, oldest first: those whose
     * holder has died (wake_ms 0), and those without a lease that stayed (BATCH_LIVE) with wake_ms <= until_ms. *ret_next_ms:
     * the earliest later wake_ms, 0 when there is none (INT64_MAX is not by the clock; of those looked at, when `fn` stops).
     * Sessions still hidden are left out. The cost is that of the live ones, not of all. No transaction is open while `fn`
     * runs. A damaged record is passed over and named at the end: TIDE_CORRUPT.
     */
    enum tide_code (*live)(struct store *, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                           struct tide_err *err);

    /* The ids that begin with prefix, at most max; the count found is returned in *ret_n. */
    enum tide_code (*resolve)(struct store *, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                              size_t *ret_n, struct tide_err *err);

    /* Members of a JSON object about the store. */
    enum tide_code (*info)(struct store *, struct buf *out, struct tide_err *err);

    /* The file's own structure and references; chains are checked through read(). */
    enum tide_code (*check)(struct store *, struct store_check *check, struct tide_err *err);

    /* Deletes every cache; what can be computed at once is. */
    enum tide_code (*rebuild)(struct store *, struct tide_err *err);

    /*
     * After a commit that gave TIDE_UNKNOWN: on return it is either on disk to stay or gone to stay, and
     * the process that reads sees that. Does nothing where nothing is in doubt. By the writer only.
     */
    enum tide_code (*settle)(struct store *, struct tide_err *err);

    /* STORE_COMPACTS. Gives back the space that is not needed; no answer changes. By the writer only. */
    enum tide_code (*compact)(struct store *, struct tide_err *err);

    /* A number that changes when anything is committed by anyone, killed right behind it or not. By one thread at a time. */
    enum tide_code (*change)(struct store *, int64_t *ret_version, struct tide_err *err);
};

/* What every backend begins with. */
struct store {
    const struct store_ops *ops;
    struct env *env; /* whatever is compared with times in the store is read from its clock */
    struct group *group;
    struct digest_key key;
    struct origin_key origin; /* the user's own, for proofs of origin and for states */
    enum { ORIGIN_KNOWN, ORIGIN_ADOPTED, ORIGIN_OLDER } origins; /* older: it was made before there were proofs */
    atomic_flag origin_told;
    char origin_notice[400]; /* a notice for people about that key; "": none */
    size_t max_record_bytes;
    int64_t lease_ms;
    bool read_only;
    atomic_bool serve; /* other processes wait for this one to commit theirs: store_commit(), with or without a list */
    atomic_bool unsettled; /* a commit failed, and the store could not be settled since: settle() tries again */
    char url[1024];
    pthread_mutex_t notices_mu;
    struct buf notices;      /* lines for people: what was repaired automatically */
    struct secrets *secrets; /* what is not to be stored: see session/redact.h */
    struct hub *hub;
    struct {
        char self[1300]; /* a file that stays the same while the store is there; "": the backend calls hub_tell() */
        char side
            [1300]; /* a file that is written to at every commit, behind it; it may be missing until the first one */
    } watch;
    struct store_notify {       /* which changes of runs are notified: see session/notify.h */
        unsigned on;            /* enum notify_transition; 0: none */
        void (*due)(void *arg); /* there is something to send, on disk; from any thread, must not block; or NULL */
        void *arg;
    } notify;
    char boot_id[40]; /* of this process at this store: made when it is opened, in `boots` from the first lease on */
};

/* tide_store is the same object, seen from outside. */
static inline struct store *store_of(tide_store *s)
{
    return (struct store *)(void *)s;
}

/* For backends: what opening sets in every one, and its end. `opt` was checked. */
void store_init(struct store *store, const struct store_ops *ops, const char *path,
                const struct tide_store_options *opt, struct env *env);
void store_done(struct store *store);

#define STORE_KINDS "this version knows sqlite:PATH or files:DIR"
/* Whether there is a kind of store for it: TIDE_INVALID. Without a scheme it is the path of a database. */
enum tide_code store_check_url(const char *url, struct tide_err *err) MUST_CHECK;

enum tide_code store_open(const char *url, const struct tide_store_options *opt, struct env *env,
                          struct store **ret_store, struct tide_err *err) MUST_CHECK;
void store_close(struct store *store);

/* Submits, waits until it is durable or refused, frees the batch. *ret (may be NULL) gets first and last seq and epoch. */
struct batch_result {
    int64_t first_seq, last_seq, epoch;
};
enum tide_code store_write(struct store *store, struct batch *take, struct batch_result *ret, struct tide_err *err)
    MUST_CHECK;

/*
 * Takes a lock that another process may keep: one that was stopped keeps it for ever. A waiting caller gets the error after STORE_LOCK_MS,
 * and what it tries next is refused soon, so that the error comes after one such time and not after several. *refused_ms
 * belongs to the lock: when it was last not to be had, by the monotonic clock; 0: it was.
 */
#define STORE_LOCK_MS 10000 /* twice what a busy database may take */
enum tide_code store_lock(struct store *store, struct env_file *file, int64_t *refused_ms, struct tide_err *err)
    MUST_CHECK;

/* Names what is wrong; an I/O error (`code`) counts as unread. */
void store_check_name(struct store_check *check, const char *where, enum tide_code code, const char *what);

/* One line for people; any thread. store_take_notices() adds all that there are and forgets them: each is reported once. */
void store_notice(struct store *store, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void store_take_notices(struct store *store, struct buf *out);

/* True: it was an I/O error, and after a pause it is worth another try. *tries begins with 0. */
bool store_retry(struct env *env, enum tide_code code, int *tries);

/* ---- The slots. Those that read try again after an I/O error: store_read.c. */

static inline bool store_can(const struct store *store, enum store_capability what)
{
    return (store->ops->can & what) != 0;
}

/* By group.c, as the only writer. */
void store_commit(struct store *store, struct batch *list);
static inline bool store_is_due(struct store *store)
{
    return store->ops->is_due(store);
}
static inline void store_maintain(struct store *store)
{
    store->ops->maintain(store);
}

enum tide_code store_head(struct store *store, struct str id, struct head *ret_head, struct tide_err *err) MUST_CHECK;
/* from and to are cut to the session's own events; to 0: the last. */
enum tide_code store_read(struct store *store, const struct head *head, int64_t from, int64_t to, store_event_fn *fn,
                          void *arg, struct tide_err *err) MUST_CHECK;
/* TIDE_OK without STORE_PROVES: then it is not known whether somebody touched it. */
enum tide_code store_prove(struct store *store, const struct head *head, int64_t to, struct tide_err *err) MUST_CHECK;
/* TIDE_OK, and nothing is handed out, without STORE_FOREIGN. */
enum tide_code store_foreign_rest(struct store *store, const struct head *head, store_event_fn *fn, void *arg,
                                  struct tide_err *err) MUST_CHECK;
enum tide_code store_checkpoints(struct store *store, const struct head *head, bool deleted, int64_t to,
                                 store_event_fn *fn, void *arg, int64_t *ret_total, struct tide_err *err) MUST_CHECK;
enum tide_code store_checkpoint_seq(struct store *store, const struct head *head, struct str id, int64_t *ret_seq,
                                    struct tide_err *err) MUST_CHECK;
/* TIDE_INVALID without STORE_POSITIONS. */
enum tide_code store_read_all(struct store *store, int64_t after, uint64_t max, struct head *ret_session,
                              store_event_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;
/* TIDE_INVALID without STORE_POSITIONS. */
enum tide_code store_last_position(struct store *store, int64_t *ret_position, struct tide_err *err) MUST_CHECK;
enum tide_code store_snapshot(struct store *store, const struct head *head, int64_t to, struct buf *ret_data,
                              int64_t *ret_seq, struct tide_err *err) MUST_CHECK;
enum tide_code store_list(struct store *store, const struct head *forks_of, store_entry_fn *fn, void *arg,
                          struct tide_err *err) MUST_CHECK;
enum tide_code store_list_from(struct store *store, struct str from, store_entry_fn *fn, void *arg,
                               struct tide_err *err) MUST_CHECK;
enum tide_code store_live(struct store *store, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                          struct tide_err *err) MUST_CHECK;
enum tide_code store_resolve(struct store *store, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                             size_t *ret_n, struct tide_err *err) MUST_CHECK;
enum tide_code store_info(struct store *store, struct buf *out, struct tide_err *err) MUST_CHECK;
enum tide_code store_check(struct store *store, struct store_check *check, struct tide_err *err) MUST_CHECK;
enum tide_code store_change(struct store *store, int64_t *ret_version, struct tide_err *err) MUST_CHECK;

/* As the only writer. Rebuilding and compacting a store that was opened for reading: TIDE_READ_ONLY. */
enum tide_code store_rebuild(struct store *store, struct tide_err *err) MUST_CHECK;
enum tide_code store_settle(struct store *store, struct tide_err *err) MUST_CHECK;
enum tide_code store_compact(struct store *store, struct tide_err *err) MUST_CHECK; /* settles it first */

#endif
