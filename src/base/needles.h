/* SPDX-License-Identifier: Apache-2.0 */
/* Finds any of many texts in one pass: most bytes of what is searched are never looked at. Pure. */
#ifndef BASE_NEEDLES_H
#define BASE_NEEDLES_H

#include "base/str.h"

#define NEEDLE_MIN 8 /* bytes: shorter ones are not looked for */

struct needles;

/* The texts must outlive it, and have NEEDLE_MIN bytes each. */
struct needles *needles_new(const struct str *texts, size_t n);
void needles_free(struct needles *m);

/*
 * The first occurrence that begins at `from` or behind it: where it begins, and which text it is (of several that begin
 * there the longest). False: there is none.
 */
bool needles_find(const struct needles *m, struct str in, size_t from, size_t *ret_at, size_t *ret_which);

#endif
