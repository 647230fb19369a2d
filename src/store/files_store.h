/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions as plain files. The log of a session (sessions/<id>.messages.jsonl) is the truth; everything else is computed from
 * it or says who is at work.
 *
 *   sessions/  <id>.messages.jsonl  <id>.mark  <id>.json  <id>.tokens.json  <id>.torn-<n>
 *   live/      <id>.json    lease and wake of sessions that are held or stay live   all that recovery looks at
 *   boots/     <boot>.json  processes that hold leases, with a heartbeat
 *   cache/     <id>.head <id>/…   where the log ends, offsets, states: may be deleted
 *   store.json, lock, changes
 *
 * sessions/<id>.mark says up to which event the log was acknowledged: it is written after the sync of the log, so it is never ahead
 * of the disk, and the process that reads holds the log against it (files_acknowledged.c).
 *
 *   files_open.c    the directory, opening, the table of calls    files_commit.c  a group of batches, to disk
 *   files_log.c     one log: its file, looking at it, mending     files_plan.c    what each session gets of a group
 *   files_log_parse.c   what the lines of a log say                   files_create.c    creating and forking sessions, imports
 *   files_line.c    one line                                      files_delete.c  deleting them, the lock of the directory
 *   files_cache.c   heads, indexes and states that were kept      files_read.c    heads, events, checkpoints
 *   files_lease.c   leases, boots, heartbeats                     files_list.c    lists, the live ones
 *   files_replace.c   small files, whole or not at all              files_check.c   looking after it
 *   files_foreign.c sessions that others wrote                
 *   files_acknowledged.c    acknowledged ends                             files_sync_trouble.c    syncs that failed, in all processes
 *   files_session_files.c   what people read beside a log
 *
 * Who writes a log holds its lock for one commit, no longer. Bytes behind the acknowledged end are taken for events only when they
 * were written again and synced by the process that finds them: so nobody acts on what a power cut could take back.
 */
#ifndef STORE_FILES_STORE_H
#define STORE_FILES_STORE_H

#include <pthread.h>

#include "base/map.h"
#include "store/holder.h"
#include "store/files.h"
#include "store/files_line.h"
#include "store/batch_rules.h"
#include "store/pool.h"

#define FILES_VERSION 3
#define FILES_PATH 1200
#define BLOCK_EVENTS 256                /* events between two offsets of the index */
#define RESERVED_MAX ((int64_t)1 << 20) /* space that is reserved at a time behind a log that is being written … */
#define RESERVED_UNIT ((int64_t)4096)   /* … and what a file system gives at least */
#define LOGS_MAX 192                    /* logs that are kept open, each with its mark */
#define SPARES_MAX 64                   /* files of leases that were given back, for sessions that are made next */
#define PIECE_BYTES ((size_t)1 << 20)
#define TAKEN_BACK                                                                                                     \
    "{}\n" /* stands where a unit stood whose sync failed, until that is on disk: no event, so it is torn */

/* Where every 256th event begins, and which of the 256 are checkpoints (first 32 bytes) and checkpoint.deleted. */
struct files_block {
    int64_t offset;
    unsigned char marks[64];
};

/* Who holds a session and when recovery looks at it: what stands in live/<id>.json. */
struct files_lease {
    bool there;
    bool live;       /* false: it is kept only because its epoch is not in the log yet */
    bool hidden;     /* of an import that is not finished */
    bool made;       /* written when the session was there: without its log, that is gone */
    char boot[40];   /* "": nobody's */
    char kernel[40]; /* the kernel's boot in which a session was to be made, while it is not known to be; else "" */
    int64_t epoch, wake_ms;
};

/* Up to where a log was acknowledged: what stands in sessions/<id>.mark. */
struct files_mark {
    enum { MARK_NONE, MARK_OK, MARK_BAD } state;
    int64_t seq;
    uint32_t bits;                     /* the first of the digest of that event */
    int64_t line_seq;                  /* what its line says: that event or one before it, … */
    unsigned char digest[DIGEST_SIZE]; /* … and the digest of this one */
    bool here;  /* written since this kernel booted: the page cache has all that was acknowledged */
    bool dated; /* of a store of version 2: it has the line only */
};

/* What people are to read of a session, and is not written yet. */
struct files_shown {
    size_t session_file, tokens; /* how long they are; they follow each other */
    char text[];
};

