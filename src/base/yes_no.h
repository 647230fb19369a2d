/* SPDX-License-Identifier: Apache-2.0 */
/* What a person said when asked for a yes or a no, read the same way wherever it was asked. */
#ifndef BASE_YES_NO_H
#define BASE_YES_NO_H

#include "base/err.h"
#include "base/json.h"

enum yes_no { YES_NO_NEITHER, YES_NO_NO, YES_NO_YES }; /* none: it is neither, and decides nothing */

/* One word; case and white space around it do not count. */
enum yes_no yes_no_word(struct str said);

/* TIDE_INVALID, naming the words that are taken, unless it is one of them. Takes NULL. */
enum tide_code yes_no_check(struct arena *a, const struct json *answer, struct tide_err *err) MUST_CHECK;

/* {"decision": answer, "reason": reason}: an answer, JSON, and what goes with it. */
void yes_no_put_reason(struct buf *out, struct str answer, struct str reason);

/* The answer to a wait: a word, true or false, or {"decision": one of these, "reason": any text}. Takes NULL. */
enum yes_no yes_no_read(struct arena *a, const struct json *answer);

/* The same for people: "no: too early". What is neither is its text, or its JSON. Takes NULL. */
struct str yes_no_shown(struct arena *a, const struct json *answer);

#endif
