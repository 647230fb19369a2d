/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the SQLite backend share: the handle, its two connections, statements, errors. docs/FORMAT.md has the tables. */
#ifndef STORE_SQLITE_DB_H
#define STORE_SQLITE_DB_H

#include <pthread.h>
#include <sqlite3.h>

#include "base/map.h"
#include "store/holder.h"
#include "store/orphan_leases.h"
#include "store/pool.h"
#include "store/sqlite_queue.h"

#define SQLITE_APP_ID 0x54494445 /* "TIDE" */
#define SQLITE_SCHEMA_VERSION 7
#define FEW_EVENTS 16    /* for which there is room at first in what is remembered of a session */
#define BLOCK_EVENTS 256 /* events whose positions one row of `blocks` holds */
#define CHECKPOINT_BITS_SIZE (2 * BLOCK_EVENTS / 8) /* of the bitmaps in such a row, see checkpoint_bits_note() */
#define WAL_LIMIT_PAGES 1024                        /* 4 MiB: past this the write-ahead log is moved into the file */
#define READERS 4                                   /* threads that read at the same time; more wait */
#define RESERVE_BYTES (256 * 1024) /* released on a full disk so that the store can still be opened and read */

/* Every statement, prepared when first used. Writing ones belong to the write connection, others to either. */
enum stmt_id {
    ST_BEGIN,
    ST_BEGIN_WRITE,
    ST_COMMIT,
    ST_ROLLBACK,
    ST_DATA_VERSION,
    ST_SCHEMA,
    ST_MAX_POS,
    ST_HEAD,
    ST_HEAD_SCAN,
    ST_HEAD_BY_SID,
    ST_EVENT,
    ST_EVENT_LINK,
    ST_EVENT_KIND,
    ST_EVENTS_FLUSH,
    ST_EVENT_DELETE,
    ST_EVENT_PROVE,
    ST_EVENTS_AFTER,
    ST_LAST_EVENT,
    ST_LAST_POSITIONS,
    ST_BLOCK,
    ST_BLOCK_INSERT,
    ST_CHECKPOINT_SEQ,
    ST_SESSION_INSERT,
    ST_SESSION_UPDATE,
    ST_SESSION_SUMMARY,
    ST_SESSION_REVEAL,
    ST_SESSION_DELETE,
    ST_HIDDEN,
    ST_HIDDEN_HEADS,
    ST_FORKS,
    ST_LIST,
    ST_LIST_FORKS,
    ST_LIST_COUNT,
    ST_IDS_COUNT,
    ST_RESOLVE,
    ST_LIVE,
    ST_LIVE_FLUSH,
    ST_LIVE_PUT,
    ST_LIVE_DELETE,
    ST_LIVE_RECHECK,
    ST_BOOT_INSERT,
    ST_BOOT_FIND,
    ST_BOOT_BEAT,
    ST_BOOT_GET,
    ST_BOOT_SWEEP,
    ST_SNAP_INSERT,
    ST_SNAP_GET,
    ST_SNAP_DELETE,
    ST_BLOCKS_DELETE,
    ST_BLOB_FIND,
    ST_BLOB_ADD,
    ST_BLOB_REF,
    ST_BLOB_UNREF,
    ST_BLOB_SWEEP,
    ST_BLOB_GET,
    ST_META_GET,
    ST_META_PUT,
    ST_META_OPENED,
    ST_META_OPEN,
    ST_COUNT
};

struct conn {
    sqlite3 *db;
    int prepare_rc; /* why the last db_stmt() gave NULL */
    sqlite3_stmt *stmts[ST_COUNT];
    bool in_txn; /* of a writer: db_step() then does nothing outside of it */
};

