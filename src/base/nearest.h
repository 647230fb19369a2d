/* SPDX-License-Identifier: Apache-2.0 */
/* What a mistyped name may have meant: of a command, an option, a key of the config. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* The name nearest to a mistyped one, NULL when none is near. `next` hands out names until it returns NULL. */
const char *nearest(const char *typed, const char *(*next)(void *arg), void *arg);

#endif
