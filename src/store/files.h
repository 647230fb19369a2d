/* SPDX-License-Identifier: Apache-2.0 */
/* The backend of plain files, as store.c knows it. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "store/store.h"

enum tide_code files_open(const char *path, const struct tide_store_options *opt, struct env *env,
                          struct store **ret_store, struct tide_err *err) MUST_CHECK;

#endif
