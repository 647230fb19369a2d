/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about an error: every line that the command ends with says it. */
#ifndef CLI_ERROR_HINTS_H
#define CLI_ERROR_HINTS_H

#include "base/err.h"
#include "base/mem.h"

/* What helps, in the arena or static; NULL: nothing can be said. `of_store`: the store could not be opened. */
const char *err_advice(struct arena *a, const struct tide_err *err, bool of_store);

/* The whole line: what failed, why, and that. In the arena, or the message itself. */
const char *err_line(struct arena *a, struct tide_err *err, bool of_store);

/* Adds `advice` to the message of an error without hints. `code` is handed through; TIDE_OK and NULL change nothing. */
enum tide_code advise(enum tide_code code, const char *advice, struct tide_err *err);

/* The message with what helps, as commands: what people read. In the arena, or the message itself. */
const char *err_text(struct arena *a, struct tide_err *err);

/* What a session offers, as hints of an error about it; as many as there is room for. */
void err_hint_next(struct tide_err *err, const struct tide_next *next);

/* It, on standard error; and the same for programs. */
void say_err(struct tide_err *err);
void err_say_json(const struct tide_err *err);

/* Instead of them: what to do, in words. */
void err_advise(struct tide_err *err, const char *advice);

/* A notice of trouble with what helps against it; `why` NULL: as it is. In the arena, or the notice itself. */
const char *trouble_text(struct arena *a, const char *line, const struct tide_err *why);

/* What failed, what comes of that, and what helps, on standard error. */
void say_store_trouble(const struct tide_err *why, const char *then);

/* A notice, with the options that change it: "… (to change: --model m)"; `change` NULL: none. In the arena. */
const char *offer_text(struct arena *a, const char *line, const char *change);

/* "`tidemark cancel x` ends it, …", in the arena; NULL: there is none. */
const char *hints_text(struct arena *a, const struct tide_hint *hints, size_t n);

#endif
