/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the answer of a server, in pieces of any size (the first byte says which): what is read is the same as in one piece, and
 * never more than the limits allow.
 */
#include "fuzz.h"
#include "net/http_reply.h"

#define LIMIT 4096

static enum tide_code feed(struct http_reply *r, struct str text, size_t piece, size_t *ret_used)
{
    struct tide_err err = {0};

    *ret_used = 0;
    while (*ret_used < text.len && !http_reply_is_over(r)) {
        struct str part = {text.ptr + *ret_used, text.len - *ret_used};
        size_t used = 0;

        part.len = part.len < piece ? part.len : piece;
        if (http_reply_feed(r, part, &used, &err))
            return err.code;
        MUST(used == part.len || http_reply_is_over(r));
        *ret_used += used;
    }
    return http_reply_is_over(r) ? TIDE_OK : http_reply_end(r, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_reply whole, pieces;
    enum tide_code one, other;
    size_t used, used_in_pieces;
    struct str text;

    if (!size)
        return 0;
    text = (struct str){(const char *)data + 1, size - 1};
    http_reply_init(&whole, LIMIT, LIMIT);
    http_reply_init(&pieces, LIMIT, LIMIT);
    one = feed(&whole, text, SIZE_MAX, &used);
    other = feed(&pieces, text, 1 + data[0], &used_in_pieces);
    MUST(one == other);
    MUST(whole.body.len <= LIMIT && whole.head.len <= LIMIT);
    if (!one) {
        MUST(used == used_in_pieces && whole.status == pieces.status && whole.stays == pieces.stays);
        MUST(str_eq(buf_view(&whole.body), buf_view(&pieces.body)));
    }
    http_reply_done(&whole);
    http_reply_done(&pieces);
    return 0;
}
