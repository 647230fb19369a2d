/* SPDX-License-Identifier: Apache-2.0 */
/* Time-sortable prefixed ids: "sess_" + 9 characters of milliseconds + 13 of randomness, base 32 without i, l, o, u. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdint.h>

#define ID_RANDOM_BYTES 8

/* Writes prefix + "_" + 22 characters + NUL into out, which must have room for 32 + NUL; prefix up to 8 characters. */
void id_make(char *out, const char *prefix, int64_t now_ms, const unsigned char random[ID_RANDOM_BYTES]);

#endif
