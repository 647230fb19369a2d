/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading waits while a piece is still to be written. Our output may be shared with other processes, so it is not made
 * non-blocking; pipes and terminals are opened once more instead. What cannot be opened again gets no more at once than a
 * writable pipe is sure to take.
 */
#include "program/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "base/invariant.h"
#include "program/capture.h"

#define SURE 4096                  /* PIPE_BUF: what poll() promises room for */
#define FULL_MS 50                 /* a terminal may say that it has room and have too little */
#define REST_MAX ((size_t)8 << 20) /* more than any pipe holds */

static enum tide_code open_pty(struct relay *r, struct tide_err *err)
{
    struct winsize size;
    struct termios mode;

    if (openpty(&r->from, &r->child_end, NULL, NULL, NULL) != 0)
        return tide_fail_errno(err, errno, "open a pseudo-terminal");
    if (tcgetattr(r->child_end, &mode) == 0) {
        cfmakeraw(&mode); /* the real terminal does what is to be done with the bytes */
        tcsetattr(r->child_end, TCSANOW, &mode);
    }
    if (ioctl(r->to, TIOCGWINSZ, &size) == 0) {
        r->rows = size.ws_row;
        r->columns = size.ws_col;
        ioctl(r->from, TIOCSWINSZ, &size);
    }
    fcntl(r->from, F_SETFD, FD_CLOEXEC);
    fcntl(r->child_end, F_SETFD, FD_CLOEXEC);
    r->is_terminal = true;
    return TIDE_OK;
}

/*
 * The same pipe or terminal by a description of its own, on which writing does not block: a terminal that is held (Ctrl-S)
 * takes less than it promised. Not a file, whose place we share; nor /dev/ptmx, which would be another one. -1: none.
 */
static int open_again(int fd)
{
    struct stat st;
    char path[40];

    if (fstat(fd, &st) != 0 || (!S_ISFIFO(st.st_mode) && !isatty(fd)) ||
        (S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2)))
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static enum tide_code open_pipe(struct relay *r, struct tide_err *err)
{
    struct stat st;
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) != 0)
        return tide_fail_errno(err, errno, "open a pipe");
    r->from = pair[0];
    r->child_end = pair[1];
    r->is_file = fstat(r->to, &st) == 0 && S_ISREG(st.st_mode);
    return TIDE_OK;
}

enum tide_code relay_open(struct relay *r, int to, struct tide_err *err)
{
    *r = (struct relay){.from = -1, .to = to, .own = open_again(to), .child_end = -1, .rest = BUF_INIT(REST_MAX)};
    if (r->own >= 0)
        r->to = r->own;
    if (isatty(to) ? open_pty(r, err) : open_pipe(r, err))
        return err->code;
    fcntl(r->from, F_SETFL, fcntl(r->from, F_GETFL) | O_NONBLOCK);
    r->tail = mem_alloc(RELAY_TAIL);
    r->piece = mem_alloc(RELAY_PIECE);
    return TIDE_OK;
}

void relay_close_child_end(struct relay *r)
{
    if (r->child_end >= 0)
        close(r->child_end);
    r->child_end = -1;
}

static void end_relay(struct relay *r)
{
    if (r->from >= 0)
        close(r->from);
    r->from = -1;
}

void relay_done(struct relay *r)
{
    relay_close_child_end(r);
    end_relay(r);
    if (r->own > 0)
        close(r->own);
    r->own = -1;
    free(r->tail);
    free(r->piece);
    r->tail = r->piece = NULL;
    buf_done(&r->rest);
}

struct pollfd relay_wants(const struct relay *r)
{
    if (r->piece_at < r->piece_len)
        return (struct pollfd){.fd = monotonic_ms() < r->full_until ? -1 : r->to, .events = POLLOUT};
    return (struct pollfd){.fd = r->from, .events = POLLIN};
}

