/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes into the socket between a run and what is inside it, in pieces of any size (the first byte says which): the
 * reader hands out the frames that are there and no others, never reads past one, and names what cannot be one. What a step
 * printed comes back from its record byte for byte; a record that somebody else made is harmless.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "program/frame.h"
#include "program/result.h"

/* What has not been handed out, and how much of it is in the socket. */
struct stream {
    struct str left;
    size_t sent;
};

/* What the reader has to say about the bytes it can have seen. */
static enum frame_got expect(const struct stream *s, struct frame *ret)
{
    uint32_t n[2];

    if (s->sent < FRAME_HEAD)
        return FRAME_LATER;
    memcpy(n, s->left.ptr, sizeof n);
    n[0] = le32toh(n[0]);
    n[1] = le32toh(n[1]);
    if (n[0] < 2 || n[0] > FRAME_JSON_MAX || n[1] > FRAME_BLOB_MAX)
        return FRAME_BAD;
    ret->json = (struct str){s->left.ptr + FRAME_HEAD, n[0]};
    ret->blob = (struct str){s->left.ptr + FRAME_HEAD + n[0], n[1]};
    return s->sent < FRAME_HEAD + (size_t)n[0] + n[1] ? FRAME_LATER : FRAME_HERE;
}

static void check_result(const struct frame *f)
{
    struct arena a = ARENA_INIT;
    struct buf json = BUF_INIT(RESULT_MAX_BYTES);
    struct str output;
    int status;

    result_write(&json, 3, f->blob);
    MUST(result_read(&a, buf_view(&json), &status, &output, NULL) == TIDE_OK);
    MUST(status == 3 && str_eq(output, f->blob));
    (void)!result_read(&a, f->json, &status, &output, &(struct tide_err){0});
    buf_done(&json);
    arena_done(&a);
}

static void check_frame(const struct frame_reader *r, struct stream *s)
{
    struct frame want, got;
    struct buf again = BUF_INIT(SIZE_MAX / 4);

    MUST(expect(s, &want) == FRAME_HERE && frame_look(r, &got) == FRAME_HERE);
    MUST(str_eq(want.json, got.json) && str_eq(want.blob, got.blob));
    frame_put(&again, got.json, got.blob);
    MUST(again.len <= s->sent && memcmp(again.ptr, s->left.ptr, again.len) == 0);
    check_result(&got);
    s->left = (struct str){s->left.ptr + again.len, s->left.len - again.len};
    s->sent -= again.len;
    buf_done(&again);
}

/* Reads until the socket has no more; false when what comes cannot be a frame. */
static bool drain(struct frame_reader *r, int fd, struct stream *s)
{
    struct frame ignored;

    for (;;) {
        size_t before = r->bytes.len;
        enum frame_got got = frame_read(r, fd);

        if (got == FRAME_BAD) {
            MUST(expect(s, &ignored) == FRAME_BAD);
            return false;
        }
        if (got == FRAME_HERE) {
            check_frame(r, s);
            frame_drop(r);
        } else if (r->bytes.len == before) {
            MUST(got == FRAME_LATER && expect(s, &ignored) == FRAME_LATER);
            return true;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_reader r = FRAME_READER_INIT;
    struct stream s = {{(const char *)data + 1, size ? size - 1 : 0}, 0};
    size_t piece = size ? data[0] + (size_t)1 : 1, at = 0, total = s.left.len;
    bool good = true;
    int pair[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    while (good && at < total) {
        size_t n = total - at < piece ? total - at : piece;

        MUST(send(pair[0], data + 1 + at, n, MSG_NOSIGNAL) == (ssize_t)n);
        at += n;
        s.sent += n;
        good = drain(&r, pair[1], &s);
    }
    close(pair[0]);
    MUST(!good || frame_read(&r, pair[1]) == FRAME_END);
    close(pair[1]);
    frame_reader_done(&r);
    return 0;
}
