/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, read from end to end: which of them are whole. Also after one was found damaged. */
#ifndef ENGINE_VERIFICATION_H
#define ENGINE_VERIFICATION_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct verified_session {
    const char *session_id, *error; /* error NULL: it is whole */
    bool ok, unverified;            /* unverified: another program's lines, without digests */
    int64_t events;
};

struct verification {
    bool ok;
    struct verified_session *sessions;
    size_t n, bad;
    int64_t events;
    struct tide_err first; /* of the first bad one; where none is: why not all could be listed */
    struct arena arena;
};

/* `ids` NULL: all; `progress` may be NULL. Other errors than damage (not found, stopped, no access) end it. */
enum tide_code verification_run(tide_store *store, const char *const *ids, tide_progress_fn *progress, void *arg,
                                struct verification *ret, struct tide_err *err) MUST_CHECK;
void verification_done(struct verification *v);

#endif
