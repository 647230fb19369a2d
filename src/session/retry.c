/* SPDX-License-Identifier: Apache-2.0 */
/* Delays grow so that a service in trouble is left alone, and scatter so that callers do not come back together. */
#include "session/retry.h"

int64_t retry_delay_ms(int64_t base_ms, int attempt, uint32_t random, int64_t asked_ms)
{
    int64_t delay = base_ms;

    if (asked_ms >= 0)
        return asked_ms;
    for (int i = 0; i < attempt && delay < RETRY_CAP_MS; i++)
        delay *= 2;
    delay += delay * ((int64_t)(random % 2001) - 1000) / 10000;
    return delay < RETRY_CAP_MS ? delay : RETRY_CAP_MS;
}

bool retry_helps(struct str code)
{
    static const struct {
        const char *code;
        bool helps;
    } codes[] = {
        {"overloaded", true},      {"rate_limit", true}, {"timeout", true}, {"server_error", true},
        {"connection", true},      {"exit", true},       {"signal", true},  {"killed", true},
        {"bad_request", false},    {"auth", false},      {"quota", false},  {"missing", false},
        {"output_too_big", false},
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (str_eq(code, str_from(codes[i].code)))
            return codes[i].helps;
    }
    return true;
}
