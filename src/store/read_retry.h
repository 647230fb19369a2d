/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that fail are tried again. */
#ifndef STORE_READ_RETRY_H
#define STORE_READ_RETRY_H

#include "store/store.h"

/* Wraps the slots that read. Once, when the store is open. */
void read_retry_wrap(struct store *s);

/* True: it was an I/O error, and after a pause it is worth another try. *tries begins with 0. */
bool read_retry_after(struct env *env, enum tide_code code, int *tries);

#endif
