/* SPDX-License-Identifier: Apache-2.0 */
/* The events this version knows: one table of kind, fields, and what the fold does with each. */
#ifndef SESSION_KINDS_H
#define SESSION_KINDS_H

#include "base/json.h"
#include "store/event.h"

struct ledger;
struct content;

/* An event with its body parsed, as the folds see it. */
struct fact {
    const struct event *ev;
    const struct json *body;
    struct arena *arena; /* for decoded text; gone after the fold */
};

/* F_CALLS: an array of tool calls, objects with an id and a name. */
enum field_type { F_ANY, F_STRING, F_INT, F_NUMBER, F_BOOL, F_OBJECT, F_ARRAY, F_CALLS };

enum field_need { FIELD_OPTIONAL, FIELD_REQUIRED, FIELD_ONE_OF /* of those of the kind that say so, one */ };

struct field {
    const char *name;
    enum field_type type;
    enum field_need need;
};

enum kind_flags {
    KIND_INPUT = 1,    /* may be appended without the lease */
    KIND_INTERNAL = 2, /* only by its own call (create, rollback), never by a plain append */
    KIND_FAILURE = 4,  /* listed among errors */
    KIND_MESSAGE = 8,
    KIND_INFO = 16, /* describes the session itself */
    KIND_ROLLBACK = 32,
    KIND_MOVES = 64,  /* an input that makes a run continue: only of a session that may run */
    KIND_TELLS = 128, /* data alone: where nothing runs, who may only write data appends it too */
};

struct kind {
    const char *name;
    unsigned flags;
    const struct field *fields;                             /* ended by a NULL name */
    void (*ledger)(struct ledger *, const struct fact *);   /* what happened in the world; NULL: nothing */
    void (*content)(struct content *, const struct fact *); /* what the agent knows; NULL: nothing */
};

const struct kind *kind_find(struct str name); /* NULL: unknown, kept and passed over */

/* Whether the text is part of a name in the table: of a kind or of a field. */
bool kind_is_word(struct str text);

/* 1 to 64 of [a-z0-9_.], beginning with a letter. */
bool kind_is_valid(struct str name);

/*
 * Refuses a body that is not an object, uses a reserved name, lacks a required field or has one of the wrong type, which the
 * error names. For what is appended: what is in a log already is read as it is.
 */
enum tide_code kind_check(const struct kind *kind, struct str name, const struct json *body, struct tide_err *err)
    MUST_CHECK;

#endif
