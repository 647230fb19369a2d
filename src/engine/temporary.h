/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that is gone when the command is: for a store that nobody keeps. */
#ifndef ENGINE_TEMPORARY_H
#define ENGINE_TEMPORARY_H

#include "base/err.h"
#include "base/mem.h"

/* In TMPDIR; its path is in the arena. `what` is in its name. */
enum tide_code temporary_make(struct arena *a, const char *what, const char **ret_dir, struct tide_err *err);
void temporary_remove(const char *dir); /* with all that is in it; takes NULL */

#endif
