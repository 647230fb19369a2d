/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that sort by the time they were made:
 *
 *     prefix '_' ttttttttt rrrrrrrrrrrrr     9 digits of 5 bits: milliseconds since 1970 (lasts until the year 3084)
 *                                            13 digits: 64 random bits, the first digit has 4 of them
 *
 * The digits are Crockford's in lower case: they rise in ASCII, so text order is number order.
 */
#include "base/id.h"

#include <assert.h>
#include <string.h>

#define TIME_DIGITS 9
#define RANDOM_DIGITS 13
#define PREFIX_MAX 8
#define TIME_MAX (((int64_t)1 << (5 * TIME_DIGITS)) - 1)

static char *put_base32(char *out, uint64_t value, int digits)
{
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

    for (int i = digits - 1; i >= 0; i--, value >>= 5)
        out[i] = alphabet[value & 31];
    return out + digits;
}

void id_make(char *out, const char *prefix, int64_t now_ms, const unsigned char random[ID_RANDOM_BYTES])
{
    size_t n = strlen(prefix);
    uint64_t bits = 0, time = now_ms < 0 ? 0 : (uint64_t)(now_ms < TIME_MAX ? now_ms : TIME_MAX);

    assert(n <= PREFIX_MAX);
    for (int i = 0; i < ID_RANDOM_BYTES; i++)
        bits = bits << 8 | random[i];
    memcpy(out, prefix, n);
    out[n] = '_';
    out = put_base32(out + n + 1, time, TIME_DIGITS);
    out = put_base32(out, bits, RANDOM_DIGITS);
    *out = '\0';
}
