/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's output on its way to ours: passed on unchanged, the last of it kept for the record. Never more than one piece
 * is held, so a slow reader slows the program down and not the memory up; writing never blocks the loop.
 */
#ifndef PROGRAM_RELAY_H
#define PROGRAM_RELAY_H

#include <poll.h>

#include "base/json.h"

#define RELAY_TAIL ((size_t)16 << 10)
#define RELAY_PIECE ((size_t)64 << 10)

struct relay {
    int from, to;  /* from -1: ended */
    int own;       /* `to` opened once more, so that writing does not block; -1: it could not be */
    int child_end; /* what the program gets; closed once it has it */
    bool is_terminal, is_file;
    bool reader_gone;
    uint64_t bytes; /* in all */
    char *tail, *piece;
    size_t piece_at, piece_len;
    struct buf rest; /* what was there at the end, not written yet */
    unsigned short rows, columns;
    int64_t full_until; /* by monotonic_ms(): not written to before */
};

/* A pipe to the descriptor, or a pseudo-terminal when it is a terminal: the program sees what it would have seen. */
enum tide_code relay_open(struct relay *r, int to, struct tide_err *err) MUST_CHECK;
void relay_close_child_end(struct relay *r);
void relay_done(struct relay *r);

/* What to wait for; fd -1: nothing. */
struct pollfd relay_wants(const struct relay *r);
void relay_move(struct relay *r, short events);

/* Takes everything that is there now, for when nobody can write any more: then the tail is complete. */
void relay_drain(struct relay *r);

/* Passes that on, however slow the reader is, unless one of `signals` (of capture_next_signal()) comes. */
void relay_flush(struct relay *r, int signals);

/* Copies a changed window size to the pseudo-terminal; true when it changed. */
bool relay_resize(struct relay *r);

/* The kept end of it, oldest first. */
void relay_tail(const struct relay *r, struct buf *ret_text);

#endif
