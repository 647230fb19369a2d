/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of all writing, and who gets it next; what is handed over to the process that has it. See sqlite_queue.c. */
#ifndef STORE_SQLITE_QUEUE_H
#define STORE_SQLITE_QUEUE_H

#include "store/sqlite_request.h"

struct sqlite_store;

struct queue {
    struct env_file *file; /* NULL: not opened */
    int slot;              /* -1: none */
    uint64_t joined;       /* the value of `founded` that the slot belongs to */
    bool off;              /* it cannot be used here */
    bool alone;            /* the last commit failed: what is wrong may be with ours, and others must not fail by it */
    unsigned rounds;       /* commits for others, one after the other */
    int64_t looked_ms;     /* when it was last looked for */
    struct arena arena;    /* of those that are taken */
    struct request *taken; /* with the lock: what others handed over, in the order in which they asked */
    uint64_t wake[2];      /* a bit for every slot whose owner is to be woken when the lock is free */
};

void queue_init(struct queue *q);
/* With nothing to wait for any more; the lock is free. */
void queue_done(struct sqlite_store *s);

/*
 * Takes the lock, in the order of those who ask for it. With a list: hands it over meanwhile; *ret_answered then says that another
 * process has committed it, and the lock was not taken. Of a list that was taken in part those that were have `answered` set.
 */
enum tide_code queue_lock(struct sqlite_store *s, struct batch *list, bool *ret_answered, struct tide_err *err)
    MUST_CHECK;
bool queue_try(struct sqlite_store *s); /* only if it is free */
void queue_unlock(struct sqlite_store *s);

/* With the lock, in this order. What others have handed over is in `taken`. */
void queue_take(struct sqlite_store *s);
void queue_storing(struct sqlite_store *s); /* immediately before COMMIT: from here on it may be stored */
enum queue_outcome { QUEUE_STORED, QUEUE_NOT_STORED, QUEUE_UNKNOWN };
void queue_answer(struct sqlite_store *s, enum queue_outcome outcome);

#endif
