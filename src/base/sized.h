/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that callers fill and that grow from version to version: each begins with its size, as its caller knows it. */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include "base/err.h"

/*
 * Fills *ret with what the caller gave (NULL: nothing): members that an older caller lacks are zero, those of a newer one that
 * this version does not know must be. TIDE_INVALID: they are not, or there is no size.
 */
#define SIZED_READ(ret, type, given, err) sized_read((ret), sizeof(struct type), (given), "struct " #type, (err))
enum tide_code sized_read(void *ret, size_t size, const void *given, const char *name, struct tide_err *err) MUST_CHECK;

#endif
