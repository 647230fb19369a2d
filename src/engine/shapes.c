/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"

const struct shape *const shapes[] = {
    &shape_session,    &shape_session_detail, &shape_sessions,   &shape_why,      &shape_ids,
    &shape_checkpoint, &shape_checkpoints,    &shape_inspection, &shape_timeline, &shape_event,
    &shape_usage,      &shape_chat,           &shape_run,        &shape_parked,   NULL,
};

const struct shape *shape_find(const char *name)
{
    for (const struct shape *const *s = shapes; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    return NULL;
}