/* What the tables say of a session; and what the writer knows of it besides, valid while nobody else has committed. */
struct whead {
    struct head h;
    int64_t sid, parent_sid;                      /* rows of `sessions`; parent_sid 0: no fork */
    int64_t last_pos;                             /* of the event h.last_seq */
    int64_t boot;                                 /* row of `boots` that holds the lease; 0: nobody */
    bool stay;                                    /* no lease, but among the live: a run is open or was interrupted */
    int64_t wake;                                 /* with stay: when recovery looks at it; else 0 */
    bool in_live;                                 /* has a row in `live` */
    bool proven;                                  /* its last event has a proof of origin that holds */
    bool exists, hidden, damaged, dirty, touched; /* dirty: differs from disk; touched: by the transaction under way */
    bool summary_set;
    struct str summary; /* points into the batch that brought it */
    int64_t *recent;    /* positions since the last full block */
    unsigned recent_n, recent_cap;
    unsigned char marks[CHECKPOINT_BITS_SIZE]; /* of the same events */
};

static inline bool whead_live(const struct whead *w)
{
    return w->boot != 0 || w->stay;
}

/* An event on its way into its table, as a row of the virtual table pending_events. */
struct pending_event {
    const struct event *ev;
    int64_t sid, prev;
    struct str body, refs, tag; /* as stored */
};

struct pending {
    struct pending_event *events;
    size_t event_count, event_cap;
    struct whead **heads; /* of live sessions that moved; they outlast the flush */
    size_t head_count, head_cap;
};

#define PLACES 8

struct sqlite_store {
    struct store base;
    char path[1024];
    struct env_file *mark; /* the side file: lock of all writing, and the last position that was acknowledged */
    struct conn w;         /* used by the thread that is in commit() or maintain() */
    struct reader {
        struct conn c;   /* first: db_reader_done() gets nothing else */
        bool busy;       /* a thread is in a transaction of it */
    } readers[READERS];  /* connected when first used: a lone thread uses the first */
    size_t reading;      /* so many are busy */
    pthread_mutex_t rmu; /* of who is busy, and of `reopening` */
    pthread_cond_t rfree;
    bool reopening; /* nobody begins to read */
    struct place {
        char id[TIDE_ID_SIZE];
        int64_t last_seq, sid, last_pos;
        unsigned char digest[DIGEST_SIZE]; /* of the event last_seq */
    } places[PLACES]; /* of the heads that were given out last, under rmu: most are read from at once */
    unsigned next_place;
    int64_t sound_ns; /* when index and records were last looked through whole, under rmu; 0: never */
    struct conn look; /* used under look_mu: what sqlite_change() compares belongs to a connection */
    pthread_mutex_t look_mu;
    int64_t looks;      /* how many such connections there were */
    bool mark_fresh;    /* what it says is not on disk for sure */
    bool mark_empty;    /* … and it said nothing before */
    int64_t refused_ms; /* of the mark's lock: see store_lock() */
    struct queue queue; /* of those who want it; the writer's */
    bool broken;        /* a sync failed: reopen before anything is written */
    bool accept_loss;
    bool adopt;                              /* TIDE_OPEN_ADOPT */
    unsigned char row_key[SHORT_KEY_SIZE];   /* of the checks of rows */
    unsigned char value_key[SHORT_KEY_SIZE]; /* of names and seals of big values: the user's own is mixed in */

    /* The writer's. */
    struct pool *pool;      /* for big values */
    struct pending pending; /* rows of the transaction under way */
    struct map heads;       /* session id -> struct whead */
    int64_t data_version, last_pos;
    bool cache_valid;
    enum sqlite_open {
        OPEN_UNKNOWN, /* what the file says of its closing */
        OPEN_IN_FILE, /* that it is open; the log has that word still */
        OPEN_KNOWN,   /* nothing, and so does the log */
    } open,
        open_next;
    bool opening;         /* recorded in the log, perhaps not in the file */
    bool moved;           /* something was committed or moved: closing records it */
    _Atomic int64_t boot; /* our row of `boots`; 0 before the first lease */
    struct holders holders;
    int64_t beat_due_ms; /* by the clock that is not set */
    struct orphans orphans;
    int wal_pages, move_at_pages; /* in the write-ahead log; so many are moved into the file */
};

static inline struct sqlite_store *sqlite_of(struct store *s)
{
    return (struct sqlite_store *)s;
}

