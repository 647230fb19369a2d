/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing bytes with a bound. Invariants: len <= cap <= max; the memory is cap + 1 bytes, so there is always room for
 * the NUL; once `failed`, nothing more is added, so the content stays a prefix of what was meant.
 */
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

#define CAP_MIN 64

bool buf_grow(struct buf *b, size_t n)
{
    size_t max = b->max < PTRDIFF_MAX ? b->max : PTRDIFF_MAX - 1, need, cap;

    if (b->failed || n > max - b->len) {
        b->failed = true;
        return false;
    }
    need = b->len + n;
    cap = b->cap ? 2 * b->cap : CAP_MIN;
    cap = cap < need ? need : cap;
    b->cap = cap < max ? cap : max;
    b->ptr = mem_grow(b->ptr, b->cap + 1);
    return true;
}

char *buf_reserve(struct buf *b, size_t n)
{
    return (b->ptr && buf_fits(b, n)) || buf_grow(b, n) ? b->ptr + b->len : NULL;
}

void buf_add_int(struct buf *b, int64_t value)
{
    char digits[20], *p = digits + sizeof(digits);
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--p = '-';
    buf_add(b, p, (size_t)(digits + sizeof(digits) - p));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    size_t room = b->ptr && !b->failed ? b->cap - b->len : 0;
    va_list args, again;
    char *at;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(room ? b->ptr + b->len : NULL, room ? room + 1 : 0, fmt, args); /* the NUL: in the spare byte */
    va_end(args);
    at = n > 0 ? buf_reserve(b, (size_t)n) : NULL;
    if (at && (size_t)n > room)
        vsnprintf(at, (size_t)n + 1, fmt, again);
    b->len += at ? (size_t)n : 0;
    va_end(again);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

void buf_done(struct buf *b)
{
    if (!b)
        return;
    free(b->ptr);
    *b = (struct buf)BUF_INIT(b->max);
}

const char *buf_cstr(struct buf *b)
{
    if (!b->ptr)
        b->ptr = mem_alloc(1); /* cap stays 0: this is its spare byte */
    b->ptr[b->len] = '\0';
    return b->ptr;
}

char *buf_take(struct buf *b)
{
    char *bytes;

    buf_cstr(b);
    bytes = TAKE(b->ptr);
    buf_done(b);
    return bytes;
}

int buf_read_fd(struct buf *b, int fd)
{
    char piece[16384];
    ssize_t n;
    int bad;

    do {
        n = read(fd, piece, sizeof(piece));
        buf_add(b, piece, n > 0 ? (size_t)n : 0);
    } while (!b->failed && (n > 0 || (n < 0 && errno == EINTR)));
    bad = n < 0 ? errno : 0;
    explicit_bzero(piece, sizeof(piece)); /* it may be a key */
    return bad;
}

int buf_read_file(struct buf *b, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), bad = fd < 0 ? errno : buf_read_fd(b, fd);

    if (fd >= 0)
        close(fd);
    return bad;
}

int fd_write(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);

        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000);
        else if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            bytes = (struct str){bytes.ptr + n, bytes.len - (size_t)n};
    }
    return 0;
}
