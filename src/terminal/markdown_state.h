/* SPDX-License-Identifier: Apache-2.0 */
/* Between markdown.c (lines), markdown_inline.c (what stands in them) and markdown_table.c, and nobody else. */
#ifndef TERMINAL_MARKDOWN_STATE_H
#define TERMINAL_MARKDOWN_STATE_H

#include "terminal/text_flow.h"
#include "terminal/markdown.h"

#define LOOK 600 /* bytes looked ahead for the other half of a mark */
#define SPANS 6  /* marks within marks */

enum where { LINE_START, INLINE, VERBATIM };

/* Text between two marks: `left` bytes of it are still to come, then `skip` bytes that close it. */
struct span {
    size_t left, skip;
    unsigned style;
    bool url; /* what closes it holds an address to be shown */
};

struct markdown {
    enum markdown_mode mode;
    struct text_flow flow;
    struct buf pending;
    enum where where;
    unsigned style; /* of the block */
    struct span spans[SPANS];
    int depth;
    char before;     /* the byte before, in this line */
    bool any, blank; /* something has been drawn; a blank line has come since */
    struct {
        char mark; /* '\0': not in a code block */
        size_t len, indent;
    } fence;
};

/* What a step sees: of the text no more than LOOK bytes of this line. */
struct look {
    struct str s;
    bool whole; /* nothing that is not seen could change what is decided */
};

static inline struct str past(struct str s, size_t n)
{
    return (struct str){s.ptr + n, s.len - n};
}

static inline struct str head(struct str s, size_t n)
{
    return (struct str){s.ptr, n < s.len ? n : s.len};
}

static inline size_t run_of(struct str s, char c)
{
    size_t n = 0;

    while (n < s.len && s.ptr[n] == c)
        n++;
    return n;
}

static inline size_t blanks(struct str s)
{
    size_t n = 0;

    while (n < s.len && (s.ptr[n] == ' ' || s.ptr[n] == '\t' || s.ptr[n] == '\r'))
        n++;
    return n;
}

static inline struct look look_at(struct str s, bool last)
{
    struct str seen = head(s, LOOK);
    const char *end = memchr(seen.ptr, '\n', seen.len);

    if (end)
        seen.len = (size_t)(end - seen.ptr);
    return (struct look){seen, end || last || s.len >= LOOK};
}

/* One step inside a line; the bytes taken, 0: more must come. */
size_t markdown_inline(struct markdown *md, struct str s, bool last, struct buf *out);
size_t markdown_end_line(struct markdown *md, struct buf *out); /* takes the line end: 1 */

/* A table, whole; the bytes taken. 0: more must come (*ret_open), or it is none that can be drawn. */
size_t markdown_table(struct markdown *md, struct str all, bool last, struct buf *out, bool *ret_open);

#endif
