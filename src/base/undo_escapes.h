/* SPDX-License-Identifier: Apache-2.0 */
/* Text as it was before its backslash escapes, its percent escapes and the line breaks of base64: round by round. */
#ifndef BASE_UNDO_ESCAPES_H
#define BASE_UNDO_ESCAPES_H

#include <stdbool.h>

#include "base/str.h"

struct place {
    size_t from, to;
};

/* A text on the way to its plain form. `source` (NULL: not wanted) says of which bytes of the first text each was made. */
struct decoded {
    char *text;
    size_t len;
    struct place *source;
};

void decoded_done(struct decoded *d);

static inline struct place place_of(const struct decoded *d, size_t at)
{
    return d->source ? d->source[at] : (struct place){at, at + 1};
}

enum undo { UNDO_BACKSLASHES, UNDO_ALL };

/* One round; `of` is what the text was decoded from. False: nothing was escaped, and *ret is not set. */
bool undo_encoding(struct str in, const struct decoded *of, enum undo what, bool sources, struct decoded *ret);

/* The escape at p: its bytes in out, its length in *ret_used; 0: there is none. */
size_t undo_backslash(const char *p, const char *end, char out[4], size_t *ret_used);
bool is_base64(char c);

#endif
