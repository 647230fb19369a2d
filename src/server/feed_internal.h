/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the feed share. All but the mailbox and the counts is the feed's thread's alone. */
#ifndef SERVER_FEED_INTERNAL_H
#define SERVER_FEED_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/mem.h"
#include "server/feed.h"

struct follower {
    struct follower *next, **before; /* of its session, or of those who follow all */
    struct follower_face face;
    int64_t number;
    char session_id[TIDE_ID_SIZE]; /* "": all */
    int64_t last;                  /* seq or position that it got */
    char **kinds, **sessions, *task_id;
    unsigned flags;
    struct caller caller;

    bool catching_up;
    int64_t behind_ms; /* since when, while it is */
    bool unsure;       /* whether its session is still the one that it began with */
    int64_t made_ms;   /* when that was made */
    bool begun;        /* where it begins is settled */
    bool status_due;   /* what it has missed may have changed the status of its session */
    bool listing;      /* every session comes as a status first, from the cursor on */
    char cursor[TIDE_ID_SIZE + 24];
    int64_t moved_ms; /* when it was last seen to take something */
    size_t pending;
    int64_t again_ms; /* not before */
};

/* Where all that is there ends: somebody waits for it. */
struct feed_end_of_all {
    int64_t position;
    bool known;
};

/* What other threads leave for the feed's. */
struct note {
    struct note *next;
    struct follower *joins;
    int64_t leaves; /* the number of one */
    struct feed_end_of_all *asks;
    enum feed_what what;
    char session_id[TIDE_ID_SIZE];
    size_t len;
    char json[];
};

struct feed {
    tide_store *store;
    struct access *access;
    tide_watch *watch;
    int wake;
    pthread_t thread;
    bool running, by_position;

    pthread_mutex_t mu; /* of the notes, of `stopping` and of who waits for an end */
    pthread_cond_t told;
    struct note *first, **last;
    bool stopping;
    atomic_size_t n, n_behind;
    atomic_uint_fast64_t sent, dropped;
    atomic_int_fast64_t last_number;
    atomic_int_fast64_t lag_ms;   /* how long the one that is longest behind is: looked at now and then */
    atomic_int_fast64_t position; /* everybody who takes part has what is up to there */

    struct map sessions; /* id -> struct follower *, the first of a list */
    struct follower *all;
    int64_t now_ms, read_ms, beat_ms, checked_ms;
    struct map changed; /* sessions whose status may be another, for those who follow */
    struct map tasks;   /* id -> the task of a session, "" for none: of those that were asked for */
    bool more;          /* somebody who is behind has room for more */
    bool trouble;       /* what is new cannot be read: it is not known where all sessions end */
};

/* feed.c */
struct follower *feed_followers_of(struct feed *f, const char *session_id);
void feed_drop(struct feed *f, struct follower *one, enum feed_end why);

/* feed_read.c */
void feed_read_new(struct feed *f);
void feed_catch_up(struct feed *f, struct follower *one, void *ignored);
void feed_send_text(struct feed *f, const struct note *n);
void feed_beat(struct feed *f, struct follower *one, void *ignored);
void feed_fall_behind(struct feed *f, struct follower *one);

#endif
