/* SPDX-License-Identifier: Apache-2.0 */
/* A log that is moved into its database: which pages reach the file, when, and in how many pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "env/wal_moves.h"

enum { HEAD = 24, PAGE = 4096, FRAME = HEAD + PAGE, PIECE = 64 * 1024, FRAMES = 50 };

static struct {
    sqlite3_file base;
    char bytes[FRAMES * FRAME];
    int writes, reads, rc;
} disk;

static struct wal_moves moves;

static int write_disk(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    assert_ptr_equal(file, &disk.base);
    assert_true(at + n <= (sqlite3_int64)sizeof disk.bytes);
    disk.writes++;
    if (!disk.rc)
        memcpy(disk.bytes + at, bytes, (size_t)n);
    return disk.rc;
}

static int read_disk(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    assert_ptr_equal(file, &disk.base);
    assert_true(at + n <=
                (sqlite3_int64)sizeof disk.bytes); /* never beyond the end: SQLite would take that for a short log */
    disk.reads++;
    if (!disk.rc)
        memcpy(out, disk.bytes + at, (size_t)n);
    return disk.rc;
}

static int turn(bool on)
{
    int value = on;

    wal_moves_switch(&moves, &value, sizeof disk.bytes);
    return value;
}

static int put_page(int page)
{
    char bytes[PAGE];

    memset(bytes, 'a' + page, sizeof bytes);
    return wal_moves_write(&moves, &disk.base, write_disk, bytes, PAGE, (sqlite3_int64)page * PAGE);
}

static int out(void)
{
    return wal_moves_out(&moves, &disk.base, write_disk);
}

static bool is_there(int page)
{
    return disk.bytes[page * PAGE] == 'a' + page && disk.bytes[(page + 1) * PAGE - 1] == 'a' + page;
}

static int begin(void **state)
{
    (void)state;
    memset(&disk, 0, sizeof disk);
    moves = (struct wal_moves){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    wal_moves_done(&moves);
    return 0;
}

static void pages_that_follow_each_other_are_one_write(void **state)
{
    (void)state;
    turn(true);
    for (int i = 3; i < 3 + PIECE / PAGE; i++)
        assert_int_equal(put_page(i), SQLITE_OK);
    assert_int_equal(disk.writes, 1);
    for (int i = 3; i < 3 + PIECE / PAGE; i++)
        assert_true(is_there(i));
}

static void one_that_does_not_follow_is_another_write(void **state)
{
    (void)state;
    turn(true);
    put_page(1);
    put_page(2);
    put_page(9);
    assert_int_equal(disk.writes, 1);
    assert_true(is_there(1) && is_there(2) && !is_there(9));
    assert_int_equal(out(), SQLITE_OK);
    assert_true(is_there(9));
    assert_int_equal(turn(false), 0);
}

static void nothing_is_held_back_while_it_is_off(void **state)
{
    (void)state;
    put_page(1);
    assert_true(is_there(1));
    turn(true);
    put_page(2);
    assert_int_equal(turn(false), PAGE);
    put_page(3);
    assert_true(is_there(3) && !is_there(2));
}

static void a_write_that_fails_is_told_and_never_tried_again(void **state)
{
    (void)state;
    turn(true);
    put_page(1);
    disk.rc = SQLITE_FULL;
    assert_int_equal(out(), SQLITE_FULL);
    disk.rc = SQLITE_OK;
    assert_int_equal(out(), SQLITE_OK);
    assert_int_equal(disk.writes, 1);
    put_page(2);
    disk.rc = SQLITE_IOERR_WRITE;
    assert_int_equal(put_page(7), SQLITE_IOERR_WRITE);
}

static int get_frame(int frame, char *page)
{
    return wal_moves_read(&moves, &disk.base, read_disk, page, PAGE, (sqlite3_int64)frame * FRAME + HEAD);
}

static void fill_frames(void)
{
    for (int i = 0; i < FRAMES; i++)
        memset(disk.bytes + i * FRAME, 'A' + i, FRAME);
}

static void assert_frame(int frame)
{
    char page[PAGE];

    assert_int_equal(get_frame(frame, page), SQLITE_OK);
    assert_int_equal(page[0], 'A' + frame);
    assert_int_equal(page[PAGE - 1], 'A' + frame);
}

static void frames_that_follow_each_other_are_read_ahead(void **state)
{
    (void)state;
    fill_frames();
    turn(true);
    for (int i = 0; i < FRAMES; i++)
        assert_frame(i);
    assert_true(disk.reads < 8);
}

static void others_are_read_one_by_one(void **state)
{
    (void)state;
    fill_frames();
    turn(true);
    for (int i = FRAMES - 1; i >= 0; i -= 2)
        assert_frame(i);
    assert_int_equal(disk.reads, FRAMES / 2);
}

/* The log begins anew: what was read ahead is another's. */
static void what_was_read_ahead_is_forgotten(void **state)
{
    (void)state;
    fill_frames();
    turn(true);
    assert_frame(0);
    assert_frame(1);
    turn(false);
    memset(disk.bytes + 2 * FRAME, 'A' + 2, FRAME);
    disk.bytes[2 * FRAME + HEAD] = 'z';
    for (int on = 0; on < 2; on++) {
        char page[PAGE];

        turn(on);
        assert_int_equal(get_frame(2, page), SQLITE_OK);
        assert_int_equal(page[0], 'z');
    }
}

static void a_read_ahead_that_fails_leaves_the_page_itself(void **state)
{
    char page[PAGE];

    (void)state;
    fill_frames();
    turn(true);
    assert_frame(0);
    disk.rc = SQLITE_IOERR_READ;
    assert_int_equal(get_frame(1, page), SQLITE_IOERR_READ);
    assert_int_equal(disk.reads, 3);
    disk.rc = SQLITE_OK;
    assert_frame(1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pages_that_follow_each_other_are_one_write),
        CASE(one_that_does_not_follow_is_another_write),
        CASE(nothing_is_held_back_while_it_is_off),
        CASE(a_write_that_fails_is_told_and_never_tried_again),
        CASE(frames_that_follow_each_other_are_read_ahead),
        CASE(others_are_read_one_by_one),
        CASE(what_was_read_ahead_is_forgotten),
        CASE(a_read_ahead_that_fails_leaves_the_page_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
