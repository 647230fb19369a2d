/* SPDX-License-Identifier: Apache-2.0 */
/* One event as one line of a session's log: writing it, and reading it back byte for byte. */
#ifndef STORE_FILES_LINE_H
#define STORE_FILES_LINE_H

#include "base/mem.h"
#include "store/event.h"
#include "store/store.h"

struct line_fields { /* what stands under "tidemark" */
    int64_t epoch;
    int64_t at, more; /* lines of its unit, which was written at once, before it and behind it */
    unsigned char digest[DIGEST_SIZE];
    struct origin_proof proof;
    char parent[TIDE_ID_SIZE]; /* of the first line of a fork; "" otherwise */
    int64_t parent_seq;
    unsigned char before[DIGEST_SIZE];
    bool verified; /* false: a line of somebody else's, without "tidemark" */
};

/* Adds the line with its newline. ev->seq, ts_ms, kind, body, epoch, digest, proof and the mark's at/more/parent are written. */
void line_write(struct buf *out, const struct event *ev, const struct line_fields *mark);

enum line_read { LINE_EVENT, LINE_NOT /* no event: torn, damaged, or not JSON */ };
/* `line` without its newline. The kind of *ret is in the line or in the arena, its body, the compact object, in the arena. */
enum line_read line_read(struct arena *a, struct str line, struct event *ret, struct line_fields *ret_fields);

/* Of a line that is no event, or not the one of this seq: why, for a person. */
const char *line_why_not(struct str line, int64_t seq);

/* Only seq and the mark, as fast as can be, of a line that line_write() made; false: read it whole. */
bool line_peek(struct str line, int64_t *ret_seq, struct line_fields *ret_fields);

/* The kind's text of such a line; empty when it is not one. */
struct str line_kind(struct str line);

#endif