/* sqlite_db.c: connections, statements, errors, the side file. */
sqlite3_stmt *db_stmt(struct conn *c, enum stmt_id id); /* ready to bind; NULL when the file is too damaged */
int db_step(struct conn *c, sqlite3_stmt *st);          /* sqlite3_step that takes NULL */
int db_run(struct conn *c, enum stmt_id id);            /* step once and reset; SQLITE_OK when done */
enum tide_code db_fail(struct sqlite_store *s, struct conn *c, int rc, struct tide_err *err, const char *what);
struct str db_text(sqlite3_stmt *st, int column);
int db_query_int(struct conn *c, const char *text, int64_t *ret); /* of the first row; SQLITE_OK, else it is not set */
enum tide_code db_connect(struct sqlite_store *s, struct conn *c, struct tide_err *err) MUST_CHECK;
void db_disconnect(struct conn *c);
enum tide_code db_lock(struct sqlite_store *s, struct tide_err *err) MUST_CHECK; /* queue_unlock() gives it back */
/* A connection of its own until db_reader_done(), with a read transaction begun. Not twice by one thread. */
enum tide_code db_reader(struct sqlite_store *s, struct conn **ret, struct tide_err *err) MUST_CHECK;
void db_reader_done(struct sqlite_store *s, struct conn *c);
/* The same after the whole store was read: the memory of the pages goes back, because they are not read again soon. */
void db_reader_rest(struct sqlite_store *s, struct conn *c);
/* Writes every byte of the write-ahead log again, where it stands, and syncs it; lock held. */
enum tide_code db_renew_log(struct sqlite_store *s, struct tide_err *err) MUST_CHECK;
enum tide_code db_compact(struct sqlite_store *s, struct tide_err *err) MUST_CHECK; /* checkpoint TRUNCATE; lock held */
bool db_checkpoint(
    struct sqlite_store *s); /* checkpoint RESTART; lock held; trouble can wait; true: all is in the file */
enum tide_code db_ready(struct sqlite_store *s, struct tide_err *err)
    MUST_CHECK; /* reopens after a failure; the writer calls it */
enum tide_code db_path(struct sqlite_store *s, const char *suffix, char out[1100], struct tide_err *err) MUST_CHECK;

/* sqlite_path.c: what stands at the path. */
#define SIDE_ABSENT (-1)
enum tide_code side_bytes(struct sqlite_store *s, const char *suffix, int64_t *ret_bytes, struct tide_err *err)
    MUST_CHECK; /* of the file beside the store; or SIDE_ABSENT */
/* SQLite may open it: nothing (*ret_new), an empty file (the same), or a store. Links are refused, and rests of one. */
enum tide_code path_look(struct sqlite_store *s, bool create, bool *ret_new, struct tide_err *err) MUST_CHECK;
bool path_has_journal(struct sqlite_store *s); /* its making was cut off */
enum tide_code path_make(struct sqlite_store *s, struct tide_err *err)
    MUST_CHECK; /* an empty file, and its directory */
enum tide_code path_still_there(struct sqlite_store *s, struct tide_err *err)
    MUST_CHECK; /* before it is opened again */
enum tide_code db_sync_dir(struct sqlite_store *s, struct tide_err *err) MUST_CHECK;

/* sqlite_acknowledged.c: the side file. */
/* Opens it, and makes it when asked; a store that is closed may be without one until something is written. */
enum tide_code mark_open(struct sqlite_store *s, bool create, struct tide_err *err) MUST_CHECK;
bool mark_missing(struct sqlite_store *s); /* or nothing is in it */
/* What it would say, and nothing is done about it. `older`: of a version that does not say when it is closed. */
enum tide_code mark_allows(struct sqlite_store *s, bool older, struct tide_err *err) MUST_CHECK;
enum tide_code mark_check(struct sqlite_store *s, bool *ret_suspect, struct tide_err *err) MUST_CHECK;
/*
 * In every transaction, last before COMMIT. The second, where no position is used, keeps the one that it has; `made`: the store
 * is being made, and nothing that may be in the mark means anything.
 */
