/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as what the screens draw: each is read from JSON once, when it came. Everything lives in the arena of the answer. */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "engine/shapes.h"
#include "engine/transcript.h"
#include "tui/source.h"

struct question_view {
    const char *text, *kind, *name;
    bool approval;
    const char *tool;               /* NULL: it is about no call */
    struct str args;                /* JSON; empty: none */
    const char *diff, *working_dir; /* NULL: none */
    int64_t since_ms, deadline_ms;
    const char *on_deadline; /* NULL: nothing */
    struct str otherwise;    /* the answer that it gives itself, JSON; empty: none */
};

struct row_view {
    struct session_row row;
    const struct question_view *question; /* of the inbox; NULL: none */
    int64_t since_ms;
};

struct rows_view { /* ASK_SESSIONS, ASK_INBOX */
    struct row_view *at;
    size_t n;
    int64_t total; /* -1: not known */
    bool more;
};

struct talk_view { /* ASK_TALK */
    struct transcript_entry *at;
    size_t n;
    int64_t before; /* there is more before this seq; 0: there is not */
};

struct page_view { /* ASK_PAGE */
    struct session_detail detail;
    const struct question_view *question; /* NULL: it asks nobody */
    const char **queue;
    size_t n_queue;
    struct talk_view talk;
};

struct event_view {
    int64_t seq, ts_ms;
    const char *kind;
    struct str json; /* the fields alone */
};

struct log_view { /* ASK_LOG */
    struct event_view *at;
    size_t n;
    int64_t first_seq, last_seq; /* first_seq: what is before it is the page before; 0: there is none */
};

struct checkpoints_view {
    struct tide_checkpoint *at;
    size_t n;
};

struct point_view { /* what has no length: a checkpoint, a model's answer, an error, … */
    const char *kind;
    int64_t seq, at_ms;
};

struct item_view { /* of a lane: a step, a wait, a sleep, a node, or the run itself */
    const char *type, *name, *word, *outcome, *note;
    int64_t seq, start_ms, end_ms;
    int64_t attempts;
    bool is_run;
    struct point_view *points; /* of a run */
    size_t n_points;
};

struct timeline_view {
    struct item_view *at;
    size_t n;
    int64_t from_ms, to_ms;
    int64_t omitted;
    bool partial;
};

struct node_view {
    const char *id, *state, *error;
    int64_t visits, attempts, ms, seq, started_ms;
    const char *next; /* the nodes that follow, "b, c" */
};

struct nodes_view { /* ASK_GRAPH */
    struct node_view *at;
    size_t n;
    const char *path; /* "a → b → a" */
};

/* Makes answer->view of its json. TIDE_IO: it is of another version. */
enum tide_code view_make(struct answer *answer, struct tide_err *err) MUST_CHECK;

#endif
