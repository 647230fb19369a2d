/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session_overview.h"

#include "engine/message_queue.h"
#include "engine/session_detail.h"
#include "engine/transcript_page.h"

struct showing {
    tide_session *session;
    struct transcript_page page;
    struct session_overview overview; /* without the session itself */
    session_overview_fn *fn;
    void *arg;
    struct json_out *json;
    enum tide_code code;
    struct tide_err *err;
};

/* ---- what is written as it is read ---- */

static void put_message(void *arg, const struct queued_message *m)
{
    shape_put(arg, &shape_queued_message, m);
}

static void write_queue(struct json_out *o, void *arg)
{
    struct showing *s = arg;

    if (!s->code)
        s->code = message_queue_list(s->session, put_message, o, s->err);
}

static int put_entry(void *arg, const struct transcript_entry *e)
{
    shape_put(((const struct showing *)arg)->json, &shape_transcript_entry, e);
    return 0;
}

static void write_entries(struct json_out *o, void *arg)
{
    struct showing *s = arg;

    s->json = o;
    if (!s->code)
        s->code = transcript_page_read(s->session, &s->page, put_entry, s, s->err);
}

/* ---- all of it ---- */

static void show_detail(void *arg, const struct session_detail *detail)
{
    struct showing *s = arg;

    s->overview.session = *detail;
    s->fn(s->arg, &s->overview);
}

static enum tide_code find_task(tide_store *store, const struct tide_session_info *info, struct task_list *list,
                                const struct task_row **ret, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    if (info->task_id && *info->task_id)
        code = task_find(store, info->task_id, list, ret, err);
    return code == TIDE_NOT_FOUND ? TIDE_OK : code; /* the session was given another one meanwhile */
}

enum tide_code session_overview_show(tide_store *store, tide_session *session, const struct overview_request *request,
                                     session_overview_fn *fn, void *arg, struct tide_err *err)
{
    AUTO(task_list_done) struct task_list tasks = {.at = NULL};
    AUTO(pending_question_done) struct pending_question question = {.arena = ARENA_INIT};
    struct showing s = {.session = session,
                        .page = {.limit = request->limit, .max_bytes = request->max_bytes},
                        .fn = fn,
                        .arg = arg,
                        .err = err};
    const struct tide_session_info *info;
    bool asks;

    if (tide_session_get_info(session, &info, err) ||
        (!request->no_task && find_task(store, info, &tasks, &s.overview.task, err)))
        return err->code;
    asks = session_asks(info);
    if (asks && pending_question_read(session, &question, err))
        return err->code;
    if (asks && request->diff)
        pending_question_add_diff(&question);
    if (transcript_page_find(session, &s.page, err))
        return err->code;
    s.overview.position = request->position;
    s.overview.question = asks ? &question : NULL;
    s.overview.queue = (struct shape_stream){write_queue, &s};
    s.overview.entries = (struct shape_stream){write_entries, &s};
    s.overview.entries_before = s.page.entries_before;
    s.overview.code = &s.code;
    return session_show_detail(session, request->command, show_detail, &s, err) ? err->code : s.code;
}

/* ---- as JSON ---- */

static bool has_position(const void *data)
{
    return ((const struct session_overview *)data)->position >= 0;
}

static bool has_task(const void *data)
{
    return ((const struct session_overview *)data)->task != NULL;
}

static void put_task(struct json_out *o, const void *data)
{
    shape_put(o, &shape_task, ((const struct session_overview *)data)->task);
}

static bool has_question(const void *data)
{
    return ((const struct session_overview *)data)->question != NULL;
}

static void put_question(struct json_out *o, const void *data)
{
    shape_put(o, &shape_question, ((const struct session_overview *)data)->question);
}

static bool has_before(const void *data)
{
    return ((const struct session_overview *)data)->entries_before > 0;
}

#define AT(member) SHAPE_AT(struct session_overview, member)

SHAPE(session_overview, "All that a page of one session begins with.",
      {"position", SHAPE_INT, AT(position), SHAPE_NULLABLE,
       "where the store ended before this was read: follow all sessions from there; null: it has no such order",
       .has = has_position},
      {"session", SHAPE_OBJECT, AT(session), 0, "the session; `last_seq` is where to follow it from",
       .of = &shape_session_detail},
      {"task", SHAPE_OBJECT, AT(task), SHAPE_NULLABLE, "its task", .of = &shape_task, .has = has_task, .put = put_task},
      {"question", SHAPE_OBJECT, AT(question), SHAPE_NULLABLE, "what it asks a person", .of = &shape_question,
       .has = has_question, .put = put_question},
      {"queue", SHAPE_STREAM, AT(queue), 0, "messages that no run has taken yet", .of = &shape_queued_message},
      {"entries", SHAPE_STREAM, AT(entries), 0, "the last of its transcript", .of = &shape_transcript_entry},
      {"entries_before", SHAPE_INT, AT(entries_before), SHAPE_NULLABLE,
       "`before` of the page of the transcript before these; null: there is none", .has = has_before});
