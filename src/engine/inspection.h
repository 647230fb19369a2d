/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint and the state that it promises: what a face shows of both. */
#ifndef ENGINE_INSPECTION_H
#define ENGINE_INSPECTION_H

#include "base/json.h"
#include "base/map.h"
#include "tidemark.h"

#define INSPECTION_HIDDEN "values are not shown: include_full_memory is false (the log and exports hold them)"

struct inspection {
    struct arena arena;
    const char *session_id;
    struct tide_checkpoint checkpoint;
    const struct json *content; /* of the state as of the checkpoint; NULL: none */
    bool memory, conversations; /* to be shown */
    bool hidden;                /* include_full_memory is false: the memory is not shown to any caller */
    const char *not_shown;      /* decides; NULL: nothing is hidden */
    struct buf path;            /* JSON array of the nodes that began before it */
    struct map begun;           /* "node#visit" of these */
    int64_t complete;           /* nodes that were complete before it */
    struct map outputs;         /* key -> JSON text: what nodes had given, each key as it was set last */
    struct map said;            /* node -> id of its last message */
    const struct json *metrics; /* of the event; NULL: none */
};

/* By the id or a unique prefix of the checkpoint. `memory`: shown, where that is allowed. inspection_done() it, whatever this
 * returns. */
enum tide_code inspection_read(tide_session *session, const char *checkpoint, bool memory, struct inspection *ret,
                               struct tide_err *err) MUST_CHECK;
void inspection_done(struct inspection *i);

#endif
