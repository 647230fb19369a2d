/* SPDX-License-Identifier: Apache-2.0 */
/* UTC with milliseconds, as text and back, without locale or time zone: what is stored and JSON. And times for people. */
#ifndef BASE_TIMEFMT_H
#define BASE_TIMEFMT_H

#include "base/str.h"

#define TIME_TEXT_SIZE 25 /* "2026-02-21T10:01:10.123Z" and NUL */

void time_format(char out[TIME_TEXT_SIZE], int64_t unix_ms); /* years 0000 to 9999; others are clamped */
bool time_parse(struct str text, int64_t *ret_unix_ms);      /* exactly the form above */

/* RFC 3339 as other programs write it: any fraction, any zone or none (UTC), a space for the T. */
bool time_parse_any(struct str text, int64_t *ret_unix_ms);

/* ".5" and longer ones as ms, cut after three digits; nothing: 0. False: a dot without a digit. */
bool time_take_fraction(const char **p, const char *end, int64_t *ret_ms);

/*
 * For people, and nothing else: sentences, errors, what commands print. UTC, unless it was set that the people it
 * speaks to are in the machine's time zone.
 */
#define TIME_PEOPLE_SIZE 48
const char *time_people(char out[TIME_PEOPLE_SIZE], int64_t unix_ms); /* "2026-02-21 11:01:10 CET" */
#define TIME_CLOCK_SIZE 16
const char *time_clock(char out[TIME_CLOCK_SIZE], int64_t unix_ms); /* "11:01:10.123" */
bool time_people_local(bool local);                                 /* what it was before */
#define TIME_TAKEN_SIZE 24
const char *time_taken(char out[TIME_TAKEN_SIZE], int64_t ms); /* "0.4 s", "3m 12s", "2h 05m", "5 days" */

#endif
