/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and their sessions, in the words of task sessions. */
#include "engine/session_next.h"
#include "engine/shapes.h"
#include "server/call.h"
#include "server/links.h"
#include "server/server.h"

/* ---- one session of a task ---- */

static int reply_status(void *arg, const struct tide_session_info *info)
{
    call_reply(arg, &shape_session_status, &(struct session_row){*info, link_of});
    return 0;
}

static enum tide_code show_status(struct call *c, struct tide_err *err)
{
    tide_session *session;

    if (call_session(c, TIDE_SESSION_READ, &session, err))
        return err->code;
    return session_show_next(session, reply_status, c, err);
}

const struct route task_routes[] = {
    {HTTP_GET, "/sessions/{id}/status", "task.session.status", SCOPE_READ, show_status,
     "its status, and what it is in the words of task sessions", .answer = &shape_session_status},
    {.method = 0},
};
