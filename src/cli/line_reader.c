/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer holds what was read and not yet handed out. A line that outgrows the bound is refused while it is being read,
 * so that a peer cannot make us hold more. Bytes are searched for the newline once.
 */
#include "cli/line_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "terminal/progress.h"

#define CHUNK ((size_t)64 << 10)

void line_reader_init(struct line_reader *l, int fd, size_t max)
{
    *l = (struct line_reader){.fd = fd, .max = max, .buf = BUF_INIT(max + 2 * CHUNK)};
}

void line_reader_done(struct line_reader *l)
{
    buf_done(&l->buf);
}

static bool take_line(struct line_reader *l, struct str *ret_line)
{
    size_t have = l->buf.len - l->at;
    const char *begin = l->buf.ptr ? l->buf.ptr + l->at : "";
    const char *newline = have > l->scanned ? memchr(begin + l->scanned, '\n', have - l->scanned) : NULL;

    l->scanned = newline ? 0 : have;
    if (!newline && !(l->ended && have > 0))
        return false;
    *ret_line = (struct str){begin, newline ? (size_t)(newline - begin) : have};
    l->at += ret_line->len + (newline != NULL);
    l->scanned = 0;
    l->number++;
    return true;
}

/* LINE_HERE: more bytes are in the buffer, or the end was seen. */
static enum line_got read_more(struct line_reader *l, bool wait, struct tide_err *err)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    char *room;
    ssize_t n;

    if (stop_signal)
        return LINE_STOPPED;
    if (!wait && poll(&p, 1, 0) == 0)
        return LINE_LATER;
    if (wait && !await_any(&p, 1, -1))
        return stop_signal ? LINE_STOPPED : LINE_HERE;
    if (l->at > 0) {
        memmove(l->buf.ptr, l->buf.ptr + l->at, l->buf.len - l->at);
        l->buf.len -= l->at;
        l->at = 0;
    }
    room = buf_reserve(&l->buf, CHUNK);
    n = room ? read(l->fd, room, CHUNK) : 0;
    if (n < 0 && errno == EINTR)
        return stop_signal ? LINE_STOPPED : LINE_HERE;
    if (n < 0) {
        tide_fail_errno(err, errno, "read standard input");
        return LINE_FAILED;
    }
    l->buf.len += (size_t)n;
    l->ended = n == 0;
    return LINE_HERE;
}

static enum line_got too_long(const struct line_reader *l, int64_t number, struct tide_err *err)
{
    tide_fail(err, TIDE_TOO_BIG,
              "line %" PRId64 ": longer than %zu bytes: raise TIDEMARK_MAX_RECORD_BYTES, or store less in one event",
              number, l->max);
    return LINE_FAILED;
}

enum line_got line_reader_next(struct line_reader *l, bool wait, struct str *ret_line, struct tide_err *err)
{
    while (!take_line(l, ret_line)) {
        enum line_got got;

        if (l->ended)
            return LINE_END;
        if (l->buf.len - l->at > l->max)
            return too_long(l, l->number + 1, err);
        got = read_more(l, wait, err);
        if (got != LINE_HERE)
            return got;
    }
    return ret_line->len > l->max ? too_long(l, l->number, err) : LINE_HERE;
}
