/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to a write-ahead log: which of them reach the file, when, and in how many pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "env/wal_writes.h"

enum { HEAD = 24, PAGE = 4096, FRAME = HEAD + PAGE };

/* A file in memory. */
static struct {
    sqlite3_file base;
    char bytes[64 * FRAME];
    sqlite3_int64 len;
    int writes, rc;
} disk;

static struct wal_writes writes;

static int write_disk(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    assert_ptr_equal(file, &disk.base);
    assert_true(at + n <= (sqlite3_int64)sizeof disk.bytes);
    disk.writes++;
    if (disk.rc)
        return disk.rc;
    memcpy(disk.bytes + at, bytes, (size_t)n);
    if (at + n > disk.len)
        disk.len = at + n;
    return SQLITE_OK;
}

static int put(const void *bytes, int n, sqlite3_int64 at)
{
    return wal_write(&writes, &disk.base, write_disk, bytes, n, at);
}

static int put_head(int frame, bool commit)
{
    char head[HEAD] = {0};

    memset(head, 'h', 4);
    head[7] = commit ? 9 : 0;
    return put(head, HEAD, (sqlite3_int64)frame * FRAME);
}

static int put_page(int frame)
{
    char page[PAGE];

    memset(page, 'a' + frame % 26, sizeof page);
    return put(page, PAGE, (sqlite3_int64)frame * FRAME + HEAD);
}

static int put_frame(int frame, bool commit)
{
    int rc = put_head(frame, commit);

    return rc ? rc : put_page(frame);
}

static void assert_frame(int frame)
{
    assert_true(disk.len >= (sqlite3_int64)(frame + 1) * FRAME);
    assert_int_equal(disk.bytes[frame * FRAME + HEAD], 'a' + frame % 26);
    assert_int_equal(disk.bytes[(frame + 1) * FRAME - 1], 'a' + frame % 26);
}

static int begin(void **state)
{
    (void)state;
    memset(&disk, 0, sizeof disk);
    writes = (struct wal_writes){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    wal_writes_done(&writes);
    return 0;
}

static void a_commit_is_one_write_and_in_the_file_when_its_last_page_is(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put_frame(i, false), SQLITE_OK);
        assert_int_equal(disk.writes, 0);
    }
    assert_int_equal(put_frame(5, true), SQLITE_OK);
    assert_int_equal(disk.writes, 1);
    for (int i = 0; i < 6; i++)
        assert_frame(i);
    assert_int_equal(put_frame(6, true), SQLITE_OK);
    assert_int_equal(disk.writes, 2);
    assert_frame(6);
}

static void a_large_commit_is_written_in_pieces(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++)
        assert_int_equal(put_frame(i, i == 39), SQLITE_OK);
    assert_in_range(disk.writes, 2, 4);
    for (int i = 0; i < 40; i++)
        assert_frame(i);
}

/* SQLite does so when it renews checksums; the last has no page behind it. */
static void heads_written_anew_do_not_wait(void **state)
{
    (void)state;
    assert_int_equal(put_frame(0, false), SQLITE_OK);
    assert_int_equal(put_frame(1, true), SQLITE_OK);
    disk.writes = 0;
    memset(disk.bytes + FRAME, 0, HEAD);
    assert_int_equal(put_head(0, false), SQLITE_OK);
    assert_int_equal(put_head(1, true), SQLITE_OK);
    assert_int_equal(disk.writes, 2);
    assert_int_equal(disk.bytes[FRAME], 'h');
}

/* The same page again within one transaction goes to where it was; what was gathered goes before it. */
static void a_page_written_anew_is_in_order(void **state)
{
    (void)state;
    assert_int_equal(put_frame(0, false), SQLITE_OK);
    assert_int_equal(put_frame(1, false), SQLITE_OK);
    assert_int_equal(put("anew", 4, HEAD), SQLITE_OK);
    assert_memory_equal(disk.bytes + HEAD, "anew", 4);
    assert_frame(1);
}

static void what_is_gathered_can_be_asked_for(void **state)
{
    (void)state;
    assert_int_equal(put_frame(0, false), SQLITE_OK);
    assert_int_equal(wal_write_out(&writes, &disk.base, write_disk), SQLITE_OK);
    assert_frame(0);
    assert_int_equal(wal_write_out(&writes, &disk.base, write_disk), SQLITE_OK);
    assert_int_equal(disk.writes, 1);
}

static void a_failed_write_fails_the_commit_and_is_not_made_later(void **state)
{
    (void)state;
    assert_int_equal(put_frame(0, false), SQLITE_OK);
    disk.rc = SQLITE_FULL;
    assert_int_equal(put_frame(1, true), SQLITE_FULL);
    disk.rc = SQLITE_OK;
    assert_int_equal(wal_write_out(&writes, &disk.base, write_disk), SQLITE_OK);
    assert_int_equal(disk.len, 0);
    assert_int_equal(put_frame(0, true), SQLITE_OK);
    assert_frame(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_commit_is_one_write_and_in_the_file_when_its_last_page_is, begin, end),
        cmocka_unit_test_setup_teardown(a_large_commit_is_written_in_pieces, begin, end),
        cmocka_unit_test_setup_teardown(heads_written_anew_do_not_wait, begin, end),
        cmocka_unit_test_setup_teardown(a_page_written_anew_is_in_order, begin, end),
        cmocka_unit_test_setup_teardown(what_is_gathered_can_be_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(a_failed_write_fails_the_commit_and_is_not_made_later, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
