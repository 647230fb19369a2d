/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tasks.h"

#include <stdio.h>

#include "base/digest.h"
#include "base/json.h"
#include "engine/agent_setup.h"

static void session_closep(tide_session **session)
{
    tide_session_close(*session);
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* ---- reading ---- */

struct reading {
    tide_store *store;
    struct task_list *list;
    const char *only;
};

static struct task_row *row_of(struct task_list *l, const char *task_id)
{
    size_t index = (size_t)(uintptr_t)map_get(&l->by_id, str_from(task_id)); /* from 1 */

    if (index)
        return &l->at[index - 1];
    MEM_ROOM(l->at, l->n, l->cap);
    l->at[l->n++] = (struct task_row){.task_id = arena_text(&l->arena, task_id)};
    map_put(&l->by_id, str_from(task_id), (void *)(uintptr_t)l->n);
    return &l->at[l->n - 1];
}

/* In which a session weighs more than one that changed later. */
static int weight(const char *state)
{
    static const char *const words[] = {"ERROR", "WAITING_FOR_INPUT", "RUNNING"};
    int w = 0;

    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++)
        w = same(state, words[i]) ? i + 1 : w;
    return w;
}

static void add_session(struct task_list *l, struct task_row *row, const struct tide_session_info *info)
{
    int before = weight(row->derived), now = weight(info->task_state);

    row->sessions++;
    row->running += same(info->task_state, "RUNNING");
    row->waiting += same(info->task_state, "WAITING_FOR_INPUT");
    if (row->derived && (now < before || (now == before && info->updated_ms < row->changed_ms)))
        return;
    row->derived = arena_text(&l->arena, info->task_state);
    row->changed_ms = info->updated_ms;
}

/* A list does not know what was set: that is read from the session. */
static void add_set(struct reading *r, struct task_row *row, const struct tide_session_info *info)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct tide_err ignored;
    const char *state;

    row->session_id = arena_text(&r->list->arena, info->id);
    row->title = arena_text(&r->list->arena, info->title);
    row->seq = info->last_seq;
    if (tide_session_open(r->store, info->id, TIDE_SESSION_READ, &session, &ignored))
        return;
    state = session_stored(&r->list->arena, session, NULL, "task_state");
    row->is_set = state && *state;
    row->state = row->is_set ? state : NULL;
}

static int on_session(void *arg, const struct tide_session_info *info)
{
    struct reading *r = arg;
    struct task_row *row;

    if (!info->task_id || !*info->task_id)
        return 0;
    row = row_of(r->list, info->task_id);
    if (!row->created_ms || info->created_ms < row->created_ms)
        row->created_ms = info->created_ms;
    if (info->updated_ms > row->updated_ms)
        row->updated_ms = info->updated_ms;
    if (info->kind == TIDE_KIND_TASK)
        add_set(r, row, info);
    else
        add_session(r->list, row, info);
    return 0;
}

static int by_change(const void *a, const void *b)
{
    const struct task_row *x = a, *y = b;

    return x->updated_ms != y->updated_ms ? (x->updated_ms < y->updated_ms) - (x->updated_ms > y->updated_ms)
                                          : strcmp(x->task_id, y->task_id);
}

enum tide_code task_list_read(tide_store *store, const char *task_id, struct task_list *ret, struct tide_err *err)
{
    const struct tide_list_filter filter = {.size = sizeof filter, .task_id = task_id};
    struct reading r = {store, ret, task_id};

    *ret = (struct task_list){.arena = ARENA_INIT};
    if (tide_session_list(store, &filter, on_session, &r, err))
        return err->code;
    for (size_t i = 0; i < ret->n; i++) {
        struct task_row *row = &ret->at[i];

        row->derived = row->derived ? row->derived : "IDLE";
        row->state = row->state ? row->state : row->derived;
    }
    if (ret->n > 1)
        qsort(ret->at, ret->n, sizeof *ret->at, by_change);
    return TIDE_OK;
}

void task_list_done(struct task_list *l)
{
    free(l->at);
    map_done(&l->by_id, NULL);
    arena_done(&l->arena);
}

static enum tide_code refuse_unknown(const char *task_id, struct tide_err *err)
{
    tide_fail(err, TIDE_NOT_FOUND, "there is no task '%.100s': no session has this task_id", task_id);
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "task");
}

