/* SPDX-License-Identifier: Apache-2.0 */
/* One server for each store: a lock beside the store, which dies with the process that holds it. */
#ifndef SERVER_STORE_LOCK_H
#define SERVER_STORE_LOCK_H

#include "base/err.h"

struct store_lock;

/* `url` as of store_url(), of a store that is there. TIDE_HELD: another server has it, which is named. */
enum tide_code store_lock_take(const char *url, struct store_lock **ret, struct tide_err *err) MUST_CHECK;
/* Where this server is reached, for those that are refused. */
void store_lock_note(struct store_lock *lock, const char *address);
void store_lock_free(struct store_lock *lock); /* takes NULL */

#endif
