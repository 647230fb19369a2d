/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTC text by our own arithmetic: no locale, no time zone files, the same on every machine. Days are counted from
 * 0000-03-01 in the proleptic Gregorian calendar, so that a leap day is the last of its year; every 400 years (an era)
 * have the same 146097 days.
 */
#include "base/timefmt.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define DAY_MS INT64_C(86400000)
#define ERA_DAYS 146097
#define EPOCH_DAY 719468                /* 1970-01-01 */
#define MIN_MS INT64_C(-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define MAX_MS INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

struct date {
    int year, month, day;
};

/* From March on the months have 31 30 31 30 31 days, repeating: that is what (153 * month + 2) / 5 counts. */
static int64_t days_of(struct date d)
{
    int year = d.year - (d.month <= 2), era = (year >= 0 ? year : year - 399) / 400;
    int of_era = year - era * 400, month = (d.month + 9) % 12;
    int day_of_year = (153 * month + 2) / 5 + d.day - 1;
    int day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;

    return (int64_t)era * ERA_DAYS + day_of_era - EPOCH_DAY;
}

static struct date date_of(int64_t days)
{
    int64_t shifted = days + EPOCH_DAY, era = (shifted >= 0 ? shifted : shifted - (ERA_DAYS - 1)) / ERA_DAYS;
    int day_of_era = (int)(shifted - era * ERA_DAYS);
    int of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int day_of_year = day_of_era - (365 * of_era + of_era / 4 - of_era / 100);
    int month = (5 * day_of_year + 2) / 153;
    struct date d = {.month = month < 10 ? month + 3 : month - 9, .day = day_of_year - (153 * month + 2) / 5 + 1};

    d.year = (int)(era * 400) + of_era + (d.month <= 2);
    return d;
}

static void put_digits(char *out, int n, int64_t value)
{
    for (int i = n - 1; i >= 0; i--, value /= 10)
        out[i] = (char)('0' + value % 10);
}

void time_format(char out[TIME_TEXT_SIZE], int64_t unix_ms)
{
    int64_t ms = unix_ms < MIN_MS ? MIN_MS : unix_ms > MAX_MS ? MAX_MS : unix_ms;
    int64_t days = (ms - MIN_MS) / DAY_MS + MIN_MS / DAY_MS, of_day = ms - days * DAY_MS;
    struct date d = date_of(days);

    memcpy(out, "0000-00-00T00:00:00.000Z", TIME_TEXT_SIZE);
    put_digits(out, 4, d.year);
    put_digits(out + 5, 2, d.month);
    put_digits(out + 8, 2, d.day);
    put_digits(out + 11, 2, of_day / 3600000);
    put_digits(out + 14, 2, of_day / 60000 % 60);
    put_digits(out + 17, 2, of_day / 1000 % 60);
    put_digits(out + 20, 3, of_day % 1000);
}

static bool has_shape(struct str text)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ";

    if (text.len != sizeof(shape) - 1)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (shape[i] == 'd' ? text.ptr[i] < '0' || text.ptr[i] > '9' : text.ptr[i] != shape[i])
            return false;
    return true;
}

static int get_digits(const char *p, int n)
{
    int value = 0;

    for (int i = 0; i < n; i++)
        value = value * 10 + (p[i] - '0');
    return value;
}

