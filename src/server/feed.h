/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is committed, by whatever process, handed to those who follow: a session by seq, or the whole store by position. One thread
 * waits for the store's hub and reads what is new once, for everybody.
 *
 *   a follower begins behind its own position: it catches up page by page, then takes part in what is read for all; one that takes
 *   things too slowly is behind again
 *
 * Between the two nothing is missed and nothing comes twice, because both happen on that thread, and each follower knows the last
 * one that it got. Nothing is kept for one that is slow: what it misses is read from the store when it has room. One that takes
 * nothing at all is dropped.
 */
#ifndef SERVER_FEED_H
#define SERVER_FEED_H

#include "server/access.h"
#include "tidemark.h"

struct feed;
struct follower;

enum feed_what {
    FEED_EVENT,    /* json: the event, as tide_event_write_json() */
    FEED_STATUS,   /* json: the session as lists have it, after something happened to it; kept nowhere */
    FEED_TEXT,     /* json: a piece of what a model says; kept nowhere */
    FEED_SNAPSHOT, /* the first one, if it was asked for: as FEED_RESET */
    FEED_RESET, /* the position that was asked for is not there. json is the session as it is; of all sessions {}, and each comes as a
                       FEED_STATUS. Events after `seq` or `pos` follow */
    FEED_GONE,      /* the session was deleted: the last one */
    FEED_HEARTBEAT, /* nothing new for a while; everything up to `seq` or `pos` was sent, or is not what is wanted */
};

struct feed_item {
    enum feed_what what;
    const char *session_id, *kind;
    const char *task_id; /* "": none; NULL unless FOLLOW_TASK */
    int64_t seq, pos;
    struct str json;
    const struct tide_session_info *session; /* of a status, and of a snapshot or reset of one session; else NULL */
};

enum feed_end {
    FEED_LEFT,    /* as it wanted, or the session is gone */
    FEED_SLOW,    /* it did not take what was sent */
    FEED_REVOKED, /* its token is no longer valid */
    FEED_STOPPED, /* the server stops */
    FEED_FAILED,  /* what it follows cannot be read */
};

/* On the feed's thread; none of them may block. */
struct follower_face {
    void *arg;
    bool (*send)(void *arg, const struct feed_item *item); /* false: it wants nothing more */
    bool (*has_room)(void *arg);                           /* else nothing is sent */
    void (*dropped)(void *arg, enum feed_end why);         /* the last call */
    size_t (*pending)(void *arg); /* bytes on their way to it, to distinguish a slow one from a dead one; may be NULL */
};

enum follow_flags {
    FOLLOW_SNAPSHOT = 1, /* begin with FEED_SNAPSHOT */
    FOLLOW_TASK = 2,     /* with the task of each session */
};

/* Everything is copied. Lists are ended by NULL; NULL: all. */
struct follow {
    const char *session_id;      /* NULL: all sessions */
    int64_t after;               /* seq or position; -1: what comes from now on */
    const char *const *kinds;    /* only events of these; one that ends with a dot stands for those that begin so */
    const char *const *sessions; /* of all: only these */
    const char *task_id;         /* of all: only sessions of this task; NULL: all */
    unsigned flags;
    struct caller caller; /* dropped when its token is revoked */
};

struct feed *feed_new(tide_store *store, struct access *access);
void feed_free(struct feed *f); /* drops everybody; takes NULL */

/*
 * A follower that does not follow yet. TIDE_INVALID: this store has no positions among all sessions (files). Then follower_join(), after
 * which it is the feed's, whatever comes of it: dropped() comes in every case.
 */
enum tide_code follower_new(struct feed *f, const struct follow *what, const struct follower_face *face,
                            struct follower **ret, int64_t *ret_number, struct tide_err *err) MUST_CHECK;
void follower_join(struct feed *f, struct follower *one);
/* From any thread, by its number; dropped() still comes. Nothing when it was dropped already. */
void follower_leave(struct feed *f, const char *session_id, int64_t number);

/* From any thread: for those who follow this session, if anybody does. */
void feed_publish(struct feed *f, enum feed_what what, const char *session_id, struct str json);

struct feed_counts {
    size_t followers, catching_up;
    uint64_t sent, dropped;
    int64_t position; /* up to where everybody was served */
    int64_t lag_ms;   /* how long the follower that is longest behind is behind */
};
void feed_count(struct feed *f, struct feed_counts *ret);

#endif
