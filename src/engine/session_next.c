/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session_next.h"

#include <string.h>

#include "base/mem.h"
#include "graph/resume_next.h"
#include "session/session.h"

struct next_call {
    tide_store *store; /* of a list */
    struct arena arena;
    tide_session_info_fn *fn;
    void *arg;
};

/* The data of a list does not show whether a graph can continue as offered, nor which step of a program was cut. */
static bool needs_log(const struct tide_session_info *info)
{
    bool resumes = false;

    for (const struct tide_next *n = info->next; n && n->action; n++)
        resumes |= n->action == TIDE_ACTION_RESUME;
    return resumes && info->trusted &&
           (info->kind == TIDE_KIND_GRAPH ||
            (info->kind == TIDE_KIND_PROGRAM && info->status == TIDE_STATUS_INTERRUPTED_STARTUP));
}

bool session_withholds_graph(tide_session *session)
{
    const struct tide_session_info *info;
    struct tide_err ignored;

    return !tide_session_get_info(session, &info, &ignored) && needs_log(info) && graph_is_withheld(session);
}

static void show_next(struct arena *a, tide_session *session, struct tide_session_info *shown)
{
    if (session_withholds_graph(session))
        shown->why = arena_printf(a, "%s; its graph contained a secret, which is not stored: give the graph again",
                                  shown->why ? shown->why : "");
    shown->next = graph_next_of(a, session);
}

static int on_listed(void *arg, const struct tide_session_info *info)
{
    struct next_call *c = arg;
    struct tide_session_info shown = *info;
    tide_session *session = NULL;
    struct tide_err ignored;
    int stop;

    if (!needs_log(info) || tide_session_open(c->store, info->id, TIDE_SESSION_READ, &session, &ignored))
        return c->fn(c->arg, info);
    arena_reset(&c->arena);
    show_next(&c->arena, session, &shown);
    stop = c->fn(c->arg, &shown);
    tide_session_close(session);
    return stop;
}

enum tide_code session_list_next_part(tide_store *store, const struct tide_list_filter *filter, int64_t look,
                                      tide_session_info_fn *fn, void *arg, char ret_looked[NEXT_CURSOR_SIZE],
                                      struct tide_err *err)
{
    struct next_call c = {.store = store, .arena = ARENA_INIT, .fn = fn, .arg = arg};
    enum tide_code code = session_list_part(store, filter, look, on_listed, &c, ret_looked, err);

    arena_done(&c.arena);
    return code;
}

enum tide_code session_list_next(tide_store *store, const struct tide_list_filter *filter, tide_session_info_fn *fn,
                                 void *arg, struct tide_err *err)
{
    char looked[NEXT_CURSOR_SIZE];

    return session_list_next_part(store, filter, 0, fn, arg, looked, err);
}

enum tide_code session_show_next(tide_session *session, tide_session_info_fn *fn, void *arg, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct tide_session_info *info;
    struct tide_session_info shown;

    if (tide_session_get_info(session, &info, err))
        return err->code;
    shown = *info;
    show_next(&a, session, &shown);
    fn(arg, &shown);
    return TIDE_OK;
}

/* ---- since when ---- */

/* The wait is said to have begun at, or right before, its own event. */
static int take_time(void *arg, const struct tide_event *ev)
{
    if (strcmp(ev->kind, "run.waiting") != 0)
        return 0;
    *(int64_t *)arg = ev->ts_ms;
    return 1;
}

static int64_t since(int64_t wait_ms, const struct tide_session_info *info)
{
    bool running = info->status == TIDE_STATUS_RUNNING;

    if (info->run_ended_ms)
        return info->run_ended_ms;
    if (info->reason && strcmp(info->reason, "wait_timeout") == 0)
        return info->deadline_ms;
    if (info->reason && strcmp(info->reason, "due") == 0)
        return info->due_ms ? info->due_ms : info->deadline_ms;
    if (wait_ms)
        return wait_ms;
    if (running && info->run_started_ms)
        return info->run_started_ms;
    return info->run_started_ms ? info->updated_ms : info->created_ms;
}

/* When its wait began is in the log alone. */
enum tide_code session_since(tide_session *session, int64_t *ret_ms, struct tide_err *err)
{
    const struct tide_session_info *info;
    int64_t wait_ms = 0;

    if (tide_session_get_info(session, &info, err) ||
        (!info->run_ended_ms && info->wait_since_seq >= tide_session_first_seq(session) &&
         tide_session_read(session, 0, info->wait_since_seq, 0, take_time, &wait_ms, err)))
        return err->code;
    *ret_ms = since(wait_ms, info);
    return TIDE_OK;
}