/* One session's log, as far as it is known. */
struct files_log {
    char id[TIDE_ID_SIZE];
    struct env_file *file; /* NULL: closed */
    int64_t refused_ms;    /* of its lock: see store_lock() */
    int64_t opened;        /* which opening that is: addresses and inodes are used again */
    uint64_t dev, ino;
    bool exists, hidden;
    bool unverified;            /* some lines are somebody else's */
    bool busy;                  /* a commit of ours is at it: what is known stays until that is over */
    size_t part;                /* of that commit, counted from 1; 0: none */
    bool suspect;               /* a sync failed: what stands behind `end` must go before anything else is written */
    bool torn;                  /* something that is no whole unit stands behind `end` */
    struct env_file *mark_file; /* NULL: closed, or there is none */
    struct files_mark mark;
    bool mark_reserved;
    bool judged;       /* the log was held against it */
    bool mark_wrong;   /* it speaks of another event than the log has there */
    int64_t acked;     /* up to this event it was acknowledged, as far as is recorded … */
    int64_t acked_end; /* … and where its unit ends; of those that were read */
    struct head h;
    int64_t end;        /* of the last whole unit: where the next one goes */
    int64_t last_unit;  /* where the unit that was read last begins */
    int64_t last_line;  /* where the last line begins */
    int64_t line_epoch; /* of that line; h.epoch is that of the latest lease */
    int64_t looked;     /* size of the file when it was read to its end */
    int64_t state_seq;  /* of the newest state in the cache; 0: not known */
    int64_t clean_end;  /* it was given back at this length */
    int64_t head_seq;   /* that what was kept of it in the cache knows of, whether it fits or not; 0: nothing is */
    int64_t vouched;    /* the event whose proof of origin we made: it is right; 0: none */
    int64_t
        proved_seq; /* up to this event all are what was written: by the caller that gave it back, or read since … */
    int64_t mtime_ns;  /* … and the file has not been touched by others since it had this time, … */
    int64_t kept_ns;   /* … which is kept in the cache; 0: none is */
    bool fits;         /* what was kept of it in the cache fits: nothing is missing */
    int64_t chain_seq; /* of lines without digests: the event up to which a reader has computed them, … */
    unsigned char chain[DIGEST_SIZE]; /* … and its digest */
    int64_t allocated;
    struct files_block *blocks; /* of the index, from first_block on without a gap; the last may be begun */
    size_t n_blocks, cap_blocks;
    int64_t first_block;
    int64_t saved;               /* blocks before this one are in the cache */
    struct env_file *lease_file; /* of our own lease; its link count shows whether it was taken */
    struct files_lease lease;    /* ours, while lease_file is there */
    int64_t runs_looked;         /* of another program's: at this length it was looked whether … */
    bool run_open;               /* … its run is open */
    struct files_shown *shown;   /* malloc; NULL: its session files are as they are to be */
    char *text;                  /* malloc: the log, where there is no file of it; NULL: there is */
    size_t text_len;
    struct tide_err damage; /* code 0: none found */
    int64_t used;           /* for the oldest to be closed */
};

/* The file of a lease that was given back, under a name that says nothing. */
struct spare_lease {
    struct env_file *file;
    int64_t since_ms;
    char path[FILES_PATH];
};

struct files_store {
    struct store base;
    char dir[FILES_PATH];
    struct env_file *lock, *changes;
    int64_t refused_ms; /* of `lock`: see store_lock(); by the writer only */
    struct holders holders;
    bool registered; /* boots/ has us */
    int64_t beat_due_ms;
    int64_t shown_due_ms;   /* session files are to be written then; 0: none are. By the writer only */
    pthread_mutex_t mu;     /* of logs and what they point to */
    struct map logs;        /* id -> struct files_log * */
    int64_t clock;          /* counts uses */
    _Atomic int64_t change; /* what `changes` got last */
    pthread_mutex_t slot_mu;
    int slot;         /* of this process in `changes`; -1: none */
    bool adopting;    /* an older version's, or a clone: logs without marks are taken as they stand */
    bool older;       /* of version 1 */
    bool outdated;    /* of any version before this one */
    bool accept_loss; /* what was acknowledged and is missing is given up */
    struct orphans orphans;
    struct spare_lease *spares[SPARES_MAX];
    size_t n_spares;
    struct pool *pool;    /* for writes and syncs of several files */
    const char *sweeping; /* folder that is swept now */
    bool names_due;       /* a log was found by a name that a power cut could take back */
    bool many;            /* that is seen to when all of them were looked at */
};

static inline struct files_store *files_of(struct store *s)
{
    return (struct files_store *)(void *)s;
}

/* ---- files_replace.c: paths and small files */
void files_path(const struct files_store *s, char out[FILES_PATH], const char *folder, const char *name,
                const char *suffix);
