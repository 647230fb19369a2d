/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations as people write them. `what` is how messages name the value. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include "base/err.h"
#include "base/str.h"

bool number_is(const char *text); /* digits, perhaps behind a sign */

/* max 0: none. */
enum tide_code number_check(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
                            struct tide_err *err) MUST_CHECK;

/* "90s", "1h30m": one or more numbers with a unit each. False when it is anything else or too long. */
bool duration_parse(const char *text, int64_t *ret_ms);
enum tide_code duration_check(const char *what, const char *text, int64_t *ret_ms, struct tide_err *err) MUST_CHECK;

const char *bytes_text(char buf[32], int64_t bytes); /* "1.5 MiB" */

#endif
