/* SPDX-License-Identifier: Apache-2.0 */
/* A file line by line in bounded memory: a longer line is cut, and marked as cut. */
#ifndef AGENT_FILE_LINES_H
#define AGENT_FILE_LINES_H

#include "base/str.h"

#define FILE_LINE_MAX ((size_t)1 << 20)

struct file_lines {
    int fd;
    char *ptr, *kept;
    size_t from, to, cap; /* what is read and not handed out */
    bool ended;
    int errnum; /* of a read that failed: then no more lines come; 0: none */

    /* of the last line */
    int64_t number; /* from 1 */
    size_t cut;     /* bytes of it that were left out */
    bool closed;    /* it ended with a newline */
};

void file_lines_init(struct file_lines *l, int fd);      /* does not own fd */
void file_lines_next_file(struct file_lines *l, int fd); /* the same, keeping the memory of the one before */
void file_lines_done(struct file_lines *l);

/* Whether the beginning has a NUL. To be asked before the first line. */
bool file_lines_binary(struct file_lines *l);

/* The next line without its newline; lives until the next call. False at the end. */
bool file_lines_next(struct file_lines *l, struct str *ret_line);

#endif
