/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: they grow, stop at their bound, and remember that they did. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"

static void it_grows_by_every_kind_of_write(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1000);

    (void)state;
    buf_add(&b, "ab", 2);
    buf_add_str(&b, STR("c\0d"));
    buf_add_char(&b, '!');
    buf_add_int(&b, -17);
    buf_addf(&b, "<%s %d>", "x", 5);
    assert_int_equal(b.len, 14);
    assert_memory_equal(b.ptr, "abc\0d!-17<x 5>", 14);
    assert_false(b.failed);
}

static void integers_print_like_printf(void **state)
{
    static const int64_t rows[] = {0, 1, -1, 9, 10, -10, 1234567890123, INT64_MAX, INT64_MIN, INT64_MIN + 1};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO(buf_done) struct buf b = BUF_INIT(100);
        char want[32];

        snprintf(want, sizeof(want), "%lld", (long long)rows[i]);
        buf_add_int(&b, rows[i]);
        assert_string_equal(buf_cstr(&b), want);
    }
}

static void exactly_max_fits_and_one_more_does_not(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(5);

    (void)state;
    buf_add(&b, "12345", 5);
    assert_false(b.failed);
    assert_string_equal(buf_cstr(&b), "12345");
    buf_add_char(&b, '6');
    assert_true(b.failed);
    assert_string_equal(buf_cstr(&b), "12345");
}

static void a_write_that_does_not_fit_is_dropped_whole_and_ends_all_writing(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(4);

    (void)state;
    buf_add(&b, "ab", 2);
    buf_addf(&b, "%s", "cde");
    buf_add_char(&b, 'f');
    buf_add_int(&b, 1);
    assert_true(b.failed);
    assert_null(buf_reserve(&b, 1));
    assert_string_equal(buf_cstr(&b), "ab");
}

static void clearing_keeps_the_memory_and_forgets_the_failure(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(4);
    char *before;

    (void)state;
    buf_add(&b, "abcd", 4);
    buf_add_char(&b, 'e');
    before = b.ptr;
    buf_clear(&b);
    assert_false(b.failed);
    buf_add(&b, "wxyz", 4);
    assert_ptr_equal(b.ptr, before);
    assert_string_equal(buf_cstr(&b), "wxyz");
}

static void reserving_gives_room_behind_the_content(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(5000);
    char *at;

    (void)state;
    buf_add(&b, "head", 4);
    at = buf_reserve(&b, 4096);
    assert_non_null(at);
    memset(at, 'x', 4096);
    b.len += 4096;
    assert_memory_equal(b.ptr, "headx", 5);
    assert_null(buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
}

static void sizes_near_the_end_of_the_address_space_fail(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(SIZE_MAX);

    (void)state;
    buf_add_char(&b, 'a');
    assert_null(buf_reserve(&b, SIZE_MAX));
    buf_clear(&b);
    assert_null(buf_reserve(&b, SIZE_MAX - 1));
}

static void an_empty_buffer_has_an_empty_text(void **state)
{
    struct buf b = BUF_INIT(0);
    char *taken;

    (void)state;
    assert_int_equal(buf_view(&b).len, 0);
    assert_non_null(buf_view(&b).ptr);
    assert_string_equal(buf_cstr(&b), "");
    buf_add(&b, NULL, 0);
    assert_false(b.failed);
    taken = buf_take(&b);
    assert_string_equal(taken, "");
    free(taken);
    buf_done(NULL);
}

static void taking_moves_the_bytes_out(void **state)
{
    struct buf b = BUF_INIT(10);
    char *taken;

    (void)state;
    buf_add(&b, "mine", 4);
    taken = buf_take(&b);
    assert_string_equal(taken, "mine");
    assert_null(b.ptr);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.max, 10);
    free(taken);
}

static void a_buffer_that_only_had_its_text_asked_for_still_grows(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(100);

    (void)state;
    assert_string_equal(buf_cstr(&b), "");
    buf_add(&b, "later", 5);
    assert_string_equal(buf_cstr(&b), "later");
}

static void a_file_is_read_whole_or_fails(void **state)
{
    AUTO(buf_done) struct buf whole = BUF_INIT(100000), small = BUF_INIT(49999), none = BUF_INIT(10);
    int fd[2];

    (void)state;
    for (int i = 0; i < 50000; i++)
        buf_add_char(&whole, (char)i);
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], whole.ptr, 50000), 50000);
    close(fd[1]);
    buf_clear(&whole);
    assert_int_equal(buf_read_fd(&whole, fd[0]), 0);
    close(fd[0]);
    assert_int_equal(whole.len, 50000);
    assert_int_equal(whole.ptr[49999], (char)49999);
    assert_int_equal(buf_read_file(&small, "/proc/self/exe"), 0);
    assert_true(small.failed && small.len <= 49999);
    assert_int_equal(buf_read_file(&none, "/nowhere/at/all"), ENOENT);
    assert_int_equal(buf_read_file(&none, "/"), EISDIR);
    assert_int_equal(buf_read_file(&none, "/dev/null"), 0);
    assert_true(!none.failed && none.len == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_by_every_kind_of_write),
        cmocka_unit_test(integers_print_like_printf),
        cmocka_unit_test(exactly_max_fits_and_one_more_does_not),
        cmocka_unit_test(a_write_that_does_not_fit_is_dropped_whole_and_ends_all_writing),
        cmocka_unit_test(clearing_keeps_the_memory_and_forgets_the_failure),
        cmocka_unit_test(reserving_gives_room_behind_the_content),
        cmocka_unit_test(sizes_near_the_end_of_the_address_space_fail),
        cmocka_unit_test(an_empty_buffer_has_an_empty_text),
        cmocka_unit_test(taking_moves_the_bytes_out),
        cmocka_unit_test(a_buffer_that_only_had_its_text_asked_for_still_grows),
        cmocka_unit_test(a_file_is_read_whole_or_fails),
    };

    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
