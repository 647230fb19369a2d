/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comments promise, stated: INVARIANT(what) ends the process with one line when it does not hold. Only our own bugs make it
 * so: what is typed, stored, damaged or sent by a peer is an error, never this. The log makes the end safe.
 */
#ifndef BASE_INVARIANT_H
#define BASE_INVARIANT_H

#include <stdbool.h>

#ifndef COSTLY_INVARIANTS
#define COSTLY_INVARIANTS 0
#endif

_Noreturn void invariant_broken(const char *what, const char *file, int line);

/* On in every build: costs a comparison. */
#define INVARIANT(what) ((what) ? (void)0 : invariant_broken(#what, __FILE__, __LINE__))

/* On with a sanitizer, in fuzzers and with -Dcostly_invariants=true: may walk over all there is. */
#define INVARIANT_COSTLY(what) (!COSTLY_INVARIANTS || (what) ? (void)0 : invariant_broken(#what, __FILE__, __LINE__))

#endif