bool time_parse(struct str text, int64_t *ret_unix_ms)
{
    struct date d, same;
    int hour, minute, second;
    int64_t days;

    if (!has_shape(text))
        return false;
    d = (struct date){get_digits(text.ptr, 4), get_digits(text.ptr + 5, 2), get_digits(text.ptr + 8, 2)};
    hour = get_digits(text.ptr + 11, 2);
    minute = get_digits(text.ptr + 14, 2);
    second = get_digits(text.ptr + 17, 2);
    if (d.month < 1 || d.month > 12 || hour > 23 || minute > 59 || second > 59)
        return false;
    days = days_of(d);
    same = date_of(days); /* a day that the month does not have comes back as another date */
    if (same.month != d.month || same.day != d.day)
        return false;
    *ret_unix_ms = days * DAY_MS + (hour * 3600 + minute * 60 + second) * INT64_C(1000) + get_digits(text.ptr + 20, 3);
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool time_take_fraction(const char **p, const char *end, int64_t *ret_ms)
{
    int64_t unit = 100;
    const char *begin;

    *ret_ms = 0;
    if (*p == end || **p != '.')
        return true;
    for (begin = ++*p; *p < end && is_digit(**p); ++*p, unit /= 10)
        *ret_ms += (**p - '0') * unit;
    return *p > begin;
}

/* "Z" or "+01:00" as ms; nothing is taken for UTC, as many programs write it. All that is left. */
static bool parse_zone(const char *p, const char *end, int64_t *ret_ms)
{
    int hours, minutes;

    *ret_ms = 0;
    if (p == end || (end - p == 1 && (*p == 'Z' || *p == 'z')))
        return true;
    if (end - p != 6 || (*p != '+' && *p != '-') || p[3] != ':' || !is_digit(p[1]) || !is_digit(p[2]) ||
        !is_digit(p[4]) || !is_digit(p[5]))
        return false;
    hours = get_digits(p + 1, 2);
    minutes = get_digits(p + 4, 2);
    *ret_ms = (*p == '-' ? -60000 : 60000) * (int64_t)(hours * 60 + minutes);
    return hours < 24 && minutes < 60;
}

bool time_parse_any(struct str text, int64_t *ret_unix_ms)
{
    char whole[TIME_TEXT_SIZE] = "yyyy-mm-ddThh:mm:ss.000Z";
    const char *p, *end = text.ptr + text.len;
    int64_t ms, fraction, zone;

    if (text.len < 19 || !memchr("Tt ", text.ptr[10], 3))
        return false;
    memcpy(whole, text.ptr, 19);
    whole[10] = 'T';
    p = text.ptr + 19;
    if (!time_parse((struct str){whole, TIME_TEXT_SIZE - 1}, &ms) || !time_take_fraction(&p, end, &fraction) ||
        !parse_zone(p, end, &zone))
        return false;
    *ret_unix_ms = ms + fraction - zone;
    return true;
}

/* ---- for people ---- */

static atomic_bool is_local;

bool time_people_local(bool local)
{
    return atomic_exchange(&is_local, local);
}

/* As UTC that reads like the local time, and the name of its zone. */
static int64_t shift_to_zone(int64_t unix_ms, const char **ret_zone)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm tm;

    *ret_zone = "UTC";
    if (!is_local || unix_ms < 0 || unix_ms > MAX_MS || !localtime_r(&seconds, &tm) || !tm.tm_zone)
        return unix_ms;
    *ret_zone = tm.tm_zone;
    return unix_ms + (int64_t)tm.tm_gmtoff * 1000;
}

const char *time_people(char out[TIME_PEOPLE_SIZE], int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    const char *zone;

    time_format(text, shift_to_zone(unix_ms, &zone));
    snprintf(out, TIME_PEOPLE_SIZE, "%.10s %.8s %.20s", text, text + 11, zone);
    return out;
}

const char *time_clock(char out[TIME_CLOCK_SIZE], int64_t unix_ms)
{
    char text[TIME_TEXT_SIZE];
    const char *zone;

    time_format(text, shift_to_zone(unix_ms, &zone));
    snprintf(out, TIME_CLOCK_SIZE, "%.12s", text + 11);
    return out;
}

const char *time_taken(char out[TIME_TAKEN_SIZE], int64_t ms)
{
    int64_t s = ms > 0 ? ms / 1000 : 0, m = s / 60, h = m / 60;

    if (s < 60)
        snprintf(out, TIME_TAKEN_SIZE, "%" PRId64 ".%" PRId64 " s", s, ms > 0 ? ms % 1000 / 100 : 0);
    else if (m < 60)
        snprintf(out, TIME_TAKEN_SIZE, "%" PRId64 "m %02" PRId64 "s", m, s % 60);
    else if (h < 100)
        snprintf(out, TIME_TAKEN_SIZE, "%" PRId64 "h %02" PRId64 "m", h, m % 60);
    else
        snprintf(out, TIME_TAKEN_SIZE, "%" PRId64 " days", h / 24);
    return out;
}
