/* SPDX-License-Identifier: Apache-2.0 */
/* What a rollback would undo, or why it would be refused; nothing is written. */
#ifndef ENGINE_ROLLBACK_PREVIEW_H
#define ENGINE_ROLLBACK_PREVIEW_H

#include "base/err.h"
#include "base/mem.h"
#include "base/shape.h"
#include "tidemark.h"

struct rollback_preview {
    int64_t messages, tools, nodes, checkpoints; /* tools: calls and steps that ended; nodes: that are complete */
    const char **once; /* names of effects that must happen once and have, or may have; ended by NULL */
    size_t n_once;
    struct arena arena;
};

/* `flags`: as of tide_session_rollback(), whose refusals these are. rollback_preview_done() it, whatever this returns. */
enum tide_code rollback_preview_read(tide_session *session, int64_t to_seq, unsigned flags,
                                     struct rollback_preview *ret, struct tide_err *err) MUST_CHECK;
void rollback_preview_done(struct rollback_preview *p);

extern const struct shape shape_rollback_preview; /* struct rollback_preview; has no name */

#endif
