/* SPDX-License-Identifier: Apache-2.0 */
/* Work that threads share. */
#ifndef STORE_POOL_H
#define STORE_POOL_H

#include <stddef.h>

struct env;
struct pool;

struct pool *pool_new(struct env *env);
void pool_free(struct pool *p);
/* For each of 0 … n-1, side by side; over on return. Where nothing may start a thread: in order. */
typedef void pool_fn(void *arg, size_t i);
void pool_each(struct pool *p, size_t n, pool_fn *fn, void *arg);

#endif