enum tide_code mark_begin(struct sqlite_store *s, int64_t pos, struct tide_err *err) MUST_CHECK;
enum tide_code mark_begin_still(struct sqlite_store *s, bool made, int64_t *ret_pos, struct tide_err *err) MUST_CHECK;
/* After it succeeded, before it is acknowledged; `broken` then: it is there, and the file does not say that the store is open. */
void mark_end(struct sqlite_store *s, int64_t pos);
void mark_back(struct sqlite_store *s, int64_t pos); /* nothing was stored, and nothing is in doubt */
enum tide_code mark_settle(struct sqlite_store *s, struct tide_err *err) MUST_CHECK; /* the log was written anew */
void mark_close(struct sqlite_store *s); /* the store is one file then; lock held */
void reserve_make(struct sqlite_store *s);
bool reserve_release(struct sqlite_store *s);

/* sqlite_schema.c */
enum tide_code schema_migrate(struct sqlite_store *s, bool create, struct tide_err *err) MUST_CHECK;
/* Whether that, and the mark, would refuse it; reads only. */
enum tide_code schema_look(struct sqlite_store *s, bool create, struct tide_err *err) MUST_CHECK;

extern const char schema_tables[], schema_views[]; /* the statements that make them */

/* sqlite_shape.c: whether tables, indexes and views are those that we made, and nothing else is there. */
/* Refuses what is not ours and could act in our transactions, or is not as we made it and holds data. By the writer's connection. */
enum tide_code shape_check(struct sqlite_store *s, bool older, struct tide_err *err) MUST_CHECK;
/* Names everything that is not as it should be: each text with a NUL behind it. Inside a transaction. An SQLite code. */
int shape_problems(struct sqlite_store *s, struct conn *c, struct buf *out);
int shape_rebuild(struct sqlite_store *s); /* indexes and views that are missing or others; inside the transaction */

/* sqlite_upgrade.c: what SQL alone cannot change; inside the transaction. An SQLite code. */
int upgrade_columns(struct sqlite_store *s); /* what statements need that the steps use */
int upgrade_origin(struct sqlite_store *s);
int upgrade_live(struct sqlite_store *s);
int upgrade_marks(struct sqlite_store *s);
/* For each sid that a query gives; they are gathered first. */
int for_each_sid(struct sqlite_store *s, const char *sql, int (*fn)(struct sqlite_store *s, int64_t sid));

/* sqlite_write.c */
void sqlite_commit(struct store *store, struct batch *list);
bool sqlite_is_due(struct store *store);
void sqlite_maintain(struct store *store);

/* sqlite_heads.c: what the writer remembers. */
void heads_forget(struct sqlite_store *s);
int heads_freshen(struct sqlite_store *s); /* after BEGIN */
struct whead *whead_load(struct sqlite_store *s, struct str id, int *ret_rc);
void whead_clear(struct whead *w);                        /* its session is gone */
int whead_write(struct sqlite_store *s, struct whead *w); /* if it has moved */

/* sqlite_pending.c: rows reach their table many at a time. */
int pending_register(struct sqlite_store *s); /* the virtual tables, on the write connection */
void pending_event_add(struct sqlite_store *s, const struct pending_event *row);
void pending_head_add(struct sqlite_store *s, struct whead *w);
int pending_flush(struct sqlite_store *s); /* before anything reads what was added */
void pending_clear(struct sqlite_store *s);

/* sqlite_lease.c */
int lease_ready(struct sqlite_store *s);  /* our row of `boots` is there and fresh; inside the transaction */
int lease_refind(struct sqlite_store *s); /* after a reopening: is our row there? */
int lease_beat(struct sqlite_store *s);
bool lease_beat_due(struct sqlite_store *s);
/* Says who holds it; *ret_alive false when the lease may be taken over. Returns an SQLite code. */
int lease_holder(struct sqlite_store *s, struct conn *c, int64_t boot, bool *ret_alive, char ret_who[160]);

