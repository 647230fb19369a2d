/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and their sessions, in the words of task sessions. */
#include "engine/session_next.h"
#include "engine/shapes.h"
#include "engine/tasks.h"
#include "server/call.h"
#include "server/links.h"
#include "server/pages.h"
#include "server/server.h"

#define LIST_MAX 1000

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

static enum tide_code show_session(struct call *c, struct tide_err *err)
{
    const struct str task = c->params[0];
    tide_session *session;

    c->params[0] = c->params[1]; /* the session is what call_session() looks for */
    if (call_session(c, TIDE_SESSION_READ, &session, err) || task_check_session(session, task.ptr, err))
        return err->code;
    return session_show_next(session, reply_status, c, err);
}

/* ---- its sessions ---- */

static const struct field page_query[] = {
    {.name = "after", .type = FIELD_TEXT, .help = "only sessions after this cursor"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number", .min = 1, .max = LIST_MAX},
    {.name = NULL},
};

static enum tide_code list_sessions(struct call *c, struct tide_err *err)
{
    AUTO(task_list_done) struct task_list list = {.at = NULL};
    const struct tide_list_filter filter = {.size = sizeof filter, .task_id = c->params[0].ptr};
    const struct task_row *task;

    if (task_find(c->server->store, c->params[0].ptr, &list, &task, err))
        return err->code;
    return call_reply_sessions(c, &filter, true, err);
}

/* ---- tasks ---- */

static const struct field list_query[] = {
    {.name = "state", .type = FIELD_TEXT, .help = "only of this state"},
    {.name = "limit", .type = FIELD_INT, .help = "at most this number", .min = 1, .max = LIST_MAX},
    {.name = NULL},
};

struct listing {
    const struct task_list *list;
    const char *state;
    int64_t left;
};

static void write_tasks(struct json_out *o, void *arg)
{
    struct listing *l = arg;

    for (size_t i = 0; i < l->list->n; i++)
        if ((!l->state || strcmp(l->state, l->list->at[i].state) == 0) && l->left-- > 0)
            shape_put(o, &shape_task, &l->list->at[i]);
}

static enum tide_code list_tasks(struct call *c, struct tide_err *err)
{
    AUTO(task_list_done) struct task_list list = {.at = NULL};
    struct listing l = {&list, call_text(c, "state"), call_int(c, "limit", LIST_MAX)};

    if (task_list_read(c->server->store, NULL, &list, err))
        return err->code;
    call_reply(c, &shape_tasks, &(struct tasks_listed){{write_tasks, &l}});
    return TIDE_OK;
}

static enum tide_code reply_task(struct call *c, struct tide_err *err)
{
    AUTO(task_list_done) struct task_list list = {.at = NULL};
    const struct task_row *task;

    if (task_find(c->server->store, c->params[0].ptr, &list, &task, err))
        return err->code;
    call_field(c, "ETag", arena_printf(c->arena, "\"%lld\"", (long long)task->seq));
    call_reply(c, &shape_task, task);
    return TIDE_OK;
}

static const struct field set_body[] = {
    {.name = "state", .type = FIELD_TEXT, .help = "such as REVIEW; empty: derive it from the sessions again"},
    {.name = "title", .type = FIELD_TEXT, .help = "for people"},
    {.name = NULL},
};

static enum tide_code set_task(struct call *c, struct tide_err *err)
{
    struct task_change change = {.state = call_text(c, "state"), .title = call_text(c, "title"), .by = c->caller.name};

    if (!change.state && !change.title)
        return tide_fail(err, TIDE_INVALID, "nothing is to be set: give state or title");
    if (call_expected_seq(c, &change.expect_seq, err) || task_set(c->server->store, c->params[0].ptr, &change, err))
        return err->code;
    return reply_task(c, err);
}

#define TASK "/tasks/{task}"
const struct route task_routes[] = {
    {HTTP_GET, "/sessions/{id}/status", "task.session.status", SCOPE_READ, show_status,
     "show the status of a session, also as a task session", .answer = &shape_session_status},
    {HTTP_GET, "/tasks", "task.list", SCOPE_READ, list_tasks, "list tasks, the last changed first", list_query,
     .answer = &shape_tasks},
    {HTTP_GET, TASK, "task.get", SCOPE_READ, reply_task, "show a task", .answer = &shape_task},
    {HTTP_PUT, TASK, "task.set", SCOPE_WRITE, set_task,
     "set the state or title of a task; the first request creates it", .body = set_body, .answer = &shape_task},
    {HTTP_PATCH, TASK, "task.update", SCOPE_WRITE, set_task, "set the state or title of a task, as PUT does",
     .body = set_body, .answer = &shape_task},
    {HTTP_GET, TASK "/sessions", "task.sessions", SCOPE_READ, list_sessions,
     "list the sessions of a task, newest first", page_query, .answer = &shape_session_page},
    {HTTP_GET, TASK "/sessions/{id}", "task.session", SCOPE_READ, show_session,
     "show a session of a task; one of another task is not found", .answer = &shape_session_status},
    {.method = 0},
};
