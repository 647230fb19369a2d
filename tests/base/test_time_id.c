/* SPDX-License-Identifier: Apache-2.0 */
/* Time as text and back against the C library's calendar; ids that sort by time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/id.h"
#include "base/timefmt.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct {
    int64_t ms;
    const char *text;
} moments[] = {
    {0, "1970-01-01T00:00:00.000Z"},
    {1, "1970-01-01T00:00:00.001Z"},
    {-1, "1969-12-31T23:59:59.999Z"},
    {1771668070123, "2026-02-21T10:01:10.123Z"},
    {951782400000, "2000-02-29T00:00:00.000Z"},
    {951868800000, "2000-03-01T00:00:00.000Z"},
    {-2203891200001, "1900-02-28T23:59:59.999Z"},
    {-2203891200000, "1900-03-01T00:00:00.000Z"},
    {4102444799999, "2099-12-31T23:59:59.999Z"},
    {-62167219200000, "0000-01-01T00:00:00.000Z"},
    {-62162121600000, "0000-02-29T00:00:00.000Z"},
    {253402300799999, "9999-12-31T23:59:59.999Z"},
};

static void known_moments_go_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(moments); i++) {
        char text[TIME_TEXT_SIZE];
        int64_t ms = 42;

        time_format(text, moments[i].ms);
        assert_string_equal(text, moments[i].text);
        assert_true(time_parse(str_from(moments[i].text), &ms));
        assert_true(ms == moments[i].ms);
    }
}

static void every_day_of_ten_thousand_years_is_the_c_library_s(void **state)
{
    (void)state;
    for (int64_t day = -719528; day <= 2932896; day++) {
        char text[TIME_TEXT_SIZE], want[64];
        time_t seconds = day * 86400 + 86399;
        struct tm tm;
        int64_t ms;

        gmtime_r(&seconds, &tm);
        snprintf(want, sizeof(want), "%04d-%02d-%02dT23:59:59.000Z", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
        time_format(text, (int64_t)seconds * 1000);
        if (strcmp(text, want) != 0 || !time_parse(str_from(text), &ms) || ms != (int64_t)seconds * 1000)
            fail_msg("day %lld: %s, want %s", (long long)day, text, want);
    }
}

static void times_out_of_range_are_clamped(void **state)
{
    char text[TIME_TEXT_SIZE];

    (void)state;
    time_format(text, INT64_MAX);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    time_format(text, INT64_MIN);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

static void times_of_other_programs_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: none */
    } rows[] = {
        {"2026-02-21T10:01:10Z", 1771668070000},
        {"2026-02-21 10:01:10.5", 1771668070500},
        {"2026-02-21t10:01:10.1239z", 1771668070123},
        {"2026-02-21T11:31:10+01:30", 1771668070000},
        {"2026-02-21T10:01:10.", -1},
        {"2026-02-21T10:01:10+24:00", -1},
        {"2026-02-21", -1},
        {"2026-02-30T10:01:10Z", -1},
        {"2026-02-21T10:01:10Zz", -1},
        {"", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = -1;

        if (time_parse_any(str_from(rows[i].text), &ms) != (rows[i].ms >= 0) || ms != rows[i].ms)
            fail_msg("%s: %lld", rows[i].text, (long long)ms);
    }
}

static void any_other_form_is_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "2026-02-21",
        "2026-02-21T10:01:10Z",
        "2026-02-21T10:01:10.123",
        "2026-02-21T10:01:10.123z",
        "2026-02-21t10:01:10.123Z",
        "2026-02-21 10:01:10.123Z",
        "2026-02-21T10:01:10,123Z",
        "2026-02-21T10:01:10.1234Z",
        "2026-02-21T10:01:10.123Z ",
        "2026-2-21T10:01:10.1234Z",
        "-026-02-21T10:01:10.123Z",
        "2026-00-21T10:01:10.123Z",
        "2026-13-21T10:01:10.123Z",
        "2026-02-00T10:01:10.123Z",
        "2026-02-29T10:01:10.123Z",
        "1900-02-29T10:01:10.123Z",
        "2024-02-30T10:01:10.123Z",
        "2026-04-31T10:01:10.123Z",
        "2026-12-32T10:01:10.123Z",
        "2026-02-21T24:00:00.000Z",
        "2026-02-21T10:60:10.123Z",
        "2026-02-21T10:01:60.000Z",
        "2026-02-21T10:01:+1.123Z",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = 42;

        if (time_parse(str_from(rows[i]), &ms) || ms != 42)
            fail_msg("'%s'", rows[i]);
    }
}

