/* SPDX-License-Identifier: Apache-2.0 */
/* Log records: one line each in both formats, whatever is in them, also from many threads at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"

static int64_t fixed_time(void)
{
    return 1771668070123;
}

/* A file in memory that the log appends to. */
static int log_file(void)
{
    int fd = memfd_create("log", 0);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
    return fd;
}

static char *take_text(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = mem_zero((size_t)size + 1);

    assert_int_equal(pread(fd, text, (size_t)size, 0), size);
    close(fd);
    log_setup(LOG_WARN, LOG_TEXT, STDERR_FILENO, NULL);
    return text;
}

static void a_record_is_one_line_in_either_format(void **state)
{
    static const struct {
        const char *message, *value, *text, *json;
    } rows[] = {
        {"full disk", "/var/lib", "warn: full disk k=/var/lib\n",
         "{\"level\":\"warn\",\"msg\":\"full disk\",\"k\":\"/var/lib\"}\n"},
        {"m", "two words", "warn: m k=\"two words\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"two words\"}\n"},
        {"m", "", "warn: m k=\"\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"\"}\n"},
        {"m", NULL, "warn: m k=\"\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"\"}\n"},
        {"m", "a=b", "warn: m k=\"a=b\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"a=b\"}\n"},
        {"m", "say \"hi\"", "warn: m k=\"say \\\"hi\\\"\"\n",
         "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"say \\\"hi\\\"\"}\n"},
        {"two\nlines", "x\ny", "warn: two?lines k=\"x\\ny\"\n",
         "{\"level\":\"warn\",\"msg\":\"two\\nlines\",\"k\":\"x\\ny\"}\n"},
        {"\x1b[2J", "\x1b", "warn: ?[2J k=\"\\u001b\"\n",
         "{\"level\":\"warn\",\"msg\":\"\\u001b[2J\",\"k\":\"\\u001b\"}\n"},
        {"m", "\xff", "warn: m k=\"\xef\xbf\xbd\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"\xef\xbf\xbd\"}\n"},
        {"m", "\xc2\x9b", "warn: m k=\"??\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"\xc2\x9b\"}\n"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        enum log_format format = i % 2 ? LOG_JSON : LOG_TEXT;
        AUTO(mem_freep) char *text = NULL;
        int fd = log_file();

        log_setup(LOG_WARN, format, fd, NULL);
        log_write(LOG_WARN, rows[i / 2].message, "k", rows[i / 2].value, NULL);
        text = take_text(fd);
        assert_string_equal(text, format == LOG_JSON ? rows[i / 2].json : rows[i / 2].text);
    }
}

static void the_time_stands_first_when_there_is_a_clock(void **state)
{
    AUTO(mem_freep) char *text = NULL;
    int fd = log_file();

    (void)state;
    log_setup(LOG_DEBUG, LOG_TEXT, fd, fixed_time);
    log_write(LOG_DEBUG, "x", NULL);
    log_setup(LOG_DEBUG, LOG_JSON, fd, fixed_time);
    log_write(LOG_ERROR, "x", "a", "1", "b", "2", NULL);
    text = take_text(fd);
    assert_string_equal(text, "2026-02-21T10:01:10.123Z debug: x\n"
                              "{\"ts\":\"2026-02-21T10:01:10.123Z\",\"level\":\"error\",\"msg\":\"x\","
                              "\"a\":\"1\",\"b\":\"2\"}\n");
}

static void records_above_the_level_are_left_out(void **state)
{
    AUTO(mem_freep) char *text = NULL;
    int fd = log_file();

    (void)state;
    log_setup(LOG_WARN, LOG_TEXT, fd, NULL);
    assert_true(log_enabled(LOG_ERROR));
    assert_true(log_enabled(LOG_WARN));
    assert_false(log_enabled(LOG_INFO));
    log_write(LOG_INFO, "no", NULL);
    log_write(LOG_ERROR, "yes", NULL);
    text = take_text(fd);
    assert_string_equal(text, "error: yes\n");
}

static void a_long_value_is_cut_and_the_record_stays_whole(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(mem_freep) char *text = NULL, *value = mem_zero(100001);
    struct json *v;
    int fd = log_file();

    (void)state;
    for (int i = 0; i < 100000 - 2; i += 3)
        memcpy(value + i, "\xe2\x82\xac", 3);
    log_setup(LOG_WARN, LOG_JSON, fd, NULL);
    log_write(LOG_WARN, "m", "k", value, "end", "here", NULL);
    text = take_text(fd);
    assert_true(strlen(text) < 5000);
    assert_int_equal(json_parse(&a, str_from(text), NULL, &v, NULL, NULL), TIDE_OK);
    assert_true(str_eq(json_get_text(&a, v, STR("end")), STR("here")));
    assert_null(strstr(text, "\xef\xbf\xbd"));
}

static void errno_survives_and_a_dead_descriptor_is_no_error(void **state)
{
    (void)state;
    log_setup(LOG_WARN, LOG_TEXT, -1, NULL);
    errno = EDOM;
    log_write(LOG_WARN, "nobody hears", NULL);
    assert_int_equal(errno, EDOM);
    log_setup(LOG_WARN, LOG_TEXT, STDERR_FILENO, NULL);
}

#define THREADS 4
#define RECORDS 2000

static void *write_many(void *name)
{
    for (int i = 0; i < RECORDS; i++)
        log_write(LOG_WARN, name, "key", "some value with spaces", NULL);
    return NULL;
}

static void records_of_threads_do_not_mix(void **state)
{
    static char *const names[THREADS] = {"one", "two", "three", "four"};
    AUTO(mem_freep) char *text = NULL;
    pthread_t threads[THREADS];
    int fd = log_file(), lines = 0;

    (void)state;
    log_setup(LOG_WARN, LOG_TEXT, fd, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, names[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    text = take_text(fd);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        *end = '\0';
        assert_int_equal(memcmp(line, "warn: ", 6), 0);
        assert_string_equal(strchr(line + 6, ' '), " key=\"some value with spaces\"");
    }
    assert_int_equal(lines, THREADS * RECORDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_one_line_in_either_format),
        cmocka_unit_test(the_time_stands_first_when_there_is_a_clock),
        cmocka_unit_test(records_above_the_level_are_left_out),
        cmocka_unit_test(a_long_value_is_cut_and_the_record_stays_whole),
        cmocka_unit_test(errno_survives_and_a_dead_descriptor_is_no_error),
        cmocka_unit_test(records_of_threads_do_not_mix),
    };

    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
