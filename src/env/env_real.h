/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the real machine share (env_real.c, env_real_proc.c). */
#ifndef ENV_ENV_REAL_H
#define ENV_ENV_REAL_H

#include "env/env.h"

void env_real_self(struct env *e, struct env_proc *ret);
enum env_life env_real_life(struct env *e, const struct env_proc *who);
bool env_real_is_local(struct env *e, const char *path);

/* TIDE_BUSY: names who holds the lock of this file, since when somebody waits for it, and what to do. */
enum tide_code holder_fail(int fd, const char *path, int64_t since_ms, struct tide_err *err);

#endif
