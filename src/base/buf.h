/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are ours and grow, never past `max`. A write that would is dropped and remembered (`failed`): write
 * freely, check once at the end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
    char *ptr;
    size_t len, cap, max;
    bool failed; /* something did not fit */
};

#define BUF_INIT(max_bytes)                                                                                            \
    {                                                                                                                  \
        NULL, 0, 0, (max_bytes), false                                                                                 \
    }

bool buf_grow(struct buf *b, size_t n); /* makes room; false: it would pass max */
static inline bool buf_fits(const struct buf *b, size_t n)
{
    return !b->failed && n <= b->cap - b->len;
}
static inline void buf_add(struct buf *b, const void *bytes, size_t n)
{
    if (n == 0 || (!buf_fits(b, n) && !buf_grow(b, n)))
        return;
    memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
}
static inline void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.ptr, s.len);
}
static inline void buf_add_char(struct buf *b, char c)
{
    if (buf_fits(b, 1) || buf_grow(b, 1))
        b->ptr[b->len++] = c;
}
void buf_add_int(struct buf *b, int64_t value);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *buf_reserve(struct buf *b, size_t n); /* room for n more bytes at ptr+len; NULL when it would pass max */
void buf_clear(struct buf *b);              /* keeps the memory */
void buf_done(struct buf *b);
const char *buf_cstr(struct buf *b); /* NUL-terminated view; the NUL is not counted in len */
char *buf_take(struct buf *b);       /* the NUL-terminated bytes, now the caller's (free) */

/* Everything from `fd`, or of the file, to its end: 0, or errno. More than fits into `max` sets `failed`, and ends the reading. */
int buf_read_fd(struct buf *b, int fd) __attribute__((warn_unused_result));
int buf_read_file(struct buf *b, const char *path) __attribute__((warn_unused_result));

/* All of it, also where the descriptor does not block: 0, or errno. */
int fd_write(int fd, struct str bytes);

static inline struct str buf_view(const struct buf *b)
{
    return (struct str){b->ptr ? b->ptr : "", b->len};
}

#endif
