/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of a buffer that grows with the longest line, up to a bound; reading and grepping share it. */
#include "agent/file_lines.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"

#define PIECE ((size_t)64 << 10)
#define LOOK 8192 /* bytes that decide whether a file is binary */

void file_lines_init(struct file_lines *l, int fd)
{
    *l = (struct file_lines){.fd = fd};
}

void file_lines_next_file(struct file_lines *l, int fd)
{
    *l = (struct file_lines){.fd = fd, .ptr = l->ptr, .cap = l->cap, .kept = l->kept};
}

void file_lines_done(struct file_lines *l)
{
    free(l->ptr);
    free(l->kept);
    l->ptr = l->kept = NULL;
}

/* More bytes behind those that are there; false when there are none. */
static bool fill_buffer(struct file_lines *l)
{
    size_t want = l->number ? PIECE : LOOK; /* most files that are only looked at are binary */
    ssize_t n;

    if (l->ended)
        return false;
    if (l->from > 0) {
        memmove(l->ptr, l->ptr + l->from, l->to - l->from);
        l->to -= l->from;
        l->from = 0;
    }
    if (l->cap - l->to < PIECE) {
        l->cap = l->cap ? 2 * l->cap : 2 * PIECE;
        l->ptr = mem_grow(l->ptr, l->cap);
    }
    do {
        n = read(l->fd, l->ptr + l->to, want);
    } while (n < 0 && errno == EINTR);
    l->errnum = n < 0 ? errno : 0;
    l->ended = n <= 0;
    l->to += n > 0 ? (size_t)n : 0;
    return n > 0;
}

bool file_lines_binary(struct file_lines *l)
{
    while (l->to - l->from < LOOK && fill_buffer(l))
        ;
    return l->to > l->from && memchr(l->ptr + l->from, '\0', l->to - l->from < LOOK ? l->to - l->from : LOOK);
}

/* Passes over the rest of a line whose beginning fills the bound. */
static void skip_rest(struct file_lines *l)
{
    for (;;) {
        const char *end = l->to > l->from ? memchr(l->ptr + l->from, '\n', l->to - l->from) : NULL;

        l->cut += end ? (size_t)(end - (l->ptr + l->from)) : l->to - l->from;
        l->from = end ? (size_t)(end - l->ptr) + 1 : l->to;
        l->closed = end != NULL;
        if (end || !fill_buffer(l))
            return;
    }
}

bool file_lines_next(struct file_lines *l, struct str *ret_line)
{
    size_t seen = 0;

    l->cut = 0;
    l->number++;
    for (;;) {
        size_t have = l->to - l->from;
        const char *at = l->ptr + l->from, *end = have > seen ? memchr(at + seen, '\n', have - seen) : NULL;

        if (end || (have < FILE_LINE_MAX && !fill_buffer(l))) {
            if (!end && (have == 0 || l->errnum))
                return false;
            have = end ? (size_t)(end - at) : have;
            *ret_line = (struct str){l->ptr + l->from, have < FILE_LINE_MAX ? have : FILE_LINE_MAX};
            l->cut = have - ret_line->len;
            l->closed = end != NULL;
            l->from += have + l->closed; /* the newline is none of its bytes */
            return true;
        }
        if (have >= FILE_LINE_MAX) {
            if (!l->kept)
                l->kept = mem_alloc(FILE_LINE_MAX);
            memcpy(l->kept, at, FILE_LINE_MAX); /* the rest of it flows through the same buffer */
            l->from += FILE_LINE_MAX;
            skip_rest(l);
            *ret_line = (struct str){l->kept, FILE_LINE_MAX};
            return true;
        }
        seen = have;
    }
}
