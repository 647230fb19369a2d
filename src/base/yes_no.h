/* SPDX-License-Identifier: Apache-2.0 */
/* What a person said when asked for a yes or a no, read the same way wherever it was asked. */
#ifndef BASE_YES_NO_H
#define BASE_YES_NO_H

#include "base/json.h"

enum yes_no { YES_NO_NEITHER, YES_NO_NO, YES_NO_YES }; /* none: it is neither, and decides nothing */

/* One word; case and white space around it do not count. */
enum yes_no yes_no_word(struct str said);

/* The answer to a wait: a word, true or false, or {"decision": one of these}. Takes NULL. */
enum yes_no yes_no_read(struct arena *a, const struct json *answer);

#endif
