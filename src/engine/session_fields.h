/* SPDX-License-Identifier: Apache-2.0 */
/* What the process that makes a session says of it, whatever runs in it. */
#ifndef ENGINE_SESSION_FIELDS_H
#define ENGINE_SESSION_FIELDS_H

#include "base/cause.h"

struct session_fields {
    const char *agent_id, *task_id; /* NULL: not set */
    struct str metadata;            /* a JSON object; empty: none */
    const struct cause *request;    /* who makes it; NULL: nobody is named */
};

/* As members of session.created. `f` NULL: nothing. */
static inline void session_fields_put(struct json_out *o, const struct session_fields *f)
{
    if (!f)
        return;
    json_out_kstr_opt(o, STR("agent_id"), str_from(f->agent_id));
    json_out_kstr_opt(o, STR("task_id"), str_from(f->task_id));
    if (f->metadata.len)
        json_out_kraw(o, STR("metadata"), f->metadata);
    if (f->request)
        cause_put(o, f->request);
}

#endif
