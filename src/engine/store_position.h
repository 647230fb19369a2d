/* SPDX-License-Identifier: Apache-2.0 */
/* Where the events of a store end, so that who has read something can follow what comes behind it. */
#ifndef ENGINE_STORE_POSITION_H
#define ENGINE_STORE_POSITION_H

#include "base/err.h"
#include "tidemark.h"

/* Asked for before the reading: nothing is missed then by who follows from there on. -1: this store has no order over all its
 * sessions (files). */
enum tide_code store_position(tide_store *store, int64_t *ret_position, struct tide_err *err) MUST_CHECK;

#endif
