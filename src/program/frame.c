/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on a stream socket. Lengths are checked before anything is allocated for them. */
#include "program/frame.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#define KEEP_MAX ((size_t)1 << 20) /* memory that an idle reader keeps */

struct lengths {
    size_t json, blob;
};

static struct lengths lengths_of(const char head[FRAME_HEAD])
{
    uint32_t n[2];

    memcpy(n, head, sizeof(n));
    return (struct lengths){le32toh(n[0]), le32toh(n[1])};
}

/* Bytes that the frame being gathered still needs; 0 with *ret_got set when it needs none. */
static size_t missing(const struct frame_reader *r, enum frame_got *ret_got)
{
    struct lengths n;

    *ret_got = FRAME_LATER;
    if (r->bytes.len < FRAME_HEAD)
        return FRAME_HEAD - r->bytes.len;
    n = lengths_of(r->bytes.ptr);
    if (n.json < 2 || n.json > FRAME_JSON_MAX || n.blob > FRAME_BLOB_MAX) {
        *ret_got = FRAME_BAD;
        return 0;
    }
    if (r->bytes.len == FRAME_HEAD + n.json + n.blob)
        *ret_got = FRAME_HERE;
    return FRAME_HEAD + n.json + n.blob - r->bytes.len;
}

#define PIECE ((size_t)256 << 10)
#define FIRST_PIECE ((size_t)2 << 10) /* an announced length is no reason to make room for it */

static enum frame_got read_piece(struct frame_reader *r, int fd, size_t max)
{
    enum frame_got got;
    size_t need = missing(r, &got), piece = need < max ? need : max;
    char *room = need ? buf_reserve(&r->bytes, piece) : NULL;
    ssize_t n;

    if (!room)
        return got == FRAME_LATER ? FRAME_BAD : got;
    n = read(fd, room, piece);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? FRAME_LATER : FRAME_END;
    if (n == 0)
        return FRAME_END;
    r->bytes.len += (size_t)n;
    missing(r, &got);
    return got;
}

/* The lengths come first: what they announce is mostly there with them. */
enum frame_got frame_read(struct frame_reader *r, int fd)
{
    enum frame_got got = read_piece(r, fd, PIECE);

    return got == FRAME_LATER && r->bytes.len == FRAME_HEAD ? read_piece(r, fd, FIRST_PIECE) : got;
}

enum frame_got frame_look(const struct frame_reader *r, struct frame *ret_frame)
{
    enum frame_got got;
    struct lengths n;

    missing(r, &got);
    if (got != FRAME_HERE)
        return got;
    n = lengths_of(r->bytes.ptr);
    ret_frame->json = (struct str){r->bytes.ptr + FRAME_HEAD, n.json};
    ret_frame->blob = (struct str){r->bytes.ptr + FRAME_HEAD + n.json, n.blob};
    return got;
}

void frame_drop(struct frame_reader *r)
{
    if (r->bytes.cap > KEEP_MAX)
        frame_reader_done(r);
    buf_clear(&r->bytes);
}

void frame_reader_done(struct frame_reader *r)
{
    size_t max = r->bytes.max;

    buf_done(&r->bytes);
    r->bytes = (struct buf)BUF_INIT(max);
}

void frame_head(unsigned char out[FRAME_HEAD], size_t json_len, size_t blob_len)
{
    uint32_t n[2] = {htole32((uint32_t)json_len), htole32((uint32_t)blob_len)};

    memcpy(out, n, sizeof(n));
}

void frame_put(struct buf *out, struct str json, struct str blob)
{
    unsigned char head[FRAME_HEAD];

    frame_head(head, json.len, blob.len);
    buf_add(out, head, sizeof(head));
    buf_add_str(out, json);
    buf_add_str(out, blob);
}