enum tide_code task_find(tide_store *store, const char *task_id, struct task_list *ret,
                         const struct task_row **ret_task, struct tide_err *err)
{
    if (task_list_read(store, task_id, ret, err))
        return err->code;
    if (!ret->n)
        return refuse_unknown(task_id, err);
    *ret_task = &ret->at[0];
    return TIDE_OK;
}

enum tide_code task_check_session(tide_session *session, const char *task_id, struct tide_err *err)
{
    const struct tide_session_info *info;

    if (tide_session_get_info(session, &info, err))
        return err->code;
    if (same(info->task_id, task_id) && info->kind != TIDE_KIND_TASK)
        return TIDE_OK;
    return tide_fail_session(err, TIDE_NOT_FOUND, info->id, "is not a session of task '%.100s'", task_id);
}

/* ---- setting ---- */

/* The same for the same task, and always an id. */
static void make_id(char ret[TIDE_ID_SIZE], const char *task_id)
{
    unsigned char digest[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1];

    if (str_is_id(str_from(task_id)) && strlen(task_id) < TIDE_ID_SIZE - sizeof "task_") {
        snprintf(ret, TIDE_ID_SIZE, "task_%s", task_id);
        return;
    }
    digest_of(digest, str_from(task_id));
    hex_encode(hex, digest, DIGEST_SIZE);
    snprintf(ret, TIDE_ID_SIZE, "task_%.40s", hex);
}

static enum tide_code check_change(const char *task_id, const struct task_change *change, struct tide_err *err)
{
    const char *state = change->state;

    if (!*task_id || strlen(task_id) > TASK_ID_MAX || !str_is_utf8(str_from(task_id), NULL)) {
        tide_fail(err, TIDE_INVALID, "a task's id is 1 to %zu bytes of UTF-8", TASK_ID_MAX);
        return tide_about(err, TIDE_SUBJECT_ARGUMENT, "task");
    }
    if (!state || (strlen(state) <= TASK_STATE_MAX && strspn(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(state)))
        return TIDE_OK;
    tide_fail(err, TIDE_INVALID,
              "a state is 1 to %zu of A to Z and _, such as REVIEW; empty: it follows from the sessions",
              TASK_STATE_MAX);
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, "state");
}

static void put_change(struct json_out *o, const struct task_change *change)
{
    if (change->state)
        json_out_kstr(o, STR("task_state"), str_from(change->state));
    if (change->title)
        json_out_kstr(o, STR("title"), str_from(change->title));
    json_out_kstr_opt(o, STR("by"), str_from(change->by));
}

static enum tide_code make_task(tide_store *store, const char *id, const char *task_id,
                                const struct task_change *change, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&fields);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("agent"), STR("task"));
    json_out_kstr(&o, STR("task_id"), str_from(task_id));
    json_out_kstr(&o, STR("loop"), STR("task"));
    put_change(&o, change);
    json_out_end(&o, '}');
    return tide_session_create(store, id, buf_cstr(&fields), &session, err);
}

static enum tide_code change_existing(tide_store *store, const char *id, const char *task_id,
                                      const struct task_change *change, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(buf_done) struct buf body = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&body);
    const struct tide_session_info *info;
    struct tide_new_event event;

    if (tide_session_open(store, id, TIDE_SESSION_READ, &session, err) || tide_session_get_info(session, &info, err))
        return err->code;
    if (info->kind != TIDE_KIND_TASK || !same(info->task_id, task_id))
        return tide_fail_session(err, TIDE_EXISTS, id, "is in the place of what is set of the task: delete it first");
    json_out_begin(&o, '{');
    put_change(&o, change);
    json_out_end(&o, '}');
    event = (struct tide_new_event){"session.updated", buf_cstr(&body), body.len};
    return tide_session_input(store, id, change->expect_seq, &event, 1, NULL, err);
}

enum tide_code task_set(tide_store *store, const char *task_id, const struct task_change *change, struct tide_err *err)
{
    char id[TIDE_ID_SIZE];
    enum tide_code code;

    if (check_change(task_id, change, err))
        return err->code;
    make_id(id, task_id);
    code = change->expect_seq > 0 ? TIDE_EXISTS : make_task(store, id, task_id, change, err);
    return code == TIDE_EXISTS ? change_existing(store, id, task_id, change, err) : code;
}