static void keep_bytes(struct relay *r, const char *bytes, size_t n)
{
    size_t skip = n > RELAY_TAIL ? n - RELAY_TAIL : 0;

    for (size_t i = skip; i < n;) {
        size_t at = (size_t)((r->bytes + i) % RELAY_TAIL), room = RELAY_TAIL - at;
        size_t some = n - i < room ? n - i : room;

        memcpy(r->tail + at, bytes + i, some);
        i += some;
    }
    r->bytes += n;
}

static void take_bytes(struct relay *r)
{
    ssize_t n;

    INVARIANT(r->piece_at == r->piece_len); /* else what is there would be lost */
    n = read(r->from, r->piece, RELAY_PIECE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* a pseudo-terminal that nobody has open gives EIO */
        end_relay(r);
        return;
    }
    keep_bytes(r, r->piece, (size_t)n);
    r->piece_at = 0;
    r->piece_len = (size_t)n;
}

/* A reader that has gone away is the program's affair: it gets what it would get without us, SIGPIPE. */
static void pass_on(struct relay *r)
{
    size_t left = r->piece_len - r->piece_at, some = r->is_file || left < SURE ? left : SURE;
    ssize_t n = write(r->to, r->piece + r->piece_at, some);

    if (n > 0)
        r->piece_at += (size_t)n;
    if (n < 0 && errno == EAGAIN)
        r->full_until = monotonic_ms() + FULL_MS;
    if (n >= 0 || errno == EAGAIN || errno == EINTR)
        return;
    r->reader_gone = true;
    r->piece_at = r->piece_len = 0;
    end_relay(r);
}

void relay_move(struct relay *r, short events)
{
    if (!events)
        return;
    if (r->piece_at < r->piece_len)
        pass_on(r);
    else if (r->from >= 0)
        take_bytes(r);
    while (r->is_file && r->piece_at < r->piece_len)
        pass_on(r);
}

/* What a pipe or a pseudo-terminal can hold bounds it: nobody fills it any more. */
void relay_drain(struct relay *r)
{
    buf_add(&r->rest, r->piece + r->piece_at, r->piece_len - r->piece_at);
    for (;;) {
        struct pollfd p = {.fd = r->from, .events = POLLIN};

        r->piece_at = r->piece_len = 0;
        if (r->from < 0 || r->rest.failed || poll(&p, 1, 0) <= 0)
            break;
        take_bytes(r);
        buf_add(&r->rest, r->piece, r->piece_len);
    }
    end_relay(r);
}

void relay_flush(struct relay *r, int signals)
{
    for (size_t at = 0; at < r->rest.len && !r->reader_gone;) {
        struct pollfd p[] = {{.fd = r->to, .events = POLLOUT}, {.fd = signals, .events = POLLIN}};
        size_t left = r->rest.len - at;
        ssize_t n;

        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        if (p[1].revents && capture_next_signal(signals))
            return;
        n = p[0].revents ? write(r->to, r->rest.ptr + at, left < SURE ? left : SURE) : 0;
        if (n < 0 && errno == EAGAIN)
            poll(p + 1, 1, FULL_MS);
        else if (n < 0 && errno != EINTR)
            return;
        at += n > 0 ? (size_t)n : 0;
    }
    buf_clear(&r->rest);
}

bool relay_resize(struct relay *r)
{
    struct winsize size;

    if (!r->is_terminal || r->from < 0 || ioctl(r->to, TIOCGWINSZ, &size) != 0 ||
        (size.ws_row == r->rows && size.ws_col == r->columns))
        return false;
    r->rows = size.ws_row;
    r->columns = size.ws_col;
    ioctl(r->from, TIOCSWINSZ, &size);
    return true;
}

void relay_tail(const struct relay *r, struct buf *ret_text)
{
    size_t n = r->bytes < RELAY_TAIL ? (size_t)r->bytes : RELAY_TAIL, at = (size_t)(r->bytes % RELAY_TAIL);

    if (r->bytes > RELAY_TAIL)
        buf_add(ret_text, r->tail + at, RELAY_TAIL - at);
    buf_add(ret_text, r->tail, r->bytes > RELAY_TAIL ? at : n);
}
