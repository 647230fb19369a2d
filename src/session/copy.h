/* SPDX-License-Identifier: Apache-2.0 */
/* Between the plan of a copy (copy.c), one session's turn (copy_session.c) and its events on their way (copy_piece.c). */
#ifndef SESSION_COPY_H
#define SESSION_COPY_H

#include <pthread.h>

#include "base/map.h"
#include "session/session.h"

#define COPY_PIECE_BYTES (4 << 20) /* stored at once: a sync each */
#define COPY_PIECE_EVENTS 16384
#define COPY_QUEUE 256 /* small sessions that are stored by one commit, at most */

/* How a session's turn has ended. */
enum copy_turn {
    COPY_TO_DO,
    COPY_QUEUED,  /* whole in a batch that waits for others, so that they share a sync */
    COPY_LATER,   /* somebody else is at it: looked at again at the end */
    COPY_DONE,    /* all of it is at the destination */
    COPY_REFUSED, /* a problem, reported */
};

struct copy_plan {
    char id[TIDE_ID_SIZE];
    enum copy_turn turn;
};

/* A whole session that waits to be stored, and what must be read back. */
struct copy_queued {
    struct batch *batch;
    struct copy_plan *plan;
    int64_t first_seq, last_seq;
    unsigned char want[DIGEST_SIZE];
    size_t bytes;
};

/* Events on their way. */
struct copy_piece {
    struct arena arena;
    struct event *events;
    size_t n, bytes;
};

struct copier {
    struct store *src, *dst;
    const struct tide_copy_options *opt;
    bool same_key;    /* digests are the same in both */
    bool last_chance; /* what is in the way now is reported, not put off */
    bool cancelled;
    struct map plans;   /* id -> struct copy_plan * */
    uint64_t unplanned; /* sessions that cannot be looked at */
    struct map there;   /* ids that the destination had at first … */
    bool there_known;   /* … when they were listed: asking for one that is absent can cost as much as the list */
    struct copy_piece piece;
    struct copy_queued queue[COPY_QUEUE];
    size_t queued, queued_bytes;
    struct tide_copy_result out;
    struct tide_copy_progress at;
    struct tide_err first; /* of the sessions that were not copied */
};

/* A piece on its way to the disk. */
struct copy_flight {
    bool sent, apart; /* apart: by a thread of its own */
    pthread_t thread;
    struct store *store;
    struct batch *batch;
    uint64_t n, bytes;
    struct batch_result result;
    enum tide_code code;
    struct tide_err err;
};

/* One session under way. */
struct copy_job {
    struct copier *c;
    struct copy_plan *plan;
    struct head src, dst; /* dst: when it is there */
    bool is_new;
    int64_t from;                    /* first seq that is copied */
    int64_t epoch;                   /* of our lease at the destination, of a new one; 0: none */
    unsigned char want[DIGEST_SIZE]; /* what the destination must have for the last event taken */
    uint64_t read, bytes;
    struct copy_flight flight;
    bool at_src;         /* the failure is the source's */
    struct tide_err err; /* of a piece that was not stored */
};

/* One session's turn. Fails only when the whole cannot continue; what concerns this session alone is reported as a problem. */
enum tide_code copy_session(struct copier *c, struct copy_plan *plan, struct tide_err *err) MUST_CHECK;

/* Stores what is queued and reads it back. */
enum tide_code copy_flush(struct copier *c, struct tide_err *err) MUST_CHECK;

/* copy_piece.c: the digest that the destination has for this event, from that of the event before. */
void copy_digest_next(const struct copier *c, const char *id, const struct event *ev, unsigned char at[DIGEST_SIZE]);

/* Reads from j->from on and stores all pieces but the last, which stays in the copier. */
enum tide_code copy_read(struct copy_job *j, struct tide_err *err) MUST_CHECK;
void copy_clear(struct copy_piece *p);

/* The last piece: it shows the session, gives the lease back and brings the caches along. */
enum tide_code copy_make_last(struct copy_job *j, struct batch **ret, struct tide_err *err) MUST_CHECK;

/* Stores a piece, by a thread of its own where there are threads; waits until the one that was sent is on disk. */
void copy_send(struct copy_job *j, struct batch *take);
enum tide_code copy_await(struct copy_job *j, struct tide_err *err) MUST_CHECK;

/* Half of a new session is of no use to anyone: it goes. One that was there stays as long as it got, for the next copy. */
void copy_give_up(struct copy_job *j);

/* Reports how far it is; true when it is to stop. */
bool copy_tell(struct copier *c);
void copy_problem(struct copier *c, const char *where, struct tide_err *err);
void copy_notice(struct copier *c, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
