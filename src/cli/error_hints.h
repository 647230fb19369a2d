/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about an error: every line that the command ends with says it, here where the library's own words do not. */
#ifndef CLI_ERROR_HINTS_H
#define CLI_ERROR_HINTS_H

#include "base/err.h"
#include "base/mem.h"

/* The last clause of a message, when it says what to do; else NULL. Points into `msg`. */
const char *hint_in(const char *msg);

/* What to do about an error, wherever it comes from; NULL when nothing general can be said. */
const char *hint_for(const struct tide_err *err);

/* The same of a store that cannot be opened. */
const char *hint_for_store(enum tide_code code);

/* Adds `advice` to a message that has none of its own. `code` is handed through; TIDE_OK and NULL change nothing. */
enum tide_code advise(enum tide_code code, const char *advice, struct tide_err *err);

/* The message with what helps, as commands: what people read. The hints are used up. */
const char *err_text(struct tide_err *err);

/* Instead of them: what to do, in words. */
void err_advise(struct tide_err *err, const char *advice);

/* "`tidemark cancel x` ends it", in the arena; NULL: there is none. */
const char *hint_text(struct arena *a, const struct tide_hint *h);

#endif
