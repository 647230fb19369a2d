/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each action that a client can do here. Arguments that only another address understands are in its query. */
#include "server/links.h"

#include "base/buf.h"
#include "server/route.h"

static const struct {
    enum tide_action action;
    const char *method, *path; /* "{id}": of the session */
    bool arguments;            /* they are the body */
} rows[] = {
    {TIDE_ACTION_RESUME, "POST", "/sessions/{id}/resume", true},
    {TIDE_ACTION_ANSWER, "POST", "/sessions/{id}/answer", true},
    {TIDE_ACTION_PROMPT, "POST", "/sessions/{id}/messages", true},
    {TIDE_ACTION_CANCEL, "POST", "/sessions/{id}/cancel", false},
    {TIDE_ACTION_ROTATE_TOKEN, "POST", "/sessions/{id}/token", false},
    {TIDE_ACTION_TRUST, "GET", "/sessions/{id}/trust", false},
    {TIDE_ACTION_VERIFY, "GET", "/sessions/{id}/verify", false},
    {TIDE_ACTION_WHY, "GET", "/sessions/{id}/why", false},
    {TIDE_ACTION_SHOW_LOG, "GET", "/sessions/{id}/log", false},
    {TIDE_ACTION_SHOW_TIMELINE, "GET", "/sessions/{id}/timeline", false},
    {TIDE_ACTION_LIST_SESSIONS, "GET", "/sessions", false},
    {TIDE_ACTION_LIST_CHECKPOINTS, "GET", "/sessions/{id}/checkpoints", false},
};

const char *link_of(struct arena *a, const struct tide_next *next)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *id = strstr(rows[i].path, "{id}");
        const char *session = next->session_id ? next->session_id : "";

        if (rows[i].action != next->action)
            continue;
        if (!id)
            return arena_printf(a, "%s " API_ROOT "%s", rows[i].method, rows[i].path);
        return arena_printf(a, "%s " API_ROOT "%.*s%s%s%s%s", rows[i].method, (int)(id - rows[i].path), rows[i].path,
                            session, id + 4, rows[i].arguments ? " " : "",
                            rows[i].arguments && next->arguments ? next->arguments : "");
    }
    return NULL;
}
