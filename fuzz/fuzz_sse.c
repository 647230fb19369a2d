/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an event stream: at once, byte by byte, and cut where the input itself says; the same events must come out,
 * and none may hold a line end that the stream did not put there.
 */
#include "agent/sse.h"
#include "fuzz.h"

static enum tide_code note(void *arg, struct str name, struct str data)
{
    struct buf *out = arg;

    MUST(!memchr(name.ptr, '\n', name.len) && !memchr(name.ptr, '\r', name.len) && !memchr(data.ptr, '\r', data.len));
    buf_add_int(out, (int64_t)name.len);
    buf_add_char(out, ',');
    buf_add_int(out, (int64_t)data.len);
    buf_add_char(out, ':');
    buf_add_str(out, name);
    buf_add_str(out, data);
    return TIDE_OK;
}

/* The pieces are as long as the bytes say, or one each. */
static void feed(struct buf *out, struct str bytes, bool single)
{
    struct sse s = SSE_INIT;

    while (bytes.len > 0) {
        size_t n = single ? 1 : 1 + (unsigned char)bytes.ptr[0] % 32;

        n = n < bytes.len ? n : bytes.len;
        MUST(sse_feed(&s, (struct str){bytes.ptr, n}, note, out) == TIDE_OK);
        bytes = (struct str){bytes.ptr + n, bytes.len - n};
    }
    sse_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = BUF_INIT(1 << 24), single = BUF_INIT(1 << 24), pieces = BUF_INIT(1 << 24);
    struct str bytes = {(const char *)data, size};
    struct sse s = SSE_INIT;

    MUST(sse_feed(&s, bytes, note, &whole) == TIDE_OK);
    sse_done(&s);
    feed(&single, bytes, true);
    feed(&pieces, bytes, false);
    MUST(str_eq(buf_view(&whole), buf_view(&single)) && str_eq(buf_view(&whole), buf_view(&pieces)));
    buf_done(&whole);
    buf_done(&single);
    buf_done(&pieces);
    return 0;
}
