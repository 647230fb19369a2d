/* SPDX-License-Identifier: Apache-2.0 */
/* Events out of bytes: line ends, comments, several lines, limits; and the same events however the bytes are cut. */
#include "agent/sse.h"
#include "kit.h"

/* Events as lines: [name|data] with line ends shown. */
static enum tide_code note(void *arg, struct str name, struct str data)
{
    buf_addf(arg, "[%.*s|%.*s]", STR_ARG(name), STR_ARG(data));
    return TIDE_OK;
}

static void feed_in(size_t step, struct str bytes, struct buf *out)
{
    struct sse s = SSE_INIT;

    for (size_t at = 0; at < bytes.len; at += step) {
        size_t n = bytes.len - at < step ? bytes.len - at : step;

        assert_int_equal(sse_feed(&s, (struct str){bytes.ptr + at, n}, note, out), TIDE_OK);
    }
    sse_done(&s);
}

static void check(const char *name, struct str bytes, const char *want)
{
    for (size_t step = 1; step <= bytes.len; step++) {
        struct buf out = BUF_INIT(65536);

        feed_in(step, bytes, &out);
        if (strcmp(buf_cstr(&out), want) != 0)
            fail_msg("%s in steps of %zu: want %s, got %s", name, step, want, buf_cstr(&out));
        buf_done(&out);
    }
}

static void events_come_out_whatever_the_line_ends_and_cuts(void **state)
{
    static const struct {
        const char *name, *bytes, *want;
    } rows[] = {
        {"line feeds", "event: a\ndata: 1\n\ndata: 2\n\n", "[a|1][|2]"},
        {"carriage returns", "event: a\rdata: 1\r\rdata: 2\r\r", "[a|1][|2]"},
        {"both", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", "[a|1][|2]"},
        {"mixed", "data: 1\r\n\ndata: 2\n\r\ndata: 3\r\r\n", "[|1][|2][|3]"},
        {"several lines", "data: a\ndata:\ndata: b\n\n", "[|a\n\nb]"},
        {"comments", ": hello\n\n:\ndata: 1\n: more\n\n", "[|1]"},
        {"one space goes", "data:  two\n\ndata:none\n\n", "[| two][|none]"},
        {"no colon", "data\n\n", "[|]"},
        {"unknown fields", "id: 7\nretry: 10\nwhat: ever\ndata: 1\nlone\n\n", "[|1]"},
        {"a name alone is no event", "event: a\n\ndata: 1\n\n", "[|1]"},
        {"the last name counts", "event: a\nevent: b\ndata: 1\n\n", "[b|1]"},
        {"a byte order mark goes, once",
         "\xef\xbb\xbf"
         "data: 1\n\n\xef\xbb\xbf"
         "data: 2\n\n",
         "[|1]"},
        {"what is not finished stays inside", "data: 1\n\ndata: 2\n", "[|1]"},
        {"colons in data", "data: a:b: c\n\n", "[|a:b: c]"},
        {"nothing", "\n\n\n\r\r\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(rows[i].name, str_from(rows[i].bytes), rows[i].want);
}

static void bytes_that_are_no_text_pass_through(void **state)
{
    struct str bytes = {"data: \0\xff\x80\n\n", 11};
    struct sse s = SSE_INIT;
    struct buf out = BUF_INIT(100);

    (void)state;
    assert_int_equal(sse_feed(&s, bytes, note, &out), TIDE_OK);
    assert_int_equal(out.len, 3); /* printf stops at the NUL, nothing else does */
    sse_done(&s);
    buf_done(&out);
}

static enum tide_code refuse(void *arg, struct str name, struct str data)
{
    (void)name;
    (void)data;
    ++*(int *)arg;
    return TIDE_CANCELLED;
}

static void the_listener_ends_the_reading(void **state)
{
    struct sse s = SSE_INIT;
    int calls = 0;

    (void)state;
    assert_int_equal(sse_feed(&s, STR("data: 1\n\ndata: 2\n\n"), refuse, &calls), TIDE_CANCELLED);
    assert_int_equal(calls, 1);
    sse_done(&s);
}

/* Feeds `piece` until it is refused; how many bytes were taken. */
static size_t feed_until_refused(struct str piece)
{
    struct buf out = BUF_INIT(10);
    struct sse s = SSE_INIT;
    size_t taken = 0;

    while (taken <= 2 * SSE_MAX_EVENT && sse_feed(&s, piece, note, &out) == TIDE_OK)
        taken += piece.len;
    assert_true(s.line.cap <= 2 * SSE_MAX_EVENT && s.data.cap <= 2 * SSE_MAX_EVENT);
    sse_done(&s);
    buf_done(&out);
    return taken;
}

static void a_line_or_event_without_end_is_refused(void **state)
{
    static char piece[65536];

    (void)state;
    memset(piece, 'x', sizeof piece);
    assert_in_range(feed_until_refused((struct str){piece, sizeof piece}), SSE_MAX_EVENT - sizeof piece, SSE_MAX_EVENT);
    memcpy(piece, "data:", 5);
    piece[sizeof piece - 1] = '\n';
    assert_in_range(feed_until_refused((struct str){piece, sizeof piece}), SSE_MAX_EVENT - sizeof piece,
                    SSE_MAX_EVENT + (SSE_MAX_EVENT >> 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_out_whatever_the_line_ends_and_cuts),
        cmocka_unit_test(bytes_that_are_no_text_pass_through),
        cmocka_unit_test(the_listener_ends_the_reading),
        cmocka_unit_test(a_line_or_event_without_end_is_refused),
    };

    return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
