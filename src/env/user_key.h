/* SPDX-License-Identifier: Apache-2.0 */
/* The user's own key: what proves that a session began here. It is never in a store. */
#ifndef ENV_USER_KEY_H
#define ENV_USER_KEY_H

#include "base/digest.h"
#include "base/err.h"

struct user_key {
    struct digest_key key;
    char from[1100]; /* the file or variable that it comes from; "": it lives no longer than this process */
    bool made;       /* by this process */
    char why[512];   /* … why it does not outlive this process, or why there is none */
};

/*
 * The key of this process's user, the same for the whole life of the process. Where there is none: `make` makes it, else the
 * key is empty and proves nothing. Where it can neither be read nor made, one that only this process has. A key that was
 * named and cannot be used is an error.
 */
enum tide_code user_key(bool make, struct user_key *ret, struct tide_err *err) MUST_CHECK;

/*
 * Whether a store in this place was opened before by a version that proves origins: one without proofs that is found there
 * came later, from wherever. Noted in the state directory, beside the key; true also where nothing can be noted.
 */
bool user_place_is_known(const char *url);
void user_place_note(const char *url);

/* A file of this name in the state directory, which `make` makes. False: there is none, or it cannot be written then. */
bool user_state_path(const char *name, bool make, char *out, size_t size);

#endif
