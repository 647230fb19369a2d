/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as a client reads them: the same whatever the pieces are in which they come, and nothing that is ambiguous. */
#include "kit.h"
#include "net/http_reply.h"

#define HEAD_MAX_BYTES 1024
#define BODY_MAX_BYTES 256

struct row {
    const char *name, *text;
    enum tide_code want; /* of feeding or of the end */
    int status;
    const char *body;
    bool stays;
};

static const struct row rows[] = {
    {"a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", TIDE_OK, 200, "hello", true},
    {"LF alone", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", TIDE_OK, 200, "hello", true},
    {"no length", "HTTP/1.1 200 OK\r\n\r\nhello", TIDE_OK, 200, "hello", false},
    {"no reason", "HTTP/1.1 200\r\ncontent-length:  2  \r\n\r\nhi", TIDE_OK, 200, "hi", true},
    {"an old version", "HTTP/1.0 404 No\r\nContent-Length: 0\r\n\r\n", TIDE_OK, 404, "", false},
    {"nothing", "HTTP/1.1 204 No Content\r\n\r\n", TIDE_OK, 204, "", true},
    {"closing", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", TIDE_OK, 200, "x", false},
    {"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n", TIDE_OK,
     200, "hello!", true},
    {"a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00a \r\n0123456789\r\n0\r\nX: y\r\n\r\n",
     TIDE_OK, 200, "0123456789", true},
    {"announced",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
     TIDE_OK, 200, "x", true},
    {"cut in the head", "HTTP/1.1 200 OK\r\nContent-", TIDE_IO, 0, NULL, false},
    {"cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", TIDE_IO, 200, NULL, false},
    {"cut between chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", TIDE_IO, 200, NULL,
     false},
    {"cut before the end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", TIDE_IO, 200, NULL, false},
    {"nothing at all", "", TIDE_IO, 0, NULL, false},
    {"no HTTP", "SSH-2.0-OpenSSH\r\n", TIDE_INVALID, 0, NULL, false},
    {"another version", "HTTP/2.0 200 OK\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"no status", "HTTP/1.1 2x0 OK\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"no colon", "HTTP/1.1 200 OK\r\nfield\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"a folded line", "HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"a blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", TIDE_INVALID, 0, NULL, false},
    {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", TIDE_INVALID, 0, NULL,
     false},
    {"a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", TIDE_INVALID, 0, NULL, false},
    {"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"a signed length", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", TIDE_INVALID, 0, NULL, false},
    {"a length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     TIDE_INVALID, 0, NULL, false},
    {"an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"two codings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n", TIDE_INVALID, 0,
     NULL, false},
    {"a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nx\r\n", TIDE_INVALID, 0, NULL,
     false},
    {"a chunk of a huge size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
     TIDE_INVALID, 0, NULL, false},
    {"a chunk that is longer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", TIDE_INVALID, 0,
     NULL, false},
    {"another protocol", "HTTP/1.1 101 Switching Protocols\r\n\r\n", TIDE_INVALID, 0, NULL, false},
    {"too long", "HTTP/1.1 200 OK\r\nContent-Length: 257\r\n\r\n", TIDE_TOO_BIG, 0, NULL, false},
};

static enum tide_code feed_in_pieces(struct http_reply *r, struct str text, size_t piece, struct tide_err *err)
{
    while (text.len && !http_reply_is_over(r)) {
        struct str part = {text.ptr, piece < text.len ? piece : text.len};
        size_t used = 0;

        if (http_reply_feed(r, part, &used, err))
            return err->code;
        assert_true(used == part.len || http_reply_is_over(r));
        text = (struct str){text.ptr + used, text.len - used};
    }
    assert_int_equal(text.len, 0);
    return http_reply_is_over(r) ? TIDE_OK : http_reply_end(r, err);
}

static void an_answer_is_read_in_any_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece <= strlen(rows[i].text) + 1; piece++) {
            const struct row *row = &rows[i];
            struct http_reply r;
            struct tide_err err = {0};
            enum tide_code code;

            http_reply_init(&r, HEAD_MAX_BYTES, BODY_MAX_BYTES);
            code = feed_in_pieces(&r, str_from(row->text), piece, &err);
            if (code != row->want)
                print_error("%s, in pieces of %zu: %s\n", row->name, piece, err.msg);
            assert_int_equal(code, row->want);
            if (!code) {
                assert_int_equal(r.status, row->status);
                assert_string_equal(buf_cstr(&r.body), row->body);
                assert_int_equal(r.stays, row->stays);
            }
            http_reply_done(&r);
        }
}

static void what_has_no_end_is_refused(void **state)
{
    static const struct {
        const char *begin, *more;
        enum tide_code want;
    } endless[] = {
        {"HTTP/1.1 200 OK\r\n", "A: b\r\n", TIDE_TOO_BIG},
        {"HTTP/1.1 200 OK", "k", TIDE_TOO_BIG},
        {"", "HTTP/1.1 100 Continue\r\n\r\n", TIDE_INVALID},
        {"HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxx", TIDE_TOO_BIG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", TIDE_TOO_BIG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0", TIDE_INVALID},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n", TIDE_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
        struct http_reply r;
        struct tide_err err = {0};
        size_t used, n = 0;

        http_reply_init(&r, HEAD_MAX_BYTES, BODY_MAX_BYTES);
        assert_int_equal(http_reply_feed(&r, str_from(endless[i].begin), &used, &err), TIDE_OK);
        while (!http_reply_feed(&r, str_from(endless[i].more), &used, &err))
            assert_true(n++ < 10000);
        assert_int_equal(err.code, endless[i].want);
        http_reply_done(&r);
    }
}

static bool take_two(void *arg, struct str bytes)
{
    buf_add_str(arg, bytes);
    return ((struct buf *)arg)->len < 2;
}

static void who_takes_pieces_ends_the_reading(void **state)
{
    struct buf got = BUF_INIT(100);
    struct http_reply r;
    struct tide_err err;
    size_t used;

    (void)state;
    http_reply_init(&r, HEAD_MAX_BYTES, 0);
    r.take = take_two;
    r.arg = &got;
    assert_int_equal(
        http_reply_feed(&r, STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n"),
                        &used, &err),
        TIDE_OK);
    assert_true(http_reply_is_over(&r) && r.stopped && !r.stays);
    assert_string_equal(buf_cstr(&got), "ab");
    buf_done(&got);
    http_reply_done(&r);
}

static void a_field_is_found_whatever_its_case(void **state)
{
    struct http_reply r;
    struct tide_err err;
    size_t used;

    (void)state;
    http_reply_init(&r, HEAD_MAX_BYTES, BODY_MAX_BYTES);
    assert_int_equal(http_reply_feed(&r,
                                     STR("HTTP/1.1 200 OK\r\nCONTENT-type:\t a/b \r\nContent-Length: 0\r\n\r\nrest"),
                                     &used, &err),
                     TIDE_OK);
    assert_true(str_eq(http_reply_field(&r, "Content-Type"), STR("a/b")));
    assert_null(http_reply_field(&r, "Content").ptr);
    assert_int_equal(used, strlen("HTTP/1.1 200 OK\r\nCONTENT-type:\t a/b \r\nContent-Length: 0\r\n\r\n"));
    http_reply_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_read_in_any_pieces),
        cmocka_unit_test(what_has_no_end_is_refused),
        cmocka_unit_test(who_takes_pieces_ends_the_reading),
        cmocka_unit_test(a_field_is_found_whatever_its_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