/* All of a file of at most max bytes. TIDE_NOT_FOUND. */
enum tide_code files_get(struct files_store *s, const char *path, size_t max, struct buf *out, struct tide_err *err)
    MUST_CHECK;
enum tide_code files_sync_dir(struct files_store *s, const char *folder, struct tide_err *err) MUST_CHECK;
/* That is known, and it is of this kind. */
bool files_is(struct files_store *s, const char *folder, const char *name, const char *suffix, enum env_kind kind);
/* The file as a whole or as it was; durable: on disk on return. */
enum tide_code files_put(struct files_store *s, const char *folder, const char *name, struct str bytes, bool durable,
                         struct tide_err *err) MUST_CHECK;
/* A name beside this one that nobody has; swept when it is left. */
void files_fresh(struct files_store *s, const char *path, char out[FILES_PATH]);
/* Of an error that names such a file: people know the one that it is to be. `code` goes through. */
enum tide_code files_not_fresh(enum tide_code code, struct tide_err *err);
void files_changed(struct files_store *s); /* something was committed, or found behind what was acknowledged */

/* ---- files_log.c */

/* The log of a session, known from before or not; never NULL. With s->mu. */
struct files_log *log_of(struct files_store *s, struct str id);
/* Opens it if it is there and reads on from where it is known. With s->mu. `locked`: the caller has the file's lock. */
enum tide_code log_refresh(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err) MUST_CHECK;
/*
 * Those of which nothing is known yet are read, and their syncs go out side by side. A failure is returned to the caller that reads that
 * one. With s->mu, which is kept: nobody may see what is not on disk yet.
 */