static void an_id_is_prefix_time_and_randomness(void **state)
{
    static const struct {
        const char *prefix;
        int64_t ms;
        unsigned char random[ID_RANDOM_BYTES];
        const char *want;
    } rows[] = {
        {"sess", 0, {0}, "sess_0000000000000000000000"},
        {"s", 31, {0, 0, 0, 0, 0, 0, 0, 31}, "s_00000000z000000000000z"},
        {"s", 32, {0, 0, 0, 0, 0, 0, 0, 32}, "s_0000000100000000000010"},
        {"ckpt", 1771668070123, {0x80}, "ckpt_1khztaqqb8000000000000"},
        {"eightchr",
         (INT64_C(1) << 45) - 1,
         {255, 255, 255, 255, 255, 255, 255, 255},
         "eightchr_zzzzzzzzzfzzzzzzzzzzzz"},
        {"x", INT64_MAX, {0}, "x_zzzzzzzzz0000000000000"},
        {"x", -5, {0}, "x_0000000000000000000000"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char id[33];

        id_make(id, rows[i].prefix, rows[i].ms, rows[i].random);
        if (strcmp(id, rows[i].want) != 0)
            fail_msg("row %zu: %s, want %s", i, id, rows[i].want);
        assert_true(str_is_id(str_from(id)));
    }
}

static void later_ids_sort_behind_earlier_ones(void **state)
{
    static const unsigned char high[ID_RANDOM_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255}, low[ID_RANDOM_BYTES];
    char before[33], after[33];

    (void)state;
    for (int64_t ms = 1; ms < INT64_C(1) << 44; ms = ms * 3 + 1) {
        id_make(before, "s", ms - 1, high);
        id_make(after, "s", ms, low);
        assert_true(strcmp(before, after) < 0);
    }
    id_make(before, "s", 5, low);
    id_make(after, "s", 5, (unsigned char[ID_RANDOM_BYTES]){1});
    assert_true(strcmp(before, after) < 0);
}

static void people_read_utc_unless_the_process_speaks_to_somebody_here(void **state)
{
    char text[TIME_PEOPLE_SIZE], clock[TIME_CLOCK_SIZE];
    const int64_t winter = 1771668070123, summer = 1784714470123;

    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    assert_string_equal(time_people(text, winter), "2026-02-21 10:01:10 UTC");
    time_people_local(true);
    assert_string_equal(time_people(text, winter), "2026-02-21 11:01:10 CET");
    assert_string_equal(time_people(text, summer), "2026-07-22 12:01:10 CEST");
    assert_string_equal(time_clock(clock, winter), "11:01:10.123");
    time_people(text, INT64_MAX); /* a time of nobody's log */
    time_people(text, INT64_MIN);
    setenv("TZ", "<+0530>-5:30", 1);
    tzset();
    assert_string_equal(time_people(text, winter), "2026-02-21 15:31:10 +0530");
    time_people_local(false);
    assert_string_equal(time_people(text, winter), "2026-02-21 10:01:10 UTC");
    assert_string_equal(time_clock(clock, winter), "10:01:10.123");
}

static void what_something_took_is_said_in_one_way(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{-5, "0.0 s"},         {0, "0.0 s"},
                {949, "0.9 s"},        {59999, "59.9 s"},
                {60000, "1m 00s"},     {3599999, "59m 59s"},
                {3600000, "1h 00m"},   {359999999, "99h 59m"},
                {360000000, "4 days"}, {INT64_MAX, "106751991167 days"}};
    char text[TIME_TAKEN_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(time_taken(text, rows[i].ms), rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_moments_go_there_and_back),
        cmocka_unit_test(every_day_of_ten_thousand_years_is_the_c_library_s),
        cmocka_unit_test(times_out_of_range_are_clamped),
        cmocka_unit_test(any_other_form_is_refused),
        cmocka_unit_test(times_of_other_programs_are_read),
        cmocka_unit_test(people_read_utc_unless_the_process_speaks_to_somebody_here),
        cmocka_unit_test(what_something_took_is_said_in_one_way),
        cmocka_unit_test(an_id_is_prefix_time_and_randomness),
        cmocka_unit_test(later_ids_sort_behind_earlier_ones),
    };

    return cmocka_run_group_tests_name("base/time_id", tests, NULL, NULL);
}