/* sqlite_head.c: where a session stands. */
void db_proof(struct origin_proof *out, sqlite3_stmt *st, int column);
bool db_digest(unsigned char out[DIGEST_SIZE], sqlite3_stmt *st, int column); /* false when it is not one */
/* What a row of ST_HEAD and its like says and proves. */
enum {
    HEAD_BOOT = 13,
    HEAD_SUMMARY = 15,
    HEAD_IN_LIVE = 22,
    HEAD_SUMMARY_CHECK = 24,
    HEAD_WAKE = 25,
    HEAD_PROOF = 26,
    HEAD_LIVE_SID = 27 /* ST_LIVE only */
};
enum tide_code head_prove(struct sqlite_store *s, sqlite3_stmt *st, struct whead *ret, struct tide_err *err) MUST_CHECK;
/* The same, and for a reader who holds it. */
enum tide_code head_from_row(struct sqlite_store *s, struct conn *c, sqlite3_stmt *st, struct whead *ret,
                             struct tide_err *err) MUST_CHECK;
/* By the writer's connection, outside of what it remembers. False: not right, or trouble. */
bool head_for_writer(struct sqlite_store *s, int64_t sid, struct whead *ret, int *ret_rc);
enum tide_code head_by_sid(struct sqlite_store *s, struct conn *c, int64_t sid, struct whead *ret, struct tide_err *err)
    MUST_CHECK;
/* The rows of the session that a head was given out for, and where its last event is; inside a transaction. TIDE_NOT_FOUND: it
 * was deleted since. */
enum tide_code head_again(struct sqlite_store *s, struct conn *c, const struct head *h, struct whead *ret,
                          struct tide_err *err) MUST_CHECK;
enum tide_code head_anew(struct sqlite_store *s, struct conn *c, const struct head *h, struct whead *ret,
                         struct tide_err *err) MUST_CHECK; /* from the tables, whatever was noted of it */
enum tide_code sqlite_head(struct store *, struct str id, struct head *ret, struct tide_err *err);

/* sqlite_vfs.c: what sqlite3_open_v2() is given. */
const char *vfs_name(const struct env *env);

/* sqlite_locate.c: where an event is. SQLite codes, inside a transaction of c; SQLITE_CORRUPT when the chain is broken. */
int event_link(struct conn *c, int64_t pos, int64_t *sid, int64_t *seq, int64_t *prev, unsigned char *digest);
int event_locate(struct conn *c, const struct whead *w, int64_t seq, int64_t *ret_pos,
                 unsigned char ret_digest[DIGEST_SIZE]);
/* From the block that has all of from..to, when it is there and whole. */
bool block_positions(struct conn *c, const struct whead *w, int64_t from, int64_t to, int64_t *ret_pos);
/* Positions of from..to (at most BLOCK_EVENTS); walks back from the end where blocks are missing or wrong. */
int event_positions(struct conn *c, const struct whead *w, int64_t from, int64_t to, int64_t *ret_pos);
/* Which events of a block are checkpoints, and which delete some: two bitmaps, a bit by its place in the block. */
void checkpoint_bits_note(unsigned char marks[CHECKPOINT_BITS_SIZE], int64_t seq, struct str kind);
bool checkpoint_bits_has(const unsigned char marks[CHECKPOINT_BITS_SIZE], int64_t seq, bool deleted);
/* As the row of the full block that `seq` is in has them; false when it is not known. */
bool block_checkpoint_bits(struct conn *c, const struct whead *w, int64_t seq,
                           unsigned char ret_marks[CHECKPOINT_BITS_SIZE]);
/* By looking at each of n events from `from` on. */
int checkpoint_bits_find(struct conn *c, int64_t from, size_t n, const int64_t *pos,
                         unsigned char ret_marks[CHECKPOINT_BITS_SIZE]);
int block_write(struct conn *c, int64_t sid, int64_t end, const int64_t *pos, size_t n,
                const unsigned char marks[CHECKPOINT_BITS_SIZE]);
int block_make(struct conn *c, const struct whead *w, int64_t end); /* from the events alone */

/* sqlite_snapshot.c */
void snapshot_digest(unsigned char out[DIGEST_SIZE], const struct store *store, struct str session, int64_t seq,
                     const unsigned char at[DIGEST_SIZE], struct str data);
enum tide_code sqlite_snapshot(struct store *, const struct head *, int64_t to, struct buf *ret_data, int64_t *ret_seq,
                               struct tide_err *err);

/* sqlite_read.c: events, each proved. */
#define PIECE_BYTES (256 * 1024) /* bodies gathered before they are handed out */
int event_read(struct sqlite_store *s, struct conn *c, const struct whead *w, int64_t pos, int64_t seq, struct arena *a,
               struct event *ret); /* the one that must be there; inside a transaction of the reader */
