/* SPDX-License-Identifier: Apache-2.0 */
/* Lines from a descriptor, of any length up to a bound, with a way to ask whether one is there without waiting for it. */
#ifndef CLI_LINE_READER_H
#define CLI_LINE_READER_H

#include "base/buf.h"
#include "base/err.h"

struct line_reader {
    int fd;
    struct buf buf;
    size_t at;      /* where the next line begins in buf */
    size_t scanned; /* bytes behind `at` that are known to hold no newline */
    size_t max;     /* longest line, without its newline */
    int64_t number; /* of the line handed out last; the first is 1 */
    bool ended;
};

enum line_got {
    LINE_HERE,  /* *ret_line, without its newline, valid until the next call */
    LINE_LATER, /* none is complete and reading would wait (only when not asked to wait) */
    LINE_END,
    LINE_STOPPED, /* by a signal */
    LINE_FAILED,  /* *err */
};

void line_reader_init(struct line_reader *l, int fd, size_t max);
void line_reader_done(struct line_reader *l);
enum line_got line_reader_next(struct line_reader *l, bool wait, struct str *ret_line, struct tide_err *err) MUST_CHECK;

#endif
