/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <inttypes.h>

#define SHOWN "%.60s"                                    /* as much of a bad value as is shown */
#define DURATION_MAX_MS (INT64_C(1000) * 366 * 86400000) /* a thousand years */

bool number_is(const char *text)
{
    text += *text == '-' || *text == '+';
    return *text && !text[strspn(text, "0123456789")];
}

enum tide_code number_check(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
                            struct tide_err *err)
{
    max = max ? max : INT64_MAX;
    if (!number_is(text))
        return tide_fail(err, TIDE_INVALID, "%s: '" SHOWN "' is not a whole number", what, text);
    if (text[0] == '-' && (!str_to_int64(str_from(text), ret) || *ret < min))
        return tide_fail(err, TIDE_INVALID, "%s: " SHOWN " is too small: at least %" PRId64, what, text, min);
    if (!str_to_int64(str_from(text + (text[0] == '+')), ret) || *ret > max)
        return tide_fail(err, TIDE_INVALID, "%s: " SHOWN " is too big: at most %" PRId64, what, text, max);
    if (*ret < min)
        return tide_fail(err, TIDE_INVALID, "%s: " SHOWN " is too small: at least %" PRId64, what, text, min);
    return TIDE_OK;
}

bool duration_parse(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {"w", 604800000}};
    int64_t total = 0;

    if (strcmp(text, "0") == 0) { /* of any unit */
        *ret_ms = 0;
        return true;
    }
    while (*text) {
        size_t digits = strspn(text, "0123456789"), letters = strspn(text + digits, "mshdw"), i = 0;
        int64_t n;

        if (!str_to_int64((struct str){text, digits}, &n))
            return false;
        while (i < sizeof(units) / sizeof(units[0]) &&
               !str_eq((struct str){text + digits, letters}, str_from(units[i].name)))
            i++;
        if (i == sizeof(units) / sizeof(units[0]) || n > DURATION_MAX_MS / units[i].ms)
            return false;
        total += n * units[i].ms;
        text += digits + letters;
    }
    *ret_ms = total;
    return total <= DURATION_MAX_MS;
}

enum tide_code duration_check(const char *what, const char *text, int64_t *ret_ms, struct tide_err *err)
{
    if (*text && duration_parse(text, ret_ms))
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID, "%s: '" SHOWN "' is not a duration: give 500ms, 90s, 15m, 3h or 2d", what,
                     text);
}

const char *bytes_text(char buf[32], int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    int unit = -1;

    while (n >= 1024 && unit < 3) {
        n /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(buf, 32, "%" PRId64 " byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(buf, 32, "%.*f %s", n < 10 ? 1 : 0, n, units[unit]);
    return buf;
}
