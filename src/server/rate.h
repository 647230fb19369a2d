/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often somebody may ask: each has a bucket that holds so many, and is filled by so many a second. Who never came before has a full
 * one. A table of fixed size: those whose keys fall together share a bucket.
 */
#ifndef SERVER_RATE_H
#define SERVER_RATE_H

#include "base/str.h"

struct rate;

struct rate *rate_new(int64_t per_second, int64_t at_once); /* per_second 0: as often as they want */
void rate_free(struct rate *r);                             /* takes NULL */

/* From any thread. False: not now. */
bool rate_take(struct rate *r, struct str key);

#endif
