/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is committed, by whatever process, handed to those who follow: a session by seq, or the whole store by position. One thread
 * waits for the store's hub and reads what is new once, for everybody.
 *
 *   a follower begins behind its own position: it catches up page by page, then takes part in what is read for all
 *
 * Between the two nothing is missed and nothing comes twice, because both happen on that thread, and each follower knows the last
 * one that it got. A follower that does not take what is sent is dropped, with its position: nothing is kept for it.
 */
#ifndef SERVER_FEED_H
#define SERVER_FEED_H

#include "server/access.h"
#include "tidemark.h"

struct feed;
struct follower;

enum feed_what {
    FEED_EVENT,  /* json: the event, as tide_event_write_json() */
    FEED_STATUS, /* json: the session as lists have it, after something happened to it; kept nowhere */
    FEED_TEXT,   /* json: a piece of what a model says; kept nowhere */
    FEED_RESET, /* the position that was asked for is not there: json is the session as it is (of all sessions {}); what follows comes after `seq` or `pos` */
    FEED_GONE,  /* the session was deleted: the last one */
    FEED_HEARTBEAT, /* nothing new for a while */
};

struct feed_item {
    enum feed_what what;
    const char *session_id, *kind;
    int64_t seq, pos;
    struct str json;
};

/* On the feed's thread; none of them may block. */
struct follower_face {
    void *arg;
    bool (*send)(void *arg, const struct feed_item *item); /* false: it is to be dropped */
    bool (*has_room)(void *arg);                           /* for a page of what it has missed */
    void (*dropped)(void *arg, const char *why);           /* the last call; "" : as it wanted */
};

struct follow {
    const char *session_id;   /* NULL: all sessions */
    int64_t after;            /* seq or position; -1: what comes from now on */
    const char *const *kinds; /* only events of these, ended by NULL; NULL: all. Copied */
    struct caller caller;     /* dropped when its token is revoked */
};

struct feed *feed_new(tide_store *store, struct access *access);
void feed_free(struct feed *f); /* drops everybody; takes NULL */

/*
 * A follower that does not follow yet; everything of `what` is copied. TIDE_INVALID: this store has no positions among all sessions
 * (files). Then follower_join(), after which it is the feed's, whatever comes of it: dropped() comes in every case.
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
};
void feed_count(struct feed *f, struct feed_counts *ret);

#endif
