/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session as people read it: what was said, what tools and steps did, what was asked and answered, and where the session
 * was cut, rolled back or forked. Entries come in the order of the log, one at a time: nothing is gathered but calls that
 * have no result yet. What a rollback undid comes as well, with that mark.
 */
#ifndef ENGINE_TRANSCRIPT_H
#define ENGINE_TRANSCRIPT_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/shape.h"
#include "tidemark.h"

enum transcript_type {
    TRANSCRIPT_USER,      /* `text` */
    TRANSCRIPT_ASSISTANT, /* `text` */
    TRANSCRIPT_TOOL, /* a call of a model, or a step: `name`, `args`, `outcome`, `text` is the result or the error */
    TRANSCRIPT_NODE, /* of a graph: `name`, `outcome`, `text` is the error */
    TRANSCRIPT_QUESTION, /* the session waits: `name`, `text` */
    TRANSCRIPT_ANSWER,   /* `text`; `by` */
    TRANSCRIPT_RUN,      /* a run continues another, or did not come to its end: `outcome`, `text` is why */
    TRANSCRIPT_ROLLBACK, /* back to `to_seq`; `text` is the reason */
    TRANSCRIPT_FORK,     /* it begins as a fork of `name` at `to_seq`: what stands before is inherited */
    TRANSCRIPT_FORKED,   /* the session `name` was forked off here */
    TRANSCRIPT_TYPES
};

enum transcript_outcome {
    TRANSCRIPT_NONE,
    TRANSCRIPT_OK,
    TRANSCRIPT_FAILED,
    TRANSCRIPT_UNKNOWN, /* nobody knows whether it happened */
    TRANSCRIPT_CUT,     /* no result: its run ended before it did, or it is under way */
    TRANSCRIPT_STARTED,
    TRANSCRIPT_CONTINUED,
    TRANSCRIPT_CANCELLED,
    TRANSCRIPT_INTERRUPTED,
};

/* Texts are never NULL; "" where there is none. They live until the callback returns. */
struct transcript_entry {
    enum transcript_type type;
    enum transcript_outcome outcome;
    int64_t seq, ts_ms, turn, to_seq;
    int64_t at_seq; /* the event by which it is known, at or behind `seq` */
    bool inherited; /* said in the parent of this fork */
    bool cut;       /* a rollback cut it off: it is no part of the conversation any more */
    const char *name, *text, *args /* JSON */, *by, *node;
};

typedef int transcript_fn(void *arg, const struct transcript_entry *entry); /* non-zero ends it */

/* `stop` (may be NULL) ends it with TIDE_CANCELLED when it is set. */
enum tide_code transcript_read(tide_session *session, const atomic_int *stop, transcript_fn *fn, void *arg,
                               struct tide_err *err) MUST_CHECK;

/*
 * A part of it: the entries that are known by the events from `from` to `to`. Parts that follow each other have every entry once. One
 * differs from the whole: what has no result stands at the end of the part in which it began, and a result that comes more than
 * TRANSCRIPT_APART events behind its call stands by itself.
 */
#define TRANSCRIPT_APART 2000
struct transcript_window {
    int64_t from, to;           /* from 1 on, of a fork too */
    int64_t read_from, read_to; /* read as well, for calls that began before, and for results that come behind */
    int64_t looked_at;          /* out: events that were read */
    bool misses;                /* out: something began before read_from */
    bool empty;                 /* of a page: it has no entries */
};
enum tide_code transcript_read_window(tide_session *session, struct transcript_window *window, transcript_fn *fn,
                                      void *arg, struct tide_err *err) MUST_CHECK;

extern const struct shape shape_transcript_entry; /* struct transcript_entry, as JSON */

const char *transcript_type_word(enum transcript_type type);
const char *transcript_outcome_word(enum transcript_outcome outcome);

/* Of an entry that is neither said nor done by a tool: what there is to say, in a sentence. Appended to `out`. */
void transcript_note(struct buf *out, const struct transcript_entry *entry);

/* The arguments of a call in one line: its only text, or the JSON; cut where it is long. Appended to `out`. */
void transcript_args_line(struct buf *out, const char *args, size_t max_bytes);

/*
 * As a document: everything in it is escaped, it needs nothing from elsewhere and runs nothing. Tools are folded where the
 * format can.
 */
enum transcript_format { TRANSCRIPT_MARKDOWN, TRANSCRIPT_HTML };
enum tide_code transcript_write(tide_session *session, enum transcript_format format, const atomic_int *stop,
                                struct buf *out, struct tide_err *err) MUST_CHECK;

/* The same from what is known of the session, and entries that `each` gives: of a session that is not here. */
typedef enum tide_code transcript_entries_fn(void *from, transcript_fn *fn, void *arg, struct tide_err *err);
enum tide_code transcript_write_entries(const struct tide_session_info *info, transcript_entries_fn *each, void *from,
                                        enum transcript_format format, struct buf *out, struct tide_err *err)
    MUST_CHECK;

#endif
