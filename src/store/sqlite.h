/* SPDX-License-Identifier: Apache-2.0 */
/* How the SQLite backend is opened: everything else of it is in sqlite_*.c behind sqlite_db.h. */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include "store/store.h"

enum tide_code sqlite_open(const char *path, const struct tide_store_options *opt, struct env *env,
                           struct store **ret_store, struct tide_err *err) MUST_CHECK;

#endif