enum tide_code event_damaged(struct sqlite_store *s, struct conn *c, const struct head *h, int rc, int64_t seq,
                             struct tide_err *err);
/* What looks damaged may have been deleted since the reader looked at its head. */
enum tide_code event_or_deleted(struct sqlite_store *s, const struct whead *w, enum tide_code code,
                                struct tide_err *err);
enum tide_code sqlite_read(struct store *, const struct head *, int64_t from, int64_t to, store_event_fn *fn, void *arg,
                           struct tide_err *err);
enum tide_code sqlite_read_all(struct store *, int64_t after, uint64_t max, struct head *ret_session,
                               store_event_fn *fn, void *arg, struct tide_err *err);
enum tide_code sqlite_last_position(struct store *, int64_t *ret_position, struct tide_err *err);

/* sqlite_checkpoints.c */
enum tide_code sqlite_checkpoints(struct store *, const struct head *, bool deleted, int64_t to, store_event_fn *fn,
                                  void *arg, int64_t *ret_total, struct tide_err *err);
enum tide_code sqlite_checkpoint_seq(struct store *, const struct head *, struct str id, int64_t *ret_seq,
                                     struct tide_err *err);

/* sqlite_list.c: the directory. */
enum tide_code sqlite_list(struct store *, const struct head *forks_of, struct str from, store_entry_fn *fn, void *arg,
                           struct tide_err *);
enum tide_code sqlite_resolve(struct store *, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                              size_t *ret_n, struct tide_err *);
/* What rows promise about themselves: a check over all their columns, keyed when the store is. w is as the row has it. */
int64_t session_check(const struct sqlite_store *s, const struct whead *w, bool live);
int64_t live_check(const struct sqlite_store *s, const struct whead *w);
int64_t live_check_2(const struct sqlite_store *s, const struct whead *w); /* up to version 2 */
int64_t summary_check(const struct sqlite_store *s, const struct whead *w, struct str summary);
/* Of the row of a head, in the arena; empty where it is behind the log, or damaged. */
struct str head_summary(const struct sqlite_store *s, struct arena *a, sqlite3_stmt *st, const struct whead *w);

/* sqlite_live.c: what recovery has to look at. */
enum tide_code sqlite_live(struct store *, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                           struct tide_err *err);

/* sqlite_big.c: values over STORE_BIG_VALUE, stored once by content. */
/* Sets the event's digest as well; nothing is returned where no value is big. */
int big_store(struct sqlite_store *s, struct arena *a, struct str session, struct event *ev,
              const unsigned char before[DIGEST_SIZE], struct str *ret_stored, struct str *ret_refs);
/* *ret_named: each value is what its name says; with the seal, it is then the body that has the event's digest. */
int big_load(struct sqlite_store *s, struct conn *c, struct arena *a, struct str stored, struct str refs, size_t max,
             struct str *ret_body, bool *ret_named);
bool big_is_sealed(const struct sqlite_store *s, struct str session, const struct event *ev,
                   const unsigned char before[DIGEST_SIZE], struct str stored, struct str refs);
int big_release(struct sqlite_store *s, struct str refs);
/* Values that are counted less often than events name them: each said in a text with a NUL behind it; or counted anew. */
int big_miscounted(struct sqlite_store *s, struct conn *c, struct buf *out);
int big_recount(struct conn *c);

/* sqlite_admin.c */
enum tide_code sqlite_info(struct store *, struct buf *out, struct tide_err *);
enum tide_code sqlite_check(struct store *, struct store_check *, struct tide_err *);
enum tide_code sqlite_rebuild(struct store *, struct tide_err *);
enum tide_code sqlite_compact(struct store *, struct tide_err *);
enum tide_code sqlite_change(struct store *, int64_t *ret_version, struct tide_err *);
/* Positions up to last_pos are never used again, also when their events are gone; inside the transaction. */
int position_floor(struct sqlite_store *s);
int session_erase(struct sqlite_store *s, struct whead *w); /* all rows of a session, inside the transaction */

#endif
