/* SPDX-License-Identifier: Apache-2.0 */
/* What a person said when asked for a yes or a no, read the same way wherever it was asked. */
#ifndef SESSION_YES_NO_H
#define SESSION_YES_NO_H

#include "base/json.h"

enum decision { DECISION_NONE, DECISION_NO, DECISION_YES }; /* none: it is neither, and decides nothing */

/* One word; case and white space around it do not count. */
enum decision decision_word(struct str said);

/* The answer to a wait: a word, true or false, or {"decision": one of these}. Takes NULL. */
enum decision decision_read(struct arena *a, const struct json *answer);

#endif