void log_look_ahead(struct files_store *s, struct files_log *const *list, size_t n);
/* Cuts off what is torn, keeping it aside. With the lock of the file. */
enum tide_code log_mend(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* Nothing was ever stored in it: what another program left of making one. */
static inline bool log_is_empty(const struct files_log *l)
{
    return l->h.last_seq < l->h.first_seq;
}
void log_wrote(struct files_store *s, struct files_log *l);         /* we did: its time is ours */
bool log_is_ours(struct files_store *s, const struct files_log *l); /* nobody else wrote since */
void log_forget(struct files_store *s, struct files_log *l);        /* closes and forgets all that is known */
void log_free(void *log);
enum tide_code names_settle(struct files_store *s, struct tide_err *err)
    MUST_CHECK; /* their directory is synced if due */
void log_name(char out[FILES_PATH], const char *id, bool hidden);
void log_path(const struct files_store *s, char out[FILES_PATH], const char *id, bool hidden);
/* A block of the index, known or read anew. */
enum tide_code log_block(struct files_store *s, struct files_log *l, int64_t number, struct files_block *ret,
                         struct tide_err *err) MUST_CHECK;

/* ---- files_log_parse.c */

/* From l->end to `size`, not beyond the event `limit`. */
enum tide_code log_read_on(struct files_store *s, struct files_log *l, int64_t size, int64_t limit,
                           struct tide_err *err) MUST_CHECK;
void log_note_line(struct files_log *l, int64_t seq, int64_t offset, struct str kind); /* into the index */

/* Lines from an offset on, one at a time. */
struct line_walk {
    struct files_store *s;
    struct env_file *file;
    struct buf bytes;
    int64_t at;      /* of the line that was given last */
    int64_t next;    /* of the one behind it */
    int64_t limit;   /* not beyond it */
    int64_t base;    /* offset of bytes.ptr */
    size_t piece;    /* bytes that are read next */
    struct str text; /* instead of the file */
    bool unended;    /* the line that was given last has no newline, and is the last */
};
/* False at the limit; *ret without the newline, never empty. err->code says when it failed. */
bool walk_next(struct line_walk *w, struct str *ret, struct tide_err *err);
void walk_done(struct line_walk *w);

/* ---- files_foreign.c */

/* Gives the lines of somebody else digests: another file takes the log's place. With the lock of the file. */
enum tide_code foreign_upgrade(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* A session that has a snapshot of somebody else's and no log: l->text is what it would have. TIDE_NOT_FOUND: there is no such
 * snapshot; TIDE_CORRUPT: it is one of ours, whose log is gone. */
enum tide_code foreign_begin(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
enum tide_code foreign_write(struct files_store *s, struct files_log *l, struct tide_err *err)
    MUST_CHECK; /* then it has */

/* Whether a session of somebody else's has a run that has not ended: recovery is to see it. With s->mu. */
enum tide_code foreign_has_open_run(struct files_store *s, struct files_log *l, bool *ret, struct tide_err *err)
    MUST_CHECK;

/* The seq that a snapshot of ours says that its session has; 0: there is none. */
int64_t session_file_last_seq(struct files_store *s, const char *id);

/* ---- files_acknowledged.c */

/* What the mark says now. Only what cannot be read is an error. `locked`: we have the lock of the log. */
enum tide_code mark_look(struct files_store *s, struct files_log *l, bool locked, struct tide_err *err) MUST_CHECK;
/* That the session was acknowledged up to its last event: into its file, not synced. */
enum tide_code mark_put(struct files_store *s, struct env_file *file, const char *id, const struct head *h,
                        struct tide_err *err) MUST_CHECK;
/* Of a log that has none, or a wrong one: on disk on return. With the lock of the log. */
enum tide_code mark_make(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* Writing it will not fail for lack of room. */
enum tide_code mark_reserve(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* The log is on disk as far as it is known. With its lock. `rests`: nobody continues writing for now. */
void mark_write(struct files_store *s, struct files_log *l, bool rests);
/* It says nothing any more, on disk. */
enum tide_code mark_clear(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* A session of which there is no log: TIDE_CORRUPT if its mark says that there was one. */
enum tide_code mark_without_log(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* It lacks what was acknowledged: refused. */
enum tide_code mark_lost(struct files_log *l, struct tide_err *err);
/* Whether the log, which was read as far as it is there, has what was acknowledged. */
enum tide_code mark_judge(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* The unit that ends at this event is the one that the mark speaks of, or another. */
bool mark_fits(const struct files_log *l, int64_t first, int64_t last, const unsigned char digest[DIGEST_SIZE]);
/* Logs without marks get some, where nothing else says where they end. When the store is opened for writing, once. */
enum tide_code marks_adopt(struct files_store *s, struct tide_err *err) MUST_CHECK;

/* ---- files_sync_trouble.c */
#define WORD_TRIES 16
struct word_at {
    uint64_t failures;
    uint64_t again; /* how often the write was done again */
};
/* A write begins, which a sync follows; then the sync has ended; then: has no sync failed since the beginning? */
enum tide_code word_begin(struct files_store *s, struct word_at *ret, struct tide_err *err) MUST_CHECK;
void word_end(struct files_store *s, bool failed);
bool word_holds(struct files_store *s, struct word_at *at);
/* Else the write is done again, and its sync: that begins here. */
enum tide_code word_again(struct files_store *s, const struct word_at *at, struct tide_err *err) MUST_CHECK;
/* Writes and syncs, as often as that takes. */
typedef enum tide_code files_write_fn(struct files_store *s, void *arg, bool again, struct tide_err *err);
enum tide_code word_guard(struct files_store *s, files_write_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;
void word_changed(struct files_store *s, int64_t change);
enum tide_code word_change(struct files_store *s, int64_t *ret_version, struct tide_err *err) MUST_CHECK;
/* Around what word_changed() reports, which its process may not come to any more. */
void word_committing(struct files_store *s, bool is);
void word_leave(struct files_store *s);

/* ---- files_session_files.c */

/*
 * They are as of the last event now; an empty one: not known. With the lock of the log. `rests`: nobody continues writing for now;
 * else they may come later. True: they were written.
 */
bool session_files_put(struct files_store *s, struct files_log *l, struct str session_file, struct str tokens,
                       bool rests);
bool session_files_due(struct files_store *s);
void session_files_settle(struct files_store *s); /* those that were to come later. By the writer only, without s->mu */

/* ---- files_lease.c */
enum tide_code lease_read(struct files_store *s, const char *id, struct files_lease *ret, struct tide_err *err)
    MUST_CHECK;
enum tide_code lease_write(struct files_store *s, struct files_log *l, const struct files_lease *lease,
                           struct tide_err *err) MUST_CHECK;
enum tide_code lease_remove(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* Given back, and nothing else of it is to be found. */
enum tide_code lease_drop(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* The same for many that are made at once: what it says; where it stands until it has its name; that it has it, and its file. */
void lease_text(const struct files_log *l, const struct files_lease *lease, struct buf *out);
enum tide_code lease_begin(struct files_store *s, const struct files_log *l, char fresh[FILES_PATH],
                           struct env_file **ret_file, struct tide_err *err) MUST_CHECK;
enum tide_code lease_give_name(struct files_store *s, const struct files_log *l, struct env_file *file,
                               const char *fresh, struct tide_err *err) MUST_CHECK;
void lease_take_over(struct files_store *s, struct files_log *l, const struct files_lease *lease,
                     struct env_file *file);
void lease_drop_spares(struct files_store *s);
bool lease_misses_log(struct files_store *s, const char *id);   /* there is nothing of its session, and there was */
bool lease_is_ours(struct files_store *s, struct files_log *l); /* and still is: looked at, not read */
enum tide_code boot_ready(struct files_store *s, struct tide_err *err) MUST_CHECK;
void boot_beat(struct files_store *s);
bool boot_beat_due(struct files_store *s);
void boot_done(struct files_store *s);
/* Whether the process of this boot lives or may live; who it is. */
enum tide_code boot_alive(struct files_store *s, const char *boot, bool *ret_alive, char ret_who[160],
                          struct tide_err *err) MUST_CHECK;

/* ---- files_cache.c */
/* Where the log was known to end; false: nothing is known that fits the file, which is like this. */
bool cache_load_head(struct files_store *s, struct files_log *l, const struct env_stat *st);
void cache_save_head(struct files_store *s, struct files_log *l, struct str summary);
bool cache_fits_end(struct files_store *s, struct files_log *l); /* the last line that is known is where it was */
/* The process that left the file like this had proved it, or written it behind what was proved. */
bool cache_is_clean(struct files_store *s, const struct files_log *l, const struct env_stat *st);
/* What lists show; empty when it is behind the log. In the arena. */
struct str cache_summary(struct files_store *s, const struct files_log *l, struct arena *a);
/* As of this event, whose line begins there. */
void cache_save_state(struct files_store *s, struct files_log *l, const struct event *at, int64_t line,
                      struct str state);
enum tide_code cache_state(struct files_store *s, struct files_log *l, int64_t to, struct buf *ret, int64_t *ret_seq,
                           struct tide_err *err) MUST_CHECK;
void cache_drop(struct files_store *s, const char *id);

/* ---- files_create.c */
/* The first of these, and those behind it that are made with it; gives how many that were. */
size_t files_create(struct files_store *s, struct batch *const *batches, size_t most);
enum tide_code files_reveal(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;

/* ---- files_delete.c */
void files_delete(struct files_store *s, struct batch *b);
/* All that there is of a session. With the lock of the directory. */
enum tide_code files_erase(struct files_store *s, struct files_log *l, struct tide_err *err) MUST_CHECK;
/* That of the directory, for making and deleting. s->mu is given back while it waits. */
bool files_lock(struct files_store *s, struct tide_err *err);

/* ---- files_commit.c */
void files_commit(struct store *store, struct batch *list);
bool files_is_due(struct store *store);
void files_maintain(struct store *store);

/* ---- files_read.c, files_list.c, files_check.c: the calls of store.h */
enum tide_code files_head(struct store *, struct str id, struct head *ret, struct tide_err *err);
enum tide_code files_read(struct store *, const struct head *, int64_t from, int64_t to, store_event_fn *fn, void *arg,
                          struct tide_err *err);
enum tide_code files_foreign_rest(struct store *, const struct head *, store_event_fn *fn, void *arg,
                                  struct tide_err *err);
enum tide_code files_prove(struct store *, const struct head *, int64_t to, struct tide_err *err);
enum tide_code files_checkpoints(struct store *, const struct head *, bool deleted, int64_t to, store_event_fn *fn,
                                 void *arg, int64_t *ret_total, struct tide_err *err);
enum tide_code files_checkpoint_seq(struct store *, const struct head *, struct str id, int64_t *ret_seq,
                                    struct tide_err *err);
enum tide_code files_snapshot(struct store *, const struct head *, int64_t to, struct buf *ret_data, int64_t *ret_seq,
                              struct tide_err *err);
enum tide_code files_list(struct store *, const struct head *forks_of, struct str from, store_entry_fn *fn, void *arg,
                          struct tide_err *err);
enum tide_code files_live(struct store *, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                          struct tide_err *err);
enum tide_code files_resolve(struct store *, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                             size_t *ret_n, struct tide_err *err);
enum tide_code files_info(struct store *, struct buf *out, struct tide_err *err);
enum tide_code files_check(struct store *, struct store_check *check, struct tide_err *err);
enum tide_code files_rebuild(struct store *, struct tide_err *err);
enum tide_code files_settle(struct store *, struct tide_err *err);
enum tide_code files_change(struct store *, int64_t *ret_version, struct tide_err *err);

/* Ids of all sessions, the hidden ones too when asked for. */
typedef enum tide_code files_id_fn(void *arg, const char *id, bool hidden);
enum tide_code files_each_id(struct files_store *s, files_id_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;
/* The same, each looked at before: for a caller that refreshes all of them. Not the hidden ones. */
enum tide_code files_each_log(struct files_store *s, files_id_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;
/* Of those that live/ has. */
enum tide_code files_each_live(struct files_store *s, files_id_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

#endif
