/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects that must happen once, as the whole log has them, also what a rollback cut off: what of it is not to happen again.
 * The person who rolls back chooses: those that ended answer from the log ("reuse"), or all of them may happen again ("redo"). Which
 * call of now is which effect of then, agents and graphs each know for themselves.
 */
#ifndef SESSION_PAST_EFFECTS_H
#define SESSION_PAST_EFFECTS_H

#include "session/session.h"

struct past_effect {
    int64_t from, seq; /* of its start; of the last that is known of it */
    enum { PAST_CUT /* nobody saw its end */, PAST_FAILED, PAST_DONE } state;
    bool reuse; /* a rollback that cut it off says that it answers from the log */
};

struct past_effects {
    struct map effects; /* call_id -> a struct of the reader that begins with struct past_effect, oldest first */
    struct arena arena;
};

#define PAST_EFFECTS_INIT                                                                                              \
    {                                                                                                                  \
        .arena = ARENA_INIT                                                                                            \
    }

struct past_reader {
    struct past_effects *past;
    size_t size; /* of the reader's struct */
    /* One begins that must happen once; `effect` begins with zeros. False: it is not the reader's. */
    bool (*begins)(struct past_reader *r, struct str call_id, const struct json *body, void *effect);
    const struct past_row { /* further kinds that it reads, ended by kind NULL */
        const char *kind;
        void (*read)(struct past_reader *r, const struct event *ev, const struct json *body);
    } * rows;
    void *arg;
    struct arena scratch; /* of one event */
};

/* For callers that read a log with it as the argument: store_event_fn. */
int past_effects_event(void *reader, const struct event *ev);

/* Those of which anything is recorded after this may happen again: somebody said so. */
void past_effects_forget(struct past_effects *p, int64_t after);
void past_effects_done(struct past_effects *p);

#endif
